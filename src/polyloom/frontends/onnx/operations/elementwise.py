"""Maps: arithmetic, activations, comparisons, conversions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from polyloom.frontends.graph import scalar
from polyloom.frontends.graph.builder import Function
from polyloom.frontends.graph.context import Context, Operation, Table, only
from polyloom.frontends.graph.operations.elementwise import cast, mapped
from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.graph.values import Value, unsqueezed
from polyloom.frontends.onnx.tensors import OTHER_TYPES, TYPES
from polyloom.ir.expressions import BinaryOp, CompareOp, Expression, UnaryOp
from polyloom.ir.types import ElementType


def unary(function: Function) -> Operation:
    """Return the operation that applies a function to its input."""
    return lambda c: only(mapped(c.builder, function, c.input()))


def binary(function: Function) -> Operation:
    """Return the operation that applies a function to its two inputs, of one type."""

    def operation(c: Context) -> Sequence[Value]:
        left, right = c.input(0), c.input(1)
        if left.type is not right.type:
            raise Refused(f"operands of types {left.type.value} and {right.type.value}")
        if c.version < 7 and c.attribute("axis") is not None:
            at = c.axis("axis", left.rank)
            right = unsqueezed(right, range(right.rank, left.rank - at))
        return only(mapped(c.builder, function, left, right))

    return operation


def variadic(function: Callable[[Expression, Expression], Expression]) -> Operation:
    """Return the operation that folds its inputs."""

    def operation(c: Context) -> Sequence[Value]:
        return only(mapped(c.builder, lambda *xs: reduce(function, xs), *c.inputs))

    return operation


def _mean(c: Context) -> Sequence[Value]:
    count = len(c.inputs)
    function = lambda *xs: scalar.divide(reduce(scalar.add, xs), count)  # noqa: E731
    return only(mapped(c.builder, function, *c.inputs))


def compared(op: CompareOp) -> Operation:
    """Return a comparison."""
    return binary(lambda a, b: scalar.compare(op, a, b))


def logical(op: BinaryOp) -> Operation:
    """Return an operation on truth values."""
    return binary(lambda a, b: scalar.logical(op, a, b))


def of_integers(op: BinaryOp) -> Operation:
    """Return an operation on the bits of integers."""
    return binary(lambda a, b: scalar._binary(op, a, b))


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

    return only(mapped(c.builder, function, base, exponent))


def floor_remainder(a: Expression, b: Expression) -> Expression:
    """Return the remainder with the sign of ``b``."""
    rest = scalar.remainder(a, b)
    if a.type.value.startswith("u"):
        return rest
    signs = scalar.logical(
        BinaryOp.BIT_XOR, scalar.compare(CompareOp.LT, rest, 0), scalar.compare(CompareOp.LT, b, 0)
    )
    wrong = scalar.logical(BinaryOp.AND, scalar.compare(CompareOp.NE, rest, 0), signs)
    return scalar.select(wrong, scalar.add(rest, b), rest)


def _mod(c: Context) -> Sequence[Value]:
    function = scalar.remainder if c.integer("fmod", 0) else floor_remainder
    return binary(function)(c)


def sign(x: Expression) -> Expression:
    """Return -1, 0 or 1; NaN stays."""
    positive = scalar.select(scalar.compare(CompareOp.GT, x, 0), scalar.number(1, x.type), 0)
    if x.type.value.startswith("u"):
        return positive
    found = scalar.select(scalar.compare(CompareOp.LT, x, 0), scalar.number(-1, x.type), positive)
    return scalar.select(is_nan(x), x, found) if x.type.is_float else found


def is_nan(x: Expression) -> Expression:
    """Tell whether ``x`` is not equal to itself."""
    return scalar.compare(CompareOp.NE, x, x)


def _is_inf(c: Context) -> Sequence[Value]:
    up, down = c.integer("detect_positive", 1), c.integer("detect_negative", 1)

    def function(x: Expression) -> Expression:
        found = scalar.number(0, ElementType.BOOL)
        for wanted, number in ((up, math.inf), (down, -math.inf)):
            if wanted:
                found = scalar.logical(BinaryOp.OR, found, scalar.compare(CompareOp.EQ, x, number))
        return found

    return only(mapped(c.builder, function, c.input()))


def relu(x: Expression) -> Expression:
    """Return ``max(x, 0)``."""
    return scalar.maximum(x, 0)


def softplus(x: Expression) -> Expression:
    """Return ``log(exp(x) + 1)``, without overflow."""
    small = scalar.exp(scalar.negate(scalar.absolute(x)))
    return scalar.add(scalar.maximum(x, 0), scalar.log(scalar.add(small, 1)))


def leaky(x: Expression, slope: Expression | float) -> Expression:
    """Return ``x``, times the slope where it is negative."""
    return scalar.select(scalar.compare(CompareOp.LT, x, 0), scalar.multiply(x, slope), x)


def elu(x: Expression, alpha: float, scale: float = 1.0, inner: float = 1.0) -> Expression:
    """Return ``scale * (x > 0 ? x : alpha * (exp(x / inner) - 1))``."""
    argument = x if inner == 1.0 else scalar.divide(x, inner)
    negative = scalar.multiply(scalar.subtract(scalar.exp(argument), 1), alpha)
    found = scalar.select(scalar.compare(CompareOp.GT, x, 0), x, negative)
    return found if scale == 1.0 else scalar.multiply(found, scale)


def hard_sigmoid(x: Expression, alpha: float, beta: float) -> Expression:
    """Return ``max(0, min(1, alpha * x + beta))``."""
    return scalar.maximum(scalar.minimum(scalar.add(scalar.multiply(x, alpha), beta), 1), 0)


def gelu(x: Expression, *, tanh: bool) -> Expression:
    """Return ``x * Phi(x)``, or its approximation by tanh."""
    if not tanh:
        phi = scalar.add(scalar.erf(scalar.divide(x, math.sqrt(2))), 1)
        return scalar.multiply(scalar.multiply(x, 0.5), phi)
    cube = scalar.multiply(scalar.multiply(scalar.square(x), x), 0.044715)
    inner = scalar.multiply(scalar.add(x, cube), math.sqrt(2 / math.pi))
    return scalar.multiply(scalar.multiply(x, 0.5), scalar.add(scalar.tanh(inner), 1))


def asinh(x: Expression) -> Expression:
    """Return the inverse of sinh: odd, so that nothing cancels."""
    a = scalar.absolute(x)
    found = scalar.log(scalar.add(a, scalar.sqrt(scalar.add(scalar.square(a), 1))))
    return scalar.select(scalar.compare(CompareOp.LT, x, 0), scalar.negate(found), found)


def acosh(x: Expression) -> Expression:
    """Return the inverse of cosh."""
    return scalar.log(scalar.add(x, scalar.sqrt(scalar.subtract(scalar.square(x), 1))))


def atanh(x: Expression) -> Expression:
    """Return the inverse of tanh."""
    quotient = scalar.divide(scalar.add(x, 1), scalar.subtract(1, x))
    return scalar.multiply(scalar.log(quotient), 0.5)


def with_number(name: str, default: float, function: Callable[[Expression, float], Expression]) -> Operation:
    """Return a map with one attribute."""

    def operation(c: Context) -> Sequence[Value]:
        number = c.number(name, default)
        return only(mapped(c.builder, lambda x: function(x, number), c.input()))

    return operation


def _selu(c: Context) -> Sequence[Value]:
    alpha = c.number("alpha", 1.67326319217681884765625)
    gamma = c.number("gamma", 1.05070102214813232421875)
    return only(mapped(c.builder, lambda x: elu(x, alpha, gamma), c.input()))


def _celu(c: Context) -> Sequence[Value]:
    alpha = c.number("alpha", 1.0)
    return only(mapped(c.builder, lambda x: elu(x, alpha, 1.0, alpha), c.input()))


def _hard_sigmoid(c: Context) -> Sequence[Value]:
    alpha, beta = c.number("alpha", 0.2), c.number("beta", 0.5)
    return only(mapped(c.builder, lambda x: hard_sigmoid(x, alpha, beta), c.input()))


def _shrink(c: Context) -> Sequence[Value]:
    edge, bias = c.number("lambd", 0.5), c.number("bias", 0.0)
    kind = c.input().type
    wide = kind if kind.is_float else ElementType.FLOAT32

    def function(x: Expression) -> Expression:
        v = scalar.convert(x, wide)
        low = scalar.select(scalar.compare(CompareOp.LT, v, -edge), scalar.add(v, bias), 0)
        found = scalar.select(scalar.compare(CompareOp.GT, v, edge), scalar.subtract(v, bias), low)
        return scalar.convert(found, kind)

    return only(mapped(c.builder, function, c.input()))


def _gelu(c: Context) -> Sequence[Value]:
    tanh = c.text("approximate", "none") == "tanh"
    return only(mapped(c.builder, lambda x: gelu(x, tanh=tanh), c.input()))


def _prelu(c: Context) -> Sequence[Value]:
    return only(mapped(c.builder, leaky, c.input(0), c.input(1)))


def _clip(c: Context) -> Sequence[Value]:
    """Clip: at most the upper bound, also where the bounds are the wrong way round."""
    b, x = c.builder, c.input()
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
    return None if number is None else c.builder.constant(np.asarray(number, x.type.dtype))


def _where(c: Context) -> Sequence[Value]:
    return only(mapped(c.builder, scalar.select, *c.inputs))


def _bit_shift(c: Context) -> Sequence[Value]:
    left = c.text("direction") == "LEFT"
    return of_integers(BinaryOp.SHIFT_LEFT if left else BinaryOp.SHIFT_RIGHT)(c)


def type_of(number: Any) -> ElementType:
    """Return an element type by its number in ONNX. Raises ``Refused``."""
    if number not in TYPES:
        raise Refused(f"elements of type {OTHER_TYPES.get(number, number)}")
    return TYPES[number]


def _cast(c: Context) -> Sequence[Value]:
    return only(cast(c.builder, c.input(), type_of(c.integer("to"))))


def _cast_like(c: Context) -> Sequence[Value]:
    return only(cast(c.builder, c.input(0), c.input(1).type))


def _identity(c: Context) -> Sequence[Value]:
    return only(c.input())


def _dropout(c: Context) -> Sequence[Value]:
    """Dropout: the identity, unless it trains with a ratio above 0, which is random."""
    training = c.known_or(2, "training_mode")
    ratio = c.known_or(1, "ratio")
    if training is not None and training.item() and (ratio is None or ratio.item() != 0):
        raise Refused("it chooses at random when it trains")
    x = c.input()
    if len(c.node.outputs) < 2:
        return (x,)
    return x, mapped(c.builder, lambda v: scalar.number(1, ElementType.BOOL), x, hint="mask")


def _swish(x: Expression, alpha: float) -> Expression:
    return scalar.multiply(x, scalar.sigmoid(scalar.multiply(x, alpha) if alpha != 1.0 else x))


def _threshold(x: Expression, alpha: float) -> Expression:
    return scalar.select(scalar.compare(CompareOp.GT, x, alpha), x, 0)


def _not(x: Expression) -> Expression:
    return scalar.unary(UnaryOp.NOT, x)


def _bernoulli(c: Context) -> Sequence[Value]:
    raise Refused("it chooses at random")


def swap_channels(value: Value, rank: int) -> Value:
    """Return one number per channel as it broadcasts over data of a rank."""
    return unsqueezed(value, [0, *range(2, rank)])


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
    "Softsign": lambda x: scalar.divide(x, scalar.add(scalar.absolute(x), 1)),
    "Mish": lambda x: scalar.multiply(x, scalar.tanh(softplus(x))),
    "HardSwish": lambda x: scalar.multiply(x, hard_sigmoid(x, 1 / 6, 0.5)),
    "Asinh": asinh,
    "Acosh": acosh,
    "Atanh": atanh,
    "Not": _not,
    **{
        op.value.capitalize(): (lambda x, op=op: scalar.unary(op, x))
        for op in (
            UnaryOp.FLOOR,
            UnaryOp.CEIL,
            UnaryOp.ROUND,
            UnaryOp.SIN,
            UnaryOp.COS,
            UnaryOp.TAN,
            UnaryOp.ASIN,
            UnaryOp.ACOS,
            UnaryOp.ATAN,
            UnaryOp.SINH,
            UnaryOp.COSH,
        )
    },
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
    "Mean": _mean,
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
    "Selu": _selu,
    "Celu": _celu,
    "HardSigmoid": _hard_sigmoid,
    "Shrink": _shrink,
    "Gelu": _gelu,
    "PRelu": _prelu,
    "Clip": _clip,
    "Where": _where,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Identity": _identity,
    "Dropout": _dropout,
    "Bernoulli": _bernoulli,
}
