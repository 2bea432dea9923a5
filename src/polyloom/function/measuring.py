"""Where the time of a call goes, measured over some runs."""

from __future__ import annotations

import time
from collections.abc import Callable

from polyloom.function.pages import Times
from polyloom.mdh.running import RunResult

_MOST_SECONDS = 1.0
"""After which no further run begins."""


def measured(name: str, run: Callable[[], RunResult], runs: int) -> Times:
    """Run up to so many times; of the call and of each kernel the fastest counts."""
    results = [run()]
    deadline = time.monotonic() + _MOST_SECONDS
    while len(results) < runs and time.monotonic() < deadline:
        results.append(run())
    best = min(results, key=lambda result: result.execution.timing.total)
    seconds = {
        kernel["name"]: min(k["seconds"] for r in results for k in r.kernels() if k["name"] == kernel["name"])
        for kernel in best.kernels()
    }
    rows = [(k["name"], seconds[k["name"]], k["launches"], k["schedule"]) for k in best.kernels()]
    ordered = tuple(sorted(rows, key=lambda row: -row[1]))
    return Times(name, best.device, len(results), best.execution.timing.total, ordered)
