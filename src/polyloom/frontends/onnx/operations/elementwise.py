"""Maps: arithmetic, activations, comparisons, conversions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from polyloom.frontends.graph.core import (
    NAMED_ALIKE,
    Anything,
    BinaryOp,
    CompareOp,
    Context,
    ElementType,
    Expression,
    From,
    Function,
    Operation,
    Refused,
    Table,
    UnaryOp,
    Value,
    X,
    acosh,
    asinh,
    atanh,
    binary,
    cast,
    compared,
    elu,
    floor_remainder,
    gelu,
    hard_sigmoid,
    is_nan,
    leaky,
    logical,
    mapped,
    maps,
    mish,
    number,
    of_integers,
    only,
    op,
    refuse_if,
    refused,
    relu,
    scalar,
    sign,
    softplus,
    softsign,
    unary,
    unsqueezed,
    value,
    variadic,
)
from polyloom.frontends.onnx.tensors import OTHER_TYPES, TYPES


def power(c: Context) -> Sequence[Value]:
    """Pow: the result has the type of the base."""
    base, exponent = c.input(0), c.input(1)
    kind = base.type

    def function(a: Expression, e: Expression) -> Expression:
        if a.type is e.type:
            return scalar.power(a, e)
        wide = kind if kind.is_float else ElementType.FLOAT64
        if not kind.is_float and not e.type.is_float:
            wide = ElementType.INT64
        return scalar.convert(scalar.power(scalar.convert(a, wide), scalar.convert(e, wide)), kind)

    return only(mapped(c.b, function, base, exponent))


def _mod(c: Context) -> Sequence[Value]:
    """Mod: the sign of the divisor, or of the dividend. Before opset 28 only integers have the former."""
    truncated = c.integer("fmod", 0)
    refuse_if(truncated not in (0, 1), f"`fmod` {truncated}")
    if not truncated and c.input().type.is_float and c.version < 28:
        raise Refused(f"`fmod` 0 of {c.input().type.value} in opset {c.version}")
    return binary(scalar.remainder if truncated else floor_remainder)(c)


def _is_inf(c: Context) -> Sequence[Value]:
    up, down = c.integer("detect_positive", 1), c.integer("detect_negative", 1)

    def function(x: Expression) -> Expression:
        found = scalar.number(0, ElementType.BOOL)
        for wanted, extreme in ((up, math.inf), (down, -math.inf)):
            if wanted:
                found = scalar.logical(BinaryOp.OR, found, scalar.compare(CompareOp.EQ, x, extreme))
        return found

    return only(mapped(c.b, function, c.input()))


def with_number(name: str, default: float, function: Callable[[Expression, float], Expression]) -> Operation:
    """Return a map with one attribute."""
    return maps(function, X, number(name, default))


def _shrink(c: Context) -> Sequence[Value]:
    edge, bias = c.number("lambd", 0.5), c.number("bias", 0.0)
    kind = c.input().type
    wide = kind if kind.is_float else ElementType.FLOAT32

    def function(x: Expression) -> Expression:
        v = scalar.convert(x, wide)
        low = scalar.select(scalar.compare(CompareOp.LT, v, -edge), scalar.add(v, bias), 0)
        found = scalar.select(scalar.compare(CompareOp.GT, v, edge), scalar.subtract(v, bias), low)
        return scalar.convert(found, kind)

    return only(mapped(c.b, function, c.input()))


def _gelu(c: Context) -> Sequence[Value]:
    tanh = c.text("approximate", "none") == "tanh"
    return only(mapped(c.b, lambda x: gelu(x, tanh=tanh), c.input()))


def _prelu(c: Context) -> Sequence[Value]:
    x, slope = c.input(0), c.input(1)
    if c.version < 7 and slope.rank == 1 and slope.size > 1:
        slope = unsqueezed(slope, [0, *range(2, x.rank)])
    return only(mapped(c.b, leaky, x, slope))


def _clip(c: Context) -> Sequence[Value]:
    """Clip: at most the upper bound, also where the bounds are the wrong way round."""
    b, x = c.b, c.input()
    low, high = c.optional(1), c.optional(2)
    if c.version < 11:
        low = _bound(c, x, "min")
        high = _bound(c, x, "max")
    functions = [(v, f) for v, f in ((low, scalar.maximum), (high, scalar.minimum)) if v is not None]

    def function(v: Expression, *bounds: Expression) -> Expression:
        for bound, (_, f) in zip(bounds, functions, strict=True):
            v = f(v, bound)
        return v

    return only(mapped(b, function, x, *(v for v, _ in functions)))


def _bound(c: Context, x: Value, name: str) -> Value | None:
    number = c.attribute(name)
    return None if number is None else c.b.constant(np.asarray(number, x.type.dtype))


def _bit_shift(c: Context) -> Sequence[Value]:
    """BitShift: by a width or more, or a negative number, all bits go out, and only signs come in."""
    direction = c.text("direction")
    refuse_if(direction not in ("LEFT", "RIGHT"), f"the direction `{direction}`")
    left = direction == "LEFT"

    def function(x: Expression, n: Expression) -> Expression:
        shifted = scalar.bits(BinaryOp.SHIFT_LEFT if left else BinaryOp.SHIFT_RIGHT, x, n)
        fits = scalar.compare(CompareOp.LT, n, 8 * x.type.size)
        out = scalar.number(0, x.type)
        if not x.type.value.startswith("u"):
            fits = scalar.logical(BinaryOp.AND, fits, scalar.compare(CompareOp.GE, n, 0))
            sign_bits = scalar.select(scalar.compare(CompareOp.LT, x, 0), scalar.number(-1, x.type), 0)
            out = out if left else sign_bits
        return scalar.select(fits, shifted, out)

    return binary(function)(c)


def type_of(number: Any) -> ElementType:
    """Return an element type by its number in ONNX. Raises ``Refused``."""
    if number not in TYPES:
        raise Refused(f"elements of type {OTHER_TYPES.get(number, number)}")
    return TYPES[number]


def _identity(c: Context) -> Sequence[Anything]:
    return c.some([0])


def _dropout(c: Context) -> Sequence[Value]:
    """Dropout: the identity, unless it trains with a ratio above 0, which is random."""
    refuse_if(c.version < 7 and not c.integer("is_test", 0), "it chooses at random when it trains")
    training = c.known_or(2, "training_mode")
    ratio = c.known_or(1, "ratio")
    if training is not None and training.item() and (ratio is None or ratio.item() != 0):
        raise Refused("it chooses at random when it trains")
    x = c.input()
    if len(c.node.outputs) < 2:
        return (x,)
    return x, mapped(c.b, lambda v: scalar.number(1, ElementType.BOOL), x, hint="mask")


def _swish(x: Expression, alpha: float) -> Expression:
    return scalar.multiply(x, scalar.sigmoid(scalar.multiply(x, alpha) if alpha != 1.0 else x))


def _threshold(x: Expression, alpha: float) -> Expression:
    return scalar.select(scalar.compare(CompareOp.GT, x, alpha), x, 0)


_A_SIXTH = float(np.float32(1 / 6))
"""HardSwish is defined by HardSigmoid, whose attributes are 32-bit floats, also for doubles."""

_FUNCTIONS: dict[str, Function] = {
    "Abs": scalar.absolute,
    "Neg": scalar.negate,
    "Exp": scalar.exp,
    "Log": scalar.log,
    "Sqrt": scalar.sqrt,
    "Tanh": scalar.tanh,
    "Sigmoid": scalar.sigmoid,
    "Erf": scalar.erf,
    "Reciprocal": lambda x: scalar.divide(1, x),
    "Sign": sign,
    "IsNaN": is_nan,
    "Relu": relu,
    "Softplus": softplus,
    "Softsign": softsign,
    "Mish": mish,
    "HardSwish": lambda x: scalar.multiply(x, hard_sigmoid(x, _A_SIXTH, 0.5)),
    "Asinh": asinh,
    "Acosh": acosh,
    "Atanh": atanh,
    "Not": scalar.negation,
    **NAMED_ALIKE,
    "BitwiseNot": lambda x: scalar.unary(UnaryOp.COMPLEMENT, x),
}


OPERATIONS: Table = {
    **{name: unary(function) for name, function in _FUNCTIONS.items()},
    "Add": binary(scalar.add),
    "Sub": binary(scalar.subtract),
    "Mul": binary(scalar.multiply),
    "Div": binary(scalar.divide),
    "Pow": power,
    "Mod": _mod,
    "Max": variadic(scalar.maximum),
    "Min": variadic(scalar.minimum),
    "Sum": variadic(scalar.add),
    "Mean": lambda c: only(
        mapped(c.b, lambda *xs: scalar.divide(reduce(scalar.add, xs), len(xs)), *c.inputs)
    ),
    "Equal": compared(CompareOp.EQ),
    "Greater": compared(CompareOp.GT),
    "Less": compared(CompareOp.LT),
    "GreaterOrEqual": compared(CompareOp.GE),
    "LessOrEqual": compared(CompareOp.LE),
    "And": logical(BinaryOp.AND),
    "Or": logical(BinaryOp.OR),
    "Xor": logical(BinaryOp.BIT_XOR),
    "BitwiseAnd": of_integers(BinaryOp.BIT_AND),
    "BitwiseOr": of_integers(BinaryOp.BIT_OR),
    "BitwiseXor": of_integers(BinaryOp.BIT_XOR),
    "BitShift": _bit_shift,
    "IsInf": _is_inf,
    "LeakyRelu": with_number("alpha", 0.01, leaky),
    "ThresholdedRelu": with_number("alpha", 1.0, _threshold),
    "Elu": with_number("alpha", 1.0, elu),
    "Swish": with_number("alpha", 1.0, _swish),
    "Selu": maps(elu, X, number("alpha", 1.6732631921768188), number("gamma", 1.0507010221481323)),
    "Celu": maps(lambda x, alpha: elu(x, alpha, 1.0, alpha), X, number("alpha", 1.0)),
    "HardSigmoid": maps(hard_sigmoid, X, number("alpha", 0.2), number("beta", 0.5)),
    "Shrink": _shrink,
    "Gelu": _gelu,
    "PRelu": _prelu,
    "Clip": _clip,
    "Where": maps(scalar.select, *map(value, range(3))),
    "Cast": op(cast, X, From(lambda c: type_of(c.integer("to")))),
    "CastLike": op(cast, X, From(lambda c: c.input(1).type)),
    "Identity": _identity,
    "Dropout": _dropout,
    "Bernoulli": refused("it chooses at random"),
}
