"""What each PE of the rectangle has: its role, memory and routes; and which PEs are worth a time line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import islpy as isl
import numpy as np
import numpy.typing as npt

from polyloom.polyhedra.vectorized import Truths, contains
from polyloom.wafer.program.wafer_program import WaferProgram

Integers = npt.NDArray[np.int64]
Pe = tuple[int, int]
"""The coordinates (x, y) of a PE of the given rectangle."""

WATCH_ALL = 64
"""On rectangles of at most so many PEs every PE has a time line."""

NO_ROLE = -1


@dataclass(frozen=True, eq=False)
class RouteGrid:
    """On the PEs where ``on``, bool[height, width], wavelets of ``color`` come from ``source`` and go to
    ``targets`` (sides or ``ramp``).
    """

    color: int
    source: str
    targets: tuple[str, ...]
    on: Truths


def role_grid(program: WaferProgram) -> Integers:
    """Return the number of each PE's role in ``program.roles``, int64[height, width]; NO_ROLE without one."""
    grid = program.analysis.border.given.grid
    result = np.full((grid.height, grid.width), NO_ROLE, dtype=np.int64)
    for number, role in enumerate(program.roles):
        result[_mask(program, role.pes)] = number
    return result


def memory_grid(program: WaferProgram) -> Integers:
    """Return the bytes of data that each PE keeps, int64[height, width]."""
    sizes = np.array([*(role.memory_bytes for role in program.roles), 0], dtype=np.int64)
    return np.asarray(sizes[role_grid(program)])


def route_grids(program: WaferProgram) -> tuple[RouteGrid, ...]:
    """Return every route with the PEs that have it, by color."""
    routes = sorted(program.routing.routes, key=lambda r: (r.color, r.source, r.targets))
    return tuple(RouteGrid(r.color, r.source, r.targets, _mask(program, r.pes)) for r in routes)


def watched_pes(program: WaferProgram, more: Iterable[Pe] = ()) -> tuple[Pe, ...]:
    """Return the PEs whose time lines are recorded: all of a small rectangle, else a few, and ``more``.

    A few: the first and the last PE of each role, the rectangle's corners and its centre.
    """
    grid = program.analysis.border.given.grid
    inside = [pe for pe in more if 0 <= pe[0] < grid.width and 0 <= pe[1] < grid.height]
    if grid.width * grid.height <= WATCH_ALL:
        return tuple((x, y) for y in range(grid.height) for x in range(grid.width))
    ends_x, ends_y = (0, grid.width - 1), (0, grid.height - 1)
    chosen = {(x, y) for x in ends_x for y in ends_y} | {(grid.width // 2, grid.height // 2)} | set(inside)
    for role in program.roles:
        chosen |= {_point(role.pes.lexmin()), _point(role.pes.lexmax())}
    return tuple(sorted(chosen, key=lambda pe: (pe[1], pe[0])))


def _point(points: isl.Set) -> Pe:
    point = points.sample_point()
    x, y = (int(point.get_coordinate_val(isl.dim_type.set, k).to_python()) for k in range(2))
    return x, y


def _mask(program: WaferProgram, pes: isl.Set) -> Truths:
    grid = program.analysis.border.given.grid
    y, x = np.ogrid[0 : grid.height, 0 : grid.width]
    inside = contains(pes, [x.astype(np.int64), y.astype(np.int64)], {})
    return np.asarray(np.broadcast_to(inside, (grid.height, grid.width)))
