"""Polyloom: device time (events, as in the paper; in C, clocks between nodes) and the time of the whole call.

With CUDA arrays are at home on the GPU, as they are for the libraries beside it.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from contender import MOST, Contender, Stage, times_of
from workloads import Workload, workload

import polyloom
from polyloom.mdh.native.execution import Part


class Ours(Contender):
    """``argument``: the device, and the database of schedules (an empty one: the cost model's choice)."""

    def load(self) -> None:
        self.device, self.database = self.argument
        self.program: Any = None
        self.arrays: Any = None

    def prepare(self, stage: Stage, name: str) -> str:
        stage("prepare")
        chosen = workload(name)
        self.program = compiled(chosen, self.device, self.database)
        inputs = chosen.arrays()
        right = chosen.right(inputs)
        kinds = {buffer.name: buffer.type.dtype for buffer in self.program.program.buffers}
        outputs = {out: np.zeros(array.shape, kinds[out]) for out, array in right.items()}
        self.arrays = {**inputs, **outputs}
        if str(self.device).startswith("cuda"):
            self.arrays = {name: self.program.to_device(array) for name, array in self.arrays.items()}
        found = self._call()
        return self._check(chosen, {name: _at_hand(found[name]) for name in right})

    def _call(self) -> Any:
        self.program(**self.arrays)
        return self.arrays

    def visit(self, stage: Stage, seconds: float) -> dict[str, list[float]]:
        stage("visit")
        calls = times_of(self._call, seconds / 2)
        device: list[float] = []
        end = time.perf_counter() + seconds / 2
        while len(device) < 2 or (time.perf_counter() < end and len(device) < MOST):
            events = self.program.run(timed=True, **self.arrays).events
            device.append(span(events))
        return {"call": calls, "device": device}


def _at_hand(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.get()


def span(events: Any) -> float:
    """Return the seconds from the start of the first launch to the end of the last; in C, of all nodes."""
    if isinstance(events[0], Part):
        return sum(part.seconds for part in events)
    return float(events[0].event.until(events[-1].event))


def compiled(chosen: Workload, device: str | None, database: Path) -> Any:
    return polyloom.compile(chosen.source, device=device, defines=chosen.sizes, database=database)
