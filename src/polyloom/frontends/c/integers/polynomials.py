"""Subscripts as polynomials: sums of products of one iterator, or none, with expressions over the parameters.

``(i + 1) * (n + 2) + j`` is ``i * [n + 2] + [n + 2] + j``: a factor over parameters alone stays whole. Other
parts, such as ``w / 2``, may be factors with names of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import islpy as isl

from polyloom.frontends.c.scope.sets import LARGEST, constant_affine, parameter_affine
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Constant,
    Convert,
    Expression,
    ParameterValue,
    Unary,
    UnaryOp,
)
from polyloom.ir.types import ElementType
from polyloom.polyhedra.functions import isl_integer

_DIM = isl.dim_type

Affine = tuple[tuple[str, int], ...]
"""An affine expression over parameters, sorted by name; the constant has the name ``""``."""


@dataclass(frozen=True)
class Term:
    """``iterator * factors``; the iterator is ``""`` where there is none."""

    iterator: str
    factors: tuple[Affine, ...]


Polynomial = dict[Term, int]


@dataclass(frozen=True, eq=False)
class Part:
    """A factor that is no name: as a function, and as an expression; whether iterators are in it."""

    function: isl.PwAff
    value: Expression
    moves: bool

    def alone(self, name: str) -> Polynomial:
        """Return it as a polynomial; ``name`` stands for it."""
        return {Term(name, ()) if self.moves else Term("", (((name, 1),),)): 1}


Parts = Mapping[str, Part]
"""Factors that are no parameters, by the names that stand for them."""


def polynomial(
    expression: Expression,
    iterators: Collection[str],
    other: Callable[[Expression], Polynomial | None] = lambda _: None,
) -> Polynomial | None:
    """Return an integer expression as a polynomial; None where it is none (it reads memory, or has a factor
    beyond ``LARGEST``).

    ``other``: of parts that are none by themselves.
    """

    def inner(part: Expression) -> Polynomial | None:
        match part:
            case Constant(value=number) if not part.type.is_float:
                return _plain({("", ""): int(number)})
            case ParameterValue(name=name):
                return _plain({(name, "") if name in iterators else ("", name): 1})
            case Convert(type=kind, operand=operand) if not kind.is_float and kind.size >= 4:
                return inner(operand)
            case Unary(op=UnaryOp.NEGATE, operand=operand):
                return _scaled(inner(operand), -1)
            case Binary(op=BinaryOp.ADD, left=left, right=right):
                return _sum(inner(left), inner(right))
            case Binary(op=BinaryOp.SUBTRACT, left=left, right=right):
                return _sum(inner(left), _scaled(inner(right), -1))
            case Binary(op=BinaryOp.MULTIPLY, left=left, right=right):
                return _product(inner(left), inner(right))
            case _:
                return other(part)

    found = inner(expression)
    return None if found is None or any(abs(factor) > LARGEST for factor in found.values()) else found


def _plain(terms: dict[tuple[str, str], int]) -> Polynomial:
    result: Polynomial = {}
    for (iterator, name), coefficient in terms.items():
        if coefficient:
            result[Term(iterator, (((name, 1),),) if name else ())] = coefficient
    return result


def _scaled(polynomial: Polynomial | None, by: int) -> Polynomial | None:
    return None if polynomial is None else {t: c * by for t, c in polynomial.items() if c * by}


def _sum(first: Polynomial | None, second: Polynomial | None) -> Polynomial | None:
    if first is None or second is None:
        return None
    result = dict(first)
    for term, coefficient in second.items():
        result[term] = result.get(term, 0) + coefficient
    return {t: c for t, c in result.items() if c}


def _product(first: Polynomial | None, second: Polynomial | None) -> Polynomial | None:
    if first is None or second is None:
        return None
    for one, other in ((first, second), (second, first)):
        size = over_parameters(one)
        if size is not None and len(size) > 1 and over_parameters(other) is None:
            return {Term(t.iterator, _sorted(*t.factors, size)): c for t, c in other.items()}
    result: Polynomial | None = {}
    for a, x in first.items():
        for b, y in second.items():
            if a.iterator and b.iterator:
                return None
            term = Term(a.iterator or b.iterator, _sorted(*a.factors, *b.factors))
            result = _sum(result, {term: x * y})
    return result


def _sorted(*factors: Affine) -> tuple[Affine, ...]:
    return tuple(sorted(factors))


def over_parameters(polynomial: Polynomial) -> Affine | None:
    """Return a polynomial that is an affine expression over parameters alone; None for others."""
    result: dict[str, int] = {}
    for term, coefficient in polynomial.items():
        if term.iterator or len(term.factors) > 1:
            return None
        if not term.factors:
            result[""] = coefficient
            continue
        for name, scale in term.factors[0]:
            result[name] = result.get(name, 0) + scale * coefficient
    return tuple(sorted((n, c) for n, c in result.items() if c))


def affine_function(size: Affine, parts: Parts) -> isl.PwAff:
    """Return an affine expression over parameters as a function."""
    result = constant_affine(0)
    for name, coefficient in size:
        result = result.add(_function(name, parts).scale_val(isl_integer(coefficient)))
    return result


def _function(name: str, parts: Parts) -> isl.PwAff:
    if name in parts:
        return parts[name].function
    return parameter_affine(name) if name else constant_affine(1)


def plain_polynomial(function: isl.PwAff, iterators: Collection[str]) -> Polynomial | None:
    """Return a function that is an affine expression as a polynomial; None for others."""
    terms = sum_of_parameters(function)
    if terms is None:
        return None
    return _plain({(name, "") if name in iterators else ("", name): c for name, c in terms})


def sum_of_parameters(function: isl.PwAff) -> Affine | None:
    """Return a function as an affine expression over parameters; None where it is no such one everywhere."""
    pieces = function.coalesce().get_pieces()
    if len(pieces) != 1 or pieces[0][1].dim(_DIM.div) or not pieces[0][1].get_denominator_val().is_one():
        return None
    found = pieces[0][1]
    named = {
        found.get_dim_name(_DIM.param, k) or "": found.get_coefficient_val(_DIM.param, k).to_python()
        for k in range(found.dim(_DIM.param))
    }
    terms = {**named, "": found.get_constant_val().to_python()}
    return tuple(sorted((name, int(c)) for name, c in terms.items() if c))


def affine_part(polynomial: Polynomial, parts: Parts) -> tuple[isl.PwAff, Expression] | None:
    """Return a polynomial of degree one as a function and as an expression; None for others."""
    function = constant_affine(0)
    value: Expression | None = None
    for term, coefficient in polynomial.items():
        if len(term.factors) + bool(term.iterator) > 1:
            return None
        named = (
            [(term.iterator, 1)] if term.iterator else list(term.factors[0] if term.factors else [("", 1)])
        )
        for name, scale in named:
            number = coefficient * scale
            function = function.add(_function(name, parts).scale_val(isl_integer(number)))
            value = _added(value, name, number, parts)
    return function, value if value is not None else Constant(0, ElementType.INT64)


def _added(value: Expression | None, name: str, number: int, parts: Parts) -> Expression:
    kind = ElementType.INT64
    term: Expression = Constant(number, kind)
    if name:
        named = parts[name].value if name in parts else ParameterValue(name, kind)
        term = named if number == 1 else Binary(BinaryOp.MULTIPLY, Constant(number, kind), named)
    return term if value is None else Binary(BinaryOp.ADD, value, term)
