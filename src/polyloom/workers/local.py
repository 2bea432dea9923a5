"""Children of this process as workers: ``--jobs N``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, TypeVar

from polyloom.workers.child import Died, Job, Worker
from polyloom.workers.cluster import Cluster, ClusterCrew
from polyloom.workers.crew import ALONE, Begun, Crew, GivenUp, lost

T = TypeVar("T")
R = TypeVar("R")

LIMITS = {"start": 300.0, "": 30 * 24 * 3600.0}
"""Seconds that a child may take to start, and for a task."""


class Calls:
    """The object in the child: it calls functions."""

    def __init__(self, _: None) -> None:
        pass

    def call(self, stage: Callable[[str], None], function: Callable[[Any], Any], task: Any) -> Any:
        """Call a function."""
        return function(task)


class LocalCrew:
    """So many children of this process, which are started when they are needed; of ``Crew``."""

    def __init__(self, jobs: int) -> None:
        self.size = jobs
        self._closed = False
        # a child goes when the thread that started it does: these stay until the crew is closed
        self._threads = ThreadPoolExecutor(jobs)
        self._workers = [Worker(Job(f"{__name__}:Calls", None), LIMITS) for _ in range(jobs)]
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)

    def each(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        begun: Begun | None = None,
        given_up: GivenUp[T, R] | None = None,
    ) -> list[R]:
        """Call a function for each task in a child; where one dies, once more when no other task runs.

        Errors: those of the function; ``worker-lost``.
        """

        def taken(at: int) -> R | Died:
            if begun is not None:
                begun(at)
            return self._call(function, tasks[at])

        futures = [self._threads.submit(taken, at) for at in range(len(tasks))]
        try:
            found = [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise
        first = zip(tasks, found, strict=True)
        return [
            self._alone(function, task, given_up) if isinstance(result, Died) else result
            for task, result in first
        ]

    def close(self) -> None:
        """End the children, whatever they do."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.close()
        self._threads.shutdown()

    def _call(self, function: Callable[[T], R], task: T) -> R | Died:
        worker = self._idle.get()
        try:
            found: R = worker.call("call", function, task)
        except Died as fault:
            if self._closed:
                raise
            return fault
        finally:
            self._idle.put(worker)
        return found

    def _alone(self, function: Callable[[T], R], task: T, given_up: GivenUp[T, R] | None) -> R:
        """Call a function once more in the only child that there is: what others keep is free for it."""
        for worker in self._workers:
            worker.close()
        found = self._threads.submit(self._call, function, task).result()
        if not isinstance(found, Died):
            return found
        fault = lost(str(found), "it was tried twice, the second time while no other task ran")
        if given_up is None:
            raise fault from found
        return given_up(task, fault)


@contextmanager
def crew_of(jobs: int | None = None, cluster: Any = None, *, apart: bool = False) -> Iterator[Crew]:
    """Give those who do tasks: workers of a cluster, so many children, or this process alone.

    ``cluster``: the address of a dask scheduler, or a ``distributed.Client``; ``apart``: one job is a
    child's, too, whose death this process survives. Errors: ``cluster-...``.
    """
    if cluster is None and (jobs is None or jobs <= (0 if apart else 1)):
        yield ALONE
        return
    crew = LocalCrew(jobs or 1) if cluster is None else ClusterCrew(Cluster(cluster))
    try:
        yield crew
    finally:
        crew.close()
