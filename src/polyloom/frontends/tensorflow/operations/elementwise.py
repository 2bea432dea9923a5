"""Maps: arithmetic, activations and their gradients, comparisons, conversions."""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.frontends.graph.core import (
    NAMED_ALIKE,
    SELU_ALPHA,
    SELU_SCALE,
    SHAPE,
    Anything,
    BinaryOp,
    CompareOp,
    Context,
    ElementType,
    Expression,
    From,
    Function,
    Refused,
    Table,
    UnaryOp,
    Value,
    X,
    acosh,
    agree,
    asinh,
    atanh,
    binary,
    cast,
    clipped,
    compared,
    elu,
    expm1,
    filled,
    floor_remainder,
    is_finite,
    is_infinite,
    is_nan,
    leaky,
    log1p,
    logical,
    mapped,
    maps,
    number,
    of_integers,
    only,
    op,
    refused,
    relu,
    scalar,
    selu,
    sigmoid_gradient,
    sign,
    softplus,
    softsign,
    tanh_gradient,
    times_log,
    unary,
    unsqueezed,
    value,
)


def _floor_divide(a: Expression, b: Expression) -> Expression:
    """Return the quotient rounded down."""
    if a.type.is_float:
        return scalar.unary(UnaryOp.FLOOR, scalar.divide(a, b))
    return scalar.divide(scalar.subtract(a, floor_remainder(a, b)), b)


def _divide_no_nan(a: Expression, b: Expression) -> Expression:
    return scalar.select(scalar.compare(CompareOp.EQ, b, 0), scalar.number(0, a.type), scalar.divide(a, b))


def _multiply_no_nan(a: Expression, b: Expression) -> Expression:
    return scalar.select(scalar.compare(CompareOp.EQ, b, 0), scalar.number(0, a.type), scalar.multiply(a, b))


def _over(a: Expression, b: Expression) -> Expression:
    """Xdivy: 0 where ``a`` is 0."""
    return scalar.select(scalar.compare(CompareOp.EQ, a, 0), scalar.number(0, a.type), scalar.divide(a, b))


def _times_log1p(a: Expression, b: Expression) -> Expression:
    """Xlog1py: 0 where ``a`` is 0."""
    product = scalar.multiply(a, log1p(b))
    return scalar.select(scalar.compare(CompareOp.EQ, a, 0), scalar.number(0, a.type), product)


def _squared_difference(a: Expression, b: Expression) -> Expression:
    return scalar.square(scalar.subtract(a, b))


def _power(c: Context) -> Sequence[Value]:
    """Pow; of integers by float64, which holds every result below 2^53."""
    kind = c.input().type
    if kind.is_float:
        return binary(scalar.power)(c)

    def function(a: Expression, b: Expression) -> Expression:
        wide = (scalar.convert(x, ElementType.FLOAT64) for x in (a, b))
        return scalar.convert(scalar.power(*wide), kind)

    return binary(function)(c)


# -- gradients of maps: of what goes in or comes out (as TensorFlow has it), and dy


def _positive(x: Expression, then: Expression, otherwise: Expression | float) -> Expression:
    return scalar.select(scalar.compare(CompareOp.GT, x, 0), then, otherwise)


def _relu6_gradient(dy: Expression, x: Expression) -> Expression:
    below = scalar.compare(CompareOp.LT, x, 6)
    return _positive(x, scalar.select(below, dy, 0), 0)


def _elu_gradient(dy: Expression, y: Expression) -> Expression:
    return _positive(y, dy, scalar.multiply(dy, scalar.add(y, 1)))


def _selu_gradient(dy: Expression, y: Expression) -> Expression:
    negative = scalar.multiply(dy, scalar.add(y, SELU_SCALE * SELU_ALPHA))
    return _positive(y, scalar.multiply(dy, SELU_SCALE), negative)


def _softsign_gradient(dy: Expression, x: Expression) -> Expression:
    return scalar.divide(dy, scalar.square(scalar.add(scalar.absolute(x), 1)))


def _rsqrt_gradient(y: Expression, dy: Expression) -> Expression:
    return scalar.multiply(scalar.multiply(dy, -0.5), scalar.multiply(scalar.square(y), y))


def _sqrt_gradient(y: Expression, dy: Expression) -> Expression:
    return scalar.divide(scalar.multiply(dy, 0.5), y)


def _reciprocal_gradient(y: Expression, dy: Expression) -> Expression:
    return scalar.multiply(scalar.negate(dy), scalar.square(y))


# -- operations with attributes, or of several types


def _leaky_relu_gradient(c: Context) -> Sequence[Value]:
    slope = c.number("alpha", 0.2)
    function = lambda dy, x: _positive(x, dy, scalar.multiply(dy, slope))  # noqa: E731
    return only(mapped(c.b, function, c.input(0), c.input(1)))


def element_type_of(c: Context, name: str, default: ElementType | None = None) -> ElementType:
    """Return an attribute that is an element type. Raises ``Refused``."""
    found = c.attribute(name, default)
    if not isinstance(found, ElementType):
        raise Refused(f"elements of type {found or 'that is not stated'}")
    return found


def _select(c: Context) -> Sequence[Value]:
    """Select: the condition is of the operands' shape, or chooses along their first axis."""
    condition, then, otherwise = c.input(0), c.input(1), c.input(2)
    if condition.rank == 1 and then.rank > 1:
        condition = unsqueezed(condition, list(range(1, then.rank)))
    return only(mapped(c.b, scalar.select, condition, then, otherwise))


def _identity(c: Context) -> Sequence[Anything]:
    return c.everything


def _shaped(c: Context) -> Sequence[Value]:
    """EnsureShape, and PlaceholderWithDefault: its own value; the shape has to be true."""
    x, stated = c.input(), c.attribute("shape")
    if stated is not None and not agree(stated, x.shape):
        raise Refused(f"its operand has the shape {list(x.shape)}, not {list(stated)}")
    return only(x)


_UNARY: dict[str, Function] = {
    "Abs": scalar.absolute,
    "Neg": scalar.negate,
    "Exp": scalar.exp,
    "Expm1": expm1,
    "Log": scalar.log,
    "Log1p": log1p,
    "Sqrt": scalar.sqrt,
    "Rsqrt": scalar.rsqrt,
    "Square": scalar.square,
    "Tanh": scalar.tanh,
    "Sigmoid": scalar.sigmoid,
    "Erf": scalar.erf,
    "Erfc": lambda x: scalar.subtract(1, scalar.erf(x)),
    "Reciprocal": lambda x: scalar.divide(1, x),
    "Inv": lambda x: scalar.divide(1, x),
    "Sign": sign,
    "IsNan": is_nan,
    "IsInf": is_infinite,
    "IsFinite": is_finite,
    "Relu": relu,
    "Relu6": lambda x: scalar.minimum(relu(x), 6),
    "Elu": lambda x: elu(x, 1.0),
    "Selu": selu,
    "Softplus": softplus,
    "Softsign": softsign,
    "Asinh": asinh,
    "Acosh": acosh,
    "Atanh": atanh,
    "LogicalNot": lambda x: scalar.unary(UnaryOp.NOT, x),
    "Invert": lambda x: scalar.unary(UnaryOp.COMPLEMENT, x),
    "Rint": lambda x: scalar.unary(UnaryOp.ROUND, x),
    **NAMED_ALIKE,
}

_BINARY: dict[str, Function] = {
    "Add": scalar.add,
    "AddV2": scalar.add,
    "Sub": scalar.subtract,
    "Mul": scalar.multiply,
    "Div": scalar.divide,
    "RealDiv": scalar.divide,
    "TruncateDiv": scalar.divide,
    "FloorDiv": _floor_divide,
    "FloorMod": floor_remainder,
    "Mod": scalar.remainder,
    "TruncateMod": scalar.remainder,
    "DivNoNan": _divide_no_nan,
    "MulNoNan": _multiply_no_nan,
    "Xlogy": times_log,
    "Maximum": scalar.maximum,
    "Minimum": scalar.minimum,
    "SquaredDifference": _squared_difference,
    "Atan2": lambda y, x: scalar.bits(BinaryOp.ATAN2, y, x),
    "Xdivy": _over,
    "Xlog1py": _times_log1p,
    "LeftShift": lambda a, n: scalar.bits(BinaryOp.SHIFT_LEFT, a, n),
    "RightShift": lambda a, n: scalar.bits(BinaryOp.SHIFT_RIGHT, a, n),
    "ReluGrad": lambda dy, x: _positive(x, dy, 0),
    "Relu6Grad": _relu6_gradient,
    "EluGrad": _elu_gradient,
    "SeluGrad": _selu_gradient,
    "SoftplusGrad": lambda dy, x: scalar.multiply(dy, scalar.sigmoid(x)),
    "SoftsignGrad": _softsign_gradient,
    "TanhGrad": lambda y, dy: tanh_gradient(dy, y),
    "SigmoidGrad": lambda y, dy: sigmoid_gradient(dy, y),
    "RsqrtGrad": _rsqrt_gradient,
    "SqrtGrad": _sqrt_gradient,
    "ReciprocalGrad": _reciprocal_gradient,
    "InvGrad": _reciprocal_gradient,
}

_COMPARISONS = {
    "Equal": CompareOp.EQ,
    "NotEqual": CompareOp.NE,
    "Less": CompareOp.LT,
    "LessEqual": CompareOp.LE,
    "Greater": CompareOp.GT,
    "GreaterEqual": CompareOp.GE,
}


OPERATIONS: Table = {
    **{name: unary(function) for name, function in _UNARY.items()},
    **{name: binary(function) for name, function in _BINARY.items()},
    **{name: compared(op) for name, op in _COMPARISONS.items()},
    "LogicalAnd": logical(BinaryOp.AND),
    "LogicalOr": logical(BinaryOp.OR),
    "BitwiseAnd": of_integers(BinaryOp.BIT_AND),
    "BitwiseOr": of_integers(BinaryOp.BIT_OR),
    "BitwiseXor": of_integers(BinaryOp.BIT_XOR),
    "Pow": _power,
    "LeakyRelu": maps(leaky, X, number("alpha", 0.2)),
    "LeakyReluGrad": _leaky_relu_gradient,
    "Cast": op(cast, X, From(lambda c: element_type_of(c, "DstT"))),
    "Select": _select,
    "SelectV2": maps(scalar.select, *map(value, range(3))),
    "ClipByValue": maps(clipped, *map(value, range(3))),
    "OnesLike": op(filled, SHAPE, 1, From(lambda c: c.input().type)),
    **dict.fromkeys(("EnsureShape", "PlaceholderWithDefault"), _shaped),
    **dict.fromkeys(
        (
            "Identity",
            "IdentityN",
            "Snapshot",
            "StopGradient",
            "PreventGradient",
            "CheckNumerics",
            "ReadVariableOp",
        ),
        _identity,
    ),
    **dict.fromkeys(
        ("RandomUniform", "RandomStandardNormal", "TruncatedNormal", "StatelessRandomUniformV2"),
        refused("it chooses at random"),
    ),
}

__all__ = ["OPERATIONS", "element_type_of"]
