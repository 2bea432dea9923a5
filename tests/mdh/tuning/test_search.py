"""The search, on a made-up space with a made-up cost: what it asks, and how good it gets."""

from __future__ import annotations

import math
import statistics
from random import Random

import pytest
from synthetic import SyntheticMeasure, SyntheticSpace, Tiles, cost, valid

from polyloom.mdh.tuning.outcome import Outcome, Status
from polyloom.mdh.tuning.search import Search, SearchOptions
from polyloom.mdh.tuning.surrogate import FEW, Surrogate, features

SPACE = SyntheticSpace()
LEAST = 1.05046875e-3
"""The least cost of a right schedule, found by enumerating the space once."""


def searched(seed: int, evaluations: int, options: SearchOptions | None = None) -> Search[Tiles]:
    search = Search(SPACE, [SPACE.default()], Random(seed), options)
    measure = SyntheticMeasure()
    for _ in range(evaluations):
        schedule = search.ask()
        assert schedule is not None and valid(schedule)
        best = min((t.outcome.cost for t in search.best()), default=math.inf)
        search.tell(schedule, measure(schedule, 2 * best))
    return search


def reached(evaluations: int, options: SearchOptions | None = None) -> float:
    """Return the median over seeds of how far the best is from the least cost."""
    found = (searched(seed, evaluations, options).best()[0].outcome.cost / LEAST for seed in range(7))
    return statistics.median(found)


@pytest.mark.slow
@pytest.mark.ci
def test_sixty_of_a_hundred_thousand_are_enough() -> None:
    assert reached(60) < 1.1


@pytest.mark.slow
@pytest.mark.ci
def test_model_neighbours_and_learning_beat_chance() -> None:
    chance = SearchOptions(model=False, learn=False, elites=0)
    assert reached(40) < 0.8 * reached(40, chance)


def test_nothing_is_asked_twice_and_the_seeds_come_first() -> None:
    search = searched(1, 120)
    texts = [each.text for each in search.measured]
    assert len(set(texts)) == len(texts)
    assert texts[0] == SPACE.text(SPACE.default())


def test_the_same_seed_gives_the_same_search() -> None:
    assert [t.text for t in searched(3, 40).measured] == [t.text for t in searched(3, 40).measured]


def test_what_is_wrong_or_crashes_does_not_win() -> None:
    for seed in range(3):
        best = searched(seed, 80).best(1000)
        assert all(t.outcome.status is Status.VERIFIED for t in best)
        assert all(t.schedule.rows != 13 for t in best)


def test_skipped_schedules_are_never_asked() -> None:
    first = [t.text for t in searched(5, 30).measured]
    search = Search(SPACE, [SPACE.default()], Random(5), None, skip=first)
    asked = [search.ask() for _ in range(30)]
    assert not {SPACE.text(s) for s in asked if s is not None} & set(first)


class TinySpace(SyntheticSpace):
    """Three schedules and no more."""

    def sample(self, rng: Random) -> Tiles:
        return Tiles(rng.choice((1, 2, 3)), 1, 4, 1, 1, False, "ijk")

    def neighbours(self, schedule: Tiles, rng: Random) -> list[Tiles]:
        return [self.sample(rng)]


def test_a_space_that_is_done_ends_the_search() -> None:
    search = Search(TinySpace(), [], Random(0))
    count = 0
    while (schedule := search.ask()) is not None:
        search.tell(schedule, Outcome(status=Status.VERIFIED, seconds=cost(schedule), times=()))
        count += 1
    assert count == 3


def test_a_timing_corrects_the_model() -> None:
    surrogate = Surrogate()
    for rows in range(1, FEW + 6):
        slow = rows % 2
        text = SPACE.text(Tiles(rows, 1, 4, 4, 1, bool(slow), "ijk"))
        surrogate.learn(text, 1.0, Outcome(status=Status.VERIFIED, seconds=4.0 if slow else 1.0, times=()))
    packed, plain = (SPACE.text(Tiles(5, 1, 4, 4, 1, p, "ijk")) for p in (True, False))
    assert surrogate.corrected(packed, 1.0) > 2 * surrogate.corrected(plain, 1.0)


@pytest.mark.parametrize("status", [Status.CRASHED, Status.WRONG, Status.REFUSED, Status.TIMEOUT])
def test_what_is_rejected_counts_as_slow(status: Status) -> None:
    surrogate = Surrogate()
    for number in range(FEW + 2):
        outcome = (
            Outcome(status=status) if number % 2 else Outcome(status=Status.VERIFIED, seconds=1.0, times=())
        )
        surrogate.learn(f'{{"order":"{"ab"[number % 2]}"}}', 1.0, outcome)
    assert surrogate.corrected('{"order":"b"}', 1.0) > 1.5 * surrogate.corrected('{"order":"a"}', 1.0)


def test_features_are_the_leaves_of_the_schedule() -> None:
    assert features('{"a":[1,{"b":true}],"c":"x"}') == {
        ".a[0]=1": 1.0,
        ".a[0]": 0.25,
        ".a[1].b=True": 1.0,
        ".c=x": 1.0,
    }
