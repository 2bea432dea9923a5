"""The layout of a layer in CSL: which program and which routes each PE has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.diagnostics import Unsupported, error
from polyloom.polyhedra.binding import PE_PARAMETERS, bind, bind_domain
from polyloom.polyhedra.loops.generate import CodeBuilder, IntExpression, Name, replace_name
from polyloom.wafer.csl_output.ports import Passing, PortRole
from polyloom.wafer.csl_output.text import FUNCTIONS, TYPES, bare, condition_text, integer
from polyloom.wafer.mapping.grid import Grid, Side
from polyloom.wafer.pe_program.tree import RoleCode
from polyloom.wafer.routing.types import Route

_OPPOSITE = {"north": "south", "south": "north", "west": "east", "east": "west"}


@dataclass(frozen=True)
class Tile:
    """The PEs of one program: ``origin``, where the program's PE (0, 0) is; ``colors`` of its queues."""

    file: str
    pes: isl.Set
    origin: tuple[int, int]
    colors: Mapping[str, IntExpression]
    coordinates: tuple[str, ...]
    has_invocations: bool = False


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
    tiles: Sequence[Tile],
    routes: Sequence[Route],
    ports: Sequence[PortRole],
    symbols: Mapping[str, str],
) -> str:
    """Return ``layout.csl``. ``symbols``: what the host reads and writes, with the element type.

    Errors: ``Unsupported`` ``csl-route`` where wavelets of a color come from two sides at a PE.
    """
    _check_sources(routes)
    body = [*_tiles(frame, tiles), *_routes(frame, routes), *_port_routes(frame, ports)]
    exports = [f'  @export_name("{name}", [*]{kind}, true);' for name, kind in symbols.items()]
    text = "\n".join(f"      {line}" for line in body)
    helpers = "\n\n".join(made for name, made in FUNCTIONS.items() if f"{name}(" in text)
    return f"""\
// {frame.grid.width} x {frame.grid.height} PEs, and around them those where tensors come in and go out
param invocations: u16 = 1;  // samples, one after another

const memcpy = @import_module("<memcpy/get_params>", .{{ .width = {frame.width}, .height = {frame.height} }});
{f"{chr(10)}{helpers}{chr(10)}" if helpers else ""}
layout {{
  @set_rectangle({frame.width}, {frame.height});
  for (@range(i16, {frame.width})) |x| {{
    for (@range(i16, {frame.height})) |y| {{
      const PE_X = x - {frame.left};
      const PE_Y = y - {frame.top};
{text}
    }}
  }}
{chr(10).join(exports)}
  @export_name("compute", fn(u16)void);
}}
"""


def _tiles(frame: Frame, tiles: Sequence[Tile]) -> Iterator[str]:
    word = "if"
    for tile in tiles:
        fields = [".memcpy_params = memcpy.get_params(x)"]
        for name, first in zip(PE_PARAMETERS, tile.origin, strict=True):
            if name in tile.coordinates:
                fields.append(f".{name} = {name}{f' - {first}' if first else ''}")
        if tile.has_invocations:
            fields.append(".invocations = invocations")
        fields += [f".{queue}_color = @get_color({_color(value)})" for queue, value in tile.colors.items()]
        yield f"{word} ({_condition(frame, tile.pes) or 'true'}) {{"
        yield f'  @set_tile_code(x, y, "{tile.file}", .{{ {", ".join(fields)} }});'
        word = "} else if"
    yield "} else {"
    yield '  @set_tile_code(x, y, "idle.csl", .{ .memcpy_params = memcpy.get_params(x) });'
    yield "}"


def _color(value: IntExpression) -> str:
    return bare(integer(value))


def _condition(frame: Frame, pes: isl.Set) -> str | None:
    builder = CodeBuilder(bind(frame.pes, PE_PARAMETERS), {})
    condition = builder.condition(bind(pes, PE_PARAMETERS))
    return None if condition is None else bare(condition_text(condition))


def _routes(frame: Frame, routes: Sequence[Route]) -> Iterator[str]:
    for route in routes:
        yield from _route(frame, route.pes, str(route.color), route.source, route.targets)


def _route(frame: Frame, pes: isl.Set, color: str, source: str, targets: Sequence[str]) -> Iterator[str]:
    ways = f".rx = .{{ {source.upper()} }}, .tx = .{{ {', '.join(t.upper() for t in targets)} }}"
    line = f"@set_color_config(x, y, @get_color({color}), .{{ .routes = .{{ {ways} }} }});"
    condition = _condition(frame, pes)
    if condition is None:
        yield line
    else:
        yield from (f"if ({condition}) {{", f"  {line}", "}")


def _port_routes(frame: Frame, ports: Sequence[PortRole]) -> Iterator[str]:
    """Yield the routes of external PEs: from the RAMP inwards, or from inside to the RAMP."""
    for role in ports:
        for each in role.passing:
            inside = _OPPOSITE[each.group.side.value]
            source, target = ("ramp", inside) if each.inward else (inside, "ramp")
            yield from _route(frame, role.pes, _color(port_color(each)), source, (target,))


def port_color(each: Passing) -> IntExpression:
    """Return the color of a tensor at an external PE, by the PE's coordinates."""
    along = each.group.side.line
    position = each.group.color
    bound = bind_domain(position, (along,))
    return replace_name(CodeBuilder(bound.params(), {}).value(bound.dim_max(0)), along, Name(along))


def _check_sources(routes: Sequence[Route]) -> None:
    for k, one in enumerate(routes):
        for other in routes[k + 1 :]:
            if one.color == other.color and not one.pes.is_disjoint(other.pes):
                message = f"wavelets of color {one.color} come from {one.source} and {other.source} at one PE"
                raise Unsupported(error("csl-route", message, helps=["another map may keep them apart"]))


def element_types(codes: Sequence[RoleCode], names: Sequence[str]) -> dict[str, str]:
    """Return CSL's element type of each array of some names."""
    found = {array.name: TYPES[array.type] for code in codes for array in code.arrays}
    return {name: found[name] for name in names if name in found}
