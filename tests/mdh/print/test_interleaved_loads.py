"""Vectors whose elements take turns in memory: which are loaded together, and what they hold."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from test_c_source import I32, L, assert_same, data, kernel, lanes, read

from polyloom.ir.types import ElementType
from polyloom.mdh.print.c_source import c_source
from polyloom.mdh.tree.nodes import Array, Code, Function, Space, Store
from polyloom.polyhedra.loops.tree import IntExpression, Number, sum_of

COLUMNS = 256


def place(step: int, offset: int) -> IntExpression:
    return sum_of([(step, L), (1, Number(5 + offset))])


def register(number: int, kind: ElementType, width: int) -> Array:
    return Array(name=f"v{number}", type=kind, shape=(Number(width),), space=Space.REGISTER, lanes=True)


def loads(
    step: int, offsets: Sequence[int], kind: ElementType, width: int, *, between: Code = (), one: bool = False
) -> Function:
    """Return a function that loads every ``step``-th element of ``A`` from each offset on into registers.

    What they hold is stored after that. ``between``: statements before the last load; ``one``: all are in
    one loop over lanes.
    """
    count = len(offsets)
    arrays = [register(k, kind, width) for k in range(count)]
    filled = [
        Store(f"v{k}", (L,), read("A", Number(1), place(step, at), kind=kind)) for k, at in enumerate(offsets)
    ]
    stored = [Store("B", (Number(k), L), read(f"v{k}", L, kind=kind)) for k in range(count)]
    if one:
        inside = [lanes(*filled[:-1], *between, filled[-1], width=width)]
    else:
        inside = [lanes(s, width=width) for s in (*filled[:-1], *between, filled[-1])]
    return kernel(*arrays, *inside, lanes(*stored, width=width), kind=kind, columns=COLUMNS)


def together(function: Function) -> bool:
    text = c_source(function)
    calls = [text.count(f"load{step}_") for step in (2, 3, 4)]
    assert sorted(calls)[:2] == [0, 0] and max(calls) in (0, 2), "its definition, and one call"
    return max(calls) == 2


@pytest.mark.parametrize("kind", [ElementType.FLOAT32, ElementType.FLOAT64, I32, ElementType.UINT8], ids=str)
@pytest.mark.parametrize(("step", "width"), [(2, 4), (2, 16), (3, 4), (3, 16), (4, 4), (4, 8)])
@pytest.mark.parametrize("one", [False, True])
def test_what_is_loaded_together(kind: ElementType, step: int, width: int, one: bool) -> None:
    for offsets in (range(step), [step - 1, 0], [*range(step), 0], [*reversed(range(step))]):
        function = loads(step, offsets, kind, width, one=one)
        assert together(function)
        assert_same(function, data(kind, columns=COLUMNS))


@pytest.mark.parametrize(("step", "offsets"), [(3, [0, 1]), (4, [1, 2, 3]), (2, [0, 4]), (5, range(5))])
def test_what_is_loaded_one_by_one(step: int, offsets: Sequence[int]) -> None:
    """Neither what nobody asks for, nor records that lie apart."""
    function = loads(step, offsets, I32, 8)
    assert not together(function)
    assert_same(function, data(columns=COLUMNS))


@pytest.mark.parametrize("one", [False, True])
def test_nothing_is_loaded_before_it_is_stored(one: bool) -> None:
    """A store of what is loaded after it; one of another array, which lies apart."""
    changed = Store("A", (Number(1), place(3, 2)), read("v0", L))
    function = loads(3, range(3), I32, 8, between=(changed,), one=one)
    assert not together(function)
    assert_same(function, data(columns=COLUMNS))
    other = Store("B", (Number(1), place(3, 2)), read("v0", L))
    function = loads(3, range(3), I32, 8, between=(other,), one=one)
    assert together(function)
    assert_same(function, data(columns=COLUMNS))


def test_compilers_without_shuffles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyloom.mdh.print.library.shuffles.SHUFFLE", "__builtin_no_such_shuffle")
    for step in (2, 3, 4):
        assert_same(loads(step, range(step), I32, 8), data(columns=COLUMNS))
