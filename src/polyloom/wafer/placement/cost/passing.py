"""How long elements that PEs pass on along a line wait for each other.

A PE takes what comes from its neighbour into memory before it gives it to the next one, so the far end waits
for all that stands before it: what each PE takes at a time adds up along the line.

    for c { take 16 p elements from the west, pass them on; give mine both ways; take, pass on the east's }

Where elements go both ways, a PE is done with a round of this loop when both directions are, so rounds do not
overlap, and each of them goes along the whole line twice. In one direction they follow each other.
Nothing is enumerated: of each role on the line three PEs are looked at. Not in the papers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from statistics import fmean

import islpy as isl

from polyloom.polyhedra.bounds import integer_bounds
from polyloom.wafer.dataflow.transfers import MEMORY, Move
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.pe_program.tree import (
    Code,
    Compute,
    For,
    If,
    Invoke,
    Node,
    OperandRef,
    Received,
    Scope,
    Send,
    SetValue,
    StoreElement,
)
from polyloom.wafer.placement.cost.code import Pricer
from polyloom.wafer.placement.cost.integer_values import value_of
from polyloom.wafer.placement.cost.latency import stage_cycles
from polyloom.wafer.placement.cost.role import pricer_at
from polyloom.wafer.program.wafer_program import RoleProgram


def passing_cycles(
    machine: Machine, move: Move, roles: Iterable[RoleProgram], *, pairs: bool = False
) -> float:
    """Return how long the last PE of a line waits for what those of some roles take before they pass it on.

    Of a move in phases, for those that a PE passes on in. ``pairs``: as of ``Pricer``.
    """
    return sum(_on_role(machine, move, role, pes, pairs) for role, pes in _line(move, roles))


def _line(move: Move, roles: Iterable[RoleProgram]) -> Iterator[tuple[RoleProgram, tuple[int, int, int]]]:
    """Yield the roles on the line of the first source: first and last PE along it, and where it is."""
    along, where = _axis(move), _first_line(move)
    for role in roles:
        if any(task.name == task_name(move) for task in role.code.local_tasks):
            pes = role.role.pes.fix_val(isl.dim_type.set, 1 - along, isl.Val(where))
            if not pes.is_empty():
                low, high = integer_bounds(pes)[along]
                yield role, (low, high, where)


def line_of(move: Move) -> isl.Set:
    """Return the PEs on the line of a move's first source, which stands for all of its lines."""
    where = _first_line(move)
    return isl.Set(f"{{ PE[x, {where}] }}" if _axis(move) == 0 else f"{{ PE[{where}, y] }}")


def _axis(move: Move) -> int:
    """Return along which coordinate elements go."""
    return 0 if move.high is Side.EAST else 1


def _first_line(move: Move) -> int:
    """Return the other coordinate of the first source."""
    first = move.sources.domain().lexmin().sample_point()
    return int(first.get_coordinate_val(isl.dim_type.set, 1 - _axis(move)).to_python())


def task_name(move: Move) -> str:
    """Return the name of the task that does a move's work."""
    return f"move_{move.name}"


def _on_role(
    machine: Machine, move: Move, role: RoleProgram, line: tuple[int, int, int], pairs: bool
) -> float:
    """Add up the PEs of a role: by Simpson's rule, exact where counts grow evenly along the line."""
    low, high, where = line
    task = next(task for task in role.code.local_tasks if task.name == task_name(move))
    two_way = len({kind.origin for kind in move.kinds if kind.origin != MEMORY}) > 1 and move.phases == 1

    def at(position: int) -> float:
        point = (position, where) if move.high is Side.EAST else (where, position)
        pricer = replace(pricer_at(machine, role, point), pairs=pairs)
        pricer.code(role.code.main)
        return _Walk(pricer, two_way).code(task.body).cycles

    if low == high:
        return at(low)
    return (high - low + 1) * (at(low) + 4 * at((low + high) // 2) + at(high)) / 6


@dataclass(frozen=True)
class _Waited:
    """``cycles``: from an element's coming to its going on; ``origins``: queues, "" for memory."""

    cycles: float = 0.0
    origins: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class _Walk:
    """Goes through the code of a move on a PE. ``taken``: what came into memory, by its operand."""

    pricer: Pricer
    two_way: bool
    taken: dict[str, float] = field(default_factory=dict)

    def code(self, code: Code) -> _Waited:
        """Return what some code waits for; one after the other where a line waits for both directions."""
        found = [self._node(node) for node in code]
        cycles = [waited.cycles for waited in found]
        origins = frozenset[str]().union(*(waited.origins for waited in found))
        return _Waited(sum(cycles) if self.two_way else max(cycles, default=0.0), origins)

    def _node(self, node: Node) -> _Waited:
        match node:
            case If(condition=condition, body=body, otherwise=otherwise):
                holds = value_of(condition, self.pricer.environment)
                return self.code(body if holds else otherwise)
            case For():
                return self._loop(node)
            case Scope(body=body):
                return self._scope(body)
            case SetValue(value=value) | StoreElement(value=value) | Send(value=value):
                return _Waited(origins=_origins(value))
            case Invoke():
                return self._invoke(node)
            case _:
                self.pricer.code((node,))
                return _Waited()

    def _scope(self, body: Code) -> _Waited:
        """An element that is taken and sent by scalar code does not wait for others."""
        inner = self.code(body)
        passes = inner.origins and any(isinstance(node, Send) for node in body)
        return _Waited(inner.cycles + stage_cycles(self.pricer.machine), inner.origins) if passes else inner

    def _loop(self, loop: For) -> _Waited:
        """A loop whose iterations have to do with both directions goes in rounds; others pass one by one."""
        bodies = defaultdict[frozenset[str], list[float]](list)
        trips, values = self.pricer.iterations(loop, depth=0)
        for value in values:
            self.pricer.environment[loop.iterator] = value
            waited = self.code(loop.body)
            bodies[waited.origins].append(waited.cycles)
        means = {origins: fmean(cycles) for origins, cycles in bodies.items()}
        every = frozenset[str]().union(*means)
        if not self.two_way:
            return _Waited(max(means.values(), default=0.0), every)
        return _Waited(sum(m * (trips if len(o) > 1 else 1) for o, m in means.items()), every)

    def _invoke(self, node: Invoke) -> _Waited:
        """What came into memory before it is sent has waited for all that came with it."""
        cycles = self.pricer.code((node,))
        sources = [s for s in node.sources if isinstance(s, OperandRef)]
        queues = {q for s in sources if (q := self.pricer.queue(s))}
        target = self.pricer.queue(node.destination)
        if queues and target:
            return _Waited(stage_cycles(self.pricer.machine), frozenset(queues))
        if queues:
            self.taken[node.destination.name] = cycles
            return _Waited(origins=frozenset(queues))
        if target:
            waited = sum(self.taken.pop(s.name, 0.0) for s in sources)
            away = stage_cycles(self.pricer.machine) if waited else 0
            return _Waited(waited + away, frozenset() if waited else frozenset({""}))
        return _Waited()


def _origins(value: Compute) -> frozenset[str]:
    return frozenset(v.queue if isinstance(v, Received) else "" for _, v in value.values)
