"""The parts of a scalar function, with what instructions can compute of each, whatever the nest.

Finding that takes much longer than pricing it for a nest, and thousands of nests ask for the same parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from polyloom.ir.expressions import Binary, Compare, Expression, Read, Unary, children
from polyloom.ir.types import ElementType
from polyloom.wafer.machine.instruction_cost import (
    Rows,
    engine_cycles,
    evaluation_cycles,
    own_cycles,
)
from polyloom.wafer.machine.instruction_selection import ACCUMULATOR, is_memory, is_scalar
from polyloom.wafer.machine.instructions import Instruction, instruction
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.machine.temporaries import FIRST_TEMPORARY, word_of
from polyloom.wafer.simd.instruction_options import instruction_options, reads_old_value
from polyloom.wafer.vector_functions.elementary import error_ulps, vector_function
from polyloom.wafer.vector_functions.sequences import Operation, Value, VectorFunction


@dataclass(frozen=True)
class Engine:
    """What an instruction costs: ``fixed`` cycles, its launch and its scalars, and those of its elements.

    ``rate``, ``accesses``: as of ``engine_cycles``.
    """

    fixed: int
    rate: int
    accesses: tuple[tuple[int, int], ...]

    def cycles(self, nest: Rows) -> int:
        """Return the cycles in a nest."""
        return self.fixed + engine_cycles(nest, self.rate, self.accesses)


@dataclass(frozen=True, eq=False, kw_only=True)
class Option:
    """How a part may be computed: by an instruction, or by a function's sequence of them.

    ``kept``: the parts that are computed before, into temporaries; ``tied``: whether one of these reads the
    old value of the written element, which is right only where each point writes an element of its own;
    ``error``: of what is not exact.
    """

    operands: tuple[Expression, ...]
    kept: tuple[Part, ...]
    tied: bool
    engines: tuple[Engine, ...]
    instruction: Instruction | None = None
    function: VectorFunction | None = None
    error: str = ""

    @cached_property
    def distinct(self) -> tuple[Part, ...]:
        """The parts that are kept, each once."""
        return tuple(dict.fromkeys(self.kept))


@dataclass(frozen=True, eq=False)
class Part:
    """An expression inside another one; equal ones are one part (of ``Parts``)."""

    whole: Parts
    expression: Expression

    @cached_property
    def is_scalar(self) -> bool:
        """Whether it is the same for all points."""
        return is_scalar(self.expression, self.whole.scalars)

    @cached_property
    def is_memory(self) -> bool:
        """Whether it is a plain read of local memory."""
        return is_memory(self.expression, self.whole.scalars)

    @cached_property
    def reads_old_value(self) -> bool:
        """Whether it reads the written element."""
        return reads_old_value(self.expression)

    @cached_property
    def is_truth_value(self) -> bool:
        """Whether it is a comparison, which no temporary can hold."""
        return isinstance(self.expression, Compare)

    @cached_property
    def children(self) -> tuple[Part, ...]:
        """Its operands."""
        return tuple(map(self.whole.of, children(self.expression)))

    @cached_property
    def load(self) -> int:
        """Cycles of loading it from a temporary in a loop."""
        return own_cycles(self.whole.machine, Read(FIRST_TEMPORARY, self.expression.type))

    @cached_property
    def _own(self) -> int:
        return own_cycles(self.whole.machine, self.expression)

    def inside(self, kept: Sequence[Part]) -> int:
        """Return what evaluating it once costs in a loop, the kept ones being loads."""
        if self in kept:
            return self.load
        return self._own + sum(child.inside(kept) for child in self.children)

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """The ways to compute it other than in a loop: instructions first."""
        return (*self.whole.instructions(self.expression), *self.whole.functions(self.expression))


@dataclass(frozen=True, eq=False)
class Parts:
    """Parts of expressions; ``scalars``: positions of the reads that are the same for all points.

    ``approximate``: whether functions may be sequences that are a few units in the last place off.
    """

    scalars: frozenset[int]
    machine: Machine
    approximate: bool
    _known: dict[Expression, Part] = field(default_factory=dict)

    def of(self, expression: Expression) -> Part:
        """Return the part that is this expression."""
        return self._known.setdefault(expression, Part(self, expression))

    def instructions(self, node: Expression) -> Iterator[Option]:
        """Yield the instructions that compute an expression."""
        for found in instruction_options(node, self.scalars, approximate=self.approximate):
            yield Option(
                operands=found.operands,
                kept=tuple(map(self.of, found.kept)),
                tied=found.tied,
                engines=(self.engine(found.instruction, ACCUMULATOR, found.operands),),
                instruction=found.instruction,
                error=found.error,
            )

    def functions(self, node: Expression) -> Iterator[Option]:
        """Yield the sequence that computes a function of whole arrays."""
        operands: tuple[Expression, ...]
        match node:
            case Unary(op=op, operand=x):
                function, operands = vector_function(op, node.type), (x,)
            case Binary(op=op, left=a, right=b):
                function, operands = vector_function(op, node.type), (a, b)
            case _:
                return
        scalar = [is_scalar(operand, self.scalars) for operand in operands]
        if not self.approximate or function is None or all(scalar):
            return
        kept = (o for o, alone in zip(operands, scalar, strict=True) if not alone)
        yield Option(
            operands=operands,
            kept=tuple(self.of(o) for o in kept if not is_memory(o, self.scalars)),
            tied=any(map(reads_old_value, operands)),
            engines=tuple(map(self._operation, function.operations)),
            function=function,
            error=f"{op.name}: {error_ulps(op, node.type)} ulps of {node.type.value}",
        )

    def _operation(self, operation: Operation) -> Engine:
        """Return what an instruction of a function costs, its operands lying densely."""

        def place(value: Value) -> int:
            whole = Read(FIRST_TEMPORARY, value.type)
            return whole.position if value.word is None else word_of(whole, value.word).position

        sources = [place(o) if isinstance(o, Value) else None for o in operation.operands]
        return self._engine(instruction(operation.instruction), 0, place(operation.target), sources)

    def engine(self, entry: Instruction, target: int, operands: Sequence[Expression]) -> Engine:
        """Return what an instruction costs; operands that are no reads come from temporaries."""
        scalars, sources = 0, list[int | None]()
        for operand in operands:
            if is_scalar(operand, self.scalars):
                sources.append(None)
                scalars += evaluation_cycles(self.machine, operand)
            else:
                sources.append(operand.position if isinstance(operand, Read) else FIRST_TEMPORARY)
        return self._engine(entry, scalars, target, sources)

    def _engine(self, entry: Instruction, scalars: int, target: int, sources: Sequence[int | None]) -> Engine:
        types: tuple[ElementType, ...] = (entry.destination, *entry.sources)
        places = zip((target, *sources), types, strict=True)
        accesses = tuple((position, kind.size // 2) for position, kind in places if position is not None)
        fixed = self.machine.simd_launch + scalars
        return Engine(fixed, self.machine.simd_width(entry.name), accesses)
