"""The schedules of an md_hom, with those that were found for other sizes or by an earlier generator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from random import Random

from polyloom.ir.host import HostProgram, MdHom
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.schedule.choice import preferred_schedule
from polyloom.mdh.schedule.schedules import Caching, Schedule, schedule_from_text
from polyloom.mdh.schedule.search_space import ScheduleSpace, space_of
from polyloom.mdh.schedule.signature import Key
from polyloom.mdh.tuning.kept_choices import kept_choice

DRAWN = 4
"""Schedules that are drawn, until one is legal for the md_hom as it stands."""


@dataclass(frozen=True, eq=False)
class SeededScheduleSpace:
    """A ``ScheduleSpace`` that can read schedules from elsewhere; its default is worked out once.

    ``space``: where schedules are drawn, and judged by the cost model. ``legal``: of the md_hom as it stands,
    which must have them all.
    ``seeds``: JSON texts of schedules for similar md_homs, from which the default starts.
    ``kept_as``: what the default is kept under for other processes.
    """

    space: ScheduleSpace
    legal: ScheduleSpace
    seeds: tuple[str, ...] = ()
    kept_as: Key | None = None

    @cached_property
    def _default(self) -> Schedule:
        if self.kept_as is None:
            return self._preferred()
        return kept_choice(self.kept_as, self.space.device, self.adapted, self._preferred)

    def _preferred(self) -> Schedule:
        found = [s for s in map(self.adapted, self.seeds) if s is not None]
        preferred = preferred_schedule(self.space, found)
        return preferred if self._is_valid(preferred) else preferred_schedule(self.legal, found)

    def _is_valid(self, schedule: Schedule) -> bool:
        return self.space is self.legal or self.legal.is_valid(schedule)

    def default(self) -> Schedule:
        """Return the schedule that the cost model prefers."""
        return self._default

    def sample(self, rng: Random) -> Schedule:
        """Return a random schedule."""
        drawn = (self.space.sample(rng) for _ in range(DRAWN))
        return next(filter(self._is_valid, drawn), None) or self.legal.sample(rng)

    def neighbours(self, schedule: Schedule, rng: Random) -> Sequence[Schedule]:
        """Return some schedules that differ a little from one."""
        return list(filter(self._is_valid, self.space.neighbours(schedule, rng)))

    def predicted(self, schedule: Schedule) -> float:
        """Return the seconds that the static cost model expects."""
        return self.space.predicted(schedule)

    def text(self, schedule: Schedule) -> str:
        """Return the canonical JSON text."""
        return schedule.text()

    def adapted(self, text: str) -> Schedule | None:
        """Return the legal schedule nearest to the JSON text of one; None where there is none like it.

        Tiles that are longer than the extents are cut, work-groups rounded to tiles; then, one after
        another, vectors, cache tiles and copies are given up.
        """
        try:
            schedule = schedule_from_text(text)
            return next((s for s in self._relaxed(schedule) if self.legal.is_valid(s)), None)
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError):
            return None

    def _relaxed(self, schedule: Schedule) -> Iterator[Schedule]:
        yield schedule
        if len(schedule.private) != len(self.space.hom.extents):
            return
        cut = self._cut(schedule)
        yield self._rounded(cut)
        yield self._rounded(replace(cut, follow=None, streaming=False, stages=1))
        inputs = (Caching(),) * len(cut.inputs)
        whole = replace(cut, local=(0,) * len(cut.local), inputs=inputs, stages=1)
        yield self._rounded(whole)
        scalar = replace(whole, vector=None, width=1)
        yield self._rounded(scalar)
        yield replace(scalar, group=(0,) * len(cut.group), follow=None)

    def _cut(self, schedule: Schedule) -> Schedule:
        """Make register tiles no longer than the extents."""
        private = list(schedule.private)
        for d, size in enumerate(private):
            width = schedule.width if d == schedule.vector else 1
            private[d] = max(1, min(size, ceil(self.space.extent(d) / width)))
        return replace(schedule, private=tuple(private))

    def _rounded(self, schedule: Schedule) -> Schedule:
        """Make cache tiles multiples of register tiles, and work-groups multiples of cache tiles."""
        local, group = list(schedule.local), list(schedule.group)
        facts = self.space.facts(schedule)
        for d in range(len(local)):
            step = facts.step(d)
            local[d] = ceil(local[d] / step) * step if local[d] and d in facts.kept else local[d]
            unit = local[d] or step
            group[d] = ceil(group[d] / unit) * unit if group[d] else 0
        return replace(schedule, local=tuple(local), group=tuple(group))


def seeded_space(
    hom: MdHom,
    program: HostProgram,
    device: DeviceModel,
    seeds: Sequence[str] = (),
    kept_as: Key | None = None,
    node: MdHom | None = None,
) -> SeededScheduleSpace:
    """Return the schedules of an md_hom of ``program``; ``seeds``: of similar md_homs, as JSON texts.

    ``node``: the md_hom as it stands, where ``hom`` is one launch of it: all launches have one schedule.
    It is judged as if it had no guard, of which each launch has another part.
    """
    others = () if node is None or node == hom else (node,)
    legal = space_of(hom, program, device, others)
    if hom.guard is None or not others:
        return SeededScheduleSpace(legal, legal, tuple(seeds), kept_as)
    space = space_of(replace(hom, guard=None), program, device, (hom, *others))
    return SeededScheduleSpace(space, legal, tuple(seeds), kept_as)
