"""Candidates: mappings that are compiled and priced, and the search among them.

Layouts come ranked by a rough estimate (``search``). The best ones are compiled with default ports; from the
best of these, ports are changed one at a time. Whatever is legal is decided by the checks that every map
passes: a candidate that they refuse is dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, zip_longest
from math import inf, isfinite

import islpy as isl

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, Unsupported, error
from polyloom.ir.program import Program
from polyloom.polyhedra.effort import TooHardError, at_most
from polyloom.wafer.mapping.mapping import Mapping as LairMap
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.placement.plan import (
    Change,
    Plan,
    Problem,
    changed,
    distinct_neighbours,
    first_plan,
    neighbours,
    placement_text,
    plan_text,
    traffic_cycles,
)
from polyloom.wafer.placement.rectangles import rectangle_of
from polyloom.wafer.placement.search import Ranked


@dataclass(frozen=True)
class Price:
    """The estimated cycles of a mapping; with ``at_least`` that many or more."""

    cycles: float
    at_least: bool = False


Pricer = Callable[[Program, LairMap, float], Price]
"""Compiles a mapping and returns its price; it may stop where that is above the given cycles.

Raises PolyloomError where a check refuses it, GivenUp where isl did too much when something was known.
"""


class GivenUp(TooHardError):  # never leaves this room's callers
    """isl was given up on for a mapping of which it was known that it takes ``cycles`` or more."""

    def __init__(self, question: str, cycles: float) -> None:
        super().__init__(question)
        self.cycles = cycles


@dataclass(frozen=True)
class SearchOptions:
    """How many layouts are compiled, with more effort, with ports varied, and how many maps at most.

    ``least``: of the layouts, whatever their estimate. ``cutoff``: a layout is not compiled if its estimate
    is more than so many times the cycles of the best one that was compiled. A program of n statements takes n
    times as long to compile, so fewer of its maps are. ``plain``: only layouts with at most one class on an
    axis, where there are any: isl computes their sets in a fraction of the time that others take.
    """

    layouts: int = 16
    least: int = 3
    cutoff: float = 1.35
    retried: int = 3
    refined: int = 2
    compiled: int = 60
    plain: bool = False

    def shared_by(self, statements: int) -> SearchOptions:
        """Return the options for a program of so many statements."""
        layouts = max(min(8, self.layouts), self.layouts // statements)
        compiled = max(min(24, self.compiled), self.compiled // statements)
        return replace(self, layouts=layouts, compiled=compiled)


QUICK = SearchOptions(layouts=3, least=2, cutoff=1.2, retried=0, refined=0, compiled=12, plain=True)
"""For networks, whose layers are placed on several rectangles each."""


@dataclass(frozen=True)
class Candidate:
    """A mapping that was compiled: its text and estimated cycles; ``refusal``: why it is none.

    Refused as too slow, it takes at least these cycles.

    ``placement``: the part of the text that says where statements are; ``variants``: how many mappings with
    this placement were compared, of which this is the best one; too slow ones among them. ``effort``: how
    often the usual effort of isl it was given. ``at_least``: cycles that it takes at least, where isl was
    given up on.
    """

    text: str
    cycles: float
    refusal: PolyloomError | None = field(default=None, compare=False)
    placement: str = ""
    variants: int = 1
    effort: int = 1
    at_least: float = 0.0


@dataclass(frozen=True)
class Wanted:
    """A mapping to be compiled with so many times the usual effort: its text, and that of its placement.

    ``limit``: above so many cycles it is not looked at further.
    """

    text: str
    placement: str
    effort: int
    limit: float = inf


@dataclass(frozen=True)
class Pricers:
    """Who compiles mappings: ``most`` at a time. What is chosen does not depend on it."""

    most: int
    price: Callable[[Program, Sequence[Wanted]], Sequence[Candidate]]


def priced(program: Program, wanted: Wanted, pricer: Pricer) -> Candidate:
    """Compile a mapping, and return it with its cycles, or why it is refused."""
    cycles, at_least = inf, 0.0
    refusal: PolyloomError | None = None
    try:
        with at_most(wanted.effort * _EFFORT * (1 + len(program.statements))):
            mapping = read_mapping(Source("<automatic map>", wanted.text), program)
            price = pricer(program, mapping, wanted.limit)
        cycles = price.cycles
        refusal = Unsupported(_too_slow(price.cycles)) if price.at_least else None
    except PolyloomError as found:
        refusal = found
    except TooHardError as found:
        refusal = Unsupported(_too_hard())
        at_least = found.cycles if isinstance(found, GivenUp) else 0.0
    except isl.Error:  # a fault of isl's own, with operations left: other maps need not meet it
        refusal = Unsupported(_too_hard())
    return Candidate(wanted.text, cycles, refusal, wanted.placement, effort=wanted.effort, at_least=at_least)


@dataclass(frozen=True, eq=False)
class _Search:
    """``seen``: what came of each mapping that was compiled, by its text; ``texts``: of plans and their
    placements; ``ahead``: what came of mappings that may be asked for next, by text and effort.
    """

    problem: Problem
    pricers: Pricers
    options: SearchOptions
    seen: dict[str, Candidate] = field(default_factory=dict)
    texts: dict[Plan, tuple[str, str]] = field(default_factory=dict)
    ahead: dict[Wanted, Candidate] = field(default_factory=dict)

    def coming(self, plans: Iterable[Plan], effort: int = 1, limit: float = inf) -> None:
        """Compile the first of these plans together, where several are compiled at a time."""
        if self.pricers.most > 1:
            wanted = [self._wanted(plan, effort, limit) for plan in islice(plans, self.pricers.most)]
            new = [w for w in dict.fromkeys(wanted) if w not in self.ahead]
            if wanted and wanted[0] in new:
                self.ahead.update(zip(new, self.pricers.price(self.problem.program, new), strict=True))

    def in_turn(self, plans: Iterable[Plan], effort: int = 1, limit: float = inf) -> Iterator[Plan]:
        """Yield plans, some of which are compiled together before the first of them is asked for."""
        left = iter(plans)
        while some := list(islice(left, self.pricers.most)):
            self.coming(some, effort, limit)
            yield from some

    def _wanted(self, plan: Plan, effort: int, limit: float) -> Wanted:
        return Wanted(*self._texts(plan), effort, limit)

    def _texts(self, plan: Plan) -> tuple[str, str]:
        if plan not in self.texts:
            self.texts[plan] = plan_text(self.problem, plan), placement_text(self.problem, plan)
        return self.texts[plan]

    def tried(self, plan: Plan, effort: int = 1, limit: float = inf, *, again: bool = False) -> Candidate:
        """Return what comes of a plan; it is compiled where no other one has its text, or once more.

        Once more, too, where it was too slow for a call before and may not be for this one.
        """
        text, _ = self._texts(plan)
        if again or (text in self.seen and _may_be_fast_enough(self.seen[text], limit)):
            del self.seen[text]
        if text not in self.seen:
            wanted = self._wanted(plan, effort, limit)
            if wanted not in self.ahead:
                (self.ahead[wanted],) = self.pricers.price(self.problem.program, [wanted])
            self.seen[text] = self.ahead[wanted]
        return self.seen[text]

    def least_cycles(self) -> float:
        """Return the cycles of the best mapping that was compiled."""
        return min((c.cycles for c in self.seen.values() if c.refusal is None), default=inf)

    def is_full(self) -> bool:
        """Whether as many mappings have been compiled as may be."""
        return len(self.seen) >= self.options.compiled


def compare(
    problem: Problem, ranked: Sequence[Ranked], pricers: Pricers, options: SearchOptions
) -> tuple[Candidate, ...]:
    """Return all mappings that were compiled, in that order, refused ones among them.

    ``ranked``: layouts, those with the best estimate first.
    """
    search = _Search(problem, pricers, options)
    plain = [r for r in ranked if not r.digits] if options.plain else []
    found = _layouts(search, plain or ranked)
    plans = [tried for _, tried in found]
    plans += _retry_hard(search, found)
    if all(candidate.refusal is not None for _, candidate in plans):
        plans += _legal_ports(search, [plan for plan, candidate in plans if not _was_too_hard(candidate)])
    best: dict[object, tuple[Plan, Candidate]] = {}
    for plan, candidate in sorted((p for p in plans if p[1].refusal is None), key=lambda p: p[1].cycles):
        best.setdefault(plan.directions, (plan, candidate))
    found_best = [*best.values()][: options.refined]
    for plan, candidate in found_best:
        if candidate.cycles <= _CLOSE * found_best[0][1].cycles:
            _refine(search, plan, candidate, search.least_cycles())
    return tuple(search.seen.values())


def by_placement(found: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the best legal mapping of each placement, the best first."""
    best: dict[str, Candidate] = {}
    good = sorted((c for c in found if c.refusal is None), key=lambda c: c.cycles)
    for candidate in good:
        best.setdefault(candidate.placement, candidate)
    counts = Counter(c.placement for c in found if c.refusal is None or _was_too_slow(c))
    return tuple(replace(c, variants=counts[c.placement]) for c in best.values())


def _layouts(search: _Search, ranked: Sequence[Ranked]) -> list[tuple[Ranked, tuple[Plan, Candidate]]]:
    """Compile the best layouts with default ports, until the estimates of those that are left are too high.

    Among them are some with at most one class on an axis, whose sets isl can compute: they are tried now and
    then once isl has given up on others, at once where nothing is known yet that others must beat, and at the
    end. Where several are compiled at a time, only those
    that will be asked for: some take isl longer than all others together.
    """
    found: list[tuple[Ranked, tuple[Plan, Candidate]]] = []
    best, hard, simple = float("inf"), 0, 0
    left = list(_varied(ranked))
    while left and len(found) < search.options.layouts:
        is_last = len(found) == search.options.layouts - 1 and not simple
        r = _next(left, simple=is_last or hard > 2 * simple + isfinite(best))
        if len(found) >= search.options.least and r.estimate.cycles > search.options.cutoff * best:
            break
        left.remove(r)
        sure = search.options.least - len(found) - 1
        limit = search.options.cutoff * best if isfinite(best) else 0
        ahead = [each for k, each in enumerate(left) if k < sure or each.estimate.cycles <= limit]
        slow = _limit(search.options, (tried for _, tried in found))
        search.coming((_plan_of(search, each) for each in (r, *ahead)), limit=slow)
        plan = _plan_of(search, r)
        candidate = search.tried(plan, limit=slow)
        found.append((r, (plan, candidate)))
        best = min(best, candidate.cycles)
        hard += _was_too_hard(candidate)
        simple += not r.digits
    return found


def _limit(options: SearchOptions, found: Iterable[tuple[Plan, Candidate]]) -> float:
    """Return the cycles above which a layout is not varied: enough better ones are, or it is far off."""
    best: dict[object, float] = {}
    for plan, candidate in found:
        if candidate.refusal is None:
            best[plan.directions] = min(candidate.cycles, best.get(plan.directions, inf))
    varied = sorted(best.values())[: max(1, options.refined)]
    enough = _BETTER * varied[-1] if len(varied) >= options.refined and varied else inf
    return min([enough, *(_CLOSE * cycles for cycles in varied[:1])])


def _plan_of(search: _Search, ranked: Ranked) -> Plan:
    """Return a layout with default ports."""
    rectangle = rectangle_of(search.problem, ranked.places)
    plan = first_plan(search.problem, rectangle, ranked.places, ranked.estimate.waits)
    return replace(plan, drivers_settled=(ranked.estimate.otherwise or 0) > _SETTLED * ranked.estimate.cycles)


_SETTLED = 2.5
"""Times the estimated cycles, from which on other drivers are not compiled: they took 1.5 times as many."""


def _next(left: Sequence[Ranked], *, simple: bool) -> Ranked:
    """Return the best layout, or the best with at most one class on an axis, if there is any."""
    return next((r for r in left if not (simple and r.digits)), left[0])


_MOST_OF_ONE_ESTIMATE = 2


def _varied(ranked: Sequence[Ranked]) -> Iterator[Ranked]:
    """Yield layouts in their order, at most two of the same estimate: most of them mirror each other."""
    counts: Counter[float] = Counter()
    for r in ranked:
        counts[r.estimate.cycles] += 1
        if counts[r.estimate.cycles] <= _MOST_OF_ONE_ESTIMATE:
            yield r


def _retry_hard(
    search: _Search, tried: Sequence[tuple[Ranked, tuple[Plan, Candidate]]]
) -> Iterator[tuple[Plan, Candidate]]:
    """Try layouts again, with more effort, that were too hard and may be better than the best that was not.

    With much more where their estimates are below its cycles. With some more where they are not far above its
    own estimate, and no more classes share an axis: such a layout can be compiled. The simplest first: it may
    be better than what the others could be. Neither where all that are like it were estimated so much too low
    that it would be far from the best, nor where the roles of which there was a program take longer, nor
    after one for which much effort was not enough: it would be spent on each of them.
    """
    best, hard = _Best(), list[tuple[int, float, Plan, float]]()
    for ranked, (plan, candidate) in tried:
        best = best.or_better(candidate, ranked.digits, ranked.estimate.cycles)
        if _was_too_hard(candidate):
            hard.append((ranked.digits, ranked.estimate.cycles, plan, candidate.at_least))
    enough = _SPARE * best.cycles
    hopeful = [e for e in hard if (low := _too_low(tried, e[0])) <= 1 or e[1] * low < enough]
    hopeful = [entry for entry in hopeful if entry[3] <= best.cycles]
    retried = sorted(hopeful, key=lambda entry: entry[:2])[: search.options.retried]
    cutoff = search.options.cutoff
    better = [plan for _, expected, plan, _ in retried if expected < best.cycles]
    search.coming(better, _MORE, _CLOSE * best.cycles)
    for digits, expected, plan, at_least in retried:
        effort = best.effort_for(digits, expected, cutoff)
        if effort > 1 and at_least <= best.cycles:
            again = search.tried(plan, effort, _CLOSE * best.cycles, again=True)
            best = best.or_better(again, digits, expected)
            yield plan, again
            if effort == _MORE and _was_too_hard(again):
                return


_SPARE = 1.25
"""Times the best cycles up to which a layout may still win: others of its kind took an eighth more."""


def _too_low(tried: Iterable[tuple[Ranked, tuple[Plan, Candidate]]], digits: int) -> float:
    """Return how many times its estimate a layout takes at least, by those that were compiled.

    Of those with as many classes that share an axis, or with fewer where there are none: sharing costs code,
    which the estimate leaves out. 1 where fewer than two are known: one differs from the next by a tenth.
    """
    compiled = [(r.digits, c.cycles / r.estimate.cycles) for r, (_, c) in tried if isfinite(c.cycles)]
    alike = [times for n, times in compiled if n == digits] or [times for n, times in compiled if n < digits]
    return min(alike) if len(alike) > 1 else 1.0


@dataclass(frozen=True)
class _Best:
    """The best layout that was compiled: its cycles, its estimate, and how many classes share an axis."""

    cycles: float = float("inf")
    estimate: float = float("inf")
    digits: int = 0

    def or_better(self, candidate: Candidate, digits: int, estimate: float) -> _Best:
        """Return this one, or a candidate that takes fewer cycles."""
        return _Best(candidate.cycles, estimate, digits) if candidate.cycles < self.cycles else self

    def effort_for(self, digits: int, estimate: float, cutoff: float) -> int:
        """Return how much effort a layout is worth that was too hard: 1 for none."""
        if estimate < self.cycles:
            return _MORE
        return _SOME_MORE if digits <= self.digits and estimate < cutoff * self.estimate else 1


def _legal_ports(search: _Search, plans: Sequence[Plan]) -> list[tuple[Plan, Candidate]]:
    """Look for ports that are accepted where the default ones of no layout are: of each layout in turn."""
    in_turn = zip_longest(*(neighbours(search.problem, plan) for plan in plans))
    for plan in search.in_turn(plan for plan in chain.from_iterable(in_turn) if plan is not None):
        if not search.is_full():
            candidate = search.tried(plan)
            if candidate.refusal is None:
                return [(plan, candidate)]
    return []


_CLOSE = 1.15
"""Of the best layout's cycles, those of another one whose ports are varied, too: they save at most that.

Layouts that take more are not looked at further.
"""


def _refine(search: _Search, plan: Plan, candidate: Candidate, least: float) -> None:
    """Change one thing at a time and go on from what is cheapest, until nothing is cheaper by much.

    What made a plan slower is not tried again on those that follow, nor is a port whose traffic alone takes
    longer than the plan does. ``least``: the cycles of the best mapping so far, which a change must save.
    """
    lost: set[Change] = set()
    while True:
        best: tuple[float, Plan | None] = (_WORTH * candidate.cycles, None)
        changes = dict(_worth_trying(search.problem, plan, candidate, lost))
        useful = _BETTER * min(candidate.cycles, least)
        for other in search.in_turn(changes, candidate.effort, useful):
            if search.is_full():
                return
            tried = search.tried(other, candidate.effort, useful)
            if tried.cycles > candidate.cycles:
                lost.add(changes[other])
            if tried.refusal is None:
                best = min(best, (tried.cycles, other), key=lambda pair: pair[0])
        if best[1] is None:
            return
        plan = best[1]
        candidate = search.tried(plan, candidate.effort)


def _worth_trying(
    problem: Problem, plan: Plan, candidate: Candidate, lost: Container[Change]
) -> Iterator[tuple[Plan, Change]]:
    for other in distinct_neighbours(problem, plan):
        change = changed(plan, other)
        if change not in lost and traffic_cycles(problem, other, change) < candidate.cycles:
            yield other, change


_BETTER = 1 - 1e-9
"""Of a plan's cycles, those above which another one is no better: most changes change nothing."""

_WORTH = 0.99
"""Of a plan's cycles, those of another one from which the search goes on; the best seen is taken anyway."""


def _may_be_fast_enough(candidate: Candidate, limit: float) -> bool:
    """Tell whether a candidate was refused as too slow, but may take no more cycles than this limit."""
    return candidate.refusal is not None and isfinite(candidate.cycles) and candidate.cycles <= limit


def _was_too_slow(candidate: Candidate) -> bool:
    """Tell whether a candidate was stopped as others take less."""
    refusal = candidate.refusal
    return refusal is not None and refusal.diagnostics[0].code == "placement-slow"


def _was_too_hard(candidate: Candidate) -> bool:
    """Tell whether isl gave up on a candidate; other ports do not change that."""
    refusal = candidate.refusal
    return refusal is not None and refusal.diagnostics[0].code == _TOO_HARD


_TOO_HARD = "placement-effort"

_EFFORT = 700_000
"""Operations of isl for one candidate and statement, about a seventh of a second; most take a third."""

_SOME_MORE, _MORE = 2, 6
"""Times the effort, for layouts that are worth it."""


def _too_slow(cycles: float) -> Diagnostic:
    return error("placement-slow", f"it takes {cycles:.0f} cycles or more, and others take less")


def _too_hard() -> Diagnostic:
    message = "no mapping was found whose sets are simple enough to compile"
    return error(_TOO_HARD, message, helps=["give a part of the map, or a smaller rectangle"])
