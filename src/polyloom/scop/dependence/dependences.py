"""Exact dependences between statements, by isl.

Flow is value-based (a write that is surely overwritten before the read is no source); where elements are
reused, the order of a read and a later write (anti) and of two writes (output) is memory-based.

Two updates of one element with one operator may change places; their dependences through the accumulator are
``relaxed``. All other dependences of an update are to every update of the element, not to the last alone, so
that they stay right when updates change places.

Source: c-frontend.md, Sec. 4; Doerfert et al. 2015 (privatization dependences). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce

import islpy as isl

from polyloom.polyhedra.effort import at_most
from polyloom.scop.dependence.reductions import Operator, Update
from polyloom.scop.model import Scop, ScopAccess, ScopStatement

_DIM = isl.dim_type


class Kind(Enum):
    """What happens to the element: written then read, read then written, written twice."""

    FLOW = "flow"
    ANTI = "anti"
    OUTPUT = "output"


@dataclass(frozen=True, eq=False, kw_only=True)
class Dependence:
    """``relation``: ``{ source[x] -> sink[y] }``, x before y, both on one element of ``array``.

    ``relaxed``: the operator of the two updates that may change places, else None.
    """

    source: str
    sink: str
    kind: Kind
    array: str
    relation: isl.Map
    relaxed: Operator | None = None


@dataclass(frozen=True, eq=False)
class Dependences:
    """All dependences, and per array the instances that read an element before it is written.

    ``exposed``: ``{ array: { A[i] } }``, the elements whose values come from outside.
    """

    edges: tuple[Dependence, ...]
    exposed: Mapping[str, isl.Set]


def dependences(
    scop: Scop, updates: Mapping[str, Update], only: Collection[str] | None = None
) -> Dependences:
    """Return the dependences of a static control part.

    ``updates``: statement names to what they combine. ``only``: through these arrays.
    """
    edges: list[Dependence] = []
    exposed: dict[str, isl.Set] = {}
    for array in scop.arrays:
        use = _Use(scop, array.name, updates)
        if not use.writes or (only is not None and array.name not in only):
            continue
        with at_most(_limit(use.count), f"the dependences through `{array.name}`"):
            edges += use.edges()
            elements = use.exposed()
        if elements is not None:
            exposed[array.name] = elements
    return Dependences(tuple(edges), exposed)


def _limit(accesses: int) -> int:
    """Return what isl may spend on an array: most take a tenth. Each access meets each other one."""
    return 20_000 * (20 + accesses) + 60 * accesses**2


class _Use:
    """How the statements use one array."""

    def __init__(self, scop: Scop, array: str, updates: Mapping[str, Update]) -> None:
        self.scop = scop
        self.array = array
        self.updates = updates
        self.writes = [s for s in scop.statements if s.target.array == array]
        self.count = len(self.writes) + sum(r.array == array for s in scop.statements for r in s.reads)

    def edges(self) -> Iterator[Dependence]:
        """Yield every dependence through the array."""
        always = self._writes(surely=True)
        perhaps = self._writes(surely=False)
        every = always.union(perhaps)
        for accumulating in (False, True):
            reads = self._reads(accumulating)
            if reads.is_empty():
                continue
            flow = self._flow(reads, always, perhaps).get_may_dependence()
            yield from self._split(flow, Kind.FLOW, accumulating)
            anti = self._flow(every, None, reads).get_may_dependence()
            yield from self._split(anti, Kind.ANTI, accumulating)
        output = self._flow(every, always, perhaps).get_may_dependence()
        yield from self._split(output, Kind.OUTPUT, accumulating=True)

    def exposed(self) -> isl.Set | None:
        """Return the elements that are read before they are surely written; None where there are none."""
        reads = self._reads(False).union(self._reads(True))
        if reads.is_empty():
            return None
        certain = self._union(
            (s, s.target) for s in self.writes if s.condition is None and not s.target.computed
        )
        flow = self._flow(reads, certain, self._empty())
        elements = flow.get_may_no_source().range().coalesce()
        return None if elements.is_empty() else isl.Set.from_union_set(elements)

    def _flow(self, sink: isl.UnionMap, must: isl.UnionMap | None, may: isl.UnionMap) -> isl.UnionFlow:
        info = isl.UnionAccessInfo.from_sink(sink).set_may_source(may)
        if must is not None:
            info = info.set_must_source(must)
        return info.set_schedule_map(self.scop.schedule).compute_flow()

    def _split(self, found: isl.UnionMap, kind: Kind, accumulating: bool) -> Iterator[Dependence]:
        for relation in maps_of(found):
            source = relation.get_tuple_name(_DIM.in_) or ""
            sink = relation.get_tuple_name(_DIM.out) or ""
            relaxed = self._operator(source, sink) if accumulating else None
            yield Dependence(
                source=source,
                sink=sink,
                kind=kind,
                array=self.array,
                relation=relation.coalesce(),
                relaxed=relaxed,
            )

    def _operator(self, source: str, sink: str) -> Operator | None:
        """Return the operator of both statements, if they are updates of the array by one operator."""
        a, b = self.updates.get(source), self.updates.get(sink)
        if a is None or b is None or a.op is not b.op or isinstance(a.op, str):
            return None
        return a.op

    def _writes(self, *, surely: bool) -> isl.UnionMap:
        found = [(s, s.target) for s in self.writes if self._surely(s) is surely]
        return self._union(found)

    def _surely(self, statement: ScopStatement) -> bool:
        """Whether a write certainly replaces the element, and is no update."""
        plain = statement.condition is None and not statement.target.computed
        return plain and statement.name not in self.updates

    def _reads(self, accumulating: bool) -> isl.UnionMap:
        return self._union((s, r) for s in self.scop.statements for r in self._reads_of(s, accumulating))

    def _reads_of(self, statement: ScopStatement, accumulating: bool) -> Iterator[ScopAccess]:
        update = self.updates.get(statement.name)
        own = update.accumulators if update else frozenset[int]()
        for k, access in enumerate(statement.reads):
            if access.array == self.array and (k in own) is accumulating:
                yield access

    def _union(self, found: Iterable[tuple[ScopStatement, ScopAccess]]) -> isl.UnionMap:
        result = self._empty()
        for statement, access in found:
            relation = access.relation.intersect_domain(statement.domain)
            result = result.union(isl.UnionMap.from_map(relation.intersect_params(self.scop.context)))
        return result

    def _empty(self) -> isl.UnionMap:
        return isl.UnionMap.empty(self.scop.context.get_space())


def maps_of(relations: isl.UnionMap) -> list[isl.Map]:
    """Return the maps of a union, in the order of their tuple names."""
    found: list[isl.Map] = []
    relations.foreach_map(found.append)
    return sorted(found, key=lambda m: (m.get_tuple_name(_DIM.in_) or "", m.get_tuple_name(_DIM.out) or ""))


def merged(edges: Iterable[Dependence]) -> tuple[Dependence, ...]:
    """Return one dependence for all between the same statements: what a schedule must respect."""
    groups: dict[tuple[str, str], list[Dependence]] = {}
    for edge in edges:
        groups.setdefault((edge.source, edge.sink), []).append(edge)
    return tuple(
        replace(group[0], relation=reduce(isl.Map.union, (e.relation for e in group)).coalesce())
        for group in groups.values()
    )
