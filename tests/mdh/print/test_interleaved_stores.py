"""Vectors whose elements take turns in memory: which stores are made together, and what they leave."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from test_c_source import I32, L, assert_same, data, kernel, lanes, read

from polyloom.ir.types import ElementType
from polyloom.mdh.print.c_source import c_source
from polyloom.mdh.tree.nodes import Array, Function, Space, Store
from polyloom.polyhedra.loops.tree import IntExpression, Number, sum_of

COLUMNS = 256


def turns(
    step: int, order: Any, kind: ElementType, width: int, *, gap: int = 0, own: bool = False
) -> Function:
    """Return a function that stores vectors from registers into every ``step``-th element of ``B``.

    ``gap``: how far behind its place the last one lies. ``own``: values are read from memory.
    """
    arrays = [
        Array(name=f"v{k}", type=kind, shape=(Number(width),), space=Space.REGISTER, lanes=True)
        for k in range(step)
    ]
    filled = [Store(f"v{k}", (L,), read("A", Number(k), L, kind=kind)) for k in range(step)]
    offsets = [k + gap * (k == step - 1) for k in range(step)]
    values = [read("A", Number(k), L, kind=kind) if own else read(f"v{k}", L, kind=kind) for k in range(step)]
    stored = [Store("B", (Number(1), place(step, offsets[k])), values[k]) for k in order]
    return kernel(
        *arrays, lanes(*filled, width=width), lanes(*stored, width=width), kind=kind, columns=COLUMNS
    )


def place(step: int, offset: int) -> IntExpression:
    return sum_of([(step, L), (1, Number(5 + offset))])


@pytest.mark.parametrize("kind", [ElementType.FLOAT32, ElementType.FLOAT64, I32, ElementType.UINT8], ids=str)
@pytest.mark.parametrize(("step", "width"), [(2, 4), (2, 16), (3, 8), (4, 4), (4, 16)])
def test_what_is_stored_together(kind: ElementType, step: int, width: int) -> None:
    for order in [*permutations(range(step))][::3]:
        function = turns(step, order, kind, width)
        assert c_source(function).count(f"store{step}_") == 2, "its definition, and one call"
        assert_same(function, data(kind, columns=COLUMNS))


@pytest.mark.parametrize("change", [{"gap": 3}, {"own": True}], ids=str)
def test_what_is_stored_one_by_one(change: dict[str, Any]) -> None:
    """Elements between theirs stay as they are; what is not in a register yet might be stored by another."""
    function = turns(3, range(3), I32, 8, **change)
    assert "store3_" not in c_source(function)
    assert_same(function, data(columns=COLUMNS))


def test_compilers_without_shuffles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyloom.mdh.print.library.shuffles.SHUFFLE", "__builtin_no_such_shuffle")
    for step in (2, 3, 4):
        assert_same(
            turns(step, range(step), ElementType.FLOAT32, 8), data(ElementType.FLOAT32, columns=COLUMNS)
        )
