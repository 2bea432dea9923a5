"""Which host loops of a program get tiles across time: those where they are legal, proved, and worth it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from polyloom.ir.host import HostNode, HostProgram, MdHom, Nest
from polyloom.ir.transform.narrow_integers import narrow_md_hom
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.program_tree import names_of
from polyloom.mdh.lowering.time_tiles.rings import folded_rings
from polyloom.mdh.lowering.time_tiles.sizes import Shape, TimeCost
from polyloom.mdh.lowering.time_tiles.sweeps import TimeLoop, time_loop
from polyloom.mdh.lowering.time_tiles.tiled import Taken, TilesOf, tiled_loop
from polyloom.mdh.schedule.choice import legal_schedule
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.polyhedra.loops.accesses import NotKnown, question
from polyloom.polyhedra.loops.tree import Branch, Loop, leaves_in, nodes_in
from polyloom.polyhedra.time_tiles import (
    Meeting,
    Rows,
    Side,
    Trapezoids,
    distances,
    fault,
    meetings,
    rows_of,
    sides,
)

OPERATIONS = 2_000_000
"""What isl may spend on a loop: ten times what it takes for the stencils of the tests."""


@dataclass(frozen=True)
class Tiled:
    """A program with some of its loops in tiles.

    ``like``: for each md_hom of a trapezoid, by name, one whose sizes are numbers: what its schedule follows.
    """

    program: HostProgram
    like: Mapping[str, MdHom]


Best = Callable[[TimeCost], Shape | None]


def with_time_tiles(program: HostProgram, device: DeviceModel, best: Best = TimeCost.best) -> Tiled:
    """Return a program, all of whose sizes are known, with tiles across time where they are worth it.

    ``best``: chooses the shape of tiles that are legal.
    """
    names = {node.name for node in leaves_in(program.body) if isinstance(node, MdHom | Nest)}
    maker = _Maker(program, device, best, Taken(names_of(program), names))
    body = tuple(map(maker.node, program.body))
    return Tiled(replace(program, body=body), maker.like)


Schedules = Callable[[MdHom, HostProgram, DeviceModel], Schedule | None]


def in_tiles(tiled: Tiled, schedules: Schedules) -> Schedules:
    """Return the same choice of schedules, in which md_homs of trapezoids follow those that they are like.

    They are done by one thread each, from caches: in no groups, and not past the caches. What stands in other
    loops that threads share is done by one thread too.
    """
    shared = {
        node.name
        for loop in nodes_in(tiled.program.body)
        if isinstance(loop, Loop) and loop.parallel
        for node in leaves_in(loop.body)
        if isinstance(node, MdHom)
    }

    def choose(hom: MdHom, program: HostProgram, device: DeviceModel) -> Schedule | None:
        like = tiled.like.get(hom.name)
        alone = replace(device, compute_units=1) if hom.name in shared else device
        if like is None:
            return schedules(hom, program, alone)
        found = schedules(narrow_md_hom(like), program, alone)
        if found is None:
            return None
        found = replace(found, group=(0,) * len(hom.extents), streaming=False)
        return legal_schedule(found, hom, program.by_name, alone)

    return choose


class _Maker:
    """Collects what md_homs of trapezoids are like."""

    def __init__(self, program: HostProgram, device: DeviceModel, best: Best, taken: Taken) -> None:
        self.program, self.device, self.best, self.taken = program, device, best, taken
        self.like: dict[str, MdHom] = {}

    def node(self, node: HostNode) -> HostNode:
        match node:
            case Loop(body=body):
                tiles = (tiles_of(each, self.program, self.device, self.best) for each in time_loops(node))
                of = next((each for each in tiles if each is not None), None)
                if of is None:
                    return replace(node, body=tuple(map(self.node, body)))
                found = tiled_loop(of, self.taken)
                self.like |= found.like
                return found.loop
            case Branch(condition=condition, body=body, otherwise=otherwise):
                sides = tuple(map(self.node, body)), tuple(map(self.node, otherwise))
                return Branch(condition, *sides)
            case _:
                return node


def time_loops(loop: Loop[HostNode]) -> Iterator[TimeLoop]:
    """Yield the ways in which the rows of a loop may be counted: as they are, then with rings folded."""
    found = time_loop(loop)
    if found is not None:
        yield found
        folded = folded_rings(found)
        if folded is not None:
            yield folded


@dataclass(frozen=True)
class Axis:
    """Along an axis: which rows each sweep has, which of them meet, and the sides that follow."""

    rows: Sequence[Rows]
    meetings: Sequence[Meeting]
    sides: tuple[Side, Side]


def tiles_of(loop: TimeLoop, program: HostProgram, device: DeviceModel, best: Best) -> TilesOf | None:
    """Return the tiles of a loop; None where none are legal, or none are worth it."""
    spans = [loop.span(axis) for axis in range(len(loop.axes))]
    axes: dict[int, Axis] = {}

    def sides_of(number: int) -> tuple[Side, Side] | None:
        axis = _axis(loop, number)
        if axis is not None:
            axes[number] = axis
        return None if axis is None else axis.sides

    cost = TimeCost(loop=loop, buffers=program.by_name, device=device, spans=spans, sides_of=sides_of)
    try:
        with question(f"how tiles of the loop over {loop.steps.time} may lie", OPERATIONS):
            shape = best(cost)
            if shape is None:
                return None
            tiles = tuple(_trapezoids(spans[k], axes[k].sides, w, shape) for k, w in shape.widths.items())
            proved = all(
                fault(each, axes[k].meetings, axes[k].rows, loop.steps.first) is None
                for k, each in zip(shape.widths, tiles, strict=True)
            )
    except NotKnown:
        return None
    return TilesOf(loop=loop, axes=tuple(shape.widths), tiles=tiles) if proved else None


def _axis(loop: TimeLoop, number: int) -> Axis | None:
    found = meetings(loop.steps, number)
    apart = distances(found)
    lie = None if apart is None else sides(apart, len(loop.homs))
    return None if lie is None else Axis(rows_of(loop.steps, number), found, lie)


def _trapezoids(span: tuple[int, int], lie: tuple[Side, Side], width: int, shape: Shape) -> Trapezoids:
    first, rows = span
    return Trapezoids(
        height=shape.height,
        width=width,
        first=first,
        count=ceil(rows / width),
        lower=lie[0],
        upper=lie[1],
    )
