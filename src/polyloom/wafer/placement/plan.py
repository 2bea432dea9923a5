"""A plan: a layout with ports, and its text as a map file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import permutations

import islpy as isl

from polyloom.diagnostics import Source
from polyloom.ir.host import Index
from polyloom.ir.program import Program
from polyloom.polyhedra.bounds import greatest_coordinate
from polyloom.wafer.mapping.grid import Grid, Side
from polyloom.wafer.mapping.mapping import Mapping as LairMap
from polyloom.wafer.mapping.reader import Given
from polyloom.wafer.mapping.text import NOTHING
from polyloom.wafer.placement.boxes import Movement, local_box, used_extents
from polyloom.wafer.placement.coordinates import Place
from polyloom.wafer.placement.mapfile import entry, placement_parts
from polyloom.wafer.placement.ports import Port, input_text, output_text

_MOST_PERMUTED = 3
"""Tensors of a higher rank are sent in their own order, or with another dimension innermost."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be placed: ``given``: what the map says; ``fixed``: text of the placements that it gives."""

    program: Program
    given: Given
    movement: Movement
    fixed: Mapping[str, str]

    @property
    def chooses_inputs(self) -> bool:
        """Whether the input ports are ours to choose."""
        return self.given.inputs is None

    @property
    def chooses_triggers(self) -> bool:
        """Whether what drives statements is ours to choose."""
        return self.chooses_inputs and "trigger" not in self.given.entries

    @property
    def chooses_outputs(self) -> bool:
        """Whether the output ports are ours to choose."""
        return self.given.outputs is None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """``places``: of the statements, as far as they are understood; ``inputs``: in the order of the map;
    ``waits``: statements that no stream drives; ``drivers_settled``: the others are estimated far slower.
    """

    grid: Grid
    places: tuple[Place, ...]
    inputs: tuple[tuple[str, Port], ...]
    outputs: tuple[tuple[str, Port], ...]
    waits: tuple[str, ...] = ()
    drivers_settled: bool = False

    @property
    def directions(self) -> tuple[tuple[Index, ...], ...]:
        """What is cut in tiles along each axis, whatever their sizes: by statement, x before y."""
        axes = (axis for place in self.places for axis in (place.x, place.y))
        return tuple(tuple(tile.expression for tile in axis.tiles if tile.count > 1) for axis in axes)


def first_plan(problem: Problem, grid: Grid, places: tuple[Place, ...], waits: tuple[str, ...] = ()) -> Plan:
    """Return the plan with the ports that bring, and take, the fewest wavelets through each."""
    inputs = tuple((n, _first_port(problem, places, n, inward=True)) for n in problem.movement.streamed)
    outputs = tuple((n, _first_port(problem, places, n, inward=False)) for n in problem.movement.leaving)
    return Plan(grid=grid, places=places, inputs=inputs, outputs=outputs, waits=waits)


def _first_port(problem: Problem, places: Sequence[Place], name: str, *, inward: bool) -> Port:
    traffic = [
        sum(map(math.prod, _line_boxes(problem, places, name, axis, inward=inward))) for axis in (0, 1)
    ]
    axis = int(traffic[0] > traffic[1] if inward else traffic[0] >= traffic[1])
    if traffic[0] == traffic[1]:
        axis = _in_runs(problem, places, name, inward=inward, otherwise=axis)
    side = _first_side(axis, inward=inward)
    port = Port(side, tuple(range(len(problem.program.buffer(name).extents))))
    return _ordered(port, _line_extents(problem, places, name, port)) if inward else port


def _in_runs(problem: Problem, places: Sequence[Place], name: str, *, inward: bool, otherwise: int) -> int:
    """Return the axis on whose lines the PEs have longer runs of elements, one PE after the other.

    Those have that share a tensor by an outer dimension than the one by which the lines do.
    """
    extents = problem.program.buffer(name).extents

    def cut(axis: int) -> int:
        boxes = [*_line_boxes(problem, places, name, axis, inward=inward)]
        return next((d for d, n in enumerate(extents) if max((b[d] for b in boxes), default=n) < n), -1)

    columns, rows = cut(0), cut(1)
    return otherwise if columns == rows else int(columns < rows)


def _first_side(axis: int, *, inward: bool) -> Side:
    """Return the side beside columns or rows to begin with.

    Elements leave in the order of their indices, which most layouts give to PEs by their coordinates: towards
    the larger ones, those of the PEs farthest behind come first, so that PEs can send in turn (``turns``).
    """
    if inward:
        return (Side.NORTH, Side.WEST)[axis]
    return (Side.SOUTH, Side.EAST)[axis]


def _line_boxes(
    problem: Problem, places: Sequence[Place], name: str, axis: int, *, inward: bool
) -> Iterator[tuple[int, ...]]:
    """Yield what a line needs, or has, of a tensor: a box for each access."""
    for statement, place in zip(problem.program.statements, places, strict=True):
        for access in statement.reads if inward else (statement.write,):
            if access.buffer == name:
                yield used_extents(access, local_box(statement, (place.x, place.y)[axis]))


def _line_extents(problem: Problem, places: Sequence[Place], name: str, port: Port) -> list[int]:
    boxes = _line_boxes(problem, places, name, port.axis, inward=True)
    return [max(extents) for extents in zip([1] * len(port.order), *boxes, strict=True)]


def _ordered(port: Port, extents: Sequence[int]) -> Port:
    """Put dimensions of which a line has one index only first, in their order: an innermost one would make
    each element a chunk.
    """
    single = tuple(d for d in range(len(extents)) if extents[d] == 1)
    return replace(port, order=(*single, *(d for d in port.order if extents[d] > 1)))


def neighbours(problem: Problem, plan: Plan) -> Iterator[Plan]:
    """Yield plans that differ in one port, or in the order of two inputs: the last one drives."""
    yield from _swapped(problem, plan)
    if problem.chooses_inputs:
        for n, (_, port) in enumerate(plan.inputs):
            for changed in (*_other_sides(port), *_other_orders(port)):
                yield replace(plan, inputs=_with(plan.inputs, n, changed))
    if problem.chooses_outputs:
        for n, (_, port) in enumerate(plan.outputs):
            for changed in (*_other_sides(port), *_other_orders(port)):
                yield replace(plan, outputs=_with(plan.outputs, n, changed))


def distinct_neighbours(problem: Problem, plan: Plan) -> Iterator[Plan]:
    """Yield those of ``neighbours`` whose cycles may differ, and of several with the same cycles the first.

    From which of two opposite sides a stream comes changes nothing, nor in which order results leave; nor
    where in an order those dimensions stand of which a line has one index only.
    """
    if problem.chooses_triggers and not plan.drivers_settled:
        yield replace(plan, waits=() if plan.waits else _may_wait(problem))
    yield from _swapped(problem, plan)
    if problem.chooses_inputs:
        for n, (name, port) in enumerate(plan.inputs):
            for changed in _distinct_orders(port, _line_extents(problem, plan.places, name, port)):
                yield replace(plan, inputs=_with(plan.inputs, n, changed))
    if problem.chooses_outputs:
        for n, (name, port) in enumerate(plan.outputs):
            wavelets = partial(_wavelets, problem, plan, name, inward=False)
            turned = _turned(port, inward=False)
            if wavelets(turned) <= _MOST_TURNED * wavelets(port):
                yield replace(plan, outputs=_with(plan.outputs, n, turned))
            yield replace(plan, outputs=_with(plan.outputs, n, _opposite(port)))
    if problem.chooses_inputs:
        for n, (_, port) in enumerate(plan.inputs):
            yield replace(plan, inputs=_with(plan.inputs, n, _turned(port, inward=True)))


Change = frozenset[tuple[str, Port | tuple[str, ...]]]
"""Tensors with their new ports, ``waits`` with its new statements: what makes a plan of another one."""


def changed(plan: Plan, other: Plan) -> Change:
    """Return what of ``other`` is not as in ``plan``; of inputs in another order, those that are moved."""
    pairs = [*zip(plan.inputs, other.inputs, strict=True), *zip(plan.outputs, other.outputs, strict=True)]
    ports = {new for old, new in pairs if new != old}
    return frozenset({*ports, *([] if plan.waits == other.waits else [("trigger", other.waits)])})


def traffic_cycles(problem: Problem, plan: Plan, change: Change) -> float:
    """Return the wavelets that pass one of the changed ports of a plan: no code takes fewer cycles."""
    ports = [(name, port, True) for name, port in plan.inputs]
    ports += [(name, port, False) for name, port in plan.outputs]
    return max(
        (_wavelets(problem, plan, name, port, inward=i) for name, port, i in ports if (name, port) in change),
        default=0.0,
    )


_MOST_TURNED = 3
"""Times the wavelets of a port, of those with which a result may leave along the other axis: its PEs send one
after the other, and more took up to nine times the cycles."""


def _wavelets(problem: Problem, plan: Plan, name: str, port: Port, *, inward: bool) -> float:
    boxes = _line_boxes(problem, plan.places, name, port.axis, inward=inward)
    size = problem.program.buffer(name).type.size
    return max(map(math.prod, boxes), default=0) * size / _WAVELET_BYTES


_WAVELET_BYTES = 4


def _may_wait(problem: Problem) -> tuple[str, ...]:
    """Return the statements that read dense streams only, of those that they read."""
    movement = problem.movement
    dense = {name for name in movement.streamed if name not in movement.sparse}
    read = [(s.name, {a.buffer for a in s.reads} & {*movement.streamed}) for s in problem.program.statements]
    return tuple(name for name, streams in read if streams and streams <= dense)


def _swapped(problem: Problem, plan: Plan) -> Iterator[Plan]:
    for k in range(1, len(plan.inputs)) if problem.chooses_inputs else ():
        first = list(plan.inputs)
        yield replace(plan, inputs=(*first[: k - 1], first[k], first[k - 1], *first[k + 1 :]))


def _with(ports: tuple[tuple[str, Port], ...], n: int, port: Port) -> tuple[tuple[str, Port], ...]:
    return (*ports[:n], (ports[n][0], port), *ports[n + 1 :])


def _other_sides(port: Port) -> Iterator[Port]:
    yield _opposite(port)
    yield from (replace(port, side=side) for side in Side if side.line != port.side.line)


def _opposite(port: Port) -> Port:
    return replace(port, side=port.side.opposite)


def _turned(port: Port, *, inward: bool) -> Port:
    """Return the port on the first side of the other axis."""
    return replace(port, side=_first_side(1 - port.axis, inward=inward))


def _other_orders(port: Port) -> Iterator[Port]:
    return (replace(port, order=order) for order in _orders(len(port.order)) if order != port.order)


def _distinct_orders(port: Port, extents: Sequence[int]) -> Iterator[Port]:
    seen = {_ordered(port, extents)}
    for other in _other_orders(port):
        ordered = _ordered(other, extents)
        if ordered not in seen:
            seen.add(ordered)
            yield ordered


def _orders(rank: int) -> Iterator[tuple[int, ...]]:
    if rank <= _MOST_PERMUTED:
        yield from permutations(range(rank))
        return
    for innermost in range(rank):
        yield (*(d for d in range(rank) if d != innermost), innermost)


def placement_text(problem: Problem, plan: Plan) -> str:
    """Return the entry ``compute_map`` of a plan."""
    places = known_places(problem, plan.places)
    return entry("compute_map", placement_parts(problem.program.statements, places, problem.fixed))


def plan_text(problem: Problem, plan: Plan) -> str:
    """Return the map file of a plan. What the user's map says stays as it is."""
    given = problem.given
    size = f"size: {{ PE[{plan.grid.width}, {plan.grid.height}] }}"
    compute = placement_text(problem, plan)
    placed = _placed(problem, plan.grid, f"{size}\n{compute}\n")
    lines = [size, compute]
    lines += _ports_text(problem, plan, placed, inward=True)
    lines += _ports_text(problem, plan, placed, inward=False)
    if plan.waits:
        lines.append(f"trigger: {', '.join(f'{name} = {NOTHING}' for name in plan.waits)}")
    lines += [f"{key}: {given.entries[key].text}" for key in _KEPT if key in given.entries]
    return "\n".join(lines) + "\n"


_KEPT = ("sparse", "state", "trigger")


def known_places(problem: Problem, places: Sequence[Place]) -> tuple[Place | None, ...]:
    """Return the places that are ours; None for statements that the map places."""
    pairs = zip(problem.program.statements, places, strict=True)
    return tuple(None if s.name in problem.fixed else p for s, p in pairs)


@lru_cache(maxsize=8)
def _placed(problem: Problem, grid: Grid, text: str) -> LairMap:
    """Return the mapping without ports, for the relations that are taken from it."""
    from polyloom.wafer.mapping.reader import read_mapping

    mapping = read_mapping(Source("<map>", text), problem.program)
    return replace(mapping, grid=grid)


def _ports_text(problem: Problem, plan: Plan, placed: LairMap, *, inward: bool) -> list[str]:
    key = "iport_map" if inward else "oport_map"
    if not (problem.chooses_inputs if inward else problem.chooses_outputs):
        return [f"{key}: {problem.given.entries[key].text}"]
    make, ports = (input_text, plan.inputs) if inward else (output_text, plan.outputs)
    places = known_places(problem, plan.places)
    texts = [make(problem.program, placed, places, name, port) for name, port in ports]
    found = [text for text in texts if text]
    return [entry(key, found)] if found else []


def fixed_extent(placement: Mapping[str, isl.Map]) -> tuple[int, int]:
    """Return the smallest rectangle that holds the given placements."""
    width = height = 1
    for relation in placement.values():
        pes = relation.range()
        width = max(width, 1 + greatest_coordinate(pes, 0).to_python())
        height = max(height, 1 + greatest_coordinate(pes, 1).to_python())
    return width, height
