"""Schedules of open sizes: of the orders of their loops, one that is good for large arrays, too.

What an extent is taken for that is known only at launch (``cost/loop_sizes.UNKNOWN``) decides on register
tiles. Arrays of that size lie in a cache, in which columns of them are as good as rows, and of larger ones
they are not: a Gaussian of 2000 x 2500 took twice as long as a C compiler's, column of tiles by column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from math import ceil, prod

from polyloom.ir.integers import fold
from polyloom.ir.transform.specialise import specialise_md_hom
from polyloom.mdh.schedule.cost.loop_sizes import likely
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.search_space import ScheduleSpace
from polyloom.polyhedra.loops.tree import Number, names_in

LARGE = 2000
"""What open extents are taken for to see what a schedule does in larger arrays."""

LOSS, GAIN = 0.1, 0.25
"""Parts of the expected time that another order may cost at usual sizes, and has to bring at large ones."""

MOST_KEPT = 3
"""Dimensions of the results whose orders are all looked at."""


def fit_for_large_sizes(space: ScheduleSpace, schedule: Schedule) -> Schedule:
    """Return a schedule, or the same with loops in another order where large arrays gain much by it."""
    large = None if space.on_gpu or _has_tiles(schedule) else _at_large_sizes(space)
    if large is None or not large.is_valid(schedule):
        return schedule
    least = (1.0 + LOSS) * space.predicted(schedule)
    found = [s for s in _reordered(space, schedule) if space.is_valid(s) and space.predicted(s) <= least]
    best = min(filter(large.is_valid, found), key=large.predicted, default=schedule)
    return best if large.predicted(best) <= (1.0 - GAIN) * large.predicted(schedule) else schedule


def _has_tiles(schedule: Schedule) -> bool:
    """Whether loops have tiles in caches, or copies: these are made for their order."""
    return any(schedule.local) or schedule.has_copies


def _at_large_sizes(space: ScheduleSpace) -> ScheduleSpace | None:
    """Return the space of the md_hom with large numbers for open sizes; None where it has none."""
    names = {name for extent in space.hom.extents for name in names_in(extent)}
    values = dict.fromkeys(names, LARGE)
    hom = specialise_md_hom(space.hom, values)
    if not names or any(isinstance(extent, Number) and extent.value < 1 for extent in hom.extents):
        return None
    buffers = {
        name: replace(b, shape=tuple(fold(extent, values) for extent in b.shape))
        for name, b in space.buffers.items()
    }
    return ScheduleSpace(hom=hom, buffers=buffers, device=space.device, split=space.split)


def _reordered(space: ScheduleSpace, schedule: Schedule) -> Iterator[Schedule]:
    """Yield the schedule with loops over kept dimensions in other orders; threads share the outermost."""
    facts = space.facts(schedule)
    kept = [d for d in schedule.private_order if d in facts.kept]
    if len(kept) > MOST_KEPT:
        return
    groups = zip(space.hom.extents, schedule.group, strict=True)
    count = prod(ceil(likely(extent) / size) for extent, size in groups if size)
    for order in permutations(kept):
        rest = iter(order)
        changed = replace(
            schedule,
            private_order=tuple(next(rest) if d in facts.kept else d for d in schedule.private_order),
        )
        yield changed
        if count > 1 and not any(schedule.group[d] for d in facts.reduced):
            tile = facts.tile(order[0])
            size = ceil(ceil(likely(space.hom.extents[order[0]]) / count) / tile) * tile
            yield replace(
                changed, group=tuple(size if d == order[0] else 0 for d in range(len(schedule.group)))
            )
