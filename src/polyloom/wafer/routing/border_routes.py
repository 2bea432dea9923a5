"""Colors and routes of adapters, and the path of straight data through peeled border lines.

All sets of PEs are those of the given rectangle. What goes from one adapter PE to the next is in
``neighbours``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import islpy as isl

from polyloom.wafer.border.adapters import Adapter, between
from polyloom.wafer.border.flows import Kind, kinds_of, port_connection
from polyloom.wafer.border.line import BorderLine, Entry
from polyloom.wafer.border.peeling import Border
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.routing.types import RAMP, ColoredChain, ColoredStream, Route, split_by_color


@dataclass(frozen=True, eq=False)
class ColoredAdapter:
    """An adapter with the colors of each kind of port."""

    adapter: Adapter
    kinds: tuple[Kind, ...]
    ports: dict[Entry, int]

    @property
    def colors(self) -> tuple[tuple[int, str], ...]:
        """Each color and what it carries."""
        line, tensor = self.adapter.line, self.adapter.tensor
        verb = "from" if self.adapter.inward else "to"
        named = {
            color: f"{tensor} {verb} the {line.side_of(e).value} port" for e, color in self.ports.items()
        }
        return tuple(named.items())


def color_adapters(border: Border, free: int) -> tuple[tuple[ColoredAdapter, ...], int]:
    """Give every adapter its colors, from ``free`` on; returns them with the next free color."""
    result: list[ColoredAdapter] = []
    for adapter in border.adapters:
        kinds = kinds_of(adapter)
        ports: dict[Entry, int] = {}
        for entry in adapter.entries():
            if not adapter.spread or not ports:
                free += 1
            ports[entry] = free - 1
        result.append(ColoredAdapter(adapter, kinds, ports))
    return tuple(result), free


def adapter_routes(colored: ColoredAdapter) -> Iterator[Route]:
    """From a port along the line to the PEs that take the data, or between a port and the PE beside it."""
    if colored.adapter.spread:
        yield from _spread_routes(colored)
        return
    adapter = colored.adapter
    for entry, color in colored.ports.items():
        connection, side = port_connection(adapter, entry), adapter.line.side_of(entry).value
        pes = _union(
            [k.on(adapter) for k in colored.kinds if connection in (k.origin, *k.targets)], adapter.line
        )
        yield Route(color, pes, side, (RAMP,)) if adapter.inward else Route(color, pes, RAMP, (side,))


def _union(sets: Sequence[isl.Set], line: BorderLine) -> isl.Set:
    result = line.pes().subtract(line.pes())
    for pes in sets:
        result = result.union(pes)
    return result.coalesce()


def _spread_routes(colored: ColoredAdapter) -> Iterator[Route]:
    """One stream for each port: from the PE beside it in both directions, and down the ramps that need it."""
    adapter = colored.adapter
    line = adapter.line
    receivers = _union([k.on(adapter) for k in colored.kinds], line)
    to_port = isl.Map(f"{{ at[p, {', '.join(f'k{n}' for n in range(adapter.rank))}] -> port[p] }}")
    serves = adapter.element_to_port.domain_factor_range().reverse().apply_domain(to_port)
    for entry, color in colored.ports.items():
        ports = isl.Set(f"{{ port[p] : {line.entry_of(entry)} }}")
        reach = between(serves, line).intersect_domain(ports)
        start = line.pe_of_port().intersect_domain(ports)
        beside = line.at(reach.intersect(start).range())
        yield from _turns(color, line.side_of(entry), beside, receivers, _goes_on(reach, start, line), line)
        for step, source in ((1, line.low), (-1, line.high)):
            passed = line.at(_passed(reach, start, step))
            yield from _turns(color, source, passed, receivers, _goes_on(reach, start, line), line)


def _passed(reach: isl.Map, start: isl.Map, step: int) -> isl.Set:
    """Return ``{ pos[c] }`` that a port's stream comes to from the PE one step before."""
    order = "c > s" if step > 0 else "c < s"
    beyond = start.apply_range(isl.Map(f"{{ pos[s] -> pos[c] : {order} }}"))
    return reach.intersect(beyond).range()


def _goes_on(reach: isl.Map, start: isl.Map, line: BorderLine) -> dict[Side, isl.Set]:
    """Return the PEs from which a port's stream goes on in each direction."""
    result: dict[Side, isl.Set] = {}
    for step, side in ((-1, line.low), (1, line.high)):
        order = "c <= s" if step < 0 else "c >= s"
        from_start = start.apply_range(isl.Map(f"{{ pos[s] -> pos[c] : {order} }}"))
        before = reach.apply_range(isl.Map(f"{{ pos[c] -> pos[c - {step}] }}"))
        result[side] = line.at(reach.intersect(before).intersect(from_start).range())
    return result


def _turns(
    color: int, source: Side, pes: isl.Set, receivers: isl.Set, goes_on: dict[Side, isl.Set], line: BorderLine
) -> Iterator[Route]:
    """Yield routes on ``pes``, one for each set of targets that occurs."""
    conditions = [
        (RAMP, receivers),
        (line.low.value, goes_on[line.low]),
        (line.high.value, goes_on[line.high]),
    ]
    for chosen in product((True, False), repeat=len(conditions)):
        here, targets = pes, list[str]()
        for (target, where), holds in zip(conditions, chosen, strict=True):
            here = here.intersect(where) if holds else here.subtract(where)
            targets += [target] if holds else []
        if targets and not here.is_empty():
            yield Route(color, here.coalesce(), source.value, tuple(targets))


# Between the compute rectangle and the outside.


def border_pes(border: Border, side: Side, pes: isl.Set) -> isl.Set:
    """Return the PEs of a peeled line on the rows or columns of PEs of the given rectangle."""
    line = BorderLine(border.given.grid, side)
    return line.at(pes.apply(line.line_of()).set_tuple_name("pos"))


def stream_crossing(border: Border, colored: ColoredStream) -> Iterator[Route]:
    """How a stream gets through the peeled line on its side: straight on, or from the adapter there."""
    stream = colored.stream
    if stream.side in border.peeled:
        pes = border_pes(border, stream.side, border.to_given(stream.passes))
        adapted = border.adapter(stream.tensor, stream.side) is not None
        yield Route(colored.color, pes, RAMP if adapted else stream.side.value, (stream.side.opposite.value,))


def chain_crossing(border: Border, colored: ColoredChain) -> Iterator[Route]:
    """How results get through the peeled line on their side: straight on, or into the adapter there."""
    chain = colored.chain
    if not chain.leaves or chain.side not in border.peeled:
        return
    adapted = border.adapter(chain.tensor, chain.side) is not None
    for color, sending in zip(colored.colors, split_by_color(chain), strict=True):
        last = chain.last.intersect(sending)
        pes = border_pes(border, chain.side, border.to_given(last))
        yield Route(color, pes, chain.side.opposite.value, (RAMP if adapted else chain.side.value,))
