"""Automatic mapping: what a map leaves open is chosen, by the cycles that compiled code is estimated to take.

What may move is decided first, then layouts are ranked by a rough estimate (``search``), and the best are
compiled and compared (``candidates``). Source: dtg_codegen, Sec. 4.1.2 (a direction); the choice of a
placement is its future work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import islpy as isl

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, Unsupported, error
from polyloom.ir.host import Index
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement
from polyloom.polyhedra.functions import function_of
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.mapping.grid import Grid
from polyloom.wafer.mapping.mapping import Mapping as LairMap
from polyloom.wafer.mapping.reader import Given, mapping_of, read_given, read_mapping
from polyloom.wafer.placement.boxes import Movement
from polyloom.wafer.placement.candidates import Candidate, Pricers, SearchOptions, by_placement, compare
from polyloom.wafer.placement.coordinates import Place
from polyloom.wafer.placement.cost.estimate import LayoutEstimate, LayoutEstimator
from polyloom.wafer.placement.fixed import place_of
from polyloom.wafer.placement.layouts import Directions
from polyloom.wafer.placement.operands import streamed_inputs
from polyloom.wafer.placement.plan import Problem
from polyloom.wafer.placement.ports import relation_text
from polyloom.wafer.placement.rectangles import limits_of
from polyloom.wafer.placement.search import Ranked, rank_layouts, without_transposes


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

    def __repr__(self) -> str:
        return f"<Choice of {self.mapping!r} among {len(self.candidates)}>"

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
    pricers: Pricers,
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
    if given.is_complete(program):
        return Choice(mapping_of(given, program), given.text, (), ())
    effort = (options or SearchOptions()).shared_by(len(program.statements))
    failure: PolyloomError | None = None
    for limit, (movement, notes) in product(limits_of(given, machine), _movements(given, program)):
        problem = Problem(program, given, movement, _fixed_texts(given))
        try:
            found = compare(problem, _fitting(problem, limit, machine), pricers, effort)
        except Unsupported as refusal:
            failure = failure or refusal
            continue
        good = by_placement(found)
        if good:
            mapping = read_mapping(Source("<automatic map>", good[0].text), program)
            return Choice(mapping, good[0].text, good, notes)
        failure = failure or next((c.refusal for c in found if c.refusal is not None), None)
    assert failure is not None
    raise failure


def _fixed_texts(given: Given) -> dict[str, str]:
    return {name: relation_text(relation) for name, relation in given.placement.items()}


def _movements(given: Given, program: Program) -> Iterator[tuple[Movement, tuple[str, ...]]]:
    """Yield which tensors move: as the map says, else by the rules of ``operands``; at last none."""
    all_placed = given.places_all(program)
    sparse = given.sparse or ()
    olds, news = ([pair[k] for pair in given.state] for k in (0, 1))
    moving = tuple(given.inputs) if given.inputs is not None else given.streamed or ()
    leaving = tuple(given.outputs) if given.outputs is not None else given.leaving or ()
    named = [
        *(n for n in sparse if n in program.inputs),
        *(n for n in given.trigger.values() if n is not None),
        *(given.streamed or ()),
    ]
    if given.inputs is None and not given.streamed and (not all_placed or "iport_map" in given.entries):
        moving = streamed_inputs(program, olds, named)
    if given.outputs is None and not given.leaving and (not all_placed or "oport_map" in given.entries):
        leaving = tuple(n for n in program.outputs if n not in news)
    stays = [n for n in program.inputs if n not in moving]
    notes = [_listed(moving, "streams", "stream") if moving else "nothing streams"]
    notes += [_listed(stays, "is resident", "are resident")] if stays else []
    yield Movement(moving, leaving, sparse), ("; ".join(notes),)
    asked = (given.inputs, given.outputs, given.leaving) != (None, None, None) or named
    if (moving or leaving) and not asked:
        yield (
            Movement((), (), ()),
            ("all tensors are resident: with streams, nothing was accepted",),
        )


def _listed(names: Sequence[str], one: str, several: str) -> str:
    """Return what some tensors do as a sentence: the verb for one of them, or for several."""
    return f"{', '.join(f'`{name}`' for name in names)} {one if len(names) == 1 else several}"


def _fitting(problem: Problem, limit: tuple[int, int], machine: Machine) -> list[Ranked]:
    """Return the layouts that are estimated to fit in memory. Raises Unsupported ``placement-memory``."""
    ranked = _ranked(problem, limit, machine)
    fitting = [r for r in ranked if r.estimate.bytes <= machine.memory_bytes]
    if not fitting:
        raise Unsupported(_no_room(problem, ranked, limit, machine))
    return fitting


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

    model = LayoutEstimator(program, problem.movement, machine, problem.chooses_triggers)

    def estimator(places: tuple[Place, ...]) -> LayoutEstimate:
        return model.estimate(with_known(places))

    found = rank_layouts(directions, limit, estimator, machine.memory_bytes)
    if not given.placement and not given.inputs and not given.outputs:
        found = without_transposes(found)
    return [replace(r, places=with_known(r.places)) for r in found]


def _expressions(given: Given, statement: Statement) -> tuple[Index, Index]:
    """Return a direction's two expressions. Raises PolyloomError ``map-direction`` if one is not affine."""
    relation = given.directions[statement.name]
    if not relation.is_single_valued():
        raise PolyloomError(_not_affine(given, statement))
    function = function_of(relation).gist(relation.domain()).coalesce()
    if not function.isa_multi_aff():
        raise PolyloomError(_not_affine(given, statement))
    pair = function.as_multi_aff()
    first, second = (_affine(pair.get_at(k), len(statement.domain)) for k in (0, 1))
    if first is None or second is None:
        raise PolyloomError(_not_affine(given, statement))
    return first, second


def _affine(function: isl.Aff, rank: int) -> Index | None:
    if function.dim(isl.dim_type.div) or not function.get_denominator_val().is_one():
        return None
    coefficients = (function.get_coefficient_val(isl.dim_type.in_, k).to_python() for k in range(rank))
    return Index.of(
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
    best = min(ranked, key=lambda r: r.estimate.bytes)
    tensor, size = max(best.estimate.memory, key=lambda pair: pair[1])
    rows = "\n".join(f"{name:<24}{count:>10} bytes" for name, count in best.estimate.memory)
    span = problem.given.entries["size"].span if "size" in problem.given.entries else None
    return error(
        "placement-memory",
        f"no placement on {limit[0]} x {limit[1]} PEs fits in the {machine.memory_bytes} bytes of a PE",
        span,
        notes=[f"`{tensor}` takes {size} bytes on a PE in the placement that needs the least:\n{rows}"],
        helps=[f"use a larger rectangle, or let `{tensor}` stream"],
    )
