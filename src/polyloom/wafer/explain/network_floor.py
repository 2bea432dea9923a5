"""What a floor plan of a network shows: who runs what where, which way wavelets go, who has a time line.

All of it is of the whole mesh: layers and exchanges at their places, colors as the mesh has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import islpy as isl
import numpy as np
import numpy.typing as npt

from polyloom.polyhedra.functions import function_of
from polyloom.polyhedra.vectorized import contains, evaluate_function
from polyloom.wafer.explain.grids import NO_ROLE, WATCH_ALL, Integers, Pe, RouteGrid, role_grid, route_grids
from polyloom.wafer.network.blocks import Line
from polyloom.wafer.network.colors import Box, port_strip
from polyloom.wafer.network.exchanges import Exchange
from polyloom.wafer.network.floor_plan import RAMP, FloorPlan, Place
from polyloom.wafer.network.program import NetworkProgram
from polyloom.wafer.network.run import pe_of
from polyloom.wafer.pe_program.tree import RoleCode
from polyloom.wafer.roles.result import memory_fields
from polyloom.wafer.simd.decision import SimdAnalysis

MOST_WATCHED = 128
"""PEs with a time line, besides those that a user names."""

Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class MeshRole:
    """A program and where it runs: bool[height, width]. ``part``: the layer, or the line of exchanges;
    ``simd``: the tasks that it may compute; ``bytes``: of data.
    """

    part: str
    code: RoleCode
    bytes: int
    on: Truths
    simd: tuple[SimdAnalysis, ...] = ()


def mesh_roles(network: NetworkProgram) -> tuple[MeshRole, ...]:
    """Return the programs of all layers in their order, then those of exchanges."""
    layers = (role for place in network.plan.places for role in _roles_of(network.plan, place))
    exchanges = (role for each in network.exchanges for role in _roles_of_exchange(network.plan, each))
    return (*layers, *exchanges)


def _roles_of(plan: FloorPlan, place: Place) -> Iterator[MeshRole]:
    program = place.block.placed.program
    numbers = np.full((plan.height, plan.width), NO_ROLE, np.int64)
    _at(numbers, place)[...] = role_grid(program)
    for number, role in enumerate(program.roles):
        name = place.block.placed.stage.name
        yield MeshRole(
            part=name,
            code=role.code,
            bytes=role.memory_bytes,
            on=numbers == number,
            simd=tuple(program.analysis.simd),
        )


def _roles_of_exchange(plan: FloorPlan, exchange: Exchange) -> Iterator[MeshRole]:
    for code in (exchange.code, exchange.last):
        if code is None:
            continue
        on = np.zeros((plan.height, plan.width), np.bool_)
        for position in exchange.tables:
            if exchange.code_at(position) is code:
                x, y = pe_of(plan, exchange, position)
                on[y, x] = True
        fields = memory_fields(code)
        taken = fields[-1].offset + fields[-1].bytes if fields else 0
        if on.any():
            yield MeshRole(part=exchange.line.name, code=code, bytes=taken, on=on)


def _at(grid: npt.NDArray[np.generic], place: Place) -> npt.NDArray[np.generic]:
    """Return the part of a grid of the mesh that a layer lies on."""
    (x, y), (width, height) = place.origin, place.block.placed.size
    return grid[y : y + height, x : x + width]


def numbered(roles: tuple[MeshRole, ...], plan: FloorPlan) -> Integers:
    """Return the number of each PE's program, int64[height, width]; NO_ROLE without one."""
    result = np.full((plan.height, plan.width), NO_ROLE, np.int64)
    for number, role in enumerate(roles):
        result[role.on] = number
    return result


def watched_on_mesh(network: NetworkProgram, more: Iterable[Pe] = ()) -> tuple[Pe, ...]:
    """Return the PEs whose time lines are recorded: all of a small mesh, else the first of each program.

    Of many programs some, evenly among them; and ``more``, as far as they are on the mesh.
    """
    plan = network.plan
    if plan.width * plan.height <= WATCH_ALL:
        return tuple((x, y) for y in range(plan.height) for x in range(plan.width))
    roles = mesh_roles(network)
    step = -(-len(roles) // MOST_WATCHED)
    firsts = {divmod(int(np.argmax(role.on)), plan.width) for role in roles[::step] if role.on.any()}
    named = {(y, x) for x, y in more if 0 <= x < plan.width and 0 <= y < plan.height}
    return tuple((x, y) for y, x in sorted(firsts | named))


# ---- Which way wavelets go


def mesh_routes(network: NetworkProgram) -> tuple[RouteGrid, ...]:
    """Return every route with the PEs that have it, by color."""
    plan = network.plan
    found: dict[tuple[int, str, tuple[str, ...]], Truths] = {}

    def grid(color: int, source: str, targets: Iterable[str]) -> Truths:
        empty = np.zeros((plan.height, plan.width), np.bool_)
        return found.setdefault((color, source, tuple(sorted(targets))), empty)

    for place in plan.places:
        colors = network.colors.stages[place.block.placed.stage.name]
        for route in route_grids(place.block.placed.program):
            here = _at(grid(colors[route.color], route.source, route.targets), place)
            here[...] = np.logical_or(here, route.on)
    for net in plan.nets:
        for way in net.ways:
            color = network.colors.streams[net.stream.tensor]
            grid(color, way.source, way.targets)[_slices((way.x, way.y))] = True
    for carried in network.carried:
        stream = network.colors.streams[carried.net.stream.tensor]
        for exchange in carried.exchanges:
            for x, y, color, source, targets in _routes_of_line(network, exchange.line, stream):
                grid(color, source, targets)[y, x] = True
    return tuple(RouteGrid(*key, on) for key, on in sorted(found.items(), key=lambda item: item[0]))


def _slices(box: Box) -> tuple[slice, slice]:
    (x0, x1), (y0, y1) = box
    return slice(y0, y1 + 1), slice(x0, x1 + 1)


Turn = tuple[int, int, int, str, tuple[str, ...]]
"""Column and row of a PE, color, source and targets."""


def _routes_of_line(network: NetworkProgram, line: Line, stream: int) -> Iterator[Turn]:
    """Yield the routes of a line's PEs and of those between it and its layer."""
    place = network.plan.place(line.stage)
    ports = _colors_of_ports(network, line)
    (x0, x1), (y0, y1) = port_strip(place, line)
    (row_x, _), (row_y, _) = place.line_box(line)
    outer, inner = line.side.value, line.side.opposite.value
    through = (outer, (inner,)) if line.inward else (inner, (outer,))
    for y in range(y0, y1 + 1):
        for x in range(x0, x1 + 1):
            port = (x if line.is_row else y) - place.origin[0 if line.is_row else 1]
            if (y != row_y) if line.is_row else (x != row_x):
                if port in ports:
                    yield x, y, ports[port], *through
                continue
            for turn in _turns(network, line, stream, port, ports.get(port)):
                yield x, y, *turn


def _turns(
    network: NetworkProgram, line: Line, stream: int, port: int, color: int | None
) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Yield the routes of a PE of the line; ``color``: towards the layer, None where it has no port."""
    onward, back = ("east", "west") if line.is_row else ("south", "north")
    inner = line.side.opposite.value
    if line.inward:
        targets = (*((RAMP,) if color is not None else ()), *((onward,) if port < line.high else ()))
        yield stream, back, targets
        if color is not None:
            yield color, RAMP, (inner,)
        return
    chain = network.colors.chains.get(line.name, stream)
    odd = (port - line.low) % 2
    yield (chain if odd else stream), RAMP, (back,)
    if port != line.high:
        yield (stream if odd else chain), onward, (RAMP,)
    if color is not None:
        yield color, inner, (RAMP,)


def _colors_of_ports(network: NetworkProgram, line: Line) -> dict[int, int]:
    """Return the color of the mesh at each port, by its position on the side."""
    names = network.colors.stages[line.stage]
    places = np.arange(line.low, line.high + 1, dtype=np.int64)
    axis = "x" if line.is_row else "y"
    external = line.group.ports.range_factor_domain().range()
    ports = external.apply(isl.Map(f"{{ PE[x, y] -> port[{axis}] }}"))
    is_port = np.broadcast_to(contains(ports, [places], {}), places.shape)
    (values,), _ = evaluate_function(function_of(line.group.color), [places], {})
    return {int(p): names[int(c)] for p, c in zip(places[is_port], values[is_port], strict=True)}
