"""A dask cluster, and which of its workers have a device. Not in the papers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module
from typing import Any

import polyloom
from polyloom.diagnostics import PolyloomError, error
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.tuning.cluster.remote import version_with

CONNECTED_WITHIN = "10s"
"""How long a scheduler may take to answer."""


def connected(given: Any) -> AbstractContextManager[Cluster | None]:
    """Return a connection that is left again at the end; None where no cluster is given."""
    return nullcontext() if given is None else Cluster(given)


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
        """Return the addresses of all workers that are there now."""
        return frozenset(self.client.scheduler_info(n_workers=-1)["workers"])

    def with_device(self, device: DeviceModel) -> tuple[str, ...]:
        """Return the workers that have a device.

        Errors: ``cluster-device`` where there is none; ``cluster-version`` where one has another Polyloom.
        """
        found = self.client.run(version_with, device, on_error="return")
        versions = {worker: said for worker, said in sorted(found.items()) if isinstance(said, str)}
        if not versions:
            raise PolyloomError(_no_worker(device, found))
        others = {worker: version for worker, version in versions.items() if version != polyloom.__version__}
        if others:
            worker, version = next(iter(others.items()))
            message = f"the worker {worker} has Polyloom {version}, and this is {polyloom.__version__}"
            helps = ["install the same version on all workers"]
            raise PolyloomError(error("cluster-version", message, helps=helps))
        return tuple(versions)

    def submit(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Let one worker, and no other, call a function; return dask's future."""
        return self.client.submit(
            function, *arguments, workers=[worker], allow_other_workers=False, pure=False, retries=0
        )

    def run(self, workers: Sequence[str], function: Callable[..., Any], *arguments: Any) -> None:
        """Let workers call a function that may fail, as far as they are still there."""
        with suppress(Exception):
            self.client.run(function, *arguments, workers=[w for w in workers if w in self.alive()])


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


def _no_worker(device: DeviceModel, found: dict[str, Any]) -> Any:
    faults = [
        f"{worker}: {type(said).__name__}: {said}"
        for worker, said in found.items()
        if isinstance(said, Exception)
    ]
    notes = faults[:2] or [f"it has {len(found)} workers"]
    helps = [
        "`polyloom devices` on a worker's machine shows what it has; processor and compiler must be the same"
    ]
    return error("cluster-device", f"no worker of the cluster has `{device.id}`", notes=notes, helps=helps)
