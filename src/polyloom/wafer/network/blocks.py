"""A stage with the exchanges around it: a block that is placed as a whole.

    a a . d d d d . .      a: columns in which streams reach rows; d: distributors of a north side
    a a w L L L L e .      L: the stage; w, e: exchanges of its west and east side
    a a w L L L L e .
    a a . c c c c . .      c: collectors of its south side

An exchange lies in front of each port, in the port's row or column. Where several tensors pass one side,
their lines lie one behind the other; the outer ones reach the ports through the routers of the inner ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from polyloom.polyhedra.bounds import integer_bounds
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.network.graph import Stage
from polyloom.wafer.placement.choose import Choice
from polyloom.wafer.program.port_groups import PortGroup
from polyloom.wafer.program.wafer_program import WaferProgram

ACROSS = (Side.NORTH, Side.SOUTH)
"""Sides whose lines of exchanges are rows."""


@dataclass(frozen=True, eq=False)
class Placed:
    """A stage that was compiled for a rectangle of its own. ``estimate``: cycles of a sample."""

    stage: Stage
    choice: Choice
    program: WaferProgram
    estimate: float

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        grid = self.program.analysis.border.given.grid
        return grid.width, grid.height


@dataclass(frozen=True, eq=False, kw_only=True)
class Line:
    """The exchanges of one tensor on one side of a stage.

    ``depth``: how far from the stage, from 1; ``low`` and ``high``: the first and last port's position;
    ``access``: for rows, the number of the column on which the stream comes or goes.
    """

    name: str
    stage: str
    inward: bool
    group: PortGroup
    depth: int
    low: int
    high: int
    access: int

    @property
    def side(self) -> Side:
        """The side of the stage."""
        return self.group.side

    @property
    def is_row(self) -> bool:
        """Whether its exchanges lie side by side from west to east."""
        return self.side in ACROSS


@dataclass(frozen=True, eq=False)
class Block:
    """A stage and its lines. ``depths``: of lines on each side; ``columns``: of access."""

    placed: Placed
    lines: tuple[Line, ...]
    depths: dict[Side, int]
    columns: int

    @property
    def width(self) -> int:
        """Columns of the whole block."""
        return self.columns + self.depths[Side.WEST] + self.placed.size[0] + self.depths[Side.EAST]

    @property
    def height(self) -> int:
        """Rows of the whole block."""
        return self.depths[Side.NORTH] + self.placed.size[1] + self.depths[Side.SOUTH]

    @property
    def corner(self) -> tuple[int, int]:
        """Where the stage's PE (0, 0) is in the block."""
        return self.columns + self.depths[Side.WEST], self.depths[Side.NORTH]

    def line(self, tensor: str) -> Line:
        """Return the line of a tensor of the stage; there is one."""
        return next(line for line in self.lines if line.group.tensor == tensor)


def block_of(placed: Placed) -> Block:
    """Return a stage with a line for each tensor that comes or goes."""
    depth: Counter[Side] = Counter()
    lines: list[Line] = []
    columns = 0
    groups = [(g, True) for g in placed.program.inputs] + [(g, False) for g in placed.program.outputs]
    for group, inward in groups:
        depth[group.side] += 1
        low, high = _extent(group)
        verb = "distribute" if inward else "collect"
        lines.append(
            Line(
                name=f"{placed.stage.name}_{verb}_{group.tensor}",
                stage=placed.stage.name,
                inward=inward,
                group=group,
                depth=depth[group.side],
                low=low,
                high=high,
                access=columns,
            )
        )
        columns += group.side in ACROSS
    return Block(placed, tuple(lines), {side: depth[side] for side in Side}, columns)


def doubly_ported(placed: Placed) -> Iterator[str]:
    """Yield tensors that pass several sides of a stage, or several adapters: no block is made of those."""
    for groups in (placed.program.inputs, placed.program.outputs):
        yield from (tensor for tensor, n in Counter(g.tensor for g in groups).items() if n > 1)


def _extent(group: PortGroup) -> tuple[int, int]:
    bounds = integer_bounds(group.ports.range())
    return bounds[0 if group.side in ACROSS else 1]
