"""Parallel loops that are too small for a team: counted at the middle of the loops around."""

from __future__ import annotations

import pytest

from polyloom.ir.expressions import Constant
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.small_loops import without_small_loops
from polyloom.mdh.tree.nodes import Code, Compute, For, Function, Kind, LetInteger, Store, counted
from polyloom.mdh.tree.rewrite import walk
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation


def store() -> Code:
    return (Store("y", (Name("i"),), Compute(Constant(0.0, ElementType.FLOAT32))),)


def group(end: IntExpression, body: Code) -> For:
    return counted("i", end, body, kind=Kind.GROUP)


def kinds(*code: For, integers: tuple[str, ...] = ()) -> list[Kind]:
    function = Function(name="f", parameters=(), integers=integers, body=code)
    body = without_small_loops(function, 100).body
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
