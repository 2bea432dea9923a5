"""Parameters that are products of others, as the strides of an array say: ``t * C + h * hs + i``.

With ``h < NH`` that is ``x[t, h, i]`` where C is ``NH * hs``, which is then asked before the part runs. Not
in the papers: they have strides that divide one another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from polyloom.frontends.c.integers.polynomials import (
    Affine,
    Parts,
    Polynomial,
    Term,
    affine_part,
    sum_of_parameters,
)
from polyloom.frontends.c.integers.strides import Factors, Stride, index_at, quotient, undivided
from polyloom.frontends.c.scope.drafts import Product
from polyloom.frontends.c.scope.sets import without_set
from polyloom.frontends.c.scope.state import State

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class Made:
    """Subscripts with products in place of parameters, and what these are."""

    polynomials: Sequence[Polynomial]
    equal: tuple[Product, ...]


def with_products(
    polynomials: Sequence[Polynomial],
    domains: Sequence[isl.Set],
    equal: tuple[Product, ...],
    state: State,
    *,
    assuming: bool,
    parts: Parts,
    most: int = 2,
) -> Iterator[Made]:
    """Yield the subscripts with products for parameters, so that the strides divide one another.

    ``equal``: what parameters already are. ``assuming``: whether others may be products, too.
    ``parts``: factors that are no parameters. ``most``: products that one array may need.
    """
    pairs = undivided(polynomials)
    if not pairs:
        yield Made(polynomials, equal)
    if not most or len(pairs) > _PAIRS:
        return
    for outer, inner in (ordered for a, b in pairs for ordered in ((a, b), (b, a))):
        found = _product(outer, inner, polynomials, domains, state, parts)
        if found is None or not (assuming or found in equal):
            continue
        known = equal if found in equal else (*equal, found)
        changed = [_substituted(p, found) for p in polynomials]
        rest = most - 1
        yield from with_products(changed, domains, known, state, assuming=assuming, parts=parts, most=rest)


_PAIRS = 6
"""Strides that do not divide one another: with more of them an array has no dimensions."""


def _product(
    outer: Factors,
    inner: Factors,
    polynomials: Sequence[Polynomial],
    domains: Sequence[isl.Set],
    state: State,
    parts: Parts,
) -> Product | None:
    """Return what a parameter is if the outer stride is as many of the inner one as its index has values."""
    common = tuple((Counter(outer) & Counter(inner)).elements())
    name = _only_name(quotient(outer, common) or ())
    if name is None or name in parts:
        return None
    reached = [
        _reached(
            polynomial, outer, inner, domain.intersect(state.context).intersect(state.limits), state, parts
        )
        for polynomial, domain in zip(polynomials, domains, strict=True)
    ]
    known = [values for values in reached if values is not None]
    end = _end(reduce(isl.Set.union, known)) if len(known) == len(reached) else None
    factors = () if end is None else (end, *(quotient(inner, common) or ()))
    others = {other for factor in factors for other, _ in factor}
    is_over_others = factors and name not in others and others.isdisjoint(parts)
    return Product(name, factors) if is_over_others else None


def _only_name(factors: Factors) -> str | None:
    """Return the parameter that factors are; None where they are something else."""
    match factors:
        case (((str(name), 1),),) if name:
            return name
        case _:
            return None


def _reached(
    polynomial: Polynomial, outer: Factors, inner: Factors, domain: isl.Set, state: State, parts: Parts
) -> isl.Set | None:
    """Return the values ``{ [v] }`` of the index at a stride; None where it is not affine."""
    below = {t: c for t, c in polynomial.items() if quotient(t.factors, outer) is None}
    index = affine_part(index_at(Stride(inner), below)[0], parts)
    if index is None:
        return None
    return without_set(isl.Map.from_pw_aff(index[0]).intersect_domain(domain).range(), state.iterators)


def _end(values: isl.Set) -> Affine | None:
    """Return what is above all values; None where no sum of parameters is."""
    if values.is_empty() or not values.dim_has_upper_bound(_DIM.set, 0):
        return None
    last = sum_of_parameters(values.coalesce().dim_max(0))
    return None if last is None else _plus_one(last)


def _plus_one(size: Affine) -> Affine | None:
    terms = {"": 0, **dict(size)}
    terms[""] += 1
    return tuple(sorted((name, c) for name, c in terms.items() if c)) or None


def _substituted(polynomial: Polynomial, product: Product) -> Polynomial:
    """Return a polynomial with a product in place of a parameter."""
    result: Polynomial = {}
    for term, coefficient in polynomial.items():
        factors = [f for factor in term.factors for f in _parts(factor, product)]
        number = [f for f in factors if f and all(not name for name, _ in f)]
        times = reduce(int.__mul__, [f[0][1] for f in number], coefficient)
        changed = Term(term.iterator, tuple(sorted(f for f in factors if f not in number)))
        result[changed] = result.get(changed, 0) + times
    return {t: c for t, c in result.items() if c}


def _parts(factor: Affine, product: Product) -> Factors:
    return product.factors if factor == ((product.name, 1),) else (factor,)
