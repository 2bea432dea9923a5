"""The layout file: which role and which routes each PE has, as conditions on its coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import islpy as isl

from polyloom.polyhedra.binding import PE_PARAMETERS, bind
from polyloom.polyhedra.loops import CodeBuilder
from polyloom.wafer.chain_code import chain_queues
from polyloom.wafer.code import RoleCode
from polyloom.wafer.emit_c import includes, integer_text
from polyloom.wafer.roles import Role
from polyloom.wafer.routes import ColoredChain, Routing
from polyloom.wafer.sides import Grid
from polyloom.wafer.stream_code import StreamOnRole


def layout_file(
    grid: Grid,
    roles: tuple[tuple[Role, RoleCode, tuple[StreamOnRole, ...]], ...],
    routing: Routing,
) -> str:
    """Return ``layout.c``: a function that the machine evaluates for each PE."""
    lines = [f"extern const struct role {code.name};" for _, code, _ in roles]
    lines += ["", "void layout(int PE_X, int PE_Y) {"]
    lines += [f"  /* color {color}: {what} */" for color, what in routing.colors]
    lines += [f"  {line}" for line in _routes(grid, routing)]
    lines += [
        f"  {line}" for role, code, streams in roles for line in _role(grid, role, code, streams, routing)
    ]
    body = "\n".join([*lines, "}"]) + "\n"
    return f"{includes('layout.h', body)}\n\n{body}"


def _on(grid: Grid, pes: isl.Set, lines: Sequence[str]) -> Iterator[str]:
    """Yield lines that take effect on some PEs; without a condition where these are all."""
    builder = CodeBuilder(bind(grid.pes(), PE_PARAMETERS), {})
    condition = builder.condition(bind(pes, PE_PARAMETERS))
    if condition is None:
        yield from lines
        return
    brace = len(lines) > 1
    yield f"if ({integer_text(condition)}){' {' if brace else ''}"
    yield from (f"  {line}" for line in lines)
    if brace:
        yield "}"


def _routes(grid: Grid, routing: Routing) -> Iterator[str]:
    for route in routing.routes:
        targets = " | ".join(target.upper() for target in route.targets)
        yield from _on(grid, route.pes, [f"route({route.color}, {route.source.upper()}, {targets});"])


def _role(
    grid: Grid, role: Role, code: RoleCode, streams: tuple[StreamOnRole, ...], routing: Routing
) -> Iterator[str]:
    lines = [f"program(&{code.name});"]
    colors = {colored.stream.name: colored.color for colored in routing.streams}
    bound = {here.queue: str(colors[here.stream.name]) for here in streams}
    sent: dict[str, str] = {}
    for chain in routing.chains:
        incoming, outgoing = chain_queues(chain.chain)
        bound[incoming], sent[outgoing] = _parity_color(chain, 1), _parity_color(chain, 0)
    for number, queue in enumerate(code.inputs):
        lines.append(f"bind_input({number}, {bound[queue]});   /* {queue} */")
    for number, queue in enumerate(code.outputs):
        lines.append(f"bind_output({number}, {sent[queue]});   /* {queue} */")
    yield from _on(grid, role.pes, lines)


def _parity_color(colored: ColoredChain, shift: int) -> str:
    """Return the color on which the PE (shift 0), or the PE before it (shift 1), sends."""
    first = min(colored.colors)
    coordinate = colored.chain.side.axis
    parity = f"({coordinate} + {shift}) % 2" if shift else f"{coordinate} % 2"
    return f"{first} + {parity}" if first else parity
