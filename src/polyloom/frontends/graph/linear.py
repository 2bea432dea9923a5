"""Affine expressions of a statement's iterators, written as formulas: ``2 * i + r - 1``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from polyloom.ir.host import Index


@dataclass(frozen=True)
class Linear:
    """``sum(coefficient * iterator) + constant``; ``terms``: iterators' numbers and coefficients."""

    terms: tuple[tuple[int, int], ...] = ()
    constant: int = 0

    def __add__(self, other: Linear | int) -> Linear:
        if isinstance(other, int):
            return Linear(self.terms, self.constant + other)
        total = dict(self.terms)
        for k, coefficient in other.terms:
            total[k] = total.get(k, 0) + coefficient
        terms = tuple(sorted((k, c) for k, c in total.items() if c))
        return Linear(terms, self.constant + other.constant)

    def __mul__(self, factor: int) -> Linear:
        terms = tuple((k, factor * c) for k, c in self.terms if factor)
        return Linear(terms, factor * self.constant)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Linear:
        return self * -1

    def __sub__(self, other: Linear | int) -> Linear:
        return self + -other

    def __rsub__(self, other: int) -> Linear:
        return -self + other

    def affine(self, width: int) -> Index:
        """Return the expression over ``width`` iterators."""
        coefficients = [0] * width
        for k, coefficient in self.terms:
            coefficients[k] = coefficient
        return Index.of(tuple(coefficients), self.constant)

    def at(self, places: Sequence[Linear]) -> Linear:
        """Return the expression with a formula for each iterator: affine after affine."""
        total = Linear((), self.constant)
        for k, coefficient in self.terms:
            total = total + coefficient * places[k]
        return total


Formula = Linear | int


def iterator(number: int) -> Linear:
    """Return the iterator with this number."""
    return Linear(((number, 1),))


def iterators(count: int, start: int = 0) -> tuple[Linear, ...]:
    """Return ``count`` iterators, numbered from ``start`` on."""
    return tuple(iterator(start + k) for k in range(count))


def linear(formula: Formula) -> Linear:
    """Return a formula that may be a plain number."""
    return Linear((), formula) if isinstance(formula, int) else formula


def affines(formulas: Iterable[Formula], width: int) -> tuple[Index, ...]:
    """Return formulas as the IR has them."""
    return tuple(linear(f).affine(width) for f in formulas)
