"""The layout of a layer in CSL: which program and which routes each PE has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import islpy as isl

from polyloom.diagnostics import Unsupported, error
from polyloom.polyhedra.binding import PE_PARAMETERS, bind, bind_domain
from polyloom.polyhedra.loops.generate import CodeBuilder, IntExpression, Name, replace_name
from polyloom.wafer.csl_output.ports import Passing, PortRole
from polyloom.wafer.csl_output.text import FUNCTIONS, TYPES, bare, condition_text, integer
from polyloom.wafer.mapping.grid import Grid, Side
from polyloom.wafer.pe_program.tree import RoleCode
from polyloom.wafer.program.port_groups import PortGroup

_OPPOSITE = {"north": "south", "south": "north", "west": "east", "east": "west"}


@dataclass(frozen=True)
class Tile:
    """The PEs of one program: ``origin``, where the program's PE (0, 0) is; ``colors`` of its queues, in CSL;
    ``parameters``: other fields, as ``.name = value``.
    """

    file: str
    pes: isl.Set
    origin: tuple[int, int] = (0, 0)
    colors: Mapping[str, str] = field(default_factory=dict)
    coordinates: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Routed:
    """On ``pes``, wavelets of a color, in CSL, that come from ``source`` go to ``targets``."""

    pes: isl.Set
    color: str
    source: str
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Area:
    """PEs whose programs and routes are stated by coordinates of their own.

    ``pes``: all of them, ``{ PE[x, y] }``; ``origin``: where PE (0, 0) is in the whole rectangle; ``box``:
    the columns and rows of ``pes`` there, None where it is all that is left.
    """

    title: str
    pes: isl.Set
    origin: tuple[int, int]
    tiles: tuple[Tile, ...]
    routes: tuple[Routed, ...]
    box: tuple[tuple[int, int], tuple[int, int]] | None = None


@dataclass(frozen=True)
class Frame:
    """The given rectangle with the PEs around it: how many columns and rows lie on each side."""

    grid: Grid
    left: int
    top: int
    right: int
    bottom: int

    @property
    def width(self) -> int:
        """Columns of all."""
        return self.left + self.grid.width + self.right

    @property
    def height(self) -> int:
        """Rows of all."""
        return self.top + self.grid.height + self.bottom

    @property
    def pes(self) -> isl.Set:
        """All PEs, by the coordinates of the given rectangle."""
        x = f"-{self.left} <= x < {self.grid.width + self.right}"
        return isl.Set(f"{{ PE[x, y] : {x} and -{self.top} <= y < {self.grid.height + self.bottom} }}")


def frame_of(grid: Grid, passing: Sequence[Passing]) -> Frame:
    """Return the rectangle with a line of PEs on each side that has a port."""
    sides = {each.group.side for each in passing}
    has = [int(side in sides) for side in (Side.WEST, Side.NORTH, Side.EAST, Side.SOUTH)]
    return Frame(grid, *has)


def layout_file(
    frame: Frame,
    areas: Sequence[Area],
    symbols: Mapping[str, str],
    *,
    streams: Sequence[Routed] = (),
    constants: Sequence[str] = (),
) -> str:
    """Return ``layout.csl``. A PE belongs to the first area that has it, the last one has all that is left.

    ``symbols``: what the host reads and writes, with the element type; ``streams``: routes anywhere, by the
    coordinates of the given rectangle; ``constants``: lines that the areas need.

    Errors: ``Unsupported`` ``csl-route`` where wavelets of a color come from two sides at a PE.
    """
    for area in areas:
        _check_sources(area.routes)
    _check_sources(streams)
    body = _loops(frame, _areas(areas))
    if streams:
        body += ["", "  // streams between the areas", *_loops(frame, _streams(frame, streams))]
    exports = [f'  @export_name("{name}", [*]{kind}, true);' for name, kind in symbols.items()]
    text = "\n".join(body)
    helpers = "\n\n".join(made for name, made in FUNCTIONS.items() if f"{name}(" in text)
    before = "\n".join(constants)
    return f"""\
// {frame.grid.width} x {frame.grid.height} PEs, and around them those where tensors come in and go out
param invocations: u16 = 1;  // samples, one after another

const memcpy = @import_module("<memcpy/get_params>", .{{ .width = {frame.width}, .height = {frame.height} }});
{f"{before}{chr(10)}" if before else ""}{f"{chr(10)}{helpers}{chr(10)}" if helpers else ""}
layout {{
  @set_rectangle({frame.width}, {frame.height});
{text}
{chr(10).join(exports)}
  @export_name("compute", fn(u16)void);
}}
"""


def _loops(frame: Frame, body: Iterable[str]) -> list[str]:
    return [
        f"  for (@range(i16, {frame.width})) |x| {{",
        f"    for (@range(i16, {frame.height})) |y| {{",
        *(f"      {line}" for line in body),
        "    }",
        "  }",
    ]


def _areas(areas: Sequence[Area]) -> Iterator[str]:
    """Yield a branch for each area; one area alone needs none."""
    if len(areas) == 1:
        yield from _area(areas[0])
        return
    word = "if"
    for area in areas:
        if area.box is None:
            yield f"}} else {{  // {area.title}"
        else:
            (x0, x1), (y0, y1) = area.box
            yield f"{word} (x >= {x0} and x <= {x1} and y >= {y0} and y <= {y1}) {{  // {area.title}"
        yield from (f"  {line}" for line in _area(area))
        word = "} else if"
    yield "}"


def _area(area: Area) -> Iterator[str]:
    (x, y), context = area.origin, bind(area.pes, PE_PARAMETERS)
    yield f"const PE_X = x - {x};"
    yield f"const PE_Y = y - {y};"
    yield from _tiles(context, area.tiles)
    for route in area.routes:
        yield from _route(context, route)


def _streams(frame: Frame, streams: Sequence[Routed]) -> Iterator[str]:
    yield f"const PE_X = x - {frame.left};"
    yield f"const PE_Y = y - {frame.top};"
    context = bind(frame.pes, PE_PARAMETERS)
    for route in streams:
        yield from _route(context, route)


def _tiles(context: isl.Set, tiles: Sequence[Tile]) -> Iterator[str]:
    idle = '@set_tile_code(x, y, "idle.csl", .{ .memcpy_params = memcpy.get_params(x) });'
    if not tiles:
        yield idle
        return
    word = "if"
    for tile in tiles:
        fields = [".memcpy_params = memcpy.get_params(x)"]
        for name, first in zip(PE_PARAMETERS, tile.origin, strict=True):
            if name in tile.coordinates:
                fields.append(f".{name} = {name}{f' - {first}' if first else ''}")
        fields += tile.parameters
        fields += [f".{queue}_color = @get_color({value})" for queue, value in tile.colors.items()]
        yield f"{word} ({_condition(context, tile.pes) or 'true'}) {{"
        yield f'  @set_tile_code(x, y, "{tile.file}", .{{ {", ".join(fields)} }});'
        word = "} else if"
    yield "} else {"
    yield f"  {idle}"
    yield "}"


def color_text(value: IntExpression) -> str:
    """Return a color, as a function of a PE's coordinates, in CSL."""
    return bare(integer(value))


def _condition(context: isl.Set, pes: isl.Set) -> str | None:
    condition = CodeBuilder(context, {}).condition(bind(pes, PE_PARAMETERS))
    return None if condition is None else bare(condition_text(condition))


def _route(context: isl.Set, route: Routed) -> Iterator[str]:
    ways = f".rx = .{{ {route.source.upper()} }}, .tx = .{{ {', '.join(t.upper() for t in route.targets)} }}"
    line = f"@set_color_config(x, y, @get_color({route.color}), .{{ .routes = .{{ {ways} }} }});"
    condition = _condition(context, route.pes)
    if condition is None:
        yield line
    else:
        yield from (f"if ({condition}) {{", f"  {line}", "}")


def port_routes(ports: Sequence[PortRole]) -> Iterator[Routed]:
    """Yield the routes of external PEs: from the RAMP inwards, or from inside to the RAMP."""
    for role in ports:
        for each in role.passing:
            inside = _OPPOSITE[each.group.side.value]
            source, target = ("ramp", inside) if each.inward else (inside, "ramp")
            yield Routed(role.pes, color_text(port_color(each.group)), source, (target,))


def port_color(group: PortGroup) -> IntExpression:
    """Return the color of a tensor at an external PE, by the PE's coordinates."""
    along = group.side.line
    position = group.color
    bound = bind_domain(position, (along,))
    return replace_name(CodeBuilder(bound.params(), {}).value(bound.dim_max(0)), along, Name(along))


def _check_sources(routes: Sequence[Routed]) -> None:
    for k, one in enumerate(routes):
        for other in routes[k + 1 :]:
            if one.color == other.color and not one.pes.is_disjoint(other.pes):
                message = f"wavelets of color {one.color} come from {one.source} and {other.source} at one PE"
                raise Unsupported(error("csl-route", message, helps=["another map may keep them apart"]))


def element_types(codes: Sequence[RoleCode], names: Sequence[str]) -> dict[str, str]:
    """Return CSL's element type of each array of some names."""
    found = {array.name: TYPES[array.type] for code in codes for array in code.arrays}
    return {name: found[name] for name in names if name in found}
