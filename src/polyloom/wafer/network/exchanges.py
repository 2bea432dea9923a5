"""The exchanges of all streams: their programs, and the tables that the host loads into each.

Source of the order in which a stage gives and takes: its ports (``PortGroup``), as the host's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from polyloom.diagnostics import Diagnostic, Unsupported, error
from polyloom.polyhedra.vectorized import Integers
from polyloom.wafer.host.transfers import PortOrder, port_orders
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.network import overlap
from polyloom.wafer.network.blocks import Line, Placed
from polyloom.wafer.network.exchange import BLOCK, COUNTS, GIVES, KEEPS, distributor
from polyloom.wafer.network.floor_plan import FloorPlan, Net
from polyloom.wafer.network.tables import (
    LONGEST,
    Table,
    bus_positions,
    flat_gives,
    flat_keeps,
    give_tables,
    positions_of,
    row_major,
    selections,
)
from polyloom.wafer.pe_program.tree import RoleCode
from polyloom.wafer.roles.result import memory_fields

SPARE = 2048
"""Bytes that tables may take beside the elements of an exchange."""


@dataclass(frozen=True, eq=False)
class Exchange:
    """A line's programs and tables. ``last``: the program of the last position, where that is another.

    ``tables``: for each position, name to table. ``held``: of collectors that hold a state: what passes each
    port, and the cells of each of its buffers, whose number is ``buffers``.
    """

    line: Line
    code: RoleCode
    last: RoleCode | None
    tables: dict[int, dict[str, Table]]
    held: tuple[PortOrder, ...] = ()
    cells: int = 0
    buffers: int = 1

    def code_at(self, position: int) -> RoleCode:
        """Return the program of a position."""
        return self.last if self.last is not None and position == self.line.high else self.code

    @property
    def bytes(self) -> int:
        """Of memory that the largest of its programs takes."""
        fields = memory_fields(self.code)
        return fields[-1].offset + fields[-1].bytes if fields else 0


@dataclass(frozen=True, eq=False)
class Carried:
    """A net with its exchanges.

    ``positions``: where each element of its tensor is in the sequence that passes; ``length``: of that.
    """

    net: Net
    positions: Integers
    length: int
    exchanges: tuple[Exchange, ...]


def carry(plan: FloorPlan, machine: Machine) -> tuple[Carried, ...]:
    """Return the exchanges of all nets.

    Errors: ``Unsupported`` with ``network-exchange`` where a port needs more than an exchange can hold.
    """
    return tuple(_carried(plan, net, machine) for net in plan.nets)


def _carried(plan: FloorPlan, net: Net, machine: Machine) -> Carried:
    tensor = plan.network.buffer(net.stream.tensor)
    exchanges: list[Exchange] = []
    if net.source is None:
        positions, length = row_major(tensor.extents), int(np.prod(tensor.extents, dtype=np.int64))
    else:
        orders = _orders(plan, net.source)
        positions, counts = bus_positions(orders, tensor.extents)
        length = sum(counts)
        holds = net.stream.state is not None
        exchanges.append(_collecting(net.source, orders, counts, machine, holds=holds))
    for line, sink in zip(net.sinks, net.stream.sinks, strict=True):
        orders = _orders(plan, line)
        wanted = [positions_of(order.element, sink.elements, positions) for order in orders]
        exchanges.append(_distributing(line, orders, wanted, length, machine))
    return Carried(net, positions, length, tuple(exchanges))


def _orders(plan: FloorPlan, line: Line) -> list[PortOrder]:
    return orders_of(plan.place(line.stage).block.placed, line)


def orders_of(placed: Placed, line: Line) -> list[PortOrder]:
    """Return what passes each port of a line, in its order."""
    grid = placed.program.analysis.border.given.grid
    return list(port_orders(line.group.ports, line.side, grid.positions(line.side)))


def _collecting(
    line: Line, orders: Sequence[PortOrder], counts: Sequence[int], machine: Machine, *, holds: bool
) -> Exchange:
    own = {order.position: count for order, count in zip(orders, counts, strict=True)}
    most = max(counts)
    check_room(line, most, machine)
    tables: dict[int, dict[str, Table]] = {}
    behind = 0
    for position in range(line.high, line.low - 1, -1):
        count = own.get(position, 0)
        row = [count, behind // BLOCK, behind % BLOCK]
        tables[position] = {COUNTS: np.array(row, dtype=np.int16)}
        behind += count
    buffers = 2 if 2 * most * line.group.type.size + SPARE <= machine.memory_bytes else 1
    code = overlap.collector(line.name, line.group.type, most, buffers, ends_line=False, holds=holds)
    name = f"{line.name}_last"
    last = overlap.collector(name, line.group.type, most, buffers, ends_line=True, holds=holds)
    return Exchange(
        line=line,
        code=code,
        last=last,
        tables=tables,
        held=tuple(orders) if holds else (),
        cells=max(most, 1),
        buffers=buffers,
    )


def check_room(line: Line, elements: int, machine: Machine) -> None:
    """Refuse what an exchange cannot hold of a port. Raises ``Unsupported`` ``network-exchange``."""
    if elements * line.group.type.size + SPARE > machine.memory_bytes or elements > LONGEST:
        raise Unsupported(_too_large(line, elements, machine))


def _distributing(
    line: Line, orders: Sequence[PortOrder], wanted: Sequence[Integers], length: int, machine: Machine
) -> Exchange:
    for make in (_in_halves, _in_turn):
        found = make(line, orders, wanted, length, machine)
        if found is not None:
            return found
    raise Unsupported(_too_large(line, max(len(np.unique(each)) for each in wanted), machine))


ROW_CYCLES = 50
"""About what a task between two instructions of a microthread takes: activation, loads, descriptors."""


def _in_halves(
    line: Line, orders: Sequence[PortOrder], wanted: Sequence[Integers], length: int, machine: Machine
) -> Exchange | None:
    """Return distributors that take a sample while they give the one before.

    None where memory has no room for two samples, or the tasks between instructions take longer than what
    is hidden.
    """
    size = line.group.type.size
    found = selections(wanted, length, min((machine.memory_bytes - SPARE) // (2 * size), LONGEST))
    cells = max(s.cells for s in found)
    if 2 * cells > LONGEST:
        return None
    rows = [sum(times for times, *_ in s.keeps.tolist()) for s in found]
    if ROW_CYCLES * max(rows) > max(length // 4, *map(len, wanted)):
        return None
    shapes, given = give_tables([s.gives for s in found])
    gives = [int(table[:, 2].sum()) for table in given]
    if ROW_CYCLES * max(gives) > length:
        return None
    taken, given = [flat_keeps(s.keeps) for s in found], tuple(map(flat_gives, given))
    sizes = cells, max(map(len, taken)), max(map(len, given))
    if 2 * cells * size + 4 * sizes[1] + 8 * sizes[2] + 64 > machine.memory_bytes:
        return None
    code = overlap.distributor(line.name, line.group.type, sizes, 2, shapes)
    return Exchange(line, code, None, _all_tables(orders, taken, given, sizes))


def _in_turn(
    line: Line, orders: Sequence[PortOrder], wanted: Sequence[Integers], length: int, machine: Machine
) -> Exchange | None:
    """Return distributors that take and give in turn; None where memory has no room for a sample."""
    size = line.group.type.size
    found = selections(wanted, length, min((machine.memory_bytes - SPARE) // size, LONGEST))
    cells = max(s.cells for s in found)
    if cells > LONGEST:
        return None
    shapes, given = give_tables([s.gives for s in found])
    sizes = cells, max(len(s.keeps) for s in found), max(map(len, given))
    if cells * size + 8 * sizes[1] + 12 * sizes[2] + 64 > machine.memory_bytes:
        return None
    code = distributor(line.name, line.group.type, sizes, shapes)
    return Exchange(line, code, None, _all_tables(orders, [s.keeps for s in found], given, sizes))


def _all_tables(
    orders: Sequence[PortOrder], kept: Sequence[Table], given: Sequence[Table], sizes: tuple[int, int, int]
) -> dict[int, dict[str, Table]]:
    _, keeps, gives = sizes
    rows = zip(orders, kept, given, strict=True)
    return {order.position: _tables(taken, keeps, table, gives) for order, taken, table in rows}


def _tables(kept: Table, keeps: int, given: Table, gives: int) -> dict[str, Table]:
    counts = np.array([len(kept), len(given)], dtype=np.int16)
    return {COUNTS: counts, KEEPS: _padded(kept, keeps), GIVES: _padded(given, gives)}


def _padded(table: Table, rows: int) -> Table:
    result = np.zeros((rows, table.shape[1]), dtype=np.int16)
    result[: len(table)] = table
    return result


def all_exchanges(carried: Sequence[Carried]) -> Iterator[Exchange]:
    """Yield the exchanges of all nets."""
    for each in carried:
        yield from each.exchanges


def _too_large(line: Line, elements: int, machine: Machine) -> Diagnostic:
    bytes_ = elements * line.group.type.size
    most = machine.memory_bytes // line.group.type.size
    verb = "needs" if line.inward else "gives"
    return error(
        "network-exchange",
        f"a port of the layer `{line.stage}` {verb} {elements:,} elements of `{line.group.tensor}`,"
        f" {bytes_:,} bytes",
        notes=[f"the exchange in front of it can hold {min(most, LONGEST):,} elements"],
        helps=["more PEs for this layer have more ports, each with fewer elements: `--pes`, or a map for it"],
    )
