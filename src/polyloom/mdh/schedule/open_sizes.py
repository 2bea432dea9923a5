"""Schedules of open sizes: of the orders of their loops, one that is good for large arrays, too.

What an extent is taken for that is known only at launch (``cost/loop_sizes.UNKNOWN``) decides on register
tiles. Arrays of that size lie in a cache, in which columns of them are as good as rows, and of larger ones
they are not: a Gaussian of 2000 x 2500 took twice as long as a C compiler's, column of tiles by column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from math import ceil, inf, prod

from polyloom.ir.host import Index, MdHom, Order
from polyloom.ir.integers import fold
from polyloom.ir.transform.specialise import specialise_md_hom
from polyloom.mdh.schedule.cost.loop_sizes import likely
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.search_space import ScheduleSpace
from polyloom.polyhedra.loops.tree import Number, names_in

LARGE = 2000
"""What open extents are taken for to see what a schedule does in larger arrays."""

MANY = 1 << 20
"""The points of an md_hom with open extents in which the parts of its sums are looked at."""

LEAST_PART, MOST_PARTS = 64, 8
"""The shortest part of a sum that is looked at, and how many, each twice as long as the one before."""

LEAST_POINTS = 1 << 12
"""Points of a part of a sum at least: what begins and ends it takes 16 ns, more than the cost model knows."""

LOSS, GAIN = 0.1, 0.25
"""Parts of the expected time that another order may cost at usual sizes, and has to bring at large ones."""

ROW = 1 << 14
"""Elements of a row of results that one group stores past the caches."""

VECTORS = (1, 2, 4, 8)
"""Vectors at a time, of those that are stored past the caches."""

MOST_KEPT = 3
"""Dimensions of the results whose orders are all looked at."""


def fit_for_large_sizes(space: ScheduleSpace, schedule: Schedule) -> Schedule:
    """Return a schedule, or the same with loops in another order where large arrays gain much by it."""
    large = None if space.on_gpu or _has_tiles(schedule) else _with_numbers(space, LARGE)
    if large is None or not large.is_valid(schedule):
        return schedule
    least = (1.0 + LOSS) * space.predicted(schedule)
    found = [s for s in _reordered(space, schedule) if space.is_valid(s) and space.predicted(s) <= least]
    best = min(filter(large.is_valid, found), key=large.predicted, default=schedule)
    return best if large.predicted(best) <= (1.0 - GAIN) * large.predicted(schedule) else schedule


def with_large_parts(space: ScheduleSpace, schedule: Schedule) -> Schedule:
    """Return a schedule whose sums threads share in parts that are good for many points, where there is one.

    For calls that are large enough for threads. Where these share kept dimensions alone, it stays as it is.
    Of parts about as good the shortest: more threads share them, and rows wait in a nearer cache.
    """
    facts = space.facts(schedule)
    is_cut = any(schedule.group[d] for d in facts.reduced)
    if space.on_gpu or space.device.compute_units == 1 or (any(schedule.group) and not is_cut):
        return schedule
    large = _of_many_points(space)
    if large is None:
        return schedule
    whole = dict.fromkeys(facts.reduced, 0)
    sizes = ({**whole, d: LEAST_PART << k} for k in range(MOST_PARTS) for d in facts.reduced)
    cut = (_with_parts(schedule, each) for each in sizes)
    found = [s for s in cut if space.is_valid(s) and large.is_valid(s) and _part(large, s) >= LEAST_POINTS]
    least = min(map(large.predicted, found), default=inf)
    limit = 1.0 if is_cut else 1.0 - GAIN
    if least >= limit * large.predicted(schedule):
        return schedule
    return next(s for s in found if large.predicted(s) <= (1.0 + LOSS) * least)


def in_rows(space: ScheduleSpace, schedule: Schedule) -> Schedule:
    """Return a schedule, or one whose vectors lie along rows of results: these may go past the caches.

    For calls whose results no cache holds. What reduces stays as it is, for it takes longer than its results.
    """
    row, large = row_of(space.hom), _of_many_points(space)
    if row is None or large is None or space.facts(schedule).reduced:
        return schedule
    group = tuple(ROW if d == row else 1 for d in range(len(space.hom.extents)))
    sizes = [space.device.vector_bytes // size for size in (8, 4, 2, 1)]
    found = [
        replace(
            space.plain,
            group=group,
            private=tuple(count if d == row else 1 for d in range(len(group))),
            vector=row,
            width=width,
        )
        for width in sizes
        for count in VECTORS
    ]
    usable = [s for s in found if space.is_valid(s) and large.is_valid(s)]
    return min(usable, key=large.predicted, default=schedule)


def may_have_rows(hom: MdHom) -> bool:
    """Return whether ``in_rows`` may change a schedule: open sums stay as they are."""
    pairs = zip(hom.extents, hom.combine, strict=True)
    reduced = [n for n, o in pairs if o.order is not Order.CONCATENATE]
    return row_of(hom) is not None and all(isinstance(n, Number) for n in reduced)


def row_of(hom: MdHom) -> int | None:
    """Return the dimension along which results that may go past caches are neighbours; None: they may not.

    Rows of two results, side by side, wait for each other; what fills an array with numbers is quick anyhow.
    """
    if not hom.inputs or (len(hom.extents) > 1 and len(hom.outputs) > 1):
        return None
    last = {view.indices[-1] if view.indices else None for view in hom.outputs}
    moved = {index.coefficients if isinstance(index, Index) else () for index in last}
    (found, *others) = moved
    along = [d for d, c in enumerate(found) if c]
    return along[0] if not others and [found[d] for d in along] == [1] else None


def without_groups(space: ScheduleSpace, schedule: Schedule) -> Schedule:
    """Return a schedule for one thread: without groups, where the md_hom may have it so."""
    whole = replace(schedule, group=(0,) * len(schedule.group))
    return whole if space.is_valid(whole) else schedule


def _with_parts(schedule: Schedule, sizes: Mapping[int, int]) -> Schedule:
    """Return a schedule with groups of these sizes along these dimensions."""
    return replace(schedule, group=tuple(sizes.get(d, n) for d, n in enumerate(schedule.group)))


def _has_tiles(schedule: Schedule) -> bool:
    """Whether loops have tiles in caches, or copies: these are made for their order."""
    return any(schedule.local) or schedule.has_copies


def _part(space: ScheduleSpace, schedule: Schedule) -> int:
    """Return the points of a group."""
    return prod(n or likely(extent) for n, extent in zip(schedule.group, space.hom.extents, strict=True))


def _of_many_points(space: ScheduleSpace) -> ScheduleSpace | None:
    """Return the space of the md_hom with as much for each open size as makes ``MANY`` points of it."""
    numbers = [extent.value for extent in space.hom.extents if isinstance(extent, Number)]
    count = len(space.hom.extents) - len(numbers)
    return _with_numbers(space, round((MANY / max(1, prod(numbers))) ** (1 / count))) if count else None


def _with_numbers(space: ScheduleSpace, number: int) -> ScheduleSpace | None:
    """Return the space of the md_hom with a number for each open size; None where it has none."""
    names = {name for extent in space.hom.extents for name in names_in(extent)}
    values = dict.fromkeys(names, number)
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
