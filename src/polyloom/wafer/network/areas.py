"""How many PEs each stage gets: so many that none holds up the others, as far as the mesh allows it.

    streams     a stream passes one element a cycle, so that a sample takes at least the longest one's cycles
    stages      the PEs that bring a stage down to that; fewer for all in proportion where they are too many
    reduction   the fastest stage gets half as many, as long as all together have more than is allowed
    refinement  the slowest stage gets twice as many, as long as that makes it faster and there is room
    search      the map of the slowest stage is searched in full, as long as that makes it faster

Each stage's cycles are those of the cost model for the map that is chosen on such a rectangle, or those that
its busiest exchange needs to move all that passes and what is its own, where these are more.
Not in the papers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from polyloom.diagnostics import Diagnostic, PolyloomError, Unsupported, error
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.network.blocks import Placed, block_of, doubly_ported
from polyloom.wafer.network.exchanges import check_room, orders_of
from polyloom.wafer.network.graph import Network, Stage

Size = tuple[int, int]
Place = Callable[[Stage, Size], Placed]
"""Choose a map for a stage on a rectangle and compile it; raises what it is refused for."""

GAIN = 0.9
"""A larger rectangle is taken if it needs at most this part of the cycles."""
REFUSALS = 8
"""Rectangles that are tried for a stage, each of twice as many PEs, before it is said not to fit."""
ROUNDS = 24
"""Rectangles that are tried beyond the first ones."""
SEARCHES = 3
"""Maps that are searched in full: each takes as long as the quick ones of several layers."""


@dataclass(frozen=True, eq=False)
class _Given:
    """A stage on a rectangle of the ladder. ``moved``: by its busiest exchange in a sample.

    ``grows``: whether a larger rectangle may be tried; ``final``: no better map is looked for.
    """

    placed: Placed
    rung: int
    moved: int
    grows: bool = True
    final: bool = False

    @property
    def cycles(self) -> float:
        """Of a sample, as far as is known."""
        return max(self.placed.estimate, float(self.moved))

    @property
    def pes(self) -> int:
        return self.placed.size[0] * self.placed.size[1]


def place_stages(
    network: Network,
    machine: Machine,
    most_pes: int | None,
    place: Place,
    progress: Callable[[str], None] | None = None,
    fixed: Collection[str] = (),
    thoroughly: Place | None = None,
) -> tuple[Placed, ...]:
    """Return every stage on a rectangle. ``most_pes``: of all stages together; None: half of the mesh.

    ``fixed``: stages whose rectangle is given; ``place`` knows it. ``thoroughly``: chooses better maps, and
    takes longer.

    Errors: ``Unsupported`` with ``network-stage``, which says for each stage that does not fit why not.
    """
    room = most_pes if most_pes is not None else machine.grid[0] * machine.grid[1] // 2
    ladder = tuple(_ladder(machine))
    aim = _aim(network, room)
    tried = _Tried(network, machine, place)
    given: list[_Given] = []
    refused: list[tuple[Stage, PolyloomError]] = []
    for stage in network.stages:
        if progress is not None:
            progress(stage.name)
        wanted = math.ceil(work(stage) / aim)
        rung = next((k for k, (w, h) in enumerate(ladder) if w * h >= wanted), len(ladder) - 1)
        if stage.name in fixed:
            first = _first(stage, ladder[:1], 0, room, tried, fixed=True)
        else:
            first = _first(stage, ladder, rung, room, tried)
        if isinstance(first, PolyloomError):
            refused.append((stage, first))
        else:
            given.append(first)
    if refused:
        raise _refusal(refused, room)
    given = _reduced(given, ladder, room, tried, progress)
    given = _refined(given, ladder, room, aim, tried, progress)
    if thoroughly is not None:
        given = _searched(given, aim, _Tried(network, machine, thoroughly), progress)
    return tuple(g.placed for g in given)


def work(stage: Stage) -> int:
    """Return the points of the domains of a stage's statements."""
    return sum(math.prod(s.domain) for s in stage.program.statements)


def longest_stream(network: Network) -> int:
    """Return the elements of the longest stream."""
    return max(math.prod(network.buffer(s.tensor).extents) for s in network.streams)


def _aim(network: Network, room: int) -> float:
    """Return the cycles of a sample that are worth aiming at."""
    total = sum(map(work, network.stages))
    return max(longest_stream(network), total / room, 1)


def _ladder(machine: Machine) -> Iterator[Size]:
    width, height = 1, 1
    while width <= machine.grid[0] and height <= machine.grid[1]:
        yield width, height
        width, height = (width * 2, height) if width == height else (width, height * 2)


def _first(
    stage: Stage,
    ladder: Sequence[Size],
    rung: int,
    room: int,
    tried: _Tried,
    *,
    fixed: bool = False,
) -> _Given | PolyloomError:
    """Return the stage on the first rectangle from a rung upwards on which it fits; why not where none is."""
    fault: PolyloomError | None = None
    for k in range(rung, min(rung + REFUSALS, len(ladder))):
        if fault is not None and ladder[k][0] * ladder[k][1] > room:
            break
        try:
            return replace(tried.on(stage, ladder[k], k), grows=not fixed, final=fixed)
        except PolyloomError as refusal:
            fault = refusal
    assert fault is not None
    return fault


@dataclass(frozen=True, eq=False)
class _Tried:
    """Stages placed on rectangles, and what their exchanges would have to do."""

    network: Network
    machine: Machine
    place: Place

    def on(self, stage: Stage, size: Size, rung: int) -> _Given:
        """Return a stage on a rectangle if each of its tensors passes one side, and exchanges can hold what
        its ports have.

        Raises ``Unsupported`` (``network-ports``, ``network-exchange``), and what the map is refused for.
        """
        placed = self.place(stage, size)
        for tensor in doubly_ported(placed):
            message = f"`{tensor}` passes several sides of the layer `{placed.stage.name}`"
            helps = ["in a network a tensor comes or goes on one side; give this layer a map with `--map`"]
            raise Unsupported(error("network-ports", message, helps=helps))
        moved = 0
        for line in block_of(placed).lines:
            counts = [len(order.element) for order in orders_of(placed, line)]
            check_room(line, max(counts), self.machine)
            passing = self._sent(stage, line.group.tensor) if line.inward else sum(counts)
            moved = max(moved, passing + max(counts))
        return _Given(placed, rung, moved)

    def _sent(self, stage: Stage, name: str) -> int:
        """Return the elements of the stream that brings an input."""
        tensor = next(
            stream.tensor
            for stream in self.network.streams
            for sink in stream.sinks
            if (sink.stage, sink.input) == (stage.name, name)
        )
        return math.prod(self.network.buffer(tensor).extents)


def _reduced(
    given: list[_Given],
    ladder: Sequence[Size],
    room: int,
    tried: _Tried,
    progress: Callable[[str], None] | None,
) -> list[_Given]:
    """Return the stages on no more PEs than are allowed: the fastest one gets half as many, where it fits.

    Errors: ``Unsupported`` with ``network-pes`` where no stage fits on fewer.
    """
    given, stuck = list(given), {k for k, g in enumerate(given) if g.final or not g.rung}
    while sum(g.pes for g in given) > room:
        left = [k for k in range(len(given)) if k not in stuck]
        if not left:
            raise Unsupported(_too_many(given, room))
        fastest = min(left, key=lambda k: given[k].cycles)
        g = given[fastest]
        if progress is not None:
            progress(g.placed.stage.name)
        try:
            given[fastest] = g = tried.on(g.placed.stage, ladder[g.rung - 1], g.rung - 1)
        except PolyloomError:
            stuck.add(fastest)
        stuck |= {fastest} if not g.rung else set()
    return given


def _refined(
    given: list[_Given],
    ladder: Sequence[Size],
    room: int,
    aim: float,
    tried: _Tried,
    progress: Callable[[str], None] | None,
) -> list[_Given]:
    for _ in range(ROUNDS):
        slowest = max((k for k, g in enumerate(given)), key=lambda k: given[k].cycles)
        g = given[slowest]
        if not g.grows or g.cycles <= aim or g.rung + 1 >= len(ladder):
            break
        width, height = ladder[g.rung + 1]
        if sum(other.pes for other in given) - g.pes + width * height > room:
            break
        if progress is not None:
            progress(g.placed.stage.name)
        given[slowest] = _larger(g, ladder, tried)
    return given


def _searched(
    given: list[_Given], aim: float, tried: _Tried, progress: Callable[[str], None] | None
) -> list[_Given]:
    """Return the stages, the slowest one with a better map as long as one is found."""
    given = list(given)
    for _ in range(SEARCHES):
        slowest = max(range(len(given)), key=lambda k: given[k].cycles)
        g = given[slowest]
        if g.final or g.cycles <= aim / GAIN:
            break
        if progress is not None:
            progress(g.placed.stage.name)
        try:
            found = tried.on(g.placed.stage, g.placed.size, g.rung)
        except PolyloomError:
            break
        if found.cycles >= g.cycles:
            break
        given[slowest] = replace(found, final=True)
    return given


def _larger(g: _Given, ladder: Sequence[Size], tried: _Tried) -> _Given:
    """Return the stage on a larger rectangle, the next one or the one after it, if that pays."""
    for rung in (g.rung + 1, g.rung + 2):
        if rung >= len(ladder):
            break
        try:
            found = tried.on(g.placed.stage, ladder[rung], rung)
        except PolyloomError:
            continue
        if found.cycles <= GAIN * g.cycles:
            return found
    return replace(g, grows=False)


def _refusal(refused: Sequence[tuple[Stage, PolyloomError]], room: int) -> Unsupported:
    found = []
    for stage, fault in refused:
        first = fault.diagnostics[0]
        allowed = f"{work(stage):,} operations; {room:,} PEs are allowed for all layers"
        notes = [f"reason: {first.code}", allowed, *first.notes]
        message = f"the layer `{stage.name}` does not fit: {first.message}"
        found.append(error("network-stage", message, notes=notes, helps=first.helps))
    return Unsupported(*found)


def _too_many(given: Sequence[_Given], room: int) -> Diagnostic:
    rows = "\n".join(f"{g.placed.stage.name:<24}{g.pes:>8} PEs" for g in given)
    used = sum(g.pes for g in given)
    return error(
        "network-pes",
        f"the layers need {used:,} PEs, {room:,} are allowed",
        notes=[rows],
        helps=["allow more with `--pes`, up to the machine's, or use smaller layers"],
    )
