"""What is found out about a task: its sets, the decision how it is done, and the remarks on that.

Source: dtg_codegen, Sec. 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import islpy as isl

from polyloom.diagnostics import Diagnostic, remark
from polyloom.ir.expressions import Read
from polyloom.polyhedra.box_hull import BoxHull
from polyloom.polyhedra.compression import Compression
from polyloom.polyhedra.enumeration import SizeEnumeration
from polyloom.polyhedra.functions import point_of
from polyloom.polyhedra.text.paper_notation import set_notation
from polyloom.wafer.dataflow.tasks import ComputeTask
from polyloom.wafer.machine.instruction_cost import Shape, instruction_cycles
from polyloom.wafer.machine.instruction_selection import ACCUMULATOR, Match, is_memory
from polyloom.wafer.machine.model import Machine, load_machine
from polyloom.wafer.machine.options import ALL_EXTENSIONS, Effect, Extension
from polyloom.wafer.simd.domain import Box, Extra, Operand
from polyloom.wafer.simd.steps import Step
from polyloom.wafer.simd.whole_stream import WholeStream


class SimdMode(Enum):
    """Which strategies are tried; the value is its name on the command line."""

    AUTO = "auto"
    OFF = "off"
    HULL = "hull"
    EXACT = "exact"
    ENUMERATE = "enumerate"


class Strategy(Enum):
    """How the sizes of an instruction were found; the value is its name in the JSON of ``explain``."""

    HULL = "hull"
    EXACT = "exact"
    ENUMERATED = "enumerated"
    NONE = "none"


class Sizing(Enum):
    """When the sizes of an instruction are set; the value is its name in the JSON of ``explain``."""

    ONCE = "once"
    CALL = "call"
    CHUNK = "chunk"


@dataclass(frozen=True)
class SimdOptions:
    """``max_configurations``: how many sizes may be enumerated, by default a file of descriptors but one.

    ``extensions``: those switched on.

    ``machine``: whose costs choose among what the extensions offer.
    """

    mode: SimdMode = SimdMode.AUTO
    max_configurations: int = 7
    extensions: frozenset[Extension] = ALL_EXTENSIONS
    machine: Machine = field(default_factory=lambda: load_machine("cs2"))

    @property
    def affine_only(self) -> bool:
        """Whether the offset of a box hull must be purely affine."""
        return not self.has(Extension.FLOOR_OFFSET)

    def has(self, extension: Extension) -> bool:
        """Whether an extension is switched on."""
        return extension in self.extensions


@dataclass(frozen=True, eq=False, kw_only=True)
class SimdAnalysis:
    """What Section 5 computes for one task, and the decision.

    ``match``: the instruction, if the operation has one; ``sizes``: the size of the nest on a PE, as a
    parametric point (for ``ENUMERATED``: as a function of the index too); ``reason``: why there is no SIMD
    instruction; ``whole``: set where one instruction works on a whole dense stream as it comes, instead of
    one for each element; ``effects``: the extensions that took part; ``steps``: the instructions, where they
    are several, and loops between them; ``fixed``: reads of local memory that are scalars to them; ``order``:
    the order of the nest's dimensions, outermost first, where it is not their own; ``nested``: set where
    loops go around the instructions; ``zeroed``: tensors whose arrays need zeros around them;
    ``sizing``: when the sizes are set, which may depend on the index where that is not once;
    ``plain``: the same in the coordinates of the paper, where these are others; ``parts``: what is done one
    after the other in its place.
    """

    task: ComputeTask
    match: Match | None
    uncompressed: Box
    compression: Compression
    box: Box
    operands: tuple[Operand, ...]
    hull: BoxHull | None
    extra: Extra | None
    enumeration: SizeEnumeration | None
    strategy: Strategy
    sizes: isl.Set | None
    reason: str
    notes: tuple[str, ...] = field(default=())
    whole: WholeStream | None = None
    effects: tuple[Effect, ...] = ()
    steps: tuple[Step, ...] = ()
    fixed: frozenset[int] = frozenset()
    order: tuple[int, ...] = ()
    nested: Nested | None = None
    zeroed: frozenset[str] = frozenset()
    sizing: Sizing = Sizing.ONCE
    plain: SimdAnalysis | None = None
    parts: tuple[SimdAnalysis, ...] = ()

    def uses(self, extension: Extension) -> bool:
        """Whether an extension took part, here or in what is done in its place."""
        inside = (*self.parts, *(() if self.nested is None else (self.nested.inner,)))
        here = any(effect.extension is extension for effect in self.effects)
        return here or any(part.uses(extension) for part in inside)

    def done_like(self, other: SimdAnalysis) -> bool:
        """Whether another analysis of the same task chose the same loops, order and steps."""
        ours, theirs = self.nested, other.nested
        if (ours is None) != (theirs is None):
            return False
        if ours is not None and theirs is not None:
            return ours.points.is_equal(theirs.points) and ours.inner.done_like(theirs.inner)
        chosen = (self.strategy, self.match, self.steps, self.order, self.fixed)
        same = self.compression.map.plain_is_equal(other.compression.map)
        return same and chosen == (other.strategy, other.match, other.steps, other.order, other.fixed)

    @property
    def innermost(self) -> SimdAnalysis:
        """What is inside the loops around the instructions; itself where there are none."""
        return self if self.nested is None else self.nested.inner

    @property
    def instructions(self) -> tuple[str, ...]:
        """The names of its instructions, in order; empty where there are none."""
        inner = self.innermost
        if self.parts:
            return tuple(name for part in self.parts for name in part.instructions)
        if inner.strategy is Strategy.NONE:
            return ()
        if inner.match is not None:
            return (inner.match.instruction.name,)
        return tuple(step.instruction.name for step in inner.steps if step.instruction is not None)

    @property
    def scalars(self) -> frozenset[int]:
        """The positions of the reads that are scalars to the instructions."""
        return scalar_reads(self.task) | self.fixed

    @cached_property
    def start(self) -> isl.Set:
        """Where the nest begins, as a parametric point."""
        if self.strategy is Strategy.HULL and self.hull is not None:
            return point_of(self.hull.offset).intersect_params(self.task.known)
        return self.box.minimum

    @property
    def write(self) -> Operand:
        """The access to the written tensor."""
        return next(o for o in self.operands if o.position == ACCUMULATOR)

    def reads(self) -> tuple[Operand, ...]:
        """The accesses to tensors in local memory that the task reads."""
        return tuple(o for o in self.operands if o.position != ACCUMULATOR)


@dataclass(frozen=True, eq=False)
class Nested:
    """Loops around instructions: ``{ loop[loop_0, ...] }`` over ``points``, each running ``inner``.

    The loops' iterators ``names`` are parameters of ``inner``, like those of the arriving index.
    """

    names: tuple[str, ...]
    points: isl.Set
    inner: SimdAnalysis


def scalar_reads(task: ComputeTask) -> frozenset[int]:
    """Return the positions of the reads that are the same for all instances of a task."""
    reads = task.statement.reads
    rank_zero = {k for k, access in enumerate(reads) if not access.affine}
    return frozenset(rank_zero if task.trigger is None else rank_zero | {task.trigger})


def steps_of(analysis: SimdAnalysis) -> tuple[Step, ...]:
    """Return the steps of a task; a single instruction is one."""
    if analysis.steps or analysis.match is None:
        return analysis.steps
    element = analysis.match.instruction.destination
    return (Step(ACCUMULATOR, element, analysis.match.instruction, analysis.match.operands),)


def step_cycles(step: Step, shape: Shape, analysis: SimdAnalysis, machine: Machine) -> int:
    """Return the cycles of an instruction of a task, its operands lying as ``shape`` says."""
    assert step.instruction is not None
    sources = [
        o.position if isinstance(o, Read) and is_memory(o, analysis.scalars) else None for o in step.operands
    ]
    return instruction_cycles(machine, step.instruction, shape, step.target, sources)


def extension_remarks(analysis: SimdAnalysis) -> Iterator[Diagnostic]:
    """Yield a remark for each extension that changed how a task is done."""
    for effect in analysis.effects:
        extension = effect.extension
        yield remark(
            f"simd-{extension.value}",
            f"{_event(analysis.task)}: {extension.meaning}",
            analysis.task.statement.span,
            notes=[effect.detail],
            helps=[f"`--simd-without {extension.value}` switches this off"],
        )


def _event(task: ComputeTask) -> str:
    return f"one arrival of `{task.stream.tensor}`" if task.stream else f"`{task.name}`"


def missed_remark(analysis: SimdAnalysis) -> Diagnostic | None:
    """Return the remark for a task that got no SIMD instruction, with its set; None if it got one."""
    if analysis.strategy is not Strategy.NONE:
        return None
    task = analysis.task
    return remark(
        "simd-none",
        f"{_event(task)} runs as a loop, not as a SIMD instruction",
        task.statement.span,
        notes=[
            analysis.reason,
            f"instances  {set_notation(task.instances, ascii_only=True)}",
            *analysis.notes,
        ],
    )
