"""A first estimate of a layout's cycles by box arithmetic: it ranks thousands of layouts, and compiles none.

What a PE does is a box of instances: its extents are the tile sizes. Boxes give the work, the elements that
arrive, what is sent and the memory. The compiled code of the best few is priced by ``model``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from polyloom.ir.program import Program
from polyloom.ir.statements import Statement
from polyloom.wafer.dataflow.sparsity import zeros_may_be_dropped
from polyloom.wafer.dataflow.tasks import streams_behind
from polyloom.wafer.machine.instruction_cost import store_cycles
from polyloom.wafer.machine.instruction_selection import match_instruction
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.placement.boxes import Movement, elements, local_box, used_elements
from polyloom.wafer.placement.classes import accesses
from polyloom.wafer.placement.coordinates import Place
from polyloom.wafer.placement.cost.boxes import BoxCosts
from polyloom.wafer.placement.cost.results import result_cycles


@dataclass(frozen=True)
class LayoutEstimate:
    """``memory``: the local arrays of a PE in bytes, by tensor; ``pes``: size of the rectangle.

    ``waits``: the statements whose streams are best stored first.
    """

    cycles: float
    memory: tuple[tuple[str, int], ...]
    pes: int
    waits: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of all local arrays."""
        return sum(size for _, size in self.memory)


@dataclass(frozen=True)
class _Driven:
    """A statement's work where a stream of so many elements drives it; ``whole``: as one instruction."""

    tensor: str
    cycles: float
    elements: int
    whole: bool


@dataclass(frozen=True, eq=False)
class LayoutEstimator:
    """Estimates what layouts of a program cost. ``may_wait``: streams may be stored."""

    program: Program
    movement: Movement
    machine: Machine
    may_wait: bool = True

    @cached_property
    def _costs(self) -> BoxCosts:
        return BoxCosts(self.machine)

    @cached_property
    def _drivers(self) -> tuple[tuple[int, ...], ...]:
        """The positions of the reads that may drive each statement."""
        return tuple(tuple(_drivers(self.program, s, self.movement)) for s in self.program.statements)

    def estimate(self, places: Sequence[Place]) -> LayoutEstimate:
        """Return what a layout might cost, with streams that drive statements or stored ones.

        What does not fit in memory is not the better one.
        """
        driven = [self._driven(number, place) for number, place in enumerate(places)]
        triples = zip(self.program.statements, places, driven, strict=True)
        waits = tuple(s.name for s, place, by in triples if by is not None and self._may_wait(s, place, by))
        results = sum(
            result_cycles(self.program, statement, place, places, self.movement, self.machine)
            for statement, place in zip(self.program.statements, places, strict=True)
        )
        estimates = [self._estimate(places, driven, chosen, results) for chosen in dict.fromkeys(((), waits))]
        return min(estimates, key=lambda each: (each.bytes > self.machine.memory_bytes, each.cycles))

    def _may_wait(self, statement: Statement, place: Place, driven: _Driven) -> bool:
        """Whether the stream may be stored instead: it does a task's work element by element.

        A sparse one only if that is less work with half of its elements zero, too.
        """
        if not self.may_wait or driven.whole:
            return False
        if driven.tensor not in self.movement.sparse:
            return True
        stored = driven.elements * store_cycles(self.machine)
        together = self._costs.together(statement, local_box(statement, place.x, place.y))
        return together < (driven.cycles - stored) / 2

    def _estimate(
        self,
        places: Sequence[Place],
        drivers: Sequence[_Driven | None],
        waits: tuple[str, ...],
        results: float,
    ) -> LayoutEstimate:
        statements = self.program.statements
        driven = [None if s.name in waits else by for s, by in zip(statements, drivers, strict=True)]
        width, height = extent_of(places)
        cycles = results
        for statement, place, by in zip(statements, places, driven, strict=True):
            box = local_box(statement, place.x, place.y)
            cycles += self._costs.together(statement, box) if by is None else by.cycles
        cycles += sum(self._stream_cycles(name, places, driven) for name in self.movement.streamed)
        memory = tuple(_memory(self.program, places, self.movement, waits))
        return LayoutEstimate(cycles + width + height, memory, width * height, waits)

    def _driven(self, number: int, place: Place) -> _Driven | None:
        """Return the stream that drives a statement for the fewest cycles; None where none can."""
        statement = self.program.statements[number]
        found = [self._driven_by(statement, k, place) for k in self._drivers[number]]
        return min(found, key=lambda d: d.cycles, default=None)

    def _driven_by(self, statement: Statement, position: int, place: Place) -> _Driven:
        access, box = statement.reads[position], local_box(statement, place.x, place.y)
        work, used = box.size, used_elements(access, box)
        readers = sum(a.buffer == access.buffer for s in self.program.statements for a in s.reads)
        plain = access.buffer not in self.movement.sparse and readers == 1
        if plain and work == used and match_instruction(statement, frozenset()) is not None:
            return _Driven(access.buffer, 0, used, whole=True)
        each = self._costs.one_arrival(statement, position, box)
        return _Driven(access.buffer, min(used, work) * each, used, whole=False)

    def _stream_cycles(self, name: str, places: Sequence[Place], driven: Sequence[_Driven | None]) -> float:
        """Return the cycles of taking a stream: a task for each element of a sparse one, a loop's iteration
        for each of a dense one, or one instruction that stores all of it or works on it.
        """
        machine, arriving, stored = self.machine, 0, 0
        for statement, place, by in zip(self.program.statements, places, driven, strict=True):
            for access in (a for a in statement.reads if a.buffer == name):
                lines = (used_elements(access, local_box(statement, c)) for c in (place.x, place.y))
                arriving = max(arriving, min(lines))
                if by is None or by.tensor != name:
                    stored = max(stored, elements(access, local_box(statement, place.x, place.y)))
        steps = [by for by in driven if by is not None and by.tensor == name]
        if name in self.movement.sparse:
            each = machine.data_task_dispatch
        elif all(by.whole for by in steps) and len(steps) + bool(stored) < 2 and stored in (0, arriving):
            return machine.simd_launch + arriving
        elif not steps:
            return _SEGMENTS * machine.simd_launch + arriving
        else:
            each = machine.loop_iteration + machine.receive
        return arriving * each + stored * store_cycles(machine)


_SEGMENTS = 3
"""Instructions for a stream of which a PE keeps a part: what comes before, the part, what comes after."""


def extent_of(places: Sequence[Place]) -> tuple[int, int]:
    """Return the smallest rectangle that holds the instances: columns, rows."""
    return 1 + max(p.x.last for p in places), 1 + max(p.y.last for p in places)


def _drivers(program: Program, statement: Statement, movement: Movement) -> Iterator[int]:
    """Yield the positions of the streams that may drive a statement, by the rules of ``tasks``."""
    names = [access.buffer for access in statement.reads]
    behind = streams_behind(program, movement.streamed, statement)
    for k, name in enumerate(names):
        alone = name in movement.streamed and name not in behind and names.count(name) == 1
        if alone and (name not in movement.sparse or zeros_may_be_dropped(statement, k)):
            yield k


def _memory(
    program: Program, places: Sequence[Place], movement: Movement, waits: Sequence[str]
) -> Iterator[tuple[str, int]]:
    """Yield the bytes of each tensor on a PE: the largest box of its accesses. Drivers are not stored."""
    for tensor in program.tensors:
        sizes = [0]
        for statement, place in zip(program.statements, places, strict=True):
            moving = [a.buffer for a in statement.reads if a.buffer in movement.streamed]
            for access in accesses(statement):
                drives = moving == [tensor.name] and statement.name not in waits
                if access.buffer == tensor.name and not drives:
                    sizes.append(elements(access, local_box(statement, place.x, place.y)))
        if max(sizes):
            yield tensor.name, max(sizes) * tensor.type.size
