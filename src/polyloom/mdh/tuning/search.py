"""Which schedule to time next.

Nothing here knows a device or a clock: ``Search`` is asked for a schedule and told its outcome. It
never enumerates the space. Each batch is drawn from a pool of random schedules and of neighbours of the best
ones, ranked by the static cost model, which the timings so far correct (``surrogate``); a part of every batch
is taken at random, so that a wrong model costs time and not the result.

Why not a library: docs/tuning.md.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, Protocol, TypeVar

from polyloom.mdh.tuning.outcome import Outcome
from polyloom.mdh.tuning.surrogate import Surrogate

S = TypeVar("S")


class Space(Protocol[S]):
    """The legal schedules of one md_hom on one device; every schedule that it gives is valid."""

    def default(self) -> S:
        """Return the schedule that the cost model prefers."""

    def sample(self, rng: Random) -> S:
        """Return a random schedule."""

    def neighbours(self, schedule: S, rng: Random) -> Sequence[S]:
        """Return some schedules that differ a little from one."""

    def predicted(self, schedule: S) -> float:
        """Return the seconds that the static cost model expects."""

    def text(self, schedule: S) -> str:
        """Return the canonical JSON text."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How the search goes on.

    ``pool``: random schedules drawn for each batch; ``batch``: how many of a pool are timed; ``explore``: the
    fraction of a batch taken at random; ``elites``: how many of the best schedules have their neighbours
    looked at; ``model``, ``learn``: whether the cost model ranks, and whether timings correct it.
    """

    pool: int = 64
    batch: int = 4
    explore: float = 0.15
    elites: int = 4
    model: bool = True
    learn: bool = True


@dataclass(frozen=True)
class Measured(Generic[S]):
    """A schedule that was timed."""

    schedule: S
    text: str
    outcome: Outcome


class Search(Generic[S]):
    """The state of a search: what was tried, what is next."""

    def __init__(
        self,
        space: Space[S],
        seeds: Iterable[S],
        rng: Random,
        options: SearchOptions | None = None,
        skip: Iterable[str] = (),
    ) -> None:
        """``seeds`` are timed first, in order; schedules whose texts are in ``skip`` never."""
        self._space = space
        self._rng = rng
        self._options = options or SearchOptions()
        self._seen = set(skip)
        self._queue: deque[S] = deque()
        self._surrogate = Surrogate()
        self.measured: list[Measured[S]] = []
        self._enqueue(seeds)

    def ask(self) -> S | None:
        """Return the next schedule, one that was not asked for before; None where none is found any more."""
        if not self._queue:
            self._refill()
        return self._queue.popleft() if self._queue else None

    @property
    def waiting(self) -> tuple[S, ...]:
        """The schedules that ``ask`` returns next, as far as that is known."""
        return tuple(self._queue)

    def tell(self, schedule: S, outcome: Outcome) -> None:
        """Record the outcome of a schedule."""
        text = self._space.text(schedule)
        self._seen.add(text)
        self.measured.append(Measured(schedule, text, outcome))
        if self._options.learn:
            self._surrogate.learn(text, self._space.predicted(schedule), outcome)

    def best(self, count: int = 1) -> list[Measured[S]]:
        """Return the fastest right schedules, the best first."""
        right = [each for each in self.measured if math.isfinite(each.outcome.cost)]
        return sorted(right, key=lambda each: each.outcome.cost)[:count]

    def _enqueue(self, schedules: Iterable[S]) -> None:
        for schedule in schedules:
            text = self._space.text(schedule)
            if text not in self._seen:
                self._seen.add(text)
                self._queue.append(schedule)

    def _refill(self) -> None:
        for _ in range(4):  # pools without anything new: the space is small and soon done
            pool = self._pool()
            if pool:
                self._enqueue(self._selected(pool))
                return

    def _pool(self) -> list[S]:
        """Return new schedules: neighbours of the best ones, and random ones."""
        found = [
            neighbour
            for measured in self.best(self._options.elites)
            for neighbour in self._space.neighbours(measured.schedule, self._rng)
        ]
        found += [self._space.sample(self._rng) for _ in range(self._options.pool)]
        fresh = {self._space.text(schedule): schedule for schedule in found}
        return [schedule for text, schedule in fresh.items() if text not in self._seen]

    def _selected(self, pool: list[S]) -> list[S]:
        """Return the batch: what is expected to be fast, and some at random in between."""
        ranked = sorted(pool, key=self._expected) if self._options.model else list(pool)
        if not self._options.model:
            self._rng.shuffle(ranked)
        batch: list[S] = []
        while ranked and len(batch) < self._options.batch:
            at_random = self._rng.random() < self._options.explore
            batch.append(ranked.pop(self._rng.randrange(len(ranked)) if at_random else 0))
        return batch

    def _expected(self, schedule: S) -> float:
        predicted = self._space.predicted(schedule)
        if not self._options.learn:
            return predicted
        return self._surrogate.corrected(self._space.text(schedule), predicted)
