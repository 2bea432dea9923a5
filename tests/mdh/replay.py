"""Tuning without a device: a space and a measure made of what was recorded before.

For tests of the search: the space holds only schedules that a database has timings of, and
timing one returns what is recorded. Source of the idea: Kernel Tuner's simulation mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from polyloom.mdh.tuning.measure import OneByOne
from polyloom.mdh.tuning.outcome import Outcome, Status
from polyloom.mdh.tuning.surrogate import features

NEIGHBOURS = 12
"""How many neighbours a schedule has."""


class RecordedSpace:
    """The schedules of a record, as JSON texts; neighbours are those with the most features in common."""

    def __init__(self, recorded: Mapping[str, Outcome], predicted: Mapping[str, float], default: str) -> None:
        """``recorded``: outcomes by text, ``default`` among them; ``predicted``: the cost model's seconds."""
        self._texts = sorted(recorded)
        self._predicted = dict(predicted)
        self._default = default
        self._features = {text: frozenset(features(text)) for text in self._texts}

    def default(self) -> str:
        """Return the model's choice."""
        return self._default

    def sample(self, rng: Random) -> str:
        """Return one of the record, at random."""
        return rng.choice(self._texts)

    def neighbours(self, schedule: str, rng: Random) -> Sequence[str]:
        """Return the nearest of the record."""
        own = self._features[schedule]
        others = [text for text in self._texts if text != schedule]
        return sorted(others, key=lambda text: (len(own ^ self._features[text]), rng.random()))[:NEIGHBOURS]

    def predicted(self, schedule: str) -> float:
        """Return the recorded prediction; one second where there is none."""
        return self._predicted.get(schedule, 1.0)

    def text(self, schedule: str) -> str:
        """Return the schedule itself."""
        return schedule

    def adapted(self, text: str) -> str | None:
        """Return ``text`` where it is recorded."""
        return text if text in self._features else None


class RecordedMeasure(OneByOne[str]):
    """Gives the recorded outcomes."""

    def __init__(self, recorded: Mapping[str, Outcome]) -> None:
        super().__init__()
        self._recorded = dict(recorded)

    def build(self, schedules: Sequence[str]) -> None:
        """Build nothing."""

    def measure(self, schedule: str, stop_above: float, baseline: tuple[str, float] | None = None) -> Outcome:
        """Return what is recorded, given up where it is slower than ``stop_above``."""
        outcome = self._recorded[schedule]
        if outcome.status is Status.VERIFIED and outcome.cost > stop_above:
            return Outcome(
                status=Status.SLOW,
                seconds=outcome.seconds,
                times=outcome.times,
                reason="slower than the best",
            )
        return outcome

    def compare(self, schedules: Sequence[str], seconds: float) -> Mapping[str, Outcome]:
        """Return what is recorded."""
        return {schedule: self._recorded[schedule] for schedule in schedules}
