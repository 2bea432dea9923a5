"""Sequences cut into segments: one PE is asked before all of them, and says no only where all would."""

from __future__ import annotations

import islpy as isl
import pytest

from polyloom.polyhedra.effort import at_most, keeping_answers
from polyloom.wafer.codegen import segments
from polyloom.wafer.codegen.segments import Elements, cut, deeper
from polyloom.wafer.machine.descriptor_nests import Nest, find_nest

PES = "[PE_X, PE_Y] -> { index[i, j] : PE_Y = 0 and "


def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that gets, for each question for a nest, whether it was about one PE."""
    found: list[bool] = []

    def counted(indices: isl.Set, varying: tuple[str, ...]) -> Nest | None:
        pes = indices.params().project_out(isl.dim_type.param, 0, len(varying))
        found.append(bool(pes.is_equal(isl.Set.from_point(pes.sample_point()))))
        return find_nest(indices, varying)

    monkeypatch.setattr(segments, "find_nest", counted)
    return found


def test_what_is_no_nest_on_a_pe_is_asked_there_only(monkeypatch: pytest.MonkeyPatch) -> None:
    holes = isl.Set(PES + "0 <= PE_X <= 3 and 0 <= i < 4 and (j = PE_X or PE_X + 2 <= j <= PE_X + 3) }")
    questions = asked(monkeypatch)
    assert cut([Elements("kept", holes, None)]) is None
    assert questions == [True, True]


def test_pieces_for_different_pes_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = "(PE_X <= 1 and 0 <= j <= 1 or 2 <= PE_X <= 3 and 2 <= j <= 3)"
    items = isl.Set(PES + f"0 <= PE_X <= 3 and 0 <= i < 4 and {pieces} }}")
    last = isl.Set(PES + "0 <= PE_X <= 1 and 0 <= i < 4 and j = 4 }")
    questions = asked(monkeypatch)
    found = cut([Elements("last", last, None), Elements("kept", items, None)])
    assert found is not None and found.depth == 1
    assert [segment.elements.name for segment in found.segments] == ["kept", "last"]
    assert True in questions and False in questions


def test_a_single_piece_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    questions = asked(monkeypatch)
    assert cut([Elements("all", isl.Set(PES + "0 <= PE_X <= 3 and 0 <= i, j < 4 }"), None)]) is not None
    assert questions == [False]


def test_smaller_segments_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maps that are compared have moves in common."""
    kinds = [Elements("all", isl.Set(PES + "0 <= PE_X <= 3 and 0 <= i, j < 4 }"), None)]
    with at_most(1_000_000), keeping_answers():
        found = cut(kinds)
        assert found is not None
        questions = asked(monkeypatch)
        several = [[pieces.depth for pieces in deeper(kinds, found)] for _ in range(3)]
    assert several == [[1]] * 3 and questions == [False]
