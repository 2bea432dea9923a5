"""Chosen maps that are kept: for layers that differ in names only, between runs, and never for others."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyloom.api.reading import load_tensor_program
from polyloom.ir.program import Program
from polyloom.pipeline import complete_mapping
from polyloom.wafer.machine.model import Machine, load_machine
from polyloom.wafer.placement import known_maps
from polyloom.wafer.placement.candidates import QUICK, SearchOptions
from polyloom.wafer.placement.choose import Choice

TEXT = """\
lair f(): float16 W[4][6], float16 x[6] -> float16 y[4]
{
  all (i, j) in (4, 6)
    y[i] += W[i][j] * x[j]
}
"""
OTHER = """\
lair g(): float16 weights[4][6], float16 a[6] -> float16 b[4]
{
  all (k, l) in (4, 6)
    b[k] += weights[k][l] * a[l]
}
"""


class Counting:
    """A choice of maps that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(
        self,
        source: object,
        program: Program,
        machine: Machine,
        size: tuple[int, int] | None,
        options: SearchOptions | None,
    ) -> Choice:
        self.asked += 1
        assert source is None
        return complete_mapping(None, program, machine, size, options)


@pytest.mark.slow
@pytest.mark.ci
def test_layers_that_are_alike_are_searched_once(tmp_path: Path) -> None:
    machine, choose = load_machine("cs2"), Counting()
    one, other = (load_tensor_program(text).program for text in (TEXT, OTHER))
    size = (2, 2)
    first = known_maps.chosen(None, one, machine, size, choose, tmp_path)
    again = known_maps.chosen(None, one, machine, size, choose, tmp_path)
    alike = known_maps.chosen(None, other, machine, size, choose, tmp_path)
    assert choose.asked == 1
    assert first.text == again.text
    assert [c.cycles for c in first.candidates] == [c.cycles for c in again.candidates]
    assert set(alike.mapping.placement) == {"g"}
    assert set(alike.mapping.outputs) == {"b"}
    known_maps.chosen(None, one, machine, (4, 1), choose, tmp_path)
    assert choose.asked == 2
    known_maps.chosen(None, one, machine, size, choose, tmp_path, QUICK)
    assert choose.asked == 3


def test_a_broken_file_is_chosen_anew(tmp_path: Path) -> None:
    machine, choose = load_machine("cs2"), Counting()
    one = load_tensor_program(TEXT).program
    first = known_maps.chosen(None, one, machine, (2, 1), choose, tmp_path)
    (path,) = tmp_path.glob("map-*.json")
    path.write_bytes(path.read_bytes()[:-3])
    assert known_maps.chosen(None, one, machine, (2, 1), choose, tmp_path).text == first.text
    assert choose.asked == 2
