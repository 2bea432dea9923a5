"""The emitted files of a network: those of its stages, exchanges, and one layout for the mesh.

A stage's files are those of the layer alone. Its layout is called for the PEs of its rectangle, from
PE (0, 0) on, with its colors renamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.polyhedra.binding import bind, bind_domain
from polyloom.polyhedra.loops.generate import CodeBuilder
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.network.blocks import Line
from polyloom.wafer.network.colors import Colors, color_plan, port_strip
from polyloom.wafer.network.exchanges import Carried, Exchange, all_exchanges, carry
from polyloom.wafer.network.floor_plan import FloorPlan, Place, Range, Way
from polyloom.wafer.pe_program.print_c import INTEGERS_H, includes, integer_text, role_file
from polyloom.wafer.program.port_groups import PortGroup

PORT = "port"


@dataclass(frozen=True, eq=False)
class NetworkProgram:
    """Everything that runs and what the host must know. ``files``: name to text."""

    plan: FloorPlan
    carried: tuple[Carried, ...]
    colors: Colors
    machine: Machine
    files: dict[str, str]

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """The exchanges of all streams."""
        return tuple(all_exchanges(self.carried))


def compile_network(plan: FloorPlan, machine: Machine) -> NetworkProgram:
    """Make the exchanges, the colors and the emitted files of a network that is placed.

    Errors: those of ``carry`` and ``color_plan``.
    """
    carried = carry(plan, machine)
    colors = color_plan(plan, machine)
    exchanges = tuple(all_exchanges(carried))
    files = {"integers.h": INTEGERS_H}
    for place in plan.places:
        program = place.block.placed.program
        files |= {
            name: text for name, text in program.files.items() if name not in ("layout.c", "integers.h")
        }
        files[f"layout_{program.analysis.program.name}.c"] = _stage_layout(place, colors)
    for exchange in exchanges:
        for code in (exchange.code, exchange.last):
            if code is not None:
                files[f"{code.name}.c"] = role_file(code)
    files["layout.c"] = _layout(plan, carried, colors)
    return NetworkProgram(plan=plan, carried=carried, colors=colors, machine=machine, files=files)


def _stage_layout(place: Place, colors: Colors) -> str:
    """Return a stage's own layout under another name, with other colors, at another place."""
    name, (x, y) = place.block.placed.stage.name, place.origin
    numbers = ", ".join(map(str, colors.stages[name])) or "0"
    return f"""\
/* The layout of the layer {name}, at ({x}, {y}) */
#include "layout.h"

static const int colors[] = {{{numbers}}};

#define layout layout_{name}
#define route(color, from, to) route(colors[color], from, to)
#define bind_input(queue, color) bind_input(queue, colors[color])
#define bind_output(queue, color) bind_output(queue, colors[color])
#define origin(x, y) origin({x} + (x), {y} + (y))

void layout(int PE_X, int PE_Y);

{place.block.placed.program.files["layout.c"]}"""


def _layout(plan: FloorPlan, carried: Sequence[Carried], colors: Colors) -> str:
    exchanges = tuple(all_exchanges(carried))
    names = [place.block.placed.stage.name for place in plan.places]
    codes = [code.name for e in exchanges for code in (e.code, e.last) if code is not None]
    lines = [f"void layout_{name}(int PE_X, int PE_Y);" for name in names]
    lines += [f"extern const struct role {name};" for name in codes]
    parts = [
        _exchange_function(plan, e.line, colors.streams[c.net.stream.tensor], colors)
        for c in carried
        for e in c.exchanges
    ]
    body = ["void layout(int PE_X, int PE_Y) {"]
    for place in plan.places:
        (x, y), (width, height) = place.origin, place.block.placed.size
        inside = _inside((x, x + width - 1), (y, y + height - 1))
        call = f"layout_{place.block.placed.stage.name}(PE_X - {x}, PE_Y - {y});"
        body += [f"  if ({inside}) {{", f"    origin({x}, {y});", f"    {call}", "  }"]
    for exchange in exchanges:
        box = port_strip(plan.place(exchange.line.stage), exchange.line)
        body.append(f"  if ({_inside(*box)}) {exchange.line.name}_at(PE_X, PE_Y);")
    for net in plan.nets:
        color = colors.streams[net.stream.tensor]
        body.append(f"  /* color {color}: {net.stream.tensor} */")
        body += [f"  if ({_inside(way.x, way.y)}) {_route(color, way)}" for way in net.ways]
    text = "\n".join([*lines, "", *parts, *body, "}"]) + "\n"
    return f"{includes('layout.h', text)}\n\n{text}"


def _inside(x: Range, y: Range) -> str:
    def within(name: str, of: Range) -> str:
        return f"{name} == {of[0]}" if of[0] == of[1] else f"{name} >= {of[0]} && {name} <= {of[1]}"

    return f"{within('PE_X', x)} && {within('PE_Y', y)}"


def _route(color: int | str, way: Way) -> str:
    return f"route({color}, {way.source.upper()}, {' | '.join(t.upper() for t in way.targets)});"


def _exchange_function(plan: FloorPlan, line: Line, stream: int, colors: Colors) -> str:
    """Return a function for the PEs between a stage and a line, with the line: ``port`` is the position."""
    place = plan.place(line.stage)
    first = place.origin[0 if line.is_row else 1]
    condition, color = _port_texts(line.group)
    names = ", ".join(map(str, colors.stages[line.stage]))
    (x, _), (y, _) = place.line_box(line)
    at_line = f"PE_Y == {y}" if line.is_row else f"PE_X == {x}"
    outer, inner = line.side.value, line.side.opposite.value
    through = (outer, (inner,)) if line.inward else (inner, (outer,))
    lines = [
        f"static void {line.name}_at(int PE_X, int PE_Y) {{",
        f"  static const int colors[] = {{{names}}};",
        f"  const int port = {'PE_X' if line.is_row else 'PE_Y'} - {first};",
        f"  const int is_port = {condition};",
        f"  const int color = is_port ? colors[{color}] : 0;",
        f"  if (!({at_line})) {{",
        f"    if (is_port) {_route('color', Way((0, 0), (0, 0), *through))}",
        "    return;",
        "  }",
        *(f"  {each}" for each in _exchange_body(line, stream, colors.chains.get(line.name, stream))),
        "}",
        "",
    ]
    return "\n".join(lines)


def _exchange_body(line: Line, stream: int, chain: int) -> Iterator[str]:
    """Yield what a PE of the line is; collectors send on two colors in turn, the first on the stream's."""
    low, high = line.low, line.high
    onward, back = ("east", "west") if line.is_row else ("south", "north")
    inner = line.side.opposite.value.upper()
    if line.inward:
        yield f"const int targets = (is_port ? RAMP : 0) | (port < {high} ? {onward.upper()} : 0);"
        yield f"route({stream}, {_coming(line)}, targets);"
        yield "if (is_port) {"
        yield f"  program(&{line.name});"
        yield f"  route(color, RAMP, {inner});"
        yield f"  bind_input(0, {stream});"
        yield "  bind_output(0, color);"
        yield "}"
        return
    yield f"const int odd = (port - {low}) % 2;"
    yield f"const int sent = odd ? {chain} : {stream}, behind = odd ? {stream} : {chain};"
    yield f"route(sent, RAMP, {back.upper()});"
    yield "bind_output(0, sent);"
    yield f"if (port == {high}) {{"
    yield f"  program(&{line.name}_last);"
    yield "} else {"
    yield f"  program(&{line.name});"
    yield f"  route(behind, {onward.upper()}, RAMP);"
    yield "  bind_input(1, behind);"
    yield "}"
    yield "if (is_port) {"
    yield f"  route(color, {inner}, RAMP);"
    yield "  bind_input(0, color);"
    yield "}"


def _coming(line: Line) -> str:
    return "WEST" if line.is_row else "NORTH"


def _port_texts(group: PortGroup) -> tuple[str, str]:
    """Return in C whether a position is a port, and the color of the stage there."""
    axis = "x" if group.side.line == "PE_X" else "y"
    external = group.ports.range_factor_domain().range()
    positions = bind(external.apply(isl.Map(f"{{ PE[x, y] -> port[{axis}] }}")), (PORT,))
    here = bind_domain(group.color, (PORT,)).intersect_params(positions)
    code = CodeBuilder(isl.Set.universe(positions.get_space()), {})
    condition = code.condition(positions.coalesce())
    value = CodeBuilder(here.params(), {}).value(here.dim_max(0))
    return ("true" if condition is None else integer_text(condition)), integer_text(value)
