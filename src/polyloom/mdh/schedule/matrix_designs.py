"""Schedules of products for matrix units: how many blocks a warp has, and how many warps and steps a group.

    4 x 2 warps of 2 x 4 blocks, 32 steps: a group has 128 x 128 sums, and copies of 128 x 32 elements

Source: the usual form of CUDA's libraries (CUTLASS: Efficient GEMM in CUDA). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from random import Random

from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.schedule.addresses import Buffers, access_of
from polyloom.mdh.schedule.matrix_units import COPY_PADDING, Product, has_units, product_of
from polyloom.mdh.schedule.schedules import Caching, Memory, Schedule
from polyloom.mdh.schedule.tiling import TileFacts
from polyloom.mdh.tree.matrix.steps import SIDE

BLOCKS = ((4, 4), (2, 4), (4, 2), (2, 2), (1, 4), (4, 1), (1, 2), (2, 1), (1, 1))
WARPS = ((2, 2), (4, 2), (2, 4), (1, 4), (4, 1), (1, 2), (2, 1), (1, 1))
"""Blocks of a warp and warps of a group, along rows and columns."""

DEPTHS = (64, 32, 16)
"""Steps of which both factors are copied at a time: those that divide all steps."""

PADDINGS = (COPY_PADDING, 0)


@dataclass(frozen=True)
class Form:
    """How a product is divided, by rows and columns: ``blocks`` of a warp, ``warps`` of a group."""

    matrix: tuple[int, int, int]
    blocks: tuple[int, int] = (1, 1)
    warps: tuple[int, int] = (1, 1)
    depth: int = SIDE
    padding: int = COPY_PADDING

    def schedule(self, plain: Schedule, facts: TileFacts, found: Product) -> Schedule:
        """Return the schedule, of the md_hom that is such a product; ``plain``: that without decisions."""
        count = len(plain.group)
        group, items, private = [int(d in facts.kept) for d in range(count)], [1] * count, [1] * count
        for d, blocks, warps in zip(self.matrix[:2], self.blocks, self.warps, strict=True):
            private[d], items[d], group[d] = SIDE * blocks, warps, SIDE * blocks * warps
        local = tuple(self.depth if d == self.matrix[2] else 0 for d in range(count))
        copy, factors = Caching(Memory.LOCAL, (), self.padding, False), (found.first, found.second)
        return replace(
            plain,
            group=tuple(group),
            items=tuple(items),
            local=local,
            private=tuple(private),
            inputs=tuple(copy if k in factors else Caching() for k in range(len(plain.inputs))),
            matrix=self.matrix,
        )


@dataclass(frozen=True)
class MatrixForms:
    """The forms of a product's schedules; ``matrix``: its rows, columns and steps."""

    plain: Schedule
    facts: TileFacts
    found: Product
    matrix: tuple[int, int, int]

    def usual(self) -> Iterator[Schedule]:
        """Yield schedules of the usual forms, not all of them legal: no group of much more than there is."""
        rows, columns, _ = self.matrix
        for warps, blocks, depth in product(WARPS, BLOCKS, self._depths):
            if self._fits(rows, warps[0] * blocks[0]) and self._fits(columns, warps[1] * blocks[1]):
                yield self._made(Form(self.matrix, blocks, warps, depth))

    def sample(self, rng: Random) -> Schedule:
        """Return one at random, perhaps not legal."""
        blocks, warps = rng.choice(BLOCKS), rng.choice(WARPS)
        depth, padding = rng.choice(self._depths), rng.choice(PADDINGS)
        return self._made(Form(self.matrix, blocks, warps, depth=depth, padding=padding))

    def _made(self, form: Form) -> Schedule:
        return form.schedule(self.plain, self.facts, self.found)

    def _fits(self, d: int, blocks: int) -> bool:
        """Whether so many blocks are less than twice as many as there are, or a single one."""
        return blocks == 1 or SIDE * blocks < 2 * (self.facts.extent(d) or 0)

    @property
    def _depths(self) -> tuple[int, ...]:
        extent = self.facts.extent(self.matrix[2]) or 0
        return tuple(n for n in DEPTHS if extent % n == 0)


def matrix_forms(
    plain: Schedule, facts: TileFacts, buffers: Buffers, device: DeviceModel
) -> MatrixForms | None:
    """Return the forms of an md_hom's schedules for matrix units; None where it can have none."""
    found = product_of(facts.of_hom, buffers) if has_units(device) else None
    matrix = None if found is None else _matrix(facts, buffers, found)
    return None if found is None or matrix is None else MatrixForms(plain, facts, found, matrix)


def _matrix(facts: TileFacts, buffers: Buffers, found: Product) -> tuple[int, int, int] | None:
    """Return rows, columns and steps: the largest dimensions of each kind.

    Results lie together along columns, where they do along rows or columns at all.
    """
    steps = [d for d in found.steps if (facts.extent(d) or 0) % SIDE == 0]
    if not steps or not found.of_first or not found.of_second:
        return None

    def size(d: int) -> int:
        return facts.extent(d) or 0

    stored = access_of(facts.hom.outputs[0], buffers, len(facts.hom.extents))
    along = [d for d in (*found.of_first, *found.of_second) if stored is not None and stored.is_unit(d)]
    rows, columns = max(found.of_first, key=size), max(found.of_second, key=size)
    if along and along[0] in found.of_first:
        rows, columns = columns, along[0]
    elif along:
        columns = along[0]
    return rows, columns, max(steps, key=size)
