"""A statement of several operations as several instructions, with temporaries between them.

``y = c * r * g + b`` becomes ``t = fmulh(c, r); t = fmulh(t, g); y = faddh(t, b)``. What the engine lacks
(``exp``, a division) is a sequence of instructions whose result may be off by a few units in the last place
(``vector_functions``), or a loop over the same nest that evaluates it element by element. The cheapest cover
of the expression's tree is found by dynamic programming over its nodes.

Not in the papers: dtg_codegen, Sec. 5, condition 1, wants a single operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from polyloom.ir.expressions import (
    Binary,
    Compare,
    Expression,
    Read,
    Unary,
    children,
)
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
    is_memory,
    is_scalar,
)
from polyloom.wafer.machine.instructions import Instruction, instruction, move_instruction
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.machine.temporaries import FIRST_TEMPORARY, word_of
from polyloom.wafer.simd.instruction_options import (
    InstructionOption,
    instruction_options,
    literals,
    reads_old_value,
)
from polyloom.wafer.simd.steps import Step, replaced, temporaries_of, with_few_temporaries
from polyloom.wafer.vector_functions.elementary import error_ulps, vector_function
from polyloom.wafer.vector_functions.sequences import Operation, Value, VectorFunction


@dataclass(frozen=True)
class Plan:
    """Steps in order, and what they cost in cycles for the nest that they were chosen for.

    ``approximate``: what is computed by other roundings than the evaluator's, each with its error.
    """

    steps: tuple[Step, ...]
    cycles: int
    approximate: tuple[str, ...] = ()

    def temporary_bytes(self, elements: int) -> int:
        """Return the bytes of all temporaries of a nest of so many elements."""
        return sum(element.size for element in temporaries_of(self.steps).values()) * elements


def select(
    work: Expression, scalars: frozenset[int], shape: Shape, machine: Machine, *, approximate: bool = False
) -> Plan:
    """Cover what is assigned to the written element with instructions and loops, as cheaply as possible.

    ``work``: as of ``work_at_point``; ``scalars``: positions of the reads that are the same for all elements;
    ``approximate``: whether functions may be sequences that are a few units in the last place off.
    A plan without any instruction is one loop.

    ``Read(-1) + Read(0) * Read(1)``, no scalars: ``t = fmulh(0, 1); -1 = faddh(-1, t)``.
    """
    sizes, strides = shape.live()
    return _selected(
        _Question(
            work=work,
            literals=literals(work),
            scalars=scalars,
            sizes=sizes,
            strides=strides,
            machine=machine,
            approximate=approximate,
        )
    )


@dataclass(frozen=True, kw_only=True)
class _Question:
    """What ``select`` is asked. ``literals``: equal constants may have other bits, as 0.0 and -0.0."""

    work: Expression
    literals: tuple[str, ...]
    scalars: frozenset[int]
    sizes: tuple[int, ...]
    strides: tuple[tuple[int, tuple[int, ...]], ...]
    machine: Machine
    approximate: bool


@lru_cache(maxsize=4096)
def _selected(asked: _Question) -> Plan:
    cover = _Cover(asked.scalars, Shape(asked.sizes, dict(asked.strides)), asked.machine, asked.approximate)
    ordered = tuple(cover.emit(asked.work, ACCUMULATOR))
    steps = with_few_temporaries(ordered)
    cycles = sum(cover.step_cycles(step) for step in ordered)
    return Plan(steps, cycles, tuple(dict.fromkeys(cover.inexact)))


def loop_cycles(work: Expression, shape: Shape, machine: Machine) -> int:
    """Return what a loop over the nest that evaluates everything costs."""
    element = machine.loop_iteration + evaluation_cycles(machine, work) + store_cycles(machine)
    return shape.count * element


@dataclass(frozen=True, kw_only=True)
class _Choice:
    """How a node is computed: by an instruction, by a function's sequence, or, without both, in a loop.

    ``kept``: the nodes inside it that are computed before, into temporaries; ``error``: of what is not exact.
    """

    cycles: int
    operands: tuple[Expression, ...]
    kept: tuple[Expression, ...]
    instruction: Instruction | None = None
    function: VectorFunction | None = None
    error: str = ""


@dataclass(eq=False)
class _Cover:
    """The cheapest choice for each node, and the temporaries that hold nodes already computed.

    ``kept``: for each node, what a loop that evaluates it has in temporaries, the node itself or inside it;
    ``inexact``: the errors of the steps that were made.
    """

    scalars: frozenset[int]
    shape: Shape
    machine: Machine
    approximate: bool
    best: dict[Expression, _Choice] = field(default_factory=dict)
    kept: dict[Expression, tuple[Expression, ...]] = field(default_factory=dict)
    held: dict[Expression, Read] = field(default_factory=dict)
    temporaries: int = 0
    inexact: list[str] = field(default_factory=list)

    def choice(self, node: Expression) -> _Choice:
        if node not in self.best:
            options = [*self._instructions(node), *self._functions(node), self._loop(node)]
            self.best[node] = min(options, key=lambda option: option.cycles)
        return self.best[node]

    def emit(self, node: Expression, target: int) -> Iterator[Step]:
        chosen = self.choice(node)
        self.inexact += [chosen.error] if chosen.error else []
        for inner in chosen.kept:
            if inner not in self.held:
                place = self._temporary(inner.type)
                self.held[inner] = place
                yield from self.emit(inner, place.position)
        operands = tuple(replaced(operand, self.held, chosen.kept) for operand in chosen.operands)
        if chosen.function is not None:
            yield from self._sequence(chosen.function, operands, target)
        else:
            yield Step(target, node.type, chosen.instruction, operands)

    def _temporary(self, kind: ElementType) -> Read:
        self.temporaries += 1
        return Read(FIRST_TEMPORARY + 1 - self.temporaries, kind)

    def _sequence(
        self, function: VectorFunction, operands: tuple[Expression, ...], target: int
    ) -> Iterator[Step]:
        """Yield the instructions of a function; an argument that is a scalar is put into a temporary."""
        places: dict[int, Read] = {}
        for argument, operand in zip(function.arguments, operands, strict=True):
            if self._is_scalar(operand):
                place = self._temporary(operand.type)
                yield Step(place.position, place.type, move_instruction(place.type), (operand,))
            else:
                assert isinstance(operand, Read)
                place = operand
            places[argument.number] = place
        places[function.result.number] = Read(target, function.result.type)

        def read(value: Value) -> Read:
            if value.number not in places:
                places[value.number] = self._temporary(value.type)
            whole = places[value.number]
            return whole if value.word is None else word_of(whole, value.word)

        for operation in function.operations:
            made = read(operation.target)
            yield Step(
                made.position,
                made.type,
                instruction(operation.instruction),
                tuple(read(o) if isinstance(o, Value) else o for o in operation.operands),
            )

    def step_cycles(self, step: Step) -> int:
        if step.instruction is None:
            return self._loop_cycles(self._inside(step.operands[0], ()))
        return self._instruction_cycles(step.instruction, step.target, step.operands)

    def _instructions(self, node: Expression) -> Iterator[_Choice]:
        for option in instruction_options(node, self.scalars, approximate=self.approximate):
            if not option.tied or self.shape.is_one_to_one:
                yield self._instruction(option)

    def _functions(self, node: Expression) -> Iterator[_Choice]:
        """Yield the sequence that computes a function of whole arrays."""
        operands: tuple[Expression, ...]
        match node:
            case Unary(op=op, operand=x):
                function, operands = vector_function(op, node.type), (x,)
            case Binary(op=op, left=a, right=b):
                function, operands = vector_function(op, node.type), (a, b)
            case _:
                return
        tied = any(self._is_tied(operand) for operand in operands)
        if not self.approximate or function is None or tied or all(self._is_scalar(o) for o in operands):
            return
        kept = tuple(o for o in operands if not self._is_scalar(o) and not is_memory(o, self.scalars))
        cycles = sum(self._operation_cycles(operation) for operation in function.operations)
        cycles += sum(self.choice(inner).cycles for inner in dict.fromkeys(kept))
        error = f"{op.name}: {error_ulps(op, node.type)} ulps of {node.type.value}"
        yield _Choice(cycles=cycles, operands=operands, kept=kept, function=function, error=error)

    def _operation_cycles(self, operation: Operation) -> int:
        """Return what an instruction of a function costs, its operands lying densely."""

        def place(value: Value) -> int:
            whole = Read(FIRST_TEMPORARY, value.type)
            return whole.position if value.word is None else word_of(whole, value.word).position

        sources = [place(o) if isinstance(o, Value) else None for o in operation.operands]
        entry = instruction(operation.instruction)
        return instruction_cycles(self.machine, entry, self.shape, place(operation.target), sources)

    def _instruction(self, option: InstructionOption) -> _Choice:
        cycles = self._instruction_cycles(option.instruction, ACCUMULATOR, option.operands)
        cycles += sum(self.choice(inner).cycles for inner in dict.fromkeys(option.kept))
        return _Choice(
            cycles=cycles,
            instruction=option.instruction,
            operands=option.operands,
            kept=option.kept,
            error=option.error,
        )

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
        return _Choice(cycles=cycles, operands=(node,), kept=kept)

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
        chosen = self.choice(node)
        in_loop = chosen.instruction is None and chosen.function is None
        return not in_loop and chosen.cycles + load < inline

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
        return reads_old_value(expression) and not self.shape.is_one_to_one
