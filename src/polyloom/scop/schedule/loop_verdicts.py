"""What each loop of the source is: parallel, a reduction, or serial, with a dependence to show it.

Source: c-frontend.md, Sec. 5, diagnostics 6 and 7. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import takewhile

import islpy as isl

from polyloom.diagnostics import Span
from polyloom.polyhedra.bounds import greatest_coordinate, least_coordinate
from polyloom.polyhedra.functions import isl_integer
from polyloom.scop.dependence.dependences import Dependence, Dependences, Kind
from polyloom.scop.dependence.nesting import Entries, schedules
from polyloom.scop.dependence.reductions import Update
from polyloom.scop.model import Scop, ScopStatement
from polyloom.scop.schedule.expansion import Expansion
from polyloom.scop.schedule.plan import Part, Plan, parts

_DIM = isl.dim_type


class Verdict(Enum):
    """What the iterations of a loop allow."""

    PARALLEL = "parallel"
    REDUCTION = "reduction"
    SERIAL = "serial"


@dataclass(frozen=True, kw_only=True)
class Witness:
    """Two instances of which the first must come before the second, and why.

    ``distance``: by how many iterations of each loop around both all such instances lie apart, ``+`` and
    ``-`` where that varies but not its sign, else ``*``. ``lines``: of the two statements, where known.
    """

    array: str
    kind: Kind
    source: str
    sink: str
    parameters: tuple[tuple[str, int], ...]
    distance: tuple[str, ...] = ()
    lines: tuple[int, int] | None = None

    def __str__(self) -> str:
        what = {
            Kind.FLOW: f"{self.sink} reads the `{self.array}` that {self.source} writes",
            Kind.ANTI: f"{self.sink} writes the `{self.array}` that {self.source} reads",
            Kind.OUTPUT: f"{self.sink} writes the `{self.array}` that {self.source} writes",
        }[self.kind]
        where = ", ".join(f"{name} = {value}" for name, value in self.parameters)
        return f"{what} ({where})" if where else what


@dataclass(frozen=True, eq=False, kw_only=True)
class LoopVerdict:
    """One loop of the source; ``operator``: of a reduction; ``witness``: of a serial loop.

    ``notes``: under which condition the verdict holds; ``helps``: what would make the loop parallel.
    ``parts``: what becomes of the loop, of its statements one by one.
    """

    iterator: str
    span: Span | None
    depth: int
    statements: tuple[str, ...]
    verdict: Verdict
    operator: str | None = None
    witness: Witness | None = None
    notes: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def runs_parallel(self) -> bool:
        """Whether all statements run the loop's iterations in parallel."""
        return all(part in (Part.PARALLEL, Part.TOGETHER) for part in self.parts)


@dataclass(frozen=True, eq=False)
class SourceLoop:
    """A loop of the source: which dimension it is of the statements inside."""

    span: Span | None
    depth: int
    statements: tuple[ScopStatement, ...]


def loops_of(scop: Scop) -> tuple[SourceLoop, ...]:
    """Return the loops of the source, in its order."""
    entries = schedules(scop)
    groups: dict[object, SourceLoop] = {}
    for statement in scop.statements:
        for depth, span in enumerate(statement.loops):
            key = (depth, span or _prefix(entries.get(statement.name, ()), depth))
            known = groups.get(key)
            inside = (*known.statements, statement) if known else (statement,)
            groups[key] = SourceLoop(span, depth, inside)
    return tuple(sorted(groups.values(), key=lambda loop: (_start(loop.span), loop.depth)))


def loops_inside(scop: Scop, span: Span | None) -> frozenset[str]:
    """Return the statements inside the loop that stands at ``span``."""
    return frozenset(s.name for loop in loops_of(scop) if loop.span == span for s in loop.statements)


def _start(span: Span | None) -> int:
    return span.start if span else 0


def _prefix(entries: Entries, depth: int) -> Entries:
    """Return the schedule up to loop number ``depth``."""
    places = [k for k, entry in enumerate(entries) if entry is None]
    return entries[: places[depth] + 1] if depth < len(places) else entries


def verdicts(
    scop: Scop,
    found: Dependences,
    expansions: Sequence[Expansion],
    updates: Mapping[str, Update],
    plans: Sequence[Plan],
    ordered: Mapping[str, Update],
) -> tuple[LoopVerdict, ...]:
    """Return a verdict for every loop; ``scop`` and ``found`` after expansion.

    ``ordered``: updates by functions of the source, whose terms combine in their order.
    """
    copies = {name for expansion in expansions for name, _ in expansion.copies}
    own = replace(scop, statements=tuple(s for s in scop.statements if s.name not in copies))
    roles = parts(plans)
    known = {**updates, **ordered}
    leaving: dict[str, list[tuple[int, Dependence]]] = {}
    for k, edge in enumerate(found.edges):
        leaving.setdefault(edge.source, []).append((k, edge))
    return tuple(_verdict(loop, _of(loop, leaving), expansions, known, roles) for loop in loops_of(own))


def _of(loop: SourceLoop, leaving: Mapping[str, Sequence[tuple[int, Dependence]]]) -> list[Dependence]:
    """Return the dependences that leave the statements of a loop, in their order."""
    found = (entry for s in loop.statements for entry in leaving.get(s.name, ()))
    return [edge for _, edge in sorted(found, key=lambda entry: entry[0])]


def _verdict(
    loop: SourceLoop,
    edges: Sequence[Dependence],
    expansions: Sequence[Expansion],
    updates: Mapping[str, Update],
    roles: Mapping[str, Sequence[Part]],
) -> LoopVerdict:
    signs = [(e, r, combining(e, updates)) for e, r in carried(loop, edges)]
    ordering = [(e, r) for e, r, sign in signs if sign is None]
    binding = [(e, r) for e, r in ordering if not _by_copy(loop, e)]
    operators = sorted({sign for _, _, sign in signs if sign is not None})
    result = LoopVerdict(
        iterator=loop.statements[0].iterators[loop.depth],
        span=loop.span,
        depth=loop.depth,
        statements=tuple(s.name for s in loop.statements),
        verdict=Verdict.REDUCTION if operators else Verdict.PARALLEL,
        operator=", ".join(operators) or None,
        notes=tuple(dict.fromkeys(_expanded(loop, expansions))),
        parts=tuple(roles[s.name][loop.depth] for s in loop.statements),
    )
    if not binding:
        copied = sorted({e.array for e, _ in ordering})
        notes = (*result.notes, *(f"`{array}` is read from a copy made before" for array in copied))
        return replace(result, notes=notes)
    edge, relation = min(binding, key=lambda pair: _order(pair[0]))
    notes, helps = (*result.notes, *_how(result)), tuple(_helps(edge, updates, result))
    witness = _with_source_names(witness_of(edge, relation), expansions)
    witness = replace(witness, distance=_distance(loop, edge, relation), lines=_lines(loop, edge))
    return replace(result, verdict=Verdict.SERIAL, operator=None, witness=witness, notes=notes, helps=helps)


def _with_source_names(witness: Witness, expansions: Sequence[Expansion]) -> Witness:
    """Let a witness speak of the array as the source does."""
    names = {e.name: e.array.name for e in expansions}
    return replace(witness, array=names.get(witness.array, witness.array))


def _how(loop: LoopVerdict) -> Iterator[str]:
    """Yield how a serial loop runs."""
    if Part.TOGETHER in loop.parts:
        yield "its statements are a scan or a selection together: one md_hom with an operator for it"
    elif loop.runs_parallel:
        yield "each statement of the loop becomes an md_hom of its own, in which the iterations are parallel"
    elif Part.WAVEFRONT in loop.parts:
        yield "a wavefront goes through the iterations on the host; what lies on it is parallel"
    elif Part.BLOCKS in loop.parts:
        yield "blocks of iterations run in order on the host; what may wait for the end of one is a reduction"
    elif Part.HOST in loop.parts:
        yield "a loop on the host runs the iterations in order; what is inside is parallel"
        yield "no update in it was found that can wait for the end of a block of iterations, as LU's do"
    elif Part.INSIDE in loop.parts:
        yield "the iterations run in order inside one node"


def combining(edge: Dependence, updates: Mapping[str, Update]) -> str | None:
    """Return the operator that a dependence between updates combines by; None for any other dependence."""
    update = updates.get(edge.source)
    if update is None:
        return None
    alone = edge.source == edge.sink and isinstance(update.op, str)
    return update.combiner.name if alone or edge.relaxed is not None else None


def _order(edge: Dependence) -> int:
    return (Kind.FLOW, Kind.OUTPUT, Kind.ANTI).index(edge.kind)


def carried(loop: SourceLoop, edges: Sequence[Dependence]) -> Iterator[tuple[Dependence, isl.Map]]:
    """Yield the dependences between different iterations of a loop, in one iteration of those around."""
    names = {s.name for s in loop.statements}
    for edge in edges:
        if not {edge.source, edge.sink} <= names:
            continue
        relation = edge.relation
        for outer in range(loop.depth):
            relation = relation.intersect(_equal(relation, outer))
        relation = relation.subtract(_equal(relation, loop.depth))
        if not relation.is_empty():
            yield edge, relation


def _equal(relation: isl.Map, k: int) -> isl.Map:
    return isl.Map.universe(relation.get_space()).equate(_DIM.in_, k, _DIM.out, k)


def _by_copy(loop: SourceLoop, edge: Dependence) -> bool:
    """Whether reading a copy of the array removes the dependence: a statement with itself, read first."""
    if edge.kind is not Kind.ANTI or edge.source != edge.sink:
        return False
    statement = next(s for s in loop.statements if s.name == edge.source)
    return statement.target.relation.dim(_DIM.out) <= len(statement.iterators)


def _expanded(loop: SourceLoop, expansions: Sequence[Expansion]) -> Iterator[str]:
    used = {a.array for s in loop.statements for a in (s.target, *s.reads)}
    for expansion in expansions:
        along = any(axis.dimension == loop.depth for axis in expansion.axes)
        if along and expansion.name in used:
            yield f"`{expansion.array.name}` gets an element of its own for each iteration"


def _helps(edge: Dependence, updates: Mapping[str, Update], loop: LoopVerdict) -> Iterator[str]:
    if loop.runs_parallel:
        return
    if edge.source == edge.sink and edge.kind is not Kind.ANTI and edge.source not in updates:
        yield (
            "a reduction is recognised in the forms `x += e`, `x = max(x, e)`, `if (e > x) x = e`, where "
            f"`e` does not read `{edge.array}`"
        )
    if edge.kind is not Kind.FLOW:
        yield f"write to another array than `{edge.array}`, whose old values are still needed"


def _lines(loop: SourceLoop, edge: Dependence) -> tuple[int, int] | None:
    spans = {s.name: s.span for s in loop.statements}
    first, second = spans[edge.source], spans[edge.sink]
    return None if first is None or second is None else (first.line, second.line)


def _distance(loop: SourceLoop, edge: Dependence, relation: isl.Map) -> tuple[str, ...]:
    """Return how far the instances of a dependence lie apart along each loop that both stand in."""
    around = {s.name: s.loops for s in loop.statements}
    pairs = zip(around[edge.source], around[edge.sink], strict=False)
    common = len(list(takewhile(lambda spans: spans[0] == spans[1], pairs)))
    first, second = relation.dim(_DIM.in_), relation.dim(_DIM.out)
    both = relation.project_out(_DIM.in_, common, first - common)
    apart = both.project_out(_DIM.out, common, second - common).deltas()
    return tuple(_along(apart, k) for k in range(common))


def _along(apart: isl.Set, k: int) -> str:
    least, most = least_coordinate(apart, k), greatest_coordinate(apart, k)
    if least.is_int() and most.is_int() and least.eq(most):
        return str(least)
    if least.is_pos():
        return "+"
    return "-" if most.is_neg() else "*"


def witness_of(edge: Dependence, relation: isl.Map) -> Witness:
    """Return a pair of instances of a dependence, with small parameters."""
    pairs = relation.wrap()
    for bound in (4, 8, 16, 64):
        small = _with_small_parameters(pairs, bound)
        if not small.is_empty():
            pairs = small
            break
    point = _first_point(pairs)
    values = [int(point.get_coordinate_val(_DIM.set, k).to_python()) for k in range(pairs.dim(_DIM.set))]
    first = relation.dim(_DIM.in_)
    names = [pairs.get_dim_name(_DIM.param, k) or "" for k in range(pairs.dim(_DIM.param))]
    parameters = [
        (name, int(point.get_coordinate_val(_DIM.param, k).to_python())) for k, name in enumerate(names)
    ]
    source, sink = _instance(edge.source, values[:first]), _instance(edge.sink, values[first:])
    used = tuple((n, v) for k, (n, v) in enumerate(parameters) if relation.involves_dims(_DIM.param, k, 1))
    return Witness(array=edge.array, kind=edge.kind, source=source, sink=sink, parameters=used)


def _first_point(pairs: isl.Set) -> isl.Point:
    """Return the first pair, for the parameters of some pair."""
    sample = pairs.sample_point()
    for k in range(pairs.dim(_DIM.param)):
        pairs = pairs.fix_val(_DIM.param, k, sample.get_coordinate_val(_DIM.param, k))
    for k in range(pairs.dim(_DIM.set)):
        least = least_coordinate(pairs, k)
        lower = pairs.fix_val(_DIM.set, k, least) if least.is_int() else pairs
        pairs = pairs if lower.is_empty() else lower
    return pairs.sample_point()


def _with_small_parameters(pairs: isl.Set, bound: int) -> isl.Set:
    for k in range(pairs.dim(_DIM.param)):
        pairs = pairs.upper_bound_val(_DIM.param, k, isl_integer(bound))
    return pairs


def _instance(statement: str, values: Sequence[int]) -> str:
    return f"{statement}[{', '.join(map(str, values))}]"
