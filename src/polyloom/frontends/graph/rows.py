"""Rows of a framework's table: a core operation, and where a node has each of its arguments.

"LeakyRelu": maps(leaky, X, number("alpha", 0.01))
"CumSum":    op(cumulative, X, at("dim"), combine=Combine.ADD)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NoReturn

from polyloom.frontends.graph import scalar
from polyloom.frontends.graph.builder import Builder, Function
from polyloom.frontends.graph.context import Context, Key
from polyloom.frontends.graph.operations.elementwise import mapped
from polyloom.frontends.graph.refusal import Refused, refuse_if
from polyloom.frontends.graph.values import Anything, Value, unsqueezed
from polyloom.ir.expressions import CompareOp, Expression
from polyloom.ir.scalar_functions.function import BinaryFunction


@dataclass(frozen=True)
class From:
    """An argument that is read from a node. What it reads raises ``Refused``."""

    read: Callable[[Any], Any]


@dataclass(frozen=True)
class Op:
    """``core(builder, *arguments, **keywords)``; arguments that are no ``From`` are what they are."""

    core: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, c: Context) -> Sequence[Any]:
        """Lower a node."""
        given = [_found(c, a) for a in self.arguments]
        made = self.core(c.b, *given, **{name: _found(c, a) for name, a in self.keywords.items()})
        return (made,) if isinstance(made, Value) else made


def _found(c: Context, argument: Any) -> Any:
    return argument.read(c) if isinstance(argument, From) else argument


def op(core: Callable[..., Anything | Sequence[Anything]], *arguments: Any, **keywords: Any) -> Op:
    """Return the row of a core operation, a function of a builder and more."""
    return Op(core, arguments, keywords)


def view(function: Callable[..., Value | Sequence[Value]], *arguments: Any) -> Op:
    """Return the row of a view, which needs no builder."""
    return Op(lambda b, *given: function(*given), arguments)


def maps(function: Function, *arguments: Any) -> Op:
    """Return the row of a scalar function; tensors broadcast, other arguments it gets as they are."""
    return Op(mapped, (function, *arguments))


def value(key: Key) -> From:
    """Return an input that must be there."""
    return From(lambda c: c.input(key))


X = From(lambda c: c.input())
"""The first input."""

NODE = From(lambda c: c)
"""The node with all that it has, for what reads more of it."""

INPUTS = From(lambda c: c.inputs)
"""All inputs."""

SHAPE = From(lambda c: c.input().shape)
"""The shape of the first input."""

LAST = From(lambda c: [c.input().rank - 1])
"""The last axis of the first input, as a list."""

MATRICES = From(lambda c: c.input().shape[-2:])
"""Rows and columns of the first input."""


def optional(key: Key) -> From:
    """Return an input, or None."""
    return From(lambda c: c.optional(key))


def attribute(name: str, default: Any = None) -> From:
    """Return an attribute as it is."""
    return From(lambda c: c.attribute(name, default))


def integer(name: str, default: int | None = None) -> From:
    """Return an attribute that is an integer."""
    return From(lambda c: c.integer(name, default))


def number(name: str, default: float | None = None) -> From:
    """Return an attribute that is a number."""
    return From(lambda c: c.number(name, default))


def flag(name: str, default: bool = False) -> From:
    """Return an attribute that is a truth value."""
    return From(lambda c: c.flag(name, default))


def text(name: str, default: str = "") -> From:
    """Return an attribute that is a text."""
    return From(lambda c: c.text(name, default))


def numbers(name: str, default: Sequence[int] | None = None) -> From:
    """Return an attribute that is a list of integers."""
    return From(lambda c: c.numbers(name, default))


def at(name: str, default: int | None = None) -> From:
    """Return an attribute that is an axis of the first input."""
    return From(lambda c: c.axis(name, c.input().rank, default))


def whole(position: int, what: str, default: int | None = None) -> From:
    """Return an input that is one known integer."""
    return From(lambda c: c.whole(position, what, default))


def one(position: int, what: str) -> From:
    """Return an input that is one known number."""
    return From(lambda c: c.one(position, what))


def integers(position: int, what: str) -> From:
    """Return an input that is a list of known integers."""
    return From(lambda c: c.integers(position, what))


# -- maps of ONNX and TensorFlow, whose operands have one type


def unary(function: Function) -> Op:
    """Return the map of the first input."""
    return maps(function, X)


def binary(function: Function) -> Op:
    """Return the map of two inputs of one type; before opset 7 of ONNX ``axis`` says where they meet."""
    return op(_pairwise, function, NODE)


def _pairwise(b: Builder, function: Function, c: Context) -> Value:
    left, right = c.input(0), c.input(1)
    refuse_if(left.type is not right.type, f"operands of types {left.type.value} and {right.type.value}")
    if c.version < 7 and c.attribute("axis") is not None:
        right = unsqueezed(right, range(right.rank, left.rank - c.axis("axis", left.rank)))
    return mapped(b, function, left, right)


def variadic(function: Callable[[Expression, Expression], Expression]) -> Op:
    """Return the map that folds all inputs."""
    return op(folded, function, INPUTS)


def folded(
    b: Builder, function: Callable[[Expression, Expression], Expression], values: Sequence[Value]
) -> Value:
    """Return values put together by a function of two."""
    return mapped(b, lambda *xs: reduce(function, xs), *values)


def compared(op: CompareOp) -> Op:
    """Return a comparison."""
    return binary(lambda a, b: scalar.compare(op, a, b))


def logical(op: BinaryFunction) -> Op:
    """Return an operation on truth values."""
    return binary(lambda a, b: scalar.logical(op, a, b))


def of_integers(op: BinaryFunction) -> Op:
    """Return an operation on the bits of integers."""
    return binary(lambda a, b: scalar.bits(op, a, b))


def refused(reason: str) -> Op:
    """Return the operation that is always refused."""
    return op(_refuse, reason)


def _refuse(b: Builder, reason: str) -> NoReturn:
    raise Refused(reason)
