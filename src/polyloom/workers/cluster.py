"""A dask cluster: a connection, its workers, and tasks for each of them. Not in the papers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from threading import Lock
from typing import Any, TypeVar

import polyloom
from polyloom.diagnostics import PolyloomError, error
from polyloom.workers.crew import Begun, GivenUp, lost

T = TypeVar("T")
R = TypeVar("R")

CONNECTED_WITHIN = "10s"
"""How long a scheduler may take to answer."""

STARTED_WITHIN = 20.0
"""Seconds in which dask replaces a worker that died, where its nanny does."""

LOOKED_AFTER = 1.0
"""Seconds after which it is looked again whether workers are still there."""

_ONE_AT_A_TIME = Lock()


class Cluster:
    """A connection to a scheduler: an address (``tcp://HOST:PORT``), or a ``distributed.Client``."""

    def __init__(self, given: Any) -> None:
        """Errors: ``cluster-missing`` without dask.distributed, ``cluster-unreachable``."""
        self._own = isinstance(given, str)
        self.client = _client(given) if self._own else given

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster, if the connection is ours."""
        if self._own:
            with suppress(Exception):  # the scheduler may be gone already
                self.client.close()

    def alive(self) -> frozenset[str]:
        """Return the addresses of all workers that are there now.

        The scheduler is asked itself: what the client keeps of its answers is overwritten every other second
        by one that names no workers, also between an answer and its reading.
        """
        said = self.client.sync(self.client.scheduler.identity, n_workers=-1)
        return frozenset(said["workers"])

    def answering(self, function: Callable[..., str | None], *arguments: Any) -> dict[str, Any]:
        """Return what every worker says to a question that is answered with its version of Polyloom, or None.

        An exception stands for a worker that failed. Errors: ``cluster-version`` where one has another
        Polyloom.
        """
        found: dict[str, Any] = self.client.run(function, *arguments, on_error="return")
        for worker, said in sorted(found.items()):
            if isinstance(said, str) and said != polyloom.__version__:
                message = f"the worker {worker} has Polyloom {said}, and this is {polyloom.__version__}"
                helps = ["install the same version on all workers"]
                raise PolyloomError(error("cluster-version", message, helps=helps))
        return found

    def said(self, workers: Iterable[str], function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Return what workers say to a question; an exception stands for one that failed."""
        asked = list(workers)
        found: dict[str, Any] = self.client.run(function, *arguments, workers=asked, on_error="return")
        return found

    def submit(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Let one worker, and no other, call a function; return dask's future."""
        return self.client.submit(
            function, *arguments, workers=[worker], allow_other_workers=False, pure=False, retries=0
        )

    def first(self, futures: Sequence[Any], worker_of: Callable[[Any], str]) -> Any:
        """Wait until one of these is done, or its worker is lost; return it."""
        wait = import_module("distributed").wait
        while True:
            try:
                done = wait(futures, timeout=LOOKED_AFTER, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                done = set()
            if done:
                return next(future for future in futures if future in done)
            alive = self.alive()
            for future in futures:
                if worker_of(future) not in alive:
                    return future

    def fetched(self, future: Any, worker: str) -> tuple[Any] | None:
        """Return what a call gave; None where it failed, or was lost with its worker before it was fetched.

        dask leaves results where they were made, and would wait for one of a dead worker for good.
        """
        while future.status == "finished":
            try:
                return (future.result(timeout=LOOKED_AFTER),)
            except TimeoutError:
                if worker not in self.alive():
                    return None
        return None

    def run(self, workers: Sequence[str], function: Callable[..., Any], *arguments: Any) -> None:
        """Let workers call a function that may fail, as far as they are still there."""
        with suppress(Exception):
            self.client.run(function, *arguments, workers=[w for w in workers if w in self.alive()])


class ClusterCrew:
    """All workers of a cluster, with one task at a time each; of ``Crew``."""

    def __init__(self, cluster: Cluster) -> None:
        """Errors: ``cluster-version``; ``cluster-lost`` where no worker has Polyloom."""
        self._cluster = cluster
        self._workers = _with_polyloom(cluster)

    @property
    def size(self) -> int:
        """How many workers there are."""
        return len(self._workers)

    def each(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        begun: Begun | None = None,
        given_up: GivenUp[T, R] | None = None,
    ) -> list[R]:
        """Call a function for each task; what a lost worker had goes to another, once.

        Errors: those of the function; ``worker-lost``; ``cluster-lost`` where no worker is left.
        """
        waiting = list(range(len(tasks)))
        tried = [0] * len(tasks)
        found: dict[int, R] = {}
        running: dict[Any, tuple[str, int]] = {}
        try:
            while len(found) < len(tasks):
                for worker in self._free(running):
                    if waiting:
                        at = waiting.pop(0)
                        tried[at] += 1
                        if begun is not None and tried[at] == 1:
                            begun(at)
                        future = self._cluster.submit(worker, alone, function, tasks[at])
                        running[future] = (worker, at)
                future = self._cluster.first(list(running), lambda each: running[each][0])
                worker, at = running.pop(future)
                if (result := self._cluster.fetched(future, worker)) is not None:
                    (found[at],) = result
                    continue
                _raise_own(future)
                future.cancel()
                if tried[at] == 1:
                    waiting.insert(0, at)
                    continue
                fault = lost(f"the worker {worker} was lost with it, and another one before")
                if given_up is None:
                    raise fault
                found[at] = given_up(tasks[at], fault)
        finally:
            for future in running:
                future.cancel()
        return [found[at] for at in range(len(tasks))]

    def close(self) -> None:
        """Leave the cluster."""
        self._cluster.close()

    def _free(self, running: dict[Any, tuple[str, int]]) -> list[str]:
        """Return the workers that have nothing to do. Errors: ``cluster-lost`` where none is left."""
        alive = self._cluster.alive()
        self._workers = [worker for worker in self._workers if worker in alive] or self._started_again()
        busy = {worker for worker, _ in running.values()}
        return [worker for worker in self._workers if worker not in busy]

    def _started_again(self) -> list[str]:
        """Return workers that took the place of those that are gone. Errors: ``cluster-lost``."""
        end = time.monotonic() + STARTED_WITHIN
        while not self._cluster.alive():
            if time.monotonic() > end:
                raise _nobody("all its workers are gone")
            time.sleep(LOOKED_AFTER / 10)
        return _with_polyloom(self._cluster)


def _with_polyloom(cluster: Cluster) -> list[str]:
    """Return the workers that have Polyloom. Errors: ``cluster-version``; ``cluster-lost`` without any."""
    said = cluster.answering(version)
    workers = [worker for worker, each in sorted(said.items()) if isinstance(each, str)]
    if not workers:
        notes = [f"{worker}: {type(each).__name__}: {each}" for worker, each in said.items()][:2]
        raise _nobody(*(notes or ["it has no workers"]))
    return workers


def version() -> str:
    """Return the version of Polyloom that a worker has."""
    return polyloom.__version__


def alone(function: Callable[[T], R], task: T) -> R:
    """Call a function on a worker, which may have several threads: isl knows none."""
    with _ONE_AT_A_TIME:
        return function(task)


def _raise_own(future: Any) -> None:
    """Raise what the function raised; not what dask says where a worker is gone."""
    fault = future.exception() if future.status == "error" else None
    if fault is not None and not type(fault).__module__.startswith("distributed"):
        raise fault


def _nobody(*notes: str) -> PolyloomError:
    helps = ["start workers with Polyloom: `dask worker tcp://HOST:PORT`"]
    return PolyloomError(error("cluster-lost", "no worker of the cluster is left", notes=notes, helps=helps))


def _client(address: str) -> Any:
    try:
        distributed = import_module("distributed")
    except ImportError as fault:
        helps = ["`pip install polyloom[cluster]`"]
        message = "a cluster needs dask.distributed, which is not installed"
        raise PolyloomError(error("cluster-missing", message, helps=helps)) from fault
    try:
        return distributed.Client(address, timeout=CONNECTED_WITHIN)
    except (OSError, ValueError, TimeoutError) as fault:
        message = f"no scheduler answers at `{address}`: {str(fault).partition(chr(10))[0]}"
        helps = ["start one: `dask scheduler`, and on each machine `dask worker tcp://HOST:PORT`"]
        raise PolyloomError(error("cluster-unreachable", message, helps=helps)) from fault
