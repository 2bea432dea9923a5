"""Maps: arithmetic, activations and their gradients, comparisons, conversions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from polyloom.frontends.graph.core import (
    SHAPE,
    BinaryFunction,
    BinaryOp,
    Builder,
    CompareOp,
    ElementType,
    Expression,
    From,
    Function,
    UnaryFunction,
    UnaryOp,
    Value,
    X,
    acosh,
    asinh,
    atanh,
    attribute,
    cast,
    clipped,
    elu,
    expm1,
    filled,
    floor_quotient,
    floor_remainder,
    gelu,
    integer,
    is_finite,
    is_infinite,
    is_nan,
    is_negative,
    leaky,
    log1p,
    mapped,
    maps,
    mish,
    number,
    only,
    op,
    power,
    refuse_if,
    relu,
    rounded_once,
    scalar,
    selu,
    shifted,
    sigmoid_gradient,
    sign,
    silu,
    softplus,
    softsign,
    tanh_gradient,
    text,
    times_log,
    unsqueezed,
    value,
    view,
)
from polyloom.frontends.torch.arguments import DY, OTHER, SELF, TYPE, operand
from polyloom.frontends.torch.call import Call, Lowering, operations
from polyloom.frontends.torch.operations.promotion import common_type


def _term(name: str) -> From:
    """Return an operand of arithmetic."""
    return From(lambda c: c.operand(name, _of_numbers(c)))


def _of_numbers(c: Call) -> ElementType:
    refuse_if(c.type is ElementType.BOOL, "arithmetic of truth values")
    return c.type


_TRUTHS = (operand("self", ElementType.BOOL), operand("other", ElementType.BOOL))
_TERMS = (_term("self"), _term("other"))


def _compared(op: CompareOp) -> Lowering:
    """Return a comparison, in the type in which the operands meet."""

    def met(name: str) -> From:
        return From(lambda c: _ordered(c.b, c.operand(name, common_type(c, "self", "other")), op))

    return maps(lambda x, y: scalar.compare(op, x, y), met("self"), met("other"))


def _ordered(b: Builder, x: Value, op: CompareOp) -> Value:
    """Return truth values that are put in order as numbers."""
    equality = op.is_equality
    return cast(b, x, ElementType.INT32) if x.type is ElementType.BOOL and not equality else x


def logical(op: BinaryFunction) -> Lowering:
    """Return an operation on truth values; numbers are true where they are not 0."""
    return maps(lambda x, y: scalar.logical(op, x, y), *_TRUTHS)


def _bits(op: BinaryFunction) -> Lowering:
    return maps(lambda x, y: scalar.bits(op, x, y), *_TERMS)


def _of_kind(truths: Lowering, numbers: Lowering) -> Lowering:
    """Return an operation that is another one on truth values."""
    return lambda c: (truths if c.type is ElementType.BOOL else numbers)(c)


# -- arithmetic


def _scaled(x: Expression, factor: float) -> Expression:
    return x if factor == 1 else scalar.multiply(x, factor)


@rounded_once
def _scaled_sum(x: Expression, y: Expression, n: float) -> Expression:
    return x + y * n


@rounded_once
def _scaled_difference(x: Expression, y: Expression, n: float) -> Expression:
    return x - y * n


def _sum(x: Expression, y: Expression, n: float) -> Expression:
    return x + y if n == 1 else _scaled_sum(x, y, n)


def _difference(x: Expression, y: Expression, n: float) -> Expression:
    return x - y if n == 1 else _scaled_difference(x, y, n)


def floor_divided(a: Expression, b: Expression) -> Expression:
    """Return the quotient rounded down; of floats without the rounding of ``a / b`` in between."""
    if not a.type.is_float:
        return floor_quotient(a, b)
    rest = scalar.remainder(a, b)
    below = scalar.logical(BinaryOp.BIT_XOR, rest < 0, b < 0)
    below = scalar.logical(BinaryOp.AND, scalar.different(rest, 0), below)
    exact = (a - rest) / b - scalar.select(below, scalar.number(1, a.type), 0)
    return scalar.select(scalar.equal(b, 0), a / b, scalar.unary(UnaryOp.ROUND, exact))


def _quotient(a: Expression, b: Expression, mode: str | None) -> Expression:
    if mode == "floor":
        return floor_divided(a, b)
    return scalar.unary(UnaryOp.TRUNC, a / b) if mode is not None and a.type.is_float else a / b


def _power(c: Call) -> Sequence[Value]:
    """Pow; a small whole exponent is products."""
    base = c.operand("self", c.type)
    known: dict[float, Function] = {
        1.0: lambda x: x,
        2.0: scalar.square,
        3.0: lambda x: scalar.square(x) * x,
    }
    if c.type.is_float:
        known |= {0.5: scalar.sqrt, -0.5: scalar.rsqrt, -1.0: lambda x: 1 / x}
    if not c.is_tensor("exponent") and c.number("exponent") in known:
        return only(mapped(c.b, known[c.number("exponent")], base))
    return only(mapped(c.b, power, base, c.operand("exponent", c.type)))


def _addc(product: Function) -> Lowering:
    """Return ``self + value * product(tensor1, tensor2)``."""
    function = rounded_once(lambda x, y, z, n: x + _scaled(product(y, z), n))
    return maps(function, SELF, operand("tensor1"), operand("tensor2"), attribute("value", 1))


def _clamp(c: Call) -> Sequence[Value]:
    x = c.operand("self", c.type)
    if c.given("min"):
        x = mapped(c.b, scalar.maximum, x, c.operand("min", c.type), hint="low")
    return only(mapped(c.b, scalar.minimum, x, c.operand("max", c.type)) if c.given("max") else x)


# -- conversions and copies


def _dropout(c: Call) -> Sequence[Value]:
    refuse_if(
        c.flag("train", True) and c.number("p", 0.5) != 0,
        "random numbers: export the module in `eval()` mode",
    )
    return only(c.input("input"))


def _like(number: object) -> Lowering:
    return op(filled, SHAPE, number, TYPE)


# -- activations with parameters


def _random_leaky(c: Call) -> Sequence[Value]:
    """``rrelu``, whose slope is the mean of its bounds where it does not train."""
    refuse_if(c.flag("training"), "random numbers: export the module in `eval()` mode")
    slope = (c.number("lower", 1 / 8) + c.number("upper", 1 / 3)) / 2
    found = mapped(c.b, lambda x: leaky(x, slope), c.input())
    return (found, c.input("noise")) if c.results == 2 else (found,)


def _elu(x: Expression, alpha: float, scale: float, inner: float) -> Expression:
    refuse_if(inner == 0, "a scale of 0")
    return elu(x, alpha, scale, 1 / inner)


@rounded_once
def _softplus(x: Expression, beta: float, threshold: float) -> Expression:
    return scalar.select(x * beta > threshold, x, softplus(x * beta) / beta)


def _slope(c: Call) -> Value:
    slope, rank = c.input("weight"), c.input().rank
    return unsqueezed(slope, [k for k in range(rank) if k != 1]) if slope.rank == 1 and rank > 1 else slope


def _replaced_to(x: Expression, bound: float, y: Expression, value: float) -> Expression:
    """Return ``x <= bound ? value : y``."""
    return scalar.select(x <= bound, scalar.number(value, y.type), y)


def _softshrink(x: Expression, bound: float) -> Expression:
    return scalar.select(x > bound, x - bound, scalar.select(x < -bound, x + bound, x * 0))


@rounded_once
def _hardsigmoid(x: Expression) -> Expression:
    return clipped(x + 3, 0, 6) / 6


_OF: dict[UnaryFunction, Sequence[str]] = {
    UnaryOp.FLOOR: ("floor",),
    UnaryOp.CEIL: ("ceil",),
    UnaryOp.TRUNC: ("trunc", "fix"),
    UnaryOp.SIN: ("sin",),
    UnaryOp.COS: ("cos",),
    UnaryOp.TAN: ("tan",),
    UnaryOp.ASIN: ("asin", "arcsin"),
    UnaryOp.ACOS: ("acos", "arccos"),
    UnaryOp.ATAN: ("atan", "arctan"),
    UnaryOp.SINH: ("sinh",),
    UnaryOp.COSH: ("cosh",),
    UnaryOp.EXP2: ("exp2",),
    UnaryOp.LOG2: ("log2",),
    UnaryOp.LOG10: ("log10",),
}


def _whole_numbers_stay(op: UnaryFunction) -> Function:
    return lambda x: scalar.unary(op, x) if x.type.is_float else x


def _round(x: Expression, decimals: int) -> Expression:
    factor: int = 10**decimals
    if factor == 1 or not x.type.is_float:
        return _whole_numbers_stay(UnaryOp.ROUND)(x)
    return scalar.unary(UnaryOp.ROUND, x * factor) / factor


def _numbers_alone(x: Expression, nan: float, high: float | None, low: float | None) -> Expression:
    """``nan_to_num``: other numbers for NaN and the infinities; these are the largest of their type."""
    if not x.type.is_float:
        return x
    largest = float(np.finfo(x.type.value).max)
    above = scalar.number(largest if high is None else float(high), x.type)
    infinite = scalar.select(x > 0, above, -largest if low is None else float(low))
    return scalar.select(is_finite(x), x, scalar.select(is_nan(x), scalar.number(nan, x.type), infinite))


def _of_sign(x: Expression, y: Expression) -> Expression:
    return scalar.select(is_negative(y), -scalar.absolute(x), scalar.absolute(x))


def _sign(x: Expression) -> Expression:
    """Return -1, 0 or 1, of NaN 0; truth values are their own."""
    if x.type is ElementType.BOOL:
        return x
    return scalar.select(is_nan(x), scalar.number(0, x.type), sign(x)) if x.type.is_float else sign(x)


def _times_log(x: Expression, y: Expression) -> Expression:
    """Return ``x * log(y)``, 0 where ``x`` is 0 and ``y`` is not NaN."""
    return scalar.select(is_nan(y), y, times_log(x, y))


def _unless_nan(function: Function, x: Expression, y: Expression) -> Expression:
    """Return a function of two numbers, the other one where one of them is NaN."""
    return scalar.select(is_nan(x), y, scalar.select(is_nan(y), x, function(x, y)))


@rounded_once
def _between(x: Expression, y: Expression, weight: Expression) -> Expression:
    """Return ``x + weight * (y - x)``, from the nearer end, so that it is exact at both."""
    near = scalar.absolute(weight) < 0.5
    return scalar.select(near, x + weight * (y - x), y - (y - x) * (1 - weight))


def _of_floats(function: Function) -> Lowering:
    """Return a property of floats, which nothing else has."""

    def lowered(c: Call) -> Sequence[Value]:
        x = c.input()
        return only(mapped(c.b, function, x) if x.type.is_float else filled(c.b, x.shape, 0, c.type))

    return lowered


def _is_finite(c: Call) -> Sequence[Value]:
    x = c.input()
    return only(mapped(c.b, is_finite, x) if x.type.is_float else filled(c.b, x.shape, 1, c.type))


def _signbit(x: Expression) -> Expression:
    return scalar.number(0, x.type) if x.type is ElementType.BOOL else is_negative(x)


_UNARY: dict[str, Function] = {
    **{name: _whole_numbers_stay(op) for op, names in _OF.items() for name in names},
    "relu": relu,
    "relu6": lambda x: clipped(x, 0, 6),
    "sigmoid": scalar.sigmoid,
    "tanh": scalar.tanh,
    "exp": scalar.exp,
    "expm1": expm1,
    "log": scalar.log,
    "log1p": log1p,
    "sqrt": scalar.sqrt,
    "rsqrt": scalar.rsqrt,
    "reciprocal": lambda x: 1 / x,
    "square": scalar.square,
    "abs": scalar.absolute,
    "neg": scalar.negate,
    "negative": scalar.negate,
    "sign": _sign,
    "sgn": _sign,
    "erf": scalar.erf,
    "erfc": lambda x: scalar.unary(UnaryOp.ERFC, x),
    "asinh": asinh,
    "acosh": acosh,
    "atanh": atanh,
    "silu": silu,
    "mish": mish,
    "hardsigmoid": _hardsigmoid,
    "hardswish": rounded_once(lambda x: x * _hardsigmoid(x)),
    "log_sigmoid": lambda x: -softplus(-x),
    "softsign": softsign,
    "selu": selu,
    "rad2deg": rounded_once(lambda x: x * (180 / math.pi)),
    "frac": lambda x: x - scalar.unary(UnaryOp.TRUNC, x),
    "deg2rad": rounded_once(lambda x: x * (math.pi / 180)),
}

_BINARY: dict[str, Function] = {
    "remainder": floor_remainder,
    "fmod": scalar.remainder,
    "atan2": lambda y, x: scalar.bits(BinaryOp.ATAN2, y, x),
    "hypot": lambda x, y: scalar.bits(BinaryOp.HYPOT, x, y),
    "floor_divide": floor_divided,
    "copysign": _of_sign,
    "ldexp": rounded_once(lambda x, n: x * scalar.unary(UnaryOp.EXP2, n)),
    "xlogy": _times_log,
    "special_xlogy": _times_log,
}

_COMPARED = {
    "eq": CompareOp.EQ,
    "ne": CompareOp.NE,
    "lt": CompareOp.LT,
    "le": CompareOp.LE,
    "gt": CompareOp.GT,
    "ge": CompareOp.GE,
}


_NOT = maps(scalar.negation, operand("self", ElementType.BOOL))
_either = maps(lambda x, y, n: scalar.logical(BinaryOp.OR, x, y) if n else x, *_TRUTHS, attribute("alpha", 1))
"""The sum of truth values."""

_PRODUCT = _of_kind(logical(BinaryOp.AND), maps(scalar.multiply, *_TERMS))
LARGER = _of_kind(logical(BinaryOp.OR), maps(scalar.maximum, *_TERMS))
SMALLER = _of_kind(logical(BinaryOp.AND), maps(scalar.minimum, *_TERMS))
_BITWISE: dict[str, Lowering] = {
    "and": _of_kind(logical(BinaryOp.AND), _bits(BinaryOp.BIT_AND)),
    "or": _of_kind(logical(BinaryOp.OR), _bits(BinaryOp.BIT_OR)),
    "xor": _of_kind(logical(BinaryOp.BIT_XOR), _bits(BinaryOp.BIT_XOR)),
    "left_shift": maps(partial(shifted, left=True), *_TERMS),
    "right_shift": maps(partial(shifted, left=False), *_TERMS),
}
_QUOTIENT = maps(_quotient, *_TERMS, attribute("rounding_mode"))
_CONVERTED = op(cast, From(lambda c: c.input("self" if "self" in c.arguments else "x")), TYPE)
_CONVERSIONS = ("to", "_to_copy", "type_as", "float", "double", "half", "long", "int", "bool")
_SAME = ("alias", "clone", "contiguous", "detach", "detach_", "lift_fresh_copy", "lift_fresh", "positive")

OPERATIONS = operations(
    {
        **{name: maps(function, SELF) for name, function in _UNARY.items()},
        **{name: maps(function, *_TERMS) for name, function in _BINARY.items()},
        "fmax": _of_kind(logical(BinaryOp.OR), maps(partial(_unless_nan, scalar.maximum), *_TERMS)),
        "fmin": _of_kind(logical(BinaryOp.AND), maps(partial(_unless_nan, scalar.minimum), *_TERMS)),
        **{name: _compared(op) for name, op in _COMPARED.items()},
        **dict.fromkeys(_SAME, view(lambda x: x, X)),
        **dict.fromkeys((*_CONVERSIONS, "convert_element_type"), _CONVERTED),
        "add": _of_kind(_either, maps(_sum, *_TERMS, attribute("alpha", 1))),
        **dict.fromkeys(("sub", "subtract"), maps(_difference, *_TERMS, attribute("alpha", 1))),
        "rsub": maps(_difference, *_TERMS[::-1], attribute("alpha", 1)),
        **dict.fromkeys(("mul", "multiply"), _PRODUCT),
        **dict.fromkeys(("div", "divide", "true_divide"), _QUOTIENT),
        "maximum": LARGER,
        "minimum": SMALLER,
        "pow": _power,
        "round": maps(_round, SELF, integer("decimals", 0)),
        "addcmul": _addc(scalar.multiply),
        "addcdiv": _addc(scalar.divide),
        "lerp": maps(_between, *map(operand, ("self", "end", "weight"))),
        **dict.fromkeys(("clamp", "clamp_min", "clamp_max", "clip"), _clamp),
        "where": maps(scalar.select, operand("condition", ElementType.BOOL), SELF, OTHER),
        "masked_fill": maps(scalar.select, operand("mask", ElementType.BOOL), operand("value"), SELF),
        **dict.fromkeys(("dropout", "feature_dropout", "alpha_dropout"), _dropout),
        **dict.fromkeys(("zeros_like", "empty_like"), _like(0)),  # empty: any number
        "ones_like": _like(1),
        "full_like": _like(attribute("fill_value")),
        "gelu": maps(lambda x, form: gelu(x, tanh=form == "tanh"), X, text("approximate", "none")),
        "leaky_relu": maps(leaky, X, number("negative_slope", 0.01)),
        **dict.fromkeys(("rrelu", "rrelu_with_noise_functional"), _random_leaky),
        "elu": maps(_elu, X, *(number(name, 1) for name in ("alpha", "scale", "input_scale"))),
        "celu": maps(lambda x, alpha: elu(x, alpha, 1.0, alpha), X, number("alpha", 1)),
        "softplus": maps(_softplus, X, number("beta", 1), number("threshold", 20)),
        "hardtanh": maps(clipped, X, attribute("min_val", -1), attribute("max_val", 1)),
        **dict.fromkeys(("_prelu_kernel", "prelu"), maps(leaky, X, From(_slope))),
        "threshold": maps(
            lambda x, bound, n: _replaced_to(x, bound, x, n), X, attribute("threshold"), attribute("value")
        ),
        "softshrink": maps(_softshrink, X, number("lambd", 0.5)),
        "hardshrink": maps(
            lambda x, bound: _replaced_to(scalar.absolute(x), bound, x, 0), X, number("lambd", 0.5)
        ),
        "logical_and": logical(BinaryOp.AND),
        "logical_or": logical(BinaryOp.OR),
        "logical_xor": logical(BinaryOp.BIT_XOR),
        "logical_not": _NOT,
        **{f"bitwise_{name}": found for name, found in _BITWISE.items()},
        **{f"__{name.replace('_', '')}__": found for name, found in _BITWISE.items() if "shift" not in name},
        "__lshift__": _BITWISE["left_shift"],
        "__rshift__": _BITWISE["right_shift"],
        "bitwise_not": _of_kind(_NOT, maps(lambda x: scalar.unary(UnaryOp.COMPLEMENT, x), SELF)),
        "nan_to_num": maps(
            _numbers_alone, SELF, number("nan", 0.0), attribute("posinf"), attribute("neginf")
        ),
        "isnan": _of_floats(is_nan),
        "isinf": _of_floats(is_infinite),
        "isfinite": _is_finite,
        "signbit": maps(_signbit, X),
        "threshold_backward": maps(
            lambda g, x, bound: _replaced_to(x, bound, g, 0), DY, X, attribute("threshold")
        ),
        "sigmoid_backward": maps(sigmoid_gradient, DY, value("output")),
        "tanh_backward": maps(tanh_gradient, DY, value("output")),
        "hardtanh_backward": maps(
            lambda g, x, low, high: scalar.select(x > low, scalar.select(x < high, g, 0), 0),
            DY,
            X,
            number("min_val", -1),
            number("max_val", 1),
        ),
    }
)
