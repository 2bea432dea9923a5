"""Subscripts such as ``a[i * n + k]``: an array that C keeps as one dimension, seen with those that it has.

The factors of the iterators in all subscripts of an array are the strides; they must divide one another, and
every index but the first must provably lie inside its dimension, so that no element has two names. Where
that fails
the subscripts stay as they are, and a remark says why.

Not in the papers. Source of the idea: T. Grosser et al., Optimistic Delinearization of Parametrically
Sized Arrays
(ICS 2015).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import islpy as isl

from polyloom.diagnostics import Diagnostic, Span, remark
from polyloom.frontends.c.integers.extents import written
from polyloom.frontends.c.integers.polynomials import (
    Affine,
    Polynomial,
    Term,
    affine_function,
    affine_part,
    polynomial,
)
from polyloom.frontends.c.integers.relations import positions
from polyloom.frontends.c.scope.drafts import Access, FoundArray
from polyloom.frontends.c.scope.names import Index
from polyloom.frontends.c.scope.sets import constant_affine, without_set
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.scope.types import Extent
from polyloom.ir.expressions import Read, walk

Stride = tuple[Affine, ...]


@dataclass(frozen=True)
class _Failure:
    """Why an array stays as it is, and where."""

    reason: str
    span: Span | None


@dataclass
class _Bounds:
    """What is known of the parameters; of a written array it may be assumed that its rows do not overlap.

    Of an array that is only read nothing is assumed: overlapping rows have a meaning (the windows of a
    convolution), and no order depends on them.
    """

    array: FoundArray
    state: State
    context: isl.Set
    assuming: bool
    sentences: dict[str, None] = field(default_factory=dict)

    def hold(self, inside: isl.Set, domain: isl.Set) -> bool:
        """Whether an index stays inside its dimension."""
        return bool(domain.intersect(self.context).intersect(self.state.limits).is_subset(inside))

    def may_hold(self, inside: isl.Set, domain: isl.Set) -> bool:
        """Assume that an index stays inside its dimension, if parameters alone decide."""
        failing = domain.intersect(self.context).intersect(self.state.limits).subtract(inside)
        refused = without_set(failing, self.state.iterators).gist(self.state.limits)
        context = self.context.subtract(refused).coalesce()
        if not self.assuming or context.is_empty() or domain.intersect(context).is_empty():
            return False
        self.context = context
        self.sentences[f"the rows of `{self.array.place.variable.name}` do not overlap"] = None
        return self.hold(inside, domain)


def delinearise(state: State) -> tuple[Diagnostic, ...]:
    """Give arrays with polynomial subscripts their dimensions;
    return a remark for each that stays as it is.
    """
    remarks: list[Diagnostic] = []
    written = _written(state)
    for name, array in list(state.arrays.items()):
        uses = [(k, a) for k, a in enumerate(state.pool) if a.array == name and a.relation is None]
        polynomials = [_polynomial(access, state) for _, access in uses]
        if len(array.extents) != 1 or all(_degree(p) < 2 for p in polynomials):
            remarks += _not_affine(array, [a for _, a in uses])
            continue
        bounds = _Bounds(array, state, state.context, assuming=name in written)
        found = _split([a for _, a in uses], polynomials, _domains(state, [k for k, _ in uses]), bounds)
        if isinstance(found, _Failure):
            remarks.append(_remark(array, found))
            continue
        sizes, accesses = found
        state.context = bounds.context
        state.assumed.update(bounds.sentences)
        for (position, _), access in zip(uses, accesses, strict=True):
            state.pool[position] = access
        state.arrays[name] = _reshaped(array, sizes)
    return tuple(remarks)


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


def _polynomial(access: Access, state: State) -> Polynomial | None:
    if len(access.indices) != 1 or access.whole:
        return None
    return polynomial(access.indices[0].value, lambda name: name in state.iterators)


def _degree(found: Polynomial | None) -> int:
    """Return the largest number of factors in a term that has an iterator."""
    terms = found or {}
    return max((len(t.factors) + 1 for t in terms if t.iterator), default=0)


def _domains(state: State, uses: list[int]) -> list[isl.Set]:
    """Return where each reference is made, over all statements that make it."""
    found: dict[int, isl.Set] = {}
    for draft in state.drafts:
        made = (*positions(draft, state), *draft.reads, *draft.writes)
        for position in (*made, *(() if draft.target is None else (draft.target,))):
            points = draft.domain.intersect(state.pool[position].within)
            found[position] = found[position].union(points) if position in found else points
    return [found.get(use, isl.Set("{ [] : false }")) for use in uses]


def _split(
    accesses: list[Access],
    polynomials: list[Polynomial | None],
    domains: list[isl.Set],
    bounds: _Bounds,
) -> tuple[list[Affine], list[Access]] | _Failure:
    """Return the sizes of all dimensions but the first, outermost first, and the references by dimension."""
    known = []
    for access, found in zip(accesses, polynomials, strict=True):
        if found is None:
            return _Failure("a subscript is no polynomial of iterators and parameters", access.span)
        known.append(found)
    strides = _strides(known)
    if strides is None:
        return _Failure("its strides do not divide one another", accesses[0].span)
    sizes = [_size(outer, inner) for outer, inner in pairwise(strides)]
    split = []
    for access, found, domain in zip(accesses, known, domains, strict=True):
        indices = _indices(found, strides, sizes, domain, bounds)
        if isinstance(indices, str):
            return _Failure(indices, access.span)
        split.append(replace(access, indices=tuple(indices)))
    return sizes, split


def _strides(polynomials: list[Polynomial]) -> list[Stride] | None:
    """Return the products of parameters beside iterators, longest first, down to 1;
    None where they are no chain.
    """
    found = {t.factors for p in polynomials for t in p if t.iterator} | {()}
    ordered = sorted(found, key=len, reverse=True)
    complete: list[Stride] = []
    for outer, inner in pairwise(ordered):
        quotient = _quotient(outer, inner)
        if not quotient:
            return None
        complete.append(outer)
        complete += [_sorted((*inner, *quotient[:k])) for k in range(len(quotient) - 1, 0, -1)]
    return [*complete, ordered[-1]]


def _quotient(outer: Stride, inner: Stride) -> Stride | None:
    rest = list(outer)
    for factor in inner:
        if factor not in rest:
            return None
        rest.remove(factor)
    return tuple(rest)


def _sorted(factors: Stride) -> Stride:
    return tuple(sorted(factors))


def _size(outer: Stride, inner: Stride) -> Affine:
    quotient = _quotient(outer, inner)
    assert quotient is not None and len(quotient) == 1
    return quotient[0]


def _indices(
    found: Polynomial, strides: list[Stride], sizes: list[Affine], domain: isl.Set, bounds: _Bounds
) -> list[Index] | str:
    """Return the index of each dimension, the inner ones inside their sizes; else the reason."""
    rest, parts = dict(found), []
    for stride in strides:
        here = {t: c for t, c in rest.items() if _quotient(t.factors, stride) is not None}
        rest = {t: c for t, c in rest.items() if t not in here}
        parts.append({Term(t.iterator, _quotient(t.factors, stride) or ()): c for t, c in here.items()})
    for k in range(len(parts) - 1, 0, -1):
        shift = _shift(parts[k], sizes[k - 1], domain, bounds)
        if shift is None:
            return f"index {k + 1} is not known to be less than `{_text(sizes[k - 1])}`, and not negative"
        parts[k] = _plus(parts[k], sizes[k - 1], shift)
        parts[k - 1] = _plus(parts[k - 1], (("", 1),), -shift)
    functions = [affine_part(part) for part in parts]
    if any(f is None for f in functions):
        return "an index is not affine"
    return [Index(f[0], f[1]) for f in functions if f is not None]


def _shift(part: Polynomial, size: Affine, domain: isl.Set, bounds: _Bounds) -> int | None:
    """Return by how many sizes an index must be moved to lie inside its dimension;
    None: it cannot be shown.
    """
    function = affine_part(part)
    if function is None:
        return None
    extent = affine_function(size)
    inside = []
    for shift in (0, -1, 1):
        index = function[0].add(extent.scale_val(isl.Val(shift)))
        inside.append(index.ge_set(constant_affine(0)).intersect(index.lt_set(extent)))
        if bounds.hold(inside[-1], domain):
            return shift
    return 0 if bounds.may_hold(inside[0], domain) else None


def _plus(part: Polynomial, size: Affine, times: int) -> Polynomial:
    """Return ``part + times * size``."""
    result = dict(part)
    for name, coefficient in size:
        term = Term("", (((name, 1),),) if name else ())
        result[term] = result.get(term, 0) + times * coefficient
    return {t: c for t, c in result.items() if c}


def _reshaped(array: FoundArray, sizes: list[Affine]) -> FoundArray:
    functions = [affine_function(size) for size in sizes]
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
