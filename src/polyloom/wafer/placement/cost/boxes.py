"""What a box of instances costs on a PE, by the compiler's own rules: loops around instructions.

A box has an extent for each iterator, and each operand a stride for it in its local array. Which reads are
scalars to the instructions decides which iterators are loops; ``instruction_sequences`` prices what is
inside. So a layout's work is guessed without any set. What the compiler does in full stands in ``decide``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, pairwise
from math import gcd, prod

from polyloom.ir.host import View
from polyloom.ir.statements import Statement
from polyloom.wafer.machine.descriptor_nests import MAX_DIMENSIONS
from polyloom.wafer.machine.instruction_cost import Shape, evaluation_cycles, move_cycles, store_cycles
from polyloom.wafer.machine.instruction_selection import ACCUMULATOR, work_at_point
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.placement.boxes import LocalBox, box_extents
from polyloom.wafer.placement.classes import accesses
from polyloom.wafer.simd.instruction_sequences import Plans, plans_of

Strides = Mapping[int, tuple[int, ...]]
"""Of operands in memory in each dimension of a nest, by their positions in ``instruction_selection``."""


@dataclass(frozen=True, eq=False)
class BoxCosts:
    """Prices boxes on a machine, and remembers them: many layouts give a PE the same box."""

    machine: Machine
    _known: dict[tuple[str, int | None, LocalBox], float] = field(default_factory=dict)
    _work: dict[str, _Work] = field(default_factory=dict)

    def together(self, statement: Statement, box: LocalBox) -> float:
        """Return the cycles of all instances of a box, one after the other."""
        return self._remembered(statement, None, box)

    def one_arrival(self, statement: Statement, position: int, box: LocalBox) -> float:
        """Return the cycles of those instances of a box that read one element of the read ``position``."""
        return self._remembered(statement, position, box)

    def _remembered(self, statement: Statement, position: int | None, box: LocalBox) -> float:
        key = (statement.name, position, box)
        if key not in self._known:
            self._known[key] = self._priced(statement, position, box)
        return self._known[key]

    def _priced(self, statement: Statement, position: int | None, box: LocalBox) -> float:
        operands = {k - 1: a for k, a in enumerate(accesses(statement)) if k - 1 != position}
        scalars = frozenset({*([] if position is None else [position]), *_of_rank_zero(statement)})

        def lying(nest: tuple[int, ...]) -> tuple[tuple[int, ...], Strides]:
            strides = {k: _strides(access, box, nest) for k, access in operands.items()}
            if position is None:
                return box.counts, strides
            return _slice(statement.reads[position], box, strides)

        sizes, strides = lying(())
        alone = position is None or prod(sizes) == 1
        address = 0 if alone else len(operands) * move_cycles(self.machine)
        if statement.name not in self._work:
            self._work[statement.name] = _work_of(statement, self.machine)
        work = self._work[statement.name]
        return address + _nest_cycles(work, sizes, strides, lambda nest: lying(nest)[1], scalars)


@dataclass(frozen=True, eq=False)
class _Work:
    """What a statement does at a point. ``alone``: cycles there; ``iteration``: in a loop."""

    plans: Plans
    alone: float
    iteration: float


def _work_of(statement: Statement, machine: Machine) -> _Work:
    work = work_at_point(statement)
    alone = evaluation_cycles(machine, work) + store_cycles(machine)
    return _Work(plans_of(work, machine, approximate=True), alone, machine.loop_iteration + alone)


def _strides(access: View, box: LocalBox, nest: Sequence[int] = ()) -> tuple[int, ...]:
    """Return the stride of each iterator in a local array that is just large enough.

    The array is transposed for a nest of iterators, of which the last one is the innermost.
    """
    array = box_extents(access, box)
    rows = [box.coefficients(index) for index in access.affine]
    steps = [0] * len(array)
    step = 1
    for d in reversed(_transposed(rows, nest)):
        steps[d] = step
        step *= array[d]
    return tuple(
        sum(step * row[k] for step, row in zip(steps, rows, strict=True)) for k in range(len(box.counts))
    )


def _transposed(rows: Sequence[Sequence[int]], nest: Sequence[int]) -> list[int]:
    """Return the dimensions of an array, those that the last iterator of a nest runs along innermost.

    In front of them are those of the other iterators, and outermost those that stay.
    """

    def depth(d: int) -> tuple[bool, bool]:
        return any(rows[d][k] for k in nest), bool(nest) and rows[d][nest[-1]] != 0

    return sorted(range(len(rows)), key=depth)


def _of_rank_zero(statement: Statement) -> Iterator[int]:
    return (k for k, access in enumerate(statement.reads) if not access.affine)


def _slice(access: View, box: LocalBox, strides: Strides) -> tuple[tuple[int, ...], Strides]:
    """Return the nest of the instances that read one element: ``x[w + r]`` leaves a diagonal."""
    left, steps = list(box.counts), {k: list(row) for k, row in strides.items()}
    for coefficients in map(box.coefficients, access.affine):
        used = [k for k, c in enumerate(coefficients) if c]
        for k, other in pairwise(used):
            a, b = coefficients[k], coefficients[other]
            down, up = abs(b) // gcd(a, b), abs(a) // gcd(a, b)
            left[other] = min(-(-left[k] // down), -(-left[other] // up))
            for row in steps.values():
                row[other] = up * row[other] - (1 if a * b > 0 else -1) * down * row[k]
            left[k] = 1
        if len(used) == 1:
            left[used[0]] = 1
    return tuple(left), {k: tuple(row) for k, row in steps.items()}


def _nest_cycles(
    work: _Work,
    sizes: Sequence[int],
    strides: Strides,
    transposed: Callable[[tuple[int, ...]], Strides],
    scalars: frozenset[int],
) -> float:
    """Return the cycles of a nest, in arrays as they are declared or as they suit a nest of iterators."""
    live = tuple(k for k, size in enumerate(sizes) if size > 1)
    if not live:
        return work.alone
    machine = work.plans.machine
    best = prod(sizes[k] for k in live) * work.iteration
    for fixed, inner in _splits(live, strides, scalars):
        outer = [k for k in live if k not in inner]
        moved = sum(any(row[k] for k in outer) for row in strides.values())
        around = machine.loop_iteration + moved * move_cycles(machine) if outer else 0
        runs = prod(sizes[k] for k in outer)
        for order in _orders(inner):
            other = transposed(order)
            for lying in (strides,) if other == strides else (strides, other):
                plan = work.plans.plan(scalars | fixed, _shape(sizes, lying, order))
                best = min(best, runs * (plan.cycles + around))
    return best


def _splits(
    live: tuple[int, ...], strides: Strides, scalars: frozenset[int]
) -> Iterator[tuple[frozenset[int], tuple[int, ...]]]:
    """Yield which reads are scalars inside the loops, and the largest nest in which they are."""
    reads = [p for p in strides if p != ACCUMULATOR and p not in scalars]
    for fixed in chain.from_iterable(combinations(reads, n) for n in range(len(reads) + 1)):
        inner = tuple(k for k in live if not any(strides[p][k] for p in fixed))
        if inner:
            same = frozenset(p for p in reads if not any(strides[p][k] for k in inner))
            yield same, inner[-MAX_DIMENSIONS:]


def _orders(inner: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the dimensions with each in turn innermost."""
    for last in inner:
        yield (*(k for k in inner if k != last), last)


def _shape(sizes: Sequence[int], strides: Strides, dims: Sequence[int]) -> Shape:
    kept = {p: tuple(row[k] for k in dims) for p, row in strides.items()}
    return Shape(tuple(sizes[k] for k in dims), kept)
