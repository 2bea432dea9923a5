"""Products of halves for matrix units: what their trees compute, and that the verifier proves and refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from half_products import HALF, PRODUCTS, TERM, half_product, product_schedule, random_form, reasons
from homs import hom_of, matmul
from scheduled_trees import compare, tree

from polyloom.ir.expressions import Binary, BinaryOp, Constant
from polyloom.ir.host import HostProgram
from polyloom.mdh.lowering.asked import asked
from polyloom.mdh.schedule.matrix_designs import Form
from polyloom.mdh.tree.matrix.steps import step_of
from polyloom.mdh.tree.nodes import (
    Array,
    Barrier,
    Code,
    Compute,
    For,
    Function,
    If,
    Kind,
    LetInteger,
    Part,
    Space,
    Statement,
    Store,
)
from polyloom.mdh.tree.rewrite import rewritten, substituted, walk
from polyloom.mdh.tree.text import code_lines
from polyloom.mdh.tree.verify import Verdict, verify
from polyloom.polyhedra.loops.tree import Name, Number, Operation
from samples import one_in


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", one_in(5, list(PRODUCTS)))
def test_a_tree_computes_the_product_and_is_proved(name: str) -> None:
    program, matrix = PRODUCTS[name]
    for form in (Form(matrix), Form(matrix, (2, 1), (1, 2)), Form(matrix, (1, 2), (2, 1), 16, 0)):
        schedule = product_schedule(program, form)
        assert reasons(program, schedule) == ()
        compare(program, schedule, {})
        assert verify(tree(program, schedule), asked(program)) == Verdict((), ())


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("seed", range(12))
def test_sizes_and_layouts_at_random(seed: int) -> None:
    rng = Random(seed)
    steps = 16 * rng.randint(1, 4)
    turned = rng.random() < 0.5, rng.random() < 0.5, rng.random() < 0.3
    program = half_product(
        rng.randint(1, 70),
        rng.randint(1, 70),
        steps,
        turned=turned,
        batch=rng.choice((0, 0, 2)),
        bias=rng.random() < 0.3,
    )
    form = random_form(rng, (2, 1, 3) if turned[2] else (1, 2, 3), steps)
    schedule = product_schedule(program, form)
    assert reasons(program, schedule) == ()
    compare(program, schedule, {}, seed)
    assert verify(tree(program, schedule), asked(program)) == Verdict((), ())


# What is wrong


def changed(change: Callable[[Statement], Code], name: str = "rests") -> tuple[str, ...]:
    """Return what the verifier says of a product's tree with a change of each statement."""
    program, matrix = PRODUCTS[name]
    right = tree(program, product_schedule(program, Form(matrix, (2, 1), (2, 2))))
    assert verify(right, asked(program)).wrong == ()
    body = rewritten(right.body, change)
    assert body != right.body
    return verify(replace(right, body=body), asked(program)).wrong


def without_barrier(which: int) -> Callable[[Statement], Code]:
    """Return a change that leaves out a barrier: behind copies, behind products, before or behind lanes."""
    seen = iter(range(9))

    def change(statement: Statement) -> Code:
        return () if isinstance(statement, Barrier) and next(seen) == which else (statement,)

    return change


@pytest.mark.parametrize("which", range(4))
def test_a_missing_barrier_is_refused(which: int) -> None:
    assert any("no barrier is always between" in text for text in changed(without_barrier(which)))


def test_warps_that_overlap_are_refused() -> None:
    def change(statement: Statement) -> Code:
        if isinstance(statement, For) and statement.iterator == "j_item":
            body = substituted(statement.body, "j_item", Number(0))
            return (replace(statement, body=body),)
        return (statement,)

    found = changed(change)
    assert any("carried out twice" in text for text in found)
    assert any("is not carried out" in text for text in found)


def test_a_rest_without_zeros_is_refused() -> None:
    def change(statement: Statement) -> Code:
        match statement:
            case If(condition=condition, body=body, otherwise=(For(kind=Kind.VECTOR) | Store(),)) if not any(
                isinstance(s, Store) and s.instance for s in walk(body)
            ):
                return (If(condition, body),)
        return (statement,)

    found = changed(change)
    assert any("`A_copy` is loaded before it is stored" in text for text in found)


def test_a_rest_that_is_read_beside_the_end_is_refused() -> None:
    def change(statement: Statement) -> Code:
        match statement:
            case If(body=body, otherwise=(_,)) if not any(
                isinstance(s, Store) and s.instance for s in walk(body)
            ):
                return body
        return (statement,)

    assert any("where it does not exist" in text for text in changed(change))


def test_a_rest_that_is_summed_is_refused() -> None:
    def change(statement: Statement) -> Code:
        match statement:
            case If(body=(Store(instance=instance) as store,), otherwise=(Store(),)) if instance is not None:
                return (store,)
        return (statement,)

    assert any("was not asked for" in text for text in changed(change))


def test_a_rest_that_is_stored_is_refused() -> None:
    def change(statement: Statement) -> Code:
        match statement:
            case If(body=(Store(array="C") as store,), otherwise=()):
                return (store,)
        return (statement,)

    assert any("`C[" in text for text in changed(change))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda a: replace(a, part=Part.LEFT), "no blocks of 16 x 16 elements of float16"),
        (lambda a: replace(a, part=None), "no part inside"),
        (lambda a: replace(a, space=Space.REGISTER), "outside of matrix units"),
    ],
)
def test_sums_in_the_wrong_place_are_refused(change: Callable[[Array], Array], text: str) -> None:
    def other(statement: Statement) -> Code:
        is_sum = isinstance(statement, Array) and statement.part is Part.SUM
        return (change(statement),) if is_sum and isinstance(statement, Array) else (statement,)

    assert any(text in found for found in changed(other))


def test_factors_that_lie_the_other_way_are_refused() -> None:
    def change(statement: Statement) -> Code:
        if isinstance(statement, Array) and statement.part is Part.LEFT:
            return (replace(statement, part=Part.LEFT_TURNED),)
        return (statement,)

    assert any("as another part of a product than it is" in text for text in changed(change))


def test_lanes_see_nothing_of_a_unit() -> None:
    def change(statement: Statement) -> Code:
        if isinstance(statement, For) and statement.kind is Kind.MATRIX:
            return (replace(statement, kind=Kind.SEQUENTIAL),)
        return (statement,)

    assert any("used outside of its loops" in text for text in changed(change))


def test_warps_of_other_sizes_are_refused() -> None:
    def change(statement: Statement) -> Code:
        if isinstance(statement, For) and statement.iterator == "lane":
            condition = Operation("<", (Name("lane"), Number(16)))
            return (replace(statement, condition=condition),)
        return (statement,)

    assert any("not 32 lanes" in text for text in changed(change))


def test_half_a_block_is_refused() -> None:
    def change(statement: Statement) -> Code:
        if isinstance(statement, For) and statement.kind is Kind.MATRIX and statement.iterator == "row":
            return (replace(statement, condition=Operation("<", (Name("row"), Number(8)))),)
        return (statement,)

    assert any("is not from 0 to 16" in text for text in changed(change))


# Legality


LEGAL = half_product(64, 64, 64)
FORM = Form((1, 2, 3), (2, 2), (2, 1), 32)


def of(program: HostProgram, form: Form = FORM, **changes: object) -> str:
    return "; ".join(reasons(program, replace(product_schedule(program, form), **changes)))  # type: ignore[arg-type]


def test_a_schedule_is_legal() -> None:
    assert of(LEGAL) == ""


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"matrix": (1, 2)}, "rows, columns and steps"),
        ({"matrix": (1, 1, 3)}, "rows, columns and steps"),
        ({"matrix": (1, 2, 9)}, "rows, columns and steps"),
        ({"matrix": (2, 1, 0)}, "such rows, columns and steps"),
        ({"private": (1, 24, 32, 1)}, "whole blocks of 16"),
        ({"group": (1, 32, 32, 0)}, "points of its warps"),
        ({"private": (1, 144, 32, 1), "group": (1, 288, 32, 0)}, "at most 8 blocks"),
        ({"private": (1, 128, 64, 1), "group": (1, 256, 64, 0)}, "at most 16 blocks"),
        ({"local": (0, 0, 0, 24)}, "whole blocks of 16 steps"),
        ({"local": (0, 0, 0, 48)}, "which divide all 64 steps"),
        ({"local": (0, 64, 0, 32)}, "cache tiles are of steps alone"),
        ({"group": (0, 64, 32, 0)}, "one point of each dimension"),
        ({"group": (1, 64, 32, 32)}, "one point of each dimension"),
        ({"items": (1, 32, 1, 1), "group": (1, 1024, 32, 0)}, "bytes of local memory"),
        ({"items": (1, 33, 1, 1), "group": (1, 1056, 32, 0)}, "1056 work-items"),
        ({"vector": 2, "width": 4}, "no vectors"),
        ({"follow": 0}, "follows no input"),
        ({"streaming": True}, "bypass caches"),
        ({"stages": 2}, "one stage"),
        ({"strided": (False, True, False, False)}, "lie together"),
    ],
)
def test_illegal_schedules(change: dict[str, object], text: str) -> None:
    assert text in of(LEGAL, **change)


def test_copies_are_as_a_unit_needs_them() -> None:
    schedule = product_schedule(LEGAL, FORM)
    for caching, text in (
        (replace(schedule.inputs[0], padding=4), "multiples of 8"),
        (replace(schedule.inputs[0], axes=(1, 0)), "as they are laid out"),
        (replace(schedule.inputs[0], panel=True), "as they are laid out"),
    ):
        assert text in of(LEGAL, inputs=(caching, schedule.inputs[1]))
    biased = half_product(32, 32, 32, bias=True)
    copied = product_schedule(biased, FORM).inputs
    assert "only factors" in of(biased, inputs=(copied[0], copied[1], copied[0]))


def test_a_device_without_units_and_a_strict_program_have_none() -> None:
    from half_products import DEVICE

    from polyloom.mdh.schedule.legality import problems
    from polyloom.mdh.schedule.tiling import TileFacts

    facts = TileFacts(hom_of(LEGAL), product_schedule(LEGAL, FORM))
    assert problems(facts, LEGAL.by_name, DEVICE) == ()
    assert DEVICE.rounding(strict=False) is DEVICE
    for other in (DEVICE.rounding(strict=True), replace(DEVICE, platform="NVIDIA CUDA")):
        assert "no matrix units" in "; ".join(problems(facts, LEGAL.by_name, other))


NOT_PRODUCTS = {
    "of floats": matmul(32, 32, 32),
    "summed in halves": matmul(32, 32, 32, HALF),
    "steps that are no multiple of 16": half_product(32, 32, 24),
    "more than a product": half_product(32, 32, 32, term=Binary(BinaryOp.ADD, TERM, Constant(1, TERM.type))),
    "of a square": half_product(32, 32, 32, term=Binary(BinaryOp.MULTIPLY, TERM.left, TERM.left)),
}


@pytest.mark.parametrize("name", NOT_PRODUCTS)
def test_others_have_no_units(name: str) -> None:
    program = NOT_PRODUCTS[name]
    count = len(hom_of(program).extents)
    assert of(program, Form((count - 3, count - 2, count - 1)))


# Forms


def steps_of(function: Function) -> list[str]:
    arrays: dict[str, Array | None] = {s.name: s for s in walk(function.body) if isinstance(s, Array)}
    found, inside = [], set[int]()
    for statement in walk(function.body):
        if isinstance(statement, For) and statement.kind is Kind.MATRIX and id(statement) not in inside:
            inside |= {id(s) for s in walk(statement.body)}
            found.append(type(step_of(statement, arrays)).__name__)
    return found


def test_a_tree_has_the_steps_of_a_unit() -> None:
    program, matrix = PRODUCTS["whole"]
    found = steps_of(tree(program, product_schedule(program, Form(matrix))))
    assert found == ["Fill", "Fetch", "Fetch", "Multiply", "Leave"]


def test_a_tree_reads_well() -> None:
    program, matrix = PRODUCTS["rests"]
    lines = list(code_lines(tree(program, product_schedule(program, Form(matrix))).body))
    assert any("float32 total_blocks[1, 1, 16, 16] in a matrix unit, sums (i, j)" in line for line in lines)
    assert any("matrix for step from 0 to 16:" in line for line in lines)


def test_numbers_are_not_named_twice() -> None:
    program, matrix = PRODUCTS["convolution"]
    function = tree(program, product_schedule(program, Form(matrix)))
    assert not any(isinstance(s, LetInteger) and isinstance(s.value, Compute) for s in walk(function.body))
