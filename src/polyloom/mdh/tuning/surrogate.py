"""The static cost model, corrected by the timings so far.

A linear model of log(measured / predicted) over the parameters of a schedule, with a penalty on its
coefficients (ridge regression). Its features come from the schedule's JSON text alone, so that a new
parameter needs no line here: each value of each parameter is one, and so is the logarithm of each number.
Not in the papers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from polyloom.mdh.tuning.outcome import Outcome, Status

REJECTED = 3.0
"""What a rejected schedule counts as: so much times the slowest one in logarithms, at least."""

RIDGE = 1.0
FEW = 6
"""Timings below which the static model is not corrected."""

OFTEN = 4
"""After so many new timings the coefficients are computed anew."""


class Surrogate:
    """What was learned from timings; asked for a corrected prediction."""

    def __init__(self) -> None:
        self._columns: dict[str, int] = {}
        self._rows: list[dict[str, float]] = []
        self._targets: list[float] = []
        self._coefficients: npt.NDArray[np.float64] | None = None
        self._mean = 0.0
        self._fitted = 0

    def learn(self, text: str, predicted: float, outcome: Outcome) -> None:
        """Take in the outcome of the schedule with the JSON ``text``."""
        measured = self._measured(outcome, predicted)
        self._rows.append(features(text))
        self._targets.append(math.log(measured) - math.log(max(predicted, 1e-12)))

    def _measured(self, outcome: Outcome, predicted: float) -> float:
        if outcome.seconds is not None and outcome.status in (Status.VERIFIED, Status.SLOW):
            return max(outcome.seconds, 1e-9)
        worst = max(self._targets, default=0.0)
        return max(predicted, 1e-12) * math.exp(max(worst, math.log(REJECTED)))

    def corrected(self, text: str, predicted: float) -> float:
        """Return the seconds to expect of a schedule, given what the static model says."""
        if len(self._rows) < FEW:
            return predicted
        if len(self._rows) >= self._fitted + OFTEN or self._coefficients is None:
            self._fit()
        coefficients = self._coefficients
        assert coefficients is not None
        known = ((self._columns.get(name), value) for name, value in features(text).items())
        correction = self._mean + sum(coefficients[k] * value for k, value in known if k is not None)
        return predicted * math.exp(min(max(correction, -50.0), 50.0))

    def _fit(self) -> None:
        """Solve the ridge regression in its dual form, which is as large as the number of timings."""
        self._columns = {}
        for row in self._rows:
            for name in row:
                self._columns.setdefault(name, len(self._columns))
        matrix = np.zeros((len(self._rows), len(self._columns)))
        for number, row in enumerate(self._rows):
            for name, value in row.items():
                matrix[number, self._columns[name]] = value
        targets = np.array(self._targets)
        self._mean = float(targets.mean())
        gram = matrix @ matrix.T + RIDGE * np.eye(len(self._rows))
        self._coefficients = matrix.T @ np.linalg.solve(gram, targets - self._mean)
        self._fitted = len(self._rows)


def features(text: str) -> dict[str, float]:
    """Return the features of a schedule: ``path=value`` for each leaf, and ``path`` with log2(1 + number)."""
    found: dict[str, float] = {}
    for path, leaf in _leaves(json.loads(text), ""):
        found[f"{path}={leaf}"] = 1.0
        if isinstance(leaf, int | float) and not isinstance(leaf, bool):
            found[path] = math.copysign(math.log2(1 + abs(leaf)), leaf) / 4
    return found


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    match value:
        case dict():
            for name, inner in value.items():
                yield from _leaves(inner, f"{path}.{name}")
        case list():
            for number, inner in enumerate(value):
                yield from _leaves(inner, f"{path}[{number}]")
        case _:
            yield path, value
