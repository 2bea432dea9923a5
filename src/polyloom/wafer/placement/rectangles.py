"""Rectangles: the largest that is considered, and the one that a layout gets."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyloom.polyhedra.bounds import greatest_coordinate, least_coordinate
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.mapping.grid import Grid
from polyloom.wafer.mapping.reader import Given
from polyloom.wafer.placement.coordinates import Place
from polyloom.wafer.placement.plan import Problem, fixed_extent

_SMALLER = ((8, 8), (2, 2), (1, 1))
"""Rectangles that are tried where nothing was accepted on any size."""


def limits_of(given: Given, machine: Machine) -> tuple[tuple[int, int], ...]:
    """Return the largest rectangles to look at, in turn: on few PEs there is less that can be refused."""
    if given.grid is not None:
        return ((given.grid.width, given.grid.height),)
    return (machine.grid, *_SMALLER)


def rectangle_of(problem: Problem, places: Sequence[Place]) -> Grid:
    """Return the given rectangle, or the smallest one that holds the instances and touches given ports."""
    given = problem.given
    if given.grid is not None:
        return given.grid
    width, height = fixed_extent(given.placement)
    width = max(width, *(1 + p.x.last for p in places))
    height = max(height, *(1 + p.y.last for p in places))
    for ports in (given.inputs or {}, given.outputs or {}):
        for schedule in ports.values():
            width, height = _reaching(schedule, width, height)
    return Grid(width, height)


def _reaching(schedule: isl.Map, width: int, height: int) -> tuple[int, int]:
    """Enlarge a rectangle so that ports to the east and south are adjacent to it."""
    pes = schedule.range_factor_domain().range()
    if pes.is_empty() or not pes.is_bounded():
        return width, height
    east = pes.intersect(isl.Set("{ PE[x, y] : x >= 0 and y >= 0 }"))
    for wanted in (isl.Set("{ PE[x, -1] }"), isl.Set("{ PE[-1, y] }")):
        here = pes.intersect(wanted.intersect(isl.Set("{ PE[x, y] : x >= 0 or y >= 0 }")))
        if not here.is_empty():
            width = max(width, 1 + greatest_coordinate(here, 0).to_python())
            height = max(height, 1 + greatest_coordinate(here, 1).to_python())
    if not east.is_empty():
        x, y = greatest_coordinate(east, 0).to_python(), greatest_coordinate(east, 1).to_python()
        if least_coordinate(east, 0).to_python() == x and x >= width:
            width = x
        elif least_coordinate(east, 1).to_python() == y and y >= height:
            height = y
    return width, height
