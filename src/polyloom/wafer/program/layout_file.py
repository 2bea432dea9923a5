"""The layout file: which role and which routes each PE has, as conditions on its coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import islpy as isl

from polyloom.polyhedra.binding import PE_PARAMETERS, bind
from polyloom.polyhedra.loops.generate import CodeBuilder, IntExpression, Name, Number, replace_name, sum_of
from polyloom.wafer.mapping.grid import Grid
from polyloom.wafer.pe_program.print_c import includes, integer_text
from polyloom.wafer.pe_program.tree import Filter, RoleCode
from polyloom.wafer.routing.all_routes import Routing

Part = tuple[isl.Set, RoleCode, tuple[int, int], dict[str, IntExpression]]
"""A role: its PEs, its program, its rectangle's PE (0, 0), and the colors of its queues."""


def layout_file(grid: Grid, roles: Sequence[Part], routing: Routing) -> str:
    """Return ``layout.c``: a function that the machine evaluates for each PE."""
    lines = [f"extern const struct role {code.name};" for _, code, _, _ in roles]
    lines += ["", "void layout(int PE_X, int PE_Y) {"]
    lines += [f"  /* color {color}: {what} */" for color, what in routing.colors]
    lines += [f"  {line}" for line in _routes(grid, routing)]
    lines += [f"  {line}" for part in roles for line in _role(grid, part)]
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
        targets, source = " | ".join(target.upper() for target in route.targets), route.source.upper()
        line = f"route({route.color}, {source}, {targets});"
        if route.then is not None:
            line = f"route_in_turn({route.color}, {source}, {route.then.upper()}, {targets});"
        yield from _on(grid, route.pes, [line])


def _role(grid: Grid, part: Part) -> Iterator[str]:
    pes, code, origin, colors = part
    lines = [f"program(&{code.name});"]
    if origin != (0, 0):
        lines.append(f"origin({origin[0]}, {origin[1]});")
    for number, queue in enumerate(code.inputs):
        lines.append(f"bind_input({number}, {integer_text(colors[queue])});   /* {queue} */")
    lines += [_filter(one, colors[one.queue], origin) for one in code.filters]
    for number, queue in enumerate(code.outputs):
        lines.append(f"bind_output({number}, {integer_text(colors[queue])});   /* {queue} */")
    yield from _on(grid, pes, lines)


def _filter(one: Filter, color: IntExpression, origin: tuple[int, int]) -> str:
    """Return the line of a filter; its numbers are said of the PE's place in the role's rectangle."""
    numbers = [color]
    for number in (one.skip, one.keep, one.period):
        for name, shift in zip(PE_PARAMETERS, origin, strict=True):
            if shift:
                number = replace_name(number, name, sum_of([(1, Name(name)), (-1, Number(shift))]))
        numbers.append(number)
    return f"filter{'_pairs' if one.pairs else ''}({', '.join(map(integer_text, numbers))});"
