"""What each adapter PE does with the elements that a border line carries: where from, where to.

An element enters the line at a PE and travels along it to one or several others. On each PE it comes
from one *origin* and goes to any number of *targets*. Elements pass every PE in one order, that of the
ports and of the index at each; so no PE ever waits for another one in a ring.
Not in the papers: they only say what adapters must achieve (dtg_codegen, Sec. 4.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from polyloom.polyhedra.binding import bind_domain
from polyloom.wafer.border.adapters import Adapter
from polyloom.wafer.border.line import Entry
from polyloom.wafer.dataflow.line_traffic import beside, passing, split_by_targets

_DIM = isl.dim_type


@dataclass(frozen=True)
class Connection:
    """A connection of an adapter PE: a port, its row or column, or a neighbour on the line.

    ``entry``: which kind of port; ``step``: -1 towards the line's low end, 1 towards the high end.
    """

    name: str
    entry: Entry | None = None
    step: int = 0

    @property
    def is_line(self) -> bool:
        """Whether it is the row or column of compute PEs."""
        return self.entry is None and self.step == 0


LINE = Connection("line")


def port_connection(adapter: Adapter, entry: Entry) -> Connection:
    """Return the connection from or to ports of a kind."""
    suffix = "" if entry is Entry.BESIDE else f"_{adapter.line.side_of(entry).value}"
    return Connection(f"port{suffix}", entry)


@dataclass(frozen=True, eq=False)
class Kind:
    """``items``: ``{ pos[c] -> at[p, k...] }``: on PE c, these come from ``origin`` and go to ``targets``."""

    origin: Connection
    targets: tuple[Connection, ...]
    items: isl.Map

    def on(self, adapter: Adapter) -> isl.Set:
        """Return ``{ PE[x, y] }`` on which there are any."""
        return adapter.line.at(self.items.domain()).coalesce()

    def here(self, adapter: Adapter) -> isl.Set:
        """Return ``[PE_X] -> { at[p, k...] }``, or ``[PE_Y]``: those of a PE."""
        return bind_domain(self.items, (adapter.line.parameter,))


def kinds_of(adapter: Adapter) -> tuple[Kind, ...]:
    """Return all kinds of elements that the PEs of an adapter deal with."""
    if adapter.spread:
        return tuple(_spread_kinds(adapter))
    return tuple(_exchange_kinds(adapter))


def _spread_kinds(adapter: Adapter) -> Iterator[Kind]:
    """A stream passes all PEs that need something of it: they take it all, and drop what they do not need."""
    wanted = adapter.element_to_port.domain_factor_range().set_tuple_name(_DIM.in_, "pos")
    to_port = _to_port(adapter)
    arriving = wanted.apply_range(to_port).apply_range(to_port.reverse().intersect_range(_items(adapter)))
    for entry in adapter.entries():
        origin = port_connection(adapter, entry)
        here = isl.Set(f"{{ port[p] : {adapter.line.entry_of(entry)} }}").apply(to_port.reverse())
        dropped = _dropped(adapter, wanted, arriving.subtract(wanted))
        for targets, items in (((LINE,), wanted), *(((), part) for part in dropped)):
            found = items.intersect_range(here)
            if not found.is_empty():
                yield Kind(origin, targets, found.coalesce())


def _dropped(adapter: Adapter, wanted: isl.Map, unwanted: isl.Map) -> list[isl.Map]:
    """Return what PEs do not need; of a dense tensor in parts, each of which an instruction can drop."""
    if adapter.sparse:
        return [unwanted]
    names = ", ".join(["p", *(f"k{n}" for n in range(adapter.rank))])
    flat = isl.Map(f"{{ [pos[c] -> at[{names}]] -> [c, {names}] }}")
    parts = beside(wanted.wrap().apply(flat), unwanted.wrap().apply(flat), apart=1)
    return [part.apply(flat.reverse()).unwrap() for part in parts.values()]


def _items(adapter: Adapter) -> isl.Set:
    return adapter.ports.range()


def _to_port(adapter: Adapter) -> isl.Map:
    names = ", ".join(f"k{n}" for n in range(adapter.rank))
    return isl.Map(f"{{ at[p, {names}] -> port[p] }}")


def _ends(adapter: Adapter) -> tuple[isl.Map, isl.Map]:
    """Return ``{ at[p, k...] -> pos[c] }``: at which PE each item is next to its port, and to its lines."""
    beside = _to_port(adapter).apply_range(adapter.line.pe_of_port()).intersect_domain(_items(adapter))
    lines = adapter.element_to_port.domain_factor_range().reverse().set_tuple_name(_DIM.out, "pos")
    return beside, lines


def _exchange_kinds(adapter: Adapter) -> Iterator[Kind]:
    port_ends, line_ends = (ends.reverse() for ends in _ends(adapter))
    sources, sinks = (port_ends, line_ends) if adapter.inward else (line_ends, port_ends)
    positions = isl.Set(f"{{ pos[c] : 0 <= c < {adapter.line.length} }}")
    lower = isl.Map("{ pos[c] -> pos[e] : e < c }").intersect_domain(positions)
    higher = isl.Map("{ pos[c] -> pos[e] : e > c }").intersect_domain(positions)
    along = passing(sources, sinks, lower, higher)
    by_port = dict(_at_entries(adapter, port_ends))
    by_line = {LINE: line_ends}
    low, high = (
        Connection(side.value, step=s) for side, s in ((adapter.line.low, -1), (adapter.line.high, 1))
    )
    origins = {**(by_port if adapter.inward else by_line), low: along.from_low, high: along.from_high}
    targets = {**(by_line if adapter.inward else by_port), low: along.to_low, high: along.to_high}
    for origin, chosen, items in split_by_targets(origins, targets):
        yield Kind(origin, chosen, items)


def _at_entries(adapter: Adapter, items: isl.Map) -> Iterator[tuple[Connection, isl.Map]]:
    for entry in adapter.entries():
        ports = isl.Set(f"{{ port[p] : {adapter.line.entry_of(entry)} }}")
        yield port_connection(adapter, entry), items.intersect_range(ports.apply(_to_port(adapter).reverse()))
