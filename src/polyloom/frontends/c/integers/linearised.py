"""Subscripts such as ``a[i * n + k]``: an array that C keeps as one dimension, seen with those that it has.

The factors of the iterators in all subscripts of an array are the strides; they must divide one another, and
every index but the first must lie inside its dimension, so that no element has two names: provably, or where
parameters have values for which it does, which is part of the context then. Where that fails the subscripts
stay as they are, and a remark says why.

Not in the papers. Source of the idea: T. Grosser et al., Optimistic Delinearization of Parametrically
Sized Arrays
(ICS 2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise

import islpy as isl

from polyloom.diagnostics import Diagnostic, Span, remark
from polyloom.frontends.c.integers.extents import written
from polyloom.frontends.c.integers.invariant_products import (
    multiplied_out,
    regrouped,
    sets_factors_apart,
)
from polyloom.frontends.c.integers.polynomials import (
    Affine,
    Parts,
    Polynomial,
    Term,
    affine_function,
    affine_part,
    polynomial,
)
from polyloom.frontends.c.integers.products import with_products
from polyloom.frontends.c.integers.quasi_affine import QuasiAffine
from polyloom.frontends.c.integers.relations import domains_of
from polyloom.frontends.c.integers.strides import Stride, chains, index_at, size, undivided
from polyloom.frontends.c.scope.drafts import Access, FoundArray, Product
from polyloom.frontends.c.scope.names import Index
from polyloom.frontends.c.scope.sets import constant_affine, without_set
from polyloom.frontends.c.scope.state import Mode, State
from polyloom.frontends.c.scope.types import Extent
from polyloom.ir.expressions import Read, walk
from polyloom.polyhedra.functions import isl_integer


@dataclass(frozen=True)
class _Failure:
    """Why an array stays as it is, and where."""

    reason: str
    span: Span | None


@dataclass
class _Bounds:
    """What is known of the parameters, and what may be assumed: that the rows of an array do not overlap.

    ``asked``: by who calls the part, and runs something else where it is not so. ``equal``: parameters that
    are products of others. ``parts``: factors in subscripts that are no parameters.
    """

    array: FoundArray
    state: State
    context: isl.Set
    assuming: bool
    asked: bool
    sentences: dict[str, None] = field(default_factory=dict)
    equal: tuple[Product, ...] = ()
    parts: Parts = field(default_factory=dict)

    def hold(self, inside: isl.Set, domain: isl.Set) -> bool:
        """Whether an index stays inside its dimension."""
        return bool(domain.intersect(self.context).intersect(self.state.limits).is_subset(inside))

    def may_hold(self, inside: isl.Set, domain: isl.Set) -> bool:
        """Assume that an index stays inside its dimension, if parameters alone decide."""
        failing = domain.intersect(self.context).intersect(self.state.limits).subtract(inside)
        refused = without_set(failing, self.state.iterators).gist(self.state.limits)
        if sets_factors_apart(refused, self.state):
            return False
        context = self.context.subtract(refused).coalesce()
        if not self.assuming or context.is_empty() or domain.intersect(context).is_empty():
            return False
        self.context = self._where_made(context, domain) if self.asked else context
        self.sentences[f"the rows of `{self.array.place.variable.name}` do not overlap"] = None
        return self.hold(inside, domain)

    @staticmethod
    def _where_made(context: isl.Set, domain: isl.Set) -> isl.Set:
        """Leave out those parts of a context where a reference is not made: few conditions are asked then."""
        parts = [isl.Set.from_basic_set(part) for part in context.get_basic_sets()]
        return reduce(isl.Set.union, [part for part in parts if not domain.intersect(part).is_empty()])


def delinearise(state: State, *, asked: bool) -> tuple[Diagnostic, ...]:
    """Give arrays with polynomial subscripts their dimensions; return a remark for each that stays as it is.

    Of an array that is written it is assumed that its rows do not overlap. In one that is only read they may
    (the windows of a convolution), and no order depends on them; it is assumed there where who calls the part
    ``asked``, and runs something else where it is not so. Written arrays come first: what is assumed of them
    is known of the others.
    """
    remarks: dict[str, list[Diagnostic]] = {name: [] for name in state.arrays}
    written = _written(state)
    for name, array in sorted(state.arrays.items(), key=lambda item: item[0] not in written):
        uses = [(k, a) for k, a in enumerate(state.pool) if a.array == name and a.relation is None]
        if all(index.affine is not None for _, access in uses for index in access.indices):
            continue
        parts = QuasiAffine(frozenset(state.iterators))
        domains = domains_of(state, [k for k, _ in uses])
        polynomials = [_polynomial(a, d, parts, state) for (_, a), d in zip(uses, domains, strict=True)]
        if len(array.extents) != 1 or all(_degree(p) < 2 for p in polynomials):
            remarks[name] += _not_affine(array, [a for _, a in uses])
            continue
        assuming = name in written or (asked and array.extents == (None,))
        bounds = _Bounds(array, state, state.context, assuming, asked, equal=state.equal, parts=parts.parts)
        found = _split([a for _, a in uses], polynomials, domains, bounds)
        if isinstance(found, _Failure):
            remarks[name].append(_remark(array, found))
            continue
        state.context, state.equal = found.bounds.context, found.bounds.equal
        state.assumed.update(found.bounds.sentences)
        for (position, _), access in zip(uses, found.accesses, strict=True):
            state.pool[position] = access
        state.arrays[name] = _reshaped(array, found.sizes, parts.parts)
    return tuple(said for found in remarks.values() for said in found)


def _written(state: State) -> frozenset[str]:
    """Return the names of the arrays that statements write."""
    targets = [p for d in state.drafts for p in (d.target, *d.writes) if p is not None]
    return frozenset(state.pool[position].array for position in targets)


def _not_affine(array: FoundArray, accesses: list[Access]) -> list[Diagnostic]:
    """Return a remark for each place where a subscript is not affine and reads no data, and why."""
    found: dict[Span | None, Diagnostic] = {}
    for access in accesses:
        for index in access.indices:
            reads = any(isinstance(part, Read) for part in walk(index.value))
            if index.affine is None and not reads and index.span not in found:
                found[index.span] = remark(
                    "c-nonaffine",
                    f"a subscript of `{array.place.variable.name}` is not affine",
                    index.span,
                    notes=[index.reason, "any of its elements may be the one that is meant"],
                    helps=["an affine subscript adds multiples of iterators and parameters"],
                )
    return list(found.values())


def _polynomial(access: Access, domain: isl.Set, parts: QuasiAffine, state: State) -> Polynomial | None:
    if len(access.indices) != 1 or access.whole:
        return None
    here = domain.intersect(state.context).intersect(state.limits)
    return polynomial(access.indices[0].value, state.iterators, lambda part: parts.polynomial(part, here))


def _degree(found: Polynomial | None) -> int:
    """Return the largest number of factors in a term that has an iterator."""
    terms = found or {}
    return max((len(t.factors) + 1 for t in terms if t.iterator), default=0)


@dataclass(frozen=True, eq=False)
class _Split:
    """The sizes of all dimensions but the first, outermost first; the references; what is then assumed."""

    sizes: list[Affine]
    accesses: list[Access]
    bounds: _Bounds


def _split(
    accesses: list[Access],
    polynomials: list[Polynomial | None],
    domains: list[isl.Set],
    bounds: _Bounds,
) -> _Split | _Failure:
    """Return references by dimension, where parameters are products if need be."""
    known = list[Polynomial]()
    for access, terms in zip(accesses, polynomials, strict=True):
        if terms is None:
            return _Failure("a subscript is no polynomial of iterators and parameters", access.span)
        known.append(multiplied_out(terms, bounds.state))
    forms = [form for form in (known, *regrouped(known, bounds.state)) if not undivided(form)]
    if forms:
        found = _divided(accesses, forms, domains, bounds)
        if isinstance(found, _Split) or not undivided(known):
            return found
    assuming = bounds.assuming and bounds.state.mode is Mode.COMPUTE
    may_be = with_products(known, domains, bounds.equal, bounds.state, assuming=assuming, parts=bounds.parts)
    for made in may_be:
        proved = replace(bounds, equal=made.equal, assuming=False)
        split = _divided(accesses, [made.polynomials], domains, proved)
        if isinstance(split, _Split):
            return split
    return _Failure("its strides do not divide one another", accesses[0].span)


def _divided(
    accesses: list[Access],
    forms: Sequence[Sequence[Polynomial]],
    domains: list[isl.Set],
    bounds: _Bounds,
) -> _Split | _Failure:
    """Return references by dimension: where it can be proved that they are, else where it may be assumed.

    ``forms``: all subscripts, in one form or another.
    """
    proved = replace(bounds, assuming=False)
    attempts = [(form, chain, proved) for form in forms for chain in chains(form)]
    if bounds.assuming:
        attempts += [
            (form, chain, replace(bounds, sentences={})) for form in forms for chain in reversed(chains(form))
        ]
    results = [_along(chain, accesses, form, domains, trial) for form, chain, trial in attempts]
    return next((found for found in results if isinstance(found, _Split)), results[0])


def _along(
    strides: Sequence[Stride],
    accesses: list[Access],
    polynomials: Sequence[Polynomial],
    domains: list[isl.Set],
    bounds: _Bounds,
) -> _Split | _Failure:
    """Return references by the dimensions that have these strides."""
    sizes = [size(outer, inner) for outer, inner in pairwise(strides)]
    split = []
    for access, found, domain in zip(accesses, polynomials, domains, strict=True):
        indices = _indices(found, strides, sizes, domain, bounds)
        if isinstance(indices, str):
            return _Failure(indices, access.span)
        split.append(replace(access, indices=tuple(indices)))
    return _Split(sizes, split, bounds)


def _indices(
    found: Polynomial, strides: Sequence[Stride], sizes: list[Affine], domain: isl.Set, bounds: _Bounds
) -> list[Index] | str:
    """Return the index of each dimension, the inner ones inside their sizes; else the reason."""
    rest, parts = dict(found), list[Polynomial]()
    for stride in strides:
        here, rest = index_at(stride, rest)
        parts.append(here)
    for k in range(len(parts) - 1, 0, -1):
        shift = _shift(parts[k], sizes[k - 1], domain, bounds)
        if shift is None:
            return f"index {k + 1} is not known to be less than `{_text(sizes[k - 1])}`, and not negative"
        parts[k] = _plus(parts[k], sizes[k - 1], shift)
        parts[k - 1] = _plus(parts[k - 1], (("", 1),), -shift)
    functions = [affine_part(part, bounds.parts) for part in parts]
    if any(f is None for f in functions):
        return "an index is not affine"
    return [Index(f[0], f[1]) for f in functions if f is not None]


def _shift(part: Polynomial, size: Affine, domain: isl.Set, bounds: _Bounds) -> int | None:
    """Return by how many sizes an index must be moved to lie inside its dimension;
    None: it cannot be shown.
    """
    function = affine_part(part, bounds.parts)
    if function is None:
        return None
    extent = affine_function(size, bounds.parts)
    is_number = not any(name for name, _ in size)
    inside = []
    for shift in (0, -1, 1):
        index = function[0].add(extent.scale_val(isl_integer(shift)))
        inside.append(index.ge_set(constant_affine(0)).intersect(index.lt_set(extent)))
        if bounds.hold(inside[-1], domain):
            return shift
    return 0 if not is_number and bounds.may_hold(inside[0], domain) else None


def _plus(part: Polynomial, size: Affine, times: int) -> Polynomial:
    """Return ``part + times * size``."""
    result = dict(part)
    for name, coefficient in size:
        term = Term("", (((name, 1),),) if name else ())
        result[term] = result.get(term, 0) + times * coefficient
    return {t: c for t, c in result.items() if c}


def _reshaped(array: FoundArray, sizes: list[Affine], parts: Parts) -> FoundArray:
    functions = [affine_function(size, parts) for size in sizes]
    inner = tuple(Extent(written(function), function) for function in functions)
    return replace(array, extents=(None, *inner), levels=(1 + len(inner),), linear=True)


def _text(size: Affine) -> str:
    parts = [str(c) if not n else n if c == 1 else f"{c} * {n}" for n, c in sorted(size, reverse=True)]
    return " + ".join(parts)


def _remark(array: FoundArray, failure: _Failure) -> Diagnostic:
    name = array.place.variable.name
    return remark(
        "c-linearised",
        f"the subscripts of `{name}` are not affine, and its dimensions could not be found",
        failure.span,
        notes=[failure.reason],
        helps=[f"declare its dimensions: `double {name}[n][m]`, or `double (*{name})[m]`"],
    )
