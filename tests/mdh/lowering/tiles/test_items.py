"""Groups of several work-items as kernel trees: the same as the md_homs, proved right; mutants refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from homs import (
    F32,
    ZOO,
    at_most,
    best_record,
    buffers_of,
    device,
    dot,
    gemm,
    hom_of,
    matmul,
    row_maximum,
)
from hypothesis import given
from hypothesis import strategies as st
from scheduled_trees import compare, copy, legal, tree, under

from md_homs import Case, md_homs
from polyloom.ir.host import HostProgram, MdHom
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.asked import asked
from polyloom.mdh.schedule.addresses import Buffers
from polyloom.mdh.schedule.legality import problems as problems_of
from polyloom.mdh.schedule.schedules import Caching, Schedule, plain_schedule
from polyloom.mdh.schedule.tiling import TileFacts, has_tiles
from polyloom.mdh.tree.nodes import Array, Barrier, Code, For, Function, If, Kind, Space, Statement
from polyloom.mdh.tree.ranges import plus
from polyloom.mdh.tree.registers import final
from polyloom.mdh.tree.rewrite import blocks, walk, with_blocks
from polyloom.mdh.tree.text import function_text
from polyloom.mdh.tree.verify import Verdict, problems, verify
from polyloom.polyhedra.loops.tree import Number, Operation
from random_tests import tried
from samples import LATER, first_of_each, one_in

FOLDER = Path(__file__).parent / "golden"
TRIANGLE = gemm(13, 18, 21, guard=at_most("k", "i"), written=at_most("j", "i"))
TILES = {"group": (16, 16, 0), "items": (4, 4, 1), "local": (0, 0, 8), "private": (4, 4, 2)}
CASES: dict[str, tuple[HostProgram, Schedule]] = {
    "rests": (
        program := matmul(17, 37, 24),
        under(program, group=(8, 16, 0), items=(2, 4, 1), private=(2, 2, 2)),
    ),
    "copies": (program := matmul(33, 40, 24), under(program, **TILES, inputs=(copy(1, 0), copy(panel=True)))),
    "strided": (
        program := matmul(33, 40, 24),
        under(program, **TILES, strided=(True, True, False), inputs=(copy(), copy())),
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
        ),
    ),
    "triangle": (TRIANGLE, under(TRIANGLE, group=(8, 0, 0), items=(2, 4, 1), private=(2, 2, 1))),
    "triangle_of_copies": (
        TRIANGLE,
        under(
            TRIANGLE,
            group=(4, 6, 0),
            items=(2, 3, 1),
            local=(0, 0, 4),
            private=(2, 2, 2),
            inputs=(Caching(), copy(), Caching(), Caching()),
        ),
    ),
    "dot": (program := dot(1001), under(program, group=(256,), items=(8,), private=(2,))),
    "row_maximum": (
        program := row_maximum(7, 45, ElementType.INT32, None),
        under(program, group=(4, 0), items=(2, 4), private=(1, 2)),
    ),
    "best_record": (
        program := best_record(9, 41, commutative=False),
        under(program, group=(6, 0), items=(1, 3), private=(2, 2)),
    ),
    "copies_shared": (
        program := matmul(7, 9, 22),
        under(
            program,
            group=(6, 0, 0),
            items=(3, 1, 4),
            local=(0, 0, 8),
            private=(2, 9, 1),
            inputs=(copy(), copy()),
        ),
    ),
}
CHOSEN = {"row_maximum", "best_record"}
"""Where data tells which term is of use: flags, and comparisons."""


@pytest.mark.parametrize("name", ["copies", "dot", "triangle_of_copies"])
def test_text(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(FOLDER / f"items_{name}.tree", function_text(tree(*CASES[name])))


@pytest.mark.parametrize("name", one_in(2, CASES))
def test_the_same_as_the_md_hom(name: str) -> None:
    program, schedule = CASES[name]
    assert not problems_of(TileFacts(hom_of(program), schedule), buffers_of(program), device().model)
    for seed in range(3):
        compare(program, schedule, {}, seed)


@pytest.mark.parametrize("name", one_in(2, CASES, start=1))
def test_the_verifier_proves_that_nothing_is_lost(name: str) -> None:
    verdict = verify(tree(*CASES[name]), asked(CASES[name][0]))
    assert verdict == Verdict((), ()) or (CHOSEN.issuperset([name]) and not verdict.wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_verifier_proves_it_of_what_is_printed(name: str) -> None:
    assert problems(final(tree(*CASES[name])), asked(CASES[name][0])) == ()


def test_a_kernel_has_group_loops_then_arrays_then_item_loops() -> None:
    for program, schedule in CASES.values():
        for kernel in tree(program, schedule).body:
            if isinstance(kernel, For) and any(_is_loop(s, Kind.ITEM) for s in walk((kernel,))):
                code: Code = (kernel,)
                while isinstance(loop := code[0], For) and loop.kind is Kind.GROUP:
                    code = loop.body
                assert all(isinstance(s, Array) and s.space is Space.GROUP for s in code[:-1])
                assert _is_loop(code[-1], Kind.ITEM)


def _is_loop(statement: Statement, kind: Kind) -> bool:
    return isinstance(statement, For) and statement.kind is kind


# Mutants


def mutants(code: Code, change: Callable[[Statement], Code | None]) -> Iterator[Code]:
    """Yield code with one statement changed, for each statement that ``change`` changes."""
    for k, statement in enumerate(code):
        new = change(statement)
        if new is not None:
            yield (*code[:k], *new, *code[k + 1 :])
        for at, block in enumerate(blocks(statement)):
            for other in mutants(block, change):
                turns = iter([other if n == at else b for n, b in enumerate(blocks(statement))])
                changed = with_blocks(statement, lambda _, turns=turns: next(turns))  # type: ignore[misc]
                yield (*code[:k], changed, *code[k + 1 :])


def refused(program: HostProgram, function: Function, body: Code) -> bool:
    return bool(problems(replace(function, body=body), asked(program)))


LOOPS_WITH_BARRIERS = [
    ("copies", 2),
    pytest.param("waits", 2, marks=LATER),
    ("dot", 4),
    pytest.param("row_maximum", 3, marks=LATER),
]


@pytest.mark.parametrize(("name", "needed"), LOOPS_WITH_BARRIERS)
def test_a_missing_barrier_is_refused(name: str, needed: int) -> None:
    """All barriers of a loop that is carried out again are needed; the last one of ``dot`` is not."""
    program, schedule = CASES[name]
    function = tree(program, schedule)
    found = [*mutants(function.body, lambda s: () if isinstance(s, Barrier) else None)]
    kept = [body for body in found if not refused(program, function, body)]
    assert len(found) == needed and len(kept) == (name == "dot")


@pytest.mark.parametrize("name", one_in(3, ["copies", "rests", "triangle"]))
def test_overlapping_tiles_are_refused(name: str) -> None:
    program, schedule = CASES[name]
    function = tree(program, schedule)

    def closer(statement: Statement) -> Code | None:
        if isinstance(statement, For) and isinstance(statement.step, Number) and statement.step.value > 2:
            return (replace(statement, step=Number(statement.step.value - 1)),)
        return None

    found = [*mutants(function.body, closer)]
    assert found and all(refused(program, function, body) for body in found)


@pytest.mark.parametrize("name", one_in(3, ["triangle", "rests", "strided"]))
def test_a_wrong_rest_is_refused(name: str) -> None:
    """A whole tile where one point is not there, and a point that is there and is left out."""
    program, schedule = CASES[name]
    function = tree(program, schedule)

    def off_by_one(statement: Statement) -> Code | None:
        match statement:
            case If(condition=Operation(operator="<" | "<=" as operator, operands=(a, b))):
                off = Operation(operator, (a, plus(b, 1 if statement.otherwise else -1)))
                return (replace(statement, condition=off),)
            case _:
                return None

    found = [*mutants(function.body, off_by_one)]
    assert found and all(refused(program, function, body) for body in found)


@pytest.mark.parametrize("name", ["dot", "copies_shared"])
def test_a_total_that_nobody_takes_up_is_refused(name: str) -> None:
    program, schedule = CASES[name]
    function = tree(program, schedule)

    def nothing(statement: Statement) -> Code | None:
        match statement:
            case If(condition=Operation(operator="==", operands=(Operation(operator="%"), _))):
                return ()
            case _:
                return None

    found = [*mutants(function.body, nothing)]
    assert found and all(refused(program, function, body) for body in found)


# Wild schedules


def items(schedule: Schedule) -> Schedule:
    return replace(schedule, streaming=False)


def wild(program: HostProgram, seed: int) -> Schedule | None:
    """Return a legal schedule of several work-items."""
    return legal(program, seed, device().model, items, lambda facts: facts.total_items > 1)


@pytest.mark.parametrize(("name", "seed"), first_of_each(product(ZOO, range(3)), lambda case: case[0]))
def test_wild_schedules(name: str, seed: int) -> None:
    program, parameters = ZOO[name]
    schedule = wild(program, seed)
    assert schedule is not None
    compare(program, schedule, parameters, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_many_wild_schedules(name: str) -> None:
    program, parameters = ZOO[name]
    for seed in range(3, 60):
        if (schedule := wild(program, seed)) is not None:
            compare(program, schedule, parameters, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_nothing_wrong_is_found_in_wild_schedules(name: str) -> None:
    program, _ = ZOO[name]
    for seed in range(4):
        if (schedule := wild(program, seed)) is not None:
            assert problems(tree(program, schedule), asked(program)) == ()


def check_md_hom(case: Case, seed: int) -> None:
    if has_tiles(case.node):
        program = replace(case.program, body=(case.node,))
        if (schedule := wild(program, seed)) is not None:
            compare(program, schedule, {}, seed)


@tried(25)
@given(md_homs(scans=False, extras=True), st.integers(0, 2**32))
def test_random_md_homs(case: Case, seed: int) -> None:
    check_md_hom(case, seed)


@pytest.mark.slow
@tried(500)
@given(md_homs(scans=False, extras=True), st.integers(0, 2**32))
def test_many_random_md_homs(case: Case, seed: int) -> None:
    check_md_hom(case, seed)


def test_no_neutral_element_is_needed_by_items_that_have_no_points() -> None:
    program = row_maximum(3, 2, F32, None)
    compare(program, under(program, items=(1, 4)), {})


def test_items_combine_what_groups_leave() -> None:
    program = matmul(9, 17, 64)

    def second(hom: MdHom, buffers: Buffers) -> Schedule:
        return replace(plain_schedule(3, len(hom.inputs)), group=(4, 8, 0), items=(2, 4, 2))

    schedule = under(program, group=(0, 8, 16), items=(1, 4, 2))
    compare(program, schedule, {}, second=second)
    assert problems(tree(program, schedule, second), asked(program)) == ()
