"""Operations on arrays against C's, one element at a time; integers of every width wrap."""

from __future__ import annotations

import math

import numpy as np
import pytest

from polyloom.ir.evaluation import arithmetic
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    ParameterValue,
    Read,
    Unary,
    UnaryOp,
)
from polyloom.ir.scalar_functions.function import BinaryFunction, UnaryFunction
from polyloom.ir.text.expressions import expression_text
from polyloom.ir.types import ElementType

INTEGERS = [t for t in ElementType if not t.is_float and t is not ElementType.BOOL]
SIGNED = [t for t in INTEGERS if t.value.startswith("int")]
FLOATS = [t for t in ElementType if t.is_float]


def extremes(kind: ElementType) -> np.ndarray:
    limits = np.iinfo(kind.value)
    values = [limits.min, limits.min + 1, 0, 1, 2, 7, limits.max // 3, limits.max - 1, limits.max]
    values += [-1, -2, -7] if limits.min else []
    return np.array(values, kind.dtype)


def wrapped(number: int, kind: ElementType) -> int:
    bits = 8 * kind.size
    low = number % 2**bits
    return low - 2**bits if kind in SIGNED and low >= 2 ** (bits - 1) else low


def c_quotient(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGER_RULES = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUBTRACT: lambda a, b: a - b,
    BinaryOp.MULTIPLY: lambda a, b: a * b,
    BinaryOp.DIVIDE: c_quotient,
    BinaryOp.REMAINDER: lambda a, b: 0 if b == 0 else a - b * c_quotient(a, b),
    BinaryOp.MAXIMUM: max,
    BinaryOp.FMIN: min,
    BinaryOp.BIT_AND: lambda a, b: a & b,
    BinaryOp.BIT_OR: lambda a, b: a | b,
    BinaryOp.BIT_XOR: lambda a, b: a ^ b,
}


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("op", INTEGER_RULES)
def test_integers(op: BinaryFunction, kind: ElementType) -> None:
    a, b = np.meshgrid(extremes(kind), extremes(kind))
    with np.errstate(all="ignore"):
        found = arithmetic.binary(op, a, b, kind)
    assert found.dtype == kind.dtype
    rule = INTEGER_RULES[op]
    pairs = zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
    assert found.ravel().tolist() == [wrapped(rule(x, y), kind) for x, y in pairs]


@pytest.mark.parametrize("kind", INTEGERS)
def test_shifts_and_complements(kind: ElementType) -> None:
    bits = 8 * kind.size
    a, n = np.meshgrid(extremes(kind), np.arange(bits).astype(kind.dtype))
    left = arithmetic.binary(BinaryOp.SHIFT_LEFT, a, n, kind)
    right = arithmetic.binary(BinaryOp.SHIFT_RIGHT, a, n, kind)
    pairs = list(zip(a.ravel().tolist(), n.ravel().tolist(), strict=True))
    assert left.ravel().tolist() == [wrapped(x << k, kind) for x, k in pairs]
    assert right.ravel().tolist() == [x >> k for x, k in pairs]
    values = extremes(kind)
    assert arithmetic.unary(UnaryOp.COMPLEMENT, values, kind).tolist() == [
        wrapped(~x, kind) for x in values.tolist()
    ]
    assert arithmetic.unary(UnaryOp.TRUNC, values, kind).tolist() == values.tolist()


FLOAT_RULES = {
    UnaryOp.TRUNC: math.trunc,
    UnaryOp.SIN: math.sin,
    UnaryOp.COS: math.cos,
    UnaryOp.TAN: math.tan,
    UnaryOp.ATAN: math.atan,
    UnaryOp.SINH: math.sinh,
    UnaryOp.COSH: math.cosh,
    UnaryOp.EXP2: lambda x: 2.0**x,
    UnaryOp.EXPM1: math.expm1,
    UnaryOp.ERFC: math.erfc,
}
OF_POSITIVE = {
    UnaryOp.LOG2: math.log2,
    UnaryOp.LOG1P: math.log1p,
    UnaryOp.LOG10: math.log10,
    UnaryOp.CBRT: lambda x: x ** (1 / 3),
    UnaryOp.ASIN: lambda x: math.asin(x / 8),
    UnaryOp.ACOS: lambda x: math.acos(x / 8),
}


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("op", [*FLOAT_RULES, *OF_POSITIVE])
def test_functions_of_floats(op: UnaryFunction, kind: ElementType) -> None:
    points = [0.25, 0.5, 1.0, 2.5, 7.0] if op in OF_POSITIVE else [-7.0, -2.5, -0.5, 0.0, 0.5, 2.5, 7.0]
    values = np.array(points, kind.value)
    inner = values / kind.dtype.type(8) if op in (UnaryOp.ASIN, UnaryOp.ACOS) else values
    found = arithmetic.unary(op, inner, kind)
    wanted = [{**FLOAT_RULES, **OF_POSITIVE}[op](x) for x in points]
    assert found.dtype == kind.dtype
    assert np.allclose(found.astype(float), wanted, rtol=2 * np.finfo(kind.value).eps, atol=1e-6)


@pytest.mark.parametrize("kind", FLOATS)
def test_two_floats(kind: ElementType) -> None:
    a, b = (np.array(v, kind.value) for v in ([7.5, -7.5, 3.0, 4.0], [2.0, 2.0, -4.0, 3.0]))
    assert arithmetic.binary(BinaryOp.REMAINDER, a, b, kind).tolist() == [1.5, -1.5, 3.0, 1.0]
    assert arithmetic.binary(BinaryOp.HYPOT, a[2:], b[2:], kind).tolist() == [5.0, 5.0]
    angles = arithmetic.binary(BinaryOp.ATAN2, a, b, kind)
    assert np.allclose(angles.astype(float), np.arctan2(a.astype(float), b.astype(float)), rtol=1e-3)
    nan = np.array([np.nan, 1.0], kind.value)
    one = np.ones(2, kind.value)
    assert arithmetic.binary(BinaryOp.FMAX, nan, one, kind).tolist() == [1.0, 1.0]
    assert np.isnan(arithmetic.binary(BinaryOp.MAXIMUM, nan, one, kind)[0])


def test_conversions() -> None:
    high = np.array([2.0**63, 2.0**64 - 2048, 3.7, -1.0])
    unsigned = arithmetic.convert(high, ElementType.UINT64)
    assert unsigned.tolist() == [2**63, 2**64 - 2048, 3, 2**64 - 1]
    assert arithmetic.convert(np.array([300, -1]), ElementType.UINT8).tolist() == [44, 255]
    assert arithmetic.convert(np.array([200], "uint8"), ElementType.INT8).tolist() == [-56]


def test_truth_values_and_parameters() -> None:
    kind = ElementType.INT32
    less = Compare(CompareOp.LT, Read(0, kind), ParameterValue("n", kind))
    even = Compare(
        CompareOp.EQ, Binary(BinaryOp.REMAINDER, Read(0, kind), Constant(2, kind)), Constant(0, kind)
    )
    both = Binary(BinaryOp.AND, less, Unary(UnaryOp.NOT, even))
    values = np.arange(6, dtype="int32")
    found = arithmetic.value(both, [values], lambda k: values, {"n": 4})
    assert found.tolist() == [False, True, False, True, False, False]
    either = Binary(BinaryOp.OR, both, even)
    assert expression_text(either, ["x"]) == "x < int32(n) and not x % 2 == 0 or x % 2 == 0"
    bits = Binary(
        BinaryOp.BIT_AND, Read(0, kind), Binary(BinaryOp.SHIFT_LEFT, Read(0, kind), Constant(1, kind))
    )
    assert expression_text(Unary(UnaryOp.COMPLEMENT, bits), ["x"]) == "~(x & (x << 1))"
    assert expression_text(Convert(ElementType.INT8, bits), ["x"]) == "int8(x & (x << 1))"


def test_a_power_of_one_half_is_no_root() -> None:
    """C's pow(-0, 0.5) is 0 and pow(-inf, 0.5) is inf."""
    bases = np.array([-0.0, -np.inf, 4.0])
    found = arithmetic.binary(BinaryOp.POWER, bases, np.asarray(0.5), ElementType.FLOAT64)
    assert np.array_equal(found, [0, np.inf, 2]) and not np.signbit(found).any()
