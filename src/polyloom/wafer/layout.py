"""The layout file: which role and which routes each PE has, as conditions on its coordinates."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl

from polyloom.polyhedra.binding import PE_PARAMETERS, bind
from polyloom.polyhedra.loops import CodeBuilder
from polyloom.wafer.chain_code import chain_queues
from polyloom.wafer.code import RoleCode
from polyloom.wafer.emit_c import integer_text
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
    lines = ['#include "layout.h"', '#include "integers.h"', ""]
    lines += [f"extern const struct role {code.name};" for _, code, _ in roles]
    lines += ["", "void layout(int PE_X, int PE_Y) {"]
    lines += [f"  /* color {color}: {what} */" for color, what in routing.colors]
    lines += [f"  {line}" for line in _routes(grid, routing)]
    lines += [
        f"  {line}" for role, code, streams in roles for line in _role(grid, role, code, streams, routing)
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _condition(grid: Grid, pes: isl.Set) -> str:
    builder = CodeBuilder(bind(grid.pes(), PE_PARAMETERS), {})
    condition = builder.condition(bind(pes, PE_PARAMETERS))
    return "1" if condition is None else integer_text(condition)


def _routes(grid: Grid, routing: Routing) -> Iterator[str]:
    for route in routing.routes:
        targets = " | ".join(target.upper() for target in route.targets)
        yield f"if ({_condition(grid, route.pes)})"
        yield f"  route({route.color}, {route.source.upper()}, {targets});"


def _role(
    grid: Grid, role: Role, code: RoleCode, streams: tuple[StreamOnRole, ...], routing: Routing
) -> Iterator[str]:
    yield f"if ({_condition(grid, role.pes)}) {{"
    yield f"  program(&{code.name});"
    colors = {colored.stream.name: colored.color for colored in routing.streams}
    bound = {here.queue: str(colors[here.stream.name]) for here in streams}
    sent: dict[str, str] = {}
    for chain in routing.chains:
        incoming, outgoing = chain_queues(chain.chain)
        bound[incoming], sent[outgoing] = _parity_color(chain, 1), _parity_color(chain, 0)
    for number, queue in enumerate(code.inputs):
        yield f"  bind_input({number}, {bound[queue]});   /* {queue} */"
    for number, queue in enumerate(code.outputs):
        yield f"  bind_output({number}, {sent[queue]});   /* {queue} */"
    yield "}"


def _parity_color(colored: ColoredChain, shift: int) -> str:
    """Return the color on which the PE (shift 0), or the PE before it (shift 1), sends."""
    first = min(colored.colors)
    coordinate = colored.chain.side.axis
    return f"{first} + ({coordinate} + {shift}) % 2" if shift else f"{first} + {coordinate} % 2"
