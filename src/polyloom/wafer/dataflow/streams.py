"""Streams: how tensor elements arrive, and which PEs of a line take them off the fabric.

Inside the rectangle all data flows straight along rows or columns, from the external PE that a port
names to every PE of the row or column that it faces.
Source: dtg_codegen, Sec. 4.1.2 and 4.2; docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.ir.program import Program
from polyloom.ir.relations import access_relation
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType
from polyloom.polyhedra.binding import PE_PARAMETERS, parametric_point, parsed_map, parsed_set
from polyloom.polyhedra.effort import naming
from polyloom.polyhedra.simplify import as_box, with_explicit_divs
from polyloom.polyhedra.text.points import sample_of
from polyloom.wafer.mapping.grid import Grid, Side
from polyloom.wafer.mapping.mapping import Mapping

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False, kw_only=True)
class Stream:
    """All the streams of one tensor that enter from one side, one for each row or column.

    ``ports``: ``{ x[i] -> [PE[x, y] -> index[k]] }`` with external PEs; ``carried``: the same for every
    PE of the lines; ``receivers``: the PEs whose instances need elements; ``passes``: the PEs that the
    stream flows through, up to the farthest receiver of the line.
    """

    tensor: str
    type: ElementType
    side: Side
    sparse: bool
    ports: isl.Map
    carried: isl.Map
    receivers: isl.Set
    passes: isl.Set

    @property
    def name(self) -> str:
        """A name that is unique among the streams that a PE receives."""
        return f"{self.tensor}_{self.side.value}"

    @property
    def index_rank(self) -> int:
        """Number of index dimensions; all but the last are outer ones."""
        return int(self.carried.get_space().range().unwrap().dim(_DIM.out))

    @property
    def index_names(self) -> tuple[str, ...]:
        """``index_0``, ..., ``index``: the symbolic constants of the index dimensions."""
        return index_names(self.index_rank)

    def arriving(self) -> isl.Set:
        """Return ``[PE_X, PE_Y, index_0, index] -> { x[i] }``: the element with that index on that PE."""
        bound = _bound_pair(self.index_names)
        return self.carried.intersect_range(bound).domain()

    def indices(self) -> isl.Set:
        """Return ``[PE_X, PE_Y] -> { index[k] }``: the indices that arrive on a PE, in any order."""
        pairs = self.carried.range().unwrap()
        at_pe = pairs.intersect_domain(parametric_point("PE", PE_PARAMETERS))
        return at_pe.range()


def index_names(rank: int) -> tuple[str, ...]:
    """Return the names of the symbolic constants for an index of ``rank`` dimensions."""
    return (*(f"index_{k}" for k in range(rank - 1)), "index")


def needed_elements(mapping: Mapping, statement: Statement, tensor: str) -> isl.Map:
    """Return ``{ PE[x, y] -> x[i] }``: what the statement's instances on each PE read of a tensor."""
    placed = mapping.placement[statement.name].reverse()
    relations = [
        placed.apply_range(access_relation(statement, access))
        for access in statement.reads
        if access.buffer == tensor
    ]
    result = relations[0]
    for relation in relations[1:]:
        result = result.union(relation)
    return result.coalesce()


def build_streams(program: Program, mapping: Mapping) -> tuple[Stream, ...]:
    """Return the streams, in the order of ``iport_map``.

    Raises PolyloomError ``map-delivery`` where an element that an instance reads comes from no port or
    from two. That ports face the rows and columns which need what they bring: ``border/peeling.peel_border``.
    """
    streams: list[Stream] = []
    faults: list[Diagnostic] = []
    for tensor, schedule in mapping.inputs.items():
        with naming(f"how `{tensor}` reaches its PEs", mapping.span("iport_map")):
            needed = all_needed(program, mapping, tensor)
            found = [s for side in Side if (s := _stream(program, mapping, tensor, schedule, side, needed))]
            faults += _delivery_faults(mapping, tensor, found, needed)
        streams += [s for s in found if not s.receivers.is_empty()]
    if faults:
        raise PolyloomError(*faults)
    assert all(_all_arrives(program, mapping, tensor, streams) for tensor in mapping.inputs)
    return tuple(streams)


def _all_arrives(program: Program, mapping: Mapping, tensor: str, streams: Sequence[Stream]) -> bool:
    """Whether streams bring every PE all that its instances read: border adapters have seen to it."""
    needed = all_needed(program, mapping, tensor)
    for stream in streams:
        if stream.tensor == tensor:
            needed = needed.subtract(stream.carried.range_factor_domain().reverse())
    return bool(needed.is_empty())


def _bound_pair(names: Sequence[str]) -> isl.Set:
    index = parametric_point("index", names)
    pes = parametric_point("PE", PE_PARAMETERS)
    return isl.Map.from_domain_and_range(pes, index).wrap()


def all_needed(program: Program, mapping: Mapping, tensor: str) -> isl.Map:
    """Return ``{ PE[x, y] -> x[i] }``: what all statements' instances on each PE read of a tensor."""
    readers = [s for s in program.statements if any(a.buffer == tensor for a in s.reads)]
    result: isl.Map | None = None
    for statement in readers:
        needed = needed_elements(mapping, statement, tensor)
        result = needed if result is None else result.union(needed)
    if result is None:
        rank = len(program.buffer(tensor).extents)
        indices = ", ".join(f"i{k}" for k in range(rank))
        return isl.Map(f"{{ PE[x, y] -> {tensor}[{indices}] : false }}")
    return result.coalesce()


def _stream(
    program: Program, mapping: Mapping, tensor: str, schedule: isl.Map, side: Side, needed: isl.Map
) -> Stream | None:
    grid = mapping.grid
    ports = on_side(schedule, grid, side)
    if ports.is_empty():
        return None
    carried = along_lines(ports, grid, side)
    delivered = needed.intersect(carried.range_factor_domain().reverse())
    receivers = as_box(with_explicit_divs(delivered.domain()))
    nearer = grid.towards(side)
    passes = as_box(receivers.union(receivers.apply(nearer)).coalesce())
    element = program.buffer(tensor).type
    sparse = tensor in mapping.sparse
    return Stream(
        tensor=tensor,
        type=element,
        side=side,
        sparse=sparse,
        ports=ports,
        carried=carried,
        receivers=receivers,
        passes=passes,
    )


def along_lines(ports: isl.Map, grid: Grid, side: Side) -> isl.Map:
    """Replace each external PE by all the PEs of the row or column that it faces."""
    same = "p = x" if side.line == "PE_X" else "q = y"
    rank = ports.get_space().range().unwrap().dim(_DIM.out)
    index = ", ".join(f"k{n}" for n in range(rank))
    spread = parsed_map(f"{{ [PE[p, q] -> index[{index}]] -> [PE[x, y] -> index[{index}]] : {same} }}")
    inside = isl.Map.from_domain_and_range(grid.pes(), every_index(rank)).wrap()
    named = named_index(ports)
    return named.apply_range(spread).intersect_range(inside).coalesce()


def every_index(rank: int) -> isl.Set:
    """Return ``{ index[k0, ...] }``, all of it."""
    return parsed_set(f"{{ index[{', '.join(f'k{n}' for n in range(rank))}] }}")


def named_index(ports: isl.Map) -> isl.Map:
    """Give the index tuple the name ``index``, whatever the map called it."""
    return ports.uncurry().set_tuple_name(_DIM.out, "index").curry()


def on_side(schedule: isl.Map, grid: Grid, side: Side) -> isl.Map:
    """Restrict ``{ x[i] -> [PE[x, y] -> index[k]] }`` to the external PEs of one side."""
    rank = schedule.get_space().range().unwrap().dim(_DIM.out)
    named = named_index(schedule)
    allowed = isl.Map.from_domain_and_range(grid.external(side), every_index(rank))
    return named.intersect_range(allowed.wrap()).coalesce()


def _delivery_faults(
    mapping: Mapping, tensor: str, streams: list[Stream], needed: isl.Map
) -> Iterator[Diagnostic]:
    nowhere = needed.range().subtract(mapping.inputs[tensor].domain())
    if not nowhere.is_empty():
        yield error(
            "map-delivery",
            f"elements of `{tensor}` that instances read never arrive",
            mapping.span("iport_map"),
            notes=[f"{sample_of(nowhere)} is read, but `iport_map` has no port for it"],
            helps=["give every element a port, or leave the tensor out to make it resident"],
        )
    for k, first in enumerate(streams):
        for second in streams[k + 1 :]:
            yield from _delivered_twice(mapping, tensor, first, second, needed)


def _delivered_twice(
    mapping: Mapping, tensor: str, first: Stream, second: Stream, needed: isl.Map
) -> Iterator[Diagnostic]:
    both = [s.carried.range_factor_domain().reverse() for s in (first, second)]
    clash = needed.intersect(both[0]).intersect(both[1])
    if not clash.is_empty():
        element = sample_of(clash.range())
        yield error(
            "map-delivery",
            f"elements of `{tensor}` arrive twice on one PE",
            mapping.span("iport_map"),
            notes=[
                f"{element} comes to {sample_of(clash.domain())} from the {first.side.value} "
                f"and from the {second.side.value}"
            ],
            helps=["send each element to a PE from one side only"],
        )
