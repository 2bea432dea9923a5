"""What every contender is: a class in a child process of its own that runs workloads and times itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from workloads import Arrays, Workload, tolerance, workload

Stage = Callable[[str], None]
Call = Callable[[], Any]
MOST = 2000


class Missing(Exception):
    """The library is not installed, or has nothing for this workload; the text says which."""


class Contender:
    """A library called from Python: subclasses have a method for each kernel that they know.

    Such a method takes the workload and its inputs, and returns a function without arguments that runs once
    and gives the results by name (or a function that gives them).
    """

    def __init__(self, argument: Any) -> None:
        self.argument = argument
        self.load()
        self.call: Call = lambda: None

    def load(self) -> None:
        """Import the library. Errors: ImportError, Missing."""

    def prepare(self, stage: Stage, name: str) -> str:
        """Make a workload ready and check its results; return why it is not measured, else nothing."""
        stage("prepare")
        chosen = workload(name)
        self.call = lambda: None  # frees the last one's arrays
        make = getattr(self, chosen.kernel, None)
        if make is None:
            return "has nothing for it"
        try:
            self.call = make(chosen, chosen.arrays())
            return self._check(chosen, self.call())
        except Missing as reason:
            return str(reason)

    def _check(self, chosen: Workload, found: Any) -> str:
        results: Arrays = found() if callable(found) else found
        right = chosen.right(chosen.arrays())
        for name, wanted in right.items():
            error = np.abs(np.asarray(results[name], np.float64).reshape(wanted.shape) - wanted).max()
            if not error <= tolerance(chosen.kernel, wanted):
                return f"is wrong: {name} is off by {error:.3g}"
        return ""

    def visit(self, stage: Stage, seconds: float) -> dict[str, list[float]]:
        """Run for about so long; return the times of the calls, in seconds."""
        stage("visit")
        return {"call": times_of(self.call, seconds)}


def times_of(call: Call, seconds: float) -> list[float]:
    """Return the times of repeated calls, at least two."""
    call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 2 or (time.perf_counter() < end and len(times) < MOST):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return times
