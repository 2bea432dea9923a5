"""What adapter PEs do: classes of them with one program, and for each class its adapters in order.

Source: dtg_codegen, Sec. 4.2 (adapters); how they work is not in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.border.adapters import Adapter
from polyloom.wafer.border.flows import Connection, Kind
from polyloom.wafer.dataflow.communication_order import communication_order
from polyloom.wafer.dataflow.line_traffic import neighbour_queue
from polyloom.wafer.dataflow.local_arrays import LocalArray, array_of
from polyloom.wafer.roles.roles import Role, split_roles
from polyloom.wafer.routing.border_routes import ColoredAdapter


def queue_name(adapter: Adapter, way: Connection, *, incoming: bool) -> str:
    """Return the name of the queue for one way into or out of an adapter PE."""
    if way.step:
        return neighbour_queue(adapter.line.towards(way.step), incoming=incoming)
    return f"{adapter.name}_{'from' if incoming else 'to'}_{way.name}"


@dataclass(frozen=True, eq=False)
class AdapterWork:
    """What an adapter does on the PEs of a role. ``buffer``: what is kept of a sparse stream."""

    colored: ColoredAdapter
    kinds: tuple[Kind, ...]
    buffer: LocalArray | None

    @property
    def adapter(self) -> Adapter:
        """The adapter without its colors."""
        return self.colored.adapter

    @property
    def task(self) -> str:
        """The name of the task that passes on what comes, where elements do not as they come."""
        return f"adapt_{self.adapter.name}"

    def at_ports(self) -> list[Kind]:
        """Return one kind for each kind of port, with all that comes from it."""
        result: dict[Connection, Kind] = {}
        for kind in self.kinds:
            if kind.origin.entry is not None:
                known = result.get(kind.origin)
                items = kind.items if known is None else known.items.union(kind.items)
                result[kind.origin] = Kind(kind.origin, (), items)
        return list(result.values())

    def queues(self) -> tuple[list[str], list[str]]:
        """Return the names of input and output queues."""
        origins = dict.fromkeys(k.origin for k in self.kinds)
        targets = dict.fromkeys(t for k in self.kinds for t in k.targets)
        incoming = [queue_name(self.adapter, way, incoming=True) for way in origins]
        return incoming, [queue_name(self.adapter, way, incoming=False) for way in targets]


def _buffer(colored: ColoredAdapter) -> LocalArray:
    """Return the array that holds what arrives at a PE's ports until it goes on, by port and index."""
    adapter = colored.adapter
    items: isl.Map | None = None
    for kind in colored.kinds:
        if kind.origin.entry is not None:
            items = kind.items if items is None else items.union(kind.items)
    assert items is not None
    position = isl.Map(f"{{ pos[c] -> PE[{adapter.line.point('c')}] }}")
    return array_of(adapter.name, adapter.type, items.apply_domain(position).coalesce())


@dataclass(frozen=True, eq=False)
class AdapterRole:
    """A class of adapter PEs; ``works``: what they do, one after the other."""

    role: Role
    works: tuple[AdapterWork, ...]


def adapter_roles(analysis: LayerAnalysis, adapters: Sequence[ColoredAdapter]) -> tuple[AdapterRole, ...]:
    """Return the classes of adapter PEs that run one program; ``pes`` in the given rectangle."""
    features = (kind.on(colored.adapter) for colored in adapters for kind in colored.kinds)
    roles = split_roles(f"{analysis.program.name}_border", features)
    order = communication_order(analysis.graph)

    def works(role: Role) -> tuple[AdapterWork, ...]:
        here = [work for colored in adapters for work in _work_on(role, colored)]
        return tuple(sorted(here, key=lambda work: order[work.adapter.tensor, work.adapter.side]))

    return tuple(AdapterRole(role, works(role)) for role in roles)


def _work_on(role: Role, colored: ColoredAdapter) -> Iterator[AdapterWork]:
    """Yield what a role does for an adapter; nothing where it has no part in it."""
    adapter = colored.adapter
    kinds = tuple(k for k in colored.kinds if role.overlaps(k.on(adapter)))
    keeps = adapter.inward and adapter.sparse and not adapter.spread
    arriving = any(k.origin.entry is not None for k in kinds)
    if kinds:
        yield AdapterWork(colored, kinds, _buffer(colored) if keeps and arriving else None)
