"""Filters are looked for on one PE of a role before all of its PEs are asked about."""

from types import SimpleNamespace
from typing import cast

import islpy as isl
import pytest

from polyloom.polyhedra.loops.generate import CodeBuilder, Number
from polyloom.wafer.codegen import filters
from polyloom.wafer.codegen.passing import Passed
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.roles.builder import RoleBuilder
from polyloom.wafer.simd.decision import SimdOptions

ROLE = "[PE_X, PE_Y] -> { : 0 <= PE_X < 8 and PE_Y = 0 }"
COMING = isl.Set("[PE_X, PE_Y] -> { index[i] : 0 <= i < 32 and 0 <= PE_X < 8 and PE_Y = 0 }")


def _builder() -> RoleBuilder:
    options = SimdOptions(machine=load_machine("cs2"))
    context = isl.Set(ROLE)
    code = CodeBuilder(context, {})
    parts = {"analysis": SimpleNamespace(options=options), "role": SimpleNamespace(context=context)}
    return cast(RoleBuilder, SimpleNamespace(filters=[], code=lambda: code, **parts))


def _part(items: str, *, kept: bool) -> Passed:
    points = isl.Set(f"[PE_X, PE_Y] -> {{ index[i] : 0 <= i < 32 and {items} }}")
    return Passed(name="x", items=points, origin="x", targets=(), kept=kept, local=None)


def _asked(monkeypatch: pytest.MonkeyPatch, parts: list[Passed]) -> list[isl.Set]:
    """Return the sets of PEs for which the counts of a filter were looked for."""
    contexts: list[isl.Set] = []

    def nothing(_: object, __: object, ___: object, context: isl.Set) -> None:
        contexts.append(context)

    monkeypatch.setattr(filters, "_counts", nothing)
    assert filters.filter_of(_builder(), "x", parts, COMING) is None
    return contexts


def test_what_is_no_filter_on_one_pe_is_not_asked_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [_part("i mod 2 = 0", kept=True), _part("i mod 2 = 1", kept=False)]
    (context,) = _asked(monkeypatch, parts)
    assert context.is_strict_subset(isl.Set(ROLE))
    assert not context.is_empty()


def test_one_run_of_each_pe_has_a_filter() -> None:
    mine = "4 PE_X <= i < 4 PE_X + 4"
    parts = [_part(mine, kept=True), _part("i < 4 PE_X", kept=False), _part("i >= 4 PE_X + 4", kept=False)]
    found = filters.filter_of(_builder(), "x", parts, COMING)
    assert found is not None
    assert (found.keep, found.period) == (Number(4), Number(32))


def test_holes_have_no_filter_on_any_pe() -> None:
    parts = [_part("i mod 2 = 0", kept=True), _part("i mod 2 = 1", kept=False)]
    assert filters.filter_of(_builder(), "x", parts, COMING) is None


def test_rounds_are_of_what_parts_there_are_though_more_comes() -> None:
    parts = [_part("2 PE_X <= i < 2 PE_X + 2", kept=True)]
    others = [f"i < 16 and i mod 3 = {k} and (i < 2 PE_X or i >= 2 PE_X + 2)" for k in range(3)]
    parts += [_part(items, kept=False) for items in others]
    found = filters.filter_of(_builder(), "x", parts, COMING)
    assert found is not None
    assert (found.keep, found.period) == (Number(2), Number(16))


def test_pieces_that_are_all_that_comes_are_asked_about_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """isl keeps them apart: those before and behind what is kept are where a PE has its part."""
    pieces: list[int] = []

    def counted(part: isl.Set, *_: object) -> None:
        pieces.append(part.n_basic_set())

    monkeypatch.setattr(filters, "find_nest", counted)
    kept = _part("(i + 3 PE_X) mod 5 = 0", kept=True)
    others = [_part(f"(i + 3 PE_X) mod 5 = {k}", kept=False) for k in range(1, 5)]
    assert filters.filter_of(_builder(), "x", [kept, *others], COMING) is None
    assert pieces
    assert max(pieces) == 1
