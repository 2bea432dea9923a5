"""Maps: arithmetic, activations, comparisons, conversions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from polyloom.frontends.graph.core import (
    NAMED_ALIKE,
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
    integer,
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
    rounded_once,
    scalar,
    shifted,
    sign,
    softplus,
    softsign,
    text,
    unary,
    unsqueezed,
    value,
    variadic,
)
from polyloom.frontends.onnx.tensors import OTHER_TYPES, TYPES


def _power(a: Expression, e: Expression) -> Expression:
    """Pow: the result has the type of the base."""
    if a.type is e.type:
        return scalar.power(a, e)
    wide = a.type if a.type.is_float else ElementType.FLOAT64 if e.type.is_float else ElementType.INT64
    return scalar.convert(scalar.power(scalar.convert(a, wide), scalar.convert(e, wide)), a.type)


def _mod(c: Context) -> Sequence[Value]:
    """Mod: the sign of the divisor, or of the dividend. Before opset 28 only integers have the former."""
    truncated = c.integer("fmod", 0)
    refuse_if(truncated not in (0, 1), f"`fmod` {truncated}")
    if not truncated and c.input().type.is_float and c.version < 28:
        raise Refused(f"`fmod` 0 of {c.input().type.value} in opset {c.version}")
    return binary(scalar.remainder if truncated else floor_remainder)(c)


def _is_infinite(x: Expression, up: int, down: int) -> Expression:
    found = scalar.number(0, ElementType.BOOL)
    for extreme in (math.inf,) * bool(up) + (-math.inf,) * bool(down):
        found = scalar.logical(BinaryOp.OR, found, scalar.equal(x, extreme))
    return found


def with_number(name: str, default: float, function: Callable[[Expression, float], Expression]) -> Operation:
    """Return a map with one attribute."""
    return maps(function, X, number(name, default))


def _shrink(x: Expression, edge: float, bias: float) -> Expression:
    v = scalar.convert(x, x.type if x.type.is_float else ElementType.FLOAT32)
    low = scalar.select(v < -edge, v + bias, 0)
    return scalar.convert(scalar.select(v > edge, v - bias, low), x.type)


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
    return binary(partial(shifted, left=direction == "LEFT"))(c)


def type_of(number: Any) -> ElementType:
    """Return an element type by its number in ONNX. Raises ``Refused``."""
    if number not in TYPES:
        raise Refused(f"elements of type {OTHER_TYPES.get(number, number)}")
    return TYPES[number]


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
    "Reciprocal": lambda x: 1 / x,
    "Sign": sign,
    "IsNaN": is_nan,
    "Relu": relu,
    "Softplus": softplus,
    "Softsign": softsign,
    "Mish": mish,
    "HardSwish": rounded_once(lambda x: x * hard_sigmoid(x, _A_SIXTH, 0.5)),
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
    "Pow": maps(_power, X, value(1)),
    "Mod": _mod,
    "Max": variadic(scalar.maximum),
    "Min": variadic(scalar.minimum),
    "Sum": variadic(scalar.add),
    "Mean": lambda c: only(mapped(c.b, lambda *xs: reduce(scalar.add, xs) / len(xs), *c.inputs)),
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
    "IsInf": maps(_is_infinite, X, integer("detect_positive", 1), integer("detect_negative", 1)),
    "LeakyRelu": with_number("alpha", 0.01, leaky),
    "ThresholdedRelu": with_number("alpha", 1.0, lambda x, alpha: scalar.select(x > alpha, x, 0)),
    "Elu": with_number("alpha", 1.0, elu),
    "Swish": with_number("alpha", 1.0, lambda x, alpha: x * scalar.sigmoid(x * alpha if alpha != 1.0 else x)),
    "Selu": maps(elu, X, number("alpha", 1.6732631921768188), number("gamma", 1.0507010221481323)),
    "Celu": maps(lambda x, alpha: elu(x, alpha, 1.0, alpha), X, number("alpha", 1.0)),
    "HardSigmoid": maps(hard_sigmoid, X, number("alpha", 0.2), number("beta", 0.5)),
    "Shrink": maps(_shrink, X, number("lambd", 0.5), number("bias", 0.0)),
    "Gelu": maps(lambda x, form: gelu(x, tanh=form == "tanh"), X, text("approximate", "none")),
    "PRelu": _prelu,
    "Clip": _clip,
    "Where": maps(scalar.select, *map(value, range(3))),
    "Cast": op(cast, X, From(lambda c: type_of(c.integer("to")))),
    "CastLike": op(cast, X, From(lambda c: c.input(1).type)),
    "Identity": lambda c: c.some([0]),
    "Dropout": _dropout,
    "Bernoulli": refused("it chooses at random"),
}
