"""Exponentials, quotients, roots, tanh and sigmoid as sequences of instructions, with their errors.

All compute in float32: an argument of float16 is converted first, which leaves no underflow on the way and
one rounding of the result. Range reduction adds a large number, so that the integer stands in the low word;
reciprocals and roots begin with the exponents' negative or half, taken from the high word, and go on by
Newton's iteration; the polynomials are minimax, fitted for these ranges (Lawson's iteration). Quotients by
zero, infinities and NaN come out as the evaluator has them.

Results of float32 below 2**-126, and arguments of roots and quotients there, may be taken for 0, so may the
inverse of a divisor beyond 2**126; errors hold for results from 2**-124 and divisors to 2**125.

Not in the papers. Source of the method: Muller, Elementary Functions (3rd ed., 2016), Ch. 3, 9 and 11.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

from polyloom.ir.expressions import BinaryOp, UnaryOp
from polyloom.ir.scalar_functions.function import BinaryFunction, UnaryFunction
from polyloom.ir.types import ElementType
from polyloom.wafer.vector_functions.sequences import Value, VectorFunction, Writer

_HALF, _FLOAT = ElementType.FLOAT16, ElementType.FLOAT32

_ULPS = {
    (UnaryOp.EXP, _HALF): 0.7,
    (UnaryOp.EXP, _FLOAT): 2.2,
    (UnaryOp.SIGMOID, _HALF): 0.7,
    (UnaryOp.SIGMOID, _FLOAT): 5.0,
    (UnaryOp.TANH, _HALF): 0.6,
    (UnaryOp.TANH, _FLOAT): 6.6,
    (UnaryOp.RSQRT, _HALF): 0.6,
    (UnaryOp.RSQRT, _FLOAT): 2.3,
    (UnaryOp.SQRT, _HALF): 0.6,
    (UnaryOp.SQRT, _FLOAT): 2.8,
    (BinaryOp.DIVIDE, _HALF): 0.6,
    (BinaryOp.DIVIDE, _FLOAT): 3.1,
}

_INTEGER = 1.5 * 2.0**23
"""Added to a float32 it leaves the nearest integer in the low word."""

_MULTIPLE = 128 * _INTEGER
"""Added to a float32 it leaves the nearest multiple of 128: of the lowest exponent bit in a high word."""

_ONE = 0x3F80
"""The high word of 1."""

_LOG_2 = math.log(2)


def error_ulps(op: UnaryFunction | BinaryFunction, kind: ElementType) -> float | None:
    """Return by how many units in the last place a sequence may be off; None where there is none."""
    return _ULPS.get((op, kind))


@cache
def vector_function(op: UnaryFunction | BinaryFunction, kind: ElementType) -> VectorFunction | None:
    """Return a function of operands of a type as a sequence; None where there is none."""
    if (op, kind) not in _ULPS:
        return None
    if op is BinaryOp.DIVIDE:
        return _quotient(kind)
    write = Writer()
    x = write.argument(kind)
    made = _MAKERS[op](write, x)
    if kind is _HALF:
        write.do("fs2h", made)
    return write.function(x)


def _exponential(write: Writer, x: Value) -> Value:
    half = x.type is _HALF
    negated = _clamped_negated(write, x, -18.0, 12.0) if half else _clamped_negated(write, x, -104.0, 89.0)
    return _exp_of_negated(write, _as_float(write, negated), precise=not half)


def _sigmoid(write: Writer, x: Value) -> Value:
    """1 / (1 + exp(-x))."""
    half = x.type is _HALF
    negated = _clamped_negated(write, x, -18.0, 18.0) if half else _clamped_negated(write, x, -87.35, 87.35)
    power = _exp_of_negated(write, _negated(write, _as_float(write, negated)), precise=not half)
    return _reciprocal(write, write.do("fadds", power, 1.0), precise=not half)


def _exp_of_negated(write: Writer, n: Value, *, precise: bool) -> Value:
    """Return exp(-n) for n in [-104, 104]: ``2**k * p(r)``; precise: ``(2**k)**2 * p(r)``, which has room.

    ``q`` is -r. A multiple of 128 is kept, so that k, moved to the low word, stands where exponents begin.
    """
    step = _LOG_2 / 64 if precise else _LOG_2 / 128
    moved = write.do("fmacs", _MULTIPLE, n, -1 / step)
    multiple = write.do("fsubs", moved, _MULTIPLE)
    if precise:
        high = math.floor(step * 2.0**20) / 2.0**20
        q = write.do("fmacs", n, multiple, high)
        q = write.do("fmacs", q, multiple, step - high)
    else:
        q = write.do("fmacs", n, multiple, step)
    signed = [c * (-1) ** k for k, c in enumerate(_EXP_PRECISE if precise else _EXP)]
    p = _polynomial(write, q, signed)
    scale = write.do("fadds", multiple, _INTEGER)
    write.set(scale.words(1), "add16", scale.words(0), _ONE)
    write.set(scale.words(0), "mov16", 0)
    p = write.do("fmuls", p, scale)
    return write.do("fmuls", p, scale) if precise else p


_EXP = (1.0, 1.0002037286758423, 0.5042130947113037, 0.1651504635810852)
"""On [-0.35, 0.35], within 2**-13.2."""

_EXP_PRECISE = (
    *(1.0, 1.0, 0.5000004768371582, 0.1666656732559204, 0.04166032001376152),
    *(0.008337190374732018, 0.0014118892140686512, 0.00019546612747944891),
)
"""On [-0.7, 0.7], within 2**-26.2."""


def _tanh(write: Writer, x: Value) -> Value:
    """``x * P(x * x) / Q(x * x)``, within the range where it is not yet 1.

    Precise: ``2 * t / (1 + t * t)``, ``t = tanh(x / 2) = n / Q / 2``, which dampens the errors of large x.
    """
    half = x.type is _HALF
    bound, above, below = _TANH if half else _TANH_PRECISE
    negated = _as_float(write, _clamped_negated(write, x, -bound, bound))
    square = write.do("fmuls", negated, negated)
    n = write.do("fmuls", negated, _polynomial(write, square, [-c for c in above]))
    q = _polynomial(write, square, below)
    if half:
        return write.do("fmuls", n, _reciprocal(write, q, precise=False))
    d = write.do("fmacs", write.do("fmuls", q, q), write.do("fmuls", n, n), 0.25)
    return write.do("fmuls", write.do("fmuls", n, q), _reciprocal(write, d, precise=True))


_TANH = (
    4.6015625,
    (0.9999679307895806, 0.10362474261164105, 0.000709584017855814),
    (1.0, 0.436747203719962, 0.013197059429114774),
)
"""Bound, P and Q: within 2**-14.9."""

_TANH_PRECISE = (
    9.02,
    (0.9999999767960113, 0.031488694616682952, 0.00015980261090155134, 8.580234649280032e-08),
    (1.0, 0.11482196470717775, 0.001394994989880559, 2.733951657527154e-06),
)
"""Bound, P and Q for half the argument: within 2**-25.3."""


def _inverse_root(write: Writer, x: Value) -> Value:
    f = write.do("fadds", _as_float(write, x), 0.0)  # -0 has no other root than 0
    y, negative = _newton_root(write, f, precise=x.type is _FLOAT)
    if x.type is _FLOAT:  # 0 has a root, 2**65, that no proper argument has; that of infinity is 0
        y = write.do("fmuls", write.do("fmuls", y, 2.0**64), 2.0**-64)
        beyond = write.do("fsubs", f, write.do("fnegs", write.do("fmaxs", write.do("fnegs", f), -_MOST)))
        y = write.do("fmaxs", write.do("fsubs", y, beyond), 0.0)
    return write.do("fadds", y, negative)


def _root(write: Writer, x: Value) -> Value:
    f = write.do("fadds", _as_float(write, x), 0.0)
    y, negative = _newton_root(write, f, precise=x.type is _FLOAT)
    return write.do("fadds", write.do("fmuls", f, y), negative)


_MOST = (2 - 2.0**-23) * 2.0**127
"""The largest float32."""


def _newton_root(write: Writer, f: Value, *, precise: bool) -> tuple[Value, Value]:
    """Return 1 / sqrt(f), finite also for 0 and infinity, and a value that is NaN for negative f, else 0."""
    exponent = write.argument(_FLOAT)
    write.set(exponent.words(0), "mov16", f.words(1))
    write.set(exponent.words(1), "mov16", 0x4B40)  # of the number that leaves an integer in the low word
    y = write.do("fmacs", 1.5 * _INTEGER + 0x5F36, exponent, -0.5)
    write.set(y.words(1), "mov16", y.words(0))
    write.set(y.words(0), "mov16", 0)
    negated = write.do("fmaxs", write.do("fnegs", f), -(2.0**100) if not precise else -_MOST)
    for _ in range(3 if precise else 2):
        factor = write.do("fmuls", write.do("fmuls", negated, y), y)
        y = write.do("fmuls", y, write.do("fmacs", 1.5, factor, 0.5))
    below = write.do("fmaxs", negated, 0.0)
    below = write.do("fmuls", write.do("fmuls", below, 2.0**127), 2.0**127)
    return y, write.do("fsubs", below, below)


def _quotient(kind: ElementType) -> VectorFunction:
    write = Writer()
    a, b = write.argument(kind), write.argument(kind)
    divisor = _as_float(write, b)
    if kind is _HALF:
        y = _reciprocal(write, _clamped_negated(write, divisor, -(2.0**60), 2.0**60), precise=False)
        y = write.do("fmuls", write.do("fmuls", y, -(2.0**-100)), 2.0**100)  # that of infinity becomes 0
        write.do("fs2h", write.do("fmuls", _as_float(write, a), y))
    else:
        negated = _clamped_negated(write, divisor, -(2.0**126), 2.0**126)
        beyond = write.do("fabss", write.do("fadds", divisor, negated))
        kept = write.do("fmaxs", write.do("fsubs", 1.0, beyond), 0.0)  # 1, or 0 beyond 2**126
        y = _reciprocal(write, _negated(write, negated), precise=True)
        write.do("fmuls", a, write.do("fmuls", y, kept))
    return write.function(a, b)


def _reciprocal(write: Writer, d: Value, *, precise: bool) -> Value:
    """Return 1 / d of a float32, d finite; infinite where d is 0."""
    y = write.argument(_FLOAT)
    write.set(y.words(1), "sub16", 0x7EF3, d.words(1))
    write.set(y.words(0), "mov16", 0)
    y = _newton(write, d, y)
    if not precise:
        return _newton(write, d, y)
    error = write.do("fsubs", 1.0, write.do("fmuls", d, y))
    error = write.do("fadds", write.do("fmuls", error, error), error)
    return write.do("fmuls", y, write.do("fadds", error, 1.0))


def _newton(write: Writer, d: Value, y: Value) -> Value:
    return write.do("fmuls", y, write.do("fsubs", 2.0, write.do("fmuls", d, y)))


def _polynomial(write: Writer, x: Value, coefficients: Sequence[float]) -> Value:
    """Return the polynomial by Horner's rule; ``coefficients``: the constant one first."""
    *rest, second, first = coefficients
    p = write.do("fmacs", second, x, first)
    for c in reversed(rest):
        p = write.do("fadds", write.do("fmuls", p, x), c)
    return p


def _clamped_negated(write: Writer, x: Value, low: float, high: float) -> Value:
    """Return ``-min(max(x, low), high)``, NaN where x is: the engine has no minimum."""
    suffix = "h" if x.type is _HALF else "s"
    inside = write.do(f"fneg{suffix}", write.do(f"fmax{suffix}", x, low))
    return write.do(f"fmax{suffix}", inside, -high)


def _negated(write: Writer, x: Value) -> Value:
    return write.do("fnegs", x)


def _as_float(write: Writer, x: Value) -> Value:
    return x if x.type is _FLOAT else write.do("fh2s", x)


_MAKERS: dict[UnaryFunction | BinaryFunction, Callable[[Writer, Value], Value]] = {
    UnaryOp.EXP: _exponential,
    UnaryOp.SIGMOID: _sigmoid,
    UnaryOp.TANH: _tanh,
    UnaryOp.RSQRT: _inverse_root,
    UnaryOp.SQRT: _root,
}
