"""Which copy of an input a cache tile keeps in local memory: its axes, its extents, its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from polyloom.ir.types import ElementType
from polyloom.mdh.device.costs import PIECE
from polyloom.mdh.schedule.addresses import Access, Buffers, access_of
from polyloom.mdh.schedule.schedules import Memory
from polyloom.mdh.schedule.tiling import TileFacts


@dataclass(frozen=True, kw_only=True)
class CopyPlan:
    """The copy of one input's part of a cache tile.

    ``axes``: the buffer's axes in the copy's order; ``extents``, ``strides``: per buffer axis, of the copy;
    ``panel``: the dimension along which the last axis is cut, and their width; ``rest``: a panel's rows.
    """

    access: Access
    axes: tuple[int, ...]
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    elements: int
    panel: tuple[int, int] | None = None
    rest: int = 0

    @property
    def element(self) -> ElementType:
        """The type of the copy's elements."""
        kind = self.access.buffer.type
        return ElementType.FLOAT32 if kind is ElementType.FLOAT16 else kind

    @property
    def bytes(self) -> int:
        """What the copy takes in local memory."""
        return self.elements * self.element.size

    @property
    def row(self) -> int:
        """How many elements its last axis has, or that of a panel."""
        return self.extents[self.axes[-1]] if self.panel is None else self.panel[1]

    def has_whole_vectors(self, width: int) -> bool:
        """Whether all its rows begin where a vector does, if the first one does."""
        rows = (stride for size, stride in zip(self.extents, self.strides, strict=True) if size > 1)
        return all(stride == 1 or stride % width == 0 for stride in rows)


def copy_plan(facts: TileFacts, position: int, buffers: Buffers) -> CopyPlan | None:
    """Return the plan of an input's copy; None where it has none, or none is possible."""
    if facts.schedule.inputs[position].memory is not Memory.LOCAL:
        return None
    if position not in facts.plans:
        facts.plans[position] = _plan(facts, position, buffers)
    plan: CopyPlan | None = facts.plans[position]
    return plan


def _plan(facts: TileFacts, position: int, buffers: Buffers) -> CopyPlan | None:
    caching = facts.schedule.inputs[position]
    access = access_of(facts.hom.inputs[position], buffers, len(facts.hom.extents))
    if access is None or not access.steps:
        return None
    if position not in facts.inner:
        return None
    extents = _extents(facts, access)
    axes = caching.axes or tuple(range(len(access.steps)))
    if extents is None or sorted(axes) != list(range(len(access.steps))):
        return None
    if caching.panel:
        return _in_panels(facts, access, axes, extents)
    sizes = [extents[axis] for axis in axes]
    sizes[-1] += caching.padding
    strides = [0] * len(axes)
    for place, axis in enumerate(axes):
        strides[axis] = prod(sizes[place + 1 :])
    return CopyPlan(access=access, axes=axes, extents=extents, strides=tuple(strides), elements=prod(sizes))


def _extents(facts: TileFacts, access: Access) -> tuple[int, ...] | None:
    """Return the size of the box of elements that a cache tile reads; None where it is not known."""
    result = []
    for steps in access.steps:
        size = 1
        for d, step in enumerate(steps):
            length = facts.length(d)
            if step and length is None:
                return None
            size += abs(step) * ((length or 1) - 1)
        result.append(size)
    return tuple(result)


def _in_panels(
    facts: TileFacts, access: Access, axes: tuple[int, ...], extents: tuple[int, ...]
) -> CopyPlan | None:
    """Plan a copy whose last axis is cut into panels as wide as the register tile."""
    last = axes[-1]
    along = [d for d, step in enumerate(access.steps[last]) if step]
    if len(along) != 1 or access.steps[last][along[0]] != 1:
        return None
    (d,) = along
    if d not in facts.kept or any(access.steps[axis][d] for axis in axes[:-1]):
        return None
    width = facts.tile(d)
    sizes = [extents[axis] for axis in axes[:-1]]
    rest = prod(sizes)
    strides = [0] * len(axes)
    for place, axis in enumerate(axes[:-1]):
        strides[axis] = prod(sizes[place + 1 :]) * width
    strides[last] = 1
    panels = -(-extents[last] // width)
    return CopyPlan(
        access=access,
        axes=axes,
        extents=extents,
        strides=tuple(strides),
        elements=panels * rest * width,
        panel=(d, width),
        rest=rest,
    )


def local_bytes(facts: TileFacts, buffers: Buffers) -> int:
    """Return what all copies take in local memory, in all stages."""
    return facts.schedule.stages * sum(plan.bytes for plan in _plans(facts, buffers))


def fetched_values(facts: TileFacts, buffers: Buffers) -> int:
    """Return how many elements of the next cache tile's copies a work-item holds in registers."""
    if not facts.staged:
        return 0
    return sum(-(-prod(plan.extents) // facts.total_items) for plan in _plans(facts, buffers))


def _plans(facts: TileFacts, buffers: Buffers) -> list[CopyPlan]:
    copied = (k for k, caching in enumerate(facts.schedule.inputs) if caching.memory is Memory.LOCAL)
    plans = (copy_plan(facts, k, buffers) for k in copied)
    return [plan for plan in plans if plan is not None]


def is_turned(plan: CopyPlan) -> bool:
    """Whether neighbours in the copy are no neighbours in the buffer."""
    whole = plan.access.buffer.type is not ElementType.FLOAT16
    return whole and len(plan.axes) > 1 and plan.axes[-1] != len(plan.axes) - 1


def turned_sides(plan: CopyPlan, width: int) -> tuple[int, ...]:
    """Return the sides of blocks of a turned copy, of vectors of at most ``width``, the largest first.

    The last axis of the copy, or of a panel, is cut into them from its start on; a few elements may be left.
    """
    sides = []
    while width > 1 and width * plan.access.buffer.type.size >= PIECE:
        sides += [width] if width <= plan.row else []
        width //= 2
    return tuple(sides)


def turned_share(plan: CopyPlan, width: int) -> float:
    """Return the part of a turned copy that lies in blocks."""
    left = plan.row
    for side in turned_sides(plan, width):
        left %= side
    return 1 - left / plan.row
