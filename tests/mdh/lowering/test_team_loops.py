"""Parallel loops that are too small for a team: counted at the middle of the loops around."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polyloom.ir.expressions import Binary, BinaryOp, Constant
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.team_loops import alone_if_quick, for_a_team
from polyloom.mdh.tree.nodes import Code, Compute, For, Function, If, Kind, LetInteger, Store, counted
from polyloom.mdh.tree.rewrite import walk
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation


def store() -> Code:
    return (Store("y", (Name("i"),), Compute(Constant(0.0, ElementType.FLOAT32))),)


def group(end: IntExpression, body: Code) -> For:
    return counted("i", end, body, kind=Kind.GROUP)


def kinds(*code: For, integers: tuple[str, ...] = ()) -> list[Kind]:
    function = Function(name="f", parameters=(), integers=integers, body=code)
    body = for_a_team(function, 100).body
    return [s.kind for s in walk(body) if isinstance(s, For)]


@pytest.mark.parametrize(("points", "kind"), [(99, Kind.SEQUENTIAL), (100, Kind.GROUP)])
def test_points_of_numbers(points: int, kind: Kind) -> None:
    assert kinds(group(Number(points), store())) == [kind]


@pytest.mark.parametrize(("steps", "kind"), [(198, Kind.SEQUENTIAL), (201, Kind.GROUP)])
def test_a_loop_around_is_at_the_middle_of_its_range(steps: int, kind: Kind) -> None:
    around = counted("k", Number(steps), (group(Name("k"), store()),))
    assert kinds(around) == [Kind.SEQUENTIAL, kind]


def test_loops_inside_count() -> None:
    inner = counted("j", Number(60), store(), step=2)
    assert kinds(group(Number(3), (inner,)))[0] is Kind.SEQUENTIAL
    assert kinds(group(Number(4), (inner,)))[0] is Kind.GROUP


def test_group_loops_inside_of_one_that_is_small_are_sequential_too() -> None:
    inner = counted("j", Number(5), store(), kind=Kind.GROUP)
    assert kinds(group(Number(5), (inner,))) == [Kind.SEQUENTIAL, Kind.SEQUENTIAL]


def test_integers_with_names_are_followed() -> None:
    half = LetInteger("half", Operation("/", (Name("k"), Number(2))))
    body = (half, group(Name("half"), store()))
    assert kinds(counted("k", Number(398), body))[1] is Kind.SEQUENTIAL
    assert kinds(counted("k", Number(402), body))[1] is Kind.GROUP


def test_what_is_not_known_stays() -> None:
    assert kinds(group(Name("n"), store()), integers=("n",)) == [Kind.GROUP]


@pytest.mark.parametrize(
    ("inside", "kind"),
    [
        (Operation("min", (Number(9), Operation("+", (Name("n"), Number(-8))))), Kind.SEQUENTIAL),
        (Name("k"), Kind.GROUP),
        (Operation("+", (Name("n"), Operation("*", (Number(-1), Name("m"))))), Kind.GROUP),
        (Operation("+", (Name("m"), Operation("*", (Number(-1), Name("n"))))), Kind.GROUP),
        (Operation("min", (Name("m"), Name("n"))), Kind.GROUP),
    ],
)
def test_what_is_small_for_all_sizes_is_sequential(inside: IntExpression, kind: Kind) -> None:
    around = counted("k", Name("n"), (group(Number(3), (counted("j", inside, store()),)),))
    assert kinds(around, integers=("n", "m"))[1] is kind


def shares(*code: For) -> list[bool]:
    function = Function(name="f", parameters=(), integers=(), body=code)
    return [s.by_work for s in walk(for_a_team(function, 100).body) if isinstance(s, For)]


def test_a_triangle_is_shared_by_work_and_a_box_is_not() -> None:
    triangle = counted("j", Name("i"), store())
    box = counted("j", Number(200), store())
    assert shares(group(Number(200), (triangle,))) == [True, False]
    assert shares(group(Number(200), (box,))) == [False, False]


def test_tiles_that_stick_out_at_the_end_are_even() -> None:
    end = Operation("min", (Number(195), Operation("+", (Name("i"), Number(8)))))
    tile = counted("j", end, store(), start=Name("i"))
    assert shares(counted("i", Number(195), (tile,), kind=Kind.GROUP, step=8)) == [False, False]


def test_loops_without_a_count_are_shared_by_number() -> None:
    down = For(
        iterator="j",
        start=Name("i"),
        condition=Operation(">=", (Name("j"), Number(0))),
        step=Number(-1),
        body=store(),
    )
    assert shares(group(Number(200), (down,))) == [False, False]


def test_tiles_of_a_triangle_that_lie_on_its_diagonal_in_the_middle_count() -> None:
    """In the middle of both loops around, the innermost one is empty."""
    row = counted("j", Name("k"), store(), start=Operation("+", (Name("i"), Number(1))))
    assert shares(group(Number(40), (counted("k", Number(40), (row,)),)))[0]


def quick(*code: For, integers: tuple[str, ...] = ()) -> list[Kind]:
    function = Function(name="f", parameters=(), integers=integers, body=code)
    body = alone_if_quick(function, 100).body
    return [s.kind for s in walk(body) if isinstance(s, For) and s.kind is not Kind.VECTOR]


@pytest.mark.parametrize(("points", "kind"), [(49, Kind.SEQUENTIAL), (50, Kind.GROUP)])
def test_a_quick_call_is_one_threads(points: int, kind: Kind) -> None:
    """What all loops of a call have to do counts; a vector counts once."""
    vector = counted("lane", Number(8), store(), kind=Kind.VECTOR)
    loops = group(Number(points), (vector,)), group(Number(points), store())
    assert quick(*loops) == [kind, kind]


def test_functions_count_as_many_instructions_as_they_take() -> None:
    value = Binary(BinaryOp.DIVIDE, *[Constant(1.0, ElementType.FLOAT32)] * 2)
    assert quick(group(Number(30), (Store("y", (Name("i"),), Compute(value)),))) == [Kind.GROUP]
    assert quick(group(Number(30), store())) == [Kind.SEQUENTIAL]


def test_a_call_of_unknown_length_is_shared() -> None:
    assert quick(group(Name("n"), store()), integers=("n",)) == [Kind.GROUP]


def test_branches_on_data_take_time_but_in_vectors() -> None:
    condition = Compute(Constant(True, ElementType.BOOL))
    body = (If(condition, store()),)
    assert quick(group(Number(12), body)) == [Kind.GROUP]
    assert quick(group(Number(11), body)) == [Kind.SEQUENTIAL]
    inner = counted(
        "j",
        Number(11),
        (If(condition, (Store("y", (Name("j"),), Compute(Constant(0.0, ElementType.FLOAT32))),)),),
        kind=Kind.INDEPENDENT,
    )
    assert quick(group(Number(8), (inner,)))[0] is Kind.SEQUENTIAL
    turned = replace(inner, body=body)
    assert quick(group(Number(8), (turned,)))[0] is Kind.GROUP
