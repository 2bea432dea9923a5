"""Candidates on a device, in a child process: right ones are timed, all others are told apart."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_signature import matmul

from polyloom.diagnostics import PolyloomError
from polyloom.ir.host import HostProgram
from polyloom.mdh.native.device import choose
from polyloom.mdh.tuning.candidates.trial import Trial
from polyloom.mdh.tuning.outcome import Outcome, Status
from polyloom.mdh.tuning.timing import DeviceMeasure
from polyloom.polyhedra.loops.tree import Number
from samples import LATER

EMITTERS = {"cpu": "trial_emitter:emit", "native": "trial_emitter:code"}

Timed = Callable[..., Outcome]


def trial(folder: Path, device: str, m: int = 7, n: int = 9, k: int = 11) -> Trial:
    hom, buffers = matmul(Number(m), n, k)
    program = HostProgram(name="mm", parameters=(), buffers=buffers, body=(hom,))
    return Trial(program=program, device=choose(device), emitter=EMITTERS[device], folder=str(folder))


def text(kind: str) -> str:
    return json.dumps({"kind": kind})


@pytest.fixture(params=[pytest.param("cpu", marks=LATER), "native"])
def measure(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[DeviceMeasure[str]]:
    made = DeviceMeasure(trial(tmp_path, request.param), text)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.ci
def test_what_becomes_of_candidates(measure: DeviceMeasure[str], monkeypatch: pytest.MonkeyPatch) -> None:
    right = measure.measure("right", math.inf)
    assert right.status is Status.VERIFIED and right.max_error == 0 and len(right.times) >= 4
    assert right.seconds is not None and min(right.times) <= right.seconds <= sorted(right.times)[-2]
    wrong = measure.measure("wrong", math.inf)
    assert wrong.status is Status.WRONG and wrong.reason.startswith("C[")
    assert wrong.max_error is not None and wrong.max_error > 1
    assert measure.measure("corner", math.inf).reason.startswith("C[3][3] is ")
    refused = measure.measure("refused", math.inf)
    assert refused.status is Status.REFUSED and "nonsense" in refused.reason
    assert "a fault of ours" in measure.measure("fault", math.inf).reason
    assert measure._worker.starts == 1
    crashed = measure.measure("crash", math.inf)
    assert crashed.status is Status.CRASHED and "SIGABRT" in crashed.reason
    begin = time.monotonic()
    with monkeypatch.context() as for_the_hang:
        for_the_hang.setitem(measure._worker._limits, "build", 1.5)
        assert measure.measure("hang", math.inf).status is Status.TIMEOUT
    assert time.monotonic() - begin < 500, "it sleeps for 1000 s"
    assert measure.measure("right", math.inf).status is Status.VERIFIED
    assert measure._worker.starts == 3


@pytest.mark.slow
@pytest.mark.ci
def test_several_are_built_before_they_are_timed(measure: DeviceMeasure[str]) -> None:
    measure.build(["right", "refused", "wrong", "fault"])
    assert measure.measure("right", math.inf).status is Status.VERIFIED
    assert measure.measure("refused", math.inf).status is Status.REFUSED
    assert measure.measure("wrong", math.inf).status is Status.WRONG
    measure.measure("right", math.inf)
    assert measure.measure("right", math.inf).max_error == 0
    measure.build(["slow", "crash"])
    assert measure.measure("slow", math.inf).status is Status.VERIFIED


@pytest.mark.slow
@pytest.mark.ci
def test_a_slow_candidate_is_given_up(measure: DeviceMeasure[str]) -> None:
    right = measure.measure("right", math.inf)
    slow = measure.measure("slow", 2 * right.cost)
    assert slow.status is Status.SLOW and len(slow.times) < len(right.times)


@pytest.mark.slow
@pytest.mark.ci
def test_the_best_so_far_tells_the_machine_s_pace(measure: DeviceMeasure[str]) -> None:
    right = measure.measure("right", math.inf)
    twice = measure.measure("slow", math.inf, ("right", right.cost / 1000))
    alone = measure.measure("slow", math.inf)
    assert twice.cost < alone.cost / 100, "a machine that is a thousand times slower than usual"


@pytest.mark.slow
@pytest.mark.ci
def test_finalists_are_timed_in_turns(measure: DeviceMeasure[str]) -> None:
    found = measure.compare(["right", "slow"], 0.2)
    assert found[text("right")].cost < found[text("slow")].cost
    assert len(found[text("right")].times) == len(found[text("slow")].times) >= 3


def test_a_child_that_cannot_start_is_one_diagnostic(tmp_path: Path) -> None:
    measure: DeviceMeasure[str] = DeviceMeasure(trial(tmp_path, "native"), text, factory="misbehaving:dies")
    with pytest.raises(PolyloomError) as caught:
        measure.measure("right", math.inf)
    assert [d.code for d in caught.value.diagnostics] == ["tuning-worker"]
    measure.close()
