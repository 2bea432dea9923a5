"""A layout of regions as a layout program of CSL: one statement a PE and color.

PEs between regions run an empty program. At a stream's end a program of ours hands words from the host to
the port's color, or back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from polyloom.csl.host.layout.regions import CodeRegion, Color, Place, Route, RoutingPosition

EMPTY = "empty.csl"
FROM_HOST = "from_host.csl"
TO_HOST = "to_host.csl"

ENDLESS = 32767

_HEAD = "// Made by Polyloom from a layout in Python.\n"

PROGRAMS = {
    EMPTY: _HEAD + "// Nothing runs here: words pass through the router.\n",
    FROM_HOST: _HEAD
    + """param memcpy_params;
param port: u16;

const sys_mod = @import_module("<memcpy/memcpy>", memcpy_params);
const host = @get_input_queue(2);
const out = @get_output_queue(3);
const received = @get_dsd(fabin_dsd, .{ .extent = 32767, .input_queue = host });
const sent = @get_dsd(fabout_dsd, if (@is_arch("wse3")) .{ .extent = 32767, .output_queue = out }
  else .{ .extent = 32767, .output_queue = out, .fabric_color = @get_color(port) });

const main_id = @get_local_task_id(8);
task main() void {
  @mov32(sent, received, .{ .async = true });
}

comptime {
  @bind_local_task(main, main_id);
  @activate(main_id);
  @initialize_queue(host, .{ .color = @get_color(@as(u16, sys_mod.MEMCPYH2D_1)) });
  @initialize_queue(out, if (@is_arch("wse3")) .{ .color = @get_color(port) } else .{});
}
""",
    TO_HOST: _HEAD
    + """param memcpy_params;
param port: u16;

const sys_mod = @import_module("<memcpy/memcpy>", memcpy_params);
const in = @get_input_queue(2);
const host = @get_output_queue(3);
const host_color = @get_color(@as(u16, sys_mod.MEMCPYD2H_1));
const received = @get_dsd(fabin_dsd, .{ .extent = 32767, .input_queue = in });
const sent = @get_dsd(fabout_dsd, if (@is_arch("wse3")) .{ .extent = 32767, .output_queue = host }
  else .{ .extent = 32767, .output_queue = host, .fabric_color = host_color });

const main_id = @get_local_task_id(8);
task main() void {
  @mov32(sent, received, .{ .async = true });
}

comptime {
  @bind_local_task(main, main_id);
  @activate(main_id);
  @initialize_queue(in, .{ .color = @get_color(port) });
  @initialize_queue(host, if (@is_arch("wse3")) .{ .color = host_color } else .{});
}
""",
}
"""Programs of PEs that are in no region, by file."""


@dataclass(frozen=True)
class Relay:
    """A PE that hands words between the host and a port's color."""

    place: Place
    from_host: bool
    host_color: int
    port: int


def layout_text(
    size: tuple[int, int],
    regions: Sequence[CodeRegion],
    numbers: Mapping[Color, int],
    routes: Mapping[tuple[Place, int], tuple[RoutingPosition, ...]],
    relays: Sequence[Relay],
) -> str:
    """Return a layout program; ``routes`` hold all PEs and colors."""
    width, height = size
    lines = [f"  @set_rectangle({width}, {height});"]
    covered = set()
    for region in regions:
        for y in range(region.height):
            for x in range(region.width):
                given = region.params.get((x, y), {})
                values = {n: numbers[v] if isinstance(v, Color) else int(v) for n, v in given.items()}
                place = region.origin[0] + x, region.origin[1] + y
                covered.add(place)
                lines.append(_tile(place, region.path.resolve().as_posix(), values))
    for relay in relays:
        covered.add(relay.place)
        lines.append(_relay(relay))
    for y in range(height):
        lines += [_tile((x, y), EMPTY, {}) for x in range(width) if (x, y) not in covered]
    lines += [
        _color(place, color, positions) for (place, color), positions in sorted(routes.items(), key=_order)
    ]
    colors = {
        f"MEMCPYH2D_1 = {r.host_color}" if r.from_host else f"MEMCPYD2H_1 = {r.host_color}" for r in relays
    }
    imports = "".join(
        f'const memcpy_{i} = @import_module("<memcpy/get_params>", '
        f".{{ .width = {width}, .height = {height}, .{text} }});\n"
        for i, text in enumerate(sorted(colors))
    )
    named = {text: f"memcpy_{i}" for i, text in enumerate(sorted(colors))}
    body = "\n".join(lines)
    for text, name in named.items():
        body = body.replace(f"<{text}>", name)
    return f"{_HEAD}{imports}\nlayout {{\n{body}\n}}\n"


def _order(item: tuple[tuple[Place, int], object]) -> tuple[int, int, int]:
    (x, y), color = item[0]
    return y, x, color


def _tile(place: Place, file: str, values: Mapping[str, int]) -> str:
    params = ", ".join(f".{name} = {value}" for name, value in values.items())
    return f'  @set_tile_code({place[0]}, {place[1]}, "{file}", .{{ {params} }});'


def _relay(relay: Relay) -> str:
    file = FROM_HOST if relay.from_host else TO_HOST
    which = f"<MEMCPY{'H2D' if relay.from_host else 'D2H'}_1 = {relay.host_color}>"
    x, y = relay.place
    return (
        f'  @set_tile_code({x}, {y}, "{file}", '
        f".{{ .memcpy_params = {which}.get_params({x}), .port = {relay.port} }});"
    )


def _color(place: Place, color: int, positions: Sequence[RoutingPosition]) -> str:
    first = positions[0]
    config = f".routes = .{{ .rx = {_routes(first.inputs)}, .tx = {_routes(first.outputs)} }}"
    switches = []
    for number, position in enumerate(positions[1:], 1):
        parts = []
        if position.inputs and position.inputs != first.inputs:
            parts.append(f".rx = {_single(position.inputs)}")
        if position.outputs and position.outputs != first.outputs:
            parts.append(f".tx = {_single(position.outputs)}")
        switches.append(f".pos{number} = .{{ {', '.join(parts)} }}")
    if switches:
        config += f", .switches = .{{ {', '.join(switches)} }}"
    return f"  @set_color_config({place[0]}, {place[1]}, @get_color({color}), .{{ {config} }});"


def _routes(routes: Sequence[Route]) -> str:
    return ".{ " + ", ".join(route.value for route in routes) + " }"


def _single(routes: Sequence[Route]) -> str:
    return routes[0].value if len(routes) == 1 else _routes(routes)
