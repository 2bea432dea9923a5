"""How a task is done: by one instruction as in the paper, or by several with loops around them.

Where ``paper_strategies.analyse`` finds no single instruction for all instances of a task, this stage looks
for the cheapest way to run some dimensions of the nest as loops and the others as instructions. A read of
local memory that is the same for all instances of one run is a scalar to them: the matrix product on local
memory
``y[b][i] += W[i][j] * x[b][j]`` is a loop over b and j around one multiply-add over i.

Not in the papers: dtg_codegen, Sec. 5, wants one instruction for all instances. Source of the rule that the
last factor is a scalar: wafer-target.md, 2.1 and 2.2.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import prod

import islpy as isl

from polyloom.ir.reductions import Combine
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.functions import coefficients, is_linear
from polyloom.polyhedra.loops.generate import Number
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.dataflow.tasks import ComputeTask
from polyloom.wafer.machine.descriptor_nests import MAX_DIMENSIONS, jointly_coalesced
from polyloom.wafer.machine.instruction_cost import (
    ADDRESS_OPERATIONS,
    MOST_UNROLLED,
    Shape,
    move_cycles,
    unrolled_copies,
)
from polyloom.wafer.machine.instruction_selection import Match, work_at_point
from polyloom.wafer.machine.options import Effect, Extension
from polyloom.wafer.simd.decision import (
    Nested,
    SimdAnalysis,
    SimdMode,
    SimdOptions,
    Sizing,
    Strategy,
    scalar_reads,
    step_cycles,
    steps_of,
)
from polyloom.wafer.simd.extended_strategies import improve
from polyloom.wafer.simd.instruction_options import literals
from polyloom.wafer.simd.instruction_sequences import Plan, Plans, loop_cycles, plans_of
from polyloom.wafer.simd.paper_strategies import analyse, choose_strategy
from polyloom.wafer.simd.steps import Step, memory_positions, temporaries_of
from polyloom.wafer.simd.whole_stream import WholeStream

_DIM = isl.dim_type

_MOST_DIMENSIONS = 10
"""Of a nest whose subsets of dimensions are looked at one by one."""

_MOST_REORDERED = 24
"""Splits of the nest whose inner order is varied: the cheapest, and those whose nest is too deep."""

_GAIN = 0.8
"""Largest fraction of the loops' estimated cycles at which instructions are worth memory and descriptors."""

_MOST_ORDERED = 16
"""Candidates of which it is found out whether they keep the order of sums, the cheapest first."""

_MUCH_CHEAPER = 0.5
"""Largest fraction of the cycles of a way that keeps the order of sums at which another way is taken."""

_MOST_ANALYSED = 4
"""Candidates that are analysed in full, the cheapest first."""


def undecided(
    task: ComputeTask,
    arrays: Mapping[str, LocalArray],
    options: SimdOptions,
    whole: WholeStream | None = None,
) -> SimdAnalysis:
    """Return what the paper's strategies and their extensions find for a task, as the arrays are."""
    return improve(analyse(task, arrays, options, whole), arrays, options)


def vectorise(
    found: SimdAnalysis,
    arrays: Mapping[str, LocalArray],
    options: SimdOptions,
    *,
    transposable: bool = False,
) -> SimdAnalysis:
    """Return how a task is done: one instruction where that is possible, else what costs least.

    ``found``: as of ``undecided``. A forced mode that fails by the shape of the instances gives loops, as it
    says. ``transposable``: arrays are taken to be in the order that suits each nest, which the layout of
    arrays then has to bring about.
    """
    if found.strategy is not Strategy.NONE or options.mode is SimdMode.OFF:
        return in_better_order(found, arrays, options) if transposable else found
    forced = options.mode is not SimdMode.AUTO and found.match is not None
    if forced or not all(is_linear(o.local) for o in found.operands):
        return found
    search = _Search(found, arrays, options, transposable)
    splits = sorted(search.splits(), key=lambda split: split.whole)
    ordered = [split for split in splits[:_MOST_ORDERED] if search.keeps_order(split)]
    attempts = ((split, search.analysed(split)) for split in ordered[:_MOST_ANALYSED])
    cost, best = next(((s.cycles, a) for s, a in attempts if a is not None), (search.loops(), found))
    if not options.has(Extension.REORDERED_SUMS):
        return best
    others = [s for s in splits[:_MOST_ORDERED] if s not in ordered and s.cycles <= _MUCH_CHEAPER * cost]
    reordered = (search.analysed(split) for split in others[:_MOST_ANALYSED])
    return next((attempt for attempt in reordered if attempt is not None), best)


def in_better_order(
    analysis: SimdAnalysis, arrays: Mapping[str, LocalArray], options: SimdOptions
) -> SimdAnalysis:
    """Return a single instruction with the dimension innermost along which it is fastest.

    Arrays are taken to lie contiguously along that one. Nothing changes where two points of the nest write
    one element, or where the sizes depend on the index.
    """
    alone = analysis.match is not None and not (analysis.steps or analysis.parts or analysis.whole)
    fixed = analysis.strategy in (Strategy.HULL, Strategy.EXACT) and analysis.sizing is Sizing.ONCE
    if not (alone and fixed and options.mode is SimdMode.AUTO and options.has(Extension.OUTER_LOOPS)):
        return analysis
    assert analysis.match is not None and analysis.sizes is not None
    extents = [high for _, high in integer_bounds(analysis.sizes)]
    plain = tuple(range(len(extents)))
    if not _shape(analysis, arrays, extents, plain, transposable=False).is_one_to_one:
        return analysis
    (step,) = steps_of(analysis)

    def cycles(order: tuple[int, ...]) -> int:
        shape = _shape(analysis, arrays, extents, order, transposable=True)
        return step_cycles(step, shape, analysis, options.machine)

    orders = [plain, *((*(j for j in plain if j != k), k) for k in plain if extents[k] > 1)]
    best = min(orders, key=cycles)
    if best == plain:
        return analysis
    effect = Effect(Extension.OUTER_LOOPS, _ANOTHER_ORDER)
    return replace(analysis, order=best, effects=(*analysis.effects, effect))


_ANOTHER_ORDER = "the dimensions are in another order"


@dataclass(frozen=True)
class _Split:
    """``outer``: dimensions of the compressed nest that are loops; ``inner``: the others, in order.

    ``cycles``: of a run; ``setup``: of what is done once before.
    """

    outer: tuple[int, ...]
    inner: tuple[int, ...]
    cycles: int
    setup: int

    @property
    def whole(self) -> int:
        """The cycles of a run alone and of what is done before it."""
        return self.cycles + self.setup


_SPLITS: dict[Hashable, tuple[_Split, ...]] = {}
"""What was found, by all that it depends on."""

_MOST_NESTS = 2_000
"""Nests of which that is kept; then it begins again."""


@dataclass(frozen=True, eq=False)
class _Search:
    analysis: SimdAnalysis
    arrays: Mapping[str, LocalArray]
    options: SimdOptions
    transposable: bool

    def splits(self) -> tuple[_Split, ...]:
        """Return the splits that are cheaper than loops alone, by the largest sizes of the nest.

        Maps that are compared differ little: most nests come up again and again.
        """
        extents = tuple(high for _, high in integer_bounds(self.analysis.box.size))
        key = self._all_that_costs_depend_on(extents)
        if key not in _SPLITS:
            if len(_SPLITS) >= _MOST_NESTS:
                _SPLITS.clear()
            _SPLITS[key] = tuple(self._splits(extents))
        return _SPLITS[key]

    def _all_that_costs_depend_on(self, extents: tuple[int, ...]) -> Hashable:
        statement, dims = self.analysis.task.statement, range(len(extents))
        work = work_at_point(statement)
        innermost = dims if self.transposable else ()
        return (
            (work, literals(work), statement.reduction, scalar_reads(self.analysis.task)),
            self.analysis.task.stream is None,
            tuple(o.position for o in self.analysis.operands),
            extents,
            self._strides,
            tuple(
                self.arrays[o.tensor].contiguous_along(o.columns, k).strides_along(o.columns)
                for o in self.analysis.operands
                for k in innermost
            ),
            self._free,
            self.options,
        )

    def _splits(self, extents: Sequence[int]) -> Iterator[_Split]:
        live = [k for k, extent in enumerate(extents) if extent > 1]
        if not live or len(live) > _MOST_DIMENSIONS:
            return
        limit = _GAIN * self._loops_alone(self.analysis, extents)
        most = len(live) - 1 if self.options.has(Extension.OUTER_LOOPS) else 0
        splits = [outer for count in range(most + 1) for outer in combinations(live, count)]
        plain = [(outer, self._split_cost(outer, _without(outer, extents), extents)) for outer in splits]
        plain.sort(key=lambda pair: pair[1].cycles if pair[1] is not None else 0)
        for number, (outer, split) in enumerate(plain):
            orders = self._orders(_without(outer, extents), live) if number < _MOST_REORDERED else ()
            others = (self._split_cost(outer, inner, extents) for inner in orders)
            yield from (found for found in (split, *others) if found is not None and found.cycles < limit)

    def _orders(self, inner: tuple[int, ...], live: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Yield the dimensions with each in turn innermost, and as an operand's strides fall."""
        orders: list[tuple[int, ...]] = []
        if self.options.has(Extension.OUTER_LOOPS):
            orders += [(*(j for j in inner if j != k), k) for k in inner if k in live]
            for strides in self._strides:
                orders.append(tuple(sorted(inner, key=lambda k: -abs(strides[k]))))
        yield from (order for order in dict.fromkeys(orders) if order != inner)

    @cached_property
    def _strides(self) -> tuple[tuple[int, ...], ...]:
        """The strides of each operand in its local array, in the dimensions of the nest."""
        operands = self.analysis.operands
        return tuple(self.arrays[o.tensor].strides_along(o.columns) for o in operands)

    def _split_cost(
        self, outer: tuple[int, ...], inner: tuple[int, ...], extents: Sequence[int]
    ) -> _Split | None:
        shape = _shape(self.analysis, self.arrays, extents, inner, transposable=self.transposable)
        plan = self.plan(self.analysis, shape)
        if plan is None:
            return None
        runs = prod(extents[k] for k in outer)
        fixed = self._fixed(self.analysis, shape)
        around = self._around(outer, extents, fixed, len(plan.steps))
        return _Split(outer, inner, runs * plan.cycles + around, self._setup(plan, shape, outer, fixed))

    def _setup(self, plan: Plan, shape: Shape, outer: tuple[int, ...], fixed: frozenset[int]) -> int:
        """Return what descriptors cost that are loaded before, and addresses that loops do not change.

        What is summed is set to zero before, but where one instruction's first run can begin the sum. A task
        of a stream runs for each element, beside which all that is little.
        """
        if self.analysis.task.stream is not None:
            return 0
        positions = memory_positions(plan.steps) - scalar_reads(self.analysis.task) - fixed
        operands = zip(self.analysis.operands, self._strides, strict=True)
        moving = {o.position for o, strides in operands if any(strides[k] for k in outer)}
        machine = self.options.machine
        before = len(positions) * machine.configure + len(positions - moving) * machine.set_base_address
        begins = len(plan.steps) == 1 and shape.is_one_to_one and self.options.has(Extension.FIRST_TERMS)
        sums = self.analysis.task.statement.reduction.operator is not None and not begins
        return before + sums * (machine.configure + machine.set_base_address + machine.simd_launch)

    def _around(
        self, outer: tuple[int, ...], extents: Sequence[int], fixed: frozenset[int], instructions: int
    ) -> int:
        """Return what loops cost beside the instructions in them, the innermost ones being unrolled.

        Where all of them are, addresses are numbers, those of the scalars too, which a plan counts in full.
        """
        machine, total, runs = self.options.machine, 0.0, 1
        scalars = scalar_reads(self.analysis.task) | fixed
        strides = [
            self._strides[n] for n, o in enumerate(self.analysis.operands) if o.position not in scalars
        ]
        straight = prod(extents[k] for k in outer) * instructions <= MOST_UNROLLED
        move = machine.set_base_address if straight else move_cycles(machine)
        for depth, k in enumerate(outer):
            runs *= extents[k]
            innermost = depth == len(outer) - 1
            copies = unrolled_copies(extents[k], instructions) if innermost else 1
            here = [s for s in strides if s[k] and not any(s[inner] for inner in outer[depth + 1 :])]
            iteration = 0 if straight else machine.loop_iteration / copies
            total += runs * (iteration + len(here) * move)
        known = len(fixed) * ADDRESS_OPERATIONS * machine.scalar_operation if straight and outer else 0
        return round(total - runs * known)

    def _loops_alone(self, analysis: SimdAnalysis, extents: Sequence[int]) -> int:
        shape = _shape(analysis, self.arrays, extents, range(len(extents)), transposable=False)
        return loop_cycles(work_at_point(analysis.task.statement), shape, self.options.machine)

    def plan(self, analysis: SimdAnalysis, shape: Shape) -> Plan | None:
        """Return the cheapest steps for a nest; None where they are not allowed, too deep or do not fit."""
        fixed = self._fixed(analysis, shape)
        plan = self._plans.plan(scalar_reads(analysis.task) | fixed, shape)
        several = len(plan.steps) > 1
        if plan.steps[-1].instruction is None and not several:
            return None
        if several and not self.options.has(Extension.SEVERAL_INSTRUCTIONS):
            return None
        sizes = [Number(size) for size in shape.sizes]
        if len(jointly_coalesced(sizes, list(shape.strides.values()))[0]) > MAX_DIMENSIONS:
            return None
        return plan if plan.temporary_bytes(shape.count) <= self._free else None

    @cached_property
    def _free(self) -> int:
        """The bytes of a PE's memory that no array takes."""
        return self.options.machine.memory_bytes - sum(array.bytes for array in self.arrays.values())

    @cached_property
    def _plans(self) -> Plans:
        approximate = self.options.has(Extension.VECTOR_FUNCTIONS)
        work = work_at_point(self.analysis.task.statement)
        return plans_of(work, self.options.machine, approximate=approximate)

    def _fixed(self, analysis: SimdAnalysis, shape: Shape) -> frozenset[int]:
        """Return the reads of local memory that are the same for all points of a nest."""
        if not self.options.has(Extension.FIXED_SCALARS):
            return frozenset()
        reads = (o.position for o in analysis.reads())
        return frozenset(p for p in reads if not any(_live_strides(shape, p)))

    def keeps_order(self, way: _Split) -> bool:
        """Whether what is added to an element is added in the order of the statement, where that matters."""
        order = (*way.outer, *way.inner)
        between = self._between_sums
        if between is None:
            return True
        moving = tuple(k for k in order if k not in self._still)
        if moving not in self._kept:
            source = ", ".join(f"i{k}" for k in range(len(order)))
            permuted = isl.Map(f"{{ [{source}] -> [{', '.join(f'i{k}' for k in order)}] }}")
            later = isl.Map.lex_lt(permuted.get_space().range()).deltas()
            in_order = moving == tuple(sorted(moving))
            self._kept[moving] = in_order or bool(between.apply(permuted).is_subset(later))
        return self._kept[moving]

    @cached_property
    def _kept(self) -> dict[tuple[int, ...], bool]:
        """Whether orders keep that of sums, by the dimensions that matter to it."""
        return {}

    @cached_property
    def _between_sums(self) -> isl.Set | None:
        """How far points are from earlier ones that write the same; None where their order changes no bits.

        Whether one point is before another one in some order of the dimensions depends on that alone.
        """
        statement = self.analysis.task.statement
        rounds = statement.write is not None and statement.expression.type.is_float
        if not rounds or statement.reduction not in (Combine.ADD, Combine.MULTIPLY):
            return None
        compressed = self.analysis.compression.compressed
        writes = isl.Map.from_multi_aff(self.analysis.write.compressed).intersect_domain(compressed)
        later = writes.apply_range(writes.reverse()).intersect(isl.Map.lex_lt(compressed.get_space()))
        return later.deltas()

    @cached_property
    def _still(self) -> frozenset[int]:
        """The dimensions in which such points agree."""
        between = self._between_sums
        assert between is not None
        dims = range(between.dim(_DIM.set))
        fixed = ((k, between.plain_get_val_if_fixed(_DIM.set, k)) for k in dims)
        return frozenset(k for k, value in fixed if value.is_zero())

    def loops(self) -> int:
        """Return what loops alone cost."""
        return self._loops_alone(self.analysis, [high for _, high in integer_bounds(self.analysis.box.size)])

    def analysed(self, way: _Split) -> SimdAnalysis | None:
        """Return the task done in a way; None where its shape or its cost speak against it."""
        inner, points, names = self.analysis, None, tuple(f"loop_{k}" for k in range(len(way.outer)))
        if way.outer:
            points, instances = _split(self.analysis, way.outer, names)
            task = replace(
                self.analysis.task, index_names=(*self.analysis.task.index_names, *names), instances=instances
            )
            inner = analyse(task, self.arrays, self.options)
        chosen = self._chosen(inner, way)
        if chosen is None or points is None:
            return chosen
        return replace(
            self.analysis,
            match=chosen.match,
            steps=chosen.steps,
            strategy=chosen.strategy,
            sizes=chosen.sizes,
            effects=chosen.effects,
            reason="",
            notes=(),
            nested=Nested(names, points, chosen),
        )

    def _chosen(self, inner: SimdAnalysis, way: _Split) -> SimdAnalysis | None:
        """Return what is inside the loops with its shape and its instructions."""
        if not _has_the_directions(inner, self.analysis, way):
            return None
        undecided = inner.strategy is Strategy.NONE
        shaped = choose_strategy(inner, self.arrays, self.options) if undecided else inner
        if shaped.strategy is Strategy.NONE or shaped.sizes is None:
            return None
        order = tuple(sorted(way.inner).index(k) for k in way.inner)
        extents = [high for _, high in integer_bounds(shaped.sizes)]
        shape = _shape(shaped, self.arrays, extents, order, transposable=self.transposable)
        plan = self.plan(shaped, shape)
        if plan is None or (shaped.strategy is Strategy.ENUMERATED and len(plan.steps) > 1):
            return None  # each operand of each step would take a descriptor for each size
        fixed = self._fixed(shaped, shape)
        return replace(
            shaped,
            match=_as_match(plan.steps),
            steps=plan.steps,
            fixed=fixed,
            order=() if order == tuple(range(len(order))) else order,
            reason="",
            notes=(),
            effects=(*shaped.effects, *self._effects(way, plan, fixed)),
        )

    def _effects(self, way: _Split, plan: Plan, fixed: frozenset[int]) -> Iterator[Effect]:
        steps = ", ".join(step.text for step in plan.steps)
        if way.outer or way.inner != tuple(sorted(way.inner)):
            loops = _ANOTHER_ORDER if not way.outer else _times(len(way.outer), "loop")
            yield Effect(Extension.OUTER_LOOPS, f"{loops} around {steps}" if way.outer else loops)
        if len(plan.steps) > 1:
            temporaries = _times(len(temporaries_of(plan.steps)), "temporary array")
            yield Effect(Extension.SEVERAL_INSTRUCTIONS, f"{steps}; {temporaries}")
        if plan.approximate:
            yield Effect(Extension.VECTOR_FUNCTIONS, f"within {'; '.join(plan.approximate)}")
        if not self.keeps_order(way):
            yield Effect(Extension.REORDERED_SUMS, "what is added to an element is added in another order")
        if fixed:
            reads = self.analysis.task.statement.reads
            names = ", ".join(reads[k].buffer for k in sorted(fixed))
            yield Effect(Extension.FIXED_SCALARS, f"scalars: {names}")


def _without(outer: tuple[int, ...], extents: Sequence[int]) -> tuple[int, ...]:
    return tuple(k for k in range(len(extents)) if k not in outer)


def _times(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _live_strides(shape: Shape, position: int) -> list[int]:
    return [s for s, size in zip(shape.of(position), shape.sizes, strict=True) if size > 1]


def _as_match(steps: tuple[Step, ...]) -> Match | None:
    """Return a single step as a match, as the paper has it."""
    if len(steps) > 1 or steps[0].instruction is None:
        return None
    return Match(steps[0].instruction, steps[0].operands)


def _shape(
    analysis: SimdAnalysis,
    arrays: Mapping[str, LocalArray],
    extents: Sequence[int],
    dims: Sequence[int],
    *,
    transposable: bool,
) -> Shape:
    """Return some dimensions of a compressed nest, in the given order, as instructions see them.

    ``transposable``: each array lies contiguously along the innermost dimension, where it can.
    """
    strides: dict[int, tuple[int, ...]] = {}
    live = [k for k in dims if extents[k] > 1]
    for operand in analysis.operands:
        array = arrays[operand.tensor]
        if transposable and live:
            array = array.contiguous_along(operand.columns, live[-1])
        flat = array.strides_along(operand.columns)
        strides[operand.position] = tuple(flat[k] for k in dims)
    return Shape(tuple(extents[k] for k in dims), strides)


def _split(analysis: SimdAnalysis, outer: Sequence[int], names: Sequence[str]) -> tuple[isl.Set, isl.Set]:
    """Return the values of the outer dimensions, and the instances at the values ``names``.

    ``{ S[b, i, j] }``, outer (0, 2): ``{ loop[b, j] }`` and ``[loop_0, loop_1] -> { S[loop_0, i, loop_1] }``.
    """
    compressed = analysis.compression.compressed
    dims = range(compressed.dim(_DIM.set))
    tuple_text = ", ".join(f"i{k}" for k in dims)
    chosen = ", ".join(f"i{k}" for k in outer)
    onto = isl.Map(f"{{ [{tuple_text}] -> loop[{chosen}] }}")
    equal = " and ".join(f"i{k} = {name}" for k, name in zip(outer, names, strict=True))
    here = isl.Set(f"[{', '.join(names)}] -> {{ [{tuple_text}] : {equal} }}")
    instances = compressed.intersect(here).apply(isl.Map.from_multi_aff(analysis.compression.map))
    return compressed.apply(onto).coalesce(), instances.coalesce()


def _has_the_directions(inner: SimdAnalysis, full: SimdAnalysis, way: _Split) -> bool:
    """Whether the inner nest's dimensions are those of the full one that are not loops, in order."""
    kept = [[row[k] for k in sorted(way.inner)] for row in coefficients(full.compression.map)]
    return kept == [list(row) for row in coefficients(inner.compression.map)]
