"""Schedules of one md_hom timed on the workers of a cluster, on each one at a time.

A worker that is lost costs the candidate that it was timing, and nothing else: the others go on, and workers
that come meanwhile, such as those that dask starts in place of dead ones, take part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar
from uuid import uuid4

from polyloom.diagnostics import PolyloomError, error
from polyloom.mdh.tuning.candidates.trial import Trial
from polyloom.mdh.tuning.cluster import remote
from polyloom.mdh.tuning.cluster.workers import joined, with_device
from polyloom.mdh.tuning.outcome import Outcome, Status
from polyloom.workers.cluster import LOOKED_AFTER, STARTED_WITHIN, Cluster

S = TypeVar("S")


class ClusterMeasure(Generic[S]):
    """Times the schedules of one md_hom on the workers that have its device."""

    def __init__(self, cluster: Cluster, trial: Trial, text: Callable[[S], str]) -> None:
        """Errors: ``cluster-device``, ``cluster-version``."""
        self._cluster = cluster
        self._task = remote.Task(uuid4().hex, trial)
        self._text = text
        self._asked = cluster.alive()
        self._able = set(with_device(cluster, trial.device))
        self._workers = sorted(self._able)
        self._running: dict[Any, tuple[str, S]] = {}

    @property
    def most(self) -> int:
        """As many as there are workers."""
        return len(self._workers)

    def build(self, schedules: Sequence[S]) -> None:
        """Build nothing beforehand: nobody knows which worker gets which schedule."""

    def start(self, schedule: S, stop_above: float, baseline: tuple[S, float] | None = None) -> None:
        """Give a schedule to a worker that is free."""
        beside = None if baseline is None else (self._text(baseline[0]), baseline[1])
        worker = self._free()
        future = self._cluster.submit(
            worker, remote.measure, self._task, self._text(schedule), stop_above, beside
        )
        self._running[future] = (worker, schedule)

    def finished(self) -> tuple[S, Outcome]:
        """Wait for one of the schedules that were started.

        Errors: what opening the device raises on the worker; ``cluster-lost`` where no worker is left.
        """
        return self._taken(self._first(list(self._running)))

    def measure(self, schedule: S, stop_above: float, baseline: tuple[S, float] | None = None) -> Outcome:
        """Time one schedule on a worker that is free, or soon."""
        waiting = list(self._running)
        self.start(schedule, stop_above, baseline)
        (future,) = set(self._running) - set(waiting)
        return self._taken(self._first([future]))[1]

    def compare(self, schedules: Sequence[S], seconds: float) -> Mapping[str, Outcome]:
        """Time right schedules in turns, all on one worker; nothing where it is lost."""
        texts = [self._text(schedule) for schedule in schedules]
        worker = self._free()
        future = self._cluster.submit(worker, remote.compare, self._task, texts, seconds)
        self._running[future] = (worker, schedules[0])
        self._first([future])
        self._running.pop(future)
        found: Mapping[str, Outcome]
        (found,) = self._cluster.fetched(future, worker) or ({},)
        return found

    def close(self) -> None:
        """End what is running, and the workers' children."""
        for future in self._running:
            future.cancel()
        self._cluster.run(self._workers, remote.close, self._task.name)

    def _free(self) -> str:
        """Return the worker that has the least to do. Errors: ``cluster-lost``."""
        self._look_again()
        end = time.monotonic() + STARTED_WITHIN
        while not self._workers and time.monotonic() < end:
            time.sleep(LOOKED_AFTER / 10)
            self._look_again()
        if not self._workers:
            message = "all workers of the cluster that had the device are gone"
            helps = ["what was timed before is kept; start workers, and tune again"]
            raise PolyloomError(error("cluster-lost", message, helps=helps))
        busy = [worker for worker, _ in self._running.values()]
        return min(self._workers, key=busy.count)

    def _look_again(self) -> None:
        """Leave out the workers that are lost, and take those that have come, or have come back."""
        alive = self._cluster.alive()
        newcomers = alive - self._asked - self._able
        self._asked |= newcomers
        if newcomers:
            self._able |= {*joined(self._cluster, self._task.trial.device, newcomers)}
        self._workers = sorted(self._able & alive)

    def _first(self, futures: Sequence[Any]) -> Any:
        """Wait until one of these is done, or its worker is lost; return it."""
        return self._cluster.first(futures, lambda future: self._running[future][0])

    def _taken(self, future: Any) -> tuple[S, Outcome]:
        worker, schedule = self._running.pop(future)
        if (result := self._cluster.fetched(future, worker)) is not None:
            (outcome,) = result
            assert isinstance(outcome, Outcome)
            return schedule, outcome
        fault = future.exception() if future.status == "error" else None
        if isinstance(fault, PolyloomError):
            raise fault
        future.cancel()
        reason = f"the worker {worker} was lost" if fault is None else f"the worker {worker} failed: {fault}"
        return schedule, Outcome(status=Status.CRASHED, reason=reason)
