"""Items that travel along lines of PEs: on each PE, where they come from and where they go to.

An item has a source on a line and sinks on it; it passes all PEs between the two. The functions speak of
places: PEs, or positions on one line.
Not in the papers: they only say what communication must achieve (dtg_codegen, Sec. 4.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import islpy as isl

from polyloom.polyhedra.simplify import with_explicit_divs
from polyloom.wafer.mapping.grid import Side

_Way = TypeVar("_Way")
_DIM = isl.dim_type


def neighbour_queue(side: Side, *, incoming: bool) -> str:
    """Return the name of the queue from, or to, the neighbour on a side: all that goes there shares it."""
    return f"{'from' if incoming else 'to'}_{side.value}_neighbour"


def link_queue(link: str, *, incoming: bool) -> str:
    """Return the name of the queue from, or to, a link along a line that routers copy to all of its PEs."""
    return f"{'from_one' if incoming else 'to_all'}_{link}"


@dataclass(frozen=True, eq=False)
class _Ends:
    """``{ place -> item }``: the items with an end at, on the low side of, or on the high side of a place."""

    here: isl.Map
    below: isl.Map
    above: isl.Map

    @property
    def not_above(self) -> isl.Map:
        return self.here.union(self.below)

    @property
    def not_below(self) -> isl.Map:
        return self.here.union(self.above)


@dataclass(frozen=True, eq=False)
class Passing:
    """``{ place -> item }``: what comes from the neighbour on the low (high) side, and what goes to it."""

    from_low: isl.Map
    from_high: isl.Map
    to_low: isl.Map
    to_high: isl.Map


def passing(sources: isl.Map, sinks: isl.Map, lower: isl.Map, higher: isl.Map) -> Passing:
    """Return what passes each place.

    ``sources``, ``sinks``: ``{ place -> item }``; ``lower``, ``higher``: from a place to those of its line on
    its low and on its high side.
    """
    source = _Ends(sources, lower.apply_range(sources), higher.apply_range(sources))
    sink = _Ends(sinks, lower.apply_range(sinks), higher.apply_range(sinks))
    return Passing(
        from_low=with_explicit_divs(source.below.intersect(sink.not_below)),
        from_high=with_explicit_divs(source.above.intersect(sink.not_above)),
        to_low=with_explicit_divs(source.not_below.intersect(sink.below)),
        to_high=with_explicit_divs(source.not_above.intersect(sink.above)),
    )


def split_by_targets(
    origins: Mapping[_Way, isl.Map], targets: Mapping[_Way, isl.Map]
) -> Iterator[tuple[_Way, tuple[_Way, ...], isl.Map]]:
    """Split what comes from each origin by the set of targets that it goes to; yield what is not empty."""
    for origin, items in origins.items():
        for count in range(len(targets) + 1):
            for chosen in combinations(targets, count):
                found = items
                for target, going in targets.items():
                    found = found.intersect(going) if target in chosen else found.subtract(going)
                if not found.is_empty():
                    yield origin, chosen, with_explicit_divs(found)


def beside(kept: isl.Set, others: isl.Set, apart: int = 0) -> dict[str, isl.Set]:
    """Split the ``others``: in rows of which something is kept what is left and right of it; other rows.

    These lie before all that is kept, or after it, where none lies between. A row: equal indices but the
    last one. Sets that differ in one of the first ``apart`` indices have nothing to do with each other.
    """
    rank = kept.dim(_DIM.set)
    later = isl.Map.lex_lt(kept.get_space())
    for k in range(apart):
        later = later.equate(_DIM.in_, k, _DIM.out, k)
    in_row = later
    for k in range(apart, rank - 1):
        in_row = in_row.equate(_DIM.in_, k, _DIM.out, k)
    left = others.intersect(kept.apply(in_row.reverse()))
    right = others.intersect(kept.apply(in_row)).subtract(left)
    rows = others.subtract(left).subtract(right)
    before, after = rows.subtract(kept.apply(later)), rows.subtract(kept.apply(later.reverse()))
    parts = {"left": left, "right": right}
    split = rows.is_subset(before.union(after)) and before.is_disjoint(after)
    parts |= {"before": before, "after": after} if split else {"rows": rows}
    return {name: with_explicit_divs(part) for name, part in parts.items() if not part.is_empty()}
