"""Maps: arithmetic, activations and their gradients, comparisons, conversions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from polyloom.frontends.graph import scalar
from polyloom.frontends.graph.builder import Function
from polyloom.frontends.graph.context import only
from polyloom.frontends.graph.functions import (
    acosh,
    asinh,
    atanh,
    elu,
    expm1,
    floor_remainder,
    gelu,
    is_finite,
    is_infinite,
    is_nan,
    is_negative,
    leaky,
    log1p,
    relu,
    sign,
    softplus,
    times_log,
)
from polyloom.frontends.graph.operations.elementwise import cast, filled, mapped
from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.graph.values import Value, unsqueezed
from polyloom.frontends.torch.call import Call, Lowering, operations
from polyloom.frontends.torch.operations.promotion import common_type
from polyloom.ir.expressions import BinaryOp, CompareOp, Expression, UnaryOp
from polyloom.ir.scalar_functions.function import BinaryFunction, UnaryFunction
from polyloom.ir.types import ElementType


def unary(function: Function) -> Lowering:
    """Return the map of one operand, computed in the type of the result."""

    def lowering(c: Call) -> Sequence[Value]:
        return only(mapped(c.b, function, c.operand("self", c.type)))

    return lowering


def binary(function: Function) -> Lowering:
    """Return the map of ``self`` and ``other``, tensors or numbers, in the type of the result."""

    def lowering(c: Call) -> Sequence[Value]:
        if c.type is ElementType.BOOL:
            raise Refused("arithmetic of truth values")
        return only(mapped(c.b, function, c.operand("self", c.type), c.operand("other", c.type)))

    return lowering


def compared(op: CompareOp) -> Lowering:
    """Return a comparison, in the type in which the operands meet."""

    def lowering(c: Call) -> Sequence[Value]:
        kind = common_type(c, "self", "other")
        operands = [c.operand(name, kind) for name in ("self", "other")]
        if kind is ElementType.BOOL and op not in (CompareOp.EQ, CompareOp.NE):
            operands = [cast(c.b, v, ElementType.INT32) for v in operands]
        return only(mapped(c.b, lambda x, y: scalar.compare(op, x, y), *operands))

    return lowering


def logical(op: BinaryFunction) -> Lowering:
    """Return an operation on truth values; numbers are true where they are not 0."""

    def lowering(c: Call) -> Sequence[Value]:
        operands = [c.operand(name, ElementType.BOOL) for name in ("self", "other")]
        return only(mapped(c.b, lambda x, y: scalar.logical(op, x, y), *operands))

    return lowering


def bitwise(op: BinaryFunction) -> Lowering:
    """Return an operation on bits, or on truth values."""

    def lowering(c: Call) -> Sequence[Value]:
        if c.type is ElementType.BOOL:
            return logical(_OF_TRUTHS[op])(c)
        return binary(lambda x, y: scalar.bits(op, x, y))(c)

    return lowering


_OF_TRUTHS = {
    BinaryOp.BIT_AND: BinaryOp.AND,
    BinaryOp.BIT_OR: BinaryOp.OR,
    BinaryOp.BIT_XOR: BinaryOp.BIT_XOR,
}


# -- arithmetic


def _scaled_sum(sign_of: int, *, swapped: bool = False) -> Lowering:
    """Return ``self + alpha * other``, with a sign, or with the operands changed."""

    def lowering(c: Call) -> Sequence[Value]:
        if c.type is ElementType.BOOL:
            raise Refused("arithmetic of truth values")
        alpha = c.argument("alpha", 1)
        first, second = c.operand("self", c.type), c.operand("other", c.type)
        if swapped:
            first, second = second, first

        def function(x: Expression, y: Expression) -> Expression:
            term = y if alpha == 1 else scalar.multiply(y, alpha)
            return scalar.add(x, term) if sign_of > 0 else scalar.subtract(x, term)

        return only(mapped(c.b, function, first, second))

    return lowering


def _product(c: Call) -> Sequence[Value]:
    return logical(BinaryOp.AND)(c) if c.type is ElementType.BOOL else binary(scalar.multiply)(c)


def floor_divided(a: Expression, b: Expression) -> Expression:
    """Return the quotient rounded down; of floats without the rounding of ``a / b`` in between."""
    rest = floor_remainder(a, b)
    if a.type.is_float:
        exact = scalar.divide(scalar.subtract(a, rest), b)
        rounded = scalar.unary(UnaryOp.ROUND, exact)
        by_zero = scalar.compare(CompareOp.EQ, b, 0)
        return scalar.select(by_zero, scalar.divide(a, b), rounded)
    return scalar.divide(scalar.subtract(a, rest), b)


def _quotient(c: Call) -> Sequence[Value]:
    mode = c.argument("rounding_mode")
    if mode is None:
        return binary(scalar.divide)(c)
    if mode == "floor":
        return binary(floor_divided)(c)

    def truncated(a: Expression, b: Expression) -> Expression:
        quotient = scalar.divide(a, b)
        return scalar.unary(UnaryOp.TRUNC, quotient) if a.type.is_float else quotient

    return binary(truncated)(c)


def _power(c: Call) -> Sequence[Value]:
    """Pow; a small whole exponent is products, others of integers go by float64."""
    kind = c.type
    base = c.operand("self", kind)
    if not c.is_tensor("exponent"):
        exponent = c.number("exponent")
        known: dict[float, Function] = {
            1.0: lambda x: x,
            2.0: scalar.square,
            3.0: lambda x: scalar.multiply(scalar.square(x), x),
        }
        if kind.is_float:
            known |= {0.5: scalar.sqrt, -0.5: scalar.rsqrt, -1.0: lambda x: scalar.divide(1, x)}
        if exponent in known:
            return only(mapped(c.b, known[exponent], base))

    def function(x: Expression, y: Expression) -> Expression:
        if kind.is_float:
            return scalar.power(x, y)
        wide = (scalar.convert(v, ElementType.FLOAT64) for v in (x, y))
        return scalar.convert(scalar.power(*wide), kind)

    return only(mapped(c.b, function, base, c.operand("exponent", kind)))


def _addc(product: Function) -> Lowering:
    """Return ``self + value * product(tensor1, tensor2)``."""

    def lowering(c: Call) -> Sequence[Value]:
        value = c.argument("value", 1)

        def function(x: Expression, y: Expression, z: Expression) -> Expression:
            term = product(y, z)
            return scalar.add(x, term if value == 1 else scalar.multiply(term, value))

        operands = [c.operand(name, c.type) for name in ("self", "tensor1", "tensor2")]
        return only(mapped(c.b, function, *operands))

    return lowering


def _lerp(c: Call) -> Sequence[Value]:
    def function(x: Expression, y: Expression, w: Expression) -> Expression:
        return scalar.add(x, scalar.multiply(w, scalar.subtract(y, x)))

    return only(mapped(c.b, function, *(c.operand(n, c.type) for n in ("self", "end", "weight"))))


def _clamp(c: Call) -> Sequence[Value]:
    x = c.operand("self", c.type)
    if c.given("min"):
        x = mapped(c.b, scalar.maximum, x, c.operand("min", c.type), hint="low")
    return only(mapped(c.b, scalar.minimum, x, c.operand("max", c.type)) if c.given("max") else x)


def _where(c: Call) -> Sequence[Value]:
    condition = c.operand("condition", ElementType.BOOL)
    then, otherwise = c.operand("self", c.type), c.operand("other", c.type)
    return only(mapped(c.b, scalar.select, condition, then, otherwise))


def _masked_fill(c: Call) -> Sequence[Value]:
    mask, value = c.operand("mask", ElementType.BOOL), c.operand("value", c.type)
    x = c.operand("self", c.type)
    return only(mapped(c.b, lambda m, v, y: scalar.select(m, v, y), mask, value, x))


# -- conversions and copies


def _converted(c: Call) -> Sequence[Value]:
    name = "self" if "self" in c.arguments else "x"
    return only(cast(c.b, c.tensor(name), c.type))


def _dropout(c: Call) -> Sequence[Value]:
    if c.flag("train", True) and c.number("p", 0.5) != 0:
        raise Refused("random numbers: export the module in `eval()` mode")
    return only(c.tensor("input"))


def _like(number: float | None) -> Lowering:
    def lowering(c: Call) -> Sequence[Value]:
        value = c.argument("fill_value") if number is None else number
        return only(filled(c.b, c.tensor().shape, value, c.type))

    return lowering


# -- activations with parameters


def _gelu(c: Call) -> Sequence[Value]:
    form = c.text("approximate", "none")
    return only(mapped(c.b, lambda x: gelu(x, tanh=form == "tanh"), c.tensor()))


def _leaky(c: Call) -> Sequence[Value]:
    slope = c.number("negative_slope", 0.01)
    return only(mapped(c.b, lambda x: leaky(x, slope), c.tensor()))


def _random_leaky(c: Call) -> Sequence[Value]:
    """``rrelu``, whose slope is the mean of its bounds where it does not train."""
    if c.flag("training"):
        raise Refused("random numbers: export the module in `eval()` mode")
    slope = (c.number("lower", 1 / 8) + c.number("upper", 1 / 3)) / 2
    found = mapped(c.b, lambda x: leaky(x, slope), c.tensor())
    return (found, c.tensor("noise")) if c.results == 2 else (found,)


def _elu(c: Call) -> Sequence[Value]:
    alpha, scale, inner = c.number("alpha", 1), c.number("scale", 1), c.number("input_scale", 1)
    if inner == 0:
        raise Refused("a scale of 0")
    return only(mapped(c.b, lambda x: elu(x, alpha, scale, 1 / inner), c.tensor()))


def _softplus(c: Call) -> Sequence[Value]:
    beta, threshold = c.number("beta", 1), c.number("threshold", 20)

    def function(x: Expression) -> Expression:
        wide = scalar.multiply(x, beta)
        soft = scalar.divide(softplus(wide), beta)
        return scalar.select(scalar.compare(CompareOp.GT, wide, threshold), x, soft)

    return only(mapped(c.b, function, c.tensor()))


def _hardtanh(c: Call) -> Sequence[Value]:
    low, high = c.argument("min_val", -1), c.argument("max_val", 1)
    return only(mapped(c.b, lambda x: scalar.minimum(scalar.maximum(x, low), high), c.tensor()))


def _prelu(c: Call) -> Sequence[Value]:
    x, slope = c.tensor(), c.tensor("weight")
    if slope.rank == 1 and x.rank > 1:
        slope = unsqueezed(slope, [k for k in range(x.rank) if k != 1])
    return only(mapped(c.b, leaky, x, slope))


def _threshold(c: Call) -> Sequence[Value]:
    bound, value = c.argument("threshold"), c.argument("value")

    def function(x: Expression) -> Expression:
        return scalar.select(scalar.compare(CompareOp.LE, x, bound), scalar.number(value, x.type), x)

    return only(mapped(c.b, function, c.tensor()))


def _softshrink(c: Call) -> Sequence[Value]:
    bound = c.number("lambd", 0.5)

    def function(x: Expression) -> Expression:
        low = scalar.select(
            scalar.compare(CompareOp.LT, x, -bound), scalar.add(x, bound), scalar.multiply(x, 0)
        )
        return scalar.select(scalar.compare(CompareOp.GT, x, bound), scalar.subtract(x, bound), low)

    return only(mapped(c.b, function, c.tensor()))


def _hardshrink(c: Call) -> Sequence[Value]:
    bound = c.number("lambd", 0.5)

    def function(x: Expression) -> Expression:
        inside = scalar.compare(CompareOp.LE, scalar.absolute(x), bound)
        return scalar.select(inside, scalar.number(0, x.type), x)

    return only(mapped(c.b, function, c.tensor()))


def _silu(x: Expression) -> Expression:
    return scalar.multiply(x, scalar.sigmoid(x))


def _mish(x: Expression) -> Expression:
    return scalar.multiply(x, scalar.tanh(softplus(x)))


def _hardsigmoid(x: Expression) -> Expression:
    return scalar.divide(scalar.minimum(scalar.maximum(scalar.add(x, 3), 0), 6), 6)


def _hardswish(x: Expression) -> Expression:
    return scalar.multiply(x, _hardsigmoid(x))


def _log_sigmoid(x: Expression) -> Expression:
    return scalar.negate(softplus(scalar.negate(x)))


def _softsign(x: Expression) -> Expression:
    return scalar.divide(x, scalar.add(scalar.absolute(x), 1))


# -- gradients of maps, as autograd has them


def _of_gradient(second: str, function: Function) -> Lowering:
    """Return ``function(grad_output, y)``."""

    def lowering(c: Call) -> Sequence[Value]:
        return only(mapped(c.b, function, c.tensor("grad_output"), c.tensor(second)))

    return lowering


def _threshold_gradient(c: Call) -> Sequence[Value]:
    bound = c.argument("threshold")

    def function(g: Expression, x: Expression) -> Expression:
        return scalar.select(scalar.compare(CompareOp.LE, x, bound), scalar.number(0, g.type), g)

    return only(mapped(c.b, function, c.tensor("grad_output"), c.tensor()))


def _sigmoid_gradient(g: Expression, y: Expression) -> Expression:
    return scalar.multiply(scalar.multiply(g, y), scalar.subtract(1, y))


def _tanh_gradient(g: Expression, y: Expression) -> Expression:
    return scalar.multiply(g, scalar.subtract(1, scalar.square(y)))


def _in_range(name: str, low: float, high: float) -> Lowering:
    """Return the gradient of a clamp: ``grad_output`` strictly between two bounds, else 0."""

    def lowering(c: Call) -> Sequence[Value]:
        least, most = c.number("min_val", low), c.number("max_val", high)

        def function(g: Expression, x: Expression) -> Expression:
            below = scalar.select(scalar.compare(CompareOp.LT, x, most), g, 0)
            return scalar.select(scalar.compare(CompareOp.GT, x, least), below, 0)

        return only(mapped(c.b, function, c.tensor("grad_output"), c.tensor(name)))

    return lowering


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
    def function(x: Expression) -> Expression:
        return scalar.unary(op, x) if x.type.is_float else x

    return function


def _round(c: Call) -> Sequence[Value]:
    factor = 10 ** c.integer("decimals", 0)

    def rounded(x: Expression) -> Expression:
        if factor == 1 or not x.type.is_float:
            return _whole_numbers_stay(UnaryOp.ROUND)(x)
        return scalar.divide(scalar.unary(UnaryOp.ROUND, scalar.multiply(x, factor)), factor)

    return unary(rounded)(c)


def _numbers_alone(c: Call) -> Sequence[Value]:
    """``nan_to_num``: other numbers for NaN and the infinities; these are the largest of their type."""
    largest = float(np.finfo(c.type.value).max) if c.type.is_float else 0.0
    nan, high, low = (c.number(n, d) for n, d in (("nan", 0.0), ("posinf", largest), ("neginf", -largest)))

    def function(x: Expression) -> Expression:
        if not x.type.is_float:
            return x
        infinite = scalar.select(scalar.compare(CompareOp.GT, x, 0), scalar.number(high, x.type), low)
        other = scalar.select(is_nan(x), scalar.number(nan, x.type), infinite)
        return scalar.select(is_finite(x), x, other)

    return unary(function)(c)


def _of_sign(x: Expression, y: Expression) -> Expression:
    size = scalar.absolute(x)
    return scalar.select(is_negative(y), scalar.negate(size), size)


def _shifted(op: BinaryFunction) -> Lowering:
    return binary(lambda x, n: scalar.bits(op, x, n))


_UNARY: dict[str, Function] = {
    **{name: _whole_numbers_stay(op) for op, names in _OF.items() for name in names},
    "relu": relu,
    "relu6": lambda x: scalar.minimum(scalar.maximum(x, 0), 6),
    "sigmoid": scalar.sigmoid,
    "tanh": scalar.tanh,
    "exp": scalar.exp,
    "expm1": expm1,
    "log": scalar.log,
    "log1p": log1p,
    "sqrt": scalar.sqrt,
    "rsqrt": scalar.rsqrt,
    "reciprocal": lambda x: scalar.divide(1, x),
    "square": scalar.square,
    "abs": scalar.absolute,
    "neg": scalar.negate,
    "negative": scalar.negate,
    "sign": sign,
    "sgn": sign,
    "erf": scalar.erf,
    "erfc": lambda x: scalar.subtract(1, scalar.erf(x)),
    "asinh": asinh,
    "acosh": acosh,
    "atanh": atanh,
    "silu": _silu,
    "mish": _mish,
    "hardsigmoid": _hardsigmoid,
    "hardswish": _hardswish,
    "log_sigmoid": _log_sigmoid,
    "softsign": _softsign,
    "selu": lambda x: elu(x, 1.6732632423543772, 1.0507009873554805),
    "rad2deg": lambda x: scalar.multiply(x, 180 / math.pi),
    "frac": lambda x: scalar.subtract(x, scalar.unary(UnaryOp.TRUNC, x)),
    "deg2rad": lambda x: scalar.multiply(x, math.pi / 180),
}

_BINARY: dict[str, Function] = {
    "maximum": scalar.maximum,
    "minimum": scalar.minimum,
    "remainder": floor_remainder,
    "fmod": scalar.remainder,
    "atan2": lambda y, x: scalar.bits(BinaryOp.ATAN2, y, x),
    "hypot": lambda x, y: scalar.bits(BinaryOp.HYPOT, x, y),
    "floor_divide": floor_divided,
    "copysign": _of_sign,
    "xlogy": times_log,
    "special_xlogy": times_log,
}

_COMPARED = {
    "eq": CompareOp.EQ,
    "ne": CompareOp.NE,
    "lt": CompareOp.LT,
    "le": CompareOp.LE,
    "gt": CompareOp.GT,
    "ge": CompareOp.GE,
}


def _tested(function: Callable[[Expression], Expression]) -> Lowering:
    """Return a question about each element."""
    return lambda c: only(mapped(c.b, function, c.tensor()))


def _not(c: Call) -> Sequence[Value]:
    return only(mapped(c.b, scalar.negation, c.operand("self", ElementType.BOOL)))


def _bitwise_not(c: Call) -> Sequence[Value]:
    if c.type is ElementType.BOOL:
        return _not(c)
    return unary(lambda x: scalar.unary(UnaryOp.COMPLEMENT, x))(c)


_SAME = ("alias", "clone", "contiguous", "detach", "detach_", "lift_fresh_copy", "lift_fresh", "positive")

OPERATIONS = operations(
    {
        **{name: unary(function) for name, function in _UNARY.items()},
        **{name: binary(function) for name, function in _BINARY.items()},
        **{name: compared(op) for name, op in _COMPARED.items()},
        **{name: lambda c: only(c.tensor()) for name in _SAME},
        **dict.fromkeys(
            ("to", "_to_copy", "type_as", "float", "double", "half", "long", "int", "bool"), _converted
        ),
        "convert_element_type": _converted,
        "add": _scaled_sum(1),
        "sub": _scaled_sum(-1),
        "subtract": _scaled_sum(-1),
        "rsub": _scaled_sum(-1, swapped=True),
        "mul": _product,
        "multiply": _product,
        "div": _quotient,
        "divide": _quotient,
        "true_divide": _quotient,
        "pow": _power,
        "round": _round,
        "addcmul": _addc(scalar.multiply),
        "addcdiv": _addc(scalar.divide),
        "lerp": _lerp,
        "clamp": _clamp,
        "clamp_min": _clamp,
        "clamp_max": _clamp,
        "clip": _clamp,
        "where": _where,
        "masked_fill": _masked_fill,
        "dropout": _dropout,
        "feature_dropout": _dropout,
        "alpha_dropout": _dropout,
        "zeros_like": _like(0),
        "empty_like": _like(0),  # any number
        "ones_like": _like(1),
        "full_like": _like(None),
        "gelu": _gelu,
        "leaky_relu": _leaky,
        **dict.fromkeys(("rrelu", "rrelu_with_noise_functional"), _random_leaky),
        "elu": _elu,
        "celu": lambda c: only(mapped(c.b, lambda x: _celu(x, c.number("alpha", 1)), c.tensor())),
        "softplus": _softplus,
        "hardtanh": _hardtanh,
        "_prelu_kernel": _prelu,
        "prelu": _prelu,
        "threshold": _threshold,
        "softshrink": _softshrink,
        "hardshrink": _hardshrink,
        "logical_and": logical(BinaryOp.AND),
        "logical_or": logical(BinaryOp.OR),
        "logical_xor": logical(BinaryOp.BIT_XOR),
        "logical_not": _not,
        **dict.fromkeys(("bitwise_and", "__and__"), bitwise(BinaryOp.BIT_AND)),
        **dict.fromkeys(("bitwise_or", "__or__"), bitwise(BinaryOp.BIT_OR)),
        **dict.fromkeys(("bitwise_xor", "__xor__"), bitwise(BinaryOp.BIT_XOR)),
        "bitwise_not": _bitwise_not,
        **dict.fromkeys(("bitwise_left_shift", "__lshift__"), _shifted(BinaryOp.SHIFT_LEFT)),
        **dict.fromkeys(("bitwise_right_shift", "__rshift__"), _shifted(BinaryOp.SHIFT_RIGHT)),
        "nan_to_num": _numbers_alone,
        "isnan": _tested(is_nan),
        "isinf": _tested(is_infinite),
        "isfinite": _tested(is_finite),
        "signbit": _tested(is_negative),
        "threshold_backward": _threshold_gradient,
        "sigmoid_backward": _of_gradient("output", _sigmoid_gradient),
        "tanh_backward": _of_gradient("output", _tanh_gradient),
        "hardtanh_backward": _in_range("self", -1, 1),
    }
)


def _celu(x: Expression, alpha: float) -> Expression:
    return elu(x, alpha, 1.0, alpha)
