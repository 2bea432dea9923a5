"""Copies in two stages as kernel trees: the same as the md_homs, proved right; mutants refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from homs import ZOO, at_most, buffers_of, device, gemm, hom_of, matmul
from hypothesis import given
from hypothesis import strategies as st
from scheduled_trees import compare, copy, legal, tree, under
from test_items import mutants, refused

from md_homs import Case, md_homs
from polyloom.ir.host import HostProgram
from polyloom.mdh.lowering.asked import asked
from polyloom.mdh.schedule.legality import LARGEST_FETCH
from polyloom.mdh.schedule.legality import problems as problems_of
from polyloom.mdh.schedule.schedules import Caching, Memory, Schedule
from polyloom.mdh.schedule.tiling import TileFacts, has_tiles
from polyloom.mdh.tree.nodes import Barrier, Code, For, Statement, Store
from polyloom.mdh.tree.ranges import plus
from polyloom.mdh.tree.registers import final
from polyloom.mdh.tree.rewrite import with_places
from polyloom.mdh.tree.text import function_text
from polyloom.mdh.tree.verify import Verdict, problems, verify
from polyloom.polyhedra.loops.tree import Name, Number, Operation
from random_tests import tried
from samples import LATER, first_of_each, one_in

FOLDER = Path(__file__).parent / "golden"
TRIANGLE = gemm(13, 18, 21, guard=at_most("k", "i"), written=at_most("j", "i"))
TILES = {"group": (16, 16, 0), "items": (4, 4, 1), "local": (0, 0, 8), "private": (4, 4, 2), "stages": 2}
CASES: dict[str, tuple[HostProgram, Schedule]] = {
    "whole": (
        program := matmul(8, 8, 24),
        under(
            program,
            group=(4, 4, 0),
            items=(2, 2, 1),
            local=(0, 0, 8),
            private=(2, 2, 1),
            inputs=(copy(), copy()),
            stages=2,
        ),
    ),
    "rests": (program := matmul(33, 40, 21), under(program, **TILES, inputs=(copy(1, 0), copy(panel=True)))),
    "one": (program := matmul(17, 12, 21), under(program, **TILES, inputs=(copy(), Caching()))),
    "vectors": (
        program := matmul(16, 32, 24),
        under(
            program,
            group=(16, 32, 0),
            items=(4, 4, 1),
            local=(16, 32, 8),
            private=(4, 2, 1),
            vector=1,
            width=4,
            inputs=(copy(), copy()),
            stages=2,
        ),
    ),
    "waits": (
        program := matmul(17, 37, 24),
        under(
            program,
            group=(8, 0, 0),
            items=(2, 4, 1),
            local=(0, 0, 8),
            private=(2, 2, 2),
            inputs=(copy(), copy()),
            stages=2,
        ),
    ),
    "triangle": (
        TRIANGLE,
        under(
            TRIANGLE,
            group=(4, 6, 0),
            items=(2, 3, 1),
            local=(0, 0, 4),
            private=(2, 2, 2),
            inputs=(Caching(), copy(), Caching(), Caching()),
            stages=2,
        ),
    ),
    "shared": (
        program := matmul(7, 9, 22),
        under(
            program,
            group=(6, 0, 0),
            items=(3, 1, 4),
            local=(0, 0, 8),
            private=(2, 9, 1),
            inputs=(copy(), copy()),
            stages=2,
        ),
    ),
}


def test_text(golden: Callable[[Path, str], None]) -> None:
    golden(FOLDER / "stages_whole.tree", function_text(tree(*CASES["whole"])))


@pytest.mark.parametrize("name", one_in(2, CASES))
def test_the_same_as_the_md_hom(name: str) -> None:
    program, schedule = CASES[name]
    assert not problems_of(TileFacts(hom_of(program), schedule), buffers_of(program), device().model)
    for seed in range(2):
        compare(program, schedule, {}, seed)


@pytest.mark.parametrize("name", one_in(3, CASES))
def test_the_verifier_proves_that_nothing_is_lost(name: str) -> None:
    assert verify(tree(*CASES[name]), asked(CASES[name][0])) == Verdict((), ())


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_verifier_proves_it_of_what_is_printed(name: str) -> None:
    assert problems(final(tree(*CASES[name])), asked(CASES[name][0])) == ()


# Mutants


@pytest.mark.parametrize("name", ["whole", pytest.param("shared", marks=LATER)])
def test_a_missing_barrier_is_refused(name: str) -> None:
    program, schedule = CASES[name]
    function = tree(program, schedule)
    found = [*mutants(function.body, lambda s: () if isinstance(s, Barrier) else None)]
    kept = [body for body in found if not refused(program, function, body)]
    assert len(found) >= 2 and len(kept) == (name == "shared")  # behind the last combination none is needed


@pytest.mark.parametrize("change", ["stored", pytest.param("loaded", marks=LATER)])
def test_a_wrong_stage_is_refused(change: str) -> None:
    """The next tile over the one that is worked on, and work on the one that is being filled."""
    program, schedule = CASES["whole"]
    function = tree(program, schedule)

    def of_other(statement: Statement) -> Code | None:
        if not isinstance(statement, Store):
            return None
        is_filled = statement.array.endswith("_copy") and isinstance(statement.subscripts[0], Operation)
        if change == "stored" and is_filled:
            return (
                replace(statement, subscripts=(_other(statement.subscripts[0]), *statement.subscripts[1:])),
            )
        found = with_places(
            (statement,),
            lambda p: (
                replace(p, subscripts=(_other(p.subscripts[0]), *p.subscripts[1:]))
                if p.array.endswith("_copy") and not is_filled and isinstance(p.subscripts[0], Operation)
                else p
            ),
        )
        return found if change == "loaded" and found != (statement,) else None

    found = [*mutants(function.body, of_other)]
    assert found and all(refused(program, function, body) for body in found)


def _other(stage: object) -> Operation:
    assert isinstance(stage, Operation)
    number, stages = stage.operands
    return Operation("%", (plus(number, 1), stages))


def test_a_tile_that_is_never_loaded_is_refused() -> None:
    """Two tiles ahead: the one in between is not there."""
    program, schedule = CASES["whole"]
    function = tree(program, schedule)

    def shorter(statement: Statement) -> Code | None:
        if isinstance(statement, For) and statement.iterator.endswith("_tile"):
            return (replace(statement, condition=Operation("<", (Name(statement.iterator), Number(16)))),)
        return None

    found = [*mutants(function.body, shorter)]
    assert found and all(refused(program, function, body) for body in found)


# What is legal


def said(program: HostProgram, schedule: Schedule) -> str:
    return " ".join(problems_of(TileFacts(hom_of(program), schedule), buffers_of(program), device().model))


def test_what_has_no_stages() -> None:
    program, schedule = CASES["whole"]
    assert "one stage or two" in said(program, replace(schedule, stages=3))
    nothing = "change from tile to tile"
    assert nothing in said(program, replace(schedule, inputs=(Caching(), Caching())))
    assert nothing in said(program, replace(schedule, items=(1, 1, 1)))
    assert nothing in said(program, replace(schedule, local=(0, 0, 0)))
    large = matmul(256, 256, 256)
    many = under(
        large,
        group=(64, 64, 0),
        items=(4, 4, 1),
        local=(0, 0, 16),
        private=(16, 8, 1),
        inputs=(copy(), copy()),
        stages=2,
    )
    assert f"{16 * 128 // 16} elements" in said(large, many) and LARGEST_FETCH < 128


def test_stages_take_local_memory() -> None:
    program = matmul(64, 64, 4096)
    limit = device().model.local_memory
    deep = limit // (64 * 4 * 2) // 8 * 8
    schedule = under(
        program,
        group=(64, 64, 0),
        items=(16, 16, 1),
        local=(0, 0, deep),
        private=(4, 4, 1),
        inputs=(copy(), copy()),
    )
    assert "bytes of local memory" not in said(program, schedule)
    assert "bytes of local memory" in said(program, replace(schedule, stages=2))


# Wild schedules


def twofold(schedule: Schedule) -> Schedule:
    copies = any(c.memory is Memory.LOCAL for c in schedule.inputs)
    return replace(schedule, streaming=False, stages=2 if copies else 1)


def wild(program: HostProgram, seed: int) -> Schedule | None:
    """Return a legal schedule with two stages."""
    return legal(program, seed, device().model, twofold, lambda facts: facts.staged)


@pytest.mark.parametrize(("name", "seed"), first_of_each(product(ZOO, range(2)), lambda case: case[0]))
def test_wild_schedules(name: str, seed: int) -> None:
    program, parameters = ZOO[name]
    if (schedule := wild(program, seed)) is not None:
        compare(program, schedule, parameters, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_many_wild_schedules(name: str) -> None:
    program, parameters = ZOO[name]
    for seed in range(2, 40):
        if (schedule := wild(program, seed)) is not None:
            compare(program, schedule, parameters, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_nothing_wrong_is_found_in_wild_schedules(name: str) -> None:
    program, _ = ZOO[name]
    for seed in range(4):
        if (schedule := wild(program, seed)) is not None:
            assert problems(tree(program, schedule), asked(program)) == ()


@pytest.mark.slow
@tried(300)
@given(md_homs(scans=False, extras=True), st.integers(0, 2**32))
def test_many_random_md_homs(case: Case, seed: int) -> None:
    if has_tiles(case.node):
        program = replace(case.program, body=(case.node,))
        if (schedule := wild(program, seed)) is not None:
            compare(program, schedule, {}, seed)
