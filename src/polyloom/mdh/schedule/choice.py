"""Which of its legal schedules an md_hom gets where nothing was tuned: a local optimum of the cost model.

Schedules of the usual forms (``designs``), random ones, and small changes of the best of them, ranked by the
cost model, until nothing gets better.
Lowering never chooses: it takes a schedule, and a ``Scheduler`` for the md_homs that it makes itself.

Not in the papers: md_poly's schedules are tuned or written by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from random import Random

from polyloom.ir.host import MdHom
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.schedule.addresses import Buffers
from polyloom.mdh.schedule.legality import problems
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

SEEDED_REDUCTION = 3
"""With seeds, one in so many schedules is drawn and improved."""

SEEDS_SUFFICE_BELOW = 5e-3
"""Seconds: a kernel that some seed runs faster than this is searched for with the reduced effort."""

DRAWN_BESIDE_DESIGNS = 12
"""Schedules that are drawn, with the reduced effort, where there are some of the usual forms."""

LEAST_GAIN = 0.02
"""A round of the reduced effort that gains less than this part of the time counts as one without gain."""

ROUNDS_WITHOUT_GAIN, SEEDED_ROUNDS_WITHOUT_GAIN = 3, 1
"""The search ends after so many rounds without a better schedule; the second one with reduced effort."""

LEADERS, LEADERS_OF_ONE_KIND = 8, 2
"""Schedules that a round improves, and how many may have the same vector dimension and copies."""


def default_schedule(hom: MdHom, buffers: Buffers, device: DeviceModel) -> Schedule:
    """Return the schedule that the cost model prefers."""
    return preferred_schedule(ScheduleSpace(hom=hom, buffers=buffers, device=device))


def one_kernel_schedule(hom: MdHom, buffers: Buffers, device: DeviceModel) -> Schedule:
    """Return the schedule that the cost model prefers among those that need no second kernel."""
    return preferred_schedule(ScheduleSpace(hom=hom, buffers=buffers, device=device, split=False))


def legal_schedule(schedule: Schedule, hom: MdHom, buffers: Buffers, device: DeviceModel) -> Schedule:
    """Return ``schedule`` where ``hom`` may have it, else the cost model's: it was found for other sizes."""
    is_legal = not problems(TileFacts(hom, schedule), buffers, device)
    return schedule if is_legal else default_schedule(hom, buffers, device)


def preferred_schedule(space: ScheduleSpace, seeds: Sequence[Schedule] = ()) -> Schedule:
    """Return the schedule that the cost model prefers, the same in every call.

    ``seeds``: those of similar md_homs, where there are any. Where they, or those of the usual forms, are
    good, fewer others are drawn, except for kernels that take long.
    """
    seeds = (*seeds, *space.designs)
    rng, points = Random(1), prod(map(space.extent, range(len(space.hom.extents))))
    effort = next(effort for effort in EFFORTS if points <= effort.points)
    is_seeded = any(space.predicted(seed) < SEEDS_SUFFICE_BELOW for seed in seeds)
    reduction = SEEDED_REDUCTION if is_seeded else 1
    most_without_gain = SEEDED_ROUNDS_WITHOUT_GAIN if is_seeded else ROUNDS_WITHOUT_GAIN
    drawn = effort.drafts // reduction
    drawn = min(drawn, DRAWN_BESIDE_DESIGNS) if is_seeded and space.designs else drawn
    best = _leaders(
        space, [space.plain, *seeds, *(space.sample(rng) for _ in range(drawn))], LEADERS // reduction
    )
    without_gain = 0
    for _ in range(effort.rounds):
        near = [n for each in best for n in space.neighbours(each, rng)]
        better = _leaders(space, [*best, *near], LEADERS // reduction)
        enough = (1.0 - LEAST_GAIN if is_seeded else 1.0) * space.predicted(best[0])
        without_gain = 0 if space.predicted(better[0]) < enough else without_gain + 1
        best = better
        if without_gain == most_without_gain:
            break
    return best[0]


def _leaders(space: ScheduleSpace, schedules: Sequence[Schedule], count: int) -> list[Schedule]:
    """Return the ``count`` best schedules, the best one first, not all of them of one kind."""
    kinds: dict[object, int] = {}
    found = []
    for schedule in sorted(dict.fromkeys(schedules), key=space.predicted):
        kind = schedule.vector, tuple(caching.memory for caching in schedule.inputs)
        kinds[kind] = kinds.get(kind, 0) + 1
        if kinds[kind] <= LEADERS_OF_ONE_KIND:
            found.append(schedule)
    return found[:count]
