"""Maps: arithmetic, activations and their gradients, comparisons, conversions."""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.frontends.graph.core import (
    NAMED_ALIKE,
    SELU_ALPHA,
    SELU_SCALE,
    SHAPE,
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
    floor_quotient,
    floor_remainder,
    is_finite,
    is_infinite,
    is_nan,
    leaky,
    log1p,
    logical,
    maps,
    number,
    of_integers,
    only,
    op,
    power,
    refuse_if,
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
    unless_zero,
    unsqueezed,
    value,
)


def _floor_divide(a: Expression, b: Expression) -> Expression:
    """Return the quotient rounded down."""
    return scalar.unary(UnaryOp.FLOOR, a / b) if a.type.is_float else floor_quotient(a, b)


def _positive(x: Expression, then: Expression, otherwise: Expression | float) -> Expression:
    return scalar.select(x > 0, then, otherwise)


def element_type_of(c: Context, name: str, default: ElementType | None = None) -> ElementType:
    """Return an attribute that is an element type. Raises ``Refused``."""
    found = c.attribute(name, default)
    if not isinstance(found, ElementType):
        raise Refused(f"elements of type {found or 'that is not stated'}")
    return found


def _condition(c: Context) -> Value:
    """Return the condition of Select, of the operands' shape, or along their first axis."""
    condition, rank = c.input(), c.input(1).rank
    return unsqueezed(condition, list(range(1, rank))) if condition.rank == 1 and rank > 1 else condition


def _shaped(c: Context) -> Sequence[Value]:
    """EnsureShape, and PlaceholderWithDefault: its own value; the shape has to be true."""
    x, stated = c.input(), c.attribute("shape")
    refuse_if(
        stated is not None and not agree(stated, x.shape),
        f"its operand has the shape {list(x.shape)}, not {stated and list(stated)}",
    )
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
    "Erfc": lambda x: scalar.unary(UnaryOp.ERFC, x),
    "Reciprocal": lambda x: 1 / x,
    "Inv": lambda x: 1 / x,
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

# Gradients of maps are of what goes in or comes out, as TensorFlow has it, and dy.
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
    "DivNoNan": lambda a, b: unless_zero(b, a / b),
    "MulNoNan": lambda a, b: unless_zero(b, a * b),
    "Xlogy": times_log,
    "Maximum": scalar.maximum,
    "Minimum": scalar.minimum,
    "SquaredDifference": lambda a, b: scalar.square(a - b),
    "Atan2": lambda y, x: scalar.bits(BinaryOp.ATAN2, y, x),
    "Xdivy": lambda a, b: unless_zero(a, a / b),
    "Xlog1py": lambda a, b: unless_zero(a, a * log1p(b)),
    "LeftShift": lambda a, n: scalar.bits(BinaryOp.SHIFT_LEFT, a, n),
    "RightShift": lambda a, n: scalar.bits(BinaryOp.SHIFT_RIGHT, a, n),
    "ReluGrad": lambda dy, x: _positive(x, dy, 0),
    "Relu6Grad": lambda dy, x: _positive(x, scalar.select(x < 6, dy, 0), 0),
    "EluGrad": lambda dy, y: _positive(y, dy, dy * (y + 1)),
    "SeluGrad": lambda dy, y: _positive(y, dy * SELU_SCALE, dy * (y + SELU_SCALE * SELU_ALPHA)),
    "SoftplusGrad": lambda dy, x: dy * scalar.sigmoid(x),
    "SoftsignGrad": lambda dy, x: dy / scalar.square(scalar.absolute(x) + 1),
    "TanhGrad": lambda y, dy: tanh_gradient(dy, y),
    "SigmoidGrad": lambda y, dy: sigmoid_gradient(dy, y),
    "RsqrtGrad": lambda y, dy: dy * -0.5 * (scalar.square(y) * y),
    "SqrtGrad": lambda y, dy: dy * 0.5 / y,
    **dict.fromkeys(("ReciprocalGrad", "InvGrad"), lambda y, dy: -dy * scalar.square(y)),
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
    "Pow": binary(power),
    "LeakyRelu": maps(leaky, X, number("alpha", 0.2)),
    "LeakyReluGrad": maps(
        lambda dy, x, slope: _positive(x, dy, dy * slope), X, value(1), number("alpha", 0.2)
    ),
    "Cast": op(cast, X, From(lambda c: element_type_of(c, "DstT"))),
    "Select": maps(scalar.select, From(_condition), value(1), value(2)),
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
        lambda c: c.everything,
    ),
    **dict.fromkeys(
        ("RandomUniform", "RandomStandardNormal", "TruncatedNormal", "StatelessRandomUniformV2"),
        refused("it chooses at random"),
    ),
}

__all__ = ["OPERATIONS", "element_type_of"]
