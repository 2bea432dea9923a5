"""A statement of several operations as several instructions, with temporaries between them.

``y = c * r * g + b`` becomes ``t = fmulh(c, r); t = fmulh(t, g); y = faddh(t, b)``. What the engine lacks
(a division, ``exp``) is a loop over the same nest that evaluates it element by element. The cheapest cover of
the expression's tree is found by dynamic programming over its nodes.

Not in the papers: dtg_codegen, Sec. 5, condition 1, wants a single operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from polyloom.ir.expressions import (
    Compare,
    Expression,
    Read,
    children,
    walk,
)
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.types import ElementType
from polyloom.wafer.machine.instruction_cost import (
    Shape,
    evaluation_cycles,
    instruction_cycles,
    own_cycles,
    store_cycles,
)
from polyloom.wafer.machine.instruction_selection import (
    ACCUMULATOR,
    bindings,
    is_memory,
    is_scalar,
    spellings,
)
from polyloom.wafer.machine.instructions import Instruction, instructions
from polyloom.wafer.machine.model import Machine

FIRST_TEMPORARY = -2
"""Temporary k is read at the position ``FIRST_TEMPORARY - k``."""


@dataclass(frozen=True)
class Step:
    """``target = instruction(operands)``, or, without an instruction, ``target = operands[0]`` in a loop.

    ``target``: a position: ``ACCUMULATOR`` or a temporary; the operands' reads are numbered likewise, and
    an operand that holds no read of memory is a scalar.
    """

    target: int
    type: ElementType
    instruction: Instruction | None
    operands: tuple[Expression, ...]

    @property
    def text(self) -> str:
        """Its name for a person: the instruction, or ``loop``."""
        return "loop" if self.instruction is None else self.instruction.name


@dataclass(frozen=True)
class Plan:
    """Steps in order, and what they cost in cycles for the nest that they were chosen for."""

    steps: tuple[Step, ...]
    cycles: int

    def temporaries(self) -> dict[int, ElementType]:
        """Return the temporaries' positions and types."""
        return {step.target: step.type for step in self.steps if is_temporary(step.target)}

    def temporary_bytes(self, elements: int) -> int:
        """Return the bytes of all temporaries of a nest of so many elements."""
        return sum(element.size for element in self.temporaries().values()) * elements


def is_temporary(position: int) -> bool:
    """Whether a position is that of a temporary."""
    return position <= FIRST_TEMPORARY


def select(work: Expression, scalars: frozenset[int], shape: Shape, machine: Machine) -> Plan:
    """Cover what is assigned to the written element with instructions and loops, as cheaply as possible.

    ``work``: as of ``work_at_point``; ``scalars``: positions of the reads that are the same for all elements.
    A plan without any instruction is one loop.

    ``Read(-1) + Read(0) * Read(1)``, no scalars: ``t = fmulh(0, 1); -1 = faddh(-1, t)``.
    """
    cover = _Cover(scalars, shape, machine)
    ordered = tuple(cover.emit(work, ACCUMULATOR))
    steps = _with_few_temporaries(ordered)
    return Plan(steps, sum(cover.step_cycles(step) for step in ordered))


def loop_cycles(work: Expression, shape: Shape, machine: Machine) -> int:
    """Return what a loop over the nest that evaluates everything costs."""
    element = machine.loop_iteration + evaluation_cycles(machine, work) + store_cycles(machine)
    return shape.count * element


@dataclass(frozen=True)
class _Choice:
    """How a node is computed; ``kept``: the nodes inside it that are computed before, into temporaries."""

    cycles: int
    instruction: Instruction | None
    operands: tuple[Expression, ...]
    kept: tuple[Expression, ...]


@dataclass(eq=False)
class _Cover:
    """The cheapest choice for each node, and the temporaries that hold nodes already computed.

    ``kept``: for each node, what a loop that evaluates it has in temporaries, the node itself or inside it.
    """

    scalars: frozenset[int]
    shape: Shape
    machine: Machine
    best: dict[Expression, _Choice] = field(default_factory=dict)
    kept: dict[Expression, tuple[Expression, ...]] = field(default_factory=dict)
    held: dict[Expression, Read] = field(default_factory=dict)

    def choice(self, node: Expression) -> _Choice:
        if node not in self.best:
            options = [*self._instructions(node), self._loop(node)]
            self.best[node] = min(options, key=lambda option: option.cycles)
        return self.best[node]

    def emit(self, node: Expression, target: int) -> Iterator[Step]:
        chosen = self.choice(node)
        for inner in chosen.kept:
            if inner not in self.held:
                place = Read(FIRST_TEMPORARY - len(self.held), inner.type)
                self.held[inner] = place
                yield from self.emit(inner, place.position)
        operands = tuple(_with(operand, self.held, chosen.kept) for operand in chosen.operands)
        yield Step(target, node.type, chosen.instruction, operands)

    def step_cycles(self, step: Step) -> int:
        if step.instruction is None:
            return self._loop_cycles(self._inside(step.operands[0], ()))
        return self._instruction_cycles(step.instruction, step.target, step.operands)

    def _instructions(self, node: Expression) -> Iterator[_Choice]:
        for spelled in spellings(node):
            for entry in instructions():
                if entry.destination is not spelled.type:
                    continue
                for found in bindings(entry.body, spelled):
                    operands = tuple(found[k] for k in range(len(entry.sources)))
                    itself = node in operands and not is_memory(node, self.scalars)
                    if not itself and self._legal(entry, operands):
                        yield self._instruction(entry, operands)

    def _legal(self, entry: Instruction, operands: tuple[Expression, ...]) -> bool:
        """Whether scalars stand where they may, and the old value is read by this instruction itself."""
        if all(self._is_scalar(operand) for operand in operands) and len(operands) > 1:
            return False
        for k, operand in enumerate(operands):
            if k in entry.scalar_only and not self._is_scalar(operand):
                return False
            if not is_memory(operand, self.scalars) and self._is_tied(operand):
                return False
        return True

    def _instruction(self, entry: Instruction, operands: tuple[Expression, ...]) -> _Choice:
        kept = tuple(o for o in operands if not self._is_scalar(o) and not is_memory(o, self.scalars))
        cycles = self._instruction_cycles(entry, ACCUMULATOR, operands)
        cycles += sum(self.choice(inner).cycles for inner in dict.fromkeys(kept))
        return _Choice(cycles, entry, operands, kept)

    def _instruction_cycles(self, entry: Instruction, target: int, operands: tuple[Expression, ...]) -> int:
        sources: list[int | None] = []
        cycles = 0
        for operand in operands:
            if self._is_scalar(operand):
                sources.append(None)
                cycles += evaluation_cycles(self.machine, operand)
            else:
                sources.append(operand.position if isinstance(operand, Read) else FIRST_TEMPORARY)
        return cycles + instruction_cycles(self.machine, entry, self.shape, target, sources)

    def _loop(self, node: Expression) -> _Choice:
        """Evaluate a node in a loop; inside it, what instructions do for less comes from temporaries."""
        kept = self._kept_inside(node)
        cycles = self._loop_cycles(self._inside(node, kept)) + sum(self.choice(k).cycles for k in kept)
        return _Choice(cycles, None, (node,), kept)

    def _kept_inside(self, node: Expression) -> tuple[Expression, ...]:
        """Return what is worth keeping in temporaries while a node itself is evaluated."""
        if self._is_scalar(node) or is_memory(node, self.scalars):
            return ()
        return tuple(dict.fromkeys(kept for child in children(node) for kept in self._kept(child)))

    def _kept(self, node: Expression) -> tuple[Expression, ...]:
        """Return a node itself where keeping it is worth its while, else what is inside it."""
        if node not in self.kept:
            inside = self._kept_inside(node)
            self.kept[node] = (node,) if self._is_worth_keeping(node, inside) else inside
        return self.kept[node]

    def _is_worth_keeping(self, node: Expression, inside: tuple[Expression, ...]) -> bool:
        alone = self._is_scalar(node) or is_memory(node, self.scalars)
        if alone or self._is_tied(node) or isinstance(node, Compare):
            return False
        inline = self.shape.count * self._inside(node, inside) + sum(self.choice(k).cycles for k in inside)
        load = self.shape.count * own_cycles(self.machine, Read(FIRST_TEMPORARY, node.type))
        return self.choice(node).instruction is not None and self.choice(node).cycles + load < inline

    def _inside(self, node: Expression, kept: tuple[Expression, ...]) -> int:
        """Return what evaluating a node once costs in a loop, the kept ones being loads."""
        if node in kept:
            return own_cycles(self.machine, Read(FIRST_TEMPORARY, node.type))
        return own_cycles(self.machine, node) + sum(self._inside(child, kept) for child in children(node))

    def _loop_cycles(self, element: int) -> int:
        return self.shape.count * (self.machine.loop_iteration + element + store_cycles(self.machine))

    def _is_scalar(self, expression: Expression) -> bool:
        return is_scalar(expression, self.scalars)

    def _is_tied(self, expression: Expression) -> bool:
        """Whether it must be evaluated by the step that writes: other points write the element it reads."""
        reads = any(isinstance(node, Read) and node.position == ACCUMULATOR for node in walk(expression))
        return reads and not self.shape.is_one_to_one


def _with_few_temporaries(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Give temporaries of one type that are not needed at the same time the same place.

    An instruction may write where it reads: each element is read before it is written.
    """
    last = {p: k for k, step in enumerate(steps) for p in _temporaries_read(step)}
    places: dict[int, Read] = {}
    free: list[Read] = []
    result: list[Step] = []
    for k, step in enumerate(steps):
        used = dict.fromkeys(_temporaries_read(step))
        operands = tuple(_moved(operand, places) for operand in step.operands)
        free += [places[p] for p in used if last[p] == k]
        target = step.target
        if is_temporary(target):
            place = next((f for f in free if f.type is step.type), None)
            if place is None:
                place = Read(FIRST_TEMPORARY - len({r.position for r in places.values()}), step.type)
            else:
                free.remove(place)
            places[target], target = place, place.position
        result.append(Step(target, step.type, step.instruction, operands))
    return tuple(result)


def _temporaries_read(step: Step) -> Iterator[int]:
    for operand in step.operands:
        yield from (n.position for n in walk(operand) if isinstance(n, Read) and is_temporary(n.position))


def _moved(expression: Expression, places: Mapping[int, Read]) -> Expression:
    reads = tuple(n for n in walk(expression) if isinstance(n, Read) and is_temporary(n.position))
    return _with(expression, {read: places[read.position] for read in reads}, reads)


def _with(expression: Expression, by: Mapping[Expression, Read], which: tuple[Expression, ...]) -> Expression:
    """Return an expression with the nodes in ``which`` replaced by reads of what holds them."""
    return rebuilt(expression, lambda part: by[part] if part in which else None)
