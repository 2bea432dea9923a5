"""Tuning: the fastest right schedule of each md_hom within a budget of seconds; all results are kept.

The search (``search``) knows no clock and no device; a measure knows how a schedule is timed: in a child
process on a device (``timing``), or from what was recorded (``replay``). Every outcome goes to the database
at once, so that Ctrl-C and ``kill -9`` lose at most the candidate that is being timed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Generic, Protocol, TypeVar

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.mdh.schedule.signature import Key
from polyloom.mdh.tuning.database import Database
from polyloom.mdh.tuning.measure import Measure
from polyloom.mdh.tuning.outcome import Outcome, Status
from polyloom.mdh.tuning.search import Search, SearchOptions, Space

S = TypeVar("S")

Clock = Callable[[], float]

BASELINE_REPLACED_BELOW = 0.4
"""The first right schedule is the baseline, until another takes less than this fraction of its time."""


REPEATED_BELOW = 0.85
"""A candidate below this fraction of the best time is timed once more; the worse time counts."""


BUILT_TOGETHER = 8
"""Schedules that are built before the first of them is timed, at most."""

LEAST_GAIN = 1.02
"""How much faster than the cost model's choice a schedule must be, side by side, to take its place."""


class SeededSpace(Space[S], Protocol[S]):
    """A space that can read schedules found elsewhere."""

    def adapted(self, text: str) -> S | None:
        """Return the legal schedule nearest to the JSON text of one, None where it is none at all."""


@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """How much is spent, and on what.

    ``budget``: seconds for all md_homs together; ``evaluations``: candidates for each at most; ``cutoff``: a
    candidate is given up above so many times the best; ``finalists``: how many are timed once more in turns,
    which takes ``last`` of the budget; ``early_stopping``: stop after so many candidates without any better
    one; ``jobs``: how many are built at a time, and timed one at a time all the same (None: as many as the
    process may run threads).
    """

    budget: float = 60.0
    evaluations: int | None = None
    seed: int = 0
    cutoff: float = 2.0
    finalists: int = 4
    last: float = 0.1
    early_stopping: int | None = None
    jobs: int | None = None
    search: SearchOptions = field(default_factory=SearchOptions)


@dataclass(frozen=True, kw_only=True)
class TuningTask(Generic[S]):
    """An md_hom to tune: its key, name and space, and how its schedules are timed.

    ``weight``: the share of the program's time that it is expected to take. ``operations``: arithmetic
    operations of one execution, for rates; None where they are not counted. ``sizes``: the extents, for a
    person.
    """

    key: Key
    name: str
    space: SeededSpace[S]
    measure: Measure[S]
    weight: float = 1.0
    operations: int | None = None
    sizes: tuple[int | str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far tuning is: shown to a person.

    ``number`` of ``count`` md_homs; ``best`` and ``first`` (the first right one, most often the model's
    choice) in seconds; ``left``: seconds of the budget of all.
    """

    name: str
    number: int
    count: int
    evaluations: int
    rejected: int
    first: float
    best: float
    left: float


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """What tuning found for one md_hom.

    ``default``: seconds of the cost model's choice, infinity where it is not right. ``rejected``: how many
    candidates ended in each other way. ``evaluations`` counts this run's only.
    """

    name: str
    key: Key
    schedule: str
    seconds: float
    default: float
    evaluations: int
    rejected: Mapping[Status, int]
    interrupted: bool
    operations: int | None = None
    sizes: tuple[int | str, ...] = ()

    def __repr__(self) -> str:
        times = f"{self.seconds:.3g} s, {self.default:.3g} s before"
        return f"<Tuned {self.name}: {times}, {self.evaluations} evaluations>"


Observer = Callable[[Progress], None]


def tune(
    tasks: Sequence[TuningTask[S]],
    database: Database,
    options: TuneOptions,
    observer: Observer | None = None,
    clock: Clock = time.monotonic,
) -> tuple[Tuned, ...]:
    """Tune all tasks within one budget, shared by their weights; what one leaves over goes to the rest.

    After Ctrl-C the results so far are returned, those of the unfinished task marked ``interrupted``.

    Errors: ``tuning-nothing`` where no candidate of an md_hom gives right results; those of the database
    and of the measure.
    """
    end = clock() + options.budget
    results: list[Tuned] = []
    for number, task in enumerate(tasks):
        share = task.weight / max(sum(each.weight for each in tasks[number:]), 1e-30)
        deadline = clock() + share * max(end - clock(), 0.0)

        def reported(progress: Progress, number: int = number) -> None:
            left = max(end - clock(), 0.0)
            position = {"number": number + 1, "count": len(tasks), "left": left}
            if observer is not None:
                observer(Progress(**{**vars(progress), **position}))

        run = _Run(task, database, options, deadline, clock, reported)
        results.append(run.tuned())
        if results[-1].interrupted:
            break
    return tuple(results)


class _Run(Generic[S]):
    """The tuning of one md_hom."""

    def __init__(
        self,
        task: TuningTask[S],
        database: Database,
        options: TuneOptions,
        deadline: float,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self.task = task
        self._measure = task.measure
        self.database = database
        self.options = options
        self.deadline = deadline
        self.clock = clock
        self.observer = observer
        self.default = task.space.text(task.space.default())
        self.rejected: dict[Status, int] = {}
        self.evaluations = 0
        self.since_best = 0
        self.outcomes: dict[str, Outcome] = {}
        self.baseline: tuple[S, float] | None = None
        self.built: set[str] = set()
        self.search = self._search()

    def tuned(self) -> Tuned:
        """Search until the budget is spent, then time the best ones in turns."""
        interrupted = False
        try:
            self._evaluate_all()
            if len(self.search.best(2)) == 2:
                self._confirm()
        except KeyboardInterrupt:
            interrupted = True
        return self._result(interrupted)

    def _search(self) -> Search[S]:
        """Seeds: the best so far of this key, the model's choice, the best of the nearest sizes."""
        space, key = self.task.space, self.task.key
        found = self.database.entries(key)
        kept = [space.adapted(entry.schedule) for entry in found[:2]]
        others = [space.adapted(entry.schedule) for entry in self.database.nearest(key)]
        seeds = [schedule for schedule in (*kept, space.default(), *others) if schedule is not None]
        rng = Random(f"{self.options.seed} {key.signature} {key.sizes} {len(found)}")
        skip = [text for text, status in self.database.rejected(key).items() if status is not Status.SLOW]
        again = {space.text(schedule) for schedule in seeds}
        search = Search(space, seeds, rng, self.options.search, [t for t in skip if t != self.default])
        for entry in found:
            schedule = space.adapted(entry.schedule)
            if schedule is not None and space.text(schedule) == entry.schedule not in again:
                search.tell(schedule, entry.outcome)
        return search

    def _evaluate_all(self) -> None:
        last = min(self.options.last * self.options.budget, 0.3 * max(self.deadline - self.clock(), 0.0))
        stop = self.deadline - last
        running = 0
        while True:
            while running < self._at_a_time() and not self._done(stop, running):
                schedule = self.search.ask()
                if schedule is None:
                    break
                self._build(schedule)
                self._measure.start(schedule, self.options.cutoff * self._best(), self.baseline)
                running += 1
            if not running:
                return
            self._take(*self._measure.finished())
            running -= 1

    def _at_a_time(self) -> int:
        """Return how many may be timed at a time: one, until there is what others are timed in turns with."""
        return self._measure.most if self.baseline else 1

    def _build(self, schedule: S) -> None:
        """Build a schedule and those that come after it, unless that was done before."""
        if self.task.space.text(schedule) in self.built:
            return
        left = (self.options.evaluations or BUILT_TOGETHER) - self.evaluations
        most = max(BUILT_TOGETHER, self.options.jobs or 0)
        coming = [schedule, *self.search.waiting][: max(1, min(left, most))]
        self.built |= set(map(self.task.space.text, coming))
        self._measure.build(coming)

    def _done(self, stop: float, running: int) -> bool:
        limit, early_stopping = self.options.evaluations, self.options.early_stopping
        begun = self.evaluations + running
        spent = self.clock() >= stop and begun > 0
        enough = limit is not None and begun >= limit
        return spent or enough or (early_stopping is not None and self.since_best >= early_stopping)

    def _take(self, schedule: S, outcome: Outcome) -> None:
        before = self._best()
        if outcome.cost < REPEATED_BELOW * before < math.inf:
            again = self._measure.measure(schedule, self.options.cutoff * before, self.baseline)
            outcome = max(outcome, again, key=lambda each: each.cost)
        text = self.task.space.text(schedule)
        self.database.record(self.task.key, self.task.name, text, outcome)
        self.search.tell(schedule, outcome)
        self.outcomes[text] = outcome
        self.evaluations += 1
        self.since_best = 0 if outcome.cost < before else self.since_best + 1
        if self.baseline is None or outcome.cost < BASELINE_REPLACED_BELOW * self.baseline[1]:
            self.baseline = (schedule, outcome.cost) if math.isfinite(outcome.cost) else None
        if outcome.status is not Status.VERIFIED:
            self.rejected[outcome.status] = self.rejected.get(outcome.status, 0) + 1
        self.observer(self._progress())

    def _best(self) -> float:
        """Return the best time of this run; what an earlier one measured, the machine may not reach now."""
        return min((outcome.cost for outcome in self.outcomes.values()), default=math.inf)

    def _progress(self) -> Progress:
        first = next((o.cost for o in self.outcomes.values() if math.isfinite(o.cost)), math.inf)
        rejected = sum(self.rejected.values())
        return Progress(
            name=self.task.name,
            number=1,
            count=1,
            evaluations=self.evaluations,
            rejected=rejected,
            first=first,
            best=self._best(),
            left=0.0,
        )

    def _confirm(self) -> None:
        """Time the finalists, and the model's choice beside them, in turns."""
        schedules = [reported.schedule for reported in self.search.best(self.options.finalists)]
        texts = {self.task.space.text(schedule) for schedule in schedules}
        right = self.outcomes.get(self.default, Outcome(status=Status.WRONG)).status in (
            Status.VERIFIED,
            Status.SLOW,
        )
        if right and self.default not in texts:
            schedules.append(self.task.space.default())
        results = dict(self._measure.compare(schedules, max(self.deadline - self.clock(), 0.5)))
        for text, outcome in results.items():
            earlier = self.outcomes.get(text, outcome)
            results[text] = replace(outcome, max_error=earlier.max_error)
        self.database.confirm(self.task.key, self.task.name, self._gaining(results))
        self.outcomes.update(results)

    def _gaining(self, results: dict[str, Outcome]) -> dict[str, Outcome]:
        """Return the model's choice, where it was timed, with those that are faster by more than noise."""
        if self.default not in results:
            return results
        most = results[self.default].cost / LEAST_GAIN
        return {text: o for text, o in results.items() if text == self.default or o.cost < most}

    def _result(self, interrupted: bool) -> Tuned:
        best = self.database.best(self.task.key)
        if best is None and not interrupted:
            raise PolyloomError(self._nothing())
        default = self.outcomes.get(self.default, Outcome(status=Status.WRONG)).seconds
        return Tuned(
            name=self.task.name,
            key=self.task.key,
            schedule=best.schedule if best else self.default,
            seconds=best.outcome.cost if best else math.inf,
            default=math.inf if default is None else default,
            evaluations=self.evaluations,
            rejected=dict(self.rejected),
            interrupted=interrupted,
            operations=self.task.operations,
            sizes=self.task.sizes,
        )

    def _nothing(self) -> Diagnostic:
        reasons = [outcome.reason for outcome in self.outcomes.values() if outcome.reason]
        message = f"no schedule of `{self.task.name}` was right within the budget"
        helps = ["give more seconds (`--budget`), or choose another device (`--device`)"]
        return error("tuning-nothing", message, notes=list(dict.fromkeys(reasons))[:4], helps=helps)
