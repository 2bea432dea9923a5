"""Each row of the table of scalar functions holds together: one field is checked against another."""

from __future__ import annotations

import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest

from polyloom.ir.expressions import BinaryOp, UnaryOp
from polyloom.ir.scalar_functions.approximate import Approximate
from polyloom.ir.scalar_functions.function import (
    BINARY,
    UNARY,
    BinaryFunction,
    Notation,
    ScalarFunction,
    UnaryFunction,
    add_function,
)
from polyloom.ir.types import ElementType

ALL: list[ScalarFunction[Any]] = [*UNARY.values(), *BINARY.values()]
F64 = ElementType.FLOAT64


@pytest.mark.parametrize("row", ALL, ids=repr)
def test_a_row_without_one_of_its_fields_cannot_be_made(row: ScalarFunction[Any]) -> None:
    given = {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}
    assert type(row)(**given) is not row
    for left_out in given:
        with pytest.raises(TypeError):
            type(row)(**{name: value for name, value in given.items() if name != left_out})


@pytest.mark.parametrize("row", ALL, ids=repr)
def test_a_row_has_operands_and_is_the_same_in_every_process(row: ScalarFunction[Any]) -> None:
    assert row.floats or row.integers or row.truths
    assert pickle.loads(pickle.dumps(row)) is row
    assert row.rounding.exact == (row.rounding.ulps(F64) == 0)


def test_names_in_c_mean_one_function() -> None:
    names = [name for row in ALL for name in row.c_names]
    assert len(names) == len(set(names))


def test_lair_calls_only_what_it_writes_as_calls() -> None:
    assert all(row.notation is Notation.CALL for row in ALL if row.in_lair)


@pytest.mark.parametrize("row", UNARY.values(), ids=repr)
def test_known_values_of_one_argument_are_what_numpy_has(row: UnaryFunction) -> None:
    for kind in (F64, ElementType.INT32):
        for value in (0, 1, -3) if row.takes(kind) else ():
            known = row.known(value)
            if known is not None:
                assert row.form(kind).numpy(np.array(value, kind.dtype)) == known


@pytest.mark.parametrize("row", BINARY.values(), ids=repr)
def test_known_values_of_two_arguments_are_what_numpy_has(row: BinaryFunction) -> None:
    for kind in (F64, ElementType.INT32):
        for a in (0, 1, -3, 7) if row.takes(kind) else ():
            for b in (0, 2, -5):
                known = row.known(a, b)
                if known is not None:
                    assert row.form(kind).numpy(np.array(a, kind.dtype), np.array(b, kind.dtype)) == known


@pytest.mark.parametrize("row", [r for r in UNARY.values() if r.floats], ids=repr)
def test_results_of_made_up_integers_are_within_the_size_that_the_row_gives(row: UnaryFunction) -> None:
    """Near a pole the tangent has no bound, and 2 has no arcsine."""
    values = np.array([1.0, 2.0] if row not in (UnaryOp.TAN, UnaryOp.ASIN, UnaryOp.ACOS) else [0.5])
    sizes = np.array([row.size(max(value, 1.0)) for value in values])
    assert np.all(np.abs(row.form(F64).numpy(values)) <= sizes * (1 + 1e-12) + (row is UnaryOp.ACOS))


@pytest.mark.parametrize("row", [r for r in UNARY.values() if r.floats], ids=repr)
def test_errors_of_one_operand_cover_what_it_may_be(row: UnaryFunction) -> None:
    form = row.form(F64)
    values = np.array([0.25, 0.7])
    error = np.full(values.shape, 1e-3)
    carried = form.error(form.numpy, Approximate(values, error), error)
    assert carried is not None
    for moved in np.linspace(-1e-3, 1e-3, 9):
        apart = np.abs(form.numpy(values + moved) - form.numpy(values))
        assert np.all(apart <= carried + 1e-12)


@pytest.mark.parametrize("row", [r for r in BINARY.values() if r.floats], ids=repr)
def test_errors_of_two_operands_cover_what_they_may_be(row: BinaryFunction) -> None:
    form = row.form(F64)
    a, b = np.array([0.3, 0.9, 2.0]), np.array([1.7, 0.4, 3.0])
    e, f = np.full(3, 1e-3), np.full(3, 2e-3)
    value = form.numpy(a, b)
    carried = form.error(value, Approximate(a, e), Approximate(b, f))
    assert carried is not None
    for s in (-1, 0, 1):
        for t in (-1, 0, 1):
            assert np.all(np.abs(form.numpy(a + s * e, b + t * f) - value) <= carried * 1.01)


def test_rounding_tells_what_keeps_integers() -> None:
    numbers = np.array([1.0, 4.0, 9.0])
    for row in UNARY.values():
        if row.floats and row.rounding.keeps_integers:
            assert np.all(row.floats.numpy(numbers) % 1 == 0)
    for pair in BINARY.values():
        if pair.floats and pair.rounding.keeps_integers:
            assert np.all(pair.floats.numpy(numbers, numbers[::-1]) % 1 == 0)


def test_a_name_is_given_once() -> None:
    with pytest.raises(ValueError, match="exp"):
        add_function(UnaryOp.EXP)


def test_reductions_have_one_function_of_numpy_for_all_kinds() -> None:
    assert BinaryOp.ADD.ufunc is np.add
    assert BinaryOp.DIVIDE.ufunc is None and BinaryOp.REMAINDER.ufunc is None
    assert math.isfinite(sum(row.instructions for row in ALL))
