"""Automatic mapping: what a map leaves open is chosen, by the cycles that compiled code is estimated to take.

Layouts are ranked by a guess (``search``); the best ones are compiled with default ports and priced; from
the best of these, ports are changed one at a time. Whatever is legal is decided by the checks that every
map passes: a candidate that they refuse is dropped. Source: dtg_codegen, Sec. 4.1.2 (a direction); the
choice of a placement is its future work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product, zip_longest
from typing import Any

import islpy as isl

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, Unsupported, error
from polyloom.ir.program import Affine, Program, Statement
from polyloom.polyhedra.effort import TooHardError, at_most
from polyloom.wafer.map_reader import Given, read_given, read_mapping
from polyloom.wafer.mapping import Mapping as LairMap
from polyloom.wafer.placement.boxes import Wishes
from polyloom.wafer.placement.coordinates import Place
from polyloom.wafer.placement.estimate import Guess, Guesser
from polyloom.wafer.placement.fixed import place_of
from polyloom.wafer.placement.layouts import Directions
from polyloom.wafer.placement.operands import streamed_inputs
from polyloom.wafer.placement.plan import (
    Plan,
    Problem,
    first_plan,
    fixed_extent,
    neighbours,
    placement_text,
    plan_text,
    telling_neighbours,
)
from polyloom.wafer.placement.ports import relation_text
from polyloom.wafer.placement.search import Ranked, rank_layouts, without_transposes
from polyloom.wafer.sides import Grid
from polyloom.wafer.simulator.machine import Machine

Pricer = Callable[[Program, LairMap], float]
"""Compiles a mapping and returns its estimated cycles. Raises PolyloomError where a check refuses it."""


@dataclass(frozen=True)
class SearchOptions:
    """How many layouts are compiled, with more effort, with ports varied, and how many maps at most.

    ``least``: of the layouts, whatever their guess. ``hopeless``: a layout is not compiled if its guess is
    so many times the best estimate. A program of n statements takes n times as long to compile, so fewer of
    its maps are.
    """

    layouts: int = 16
    least: int = 3
    hopeless: float = 1.35
    insisted: int = 3
    refined: int = 2
    compiled: int = 60

    def shared_by(self, statements: int) -> SearchOptions:
        """Return the options for a program of so many statements."""
        layouts = max(min(8, self.layouts), self.layouts // statements)
        compiled = max(min(24, self.compiled), self.compiled // statements)
        return replace(self, layouts=layouts, compiled=compiled)


@dataclass(frozen=True)
class Candidate:
    """A mapping that was compiled: its text and estimated cycles; ``refusal``: why it is none.

    ``placement``: the part of the text that says where statements are; ``variants``: how many legal mappings
    with this placement were compared, of which this is the best one. ``effort``: how often the usual effort
    of isl it was given.
    """

    text: str
    cycles: float
    refusal: PolyloomError | None = field(default=None, compare=False)
    placement: str = ""
    variants: int = 1
    effort: int = 1


@dataclass(frozen=True, eq=False)
class Choice:
    """``text``: the chosen mapping as a map file; ``candidates``: of each placement that was compared the
    best mapping, the best first.

    ``notes``: what was decided before the search, a sentence each. A map that leaves nothing open has no
    candidates.
    """

    mapping: LairMap
    text: str
    candidates: tuple[Candidate, ...]
    notes: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """Return the part ``choice`` of the document of ``explain --json`` (docs/interface.md)."""
        shown = self.candidates[:SHOWN]
        candidates = [{"cycles": c.cycles, "map": c.text, "variants": c.variants} for c in shown]
        return {"map": self.text, "notes": list(self.notes), "candidates": candidates}


SHOWN = 8
"""Candidates that are shown to a person or a program."""


def complete(
    source: Source | None,
    program: Program,
    machine: Machine,
    pricer: Pricer,
    size: tuple[int, int] | None = None,
    options: SearchOptions | None = None,
) -> Choice:
    """Return the mapping that a map gives, with what it leaves open chosen.

    ``source``: the map, None without one; ``size``: columns and rows in place of the map's.

    Raises PolyloomError (``map-...``) where the map is wrong, Unsupported ``placement-...`` where nothing
    was found that the machine can hold.
    """
    given = read_given(source or Source("<no map>", ""), program)
    if size is not None:
        given = replace(given, grid=Grid(*size))
    elif source is not None and given.is_complete:
        return Choice(read_mapping(source, program), source.text, (), ())
    effort = (options or SearchOptions()).shared_by(len(program.statements))
    failure: PolyloomError | None = None
    for limit, (wishes, notes) in product(_limits(given, machine), _wishes(given, program)):
        problem = Problem(program, given, wishes, _fixed_texts(given))
        try:
            found = _search(problem, limit, machine, pricer, effort)
        except Unsupported as refusal:
            failure = failure or refusal
            continue
        good = _by_placement(found)
        if good:
            mapping = read_mapping(Source("<automatic map>", good[0].text), program)
            return Choice(mapping, good[0].text, good, notes)
        failure = failure or next((c.refusal for c in found if c.refusal is not None), None)
    assert failure is not None
    raise failure


def _by_placement(found: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the best legal mapping of each placement, the best first."""
    best: dict[str, Candidate] = {}
    good = sorted((c for c in found if c.refusal is None), key=lambda c: c.cycles)
    for candidate in good:
        best.setdefault(candidate.placement, candidate)
    counts = Counter(c.placement for c in good)
    return tuple(replace(c, variants=counts[c.placement]) for c in best.values())


_SMALLER = ((8, 8), (2, 2), (1, 1))
"""Rectangles that are tried where nothing was accepted on any size."""


def _limits(given: Given, machine: Machine) -> tuple[tuple[int, int], ...]:
    """Return the largest rectangles to look at, in turn: on few PEs there is less that can be refused."""
    if given.grid is not None:
        return ((given.grid.width, given.grid.height),)
    return (machine.grid, *_SMALLER)


def _fixed_texts(given: Given) -> dict[str, str]:
    return {name: relation_text(relation) for name, relation in given.placement.items()}


def _wishes(given: Given, program: Program) -> Iterator[tuple[Wishes, tuple[str, ...]]]:
    """Yield which tensors move: as the map says, else by the rules of ``operands``; at last none."""
    all_placed = len(given.placement) == len(program.statements)
    sparse = given.sparse or ()
    olds, news = ([pair[k] for pair in given.state] for k in (0, 1))
    moving = tuple(given.inputs) if given.inputs is not None else given.streamed or ()
    leaving = tuple(given.outputs) if given.outputs is not None else given.leaving or ()
    named = [
        *(n for n in sparse if n in program.inputs),
        *given.trigger.values(),
        *(given.streamed or ()),
    ]
    if given.inputs is None and not given.streamed and (not all_placed or "iport_map" in given.entries):
        moving = streamed_inputs(program, olds, named)
    if given.outputs is None and not given.leaving and (not all_placed or "oport_map" in given.entries):
        leaving = tuple(n for n in program.outputs if n not in news)
    stays = [n for n in program.inputs if n not in moving]
    notes = [f"{_listed(moving)} streams" if moving else "nothing streams"]
    notes += [f"{_listed(stays)} is resident"] if stays else []
    yield Wishes(moving, leaving, sparse), ("; ".join(notes),)
    if given.inputs is None and given.outputs is None and (moving or leaving) and not named:
        yield (
            Wishes((), (), ()),
            ("all tensors are resident: with streams, nothing was accepted",),
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _search(
    problem: Problem,
    limit: tuple[int, int],
    machine: Machine,
    pricer: Pricer,
    options: SearchOptions,
) -> list[Candidate]:
    ranked = _ranked(problem, limit, machine)
    fitting = [r for r in ranked if r.guess.bytes <= machine.memory_bytes]
    if not fitting:
        raise Unsupported(_no_room(problem, ranked, limit, machine))
    seen: dict[str, Candidate] = {}
    found = _layouts(problem, fitting, pricer, seen, options)
    plans = [tried for _, tried in found]
    plans += _insist(problem, found, pricer, seen, options.insisted)
    if all(candidate.refusal is not None for _, candidate in plans):
        simple = [(plan, candidate) for plan, candidate in plans if not _was_too_hard(candidate)]
        plans += _legal_ports(problem, simple, pricer, seen, options.compiled)
    best = sorted((p for p in plans if p[1].refusal is None), key=lambda p: p[1].cycles)
    for plan, candidate in best[: options.refined]:
        if candidate.cycles < options.hopeless * min(c.cycles for c in seen.values()):
            _refine(problem, plan, candidate, pricer, seen, options.compiled)
    return list(seen.values())


def _layouts(
    problem: Problem,
    ranked: Sequence[Ranked],
    pricer: Pricer,
    seen: dict[str, Candidate],
    options: SearchOptions,
) -> list[tuple[Ranked, tuple[Plan, Candidate]]]:
    """Compile the best layouts with default ports, until what is left is too far behind by its guess."""
    found: list[tuple[Ranked, tuple[Plan, Candidate]]] = []
    best = float("inf")
    for number, r in enumerate(_promising(tuple(_varied(ranked)), options.layouts)):
        if number >= options.least and r.guess.cycles > options.hopeless * best:
            break
        plan = first_plan(problem, _grid_of(problem, r.places), r.places)
        candidate = _tried(problem, plan, pricer, seen)
        found.append((r, (plan, candidate)))
        best = min(best, candidate.cycles)
    return found


_MOST_ALIKE = 2


def _varied(ranked: Sequence[Ranked]) -> Iterator[Ranked]:
    """Yield layouts in their order, of those with the same guess a few: mostly they mirror each other."""
    counts: Counter[float] = Counter()
    for r in ranked:
        counts[r.guess.cycles] += 1
        if counts[r.guess.cycles] <= _MOST_ALIKE:
            yield r


def _promising(fitting: Sequence[Ranked], most: int) -> list[Ranked]:
    """Return the best layouts, and one with at most one class on an axis: isl can do with that."""
    simple = next((r for r in fitting if not r.digits), None)
    best = list(fitting[:most])
    if simple is not None and simple not in best:
        best[-1:] = [simple]
    return best


def _insist(
    problem: Problem,
    tried: Iterable[tuple[Ranked, tuple[Plan, Candidate]]],
    pricer: Pricer,
    seen: dict[str, Candidate],
    most: int,
) -> Iterator[tuple[Plan, Candidate]]:
    """Try layouts again, with more effort, that were too hard and look better than the best that was not.

    The simplest first: it may be better than what the others could be.
    """
    best = float("inf")
    hard: list[tuple[int, float, Plan]] = []
    for ranked, (plan, candidate) in tried:
        best = min(best, candidate.cycles)
        if _was_too_hard(candidate):
            hard.append((ranked.digits, ranked.guess.cycles, plan))
    for _, expected, plan in sorted(hard, key=lambda entry: entry[:2])[:most]:
        if expected < best:
            del seen[plan_text(problem, plan)]
            again = _tried(problem, plan, pricer, seen, _MORE)
            best = min(best, again.cycles)
            yield plan, again


def _legal_ports(
    problem: Problem,
    plans: Sequence[tuple[Plan, Candidate]],
    pricer: Pricer,
    seen: dict[str, Candidate],
    most: int,
) -> list[tuple[Plan, Candidate]]:
    """Look for ports that are accepted where the default ones of no layout are: of each layout in turn."""
    in_turn = zip_longest(*(neighbours(problem, plan) for plan, _ in plans))
    for plan in chain.from_iterable(in_turn):
        if plan is not None and len(seen) < most:
            candidate = _tried(problem, plan, pricer, seen)
            if candidate.refusal is None:
                return [(plan, candidate)]
    return []


def _refine(
    problem: Problem,
    plan: Plan,
    candidate: Candidate,
    pricer: Pricer,
    seen: dict[str, Candidate],
    most: int,
) -> None:
    """Change one port at a time and keep what is cheaper, until nothing is."""
    improved = True
    while improved and len(seen) < most:
        improved = False
        for other in telling_neighbours(problem, plan):
            if len(seen) >= most:
                return
            tried = _tried(problem, other, pricer, seen, candidate.effort)
            if tried.refusal is None and tried.cycles < candidate.cycles:
                plan, candidate, improved = other, tried, True
                break


def _tried(
    problem: Problem,
    plan: Plan,
    pricer: Pricer,
    seen: dict[str, Candidate],
    effort: int = 1,
) -> Candidate:
    text = plan_text(problem, plan)
    if text not in seen:
        cycles = float("inf")
        refusal: PolyloomError | None = None
        try:
            with at_most(effort * _EFFORT * (1 + len(problem.program.statements))):
                mapping = read_mapping(Source("<automatic map>", text), problem.program)
                cycles = pricer(problem.program, mapping)
        except PolyloomError as found:
            refusal = found
        except TooHardError:
            refusal = Unsupported(_too_hard())
        seen[text] = Candidate(text, cycles, refusal, placement_text(problem, plan), effort=effort)
    return seen[text]


def _was_too_hard(candidate: Candidate) -> bool:
    """Tell whether isl gave up on a candidate; other ports do not change that."""
    refusal = candidate.refusal
    return refusal is not None and refusal.diagnostics[0].code == _TOO_HARD


_TOO_HARD = "placement-effort"

_EFFORT = 700_000
"""Operations of isl for one candidate and statement, about a seventh of a second; most take a third."""

_MORE = 6
"""Times the effort, for layouts that are worth it."""


def _too_hard() -> Diagnostic:
    helps = ["give a part of the map, or a smaller rectangle"]
    return error(
        _TOO_HARD,
        "no mapping was found whose sets are simple enough to compile",
        helps=helps,
    )


# Layouts.


def _ranked(problem: Problem, limit: tuple[int, int], machine: Machine) -> list[Ranked]:
    program, given = problem.program, problem.given
    numbers = {s.name: n for n, s in enumerate(program.statements)}
    affine = {numbers[n]: _expressions(given, program.statements[numbers[n]]) for n in given.directions}
    directions = Directions(program, affine)
    known = {
        numbers[name]: place_of(program.statements[numbers[name]], relation)
        for name, relation in given.placement.items()
    }

    def with_known(places: tuple[Place, ...]) -> tuple[Place, ...]:
        return tuple(known.get(n, place) for n, place in enumerate(places))

    model = Guesser(program, problem.wishes, machine)

    def guesser(places: tuple[Place, ...]) -> Guess:
        return model.guess(with_known(places))

    found = rank_layouts(directions, limit, guesser, machine.memory_bytes)
    if not given.placement and not given.inputs and not given.outputs:
        found = without_transposes(found)
    return [replace(r, places=with_known(r.places)) for r in found]


def _grid_of(problem: Problem, places: Sequence[Place]) -> Grid:
    """Return the given rectangle, or the smallest one that holds the instances and touches given ports."""
    given = problem.given
    if given.grid is not None:
        return given.grid
    width, height = fixed_extent(given.placement)
    width = max(width, *(1 + p.x.last for p in places))
    height = max(height, *(1 + p.y.last for p in places))
    for ports in (given.inputs or {}, given.outputs or {}):
        for schedule in ports.values():
            width, height = _reaching(schedule, width, height)
    return Grid(width, height)


def _reaching(schedule: isl.Map, width: int, height: int) -> tuple[int, int]:
    """Enlarge a rectangle so that ports to the east and south are adjacent to it."""
    pes = schedule.range_factor_domain().range()
    if pes.is_empty() or not pes.is_bounded():
        return width, height
    east = pes.intersect(isl.Set("{ PE[x, y] : x >= 0 and y >= 0 }"))
    for wanted in (isl.Set("{ PE[x, -1] }"), isl.Set("{ PE[-1, y] }")):
        here = pes.intersect(wanted.intersect(isl.Set("{ PE[x, y] : x >= 0 or y >= 0 }")))
        if not here.is_empty():
            width = max(width, 1 + here.dim_max_val(0).to_python())
            height = max(height, 1 + here.dim_max_val(1).to_python())
    if not east.is_empty():
        x, y = east.dim_max_val(0).to_python(), east.dim_max_val(1).to_python()
        if east.dim_min_val(0).to_python() == x and x >= width:
            width = x
        elif east.dim_min_val(1).to_python() == y and y >= height:
            height = y
    return width, height


def _expressions(given: Given, statement: Statement) -> tuple[Affine, Affine]:
    """Return a direction's two expressions. Raises PolyloomError ``map-direction`` if one is not affine."""
    relation = given.directions[statement.name]
    if not relation.is_single_valued():
        raise PolyloomError(_not_affine(given, statement))
    function = relation.as_pw_multi_aff().gist(relation.domain()).coalesce()
    if not function.isa_multi_aff():
        raise PolyloomError(_not_affine(given, statement))
    pair = function.as_multi_aff()
    first, second = (_affine(pair.get_at(k), len(statement.domain)) for k in (0, 1))
    if first is None or second is None:
        raise PolyloomError(_not_affine(given, statement))
    return first, second


def _affine(function: isl.Aff, rank: int) -> Affine | None:
    if function.dim(isl.dim_type.div) or not function.get_denominator_val().is_one():
        return None
    coefficients = (function.get_coefficient_val(isl.dim_type.in_, k).to_python() for k in range(rank))
    return Affine(
        tuple(int(c) for c in coefficients),
        int(function.get_constant_val().to_python()),
    )


def _not_affine(given: Given, statement: Statement) -> Diagnostic:
    names, last = ", ".join(statement.iterators), statement.iterators[-1]
    return error(
        "map-direction",
        f"the direction of `{statement.name}` is not a pair of affine expressions",
        given.entries["compute_map"].span,
        helps=[f"write {{ {statement.name}[{names}] -> [{last}, 0] }}, or the whole placement"],
    )


def _no_room(
    problem: Problem, ranked: Sequence[Ranked], limit: tuple[int, int], machine: Machine
) -> Diagnostic:
    best = min(ranked, key=lambda r: r.guess.bytes)
    tensor, size = max(best.guess.memory, key=lambda pair: pair[1])
    rows = "\n".join(f"{name:<24}{count:>10} bytes" for name, count in best.guess.memory)
    span = problem.given.entries["size"].span if "size" in problem.given.entries else None
    return error(
        "placement-memory",
        f"no placement on {limit[0]} x {limit[1]} PEs fits in the {machine.memory_bytes} bytes of a PE",
        span,
        notes=[f"`{tensor}` takes {size} bytes on a PE in the placement that needs the least:\n{rows}"],
        helps=[f"use a larger rectangle, or let `{tensor}` stream"],
    )
