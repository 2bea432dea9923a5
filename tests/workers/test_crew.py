"""Tasks on several processes: results in order, deaths that cost one task, faults as they were raised."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import polyloom
from polyloom.diagnostics import PolyloomError, error
from polyloom.workers import cluster as clusters
from polyloom.workers.crew import ALONE, Crew
from polyloom.workers.local import crew_of

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class Deadly:
    """``mark``: a file that says that somebody died of it already."""

    number: int
    mark: Path
    always: bool = False


def square(number: int) -> int:
    return number * number


def process(_: int) -> int:
    time.sleep(0.2)
    return os.getpid()


def survived(task: Deadly) -> int:
    if task.number == 3 and (task.always or not task.mark.exists()):
        task.mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return task.number


def began_or_ended(task: Deadly) -> float:
    """Return when the deadly task began, and when another one ended."""
    began = time.monotonic()
    if survived(task) == 3:
        return began
    time.sleep(0.3)
    return time.monotonic()


def refuse(number: int) -> int:
    raise PolyloomError(error("made-up", f"{number} is refused"))


@contextmanager
def cluster_crew() -> Iterator[Crew]:
    distributed = pytest.importorskip("distributed")
    given = {"n_workers": 2, "threads_per_worker": 2, "dashboard_address": None}
    with distributed.LocalCluster(**given) as cluster, crew_of(cluster=cluster.scheduler_address) as crew:
        yield crew


@pytest.fixture(
    scope="module",
    params=["local", pytest.param("cluster", marks=[pytest.mark.slow, pytest.mark.ci])],
)
def crew(request: pytest.FixtureRequest) -> Iterator[Crew]:
    with crew_of(2) if request.param == "local" else cluster_crew() as found:
        yield found


def test_results_come_in_order_from_several_processes(crew: Crew) -> None:
    begun: list[int] = []
    assert crew.each(square, range(5), begun.append) == [0, 1, 4, 9, 16]
    assert sorted(begun) == list(range(5))
    found = crew.each(process, range(4))
    assert len(set(found)) == 2 and os.getpid() not in found


@pytest.mark.slow
@pytest.mark.ci
def test_a_death_costs_a_task_its_first_try_only(crew: Crew, tmp_path: Path) -> None:
    tasks = [Deadly(number, tmp_path / "mark") for number in range(6)]
    assert crew.each(survived, tasks) == list(range(6))
    assert (tmp_path / "mark").exists()
    with pytest.raises(PolyloomError, match="worker-lost"):
        crew.each(survived, [Deadly(3, tmp_path / "other", always=True)])


@pytest.mark.slow
@pytest.mark.ci
def test_others_go_on_where_a_task_is_given_up(crew: Crew, tmp_path: Path) -> None:
    tasks = [Deadly(number, tmp_path / "mark", always=True) for number in range(6)]
    given_up = []

    def instead(task: Deadly, fault: PolyloomError) -> int:
        given_up.append(fault.diagnostics[0])
        return -task.number

    assert crew.each(survived, tasks, None, instead) == [0, 1, 2, -3, 4, 5]
    assert [fault.code for fault in given_up] == ["worker-lost"]
    assert crew.each(square, [7]) == [49]


@pytest.mark.slow
@pytest.mark.ci
def test_the_second_try_is_alone(tmp_path: Path) -> None:
    """Two tasks may ask for more memory together than there is."""
    tasks = [Deadly(number, tmp_path / "mark") for number in (3, 0, 1, 2)]
    with crew_of(2) as crew:
        again, *ends = crew.each(began_or_ended, tasks)
    assert max(ends) < again


def test_a_fault_is_raised_as_it_was(crew: Crew) -> None:
    with pytest.raises(PolyloomError, match=r"made-up.*5 is refused"):
        crew.each(refuse, [5])
    assert crew.each(square, [7]) == [49]


def test_one_job_is_this_process() -> None:
    with crew_of(1) as crew:
        assert crew is ALONE and crew.each(process, [0]) == [os.getpid()]


@pytest.mark.slow
@pytest.mark.ci
def test_a_map_is_the_same_however_many_look_for_it() -> None:
    program = polyloom.load(EXAMPLES / "axpy.lair", N=8).program
    with crew_of(2) as crew:
        several = polyloom.choose_mapping(program, size=(3, 2), crew=crew)
    alone = polyloom.choose_mapping(program, size=(3, 2))
    assert several.text == alone.text
    assert several.candidates == alone.candidates and len(alone.candidates) > 1


@pytest.mark.slow
@pytest.mark.ci
def test_layers_are_simulated_the_same_by_several() -> None:
    program = polyloom.load(EXAMPLES / "mlp.lair", K=4, M=4, N=2).program
    found = [polyloom.simulate_layers(program, check=True, **how).json() for how in ({}, {"jobs": 2})]
    assert found[0] == found[1]
    assert all(layer["simulation"]["check"]["passed"] for layer in found[0]["layers"])


def test_a_worker_with_another_version() -> None:
    with pytest.raises(PolyloomError, match="cluster-version"):
        clusters.ClusterCrew(clusters.Cluster(Says("0.0.0")))


def test_a_cluster_without_workers_that_have_polyloom() -> None:
    with pytest.raises(PolyloomError, match="no polyloom"):
        clusters.ClusterCrew(clusters.Cluster(Says(ModuleNotFoundError("no polyloom"))))


@dataclass(frozen=True)
class Says:
    """A client of a cluster whose one worker says this."""

    answer: Any

    def run(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {"tcp://a": self.answer}
