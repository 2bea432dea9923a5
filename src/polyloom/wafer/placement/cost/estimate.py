"""A first estimate of a layout's cycles by box arithmetic: it ranks thousands of layouts, and compiles none.

What a PE does is a box of instances: its extents are the tile sizes. Boxes give the work, the elements that
arrive, what is sent and the memory. The compiled code of the best few is priced by ``model``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from polyloom.ir.host import Buffer, View
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement
from polyloom.wafer.dataflow.sparsity import zeros_may_be_dropped
from polyloom.wafer.dataflow.tasks import streams_behind
from polyloom.wafer.machine.instruction_cost import store_cycles
from polyloom.wafer.machine.instruction_selection import match_instruction
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.placement.boxes import LocalBox, Movement, elements, local_box, used_elements
from polyloom.wafer.placement.classes import accesses
from polyloom.wafer.placement.coordinates import Place
from polyloom.wafer.placement.cost.boxes import BoxCosts
from polyloom.wafer.placement.cost.results import Reader, move_cycles, result_cycles


@dataclass(frozen=True)
class LayoutEstimate:
    """``memory``: the local arrays of a PE in bytes, by tensor; ``pes``: size of the rectangle.

    ``waits``: the statements whose streams are best stored first; ``otherwise``: the cycles with the other
    choice, where there is one and it fits in memory.
    """

    cycles: float
    memory: tuple[tuple[str, int], ...]
    pes: int
    waits: tuple[str, ...] = ()
    otherwise: float | None = None

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
class _Part:
    """A statement at a place: whatever the others are. ``result``: as of ``result_cycles``.

    ``sizes``: elements of the boxes of its accesses on a PE, in their order; ``arriving``: of each read, the
    elements that a line of PEs needs, on the axis with fewer; ``together``: cycles without a stream that
    drives, None where one always does; ``waits``: whether it may be stored instead.
    """

    place: Place
    box: LocalBox
    sizes: tuple[int, ...]
    arriving: tuple[int, ...]
    together: float | None
    driven: _Driven | None
    waits: bool
    result: float


@dataclass(frozen=True, eq=False)
class LayoutEstimator:
    """Estimates what layouts of a program cost. ``may_wait``: streams may be stored."""

    program: Program
    movement: Movement
    machine: Machine
    may_wait: bool = True
    _parts: dict[tuple[int, Place], _Part] = field(default_factory=dict)
    _moved: dict[tuple[int, _Part, _Part], float] = field(default_factory=dict)

    @cached_property
    def _costs(self) -> BoxCosts:
        return BoxCosts(self.machine)

    @cached_property
    def _drivers(self) -> tuple[tuple[int, ...], ...]:
        """The positions of the reads that may drive each statement."""
        return tuple(tuple(_drivers(self.program, s, self.movement)) for s in self.program.statements)

    @cached_property
    def _moves(self) -> tuple[tuple[int, int, View], ...]:
        """The reads of results: numbers of the statements that write and that read."""
        numbers = {s.write.buffer: n for n, s in enumerate(self.program.statements)}
        pairs = [(n, a) for n, s in enumerate(self.program.statements) for a in s.reads]
        return tuple((numbers[a.buffer], n, a) for n, a in pairs if a.buffer in numbers)

    @cached_property
    def _stored(self) -> tuple[tuple[Buffer, tuple[tuple[int, int, bool], ...]], ...]:
        """Of each tensor its accesses: a statement's number, an access, and whether its stream drives it."""
        return tuple((t, tuple(self._accesses_to(t.name))) for t in self.program.tensors)

    def _accesses_to(self, name: str) -> Iterator[tuple[int, int, bool]]:
        for number, statement in enumerate(self.program.statements):
            moving = [a.buffer for a in statement.reads if a.buffer in self.movement.streamed]
            for k, access in enumerate(accesses(statement)):
                if access.buffer == name:
                    yield number, k, moving == [name]

    def estimate(self, places: Sequence[Place]) -> LayoutEstimate:
        """Return what a layout might cost, with streams that drive statements or stored ones.

        What does not fit in memory is not the better one.
        """
        parts = [self._part(number, place) for number, place in enumerate(places)]
        statements = self.program.statements
        waits = tuple(s.name for s, part in zip(statements, parts, strict=True) if part.waits)
        results = sum(part.result for part in parts)
        for move, (writer, reader, _) in enumerate(self._moves):
            results += self._move_cycles(move, parts[writer], parts[reader])
        estimates = [self._estimate(places, parts, chosen, results) for chosen in dict.fromkeys(((), waits))]
        memory = self.machine.memory_bytes
        best, *other = sorted(estimates, key=lambda each: (each.bytes > memory, each.cycles))
        return replace(best, otherwise=next((each.cycles for each in other if each.bytes <= memory), None))

    def _move_cycles(self, move: int, there: _Part, here: _Part) -> float:
        if (move, there, here) not in self._moved:
            writer, reader, access = self._moves[move]
            to = Reader(self.program.statements[reader], access, here.place, here.box)
            statement = self.program.statements[writer]
            found = move_cycles(statement, there.place, there.box, to, self.machine)
            self._moved[move, there, here] = found
        return self._moved[move, there, here]

    def _part(self, number: int, place: Place) -> _Part:
        if (number, place) not in self._parts:
            self._parts[number, place] = self._new_part(number, place)
        return self._parts[number, place]

    def _new_part(self, number: int, place: Place) -> _Part:
        statement = self.program.statements[number]
        box = local_box(statement, place.x, place.y)
        lines = [local_box(statement, coordinate) for coordinate in (place.x, place.y)]
        arriving = tuple(min(used_elements(a, line) for line in lines) for a in statement.reads)
        driven = self._driven(number, box, arriving)
        waits = driven is not None and self._may_wait(statement, box, driven)
        return _Part(
            place=place,
            box=box,
            sizes=tuple(elements(access, box) for access in accesses(statement)),
            arriving=arriving,
            together=self._costs.together(statement, box) if driven is None or waits else None,
            driven=driven,
            waits=waits,
            result=result_cycles(statement, place, box, self.movement, self.machine),
        )

    def _may_wait(self, statement: Statement, box: LocalBox, driven: _Driven) -> bool:
        """Whether the stream may be stored instead: it does a task's work element by element.

        A sparse one only if that is less work with half of its elements zero, too.
        """
        if not self.may_wait or driven.whole:
            return False
        if driven.tensor not in self.movement.sparse:
            return True
        stored = driven.elements * store_cycles(self.machine)
        return self._costs.together(statement, box) < (driven.cycles - stored) / 2

    def _estimate(
        self, places: Sequence[Place], parts: Sequence[_Part], waits: tuple[str, ...], results: float
    ) -> LayoutEstimate:
        pairs = zip(self.program.statements, parts, strict=True)
        driven = [None if s.name in waits else part.driven for s, part in pairs]
        width, height = extent_of(places)
        cycles = results
        for part, by in zip(parts, driven, strict=True):
            work = part.together if by is None else by.cycles
            assert work is not None
            cycles += work
        cycles += sum(self._stream_cycles(name, parts, driven) for name in self.movement.streamed)
        memory = tuple(self._memory(parts, waits))
        return LayoutEstimate(cycles + width + height, memory, width * height, waits)

    def _memory(self, parts: Sequence[_Part], waits: tuple[str, ...]) -> Iterator[tuple[str, int]]:
        """Yield the bytes of each tensor on a PE: the largest box of its accesses. Drivers are not stored."""
        waiting = [s.name in waits for s in self.program.statements]
        for tensor, uses in self._stored:
            sizes = (parts[n].sizes[k] for n, k, drives in uses if not drives or waiting[n])
            most = max(sizes, default=0)
            if most:
                yield tensor.name, most * tensor.type.size

    def _driven(self, number: int, box: LocalBox, arriving: Sequence[int]) -> _Driven | None:
        """Return the stream that drives a statement for the fewest cycles; None where none can."""
        statement = self.program.statements[number]
        found = [self._driven_by(statement, k, box, arriving[k]) for k in self._drivers[number]]
        return min(found, key=lambda d: d.cycles, default=None)

    def _driven_by(self, statement: Statement, position: int, box: LocalBox, arriving: int) -> _Driven:
        access = statement.reads[position]
        work, used = box.size, used_elements(access, box)
        readers = sum(a.buffer == access.buffer for s in self.program.statements for a in s.reads)
        plain = access.buffer not in self.movement.sparse and readers == 1
        takes_all = work == used == arriving and _in_order(access, box)
        if plain and takes_all and self._matches[statement.name]:
            return _Driven(access.buffer, 0, used, whole=True)
        each = self._costs.one_arrival(statement, position, box)
        return _Driven(access.buffer, min(used, work) * each, used, whole=False)

    @cached_property
    def _matches(self) -> dict[str, bool]:
        """Whether an instruction does a statement's work at a point."""
        none = frozenset[int]()
        return {s.name: match_instruction(s, none) is not None for s in self.program.statements}

    def _stream_cycles(self, name: str, parts: Sequence[_Part], driven: Sequence[_Driven | None]) -> float:
        """Return the cycles of taking a stream: a task for each element of a sparse one, a loop's iteration
        for each of a dense one, or one instruction that stores all of it or works on it.
        """
        machine, arriving, stored = self.machine, 0, 0
        for statement, part, by in zip(self.program.statements, parts, driven, strict=True):
            for k, access in enumerate(statement.reads):
                if access.buffer == name:
                    arriving = max(arriving, part.arriving[k])
                    if by is None or by.tensor != name:
                        stored = max(stored, part.sizes[1 + k])
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


def _in_order(access: View, box: LocalBox) -> bool:
    """Whether the instances of a PE are a linear function of the elements, each of which has one instance.

    Those of ``x[2*h + a]`` are not where it has several values of ``h``.
    """
    several = [[c for k, c in index.used if box.counts[k] > 1] for index in access.affine]
    return all(len(used) < 2 and set(used) <= {1, -1} for used in several)


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
