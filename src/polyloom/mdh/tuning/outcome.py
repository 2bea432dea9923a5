"""The outcome of a candidate, as worker, search and database know it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """How the timing of a schedule ended."""

    VERIFIED = "verified"
    """Timed, and its results are right."""
    SLOW = "slow"
    """Right or not, it was so much slower than the best that it was given up."""
    WRONG = "wrong"
    """It ran, and its results are wrong."""
    REFUSED = "refused"
    """The driver does not build or launch it."""
    CRASHED = "crashed"
    """The process died of it."""
    TIMEOUT = "timeout"
    """It took longer than a candidate may."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of one timing.

    ``seconds``: typical device time of one execution among ``times``; None where it never ran to its end.
    ``reason``: why it was rejected, else empty. ``max_error``: the largest error in units of an
    element's bound; None where that is not known, or an element differs that may not.
    """

    status: Status
    seconds: float | None = None
    times: tuple[float, ...] = ()
    reason: str = ""
    max_error: float | None = None

    @property
    def cost(self) -> float:
        """Seconds if it may win, else infinity."""
        verified = self.status is Status.VERIFIED and self.seconds is not None
        return self.seconds if verified and self.seconds is not None else math.inf
