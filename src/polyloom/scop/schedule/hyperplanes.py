"""Linear functions of the iterators along which dependences do not go backwards.

Source: Feautrier 1992; Bondhugula et al. 2008 (idea). Candidates are tried by their simplicity, each is
proved against the dependences; isl's scheduler proposes skewed ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations, islice

import islpy as isl

from polyloom.polyhedra.bounds import greatest_value, least_value
from polyloom.polyhedra.effort import TooHardError, at_most
from polyloom.polyhedra.functions import function_of, isl_integer
from polyloom.polyhedra.lattice import column_echelon
from polyloom.polyhedra.simplify import with_explicit_divs
from polyloom.scop.dependence.dependences import maps_of
from polyloom.scop.model import ScopStatement
from polyloom.scop.schedule.constant_sizes import largest_size, with_size
from polyloom.scop.schedule.plan import Hyperplane, Row, row_of

_DIM = isl.dim_type
MAXIMUM_FOUND = 48
MAXIMUM_TRIED = 4000
MAXIMUM_SIMPLE = 4
MAXIMUM_CONSTRAINTS = 16
_OPERATIONS = 100_000
"""What isl's scheduler may spend; three times what it takes for any program of the tests."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Edge:
    """``pairs``: ``{ [x, y] }`` for ``relation`` ``{ source[x] -> sink[y] }``, x before y.

    ``anti``: x reads what y writes. ``relaxed``: x and y are updates that may change places, but not
    run at the same time.
    """

    source: str
    sink: str
    array: str
    anti: bool
    relaxed: bool
    relation: isl.Map
    pairs: isl.Set

    def least(self, from_: Row, to: Row) -> int | None:
        """Return the smallest ``to(y) - from(x)``; None where it has no bound."""
        if (from_, to) not in self._least:
            value = least_value(self.pairs, self._distance(from_, to))
            self._least[from_, to] = int(value.to_python()) if value.is_int() else None
        return self._least[from_, to]

    @cached_property
    def _least(self) -> dict[tuple[Row, Row], int | None]:
        """What was found: a search for hyperplanes asks for the same rows many times."""
        return {}

    def all_zero(self, from_: Row, to: Row) -> bool:
        """Whether ``to(y) = from(x)`` for all pairs."""
        distance = self._distance(from_, to)
        return bool(least_value(self.pairs, distance).is_zero()) and bool(
            greatest_value(self.pairs, distance).is_zero()
        )

    def within(self, from_: Row, to: Row) -> Edge | None:
        """Return the part with ``to(y) = from(x)``; None where there is none."""
        equal = self._distance(from_, to).zero_basic_set()
        pairs = self.pairs.intersect(isl.Set.from_basic_set(equal))
        if pairs.is_empty():
            return None
        relation = rows_map(self.relation.domain().get_space(), from_).apply_range(
            rows_map(self.relation.range().get_space(), to).reverse()
        )
        return Edge(
            source=self.source,
            sink=self.sink,
            array=self.array,
            anti=self.anti,
            relaxed=self.relaxed,
            relation=self.relation.intersect(relation),
            pairs=pairs,
        )

    def between(self, instances: Mapping[str, isl.Set]) -> Edge | None:
        """Return the part between some instances of each statement; None where there is none."""
        relation = self.relation.intersect_domain(instances[self.source])
        relation = relation.intersect_range(instances[self.sink])
        if relation.is_empty():
            return None
        return edge(self.source, self.sink, self.array, self.anti, self.relaxed, relation)

    def _distance(self, from_: Row, to: Row) -> isl.Aff:
        space = isl.LocalSpace.from_space(self.pairs.get_space())
        result = isl.Aff.zero_on_domain(space)
        for k, coefficient in enumerate((*(-c for c in from_), *to)):
            result = result.set_coefficient_val(_DIM.in_, k, isl_integer(coefficient))
        return result


def edge(source: str, sink: str, array: str, anti: bool, relaxed: bool, relation: isl.Map) -> Edge:
    """Make an edge of a relation that is not empty.

    Its divisions are explicit: isl's ``coalesce`` crashes on some relations with many unknown ones.
    """
    return Edge(
        source=source,
        sink=sink,
        array=array,
        anti=anti,
        relaxed=relaxed,
        relation=relation,
        pairs=with_explicit_divs(relation.wrap().flatten()),
    )


def rows_map(space: isl.Space, row: Row) -> isl.Map:
    """Return ``{ S[x] -> [row . x] }``; a number behind the coefficients is added."""
    aff = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(space))
    size = space.dim(_DIM.set)
    aff = aff.set_constant_val(isl_integer(sum(row[size:])))
    for k, coefficient in enumerate(row[:size]):
        aff = aff.set_coefficient_val(_DIM.in_, k, isl_integer(coefficient))
    return isl.Map.from_aff(aff)


def instances_from(
    statement: ScopStatement, row: Row, begin: Mapping[str, int], offset: int = 0, size: int | None = None
) -> isl.Set:
    """Return the instances with ``0 <= row . x - begin``, and ``< size`` if there is one.

    ``begin``: the coefficients of new parameters; ``offset`` is added.
    """
    number = " + ".join([str(offset), *(f"{factor} * {name}" for name, factor in begin.items())])
    end = "" if size is None else f" < {size}"
    points = isl.Set(f"[{', '.join(begin)}] -> {{ [t] : 0 <= t - ({number}){end} }}")
    values = rows_map(statement.domain.get_space(), row)
    return statement.domain.intersect(values.intersect_range(points).domain()).coalesce()


def hyperplanes(
    statements: Sequence[ScopStatement], edges: Sequence[Edge], *, wavefronts: bool = True
) -> Iterator[Hyperplane]:
    """Yield hyperplanes along which no edge goes backwards and some go forwards, the best guess first.

    Without ``wavefronts`` each is a loop of the source, in its direction or in the other one.
    """
    edges = [e for e in edges if not e.relaxed]
    found = list(_assignments(statements, edges, backwards=_goes_backwards))
    if not wavefronts:
        found = [plane for plane in found if _complexity(plane) == 1]
    progress = [(plane, _carried(plane, edges)) for plane in found]
    useful = [(plane, count) for plane, count in progress if any(count)]
    ranked = sorted(useful, key=lambda entry: (_complexity(entry[0]), -entry[1][0], -entry[1][1]))
    yield from (plane for plane, _ in ranked[:MAXIMUM_SIMPLE])
    if wavefronts:
        yield from _skewed(statements, edges)
    yield from (plane for plane, _ in ranked[MAXIMUM_SIMPLE:])


def _complexity(plane: Hyperplane) -> int:
    """Return how many iterators the largest row combines: loops of the source come before skewed ones."""
    return max(sum(map(abs, row)) for row in plane.values())


def parallel_planes(
    statements: Sequence[ScopStatement], edges: Sequence[Edge], around: Sequence[Hyperplane]
) -> tuple[Hyperplane, ...]:
    """Return hyperplanes that no edge leaves, linearly independent of each other and those ``around``."""
    chosen: list[Hyperplane] = []
    for plane in _assignments(statements, edges, backwards=_leaves, simple=True):
        if all(
            are_independent([*(row_of(c, s) for c in (*around, *chosen)), plane[s.name]]) for s in statements
        ):
            chosen.append(plane)
    return tuple(chosen)


def forward_planes(statements: Sequence[ScopStatement], edges: Sequence[Edge]) -> Iterator[Hyperplane]:
    """Yield an iterator of each statement such that no edge goes backwards, not those of updates either."""
    yield from _assignments(statements, edges, backwards=_goes_backwards, simple=True)


def _goes_backwards(edge: Edge, from_: Row, to: Row) -> bool:
    least = edge.least(from_, to)
    return least is None or least < 0


def _leaves(edge: Edge, from_: Row, to: Row) -> bool:
    return not edge.all_zero(from_, to)


def _carried(plane: Hyperplane, edges: Sequence[Edge]) -> tuple[int, int]:
    """Return how many edges go forwards with all their pairs, and with some."""
    wholly = partly = 0
    for edge in edges:
        from_, to = plane[edge.source], plane[edge.sink]
        least = edge.least(from_, to)
        wholly += least is not None and least > 0
        partly += not edge.all_zero(from_, to)
    return wholly, partly


def _assignments(
    statements: Sequence[ScopStatement],
    edges: Sequence[Edge],
    backwards: Callable[[Edge, Row, Row], bool],
    *,
    simple: bool = False,
) -> Iterator[Hyperplane]:
    """Yield a row for each statement such that no edge is ``backwards``: depth first, cut off early."""
    choices: dict[str, list[Row]] = {}
    for statement in statements:
        own = [e for e in edges if e.source == e.sink == statement.name]
        rows = _unit_rows(statement) if simple else _rows(statement, len(statements))
        choices[statement.name] = [r for r in rows if not any(backwards(e, r, r) for e in own)]
    tried = [0]

    def extended(chosen: dict[str, Row], rest: Sequence[ScopStatement]) -> Iterator[Hyperplane]:
        if not rest:
            yield dict(chosen)
            return
        name = rest[0].name
        between = [
            e
            for e in edges
            if (e.source == name and e.sink in chosen) or (e.sink == name and e.source in chosen)
        ]
        for row in choices[name]:
            tried[0] += 1
            if tried[0] > MAXIMUM_TRIED:
                return
            here = {**chosen, name: row}
            if not any(backwards(e, here[e.source], here[e.sink]) for e in between):
                yield from extended(here, rest[1:])

    yield from islice(extended({}, _connected(statements, edges)), MAXIMUM_FOUND)


def _connected(statements: Sequence[ScopStatement], edges: Sequence[Edge]) -> list[ScopStatement]:
    """Return the statements so that each but the first has an edge with an earlier one, if it can be."""
    rest = list(statements)
    ordered = [rest.pop(0)]
    neighbours = {(e.source, e.sink) for e in edges} | {(e.sink, e.source) for e in edges}
    while rest:
        joined = (s for s in rest if any((s.name, o.name) in neighbours for o in ordered))
        following = next(joined, rest[0])
        rest.remove(following)
        ordered.append(following)
    return ordered


def _unit_rows(statement: ScopStatement) -> list[Row]:
    size = statement.domain.dim(_DIM.set)
    return [tuple(int(i == k) for i in range(size)) for k in range(size)]


def _rows(statement: ScopStatement, statements: int) -> list[Row]:
    """Return candidate rows: iterators, iterators downwards, differences and sums of two."""
    units = _unit_rows(statement)
    rows = units + [tuple(-c for c in row) for row in units]
    if statements <= 8:
        pairs = list(combinations(units, 2))
        rows += [tuple(b - a for a, b in zip(x, y, strict=True)) for x, y in pairs]
        rows += [tuple(a - b for a, b in zip(x, y, strict=True)) for x, y in pairs]
        rows += [tuple(a + b for a, b in zip(x, y, strict=True)) for x, y in pairs]
    return rows


def _skewed(statements: Sequence[ScopStatement], edges: Sequence[Edge]) -> list[Hyperplane]:
    """Return the wavefronts of the outermost permutable band that isl's scheduler finds."""
    if not any(e.source == e.sink for e in edges) or len(statements) > 4 or _are_long(edges):
        return []
    try:
        with at_most(_OPERATIONS, "a skewed schedule"):
            band = _band(statements, edges)
    except TooHardError:
        return []
    planes: list[Hyperplane] = []
    if len(band) > 1:
        total = {
            s.name: tuple(sum(c) for c in zip(*(member[s.name] for member in band), strict=True))
            for s in statements
        }
        planes.append(total)
    return [p for p in planes if not any(_goes_backwards(e, p[e.source], p[e.sink]) for e in edges)]


def _are_long(edges: Sequence[Edge]) -> bool:
    """Whether isl's scheduler would compute with long numbers, which its operations do not count.

    It eliminates a variable for each constraint of a basic set; from 17 on that took half a minute.
    """
    sizes = (b.n_constraint() for e in edges for b in e.relation.get_basic_maps())
    return any(size > MAXIMUM_CONSTRAINTS for size in sizes)


def _band(statements: Sequence[ScopStatement], edges: Sequence[Edge]) -> list[Hyperplane]:
    """Return the members of the outermost band of isl's schedule, without constants.

    Edges are taken without their quotients, of which there may be more instances, never fewer: the scheduler
    would eliminate them, too, with numbers so long that its few operations take minutes.
    """
    size = largest_size([e.relation for e in edges])
    domains = (with_size(isl.Map.from_domain(s.domain), size).domain() for s in statements)
    domain = reduce(isl.UnionSet.union, map(isl.UnionSet.from_set, domains))
    relations = (with_size(e.relation.remove_divs(), size) for e in edges)
    validity = reduce(isl.UnionMap.union, map(isl.UnionMap.from_map, relations))
    constraints = isl.ScheduleConstraints.on_domain(domain).set_validity(validity).set_proximity(validity)
    try:
        node = constraints.compute_schedule().get_root()
    except isl.Error:  # isl finds no schedule for a few programs that have one
        return []
    while str(node.get_type()).rpartition(".")[2] != "band":
        if node.n_children() != 1:
            return []
        node = node.get_child(0)
    if not node.band_get_permutable():
        return []
    members = maps_of(isl.UnionMap.from_multi_union_pw_aff(node.band_get_partial_schedule()))
    rows = {m.get_tuple_name(_DIM.in_) or "": _linear_rows(m) for m in members}
    if any(rows.get(s.name) is None for s in statements):
        return []
    count = min(len(r) for r in rows.values() if r is not None)
    return [{name: r[k] for name, r in rows.items() if r is not None} for k in range(count)]


def _linear_rows(relation: isl.Map) -> list[Row] | None:
    functions = function_of(relation)
    if not functions.isa_multi_aff():
        return None
    function = functions.as_multi_aff()
    rows = []
    for k in range(function.dim(_DIM.out)):
        aff = function.get_at(k)
        values = [aff.get_coefficient_val(_DIM.in_, j) for j in range(function.dim(_DIM.in_))]
        if not all(v.is_int() for v in values):
            return None
        rows.append(tuple(int(v.to_python()) for v in values))
    return rows


def are_independent(rows: Sequence[Row]) -> bool:
    """Whether rows of a handful of small integers are linearly independent."""
    matrix = tuple(zip(*rows, strict=True)) if rows else ()
    return len(column_echelon(tuple(tuple(r) for r in matrix), len(rows)).pivots) == len(rows)
