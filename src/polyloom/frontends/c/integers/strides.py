"""The strides of an array that C keeps as one dimension: what iterators are multiplied by in its subscripts.

``x[b * T * 3 * C + t * 3 * C + C + i]`` has 3 T C, 3 C, C and 1, of which each divides the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import gcd

from polyloom.frontends.c.integers.polynomials import Affine, Polynomial, Term

Factors = tuple[Affine, ...]


@dataclass(frozen=True)
class Stride:
    """``coefficient`` times ``factors`` over parameters."""

    factors: Factors
    coefficient: int = 1

    def inside(self, outer: Stride) -> Stride | None:
        """Return how many of this one are an outer one; None where they are no whole number."""
        rest = quotient(outer.factors, self.factors)
        if rest is None or outer.coefficient % self.coefficient:
            return None
        return Stride(rest, outer.coefficient // self.coefficient)


def chains(polynomials: Sequence[Polynomial]) -> tuple[tuple[Stride, ...], ...]:
    """Return what the strides may be, longest first, down to 1; each divides the one before.

    With the numbers that iterators are multiplied by, ``x[(i * n + k) * 3 + c]`` is ``x[i, k, c]``; without
    them ``x[2 * i * n + k]`` is ``x[2 * i, k]``.
    """
    ordered = sorted({t.factors for p in polynomials for t in p if t.iterator} | {()}, key=len, reverse=True)
    plain = _complete([Stride(factors) for factors in ordered])
    numbered = _complete([s for factors in ordered for s in _numbered(factors, polynomials)])
    found = dict.fromkeys(chain for chain in (plain, numbered) if chain is not None)
    return tuple(found)


def _numbered(factors: Factors, polynomials: Sequence[Polynomial]) -> list[Stride]:
    """Return the strides that are multiples of these factors, longest first."""
    beside = {abs(c) for p in polynomials for t, c in p.items() if t.iterator and t.factors == factors}
    alone = (c for p in polynomials for t, c in p.items() if not t.iterator and t.factors == factors)
    last = gcd(*beside, *alone) if factors else 1
    return [Stride(factors, c) for c in sorted(beside | {last}, reverse=True)]


def _complete(strides: Sequence[Stride]) -> tuple[Stride, ...] | None:
    """Return strides with those between them, so that two neighbours differ by one factor or a number."""
    found: list[Stride] = []
    for outer, inner in pairwise(strides):
        between = inner.inside(outer)
        if between is None:
            return None
        found.append(outer)
        for k in range(len(between.factors) - 1, 0, -1):
            found.append(Stride(_sorted((*inner.factors, *between.factors[:k])), inner.coefficient))
    return (*found, strides[-1])


def size(outer: Stride, inner: Stride) -> Affine:
    """Return how many of the inner stride are the outer one, of two neighbours."""
    between = inner.inside(outer)
    assert between is not None and len(between.factors) < 2
    factor: Affine = between.factors[0] if between.factors else (("", 1),)
    return tuple((name, c * between.coefficient) for name, c in factor)


def index_at(stride: Stride, rest: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Return the index of a dimension, and what of a subscript the dimensions inside of it have."""
    here: Polynomial = {}
    inner: Polynomial = {}
    for term, c in rest.items():
        factors = quotient(term.factors, stride.factors)
        whole = not c % stride.coefficient
        if factors is None or not (whole or (not term.iterator and not factors)):
            inner[term] = c
            continue
        times, left = divmod(c, stride.coefficient)
        if times:
            here[Term(term.iterator, factors)] = times
        if left:
            inner[term] = left
    return here, inner


def quotient(outer: Factors, inner: Factors) -> Factors | None:
    """Return the factors of a product without some of them; None where it has not all of these."""
    rest = list(outer)
    for factor in inner:
        if factor not in rest:
            return None
        rest.remove(factor)
    return tuple(rest)


def _sorted(factors: Iterable[Affine]) -> Factors:
    return tuple(sorted(factors))


def undivided(polynomials: Sequence[Polynomial]) -> list[tuple[Factors, Factors]]:
    """Return the pairs of products beside iterators of which neither divides the other."""
    found = sorted({t.factors for p in polynomials for t in p if t.iterator})
    return [(a, b) for a, b in combinations(found, 2) if quotient(a, b) is None and quotient(b, a) is None]
