"""What SIMD instructions and scalar loops cost on a machine, as the compiler estimates it.

The rules are those of the simulator (``native/simd.c``): width by instruction, stride rule, rows of
contiguous elements. Which banks meet depends on base addresses, so no estimate here knows it.
Source: wafer-target.md, 1.1 and 1.2. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from polyloom.ir.expressions import Binary, BinaryOp, Constant, Expression, Read, children
from polyloom.wafer.machine.instruction_selection import ACCUMULATOR
from polyloom.wafer.machine.instructions import Instruction
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.machine.scalar_c import scalar_operations
from polyloom.wafer.machine.temporaries import as_word

ADDRESS_OPERATIONS = 2
"""Operations that the address of an element in a loop takes, about: it has one or two varying subscripts."""

_FULL = 1 << 20


@dataclass(frozen=True)
class Shape:
    """A rectangular nest: its sizes, and for each operand in memory its stride in each dimension.

    ``strides``: in elements, by the position of the read as in ``instruction_selection``; operands that are
    not named are dense.
    """

    sizes: tuple[int, ...]
    strides: Mapping[int, tuple[int, ...]]

    @cached_property
    def count(self) -> int:
        """The number of elements."""
        return prod(self.sizes)

    @cached_property
    def _rows(self) -> dict[int, tuple[int, int]]:
        return {}

    def row(self, position: int) -> tuple[int, int]:
        """Return how many elements of an operand follow each other at one stride, and that stride."""
        if position not in self._rows:
            self._rows[position] = _row(self.sizes, self.of(position))
        return self._rows[position]

    def of(self, position: int) -> tuple[int, ...]:
        """Return an operand's strides, in its elements."""
        word = as_word(position)
        if word is None:
            return self.strides[position] if position in self.strides else dense_strides(self.sizes)
        return tuple(word.words * stride for stride in self.of(word.position))

    def rows_without(self, scalars: frozenset[int]) -> Rows:
        """Return what the cost of instructions depends on, where the reads ``scalars`` are scalars."""
        operands = ((p, *self.row(p)) for p in sorted(self.strides) if p not in scalars)
        rows = tuple((p, length, _like(stride)) for p, length, stride in operands)
        return Rows(self.count, self.is_one_to_one, rows)

    def backward_dimensions(self) -> frozenset[int]:
        """Return the dimensions in which some operand runs backwards and none forwards.

        Only where each point writes an element of its own: else their order is that of the sums.
        """
        if not self.is_one_to_one:
            return frozenset()
        columns = zip(*self.strides.values(), strict=True)
        return frozenset(k for k, column in enumerate(columns) if max(column) <= 0 and min(column) < 0)

    def reversed_in(self, dimensions: frozenset[int]) -> Shape:
        """Return the nest with some dimensions run through from their end."""
        strides = {
            position: tuple(-s if k in dimensions else s for k, s in enumerate(steps))
            for position, steps in self.strides.items()
        }
        return Shape(self.sizes, strides)

    @cached_property
    def is_one_to_one(self) -> bool:
        """Whether no two points write one element, as far as the strides tell."""
        pairs = zip(self.sizes, self.of(ACCUMULATOR), strict=True)
        reach = 0
        for stride, size in sorted((abs(stride), size) for size, stride in pairs if size > 1):
            if stride <= reach:
                return False
            reach += stride * (size - 1)
        return True


@dataclass(frozen=True)
class Rows:
    """What of a nest the cost of instructions depends on: nests with equal rows cost the same.

    ``operands``: position, elements that follow each other at one stride, and a stride that costs the same.
    """

    count: int
    is_one_to_one: bool
    operands: tuple[tuple[int, int, int], ...]

    def row(self, position: int) -> tuple[int, int]:
        """Return how many elements of an operand follow each other at one stride, and that stride."""
        for named, length, stride in self.operands:
            if named == position:
                return length, stride
        word = as_word(position)
        if word is None:
            return self.count, 1
        length, stride = self.row(word.position)
        return length, word.words * stride


def _like(stride: int) -> int:
    """Return a stride of the same ``stride_limit``, whatever the words: one of eight, 0 or 1."""
    return stride if stride in (0, 1) else 8 + stride % 8


def dense_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of an array that holds the elements of a nest in its order: [4, 3] -> (3, 1)."""
    return tuple(prod(sizes[k + 1 :]) for k in range(len(sizes)))


def stride_limit(stride: int, words: int) -> int:
    """Return the elements a cycle that a stride allows; ``words``: 16-bit words in an element.

    Source: SDK 2.10 documentation, appendix (wafer-target.md, 1.1).
    """
    if stride in (0, 1):
        return _FULL
    return {0: 1, 1: 2, 4: 2, 7: 2}.get(stride * words % 8, _FULL)


def instruction_cycles(
    machine: Machine, instruction: Instruction, shape: Shape, target: int, sources: Sequence[int | None]
) -> int:
    """Return the cycles of one instruction, launch included; ``sources``: positions, None for a scalar."""
    types = (instruction.destination, *instruction.sources)
    places = zip((target, *sources), types, strict=True)
    accesses = [(position, element.size // 2) for position, element in places if position is not None]
    return machine.simd_launch + engine_cycles(shape, machine.simd_width(instruction.name), accesses)


def engine_cycles(nest: Shape | Rows, rate: int, accesses: Iterable[tuple[int, int]]) -> int:
    """Return the cycles of an instruction once it is launched.

    ``rate``: most elements in a cycle; ``accesses``: positions in memory, and 16-bit words of their elements.
    """
    count = row = nest.count
    for position, words in accesses:
        length, stride = nest.row(position)
        row = min(row, length)
        rate = min(rate, stride_limit(stride, words))
    row = max(row, 1)
    return -(-count // row) * -(-row // rate)


def _row(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """Return how many elements follow each other at one stride, and that stride."""
    length, step = 1, 0
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size == 1:
            continue
        if length == 1:
            length, step = size, stride
        elif stride == step * length:
            length *= size
        else:
            break
    return length, step


def evaluation_cycles(machine: Machine, expression: Expression) -> int:
    """Return what computing one value costs, the loads of its reads included."""
    return own_cycles(machine, expression) + sum(evaluation_cycles(machine, c) for c in children(expression))


def own_cycles(machine: Machine, expression: Expression) -> int:
    """Return what an expression's own operation costs, its operands being at hand; a read is a load."""
    if isinstance(expression, Read):
        return machine.scalar_load + ADDRESS_OPERATIONS * machine.scalar_operation
    if isinstance(expression, Binary) and expression.op is BinaryOp.MULTIPLY:
        return machine.scalar_multiplication
    if isinstance(expression, Constant):
        return 0
    everything, _ = scalar_operations(expression)
    inside = sum(scalar_operations(child)[0] for child in children(expression))
    return (everything - inside) * machine.scalar_operation


def store_cycles(machine: Machine) -> int:
    """Return what storing an element in a loop costs."""
    return machine.scalar_store + ADDRESS_OPERATIONS * machine.scalar_operation


def move_cycles(machine: Machine) -> int:
    """Return what moving an operand to another base address costs, its computation included."""
    return machine.set_base_address + 2 * machine.scalar_operation


MOST_UNROLLED = 24
"""Instructions that an unrolled loop may have: the code of a PE lies in its memory."""


def unrolled_copies(trips: int, instructions: int) -> int:
    """Return how many iterations of a loop around instructions follow each other in one of the emitted loop.

    All of them where they are few; then there is no loop.
    """
    most = MOST_UNROLLED // max(instructions, 1)
    if trips <= most:
        return trips
    fitting = (copies for copies in range(1, most + 1) if copies + trips % copies <= most)
    return min(fitting, key=lambda copies: (trips // copies, copies + trips % copies), default=1)
