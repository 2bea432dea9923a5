"""How tasks are done is decided once for maps that have them in common."""

from __future__ import annotations

import pytest
from corpus import layers

from polyloom import read_mapping
from polyloom.ir.program import Program
from polyloom.pipeline import analyse_layer
from polyloom.polyhedra.effort import at_most, keeping_answers, spent
from polyloom.wafer import decisions
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.simd.decision import SimdOptions

MAP = """size: { PE[4, 1] }
compute_map: { ff[i, j] -> PE[i//8, 0] }
oport_map: { y[i = 0:31] -> [PE[i//8, %d] -> index[i mod 8]] }
"""
"""Results leave to the north (-1) or to the south (1)."""


def _program() -> Program:
    return next(x for x in layers() if x.name == "ff44 M=32 N=16").program()


def _analysed(program: Program, side: int) -> tuple[LayerAnalysis, int]:
    """Return a layer, and what isl spends on it."""
    with at_most(100_000_000):
        analysis = analyse_layer(program, read_mapping(MAP % side, program), SimdOptions())
        return analysis, spent()


def test_what_computes_on_local_memory_is_decided_once_for_maps_with_other_ports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    for name in ("undecided", "vectorise"):
        made = getattr(decisions, name)

        def counted(*arguments: object, name: str = name, made: object = made, **named: object) -> object:
            asked.append(name)
            return made(*arguments, **named)  # type: ignore[operator]

        monkeypatch.setattr(decisions, name, counted)
    program = _program()
    alone = _analysed(program, 1)
    several = len(asked)
    assert asked[:2] == ["undecided", "vectorise"] and asked.count("undecided") == 1
    with keeping_answers():
        _analysed(program, -1)
        before = len(asked)
        shared = _analysed(program, 1)
    assert len(asked) == before > several
    assert shared[0].simd[0].done_like(alone[0].simd[0])
    assert {n: a.bank for n, a in shared[0].arrays.items()} == {n: a.bank for n, a in alone[0].arrays.items()}


def test_what_was_decided_for_another_map_counts_as_much_as_to_decide_it() -> None:
    program = _program()
    with keeping_answers():
        first = _analysed(program, 1)[1]
        again = _analysed(program, 1)[1]
    assert abs(first - again) <= first // 1000  # counting may be off by so much, and what isl remembers
