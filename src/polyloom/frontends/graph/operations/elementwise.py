"""Maps with broadcasting, conversions, and constants of one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from polyloom.frontends.graph.basis import (
    Builder,
    ElementType,
    Expression,
    Function,
    Refused,
    Shape,
    Term,
    Value,
    check_constant,
    expanded,
    iterators,
    scalar,
)

P = ParamSpec("P")
R = TypeVar("R")


def broadcast_shape(shapes: Sequence[Shape]) -> Shape:
    """Return the shape that NumPy broadcasts shapes to. Raises ``Refused``."""
    try:
        return tuple(int(n) for n in np.broadcast_shapes(*shapes))
    except ValueError:
        listed = ", ".join(" x ".join(map(str, s)) or "()" for s in shapes)
        raise Refused(f"shapes that do not fit each other: {listed}") from None


def broadcast(values: Sequence[Value]) -> list[Value]:
    """Return values broadcast to one shape."""
    shape = broadcast_shape([v.shape for v in values])
    return [expanded(v, shape) for v in values]


def mapped(b: Builder, function: Function, *values: Any, hint: str = "") -> Value:
    """Return ``function`` of the elements: ``y[i] = f(x[i], b[i])``, one statement.

    What is broadcast has fewer iterators. All operands must have the types that ``function`` wants; what is
    no ``Value``, as a number, it gets as it is.
    """
    wide = broadcast([v for v in values if isinstance(v, Value)])
    axes = iterators(wide[0].rank)

    def of_elements(*elements: Expression) -> Expression:
        left = iter(elements)
        return function(*(next(left) if isinstance(v, Value) else v for v in values))

    terms = [Term(v, axes) for v in wide]
    return b.statement(wide[0].shape, terms, wide[0].shape, axes, of_elements, hint=hint)


def halves_wide(core: Callable[P, R]) -> Callable[P, R]:
    """Return a core operation that takes halves as float32 and rounds its results once, as frameworks do.

    Its second argument, behind the builder, says whether it is of halves: a value, or a list of them.
    """

    @wraps(core)
    def computed(*given: P.args, **named: P.kwargs) -> R:
        arguments: Any = given
        b, x, *_ = arguments
        first = x if isinstance(x, Value) else x[0]
        if first.type is not ElementType.FLOAT16:
            return core(*given, **named)
        wide: Any = [_converted(b, v, ElementType.FLOAT32) for v in arguments]
        others: Any = {name: _converted(b, v, ElementType.FLOAT32) for name, v in named.items()}
        found: R = _converted(b, core(*wide, **others), ElementType.FLOAT16)
        return found

    return computed


_FLOATS = (ElementType.FLOAT16, ElementType.FLOAT32)


def _converted(b: Builder, given: Any, kind: ElementType) -> Any:
    """Return halves and floats among values, and in lists of them, in a type; all else as it is."""
    if isinstance(given, Value):
        hint = "wide" if kind is ElementType.FLOAT32 else ""
        return cast(b, given, kind, hint) if given.type in _FLOATS else given
    if isinstance(given, list | tuple):
        return type(given)(_converted(b, v, kind) for v in given)
    return given


def cast(b: Builder, value: Value, kind: ElementType, hint: str = "") -> Value:
    """Return a value in another type; of the same type as it is."""
    if value.type is kind:
        return value
    return mapped(b, lambda x: scalar.convert(x, kind), value, hint=hint)


def filled(b: Builder, shape: Sequence[int], number: float | int | bool, kind: ElementType) -> Value:
    """Return a constant with one number everywhere: one element, seen many times."""
    check_constant(shape, 0)
    one = b.constant(np.full((), number, kind.dtype))
    return expanded(one, shape)
