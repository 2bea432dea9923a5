"""Products of parameters in bounds: ``for (i = 0; i < h * w; i++)`` runs to a parameter ``h_w``, the product.

To sets it is a parameter as any other, so nothing is concluded from what it is made of. In subscripts such
as ``x[c * h * w + i]`` with ``i < h * w`` products of strides are taken together in the same way.

Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import gcd

import islpy as isl

from polyloom.frontends.c.integers.polynomials import Affine, Polynomial, Term, sum_of_parameters
from polyloom.frontends.c.integers.strides import Factors, quotient
from polyloom.frontends.c.scope.drafts import Product
from polyloom.frontends.c.scope.parameters import new_parameter
from polyloom.frontends.c.scope.sets import parameter_affine
from polyloom.frontends.c.scope.state import State
from polyloom.ir.types import ElementType
from polyloom.polyhedra.functions import isl_integer

_DIM = isl.dim_type


def product_of_parameters(left: isl.PwAff, right: isl.PwAff, state: State) -> isl.PwAff | None:
    """Return a product as a multiple of a parameter; None where a factor is no sum of parameters."""
    times, factors = 1, list[Affine]()
    for value in (left, right):
        found = sum_of_parameters(value)
        if not found or any(name in state.iterators for name, _ in found):
            return None
        content = gcd(*(c for _, c in found))
        times *= content
        plain = tuple((name, c // content) for name, c in found)
        factors += [*_factors(plain, state)]
    return parameter_affine(_named(tuple(sorted(factors)), state)).scale_val(isl_integer(times))


def _factors(factor: Affine, state: State) -> Factors:
    """Return the factors of a parameter that is a product itself, or the factor as it is."""
    made = (p.factors for p in state.products.values() if factor == ((p.name, 1),))
    return next(made, (factor,))


def _named(factors: Factors, state: State) -> str:
    """Return the parameter that is a product, which is computed in 64 bits."""
    if factors not in state.products:
        name = state.fresh("_".join(map(_word, factors)))
        new_parameter(name, ElementType.INT64, state)
        state.products[factors] = Product(name, factors)
    return state.products[factors].name


def _word(factor: Affine) -> str:
    """Return ``n_1`` for n + 1."""
    terms = sorted(factor, reverse=True)
    words = (word for name, c in terms for word in (name, "" if name and c == 1 else f"{c}"))
    return "_".join(word.replace("-", "minus_") for word in words if word)


def has_product(function: isl.PwAff | isl.Set, state: State) -> bool:
    """Whether such a product occurs in a function or set."""
    places = (function.find_dim_by_name(_DIM.param, p.name) for p in state.products.values())
    return any(at >= 0 and function.involves_dims(_DIM.param, at, 1) for at in places)


def bound_loops(state: State) -> bool:
    """Whether such a product says how often a statement is executed."""
    return any(has_product(draft.domain, state) for draft in state.drafts)


def used_products(names: set[str], state: State) -> tuple[Product, ...]:
    """Return the products among parameters, and those that these are made of."""
    wanted, found = set(names), list[Product]()
    for product in reversed(state.products.values()):
        if product.name in wanted:
            found.append(product)
            wanted |= {name for factor in product.factors for name, _ in factor}
    return tuple(reversed(found))


def sets_factors_apart(points: isl.Set, state: State) -> bool:
    """Whether a set sets a product against what has one of its factors: ``h_w <= w`` hardly ever holds."""
    made = {p.name: {n for f in p.factors for n, _ in f if n} for p in state.products.values()}
    names = [str(n) for n in points.drop_unused_params().get_var_names(_DIM.param)]
    pairs = ((a, b) for a, b in combinations(names, 2) if a in made or b in made)
    return any(not made.get(a, {a}).isdisjoint(made.get(b, {b})) for a, b in pairs)


def multiplied_out(polynomial: Polynomial, state: State) -> Polynomial:
    """Return a subscript with the factors of products in place of these."""
    changed: Polynomial = {}
    for term, c in polynomial.items():
        factors = tuple(sorted(f for factor in term.factors for f in _factors(factor, state)))
        _add(changed, Term(term.iterator, factors), c)
    return changed


def regrouped(polynomials: Sequence[Polynomial], state: State) -> Iterator[list[Polynomial]]:
    """Yield subscripts with products in place of their factors: with all of them, then with one at a time."""
    inner = {t.factors for p in polynomials for t in p if len(t.factors) > 1}
    used = [p for p in state.products.values() if any(quotient(f, p.factors) is not None for f in inner)]
    used.sort(key=lambda product: -len(product.factors))
    for chosen in ([used] if len(used) > 1 else []) + [[product] for product in used]:
        yield [_grouped(p, chosen) for p in polynomials]


def _grouped(polynomial: Polynomial, products: Sequence[Product]) -> Polynomial:
    changed: Polynomial = {}
    for term, c in polynomial.items():
        factors = term.factors
        for product in products:
            while (rest := quotient(factors, product.factors)) is not None:
                factors = tuple(sorted((*rest, ((product.name, 1),))))
        _add(changed, Term(term.iterator, factors), c)
    return changed


def _add(polynomial: Polynomial, term: Term, coefficient: int) -> None:
    total = polynomial.pop(term, 0) + coefficient
    if total:
        polynomial[term] = total
