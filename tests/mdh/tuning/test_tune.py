"""Tuning with made-up costs and a made-up clock: budgets, what is kept, what is reused, Ctrl-C."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from replay import RecordedMeasure, RecordedSpace
from synthetic import SyntheticMeasure, SyntheticSpace, Tiles, cost, valid

from polyloom.diagnostics import PolyloomError
from polyloom.mdh.schedule.signature import Key
from polyloom.mdh.tuning.database import Database
from polyloom.mdh.tuning.measure import OneByOne
from polyloom.mdh.tuning.outcome import Outcome, Status
from polyloom.mdh.tuning.tune import Progress, TuneOptions, TuningTask, tune

Beside = tuple[Tiles, float] | None


class Clock:
    """Time that passes only when a candidate is timed."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Space(SyntheticSpace):
    def adapted(self, text: str) -> Tiles | None:
        try:
            found = Tiles(**json.loads(text))
        except (TypeError, ValueError):
            return None
        return found if valid(found) else replace(found, rows=1, columns=1)


class Timing(OneByOne[Tiles]):
    def __init__(self, clock: Clock, each: float = 1.0) -> None:
        super().__init__()
        self.clock = clock
        self.each = each
        self.inner = SyntheticMeasure()
        self.compared: list[Tiles] = []
        self.built: list[Tiles] = []

    def build(self, schedules: Sequence[Tiles]) -> None:
        self.built += schedules

    def measure(self, schedule: Tiles, stop_above: float, baseline: Beside = None) -> Outcome:
        self.clock.now += self.each
        return self.inner(schedule, stop_above)

    def compare(self, schedules: Sequence[Tiles], seconds: float) -> Mapping[str, Outcome]:
        self.compared = list(schedules)
        self.clock.now += seconds
        return {
            Space().text(s): Outcome(
                status=Status.VERIFIED, seconds=cost(s), times=(cost(s),) * 3, reason="", max_error=0.0
            )
            for s in schedules
        }


@pytest.fixture
def database(tmp_path: Path) -> Any:
    with Database(tmp_path / "t.sqlite") as made:
        yield made


def key(*sizes: int) -> Key:
    return Key(signature="mm", sizes=sizes, device="cpu", generator="1")


def task(clock: Clock, *sizes: int, weight: float = 1.0) -> TuningTask[Tiles]:
    return TuningTask(key=key(*sizes), name=f"mm{sizes}", space=Space(), measure=Timing(clock), weight=weight)


def test_the_best_is_found_timed_again_and_kept(database: Database) -> None:
    clock = Clock()
    one = task(clock, 8)
    (tuned,) = tune([one], database, TuneOptions(budget=100), clock=clock)
    assert clock.now <= 101
    best = database.best(key(8))
    assert best is not None and best.confirmed and best.schedule == tuned.schedule
    assert tuned.seconds < 0.5 * tuned.default
    assert 80 <= tuned.evaluations <= 90
    assert Space().default() in one.measure.compared  # type: ignore[attr-defined]
    assert sum(tuned.rejected.values()) > 0


def test_a_second_run_starts_from_what_is_known(database: Database) -> None:
    clock = Clock()
    (first,) = tune([task(clock, 8)], database, TuneOptions(budget=60), clock=clock)
    (second,) = tune([task(clock, 8)], database, TuneOptions(budget=6), clock=clock)
    assert second.evaluations <= 6 and second.seconds <= first.seconds


def test_the_nearest_sizes_give_seeds(database: Database) -> None:
    clock = Clock()
    (large,) = tune([task(clock, 800)], database, TuneOptions(budget=100), clock=clock)
    (near,) = tune([task(clock, 801)], database, TuneOptions(budget=3, evaluations=2), clock=clock)
    assert near.schedule == large.schedule


def test_the_budget_is_shared_by_weight(database: Database) -> None:
    clock = Clock()
    tasks = [task(clock, 8, weight=3.0), task(clock, 9, weight=1.0)]
    heavy, light = tune(tasks, database, TuneOptions(budget=100), clock=clock)
    assert 2.0 < heavy.evaluations / light.evaluations < 4.5
    assert clock.now <= 102


def test_ctrl_c_keeps_what_was_found(database: Database) -> None:
    clock = Clock()
    one = task(clock, 8)
    seen: list[Progress] = []

    def observer(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == 25:
            raise KeyboardInterrupt

    tuned = tune([one, task(clock, 9)], database, TuneOptions(budget=100), observer, clock)
    assert len(tuned) == 1 and tuned[0].interrupted
    assert tuned[0].seconds == seen[-1].best
    assert len(database.entries(key(8))) == 25 - seen[-1].rejected


def test_progress_says_best_evaluations_and_time_left(database: Database) -> None:
    clock = Clock()
    seen: list[Progress] = []
    tune([task(clock, 8), task(clock, 9)], database, TuneOptions(budget=40), seen.append, clock)
    assert [p.left for p in seen] == sorted((p.left for p in seen), reverse=True)
    assert {(p.number, p.count) for p in seen} == {(1, 2), (2, 2)}
    one = [p for p in seen if p.number == 1]
    assert [p.best for p in one] == sorted((p.best for p in one), reverse=True)
    assert [p.evaluations for p in one] == list(range(1, len(one) + 1))


def test_evaluations_and_early_stopping_end_the_search(database: Database) -> None:
    clock = Clock()
    (few,) = tune([task(clock, 8)], database, TuneOptions(budget=1e9, evaluations=5), clock=clock)
    assert few.evaluations == 5
    (patient,) = tune([task(clock, 9)], database, TuneOptions(budget=1e9, early_stopping=30), clock=clock)
    assert patient.evaluations < 500


class Noisy(Timing):
    """Times all finalists alike, but for noise: a schedule may seem faster by 1 %."""

    def compare(self, schedules: Sequence[Tiles], seconds: float) -> Mapping[str, Outcome]:
        found = super().compare(schedules, seconds)
        noise = {text: 1.0 if text == Space().text(Space().default()) else 0.99 for text in found}
        return {text: replace(outcome, seconds=noise[text]) for text, outcome in found.items()}


def test_the_model_s_choice_stays_where_nothing_is_faster_side_by_side(database: Database) -> None:
    clock = Clock()
    noisy = replace(task(clock, 8), measure=Noisy(clock))
    (tuned,) = tune([noisy], database, TuneOptions(budget=100), clock=clock)
    assert tuned.schedule == Space().text(Space().default()) and tuned.seconds == tuned.default == 1.0


def test_each_candidate_is_built_once_before_it_is_timed(database: Database) -> None:
    clock = Clock()
    one = task(clock, 8)
    tune([one], database, TuneOptions(budget=1e9, evaluations=10), clock=clock)
    built = [Space().text(s) for s in one.measure.built]  # type: ignore[attr-defined]
    assert len(built) == len(set(built)) == 10


class Broken(Timing):
    def measure(self, schedule: Tiles, stop_above: float, baseline: Beside = None) -> Outcome:
        self.clock.now += 1
        return Outcome(status=Status.REFUSED, reason="the driver does not build it: error: no")


def test_where_nothing_is_right_it_is_said_with_the_reasons(database: Database) -> None:
    clock = Clock()
    broken = replace(task(clock, 8), measure=Broken(clock))
    with pytest.raises(PolyloomError) as caught:
        tune([broken], database, TuneOptions(budget=5), clock=clock)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "tuning-nothing"
    assert diagnostic.notes == ("the driver does not build it: error: no",)


@pytest.mark.slow
@pytest.mark.ci
def test_wrong_schedules_are_not_timed_a_second_time(database: Database) -> None:
    clock = Clock()
    tune([task(clock, 8)], database, TuneOptions(budget=80), clock=clock)
    bad = {text for text, status in database.rejected(key(8)).items() if status is not Status.SLOW}
    assert bad
    asked: list[str] = []

    class Watched(Timing):
        def measure(self, schedule: Tiles, stop_above: float, baseline: Beside = None) -> Outcome:
            asked.append(Space().text(schedule))
            return super().measure(schedule, stop_above)

    tune([replace(task(clock, 8), measure=Watched(clock))], database, TuneOptions(budget=80), clock=clock)
    assert asked and not bad & set(asked)


def test_a_recorded_search_can_be_played_again(database: Database) -> None:
    space, measure, rng = SyntheticSpace(), SyntheticMeasure(), Random(1)
    drawn = {space.text(s): s for s in (space.default(), *(space.sample(rng) for _ in range(400)))}
    recorded = {text: measure(s, math.inf) for text, s in drawn.items()}
    predicted = {text: space.predicted(s) for text, s in drawn.items()}
    replayed = RecordedSpace(recorded, predicted, space.text(space.default()))
    one: TuningTask[str] = TuningTask(
        key=key(8), name="mm", space=replayed, measure=RecordedMeasure(recorded)
    )
    (tuned,) = tune([one], database, TuneOptions(budget=1e9, evaluations=120), clock=Clock())
    costs = sorted(outcome.cost for outcome in recorded.values())
    assert tuned.seconds <= costs[3]
