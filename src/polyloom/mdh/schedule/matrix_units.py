"""Which md_homs are products of halves that matrix units can do, and which schedules of theirs let them.

    C[b, i, j] = sum over r, k of float32(A[b, i, r, k]) * float32(B[b, j, r, k])

Two inputs of float16 are multiplied and summed in float32. A kept dimension of one input alone are the rows
(``i``), one of the other alone the columns (``j``), a reduced one of both the steps (``k``); any others may
be there, too (``b``, ``r``): a convolution is such a product for each point of its window. A matrix unit
needs blocks of 16 rows, columns and steps. Rows and columns beside the last whole block are zeros in the
copies that it works on; steps are not: their number is a multiple of 16.

``Schedule.matrix`` names rows, columns and steps. Then ``private`` are the rows and columns of a warp, of
which ``items`` share a group, and ``local`` the steps of which both inputs are copied at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from polyloom.ir.expressions import Binary, BinaryOp, Convert, Expression, Read
from polyloom.ir.host import MdHom
from polyloom.ir.types import ElementType
from polyloom.mdh.device.devices import CUDA, DeviceModel
from polyloom.mdh.schedule.addresses import Access, Buffers, access_of
from polyloom.mdh.schedule.risks import exists
from polyloom.mdh.schedule.schedules import Caching, Memory
from polyloom.mdh.schedule.tiling import HomFacts, TileFacts
from polyloom.mdh.tree.matrix.steps import FACTOR, LANES, SIDE, SUM

MOST_BLOCKS = 16
"""Blocks of sums of a warp: each takes 8 registers of a thread, of 255."""

MOST_SIDE = 8
"""Blocks of a warp along rows or columns: a step has so many factors in registers, 8 for each block."""

COPY_PADDING = 8
"""Halves by whose multiples the rows of copies may grow: a unit loads pieces of 16 bytes."""

SUM_PADDING = 4
"""Sums between rows of blocks that a warp leaves for its lanes, so that rows lie in different banks."""


@dataclass(frozen=True)
class Product:
    """Inputs that are multiplied, ``first`` and ``second``, and the dimensions that each of them alone keeps.

    ``steps``: reduced dimensions of both.
    """

    first: int
    second: int
    of_first: tuple[int, ...]
    of_second: tuple[int, ...]
    steps: tuple[int, ...]

    def sides(self, rows: int, columns: int) -> tuple[int, int] | None:
        """Return the inputs that have rows and columns, if these are such."""
        if rows in self.of_first and columns in self.of_second:
            return self.first, self.second
        if rows in self.of_second and columns in self.of_first:
            return self.second, self.first
        return None


def product_of(facts: HomFacts, buffers: Buffers) -> Product | None:
    """Return an md_hom as a product of halves; None where it is none, or may read what does not exist."""
    known = facts.known
    if "product" not in known:
        known["product"] = _product(facts, buffers)
    found: Product | None = known["product"]
    return found


def _product(facts: HomFacts, buffers: Buffers) -> Product | None:
    hom = facts.hom
    inputs = _factors(hom)
    if inputs is None or hom.guard is not None or hom.written is not None or None in facts.extents:
        return None
    if not _is_sum(facts) or 0 in facts.extents:
        return None
    accesses = [access_of(hom.inputs[k], buffers, len(hom.extents)) for k in inputs]
    stored = {view.buffer for view in hom.outputs}
    for k, access in zip(inputs, accesses, strict=True):
        if access is None or hom.inputs[k].buffer in stored or not exists(hom, k, buffers):
            return None
    first, second = (access for access in accesses if access is not None)
    return Product(
        first=inputs[0],
        second=inputs[1],
        of_first=tuple(d for d in facts.kept if first.uses(d) and not second.uses(d)),
        of_second=tuple(d for d in facts.kept if second.uses(d) and not first.uses(d)),
        steps=tuple(d for d in facts.reduced if first.uses(d) and second.uses(d)),
    )


def _factors(hom: MdHom) -> tuple[int, int] | None:
    """Return the inputs of which halves are multiplied as float32."""
    match hom.terms:
        case (Binary(op=BinaryOp.MULTIPLY, left=left, right=right),):
            first, second = _half(left), _half(right)
            if first is not None and second is not None and first != second:
                return first, second
    return None


def _half(expression: Expression) -> int | None:
    match expression:
        case Convert(type=ElementType.FLOAT32, operand=Read(position=k, type=ElementType.FLOAT16)):
            return k
        case _:
            return None


def _is_sum(facts: HomFacts) -> bool:
    """Whether terms are added up from 0 on."""
    combiner = facts.combiner
    sums = Binary(BinaryOp.ADD, Read(0, SUM), Read(1, SUM))
    return combiner is not None and combiner.results == (sums,) and combiner.neutral == (0,)


# A schedule


@dataclass(frozen=True)
class Side:
    """A factor of a product: its ``input``, the dimension of its ``points``, and its copy of a cache tile.

    ``turned``: rows of the copy have neighbouring points, not steps. ``width``: elements that lie together in
    the buffer, too, and are there or not together.
    """

    input: int
    access: Access
    points: int
    turned: bool
    width: int
    shape: tuple[int, int]

    @property
    def elements(self) -> int:
        """What the copy has, with padding."""
        return prod(self.shape)


def sides_of(facts: TileFacts, buffers: Buffers) -> tuple[Side, Side]:
    """Return the rows' and the columns' factor under a legal schedule with ``matrix``."""
    found = _sides(facts, buffers)
    assert found is not None
    return found


def _sides(facts: TileFacts, buffers: Buffers) -> tuple[Side, Side] | None:
    product = product_of(facts.of_hom, buffers)
    rows, columns, steps = facts.schedule.matrix
    inputs = None if product is None or steps not in product.steps else product.sides(rows, columns)
    if inputs is None:
        return None
    return _side(facts, buffers, inputs[0], rows), _side(facts, buffers, inputs[1], columns)


def _side(facts: TileFacts, buffers: Buffers, k: int, points: int) -> Side:
    access = access_of(facts.hom.inputs[k], buffers, len(facts.hom.extents))
    assert access is not None
    steps = facts.schedule.matrix[2]
    turned = access.is_unit(points) and not access.is_unit(steps)
    along = points if turned else steps
    together = access.is_unit(along)
    extent = facts.extent(along) or 1
    width = next(w for w in (8, 4, 2, 1) if w == 1 or (together and extent % w == 0))
    size = facts.schedule.group[points], facts.schedule.local[steps]
    outer, inner = reversed(size) if turned else size
    shape = outer, inner + facts.schedule.inputs[k].padding
    return Side(input=k, access=access, points=points, turned=turned, width=width, shape=shape)


def matrix_bytes(facts: TileFacts, buffers: Buffers) -> int:
    """Return what copies and the sums that warps leave for their lanes take of a group's memory."""
    copies = sum(side.elements for side in sides_of(facts, buffers)) * FACTOR.size
    _, columns, _ = facts.schedule.matrix
    sums = SIDE * (facts.schedule.private[columns] + SUM_PADDING) * SUM.size
    return copies + prod(facts.schedule.items) * sums


def has_units(device: DeviceModel) -> bool:
    """Whether a device has matrix units that programs may use."""
    return device.matrix_products > 0 and device.platform == CUDA and device.lanes == LANES


def matrix_problems(facts: TileFacts, buffers: Buffers, device: DeviceModel) -> Iterator[str]:
    """Yield why a schedule with ``matrix`` cannot be."""
    matrix = facts.schedule.matrix
    if len(matrix) != 3 or len(set(matrix)) != 3 or not set(matrix) <= set(range(len(facts.hom.extents))):
        yield "a matrix unit has rows, columns and steps"
    elif not has_units(device):
        yield "the device has no matrix units, or its sums are not to be rounded by them"
    elif (sides := _sides(facts, buffers)) is None:
        yield "no product of float16 of such rows, columns and steps, of known size, is summed in float32"
    else:
        yield from _sizes(facts)
        yield from _whole(facts, (sides[0].input, sides[1].input))
        if next(_sizes(facts), None) is None:
            yield from _room(facts, buffers, device)


def _sizes(facts: TileFacts) -> Iterator[str]:
    """Yield what is wrong with the sizes of blocks."""
    schedule, (rows, columns, steps) = facts.schedule, facts.schedule.matrix
    for d in (rows, columns):
        name = facts.hom.iterators[d]
        if schedule.private[d] % SIDE:
            yield f"`{name}`: a warp has whole blocks of {SIDE} points"
        elif schedule.group[d] != schedule.private[d] * schedule.items[d]:
            yield f"`{name}`: a group has the points of its warps"
        elif schedule.private[d] > MOST_SIDE * SIDE:
            yield f"`{name}`: a warp has at most {MOST_SIDE} blocks along a dimension"
    if schedule.private[rows] * schedule.private[columns] > MOST_BLOCKS * SIDE * SIDE:
        yield f"a warp has at most {MOST_BLOCKS} blocks of sums"
    name, extent, local = facts.hom.iterators[steps], facts.extent(steps) or 0, schedule.local[steps]
    if local < 1 or local % SIDE or extent % local:
        yield f"`{name}`: copies have whole blocks of {SIDE} steps, which divide all {extent} steps"


def _whole(facts: TileFacts, copied: tuple[int, int]) -> Iterator[str]:
    """Yield what a schedule says besides, where a unit leaves no choice."""
    schedule, (rows, columns, steps) = facts.schedule, facts.schedule.matrix
    for d, name in enumerate(facts.hom.iterators):
        tiled = d in (rows, columns)
        group = 1 if d in facts.kept else 0
        if not tiled and (schedule.items[d], schedule.private[d], schedule.group[d]) != (1, 1, group):
            yield f"`{name}`: a group of warps has one point of each dimension but rows, columns and steps"
        if d != steps and schedule.local[d]:
            yield f"`{name}`: cache tiles are of steps alone"
    if schedule.vector is not None or schedule.follow is not None or schedule.streaming:
        yield "a matrix unit has no vectors, follows no input and does not bypass caches"
    if any(schedule.strided) or schedule.stages != 1:
        yield "a matrix unit's points lie together, and its copies have one stage"
    for k, caching in enumerate(schedule.inputs):
        name = facts.hom.inputs[k].buffer
        if k not in copied and caching != Caching():
            yield f"`{name}`: only factors are copied for a matrix unit"
        if k in copied and (caching.memory is not Memory.LOCAL or caching.axes or caching.panel):
            yield f"`{name}`: a matrix unit works on copies, as they are laid out for it"
        if k in copied and (caching.padding < 0 or caching.padding % COPY_PADDING):
            yield f"`{name}`: rows of copies for a matrix unit grow by multiples of {COPY_PADDING}"


def _room(facts: TileFacts, buffers: Buffers, device: DeviceModel) -> Iterator[str]:
    items, most = facts.total_items, min(device.max_group_size, *device.max_item_sizes[:1])
    if items > most:
        yield f"{items} work-items in a group, the device has {most}"
    used = matrix_bytes(facts, buffers)
    if used > device.local_memory:
        yield f"{used} bytes of local memory, the device has {device.local_memory}"
