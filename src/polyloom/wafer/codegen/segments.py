"""Sequences of elements cut into segments, each a nest at fixed outer indices: one instruction's work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.polyhedra.binding import bind_domain
from polyloom.polyhedra.effort import remembered
from polyloom.wafer.machine.descriptor_nests import Nest, find_nest, linear_function

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class Elements:
    """Elements that are treated in the same way: ``items``: ``[PE_X, PE_Y] -> { index[k] }``.

    ``local``: ``{ index[k] -> y_local[...] }`` on them, where memory has to do with it.
    """

    name: str
    items: isl.Set
    local: isl.Map | None


@dataclass(frozen=True, eq=False)
class Segment:
    """Elements at fixed outer indices as a nest; ``access``: where its points are in local memory."""

    elements: Elements
    nest: Nest
    access: isl.MultiAff | None


@dataclass(frozen=True, eq=False)
class Cut:
    """Segments in order, with loops over the first ``depth`` of ``rank`` index dimensions around them."""

    depth: int
    rank: int
    segments: tuple[Segment, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the outer index dimensions: parameters of the nests."""
        return _outer_names(self.depth)

    def visits(self) -> isl.UnionMap:
        """Return ``{ S[o...] -> [o..., k] }``: at each tuple of outer indices the segments in order."""
        split = _split_map(self.depth, self.rank).range_factor_domain()
        result: isl.UnionMap | None = None
        for place, segment in enumerate(self.segments):
            outer = segment.elements.items.apply(split).set_tuple_name(segment.elements.name)
            visited = isl.UnionMap.from_map(_visit_outer(outer, place))
            result = visited if result is None else result.union(visited)
        assert result is not None
        return result


@remembered
def cut(kinds: Sequence[Elements]) -> Cut | None:
    """Cut elements of some kinds, with as few loops as work; None where instructions cannot do it.

    An instruction pays for a single element, too: what scalar code sends or receives is one as well.
    """
    rank = kinds[0].items.dim(_DIM.set)
    one_pe = _on_one_pe(kinds)
    for depth in range(rank):
        if one_pe is not None and _segments(one_pe, depth, rank) is None:
            continue
        segments = _segments(kinds, depth, rank)
        if segments is not None:
            return Cut(depth, rank, tuple(segments))
    return None


def _on_one_pe(kinds: Sequence[Elements]) -> list[Elements] | None:
    """Return what one PE has of the kinds: what cannot be cut there cannot be cut, and that is asked faster.

    None where all have one piece, which takes no longer to ask.
    """
    first = max(kinds, key=lambda kind: kind.items.n_basic_set())
    if first.items.n_basic_set() == 1:
        return None
    pe = isl.Set.from_point(first.items.params().sample_point())
    own = [_at(kind, pe) for kind in kinds]
    return [kind for kind in own if not kind.items.is_empty()]


def _at(kind: Elements, pe: isl.Set) -> Elements:
    local = None if kind.local is None else kind.local.intersect_params(pe)
    return Elements(kind.name, kind.items.intersect_params(pe).coalesce(), local)


@remembered
def cut_at(kinds: Sequence[Elements], depth: int) -> Cut | None:
    """Cut elements with loops over so many index dimensions; None where that does not work."""
    rank = kinds[0].items.dim(_DIM.set)
    segments = _segments(kinds, depth, rank)
    return None if segments is None else Cut(depth, rank, tuple(segments))


@remembered
def takes_turns(before: isl.Set, own: isl.Set, depth: int) -> bool:
    """Whether PEs come after those before them in each round: at each tuple of outer indices.

    ``before``, ``own``: ``[PE_X, PE_Y] -> { index[k] }``: what comes from the PEs before one, and its own.
    """
    split = _split_map(depth, own.dim(_DIM.set))
    if not _all_before(before, own, split):
        return False
    both = before.params().intersect(own.params())
    return same_rounds([before.intersect_params(both), own.intersect_params(both)], depth)


def same_rounds(parts: Sequence[isl.Set], depth: int) -> bool:
    """Whether all parts have elements at the same tuples of outer indices."""
    split = _split_map(depth, parts[0].dim(_DIM.set))
    first, *others = (part.apply(split).unwrap().domain() for part in parts)
    return all(first.is_equal(other) for other in others)


def within_rounds(parts: Sequence[isl.Set], depth: int) -> tuple[tuple[str, ...], list[isl.Set]]:
    """Return the names of the outer indices, and what each part has of a round: they are parameters there."""
    names, split = _outer_names(depth), _split_map(depth, parts[0].dim(_DIM.set))
    return names, [bind_domain(part.apply(split).unwrap(), names) for part in parts]


def deeper(kinds: Sequence[Elements], found: Cut) -> Iterator[Cut]:
    """Yield cuts with more loops around smaller segments than one that was found."""
    for depth in range(found.depth + 1, found.rank):
        pieces = cut_at(kinds, depth)
        if pieces is not None:
            yield pieces


def _segments(kinds: Sequence[Elements], depth: int, rank: int) -> list[Segment] | None:
    """Return the segments at a depth, in their order; None where this depth does not work."""
    names, split = _outer_names(depth), _split_map(depth, rank)
    segments: list[Segment] = []
    for kind in kinds:
        nest = find_nest(bind_domain(kind.items.apply(split).unwrap(), names), names)
        if nest is None:
            return None
        access: isl.MultiAff | None = None
        if kind.local is not None:
            function = _inner_function(kind.local, split, names)
            if function is None:
                return None
            access = nest.access(function)
        segments.append(Segment(kind, nest, access))
    return _in_order(segments, split)


def _in_order(segments: Sequence[Segment], split: isl.Map) -> list[Segment] | None:
    """Order the segments so that each comes wholly before the next; None if that cannot be."""
    left, order = list(segments), list[Segment]()
    while left:
        first = next((a for a in left if all(_precedes(a, b, split) for b in left if b is not a)), None)
        if first is None:
            return None
        order.append(first)
        left.remove(first)
    return order


def _outer_names(depth: int) -> tuple[str, ...]:
    return tuple(f"o{k}" for k in range(depth))


def _split_map(depth: int, rank: int) -> isl.Map:
    """Return ``{ index[i...] -> [outer[...] -> index[...]] }``, the first ``depth`` dimensions apart."""
    names = [f"i{k}" for k in range(rank)]
    outer, inner = ", ".join(names[:depth]), ", ".join(names[depth:])
    return isl.Map(f"{{ index[{', '.join(names)}] -> [outer[{outer}] -> index[{inner}]] }}")


def _inner_function(elements: isl.Map, split: isl.Map, names: Sequence[str]) -> isl.MultiAff | None:
    """Return ``{ index[inner] -> local }``, the outer indices as parameters; None if it is not linear."""
    curried = elements.apply_domain(split).curry()
    return linear_function(bind_domain(curried, names).unwrap())


def _precedes(first: Segment, second: Segment, split: isl.Map) -> bool:
    """Whether, at equal outer indices on a PE, no index of ``second`` comes before one of ``first``."""
    return _all_before(first.elements.items, second.elements.items, split)


def _all_before(early: isl.Set, late: isl.Set, split: isl.Map) -> bool:
    pairs = isl.Map.from_domain_and_range(late, early)
    earlier = pairs.intersect(isl.Map.lex_lt(early.get_space()))
    outer = split.range_factor_domain()
    same = outer.apply_range(outer.reverse())
    return bool(earlier.intersect(same).is_empty())


def _visit_outer(points: isl.Set, rank: int) -> isl.Map:
    """Return ``{ S[o...] -> [o..., rank] }`` on the points."""
    names = [f"i{k}" for k in range(points.dim(_DIM.set))]
    name = points.get_tuple_name()
    text = f"{{ {name}[{', '.join(names)}] -> [{', '.join([*names, str(rank)])}] }}"
    return isl.Map(text).intersect_domain(points)
