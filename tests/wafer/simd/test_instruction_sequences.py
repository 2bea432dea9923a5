"""Covers of expressions are remembered: equal questions have one answer, and others their own."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pytest

from polyloom.ir.expressions import Constant, Read, walk
from polyloom.ir.types import ElementType
from polyloom.wafer.machine.instruction_cost import Rows, Shape, dense_strides, engine_cycles
from polyloom.wafer.machine.instruction_selection import ACCUMULATOR
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.simd.instruction_sequences import select

CS2 = load_machine("cs2")
HALF = ElementType.FLOAT16
DENSE = {ACCUMULATOR: (1,), 0: (1,)}


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_zeros_of_both_signs_are_other_constants(zero: float) -> None:
    """They are equal in Python; after one of them was asked for, the other one comes out all the same."""
    work = Read(0, HALF) * Constant(-zero, HALF)
    select(work, frozenset(), Shape((8,), DENSE), CS2)
    plan = select(Read(0, HALF) * Constant(zero, HALF), frozenset(), Shape((8,), DENSE), CS2)
    (found,) = [n for s in plan.steps for o in s.operands for n in walk(o) if isinstance(n, Constant)]
    assert math.copysign(1, found.value) == math.copysign(1, zero)


def test_machines_of_one_name_have_their_own_costs() -> None:
    work, shape = Read(0, HALF) * Constant(2.0, HALF), Shape((8,), DENSE)
    slow = replace(CS2, simd_launch=CS2.simd_launch + 100)
    fast = select(work, frozenset(), shape, CS2)
    assert select(work, frozenset(), shape, slow).cycles == fast.cycles + 100
    assert select(work, frozenset(), shape, CS2) == fast


def test_dimensions_of_one_point_change_nothing() -> None:
    work = Read(ACCUMULATOR, HALF) + Read(0, HALF) * Constant(2.0, HALF)
    plain = select(work, frozenset(), Shape((4, 8), {ACCUMULATOR: (8, 1), 0: (1, 4)}), CS2)
    padded = Shape((4, 1, 8), {ACCUMULATOR: (8, 5, 1), 0: (1, 3, 4)})
    assert select(work, frozenset(), padded, CS2) == plain


@pytest.mark.parametrize("words", [1, 2])
def test_nests_with_equal_rows_take_equal_cycles(words: int) -> None:
    """Strides are told apart by what the engine does with them, whatever the size of the elements."""
    accesses = [(ACCUMULATOR, words), (0, words)]
    found: dict[Rows, set[int]] = {}
    for sizes, inner, outer in product([(4, 6), (6, 4), (24,)], range(-9, 20), (0, 6, 24, 30)):
        strides = (outer, inner)[-len(sizes) :]
        shape = Shape(sizes, {ACCUMULATOR: dense_strides(sizes), 0: strides})
        rows = shape.rows_without(frozenset())
        assert engine_cycles(rows, 4, accesses) == engine_cycles(shape, 4, accesses)
        found.setdefault(rows, set()).add(engine_cycles(shape, 4, accesses))
    assert len(found) < 3 * 29 * 4 / 2
    assert all(len(cycles) == 1 for cycles in found.values())
    assert len({min(cycles) for cycles in found.values()}) > 2
