"""Colors for the whole mesh: those of each stage renamed, one for each stream, one more for collectors.

What meets on a PE gets different colors: a router takes a color from one direction only. A stage's colors
count as used on all of its rectangle, and, where they pass a port, up to the exchanges of that port.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyloom.diagnostics import Diagnostic, Unsupported, error
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.network.blocks import Line
from polyloom.wafer.network.floor_plan import FloorPlan, Place, Range, Way

Box = tuple[Range, Range]


@dataclass(frozen=True)
class Colors:
    """``stages``: a color for each of a stage's own; ``streams``: by tensor; ``chains``: by line."""

    stages: dict[str, tuple[int, ...]]
    streams: dict[str, int]
    chains: dict[str, int]

    @property
    def count(self) -> int:
        """Colors that are used anywhere."""
        used = {*self.streams.values(), *self.chains.values()}
        return len(used.union(*map(set, self.stages.values())))


@dataclass(frozen=True, eq=False)
class _User:
    """What needs a color, and the boxes that it passes."""

    kind: str
    name: str
    number: int
    boxes: tuple[Box, ...]


def color_plan(plan: FloorPlan, machine: Machine) -> Colors:
    """Return colors for everything.

    Errors: ``Unsupported`` with ``network-colors`` where the machine has too few.
    """
    users = [*_stage_users(plan), *_stream_users(plan), *_chain_users(plan)]
    conflicts = {k: _conflicting(k, users) for k in range(len(users))}
    found: dict[int, int] = {}
    while len(found) < len(users):
        chosen = max(
            (k for k in conflicts if k not in found),
            key=lambda k: (len({found[o] for o in conflicts[k] if o in found}), len(conflicts[k]), -k),
        )
        taken = {found[other] for other in conflicts[chosen] if other in found}
        color = next(c for c in range(len(users)) if c not in taken)
        if color >= machine.colors:
            raise Unsupported(_too_few(users[chosen], machine))
        found[chosen] = color
    named = {(u.kind, u.name, u.number): found[k] for k, u in enumerate(users)}
    stages = {p.block.placed.stage.name: _numbered(named, p) for p in plan.places}
    streams = {name: c for (kind, name, _), c in named.items() if kind == "stream"}
    chains = {name: c for (kind, name, _), c in named.items() if kind == "chain"}
    return Colors(stages, streams, chains)


def _numbered(named: dict[tuple[str, str, int], int], place: Place) -> tuple[int, ...]:
    name = place.block.placed.stage.name
    count = _color_count(place)
    return tuple(named["stage", name, c] for c in range(count))


def _color_count(place: Place) -> int:
    return 1 + max((color for color, _ in place.block.placed.program.routing.colors), default=-1)


def _stage_users(plan: FloorPlan) -> Iterator[_User]:
    for place in plan.places:
        (x, y), (width, height) = place.origin, place.block.placed.size
        core: Box = (x, x + width - 1), (y, y + height - 1)
        strips = tuple(port_strip(place, line) for line in place.block.lines)
        for number in range(_color_count(place)):
            yield _User("stage", place.block.placed.stage.name, number, (core, *strips))


def _stream_users(plan: FloorPlan) -> Iterator[_User]:
    for net in plan.nets:
        lines = [*net.sinks, *([net.source] if net.source else [])]
        boxes = [(way.x, way.y) for way in net.ways]
        boxes += [plan.place(line.stage).line_box(line) for line in lines]
        yield _User("stream", net.stream.tensor, 0, tuple(boxes))


def _chain_users(plan: FloorPlan) -> Iterator[_User]:
    for net in plan.nets:
        if net.source is not None and net.source.high > net.source.low:
            box = plan.place(net.source.stage).line_box(net.source)
            yield _User("chain", net.source.name, 0, (box,))


def port_strip(place: Place, line: Line) -> Box:
    """Return the PEs between a stage and a line, with the line's."""
    (x0, x1), (y0, y1) = place.line_box(line)
    back = line.depth - 1
    match line.side:
        case Side.NORTH:
            return (x0, x1), (y0, y1 + back)
        case Side.SOUTH:
            return (x0, x1), (y0 - back, y1)
        case Side.WEST:
            return (x0, x1 + back), (y0, y1)
        case Side.EAST:
            return (x0 - back, x1), (y0, y1)


def _conflicting(k: int, users: list[_User]) -> frozenset[int]:
    return frozenset(other for other in range(len(users)) if other != k and _meet(users[k], users[other]))


def _meet(a: _User, b: _User) -> bool:
    return any(_as_way(p).meets(_as_way(q)) for p in a.boxes for q in b.boxes)


def _as_way(box: Box) -> Way:
    return Way(*box, "", ())


def _too_few(user: _User, machine: Machine) -> Diagnostic:
    return error(
        "network-colors",
        f"no color is left for the {user.kind} `{user.name}`; {machine.name} has {machine.colors}",
        helps=[
            "let fewer PEs, and so fewer lines, be used: `--pes`; or a map for this layer with fewer ports"
        ],
    )
