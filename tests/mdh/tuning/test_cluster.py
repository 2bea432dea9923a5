"""Candidates timed by the workers of a cluster, some of which are killed meanwhile."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import polyloom
from polyloom.cli.main import run
from polyloom.diagnostics import PolyloomError
from polyloom.mdh.native.device import choose
from polyloom.mdh.tuning.cluster import measure as timing
from polyloom.mdh.tuning.cluster.measure import ClusterMeasure
from polyloom.mdh.tuning.cluster.workers import with_device
from polyloom.mdh.tuning.database import Database
from polyloom.mdh.tuning.outcome import Status
from polyloom.mdh.tuning.tune import Progress
from polyloom.workers import cluster as workers
from polyloom.workers.cluster import Cluster

GEMM = Path(__file__).parents[3] / "examples" / "c" / "gemm.c"
SIZES = {"n": 48, "m": 64, "k": 32}
COUNT = 2
ADDRESSES = frozenset({"tcp://127.0.0.1:9"})

pytestmark = [pytest.mark.slow, pytest.mark.ci]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    given = {"n_workers": COUNT, "threads_per_worker": 1, "dashboard_address": None}
    # A cluster gives up a worker that is away as long after it was lost: one that died again just then, too
    patience = dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})
    with patience, distributed.LocalCluster(**given) as cluster, distributed.Client(cluster) as found:
        yield found


def test_all_workers_time_candidates(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    submit = Cluster.submit

    def noted(self: Cluster, worker: str, *arguments: Any) -> Any:
        asked.append(worker)
        return submit(self, worker, *arguments)

    monkeypatch.setattr(Cluster, "submit", noted)
    database = tmp_path / "t.sqlite"
    (found,) = polyloom.load(GEMM).tune(30, SIZES, evaluations=8, database=database, cluster=client)
    assert found.evaluations == 8
    assert found.seconds <= found.default
    with Database(database) as results:
        best = results.best(found.key)
    assert best is not None and best.confirmed and best.schedule == found.schedule
    assert len(set(asked)) == COUNT


def test_workers_are_seen_while_the_client_looks_itself(client: Any) -> None:
    """dask's client asks every other second for no workers at all, and keeps that answer."""
    update = client._update_scheduler_info

    async def overwritten(n_workers: int = 0) -> None:
        await update(n_workers)
        await update(0)

    with Cluster(client) as cluster, pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "_update_scheduler_info", overwritten)
        assert len(cluster.alive()) == COUNT


def test_a_worker_s_death_costs_its_candidate_only(client: Any, tmp_path: Path) -> None:
    killed: list[int] = []

    def kill(progress: Progress) -> None:
        if progress.evaluations == 3 and not killed:
            killed.append(min(client.run(os.getpid).values()))
            with suppress(ProcessLookupError):
                os.kill(killed[0], signal.SIGKILL)

    gemm = polyloom.load(GEMM)
    database = tmp_path / "t.sqlite"
    (found,) = gemm.tune(60, SIZES, evaluations=10, database=database, cluster=client, progress=kill)
    assert killed
    assert found.evaluations == 10
    assert found.rejected.get(Status.CRASHED, 0) <= 1
    assert found.seconds < float("inf")
    client.wait_for_workers(COUNT, timeout=240)


def test_workers_that_come_in_place_of_dead_ones_take_part(client: Any, tmp_path: Path) -> None:
    """All the workers of the beginning die, one after the other; dask starts others under other addresses."""
    left = sorted(client.run(os.getpid).values())

    def kill(progress: Progress) -> None:
        if progress.evaluations >= 3 * (1 + COUNT - len(left)) and left:
            client.wait_for_workers(COUNT, timeout=240)
            os.kill(left.pop(), signal.SIGKILL)

    gemm = polyloom.load(GEMM)
    database = tmp_path / "t.sqlite"
    (found,) = gemm.tune(200, SIZES, evaluations=10, database=database, cluster=client, progress=kill)
    assert not left
    assert found.evaluations == 10
    assert found.rejected.get(Status.CRASHED, 0) <= COUNT
    client.wait_for_workers(COUNT, timeout=240)


def test_a_result_may_be_lost_with_its_worker(client: Any) -> None:
    """dask keeps it where it was made until it is fetched, and waits for good for one of a dead worker."""
    distributed = pytest.importorskip("distributed")
    with Cluster(client) as cluster:
        worker = min(cluster.alive())
        kept, lost = (cluster.submit(worker, os.getpid) for _ in range(2))
        distributed.wait([kept, lost])
        fetched = cluster.fetched(kept, worker)
        assert fetched is not None
        os.kill(*fetched, signal.SIGKILL)
        assert cluster.fetched(lost, worker) is None
    client.wait_for_workers(COUNT, timeout=240)


def test_from_the_command_line(client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = client.scheduler.address
    sizes = [word for name, value in SIZES.items() for word in ("--param", f"{name}={value}")]
    given = ["--cluster", address, "--evaluations", "3", "--database", str(tmp_path / "t.sqlite"), "--json"]
    assert run(["tune", str(GEMM), *sizes, *given]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["md_homs"][0]["evaluations"] == 3
    assert document["checks"][0]["check"]["passed"] is True


def test_no_worker_has_the_device(client: Any) -> None:
    model = replace(choose("native"), name="another processor")
    with Cluster(client) as cluster, pytest.raises(PolyloomError, match="cluster-device"):
        with_device(cluster, model)


def test_another_version(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polyloom, "__version__", "0.0.0")
    with Cluster(client) as cluster, pytest.raises(PolyloomError, match="cluster-version"):
        with_device(cluster, choose("native"))


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "CONNECTED_WITHIN", "0.3s")
    for address in ("tcp://127.0.0.1:9", "no address"):
        with pytest.raises(PolyloomError, match="cluster-unreachable"):
            Cluster(address)


def test_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> Any:
        raise ImportError

    monkeypatch.setattr(workers, "import_module", missing)
    with pytest.raises(PolyloomError, match="cluster-missing"):
        Cluster("tcp://127.0.0.1:9")


class Gone:
    """A cluster whose workers are gone when they are asked."""

    def answering(self, *_: Any) -> dict[str, Any]:
        return {"tcp://127.0.0.1:9": polyloom.__version__}

    def alive(self) -> frozenset[str]:
        return frozenset()


def test_all_workers_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "STARTED_WITHIN", 0.0)

    class NoTrial:
        device = None

    measure: ClusterMeasure[str] = ClusterMeasure(Gone(), NoTrial(), str)  # type: ignore[arg-type]
    with pytest.raises(PolyloomError, match="cluster-lost"):
        measure.start("a schedule", 1.0)


def test_a_worker_that_comes_back_takes_part() -> None:
    class Trialless:
        device = None

    class Away(Gone):
        """A cluster whose worker cannot be seen for a while, and has the same address afterwards."""

        seen = iter((ADDRESSES, frozenset[str](), ADDRESSES))

        def alive(self) -> frozenset[str]:
            return next(self.seen, ADDRESSES)

        def submit(self, worker: str, *_: Any) -> str:
            return f"what {worker} does"

    measure: ClusterMeasure[str] = ClusterMeasure(Away(), Trialless(), str)  # type: ignore[arg-type]
    measure.start("a schedule", 1.0)
    assert measure.most == 1
