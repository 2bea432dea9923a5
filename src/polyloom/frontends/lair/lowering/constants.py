"""Constant and affine expressions over size parameters and iterators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from polyloom.diagnostics import Span
from polyloom.frontends.lair.lowering.faults import fail
from polyloom.frontends.lair.lowering.names import suggestion
from polyloom.frontends.lair.syntax.tree import Call, Choice, Element, Expression, Name, Number, Operation
from polyloom.ir.host import Index

LARGEST = 2**31 - 1
"""The largest extent, and the largest coefficient or constant of an index."""


@dataclass(frozen=True)
class Space:
    """What an index or bound may speak of: values of size parameters, iterators.

    Tensors are known only to be refused; ``what`` is being written: an access, a bound, an extent.
    """

    sizes: Mapping[str, int]
    iterators: Sequence[str] = ()
    tensors: frozenset[str] = frozenset()
    what: str = "access"


def constant(expression: Expression, space: Space) -> int:
    """Return the value of an expression of integers and size parameters.

    Errors: ``lair-domain`` where it depends on an iterator, else those of ``affine``.
    """
    value = affine(expression, space)
    for name, coefficient in zip(space.iterators, value.coefficients, strict=True):
        if coefficient:
            _refuse_iterator(expression, name)
    return value.constant


def _refuse_iterator(expression: Expression, name: str) -> None:
    fail(
        "lair-domain",
        f"the bound `{expression.span.text}` depends on the iterator `{name}`",
        expression.span,
        label="not a constant",
        notes=["the instances of a statement form a rectangle that starts at zero"],
        help="use a constant bound",
    )


def extent(expression: Expression, space: Space) -> int:
    """Return the value of an extent, from 1 to 2**31 - 1. Errors: ``lair-domain``, ``lair-too-large``."""
    value = constant(expression, space)
    if value < 1:
        fail(
            "lair-domain",
            f"the extent `{expression.span.text}` is {value}",
            expression.span,
            label="must be at least 1",
            help="an extent is a positive number; the lower bound is always zero",
        )
    if value > LARGEST:
        fail(
            "lair-too-large",
            f"the extent {value} does not fit in 31 bits",
            expression.span,
            help=f"the largest extent is {LARGEST}",
        )
    return value


def affine(expression: Expression, space: Space) -> Index:
    """Return an index as an affine function of the iterators.

    Errors: ``lair-nonaffine``, ``lair-unknown-name``, ``lair-too-large``.
    """
    match expression:
        case Number(value=int(value)):
            return _constant(value, space)
        case Name():
            return _name(expression, space)
        case Operation(operator="-", operands=(a,)):
            return _scaled(affine(a, space), -1)
        case Operation(operands=(a, b)):
            made = _operation(expression, affine(a, space), affine(b, space), space)
            return _checked(made, expression.span)
        case _:
            return _refuse(expression, space)


def _constant(value: int, space: Space) -> Index:
    return Index.of((0,) * len(space.iterators), value)


def _name(name: Name, space: Space) -> Index:
    if name.text in space.iterators:
        return Index.of(tuple(int(i == name.text) for i in space.iterators))
    if name.text in space.sizes:
        return _constant(space.sizes[name.text], space)
    if name.text in space.tensors:
        return _refuse(name, space)
    return fail(
        "lair-unknown-name",
        f"`{name.text}` is neither an iterator nor a size parameter",
        name.span,
        help=suggestion(name.text, [*space.iterators, *space.sizes]),
    )


def _operation(whole: Operation, a: Index, b: Index, space: Space) -> Index:
    match whole.operator:
        case "+":
            return _sum(a, b)
        case "-":
            return _sum(a, _scaled(b, -1))
        case "*" if _is_constant(b):
            return _scaled(a, b.constant)
        case "*" if _is_constant(a):
            return _scaled(b, a.constant)
        case "/" | "%" if _is_constant(a) and _is_constant(b):
            return _constant(_divided(whole, a.constant, b.constant), space)
        case _:
            return _refuse(whole, space)


def _divided(whole: Operation, a: int, b: int) -> int:
    if b == 0:
        message = f"`{whole.span.text}` divides by zero"
        fail("lair-nonaffine", message, whole.span, help="divide by another number")
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient if whole.operator == "/" else a - b * quotient


def _is_constant(a: Index) -> bool:
    return not any(a.coefficients)


def _sum(a: Index, b: Index) -> Index:
    pairs = zip(a.coefficients, b.coefficients, strict=True)
    return Index.of(tuple(x + y for x, y in pairs), a.constant + b.constant)


def _scaled(a: Index, factor: int) -> Index:
    return Index.of(tuple(factor * c for c in a.coefficients), factor * a.constant)


def _checked(a: Index, span: Span) -> Index:
    if max(map(abs, (*a.coefficients, a.constant))) > 2**62:
        fail("lair-too-large", "the number does not fit in 31 bits", span, help=f"the largest is {LARGEST}")
    return a


def _refuse(part: Expression, space: Space) -> Index:
    return fail(
        "lair-nonaffine",
        f"{space.what} is not affine",
        part.span,
        label=_why(part),
        help=_HELPS.get(space.what, "a size is a constant expression of integers and size parameters"),
    )


_HELPS = {"access": "an access is an affine expression of the iterators"}


def _why(part: Expression) -> str:
    text = " ".join(part.span.text.split())
    match part:
        case Operation(operator="*"):
            return f"`{text}` multiplies two iterators"
        case Operation(operator="/"):
            return f"`{text}` divides an iterator"
        case Operation(operator="%"):
            return f"`{text}` takes a remainder of an iterator"
        case Operation():
            return f"`{text}` is a comparison"
        case Element() | Name():
            return f"`{text}` is data, known only when the program runs"
        case Number():
            return f"`{text}` is not an integer"
        case Call() | Choice():
            return f"`{text}` is no sum of iterators times constants"
