"""The parent's side of tuning: candidates are timed in a child process, each within limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from polyloom.diagnostics import PolyloomError, error
from polyloom.mdh.tuning.candidates.trial import Trial
from polyloom.mdh.tuning.measure import OneByOne
from polyloom.mdh.tuning.outcome import Outcome, Status
from polyloom.workers.child import Died, Job, Overdue, Worker

S = TypeVar("S")

FACTORY = "polyloom.mdh.tuning.candidates.bench:Bench"
LIMITS = {"start": 300.0, "build": 30.0, "first": 120.0, "check": 120.0, "repeat": 60.0, "": 60.0}
"""Seconds that a stage may take; PoCL compiles at the first launch, so that is no shorter than a build."""

ALLOWANCE = 5.0
"""Seconds that a launch may take however short it should be: a machine that is busy, a compilation."""


class DeviceMeasure(OneByOne[S]):
    """Times the schedules of one md_hom on a device; ``text`` gives a schedule's JSON text."""

    def __init__(
        self,
        trial: Trial,
        text: Callable[[S], str],
        build_limit: float = LIMITS["build"],
        factory: str = FACTORY,
    ) -> None:
        super().__init__()
        self._worker = Worker(Job(factory, trial), {**LIMITS, "build": build_limit})
        self._build_limit = build_limit
        self._text = text

    def build(self, schedules: Sequence[S]) -> None:
        """Build schedules that are measured next; a child that dies of it or hangs is replaced."""
        texts = [self._text(schedule) for schedule in schedules]
        limits = {"build": self._build_limit * len(texts)}
        with suppress(Died, Overdue):  # the one that is at fault dies again where it is measured
            self._worker.call("build", texts, limits=limits)

    def measure(self, schedule: S, stop_above: float, baseline: tuple[S, float] | None = None) -> Outcome:
        """Time one schedule; a child that dies of it or hangs is replaced.

        Errors: ``tuning-worker`` where no child can be started, and what opening the device raises.
        """
        try:
            beside = None if baseline is None else (self._text(baseline[0]), baseline[1])
            limits = self._limits(stop_above)
            outcome = self._worker.call("measure", self._text(schedule), stop_above, beside, limits=limits)
        except Died as fault:
            if not self._worker.ready:
                raise start_failed(fault) from fault
            return Outcome(status=Status.CRASHED, reason=str(fault))
        except Overdue as fault:
            return Outcome(status=Status.TIMEOUT, reason=str(fault))
        assert isinstance(outcome, Outcome)
        return outcome

    def compare(self, schedules: Sequence[S], seconds: float) -> Mapping[str, Outcome]:
        """Time right schedules in turns; nothing where the child dies of it."""
        texts = [self._text(schedule) for schedule in schedules]
        limits = {"build": self._build_limit * len(texts)}
        try:
            found: Mapping[str, Outcome] = self._worker.call("compare", texts, seconds, limits=limits)
        except (Died, Overdue):
            return {}
        return found

    def close(self) -> None:
        """End the child."""
        self._worker.close()

    def _limits(self, stop_above: float) -> dict[str, float]:
        if math.isinf(stop_above):
            return {}
        first = self._build_limit + ALLOWANCE + 10 * stop_above
        return {"first": first, "repeat": ALLOWANCE + 30 * stop_above}


def start_failed(fault: Exception) -> PolyloomError:
    """Return the diagnostic for a child that cannot even be started."""
    message = f"the process that times candidates cannot be started: {fault}"
    helps = ["`polyloom devices` shows which devices work"]
    return PolyloomError(error("tuning-worker", message, helps=helps))
