"""A compiled program as tables, which `explain` and reports show: programs, colors, exports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from polyloom.csl.compiled import Compiled, Exported, Queue, Task
from polyloom.wafer.simulator.csl_fabric import ColorRoute, Direction, Filter

Pe = tuple[int, int]

MOST_BOXES = 4
"""Of a set of PEs that is written as a union of rectangles."""


@dataclass(frozen=True)
class ProgramRow:
    """A program and the PEs that run it. ``memory``: name, type of elements and bytes of each variable."""

    name: str
    file: str
    parameters: tuple[tuple[str, str], ...]
    count: int
    pes: str
    bytes: int
    memory: tuple[tuple[str, str, int], ...]
    tasks: tuple[Task, ...]
    queues: tuple[Queue, ...]
    functions: tuple[str, ...]


@dataclass(frozen=True)
class RouteRow:
    """A configuration of a color, and the PEs whose routers have it."""

    color: int
    names: tuple[str, ...]
    route: str
    switches: str
    count: int
    pes: str


@dataclass(frozen=True)
class Survey:
    """What a layout comes to. ``exports``: names with their types."""

    arch: str
    width: int
    height: int
    programs: tuple[ProgramRow, ...]
    routes: tuple[RouteRow, ...]
    exports: tuple[tuple[str, str], ...]

    def json(self) -> dict[str, Any]:
        """Return the same as one document."""
        return {
            **asdict(self),
            "exports": [{"name": name, "type": kind} for name, kind in self.exports],
            "programs": [_program_json(row) for row in self.programs],
        }


def _program_json(row: ProgramRow) -> dict[str, Any]:
    return {
        **asdict(row),
        "parameters": dict(row.parameters),
        "memory": [{"name": name, "type": kind, "bytes": size} for name, kind, size in row.memory],
    }


def survey(program: Compiled) -> Survey:
    """Return the tables of a program."""
    return Survey(
        program.arch,
        program.width,
        program.height,
        tuple(_programs(program)),
        tuple(_routes(program)),
        tuple((export.name, _type_text(export)) for export in program.exports),
    )


def program_name(number: int) -> str:
    """Return what the program of that number is called: A, B, ..., Z, A1, ..."""
    return chr(ord("A") + number % 26) + (str(number // 26) if number >= 26 else "")


def _programs(program: Compiled) -> Iterator[ProgramRow]:
    places: list[list[Pe]] = [[] for _ in program.units]
    for pe, number in program.tiles.items():
        places[number].append(pe)
    for number, (unit, pes) in enumerate(zip(program.units, places, strict=True)):
        told = unit.overview
        yield ProgramRow(
            program_name(number),
            told.file,
            told.parameters,
            len(pes),
            pes_text(pes),
            len(unit.image),
            tuple(sorted(told.memory, key=lambda row: -row[2])),
            told.tasks,
            told.queues,
            unit.functions,
        )


def _type_text(export: Exported) -> str:
    if export.is_function:
        return f"fn({', '.join(export.parameters)}) void"
    return f"[*]{'' if export.mutable else 'const '}{export.element}"


# ---- Colors


def _routes(program: Compiled) -> Iterator[RouteRow]:
    found: dict[ColorRoute, list[Pe]] = {}
    for pe, routes in program.routes.items():
        for route in routes:
            found.setdefault(route, []).append(pe)
    for route, pes in sorted(found.items(), key=lambda item: (item[0].color, min(item[1]))):
        names = program.color_names.get(route.color, ())
        text = _way(*route.positions[0])
        yield RouteRow(route.color, names, text, "; ".join(_more(route)), len(pes), pes_text(pes))


def _way(rx: Iterable[Direction], tx: Iterable[Direction]) -> str:
    return f"{_sides(rx)} -> {_sides(tx)}"


_ORDER = ("ramp", "west", "east", "north", "south")


def _sides(sides: Iterable[Direction]) -> str:
    return ", ".join(sorted(sides, key=_ORDER.index)) or "nothing"


def _more(route: ColorRoute) -> Iterator[str]:
    """Yield what a configuration has besides its routes."""
    for number, position in enumerate(route.positions[1:], 1):
        yield f"position {number}: {_way(*position)}"
    if len(route.positions) > 1:
        yield f"begins at {route.position}" + (", in a ring" if route.ring_mode else "")
    if route.pop_mode != "none":
        yield f"pops {'always' if route.pop_mode == 'always' else 'when it advances'}"
    yield from (f"swaps {axis}" for axis, on in (("x", route.swap_x), ("y", route.swap_y)) if on)
    if route.teardown:
        yield "starts in teardown"
    if route.filter is not None:
        yield _filter_text(route.filter)


def _filter_text(given: Filter) -> str:
    if given.kind == "range":
        return f"filter: indices {given.low} to {given.high}"
    counted = " and ".join(
        name for name, on in (("data", given.counts_data), ("control", given.counts_control)) if on
    )
    return (
        f"filter: counts {counted or 'nothing'} from {given.start} to {given.limit}, takes up to {given.most}"
    )


# ---- Sets of PEs


def pes_text(pes: Iterable[Pe]) -> str:
    """Return a set of PEs as rectangles: ``(0..3, 1), (5, 0)``; of many the first, and how many more PEs."""
    found = list(_boxes(set(pes)))
    shown = ", ".join(f"({_span(x0, x1)}, {_span(y0, y1)})" for x0, x1, y0, y1 in found[:MOST_BOXES])
    rest = sum((x1 - x0 + 1) * (y1 - y0 + 1) for x0, x1, y0, y1 in found[MOST_BOXES:])
    return shown + (f" and {rest:,} more" if rest else "")


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"


def _boxes(left: set[Pe]) -> Iterator[tuple[int, int, int, int]]:
    """Yield rectangles x0, x1, y0, y1 that together are the set: each as wide as it can be, then as high."""
    for x, y in sorted(left, key=lambda pe: (pe[1], pe[0])):
        if (x, y) not in left:
            continue
        right = x
        while (right + 1, y) in left:
            right += 1
        low = y
        while all((column, low + 1) in left for column in range(x, right + 1)):
            low += 1
        left -= {(column, row) for column in range(x, right + 1) for row in range(y, low + 1)}
        yield x, right, y, low
