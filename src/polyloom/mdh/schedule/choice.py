"""Which of its legal schedules an md_hom gets where nothing was tuned: a local optimum of the cost model.

Schedules of the usual forms (``designs``), random ones, and small changes of the best of them, ranked by the
cost model, for as long as that pays: a kernel of a microsecond gets two looks.
Lowering never chooses: it takes a schedule, and a ``Scheduler`` for the md_homs that it makes itself.

Not in the papers: md_poly's schedules are tuned or written by hand.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from math import inf
from random import Random

from polyloom.ir.host import MdHom
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.schedule.addresses import Buffers
from polyloom.mdh.schedule.legality import is_legal
from polyloom.mdh.schedule.open_sizes import fit_for_large_sizes
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.search_space import ScheduleSpace
from polyloom.mdh.schedule.tiling import TileFacts

RUNS, RUNS_ON_GPU = 500, 50_000
"""Runs of a kernel in which its search should pay. Kernels of GPUs are short, nothing bounds their time."""

LOOK = 5e-4
"""Seconds that it takes to look at a schedule: 0.3 to 0.8 ms, measured on one core of a Zen 2."""

SHARE = 0.05
"""The part of what could be saved that is spent in any case, on schedules that are drawn and in rounds."""

DRAWN = 640
"""Schedules that are drawn at most: kernels of milliseconds only get so many. A product of seven dimensions
ended with a schedule of 1.4 times the expected time, and 4.6 times the real one, of 160."""

AT_ONCE = 4
"""Schedules of the usual forms, or drawn, that are looked at before it is asked whether others could pay."""

ROUNDS = 24
"""Rounds of small changes at most."""

LEADERS, LEADERS_OF_ONE_KIND = 2, 2
"""Schedules that a round improves, and how many may have the same vector dimension and copies."""

MARGIN = 0.05
"""The part of the expected time that others must save beside schedules of the usual forms: the model tells no
less. Of convolutions that were measured, those that it put up to 4 hundredths before the usual forms took 1.3
to 2.4 times as long."""

MARGIN_OF_LOOPS = 0.25
"""The same beside plain loops of open sizes: theirs begin and end sooner, which is not expected of sizes."""


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

    ``seeds``: those of similar md_homs, where there are any. The search ends where it has taken as long as
    the best possible (``ScheduleSpace.unbeaten``) would save in ``RUNS`` runs, or, from ``SHARE`` of that
    on, where a round saves less than it takes.
    """
    return fit_for_large_sizes(space, _Search(space).preferred(seeds))


class _Search:
    """The search for one schedule. ``best``: the leaders, the best one first; ``looked``: how many it saw."""

    def __init__(self, space: ScheduleSpace) -> None:
        self.space, self.rng = space, Random(1)
        self.best: list[Schedule] = []
        self.looked = 0
        self.runs = RUNS_ON_GPU if space.on_gpu else RUNS

    def preferred(self, seeds: Sequence[Schedule]) -> Schedule:
        """Return the best schedule that was found."""
        loops = self.space.plain_loops
        if loops:
            return self._of_open_sizes(min(loops, key=self.space.predicted))
        self._look_in_turn(chain(seeds, self.space.designs(), [self.space.plain]))
        usual = self.best[0]
        share = 1.0 if self.looked == 1 else SHARE
        self._look_in_turn((self.space.sample(self.rng) for _ in range(DRAWN)), share)
        for _ in range(ROUNDS):
            if not self._pays():
                break
            before, looked = self.seconds, self.looked
            self._look([n for each in self.best for n in self.space.neighbours(each, self.rng)])
            is_worth = self.runs * (before - self.seconds) >= LOOK * (self.looked - looked)
            if not is_worth and not self._pays(SHARE):
                break
        return usual if self._is_close(usual, MARGIN) else self.best[0]

    def _of_open_sizes(self, loops: Schedule) -> Schedule:
        """Return loops of which the C compiler makes vectors, or a schedule of the usual forms."""
        self._look([loops, *self.space.designs()])
        return loops if self._is_close(loops, MARGIN_OF_LOOPS) else self.best[0]

    def _is_close(self, schedule: Schedule, margin: float) -> bool:
        """Whether a schedule takes about as long as the best one."""
        return self.space.predicted(schedule) <= (1.0 + margin) * self.seconds

    @property
    def seconds(self) -> float:
        """The expected time of the best one."""
        return self.space.predicted(self.best[0])

    def _pays(self, share: float = 1.0) -> bool:
        """Whether less was spent than a part of what the best possible could still save."""
        saved = self.runs * (self.seconds - self.space.unbeaten)
        return LOOK * self.looked < share * saved

    def _look_in_turn(self, schedules: Iterable[Schedule], share: float = 1.0) -> None:
        remaining = iter(schedules)
        self._look(list(islice(remaining, 0 if self.best else 1)))
        while self._pays(share) and (some := list(islice(remaining, AT_ONCE))):
            self._look(some)

    def _look(self, schedules: Sequence[Schedule]) -> None:
        self.looked += len(schedules)
        self.best = _leaders(self.space, [*self.best, *schedules], LEADERS)


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
