"""Where the loops of the source are in the schedule for given sizes: for a person, and as a document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyloom.mdh.explain.places import Cut, Place
from polyloom.mdh.tree.nodes import Kind
from polyloom.scop.schedule.loop_verdicts import LoopVerdict
from polyloom.scop.schedule.plan import Part


@dataclass(frozen=True)
class Scheduled:
    """A part under its schedules for ``parameters`` on a device: where each node's loops went.

    ``reasons``: what is fused and in tiles across time, and of the rest why it is not, a sentence each.
    """

    device: str
    parameters: Mapping[str, int]
    places: Mapping[str, Place]
    reasons: tuple[str, ...]

    def of(self, statement: str) -> tuple[Place, ...]:
        """Return where a statement of the source went, piece by piece."""
        pattern = re.compile(rf"{re.escape(statement)}(?:_\d+)*")
        return tuple(place for name, place in self.places.items() if pattern.fullmatch(name))


@dataclass(frozen=True)
class Entry:
    """An iterator of a statement in one of its nodes; ``name``: what it is called there."""

    statement: str
    place: Place
    name: str
    cuts: tuple[Cut, ...]


def entries(found: Scheduled, loop: LoopVerdict) -> Iterator[Entry]:
    """Yield where a loop of the source is, for each node of its statements in which that is known."""
    for statement, part in zip(loop.statements, loop.parts, strict=True):
        for place in found.of(statement):
            name = _name(place, loop.iterator, on_host=part in _ON_HOST)
            if name is not None:
                cuts = place.cuts[name] if name in place.cuts else place.times[name]
                yield Entry(statement, place, name, cuts)


def _name(place: Place, iterator: str, *, on_host: bool) -> str | None:
    """Return what an iterator is called in a node: where its statement is in pieces, one may be renamed."""
    if iterator in place.cuts or (on_host and iterator in place.times):
        return iterator
    renamed = [name for name in place.cuts if re.fullmatch(rf"{re.escape(iterator)}_\d+", name)]
    return renamed[0] if len(renamed) == 1 and not on_host else None


_ON_HOST = (Part.HOST, Part.BLOCKS, Part.WAVEFRONT)


def document(found: Scheduled, loop: LoopVerdict) -> list[dict[str, Any]]:
    """Return for each node of a loop of the source its band, and the loops that go through its points."""
    return [
        {
            "statement": entry.statement,
            "node": entry.place.node,
            "iterator": entry.name,
            "band": list(entry.place.band),
            "moving": entry.name in entry.place.moving,
            "loops": [
                {"iterator": cut.loop, "kind": _KINDS[cut.kind], "points": cut.points, "extent": cut.extent}
                for cut in entry.cuts
            ],
        }
        for entry in entries(found, loop)
    ]


_KINDS = {
    Kind.SEQUENTIAL: "sequential",
    Kind.UNROLLED: "unrolled",
    Kind.VECTOR: "vector",
    Kind.GROUP: "parallel",
    Kind.INDEPENDENT: "independent",
    Kind.REDUCING: "sequential",
    Kind.ITEM: "parallel",
}


def lines(found: Scheduled, loop: LoopVerdict) -> Iterator[str]:
    """Yield a line for each way in which statements of a loop of the source go through its points."""
    said: dict[str, list[str]] = {}
    for entry in entries(found, loop):
        said.setdefault(_words(entry), []).append(entry.place.node)
    yield from (f"{', '.join(nodes)}: {words}" for words, nodes in said.items())


def _words(entry: Entry) -> str:
    band = entry.place.band
    together = f"band ({', '.join(band)}); " if entry.name in band and len(band) > 1 else ""
    if not entry.cuts:
        return f"{together}one point"
    moving = ["moving with the loops around it"] if entry.name in entry.place.moving else []
    untiled = _untiled(entry.cuts) if entry.name in band else ()
    return together + ", ".join([*map(_cut, _distinct(entry.cuts)), *moving, *untiled])


def _distinct(cuts: Sequence[Cut]) -> Iterator[Cut]:
    """Yield the loops that say something: of unrolled loops over vectors the outer one says it all."""
    for k, cut in enumerate(cuts):
        if cut.kind in (Kind.UNROLLED, Kind.VECTOR) and not cut.extent:
            continue
        if cut.kind is Kind.SEQUENTIAL and cut.points > 1 and k + 1 < len(cuts) and not cut.around:
            inner = cuts[k + 1]
            if inner.extent == cut.points:
                continue
        yield cut


def _cut(cut: Cut) -> str:
    match cut.kind:
        case Kind.GROUP | Kind.ITEM:
            if not cut.points:
                return "parallel"
            return f"parallel in tiles of {cut.points}" if cut.points > 1 else "parallel, point by point"
        case Kind.INDEPENDENT | Kind.REDUCING:
            return "point by point, in vectors where the compiler has them"
        case Kind.UNROLLED:
            return f"{cut.extent} at once (unrolled, in registers)"
        case Kind.VECTOR:
            return f"vectors of {cut.extent}"
        case Kind.MATRIX:
            return f"blocks of {cut.extent} by the matrix unit of a warp"
        case Kind.SEQUENTIAL:
            return f"in blocks of {cut.points}" if cut.points > 1 else "in order"


def _untiled(cuts: Sequence[Cut]) -> Iterator[str]:
    """Yield that the points of an iterator are in no tile: its schedule, which is by costs, has none."""
    registers = max(1, *(cut.extent for cut in cuts))
    if not any(c.around or c.kind in (Kind.GROUP, Kind.ITEM) or c.points > registers for c in cuts):
        yield "not tiled: its schedule has one tile"
