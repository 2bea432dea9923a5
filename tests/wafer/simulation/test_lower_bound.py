"""What no code can beat is found without looking at each instance."""

from __future__ import annotations

import numpy as np
import pytest

from polyloom import compile_wafer, read_mapping, read_program
from polyloom.wafer.simulation import lower_bound

PRODUCT = """lair mm(): float16 A[6][64], float16 B[64][8] -> float16 C[6][8]
{ all (i, j, k) in (6, 8, 64) C[i][j] += A[i][k] * B[k][j] }"""
MAP = """size: { PE[2, 3] }
compute_map: { mm[i, j, k] -> PE[j//5, i//2] }
oport_map: { C[i = 0:5, j = 0:7] -> [PE[2, i//2] -> index[i mod 2, j]] }"""


def test_instances_that_are_on_one_pe_whatever_an_iterator_is_are_counted_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[int] = []
    points_of = lower_bound._points

    def counted(domain: tuple[int, ...]) -> object:
        for points in points_of(domain):
            looked_at.append(points.shape[1])
            yield points

    monkeypatch.setattr(lower_bound, "_points", counted)
    program = read_program(PRODUCT)
    found = compile_wafer(program, read_mapping(MAP, program)).program
    (task,) = (analysis.task for analysis in found.analysis.simd)
    instances, arriving = lower_bound._work_per_pe(found, task, {}, 3)
    assert sum(looked_at) == 6 * 8
    assert instances.tolist() == [3 * 2 * 5 * 64, 3 * 2 * 3 * 64] * 3
    assert not np.any(arriving)
