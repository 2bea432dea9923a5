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

    def nothing(_: object, __: object, context: isl.Set) -> None:
        contexts.append(context)

    monkeypatch.setattr(filters, "_counts", nothing)
    assert filters.filter_of(_builder(), "x", parts) is None
    return contexts


def test_what_is_no_filter_on_one_pe_is_not_asked_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [_part("i mod 2 = 0", kept=True), _part("i mod 2 = 1", kept=False)]
    (context,) = _asked(monkeypatch, parts)
    assert context.is_strict_subset(isl.Set(ROLE))
    assert not context.is_empty()


def test_one_run_of_each_pe_has_a_filter() -> None:
    mine = "4 PE_X <= i < 4 PE_X + 4"
    parts = [_part(mine, kept=True), _part("i < 4 PE_X", kept=False), _part("i >= 4 PE_X + 4", kept=False)]
    found = filters.filter_of(_builder(), "x", parts)
    assert found is not None
    assert (found.keep, found.period) == (Number(4), Number(32))


def test_holes_have_no_filter_on_any_pe() -> None:
    parts = [_part("i mod 2 = 0", kept=True), _part("i mod 2 = 1", kept=False)]
    assert filters.filter_of(_builder(), "x", parts) is None
