"""Which color each queue of a role is bound to, as expressions of the PE's place in the given rectangle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import islpy as isl

from polyloom.polyhedra.binding import PE_PARAMETERS, bind, bind_domain
from polyloom.polyhedra.loops.generate import CodeBuilder, IntExpression, Name, Number, Operation, sum_of
from polyloom.wafer.border.flows import LINE
from polyloom.wafer.border.peeling import Border
from polyloom.wafer.dataflow.line_traffic import link_queue, neighbour_queue
from polyloom.wafer.program.port_groups import last_color
from polyloom.wafer.roles.adapter_work import queue_name
from polyloom.wafer.roles.roles import Role
from polyloom.wafer.roles.work import StreamOnRole
from polyloom.wafer.routing.all_routes import Routing
from polyloom.wafer.routing.border_routes import ColoredAdapter
from polyloom.wafer.routing.types import ColoredChain

Bindings = dict[str, IntExpression]


def compute_bindings(
    routing: Routing, streams: Sequence[StreamOnRole], role: Role, origin: tuple[int, int]
) -> Bindings:
    """Return the bindings of a role of compute PEs; ``origin``: where their PE (0, 0) is."""
    colors = {colored.stream.name: colored.color for colored in routing.streams}
    bound: Bindings = {here.queue: Number(colors[here.stream.name]) for here in streams}
    for colored in routing.chains:
        bound.update(_chain_bindings(colored, role, origin))
    for link in routing.links:
        for incoming in (True, False):
            bound[link_queue(link.link, incoming=incoming)] = Number(link.color)
    bound.update(_neighbour_bindings(routing))
    return bound


def _chain_bindings(colored: ColoredChain, role: Role, origin: tuple[int, int]) -> Bindings:
    """What goes on is sent on the PE's own color; what comes was sent on that of the PE one step before."""
    chain = colored.chain
    incoming, outgoing = chain.queue(incoming=True), chain.queue(incoming=False)
    axis = chain.side.axis
    if chain.second is None:
        shift = origin[0 if axis == "PE_X" else 1]
        return {
            incoming: _alternating(colored.colors, axis, shift + 1),
            outgoing: _alternating(colored.colors, axis, shift),
        }
    from_second = chain.second.apply(chain.onwards(chain.step, chain.step))
    return {
        incoming: _chosen(colored.colors, from_second, role, origin),
        outgoing: _chosen(colored.colors, chain.second, role, origin),
    }


def _chosen(pair: tuple[int, int], second: isl.Set, role: Role, origin: tuple[int, int]) -> IntExpression:
    """Return the second color on some PEs, the first on others."""
    here = role.pes.intersect(second)
    if here.is_empty() or pair[0] == pair[1]:
        return Number(pair[0])
    if role.pes.is_subset(second):
        return Number(pair[1])
    shift = isl.Map(f"{{ PE[x, y] -> PE[x + {origin[0]}, y + {origin[1]}] }}")
    builder = CodeBuilder(bind(role.pes.apply(shift), PE_PARAMETERS), {})
    condition = builder.condition(bind(here.apply(shift), PE_PARAMETERS))
    assert condition is not None
    return Operation("?", (condition, Number(pair[1]), Number(pair[0])))


def _alternating(pair: tuple[int, int], coordinate: str, shift: int) -> IntExpression:
    """Return ``even + (coordinate + shift) % 2``, or ``... ? odd : even`` where these are apart."""
    even, odd = pair
    if even == odd:
        return Number(even)
    parity = Operation("%", (sum_of([(1, Name(coordinate)), (1, Number(shift % 2))]), Number(2)))
    if odd != even + 1:
        return Operation("?", (parity, Number(odd), Number(even)))
    return Operation("+", (Number(even), parity)) if even else parity


def border_bindings(border: Border, routing: Routing, role: Role) -> Bindings:
    """Return the bindings of a role of adapter PEs."""
    bound = _neighbour_bindings(routing)
    for colored in routing.adapters:
        bound.update(_adapter_bindings(colored))
        if not role.pes.is_disjoint(colored.adapter.line.at(colored.adapter.lines())):
            name = queue_name(colored.adapter, LINE, incoming=not colored.adapter.inward)
            bound[name] = _line_color(border, routing, colored, role)
    return bound


def _adapter_bindings(colored: ColoredAdapter) -> Iterator[tuple[str, IntExpression]]:
    adapter = colored.adapter
    for kind in colored.kinds:
        for way, incoming in ((kind.origin, True), *((target, False) for target in kind.targets)):
            name = queue_name(adapter, way, incoming=incoming)
            if way.entry is not None:
                yield name, Number(colored.ports[way.entry])


def _neighbour_bindings(routing: Routing) -> Bindings:
    """What goes ahead is sent on the PE's own color; what comes was sent on that of the PE before."""
    bound: Bindings = {}
    for ahead, pair in routing.neighbours.items():
        bound[neighbour_queue(ahead, incoming=False)] = _alternating(pair, ahead.axis, 0)
        bound[neighbour_queue(ahead.opposite, incoming=True)] = _alternating(pair, ahead.axis, 1)
    return bound


def _line_color(border: Border, routing: Routing, colored: ColoredAdapter, role: Role) -> IntExpression:
    adapter = colored.adapter
    if adapter.inward:
        same = (
            s for s in routing.streams if (s.stream.tensor, s.stream.side) == (adapter.tensor, adapter.side)
        )
        return Number(next(same).color)
    return _chain_color(border, _chain_of(routing, colored), role)


def _chain_of(routing: Routing, colored: ColoredAdapter) -> ColoredChain:
    key = colored.adapter.tensor, colored.adapter.side
    return next(c for c in routing.chains if c.chain.leaves and (c.chain.tensor, c.chain.side) == key)


def _chain_color(border: Border, chain: ColoredChain, role: Role) -> IntExpression:
    colors = bind_domain(last_color(border, chain, "line"), (chain.chain.side.line,))
    here = colors.intersect_params(role.context)
    return CodeBuilder(role.context, {}).value(here.dim_max(0))
