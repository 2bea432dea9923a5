"""Which of its legal schedules an md_hom gets where nothing was tuned: a local optimum of the cost model.

Schedules of the usual forms (``designs``), random ones, and small changes of the best of them, ranked by the
cost model, until nothing gets better.
Lowering never chooses: it takes a schedule, and a ``Scheduler`` for the md_homs that it makes itself.

Not in the papers: md_poly's schedules are tuned or written by hand.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod
from random import Random

from polyloom.ir.host import MdHom
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.schedule.addresses import Buffers
from polyloom.mdh.schedule.legality import is_legal
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.search_space import ScheduleSpace
from polyloom.mdh.schedule.tiling import TileFacts


@dataclass(frozen=True)
class SearchEffort:
    """How long the search takes for md_homs of at most ``points`` points."""

    points: float
    drafts: int
    rounds: int


EFFORTS = (SearchEffort(2e5, 20, 2), SearchEffort(2e7, 60, 8), SearchEffort(float("inf"), 160, 24))
"""A round costs what a small kernel saves in thousands of runs, so small md_homs get few of them."""

DRAWN_BESIDE_SEEDS = 12
"""Schedules that are drawn at most, where there are good ones of the usual forms or of similar md_homs."""

SHORT = 5e-3
"""Seconds: a kernel that is expected to take less is not worth a long search."""

LEAST_GAIN = 0.02
"""A round for a short kernel that gains less than this part of its time ends the search."""

ROUNDS_WITHOUT_GAIN = 3
"""The search for a long one ends after so many rounds without a better schedule."""

LEADERS, LEADERS_OF_SHORT, LEADERS_BESIDE_SEEDS, LEADERS_OF_ONE_KIND = 8, 4, 2, 2
"""Schedules that a round improves, and how many may have the same vector dimension and copies."""


def default_schedule(hom: MdHom, buffers: Buffers, device: DeviceModel) -> Schedule:
    """Return the schedule that the cost model prefers."""
    return preferred_schedule(ScheduleSpace(hom=hom, buffers=buffers, device=device))


def one_kernel_schedule(hom: MdHom, buffers: Buffers, device: DeviceModel) -> Schedule:
    """Return the schedule that the cost model prefers among those that need no second kernel."""
    return preferred_schedule(ScheduleSpace(hom=hom, buffers=buffers, device=device, split=False))


def legal_schedule(schedule: Schedule, hom: MdHom, buffers: Buffers, device: DeviceModel) -> Schedule:
    """Return ``schedule`` where ``hom`` may have it, else the cost model's: it was found for other sizes."""
    can_be = is_legal(TileFacts(hom, schedule), buffers, device)
    return schedule if can_be else default_schedule(hom, buffers, device)


def preferred_schedule(space: ScheduleSpace, seeds: Sequence[Schedule] = ()) -> Schedule:
    """Return the schedule that the cost model prefers, the same in every call.

    ``seeds``: those of similar md_homs, where there are any. Where they, or those of the usual forms, are
    good, fewer others are drawn, except for kernels that take long.
    """
    seeds = (*seeds, *space.designs)
    rng, points = Random(1), prod(map(space.extent, range(len(space.hom.extents))))
    effort = next(effort for effort in EFFORTS if points <= effort.points)
    is_seeded = any(space.predicted(seed) < SHORT for seed in seeds)
    drawn = min(effort.drafts // 3, DRAWN_BESIDE_SEEDS) if is_seeded else effort.drafts
    first = [space.plain, *seeds, *(space.sample(rng) for _ in range(drawn))]
    count = LEADERS_BESIDE_SEEDS if is_seeded else LEADERS_OF_SHORT
    best, without_gain = _leaders(space, first, count), 0
    is_short = space.predicted(best[0]) < SHORT
    if not is_short:
        count = LEADERS
        best = _leaders(space, first, count)
    for _ in range(effort.rounds):
        near = [n for each in best for n in space.neighbours(each, rng)]
        better = _leaders(space, [*best, *near], count)
        enough = (1.0 - LEAST_GAIN if is_short else 1.0) * space.predicted(best[0])
        without_gain = 0 if space.predicted(better[0]) < enough else without_gain + 1
        best = better
        if without_gain == (1 if is_short else ROUNDS_WITHOUT_GAIN):
            break
    return best[0]


def _leaders(space: ScheduleSpace, schedules: Sequence[Schedule], count: int) -> list[Schedule]:
    """Return the ``count`` best schedules, the best one first, not all of them of one kind.

    Those that take longer even with all data at hand are not looked at further.
    """
    drawn = list(dict.fromkeys(schedules))
    known: list[tuple[float, int]] = []
    best: list[Schedule] = []
    last = inf
    for least, number in sorted((space.at_least(schedule), k) for k, schedule in enumerate(drawn)):
        if least > last:
            break
        seconds = space.predicted(drawn[number])
        if seconds <= last:
            insort(known, (seconds, number))
            best = _of_several_kinds([drawn[k] for _, k in known])[:count]
            last = space.predicted(best[-1]) if len(best) == count else inf
    return best


def _of_several_kinds(schedules: Sequence[Schedule]) -> list[Schedule]:
    kinds: dict[object, int] = {}
    found = []
    for schedule in schedules:
        kind = schedule.vector, tuple(caching.memory for caching in schedule.inputs)
        kinds[kind] = kinds.get(kind, 0) + 1
        if kinds[kind] <= LEADERS_OF_ONE_KIND:
            found.append(schedule)
    return found
