"""The loops of a scheduled md_hom in numbers, for the cost model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod
from typing import Any

from polyloom.ir.expressions import Binary, BinaryOp, Expression, instructions, varying_parts
from polyloom.ir.host import MdHom, Order
from polyloom.mdh.schedule.addresses import Access, Buffers, access_of, inner_reads
from polyloom.mdh.schedule.copy_plan import CopyPlan, copy_plan
from polyloom.mdh.schedule.cost.guarded import Guarded, Shares
from polyloom.mdh.schedule.risks import risky_reads
from polyloom.mdh.schedule.schedules import Sizes
from polyloom.mdh.schedule.tiling import TileFacts
from polyloom.polyhedra.loops.tree import IntExpression, Number, Operation, sum_of

UNKNOWN = 256
"""What an extent that is known only at launch is taken for."""


@dataclass(frozen=True, eq=False)
class Reads:
    """What an md_hom reads and writes, whatever its schedule."""

    hom: MdHom
    buffers: Buffers

    @cached_property
    def inputs(self) -> tuple[Access | None, ...]:
        """The inputs' accesses; None where an address is computed or an element may not be there."""
        found = (access_of(view, self.buffers, len(self.hom.extents)) for view in self.hom.inputs)
        risky = risky_reads(self.hom, self.buffers)
        return tuple(None if k in risky else access for k, access in enumerate(found))

    @cached_property
    def inner(self) -> frozenset[int]:
        """The inputs that are read at every point, not at kept points alone."""
        return inner_reads(self.hom)

    @cached_property
    def neighbours(self) -> tuple[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]], ...]:
        """Inputs, read at every point, that differ in where they begin; how far from the first, each axis."""
        alike = dict[object, list[tuple[int, Access]]]()
        for k in sorted(self.inner):
            access = self.inputs[k]
            if access is not None:
                alike.setdefault((access.buffer.name, access.steps), []).append((k, access))
        found = []
        for group in alike.values():
            far = [(k, offsets) for k, a in group if (offsets := _behind(a, group[0][1])) is not None]
            if len(far) > 1:
                found.append((tuple(k for k, _ in far), tuple(offsets for _, offsets in far)))
        return tuple(found)

    @cached_property
    def outputs(self) -> tuple[Access | None, ...]:
        """The outputs' accesses; None where an address is computed."""
        return tuple(access_of(view, self.buffers, len(self.hom.extents)) for view in self.hom.outputs)

    @cached_property
    def widest(self) -> int:
        """The bytes of the widest value on the way to a result."""
        parts = (part.type.size for term in self.hom.terms for part in varying_parts(term))
        return max(parts, default=max(term.type.size for term in self.hom.terms))

    @cached_property
    def work(self) -> Work:
        """What is computed at a point."""
        combiner = next((o.combiner for o in self.hom.combine if o.order is Order.POINTWISE), None)
        terms = sum(map(instructions, self.hom.terms))
        if combiner is None:
            return Work(terms)
        is_fused = len(self.hom.terms) == 1 and _is_product(self.hom.terms[0])
        return Work(
            terms, sum(map(instructions, combiner.results)), is_fused and _is_sum(combiner.results[0])
        )

    def guarded(self, extents: Sizes) -> Guarded:
        """Return the points under the conditions; ``extents``: per dimension, as if all were known."""
        if "guarded" not in self.known:
            self.known["guarded"] = Guarded(self.hom, extents)
        found: Guarded = self.known["guarded"]
        return found

    @cached_property
    def known(self) -> dict[object, Any]:
        """What was found out under one schedule and holds under others."""
        return {}


@dataclass(frozen=True)
class Work:
    """Instructions of the scalar function, and of the combination (None: there is none), reads not counted.

    ``is_fused``: it is one product and its sum, which are one instruction.
    """

    terms: float
    combining: float | None = None
    is_fused: bool = False


@dataclass(frozen=True)
class LoopSizes:
    """Extents, tiles, trips and accesses under a schedule.

    ``has_tiles``: whether its vectors are register tiles of ours; else those of a loop of the C compiler's.
    """

    facts: TileFacts
    reads: Reads
    has_tiles: bool = True

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """Points per dimension, at least one."""
        found = (self.facts.extent(d) for d in range(len(self.facts.hom.extents)))
        pairs = zip(found, self.facts.hom.extents, strict=True)
        return tuple(likely(extent) if n is None else max(n, 1) for n, extent in pairs)

    def groups(self, d: int) -> int:
        """Return how many work-groups there are along a dimension."""
        size = self.facts.schedule.group[d]
        return ceil(self.extents[d] / size) if size else 1

    @cached_property
    def all_groups(self) -> int:
        """How many work-groups there are."""
        return prod(self.groups(d) for d in range(len(self.extents)))

    def covered(self, d: int) -> int:
        """Return how many points a work-group covers."""
        size = self.facts.schedule.group[d]
        return min(self.extents[d], size) if size else self.extents[d]

    def length(self, d: int) -> int:
        """Return how many points a cache tile has."""
        return self._lengths[d]

    @cached_property
    def _lengths(self) -> tuple[int, ...]:
        local, is_tiled = self.facts.schedule.local, self.facts.is_tiled
        covered = map(self.covered, range(len(local)))
        return tuple([min(local[d], n) if is_tiled(d) else n for d, n in enumerate(covered)])

    def tile(self, d: int) -> int:
        """Return how many points a step has along a dimension: a register tile, where it is kept."""
        return min(self.facts.width(d) * self.private(d), self.length(d))

    @cached_property
    def element(self) -> int:
        """The bytes of the largest value that is computed."""
        return max(term.type.size for term in self.facts.hom.terms)

    @cached_property
    def inner(self) -> list[tuple[int, Access | None]]:
        """The accesses of every point; the others are of the results."""
        return [(k, access) for k, access in enumerate(self.reads.inputs) if k in self.reads.inner]

    def plan(self, k: int) -> CopyPlan | None:
        """Return the copy that an input is read from."""
        return self._plans[k]

    @cached_property
    def _plans(self) -> tuple[CopyPlan | None, ...]:
        return tuple(copy_plan(self.facts, k, self.reads.buffers) for k in range(len(self.reads.inputs)))

    # Register tiles

    @cached_property
    def points(self) -> int:
        """Scalar function evaluations, vectors counted once, of a step."""
        return prod(self._private)

    def private(self, d: int) -> int:
        """Return how many points, vectors counted once, a step has along a dimension.

        What is written out around a loop of the reduction has loops of its own: they are steps, too.
        """
        return self._private[d]

    @cached_property
    def _private(self) -> tuple[int, ...]:
        facts = self.facts
        pairs = enumerate(zip(facts.schedule.private, self._lengths, strict=True))
        found = [max(1, min(n, ceil(length / facts.width(d)))) for d, (n, length) in pairs]
        reduced = [d for d in facts.schedule.private_order if d in facts.reduced]
        looped = [k for k, d in enumerate(reduced) if self._lengths[d] > found[d] * facts.width(d)]
        for d in reduced[: looped[-1]] if looped else ():
            found[d] = 1
        return tuple(found)

    @cached_property
    def totals(self) -> int:
        """Values that a register tile keeps."""
        return prod(self.private(d) for d in self.facts.kept) * len(self.facts.hom.outputs)

    @cached_property
    def accumulators(self) -> int:
        """Values that its loops add to: vectors along a sum have totals of their own, one for each."""
        apart = self.facts.apart
        return self.totals * (1 if apart is None else self.private(apart))

    # Conditions

    def shares(self, box: Sizes) -> Shares:
        """Return the parts of boxes of points that the conditions leave."""
        return self.reads.guarded(self.extents).shares(box)

    @cached_property
    def is_tested(self) -> bool:
        """Whether a condition is asked at each point: others are bounds of loops."""
        if self.facts.hom.guard is None:
            return False
        return self.facts.total_items > 1 or self.reads.guarded(self.extents).is_tested(self._nested)

    @cached_property
    def lanes_are_apart(self) -> bool:
        """Whether conditions cut steps lane by lane: a loop in a vector's differs between lanes."""
        d = self.facts.schedule.vector
        return d is not None and self.reads.guarded(self.extents).is_apart(self._nested, d)

    @property
    def _nested(self) -> list[int]:
        """The dimensions as their loops stand in each other."""
        order = self.facts.schedule.private_order
        return [*(d for d in order if d in self.facts.kept), *(d for d in order if d in self.facts.reduced)]

    @property
    def of_steps(self) -> Shares:
        """The parts of the steps; loops of the reduction begin at their bounds."""
        kept = self.facts.kept
        return self.shares(tuple([self.tile(d) if d in kept else 1 for d in range(len(self.extents))]))

    @property
    def of_tiles(self) -> float:
        """The part of the register tiles with results."""
        kept = self.facts.kept
        return self.shares(tuple([self.tile(d) if d in kept else n for d, n in enumerate(self.extents)])).some

    # Loops

    @cached_property
    def loops(self) -> tuple[tuple[int, int, int], ...]:
        """The loops, outermost first: dimension, trips, points of the dimension inside one trip."""
        schedule, found = self.facts.schedule, []
        for d in schedule.group_order:
            found.append((d, self.groups(d), self.covered(d)))
        for d in self.facts.tiled_order:
            found.append((d, ceil(self.covered(d) / self.length(d)), self.length(d)))
        kept = [d for d in schedule.private_order if d in self.facts.kept]
        reduced = [d for d in schedule.private_order if d in self.facts.reduced]
        for d in (*kept, *reduced):
            found.append((d, ceil(self.length(d) / self.tile(d)), self.tile(d)))
        return tuple(loop for loop in found if loop[1] > 1)

    @cached_property
    def steps(self) -> float:
        """How often the innermost step runs in all."""
        return float(prod(trips for _, trips, _ in self.loops))

    @cached_property
    def tiles(self) -> float:
        """How many register tiles there are."""
        count = prod(trips for d, trips, _ in self.loops if d in self.facts.kept)
        count *= prod(self.groups(d) for d in self.facts.reduced)
        if self.facts.waits:
            count *= prod(ceil(self.covered(d) / self.length(d)) for d in self.facts.reduced)
        return float(count)

    @cached_property
    def insides(self) -> tuple[Sizes, ...]:
        """Points per dimension inside the outermost loops: inside none of them, one, two, ..., all."""
        sizes, found = list(self.extents), [tuple(self.extents)]
        for d, _, inner in self.loops:
            sizes[d] = min(sizes[d], inner)
            found.append(tuple(sizes))
        return tuple(found)


def _behind(access: Access, first: Access) -> tuple[int, ...] | None:
    """Return how far an access is behind another one along each axis; None where that is no number."""
    pairs = zip(access.offsets, first.offsets, strict=True)
    found = [sum_of([(1, mine), (-1, other)]) for mine, other in pairs]
    numbers = [far.value for far in found if isinstance(far, Number)]
    return tuple(numbers) if len(numbers) == len(found) else None


def likely(extent: IntExpression) -> int:
    """Return what an extent that is not known is taken for: no more than a number that it is bounded by."""
    match extent:
        case Operation(operator="min", operands=operands):
            return max(1, min(likely(part) for part in operands))
        case Number(value=value):
            return value
        case _:
            return UNKNOWN


def _is_product(expression: Expression) -> bool:
    return isinstance(expression, Binary) and expression.op is BinaryOp.MULTIPLY and expression.type.is_float


def _is_sum(expression: Expression) -> bool:
    return isinstance(expression, Binary) and expression.op is BinaryOp.ADD
