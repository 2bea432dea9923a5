"""How local arrays lie in memory, chosen for the SIMD engine: transposed, reversed, with padded rows.

The engine is fast along strides 0 and 1 and slow along 8, 4 and -1. A resident ``W[8][8]`` of which a
column is read at a time is kept transposed; the filter of a convolution, whose output runs against it, is
kept backwards, so that both run forwards. What no instruction takes stays as it is.

Not in the papers: dtg_codegen has no layout transformations (Sec. 1). Source of the stride rule:
wafer-target.md, 1.1; of the reversed filter: 2.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, prod
from weakref import WeakKeyDictionary

from polyloom.diagnostics import Diagnostic, remark
from polyloom.ir.expressions import Read
from polyloom.ir.program import Program
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.loops.tree import Number
from polyloom.wafer.array_layout.bank_distances import BANKS, least_meeting
from polyloom.wafer.array_layout.banks import BankUse, moving_sources, with_banks
from polyloom.wafer.array_layout.fabric_use import FabricUse
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.machine.descriptor_nests import MAX_DIMENSIONS, jointly_coalesced
from polyloom.wafer.machine.instruction_cost import Shape, move_cycles
from polyloom.wafer.machine.options import Effect, Extension
from polyloom.wafer.simd.decision import SimdAnalysis, SimdMode, SimdOptions, Strategy, step_cycles, steps_of
from polyloom.wafer.simd.steps import Step

Arrays = dict[str, LocalArray]

_GAIN = 0.92
"""The part of the runs' cycles that a layout must stay below: a plain array is easier to follow."""

_MOST_PADDING = 4
"""Cells behind a row that are tried: 2 or 3 make a slow stride a fast one, 4 one that suffices for pairs."""


@dataclass(frozen=True)
class Layout:
    """A way to lie in memory, as in ``LocalArray``."""

    order: tuple[int, ...] = ()
    reversed: frozenset[int] = frozenset()
    padding: int = 0

    def of(self, array: LocalArray) -> LocalArray:
        """Return the array in this layout."""
        return array.lying(self.order, self.reversed, self.padding)


def lay_out(
    arrays: Mapping[str, LocalArray],
    simd: Sequence[SimdAnalysis],
    state: Sequence[tuple[str, str]],
    options: SimdOptions,
    fabric: Sequence[FabricUse] = (),
) -> Arrays:
    """Return the arrays as they lie in memory.

    ``state``: pairs of tensors of which the second takes the first one's place: they have the same layout.
    ``fabric``: what passes the fabric in pairs.
    Arrays are looked at one after the other; each gets the layout with which all instructions together cost
    least, beginning with plain arrays, and with those that suit the costliest instructions.
    """
    if options.mode is SimdMode.OFF:
        return dict(arrays)
    uses = tuple(use for analysis in simd if (use := use_of(analysis.innermost, options)) is not None)
    groups = tuple(_groups(arrays, state))
    everything: tuple[Use | FabricUse, ...] = (*uses, *fabric)

    def cost(found: Arrays) -> float:
        return sum(use.cycles(found) for use in everything)

    plain = _improved(dict(arrays), groups, everything, options)
    transposed = _transposed(arrays, groups, uses, options)
    other = plain if transposed is None else _improved(transposed, groups, everything, options)
    result = other if cost(other) < _GAIN * cost(plain) else plain
    even = _with_even_rows(result, uses, options)
    if cost(even) < _GAIN * cost(result):
        result = even
    return with_banks(result, [use.for_banks(result) for use in uses], options)


def _improved(
    arrays: Arrays,
    groups: Sequence[frozenset[str]],
    uses: Sequence[Use | FabricUse],
    options: SimdOptions,
) -> Arrays:
    """Return the arrays, each in turn in the layout that costs least beside the others."""
    result = dict(arrays)
    for group in groups:
        here = tuple(use for use in uses if group & use.tensors)
        if here:
            layout = _best(group, here, result, options)
            result.update({name: layout.of(result[name]) for name in group})
    return result


def _with_even_rows(arrays: Arrays, uses: Sequence[Use], options: SimdOptions) -> Arrays:
    """Return the arrays with all rows that begin in one bank, as far as there is memory for that.

    Two arrays that move against each other can meet nowhere then, though padding one of them saves nothing.
    """
    if not (options.has(Extension.PADDED_ROWS) and options.has(Extension.BANK_PADDING)):
        return arrays
    result = dict(arrays)
    for name in sorted({name for use in uses for name in use.tensors if name in arrays}):
        array = arrays[name]
        if sum(extent > 1 for extent in array.extent) > 1:
            words = array.type.size // 2
            missing = -array.shape[-1] * words % BANKS // words
            result[name] = replace(array, padding=array.padding + missing)
    grown = sum(result[name].bytes - arrays[name].bytes for name in arrays)
    free = options.machine.memory_bytes - sum(array.bytes for array in arrays.values())
    return result if grown <= free else arrays


def _transposed(
    arrays: Mapping[str, LocalArray],
    groups: Sequence[frozenset[str]],
    uses: Sequence[Use],
    options: SimdOptions,
) -> Arrays | None:
    """Return the arrays contiguous along the inner dimension of their costliest use; None: as they are."""
    if not options.has(Extension.TRANSPOSED_ARRAYS):
        return None
    result = dict(arrays)
    for group in groups:
        here = [use for use in uses if group & use.tensors]
        if not here or len({len(arrays[name].extent) for name in group}) > 1:
            continue
        costliest = max(here, key=lambda use: use.cycles(result))
        order = costliest.wanted_order(group, result)
        result.update({name: Layout(order).of(result[name]) for name in group})
    return None if all(result[name].order == arrays[name].order for name in arrays) else result


StepCosts = dict[tuple[int, tuple[tuple[int, ...], ...]], float]

_COSTS: WeakKeyDictionary[SimdAnalysis, dict[SimdOptions, StepCosts]] = WeakKeyDictionary()
"""What instructions of tasks that are still in use cost."""


@dataclass(frozen=True, eq=False)
class Use:
    """The instructions of a task; ``runs``: how often they run, up to a factor that all tasks share.

    ``known``: what an instruction costs, by its number and the strides of the arrays along which it moves:
    most layouts that are tried change the array of one of them. It is kept for other layers that have the
    task, and what was decided for it, in common.
    """

    analysis: SimdAnalysis
    extents: tuple[int, ...]
    runs: float
    options: SimdOptions
    known: StepCosts

    @property
    def tensors(self) -> frozenset[str]:
        """The tensors of the operands."""
        return frozenset(o.tensor for o in self.analysis.operands)

    def cycles(self, arrays: Mapping[str, LocalArray]) -> float:
        """Return what the instructions cost with the arrays as they lie; no descriptor may be too deep."""
        if self._is_too_deep(arrays):
            return inf
        return self.runs * (self._overhead + sum(self._step_cycles(k, arrays) for k in self._moving))

    def _is_too_deep(self, arrays: Mapping[str, LocalArray]) -> bool:
        """Whether the nest has more dimensions than a descriptor, those counted once that can be joined."""
        if sum(extent > 1 for extent in self.extents) <= MAX_DIMENSIONS:
            return False
        shape = self.shape(arrays)
        sizes = [Number(size) for size in shape.sizes]
        return len(jointly_coalesced(sizes, list(shape.strides.values()))[0]) > MAX_DIMENSIONS

    def least(self, group: frozenset[str], arrays: Mapping[str, LocalArray]) -> float:
        """Return what the instructions cost at least, however a group of arrays lies beside the others."""
        moving = self._moving.items()
        steps = (self._floor(k) if group & names else self._step_cycles(k, arrays) for k, names in moving)
        return self.runs * (self._overhead + sum(steps))

    @cached_property
    def _steps(self) -> tuple[Step, ...]:
        return tuple(step for step in steps_of(self.analysis) if step.instruction is not None)

    @cached_property
    def _moving(self) -> dict[int, frozenset[str]]:
        """The tensors along which each instruction moves, by its number."""
        moving = [o for o in self.analysis.operands if o.position not in self.analysis.scalars]
        if len(self._steps) == 1:
            return {0: frozenset(o.tensor for o in moving)}
        named = [{s.target, *(o.position for o in s.operands if isinstance(o, Read))} for s in self._steps]
        return {k: frozenset(o.tensor for o in moving if o.position in n) for k, n in enumerate(named)}

    def _step_cycles(self, number: int, arrays: Mapping[str, LocalArray]) -> float:
        """Return what an instruction costs, with what its sources wait for each other at the best banks."""
        key = number, tuple(arrays[name].signed_strides for name in sorted(self._moving[number]))
        if key not in self.known:
            self.known[key] = self._computed(self._steps[number], arrays)
        return self.known[key]

    def _computed(self, step: Step, arrays: Mapping[str, LocalArray]) -> float:
        shape = self._run_through(arrays)
        cycles = step_cycles(step, shape, self.analysis, self.options.machine)
        if not self.options.has(Extension.BANK_PADDING):
            return cycles
        pairs = moving_sources(self.analysis, shape, step)
        meeting = sum(least_meeting(self.analysis, shape, a, b, arrays) for a, b in pairs)
        machine = self.options.machine
        return cycles + min(1.0, meeting) * (machine.same_bank_cycles - 1) * (cycles - machine.simd_launch)

    def _floor(self, number: int) -> int:
        """Return what an instruction costs at full width in one row."""
        machine, instruction = self.options.machine, self._steps[number].instruction
        assert instruction is not None
        return machine.simd_launch + -(-prod(self.extents) // machine.simd_width(instruction.name))

    @property
    def _overhead(self) -> int:
        """What a run costs beside its instructions, at least: its start, and an operand that moves."""
        machine = self.options.machine
        start = 0 if self.analysis.task.stream is None else machine.data_task_dispatch
        return start + move_cycles(machine)

    def for_banks(self, arrays: Mapping[str, LocalArray]) -> BankUse:
        """Return the same as the choice of banks sees it."""
        return BankUse(self.analysis, self._run_through(arrays), self.runs)

    def _run_through(self, arrays: Mapping[str, LocalArray]) -> Shape:
        """Return the nest as it is run through: from the end where that is forwards in memory."""
        shape = self.shape(arrays)
        return shape.reversed_in(backward_dimensions(self.analysis, shape, self.options))

    def wanted_order(self, group: frozenset[str], arrays: Mapping[str, LocalArray]) -> tuple[int, ...]:
        """Return the order in which the arrays of a group are contiguous along the innermost dimension."""
        order = self.analysis.order or tuple(range(len(self.extents)))
        live = [k for k in order if self.extents[k] > 1]
        operands = (o for o in self.analysis.operands if o.tensor in group)
        wanted = (arrays[o.tensor].contiguous_along(o.columns, live[-1]).order for o in operands if live)
        return next((found for found in wanted if found), ())

    def shape(self, arrays: Mapping[str, LocalArray]) -> Shape:
        """Return the nest in its order, run through forwards."""
        order = self.analysis.order or tuple(range(len(self.extents)))
        strides = {o.position: arrays[o.tensor].strides_along(o.columns) for o in self.analysis.operands}
        moved = {position: tuple(flat[k] for k in order) for position, flat in strides.items()}
        return Shape(tuple(self.extents[k] for k in order), moved)


def backward_dimensions(analysis: SimdAnalysis, shape: Shape, options: SimdOptions) -> frozenset[int]:
    """Return the dimensions that the engine runs through from their end: all operands run backwards there.

    Only where each element is written once by an instruction, so that the order does not matter, where the
    size is known before the index, and where no temporary has a place for each point.
    """
    fixed = analysis.strategy in (Strategy.HULL, Strategy.EXACT)
    temporaries = len(steps_of(analysis)) > 1
    if not options.has(Extension.REVERSED_ARRAYS) or temporaries or not fixed:
        return frozenset()
    return shape.backward_dimensions()


def use_of(analysis: SimdAnalysis, options: SimdOptions) -> Use | None:
    """Return a task's use of arrays; None where it has no instruction on arrays or takes a whole stream."""
    if analysis.strategy is Strategy.NONE or analysis.sizes is None or analysis.whole is not None:
        return None
    extents = tuple(high for _, high in integer_bounds(analysis.sizes))
    runs = prod(analysis.task.statement.domain) / max(prod(extents), 1)
    known = _COSTS.setdefault(analysis, {}).setdefault(options, {})
    return Use(analysis=analysis, extents=extents, runs=runs, options=options, known=known)


def _groups(arrays: Mapping[str, LocalArray], state: Sequence[tuple[str, str]]) -> Iterator[frozenset[str]]:
    """Yield the tensors with one layout: those of one chain of states, else each alone; inputs come first."""
    left = sorted(arrays, key=lambda name: not arrays[name].given)
    while left:
        group = {left[0]}
        for _ in state:
            group |= {name for pair in state if group & set(pair) for name in pair if name in arrays}
        left = [name for name in left if name not in group]
        yield frozenset(group)


def _best(
    group: frozenset[str], uses: Sequence[Use | FabricUse], arrays: Arrays, options: SimdOptions
) -> Layout:
    """Return the cheapest layout; of equal ones the first: they come with more and more padding."""

    def cost(layout: Layout, most: float) -> float:
        """Stops adding up where that comes to ``most``."""
        changed = {**arrays, **{name: layout.of(arrays[name]) for name in group}}
        total = 0.0
        for use in uses:
            total += use.cycles(changed)
            if total >= most:
                break
        return total

    best, least = Layout(), sum(use.least(group, arrays) for use in uses)
    found = _GAIN * cost(best, inf)
    if len({len(arrays[name].extent) for name in group}) > 1:
        return best
    for layout in _layouts(replace(arrays[min(group)], order=()), arrays, options):
        if found <= least:
            break
        cycles = cost(layout, found)
        if cycles < found:
            best, found = layout, cycles
    return best


def _layouts(array: LocalArray, arrays: Arrays, options: SimdOptions) -> Iterator[Layout]:
    live = [k for k, extent in enumerate(array.extent) if extent > 1]
    every = tuple(range(len(array.extent)))
    orders: list[tuple[int, ...]] = [()]
    if options.has(Extension.TRANSPOSED_ARRAYS):
        orders += [(*(j for j in every if j != k), k) for k in live[:-1]]
    reversals = [frozenset[int]()]
    if options.has(Extension.REVERSED_ARRAYS):
        reversals += [frozenset({k}) for k in live] + ([frozenset(live)] if len(live) > 1 else [])
    free = options.machine.memory_bytes - sum(a.bytes for a in arrays.values())
    paddings = range(_MOST_PADDING + 1 if len(live) > 1 and options.has(Extension.PADDED_ROWS) else 1)
    for padding in paddings:
        for order in orders:
            for backward in reversals:
                layout = Layout(order, backward, padding)
                if not padding or layout.of(array).bytes - array.bytes <= free:
                    yield layout


def layout_effects(array: LocalArray) -> Iterator[Effect]:
    """Yield what is not plain about how an array lies in memory."""
    shown = f"{array.name}{list(array.shape)}"
    if array.order:
        yield Effect(Extension.TRANSPOSED_ARRAYS, f"{shown} holds the dimensions {list(array.order)}")
    if array.reversed:
        back = f"holds the dimensions {sorted(array.reversed)} backwards"
        yield Effect(Extension.REVERSED_ARRAYS, f"{shown} {back}")
    if array.bank is not None:
        yield Effect(Extension.BANK_PADDING, f"{shown} starts in bank {array.bank} of 4")
    if array.padding:
        yield Effect(Extension.PADDED_ROWS, f"{shown} has {array.padding} cells behind each row")


def layout_remarks(program: Program, arrays: Mapping[str, LocalArray]) -> Iterator[Diagnostic]:
    """Yield a remark for each array that does not lie plainly in memory, where its tensor is declared."""
    for array in arrays.values():
        statement = program.definition(array.tensor)
        written = None if statement is None else statement.span
        for effect in layout_effects(array):
            yield remark(
                f"simd-{effect.extension.value}",
                f"`{array.tensor}`: {effect.extension.meaning}",
                program.buffer(array.tensor).span or written,
                notes=[effect.detail],
                helps=[f"`--simd-without {effect.extension.value}` switches this off"],
            )
