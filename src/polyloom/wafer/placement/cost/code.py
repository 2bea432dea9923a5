"""What a piece of emitted code costs on a PE: its basic blocks state their scalar work, the machine the rest.

Loops are looked at in a few iterations, spread evenly, whose mean stands for all: the cost of pricing does
not grow with sizes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from polyloom.wafer.machine.instructions import instruction
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.pe_program.tree import (
    Activate,
    ArrayDeclaration,
    Code,
    Compute,
    Configure,
    ConfigureFabric,
    Cost,
    CountDown,
    CountUp,
    Element,
    For,
    If,
    Invoke,
    Node,
    OperandRef,
    Received,
    Scope,
    Send,
    SendEnd,
    SetBase,
    SetInteger,
    SetValue,
    StoreElement,
    TurnSwitches,
)
from polyloom.wafer.placement.cost.integer_values import trips, value_of

HALF_WAVELET = 2
"""Bytes of the elements of which two may travel in a wavelet."""

_SAMPLES = (5, 3, 2)
"""Iterations that are looked at in an outermost loop, one inside it, and deeper ones."""


@dataclass(frozen=True)
class _Descriptor:
    """``row``: elements of a run of the innermost dimension; ``queue``: what it stands for, if not memory."""

    elements: int
    row: int
    strides: tuple[int, ...]
    queue: str = ""
    pairs: bool = False

    @property
    def fabric(self) -> bool:
        """Whether it stands for a queue."""
        return bool(self.queue)

    @property
    def stride(self) -> int:
        """Of the innermost dimension."""
        return self.strides[-1] if self.strides else 0


@dataclass
class Pricer:
    """Prices the code of one role on one of its PEs: ``environment`` has PE_X and PE_Y.

    ``offsets``: where the arrays begin, in bytes. A microthread is priced as finding its queue empty once.
    ``pairs``: as if all that passes the fabric went two by two where that saves cycles.
    """

    machine: Machine
    environment: dict[str, int]
    arrays: Mapping[str, ArrayDeclaration]
    offsets: Mapping[str, int]
    descriptors: dict[str, _Descriptor] = field(default_factory=dict)
    bases: dict[str, int] = field(default_factory=dict)
    pairs: bool = False

    def code(self, code: Code, depth: int = 0) -> float:
        """Return the cycles of some code at the present values of its variables."""
        return sum(self._node(node, depth) for node in code)

    def _node(self, node: Node, depth: int) -> float:
        machine = self.machine
        match node:
            case Cost():
                return self._stated(node)
            case If(condition=condition, body=body, otherwise=otherwise):
                holds = value_of(condition, self.environment)
                return self.code(body if holds else otherwise, depth)
            case For():
                return self._loop(node, depth)
            case Scope(body=body):
                return self.code(body, depth)
            case SetInteger(variable=variable, value=value):
                self.environment[variable] = value_of(value, self.environment)
                return 0
            case SetValue(value=value):
                return self._received(value)
            case StoreElement(value=value):
                return self._received(value)
            case Send(value=value, index=index):
                zero_test = 0 if index is None else machine.branch
                return self._received(value) + zero_test + machine.send
            case SendEnd() | TurnSwitches():
                return machine.send
            case Configure():
                return self._configure(node)
            case ConfigureFabric(operand=operand, elements=elements):
                count = value_of(elements, self.environment)
                self.descriptors[operand.name] = _Descriptor(
                    count, count, (1,), queue=node.queue, pairs=node.pairs or self.pairs
                )
                return machine.configure
            case SetBase(operand=operand, element=element):
                self.bases[operand.name] = self._address(element)
                return machine.set_base_address
            case Invoke():
                return self._invoke(node)
            case Activate():
                return machine.local_task_activate
            case _:  # behind counters: ``once``
                return 0

    def once(self, code: Code) -> float:
        """Return the cycles of what stands behind counters, each once."""
        total = 0.0
        for node in code:
            if isinstance(node, CountUp | CountDown):
                total += self.code(node.body) + self.once(node.body)
            elif isinstance(node, If | Scope):
                total += self.once(node.body)
        return total

    def _stated(self, cost: Cost) -> float:
        machine = self.machine
        return (
            cost.operations * machine.scalar_operation
            + cost.loads * machine.scalar_load
            + cost.stores * machine.scalar_store
            + cost.multiplications * machine.scalar_multiplication
            + cost.iterations * machine.loop_iteration
            + cost.branches * machine.branch
        )

    def _received(self, value: Compute) -> float:
        return self.machine.receive * sum(isinstance(v, Received) for _, v in value.values)

    def queue(self, operand: OperandRef) -> str:
        """Return the queue that an operand stands for; nothing for one in memory."""
        known = self.descriptors.get(operand.name)
        return "" if known is None else known.queue

    def iterations(self, loop: For, depth: int) -> tuple[int, list[int]]:
        """Return how many iterations a loop has, and the iterator's values in those that are looked at."""
        start = value_of(loop.start, self.environment)
        step = max(1, value_of(loop.step, self.environment))
        count = trips(loop.condition, loop.iterator, start, step, self.environment)
        most = _SAMPLES[min(depth, len(_SAMPLES) - 1)]
        return count, [start + n * step for n in evenly(count, most)]

    def _loop(self, loop: For, depth: int) -> float:
        count, values = self.iterations(loop, depth)
        total = 0.0
        for value in values:
            self.environment[loop.iterator] = value
            total += self.code(loop.body, depth + 1)
        return total / len(values) * count if values else 0.0

    def _configure(self, node: Configure) -> float:
        sizes = [max(0, value_of(size, self.environment)) for size in node.sizes]
        row = sizes[-1] if sizes else 1
        self.descriptors[node.operand.name] = _Descriptor(math.prod(sizes), row, node.strides)
        return self.machine.configure

    def _address(self, element: Element) -> int:
        """Return an element's address in bytes."""
        array = self.arrays.get(element.array)
        if array is None:
            return 0
        flat = 0
        for subscript, extent in zip(element.subscripts, array.extents, strict=True):
            flat = flat * extent + value_of(subscript, self.environment)
        return self.offsets.get(element.array, 0) + flat * array.type.size + 2 * (element.word or 0)

    def _invoke(self, node: Invoke) -> float:
        target = self.descriptors.get(node.destination.name, _Descriptor(1, 1, (1,)))
        sources = [s for s in node.sources if isinstance(s, OperandRef)]
        known = [self.descriptors.get(s.name, _Descriptor(1, 1, (1,))) for s in sources]
        launch = self.machine.simd_launch
        if target.fabric or any(d.fabric for d in known):
            asleep = self.machine.microthread_wake if node.then is not None else 0
            return launch + asleep + self._fabric_cycles(node, [target, *known])
        return launch + self._memory_cycles(node, target, sources, known)

    def _fabric_cycles(self, node: Invoke, operands: Sequence[_Descriptor]) -> float:
        """A wavelet a cycle; both elements of a pair take one where width and strides allow two."""
        count = max(d.elements for d in operands)
        if not any(d.pairs for d in operands) or self.machine.simd_width(node.instruction) < 2:
            return count
        entry = instruction(node.instruction)
        types = [
            entry.destination,
            *(t for t, s in zip(entry.sources, node.sources, strict=True) if isinstance(s, OperandRef)),
        ]
        if any(t.size != HALF_WAVELET for d, t in zip(operands, types, strict=True) if d.fabric):
            return count
        memory = [(d, t) for d, t in zip(operands, types, strict=True) if not d.fabric]
        if any(stride_limit(d.stride, t.size) < 2 for d, t in memory):
            return count
        row = min([count, *(d.row for d, _ in memory)])
        paired = math.ceil(count / 2) + (row % 2) * math.ceil(count / max(row, 1)) / 2
        return min(count, paired) if self.pairs else paired

    def _memory_cycles(
        self, node: Invoke, target: _Descriptor, sources: Sequence[OperandRef], known: Sequence[_Descriptor]
    ) -> float:
        """Width, strides and banks decide how many elements a cycle go (docs/simulator.md)."""
        entry = instruction(node.instruction)
        rate = min(
            self.machine.simd_width(node.instruction), stride_limit(target.stride, entry.destination.size)
        )
        types = [t for t, s in zip(entry.sources, node.sources, strict=True) if isinstance(s, OperandRef)]
        for descriptor, element in zip(known, types, strict=True):
            rate = min(rate, stride_limit(descriptor.stride, element.size))
        row = max(1, min([target.row, *(d.row for d in known)]))
        cycles = math.ceil(target.elements / row) * math.ceil(row / rate)
        moving = [self.bases.get(s.name, 0) // 2 % 4 for s, d in zip(sources, known, strict=True) if d.stride]
        return cycles * (2 if len(set(moving)) < len(moving) else 1)


def evenly(count: int, most: int) -> list[int]:
    """Return up to ``most`` numbers below ``count``, spread evenly."""
    if count <= most:
        return list(range(count))
    return [(2 * n + 1) * count // (2 * most) for n in range(most)]


def stride_limit(stride: int, size: int) -> int:
    """Return how many elements a cycle a stride allows. Source: SDK appendix, in 16-bit words."""
    if stride in (0, 1):
        return 1 << 20
    return {0: 1, 1: 2, 4: 2, 7: 2}.get(stride * (size // 2) % 8, 1 << 20)
