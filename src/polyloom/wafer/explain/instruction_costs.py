"""What each instruction of a task takes, and what holds it up: strides, short rows, banks that meet.

The rules are those of the layout of arrays, which chose where they lie so that this is little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from polyloom.ir.expressions import Read
from polyloom.wafer.array_layout.banks import meeting_rows
from polyloom.wafer.array_layout.order import Use, use_of
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.machine.instruction_cost import Shape, stride_limit
from polyloom.wafer.machine.instruction_selection import is_memory
from polyloom.wafer.machine.temporaries import is_temporary
from polyloom.wafer.simd.decision import SimdAnalysis, SimdOptions, step_cycles, steps_of
from polyloom.wafer.simd.steps import Step


@dataclass(frozen=True, kw_only=True)
class OperandUse:
    """An operand in memory. ``row``: elements that follow each other at ``stride`` (in elements).

    ``width``: elements a cycle that the stride allows, at most the instruction's.
    """

    tensor: str
    row: int
    stride: int
    width: int


@dataclass(frozen=True, kw_only=True)
class InstructionCost:
    """An instruction of a task. ``elements``: of a run; ``cycles``: of one, ``launch`` of them to begin.

    ``width``: elements a cycle, at most; ``meeting``: the part of the rows in which two sources lie in one
    bank, None where that is not known before.
    """

    name: str
    elements: int
    cycles: int
    launch: int
    width: int
    operands: tuple[OperandUse, ...]
    meeting: float | None

    @property
    def text(self) -> str:
        """All that for a person."""
        parts = [f"{self.elements} elements in {self.cycles} cycles, {self.launch} of them to begin"]
        parts += list(self._narrow())
        shortest = min((o.row for o in self.operands), default=self.elements)
        if shortest < self.elements:
            names = ", ".join(dict.fromkeys(f"`{o.tensor}`" for o in self.operands if o.row == shortest))
            parts.append(f"rows of {shortest} in {names}{self._wider(shortest)}")
        if self.meeting:
            parts.append(
                f"two sources share a bank in {self.meeting:.0%} of the rows, which take twice as long"
            )
        return "; ".join(parts)

    def _narrow(self) -> Iterator[str]:
        narrow = dict.fromkeys(o for o in self.operands if o.width < self.width)
        if not narrow:
            yield f"up to {self.width} in a cycle"
        for operand in narrow:
            why = f"as `{operand.tensor}` steps by {operand.stride}"
            yield f"{operand.width} in a cycle, not {self.width}, {why}"

    def _wider(self, row: int) -> str:
        width = min((o.width for o in self.operands), default=self.width)
        return f", which take as long as rows of {-(-row // width) * width}" if row % width else ""


def instruction_costs(
    analysis: SimdAnalysis, arrays: Mapping[str, LocalArray], options: SimdOptions
) -> tuple[InstructionCost, ...]:
    """Return what the instructions of a task take on arrays; none where one takes a stream as it comes."""
    parts = analysis.parts or (analysis.innermost,)
    uses = ((part, use_of(part, options)) for part in parts)
    return tuple(c for part, use in uses if use is not None for c in _of_use(part, use, arrays, options))


def _of_use(
    analysis: SimdAnalysis, use: Use, arrays: Mapping[str, LocalArray], options: SimdOptions
) -> Iterator[InstructionCost]:
    bank_use = use.for_banks(arrays)
    for step in steps_of(analysis):
        if step.instruction is not None:
            machine = options.machine
            width = machine.simd_width(step.instruction.name)
            meeting = meeting_rows(bank_use, step, arrays)
            busy = step_cycles(step, bank_use.shape, analysis, machine) - machine.simd_launch
            waiting = (meeting or 0.0) * (machine.same_bank_cycles - 1) * busy
            yield InstructionCost(
                name=step.text,
                elements=bank_use.shape.count,
                cycles=round(machine.simd_launch + busy + waiting),
                launch=machine.simd_launch,
                width=width,
                operands=tuple(_operands(analysis, bank_use.shape, step, width)),
                meeting=meeting,
            )


def _operands(analysis: SimdAnalysis, shape: Shape, step: Step, width: int) -> Iterator[OperandUse]:
    assert step.instruction is not None
    sources = (o for o in step.operands if isinstance(o, Read) and is_memory(o, analysis.scalars))
    names = {o.position: o.tensor for o in analysis.operands}
    for read in (Read(step.target, step.type), *sources):
        row, stride = shape.row(read.position)
        name = "a temporary" if is_temporary(read.position) else names[read.position]
        limit = min(width, stride_limit(stride, read.type.size // 2))
        yield OperandUse(tensor=name, row=row, stride=stride, width=limit)
