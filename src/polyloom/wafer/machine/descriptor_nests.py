"""Sequences of index tuples as one rectangular nest: what a SIMD instruction on the fabric runs through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.polyhedra.bounds import (
    elementwise_maximum,
    elementwise_minimum,
    extent_between,
    is_dense_box,
    is_independent_of,
)
from polyloom.polyhedra.compression import variable_compression
from polyloom.polyhedra.functions import compose, function_of, is_linear
from polyloom.polyhedra.loops.generate import IntExpression, Number, product_of

_DIM = isl.dim_type

MAX_DIMENSIONS = 4
"""Depth of the loop nest that one instruction mimics (dtg_codegen, Sec. 3)."""


@dataclass(frozen=True, eq=False)
class Nest:
    """``order``: ``{ [i0, ...] -> index[...] }``; ``start``, ``size``: parametric points of [i0, ...]."""

    order: isl.MultiAff
    start: isl.Set
    size: isl.Set

    def access(self, function: isl.MultiAff) -> isl.MultiAff:
        """Return ``{ [i0, ...] -> local }`` for ``function``: ``{ index[...] -> local }``."""
        return compose(self.order, function)


def find_nest(indices: isl.Set, varying: Sequence[str]) -> Nest | None:
    """Return the nest that runs through the indices in lexicographic order; None where there is none.

    The size may depend on parameters other than the ``varying`` ones; it must be a dense box of at most
    four dimensions.
    """
    compression = variable_compression(indices)
    compressed = compression.compressed
    start, end = elementwise_minimum(compressed), elementwise_maximum(compressed)
    size = extent_between(start, end)
    deep = compressed.dim(_DIM.set) > MAX_DIMENSIONS
    if deep or not is_dense_box(compressed, start, end) or not is_independent_of(size, varying):
        return None
    if not _keeps_order(compression.map, compressed):
        return None
    return Nest(compression.map, start, size)


def jointly_coalesced(
    sizes: Sequence[IntExpression], strides: Sequence[Sequence[int]]
) -> tuple[tuple[IntExpression, ...], list[tuple[int, ...]]]:
    """Drop dimensions of size 1, and merge neighbours that one stride runs through in every operand.

    [2, 2, 3] with strides (6, 3, 1) and (12, 6, 1): [4, 3] with (3, 1) and (6, 1). One dimension stays.
    """
    kept = [k for k, size in enumerate(sizes) if size != Number(1)]
    merged: list[IntExpression] = []
    found: list[list[int]] = []
    for k in reversed(kept):
        step = [operand[k] for operand in strides]
        inner = merged[0] if merged else None
        if isinstance(inner, Number) and step == [s * inner.value for s in found[0]]:
            merged[0] = product_of([sizes[k], inner])
        else:
            merged.insert(0, sizes[k])
            found.insert(0, step)
    if not merged:
        return (Number(1),), [(0,) for _ in strides]
    return tuple(merged), [tuple(steps[k] for steps in found) for k in range(len(strides))]


def linear_function(relation: isl.Map) -> isl.MultiAff | None:
    """Return a relation as one linear function; None where it is piecewise or not linear.

    Where a remainder is linear on the domain, isl may see it once constraints that others imply are gone.
    """
    return _as_linear(relation) or _as_linear(relation.remove_redundancies())


def _as_linear(relation: isl.Map) -> isl.MultiAff | None:
    function = function_of(relation).coalesce()
    if function.n_piece() > 1:
        function = function_of(relation.coalesce())
    if not function.isa_multi_aff():
        function = function.gist(relation.domain())
    if not function.isa_multi_aff():
        return None
    result = function.as_multi_aff()
    return result if is_linear(result) else None


def _keeps_order(order: isl.MultiAff, compressed: isl.Set) -> bool:
    """Whether points that come later in the nest have later indices."""
    if _is_echelon(order):
        return True
    relation = isl.Map.from_multi_aff(order).intersect_domain(compressed)
    later = isl.Map.lex_lt(compressed.get_space()).intersect_domain(compressed).intersect_range(compressed)
    images = later.apply_domain(relation).apply_range(relation)
    return bool(images.is_subset(isl.Map.lex_lt(images.get_space().range())))


def _is_echelon(order: isl.MultiAff) -> bool:
    """Whether each dimension counts up an index of its own: no earlier one has it, no later one moves it.

    Of two points the first dimension in which they differ then decides which index is later.
    """
    rows = [_signs(order.get_at(k)) for k in range(order.dim(_DIM.out))]
    previous = -1 if is_linear(order) else len(rows)
    for j in range(order.dim(_DIM.in_)):
        first = next((r for r, row in enumerate(rows) if row[j]), None)
        if first is None or first <= previous or rows[first][j] < 0:
            return False
        previous = first
    return True


def _signs(function: isl.Aff) -> list[int]:
    return [function.get_coefficient_val(_DIM.in_, j).sgn() for j in range(function.dim(_DIM.in_))]
