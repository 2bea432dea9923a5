"""What times schedules and checks their results: one after another here, or several at a time elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from polyloom.mdh.tuning.outcome import Outcome

S = TypeVar("S")


class Measure(Protocol[S]):
    """Times schedules and checks their results; ``most``: how many at a time.

    ``baseline``: a right schedule with its seconds, which may be timed in turns with a candidate. A schedule
    is given up when one execution takes longer than ``stop_above`` seconds.
    """

    @property
    def most(self) -> int:
        """How many schedules may be started before one is waited for."""

    def build(self, schedules: Sequence[S]) -> None:
        """Build schedules that are measured next, several at a time where that is faster."""

    def measure(self, schedule: S, stop_above: float, baseline: tuple[S, float] | None = None) -> Outcome:
        """Time one schedule."""

    def start(self, schedule: S, stop_above: float, baseline: tuple[S, float] | None = None) -> None:
        """Begin to time a schedule."""

    def finished(self) -> tuple[S, Outcome]:
        """Wait for one of the schedules that were started; return it with its outcome."""

    def compare(self, schedules: Sequence[S], seconds: float) -> Mapping[str, Outcome]:
        """Time right schedules in turns, for about ``seconds``; return outcomes by their texts."""


class OneByOne(Generic[S]):
    """A measure that times one schedule at a time, when it is waited for."""

    def __init__(self) -> None:
        self._started: deque[tuple[S, float, tuple[S, float] | None]] = deque()

    @property
    def most(self) -> int:
        """One."""
        return 1

    def start(self, schedule: S, stop_above: float, baseline: tuple[S, float] | None = None) -> None:
        """Take a schedule, to be timed when it is waited for."""
        self._started.append((schedule, stop_above, baseline))

    def finished(self) -> tuple[S, Outcome]:
        """Time the first schedule that was started."""
        schedule, stop_above, baseline = self._started.popleft()
        return schedule, self.measure(schedule, stop_above, baseline)

    def measure(self, schedule: S, stop_above: float, baseline: tuple[S, float] | None = None) -> Outcome:
        """Time one schedule."""
        raise NotImplementedError
