"""What a peeled border line does for one tensor: between which ports and lines its elements go.

Source: dtg_codegen, Sec. 4.2. Not in the paper: how its adapters work.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from polyloom.ir.program import Program
from polyloom.ir.types import ElementType
from polyloom.wafer.border.demands import Demand
from polyloom.wafer.border.line import BorderLine, Entry, numbered
from polyloom.wafer.dataflow.streams import named_index
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.mapping.mapping import Mapping

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False, kw_only=True)
class Adapter:
    """What a peeled border line does for one tensor.

    ``inward``: the tensor arrives (else it leaves); ``element_to_port``: ``{ [x[i] -> line[l]] -> at[p, k...]
    }``: the element with index k at port p goes to (or comes from) line l; ``ports``: ``{ x[i] -> at[p, k...]
    }``, all that the ports carry, needed or not; ``inner``: ``{ [x[i] -> line[l]] -> index[k] }``, its index
    on the line; ``least``: ``{ line[l] -> key[m...] }``, what the index counts from there; ``spread``:
    whether a stream of its own brings each line what it needs from one port.
    """

    tensor: str
    type: ElementType
    line: BorderLine
    inward: bool
    sparse: bool
    element_to_port: isl.Map
    ports: isl.Map
    inner: isl.Map
    least: isl.Map
    spread: bool

    @property
    def side(self) -> Side:
        """The side that the line was peeled from."""
        return self.line.side

    @property
    def name(self) -> str:
        """A name that is unique among the adapters."""
        return f"{self.tensor}_{self.side.value}"

    @property
    def rank(self) -> int:
        """Number of index dimensions at the outer ports."""
        return int(self.ports.dim(_DIM.out)) - 1

    def lines(self) -> isl.Set:
        """Return ``{ pos[c] }``: the rows or columns that it serves."""
        return self.element_to_port.domain().unwrap().range().set_tuple_name("pos").coalesce()

    def entries(self) -> tuple[Entry, ...]:
        """Return the kinds of ports that it has."""
        return tuple(entry for entry in Entry if not self.outer(entry).is_empty())

    def outer(self, entry: Entry) -> isl.Map:
        """Return ``{ x[i] -> [PE[x, y] -> index[k]] }`` of the ports of a kind, in the given rectangle."""
        k = ", ".join(numbered("k", self.rank))
        external = self.line.port_positions().reverse()
        here = isl.Map(f"{{ at[p, {k}] -> [port[p] -> index[{k}]] : {self.line.entry_of(entry)} }}")
        same = isl.Map(f"{{ index[{k}] -> index[{k}] }}")
        return self.ports.apply_range(here).apply_range(external.product(same)).coalesce()


def adapter_of(program: Program, given: Mapping, demand: Demand) -> Adapter:
    """Return what a line does for what is demanded of it."""
    tensor, line = demand.tensor, demand.line
    ports = _at_ports(demand.ports, line)
    element_to_port = _element_to_port(demand.lines, ports, single=demand.inward)
    used = element_to_port.range()
    ports = ports.intersect_range(_same_port(ports, used) if demand.inward else used)
    spread = demand.inward and _is_disjoint(element_to_port, line)
    least, one_port = _least(element_to_port)
    inner = _inner_index(element_to_port, least, one_port=one_port)
    element, sparse = program.buffer(tensor).type, tensor in given.sparse
    return Adapter(
        tensor=tensor,
        type=element,
        line=line,
        inward=demand.inward,
        sparse=sparse,
        element_to_port=element_to_port,
        ports=ports.coalesce(),
        inner=inner,
        least=least,
        spread=spread,
    )


def _at_ports(schedule: isl.Map, line: BorderLine) -> isl.Map:
    """Return ``{ x[i] -> at[p, k...] }`` for the ports that reach the line."""
    rank = schedule.range().unwrap().dim(_DIM.out)
    k = ", ".join(numbered("k", rank))
    flat = isl.Map(f"{{ [port[p] -> index[{k}]] -> at[p, {k}] }}")
    pair = isl.Map(f"{{ index[{k}] -> index[{k}] }}")
    return named_index(schedule).apply_range(line.port_positions().product(pair)).apply_range(flat).coalesce()


def _element_to_port(lines: isl.Map, ports: isl.Map, *, single: bool) -> isl.Map:
    """Return ``{ [x[i] -> line[l]] -> at[p, k...] }``.

    With ``single``, an element comes to a line from one port: the one beside it, else the first.
    """
    every = lines.range_product(ports)
    if not single or every.uncurry().is_single_valued():
        return every.uncurry().coalesce()
    k = ", ".join(numbered("k", ports.dim(_DIM.out) - 1))
    beside = every.intersect_range(isl.Set(f"{{ [line[l] -> at[p, {k}]] : p = l }}")).uncurry()
    others = every.uncurry().subtract_domain(beside.domain())
    return beside.union(others.lexmin()).coalesce()


def _port_of(rank: int) -> isl.Map:
    """Return ``{ at[p, k...] -> port[p] }``."""
    return isl.Map(f"{{ at[{', '.join(['p', *numbered('k', rank)])}] -> port[p] }}")


def _same_port(ports: isl.Map, used: isl.Set) -> isl.Set:
    """Return all ``{ at[p, k...] }`` at the ports of some."""
    to_port = _port_of(ports.dim(_DIM.out) - 1)
    return used.apply(to_port).apply(to_port.reverse())


def _is_disjoint(element_to_port: isl.Map, line: BorderLine) -> bool:
    """Whether the parts of the line between each port and the lines that it serves have no PE in common."""
    to_port = _port_of(element_to_port.dim(_DIM.out) - 1)
    serves = element_to_port.domain_factor_range().reverse().apply_domain(to_port)
    return bool(between(serves, line).is_injective())


def between(serves: isl.Map, line: BorderLine) -> isl.Map:
    """Return ``{ port[p] -> pos[c] }``: the PEs from a port to the lines ``{ port[p] -> line[l] }``."""
    start = line.pe_of_port()
    space = isl.Map("{ [pos[s] -> line[l]] -> pos[c] : s <= c <= l or l <= c <= s }")
    return start.range_product(serves).apply_range(space).coalesce()


def _key(rank: int, *, one_port: bool) -> isl.Map:
    """Return ``{ at[p, k...] -> key[k...] }``; with several ports on a line, ``key[p, k...]``."""
    at = ["p", *numbered("k", rank)]
    return isl.Map(f"{{ at[{', '.join(at)}] -> key[{', '.join(at[one_port:])}] }}")


def _least(element_to_port: isl.Map) -> tuple[isl.Map, bool]:
    """Return the smallest key on each line, ``{ line[l] -> key[m...] }``, and whether each has one port."""
    rank = element_to_port.dim(_DIM.out) - 1
    by_line = element_to_port.domain_factor_range()
    one_port = bool(by_line.apply_range(_port_of(rank)).is_single_valued())
    return _smallest(by_line.apply_range(_key(rank, one_port=one_port))), one_port


def _inner_index(element_to_port: isl.Map, least: isl.Map, *, one_port: bool) -> isl.Map:
    """Return ``{ [x[i] -> line[l]] -> index[k] }``: the order along a line.

    Elements keep their order at the port, and each index counts from the smallest on the line. Where a line
    has several ports, the port counts as the outermost index.
    """
    keyed = element_to_port.apply_range(_key(element_to_port.dim(_DIM.out) - 1, one_port=one_port))
    lifted = keyed.domain().unwrap().range_map().apply_range(least)
    high, low = numbered("a", keyed.dim(_DIM.out)), numbered("m", keyed.dim(_DIM.out))
    shifted = ", ".join(f"{a} - {m}" for a, m in zip(high, low, strict=True))
    shift = isl.Map(f"{{ [key[{', '.join(high)}] -> key[{', '.join(low)}]] -> index[{shifted}] }}")
    return keyed.range_product(lifted).apply_range(shift).coalesce()


def _smallest(keys: isl.Map) -> isl.Map:
    """Return, for each line, the smallest value of each dimension: ``{ line[l] -> key[...] }``."""
    rank = keys.dim(_DIM.out)
    a = ", ".join(numbered("a", rank))
    result: isl.Map | None = None
    for k in range(rank):
        least = keys.apply_range(isl.Map(f"{{ key[{a}] -> [a{k}] }}")).lexmin()
        result = least if result is None else result.flat_range_product(least)
    assert result is not None
    return result.set_tuple_name(_DIM.out, "key")
