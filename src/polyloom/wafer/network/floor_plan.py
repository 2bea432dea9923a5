"""Where blocks lie and streams run on the mesh.

    - - - t t t t t t - -      a street: a row for each stream (t) that passes here
    a v | [ block ] | [ ]      blocks, side by side in the order of the network, below their street
    a - - - t t t - - - -      the next street; avenues (a) lead from one to the next
    a v | [ block ] | [ ]

A stream goes from its collectors up to its row of the street, along it, and down to each line of
distributors. In streets and avenues no two streams share a link; elsewhere what meets has different colors.
The host feeds and takes at the west end of the streets. Nothing here depends on how many PEs there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from polyloom.diagnostics import Unsupported, error
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.network.blocks import Block, Line
from polyloom.wafer.network.graph import Network, Stream

Range = tuple[int, int]
"""The first and the last."""

RAMP = "ramp"


@dataclass(frozen=True)
class Way:
    """On the PEs of a box, what comes from ``source`` goes to ``targets`` (sides, or the ramp)."""

    x: Range
    y: Range
    source: str
    targets: tuple[str, ...]

    def meets(self, other: Way) -> bool:
        """Whether both have a PE in common."""
        return _overlap(self.x, other.x) and _overlap(self.y, other.y)


@dataclass(frozen=True, eq=False)
class Place:
    """A block at ``x``, ``y`` (of its first PE), on a shelf."""

    block: Block
    shelf: int
    x: int
    y: int

    @property
    def origin(self) -> tuple[int, int]:
        """Where the stage's PE (0, 0) is."""
        dx, dy = self.block.corner
        return self.x + dx, self.y + dy

    def line_box(self, line: Line) -> tuple[Range, Range]:
        """Return the columns and rows of a line's exchanges, from its first to its last port."""
        (x, y), (width, height) = self.origin, self.block.placed.size
        across = {
            Side.NORTH: y - line.depth,
            Side.SOUTH: y + height - 1 + line.depth,
            Side.WEST: x - line.depth,
            Side.EAST: x + width - 1 + line.depth,
        }[line.side]
        if line.is_row:
            return (x + line.low, x + line.high), (across, across)
        return (across, across), (y + line.low, y + line.high)

    def column(self, line: Line) -> int:
        """Return the column on which a line's stream comes from the street, or goes to it."""
        return self.x + line.access if line.is_row else self.line_box(line)[0][0]


@dataclass(frozen=True, eq=False)
class Net:
    """A stream on the mesh. ``ways``: between the lines; ``fed``, ``taken``: the row at whose west end the
    host feeds it or takes it, None where it does not.
    """

    stream: Stream
    source: Line | None
    sinks: tuple[Line, ...]
    ways: tuple[Way, ...]
    fed: int | None
    taken: int | None

    @property
    def hops(self) -> int:
        """Routers between its lines."""
        return sum((w.x[1] - w.x[0] + 1) * (w.y[1] - w.y[0] + 1) for w in self.ways)


@dataclass(frozen=True, eq=False)
class FloorPlan:
    """Everything on the mesh; ``width`` and ``height`` of what is used."""

    network: Network
    places: tuple[Place, ...]
    nets: tuple[Net, ...]
    width: int
    height: int

    def place(self, stage: str) -> Place:
        """Return where a stage is."""
        return next(p for p in self.places if p.block.placed.stage.name == stage)


def _overlap(a: Range, b: Range) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


@dataclass(frozen=True, eq=False)
class _Journey:
    """A stream and the shelves that it passes, from above; ``first``: the one that it comes from."""

    stream: Stream
    source: Line | None
    sinks: tuple[tuple[int, Line], ...]
    shelves: tuple[int, ...]
    first: int

    @property
    def wanders(self) -> bool:
        return len(self.shelves) > 1


def plan(network: Network, blocks: Sequence[Block], machine: Machine) -> FloorPlan:
    """Place blocks and lay the streams.

    Errors: ``Unsupported`` with ``network-grid`` where the mesh is too small.
    """
    for width in _widths(blocks, machine):
        shelves = _shelves(blocks, width)
        journeys = [_journey(network, blocks, shelves, stream) for stream in network.streams]
        found = _laid_out(network, blocks, shelves, journeys)
        if found.width <= machine.grid[0] and found.height <= machine.grid[1]:
            return found
    wide, high = machine.grid
    raise Unsupported(
        error(
            "network-grid",
            f"the network takes {found.width} x {found.height} PEs; {machine.name} has {wide} x {high}",
            notes=[f"{len(blocks)} layers, the largest of {max(b.width * b.height for b in blocks)} PEs"],
            helps=["allow fewer PEs with `--pes`, or leave some layers to another wafer"],
        )
    )


def _widths(blocks: Sequence[Block], machine: Machine) -> Iterator[int]:
    """Yield how wide shelves may be: for a square first, then wider; the widest block at least."""
    square = ceil(1.4 * sqrt(sum((b.width + 1) * (b.height + 2) for b in blocks)))
    widest = max(b.width for b in blocks)
    width = square
    while width < machine.grid[0]:
        yield max(width, widest)
        width *= 2
    yield max(widest, machine.grid[0])
    yield widest


def _shelves(blocks: Sequence[Block], width: int) -> list[int]:
    """Return the shelf of each block: the next one where the last is full."""
    result: list[int] = []
    shelf = used = 0
    for block in blocks:
        if used and used + block.width > width:
            shelf, used = shelf + 1, 0
        used += block.width
        result.append(shelf)
    return result


def _journey(network: Network, blocks: Sequence[Block], shelves: Sequence[int], stream: Stream) -> _Journey:
    by_name = {b.placed.stage.name: (b, s) for b, s in zip(blocks, shelves, strict=True)}
    source = None
    passed: set[int] = set()
    if stream.source is not None:
        block, shelf = by_name[stream.source]
        source = block.line(stream.tensor)
        passed.add(shelf)
    sinks = tuple((by_name[s.stage][1], by_name[s.stage][0].line(s.input)) for s in stream.sinks)
    shelves = tuple(sorted(passed | {shelf for shelf, _ in sinks}))
    return _Journey(stream, source, sinks, shelves, first=min(passed, default=shelves[0]))


def _laid_out(
    network: Network, blocks: Sequence[Block], shelves: Sequence[int], journeys: Sequence[_Journey]
) -> FloorPlan:
    wandering = [j for j in journeys if j.wanders]
    avenue = {j.stream.tensor: k for k, j in enumerate(wandering)}
    columns = _columns(blocks, shelves, len(wandering))
    flat = [Place(b, s, x, 0) for b, s, x in zip(blocks, shelves, columns, strict=True)]
    rows, tops, height = _rows(flat, journeys, avenue)
    places = tuple(Place(p.block, p.shelf, p.x, tops[p.shelf]) for p in flat)
    by_name = {p.block.placed.stage.name: p for p in places}
    nets = tuple(_net(j, by_name, rows[j.stream.tensor], avenue.get(j.stream.tensor)) for j in journeys)
    width = max(p.x + p.block.width for p in places)
    return FloorPlan(network=network, places=places, nets=nets, width=width, height=height)


def _columns(blocks: Sequence[Block], shelves: Sequence[int], avenues: int) -> list[int]:
    result: list[int] = []
    for k, block in enumerate(blocks):
        follows = k > 0 and shelves[k - 1] == shelves[k]
        result.append(result[-1] + blocks[k - 1].width if follows else avenues)
        del block
    return result


def _rows(
    places: Sequence[Place], journeys: Sequence[_Journey], avenue: dict[str, int]
) -> tuple[dict[str, dict[int, int]], list[int], int]:
    """Return the row of each stream in each street, the first row of the blocks of each shelf, the height."""
    rows: dict[str, dict[int, int]] = {j.stream.tensor: {} for j in journeys}
    tops: list[int] = []
    y = 0
    for shelf in range(places[-1].shelf + 1):
        here = [p for p in places if p.shelf == shelf]
        ends: list[int] = []
        spans = [(_span(j, shelf, here, avenue), j) for j in journeys if shelf in j.shelves]
        for (low, high), journey in sorted(spans, key=lambda pair: pair[0]):
            row = next((k for k, end in enumerate(ends) if end < low), len(ends))
            ends[row : row + 1] = [high]
            rows[journey.stream.tensor][shelf] = y + row
        tops.append(y + len(ends))
        y = tops[-1] + max(p.block.height for p in here)
    return rows, tops, y


def _span(journey: _Journey, shelf: int, here: Sequence[Place], avenue: dict[str, int]) -> Range:
    """Return the first and the last column that a stream touches in a street."""
    by_name = {p.block.placed.stage.name: p for p in here}
    lines = [line for _, line in journey.sinks] + ([journey.source] if journey.source else [])
    columns = [by_name[line.stage].column(line) for line in lines if line.stage in by_name]
    outside = journey.source is None or bool(journey.stream.results)
    if outside and shelf == journey.first:
        columns.append(0)
    if journey.wanders:
        columns.append(avenue[journey.stream.tensor])
    return min(columns), max(columns)


def _net(journey: _Journey, places: dict[str, Place], rows: dict[int, int], avenue: int | None) -> Net:
    first = journey.first
    ways: list[Way] = []
    taken = rows[first] if journey.stream.results else None
    for shelf in journey.shelves:
        sinks = [(places[line.stage], line) for at, line in journey.sinks if at == shelf]
        columns = {place.column(line) for place, line in sinks}
        if shelf != first:
            assert avenue is not None
            start, coming = avenue, "north" if shelf > first else "south"
        elif journey.source is not None:
            start, coming = places[journey.source.stage].column(journey.source), "south"
        else:
            start, coming = 0, "west"
        down = columns | ({avenue} if first <= shelf < journey.shelves[-1] and avenue is not None else set())
        up = {avenue} if journey.shelves[0] < shelf <= first and avenue is not None else set()
        leaves = shelf == first and taken is not None
        ways += _street(rows[shelf], start, coming, (down, up), leaves=leaves)
        ways += [way for place, line in sinks for way in _access(place, line, rows[shelf], down=True)]
        if shelf != journey.shelves[-1] and avenue is not None:
            following = journey.shelves[journey.shelves.index(shelf) + 1]
            vertical = ("north", ("south",)) if shelf >= first else ("south", ("north",))
            ways.append(Way((avenue, avenue), (rows[shelf] + 1, rows[following] - 1), *vertical))
    if journey.source is not None:
        ways += _access(places[journey.source.stage], journey.source, rows[first], down=False)
    fed = rows[first] if journey.source is None else None
    filled = tuple(w for w in ways if w.x[0] <= w.x[1] and w.y[0] <= w.y[1])
    return Net(
        stream=journey.stream,
        source=journey.source,
        sinks=tuple(line for _, line in journey.sinks),
        ways=filled,
        fed=fed,
        taken=taken,
    )


def _street(
    row: int, start: int, coming: str, leaving: tuple[set[int], set[int]], *, leaves: bool
) -> Iterator[Way]:
    """Yield a stream's way along its row: it comes in at one column, and goes down and up at others.

    ``leaves``: it also goes out at the west end.
    """
    down, up = leaving
    ends = {start, *down, *up, *([0] if leaves else [])}
    low, high = min(ends), max(ends)
    marks = sorted(ends)
    for k, x in enumerate(marks):
        source = coming if x == start else ("west" if x > start else "east")
        targets = ["south"] * (x in down) + ["north"] * (x in up)
        targets += ["east"] if start <= x < high else []
        targets += ["west"] if low < x <= start or (leaves and x == 0) else []
        yield Way((x, x), (row, row), source, tuple(targets))
        if x < high:
            between = (x + 1, marks[k + 1] - 1)
            east = x >= start
            yield Way(between, (row, row), *(("west", ("east",)) if east else ("east", ("west",))))


def _access(place: Place, line: Line, row: int, *, down: bool) -> Iterator[Way]:
    """Yield the way between a street's row and a line: down to distributors, up from collectors."""
    (x, _), (y, _) = place.line_box(line)
    column = place.column(line)
    vertical = ("north", ("south",)) if down else ("south", ("north",))
    yield Way((column, column), (row + 1, y - 1), *vertical)
    if line.is_row:
        corner = ("north", ("east",)) if down else ("east", ("north",))
        along = ("west", ("east",)) if down else ("east", ("west",))
        yield Way((column, column), (y, y), *corner)
        yield Way((column + 1, x - 1), (y, y), *along)
