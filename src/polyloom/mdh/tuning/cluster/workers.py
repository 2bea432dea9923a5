"""Which workers of a cluster have a device. Not in the papers."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import polyloom
from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.tuning.cluster.remote import version_with
from polyloom.workers.cluster import Cluster


def connected(given: Any) -> AbstractContextManager[Cluster | None]:
    """Return a connection that is left again at the end; None where no cluster is given."""
    return nullcontext() if given is None else Cluster(given)


def with_device(cluster: Cluster, device: DeviceModel) -> tuple[str, ...]:
    """Return the workers that have a device.

    Errors: ``cluster-device`` where there is none; ``cluster-version`` where one has another Polyloom.
    """
    found = cluster.answering(version_with, device)
    workers = tuple(worker for worker, said in sorted(found.items()) if isinstance(said, str))
    if not workers:
        raise PolyloomError(_no_worker(device, found))
    return workers


def joined(cluster: Cluster, device: DeviceModel, newcomers: Iterable[str]) -> tuple[str, ...]:
    """Return those of some workers that have a device and this version of Polyloom."""
    found = cluster.said(newcomers, version_with, device)
    return tuple(worker for worker, said in sorted(found.items()) if said == polyloom.__version__)


def _no_worker(device: DeviceModel, found: dict[str, Any]) -> Diagnostic:
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
