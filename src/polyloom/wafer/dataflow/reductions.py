"""Chains: how results are reduced and gathered along a row or column, in the order of the output.

A chain runs from the far end of a line towards a port, or towards the PE that holds the result. On
each PE it is a sequence of elements in the order of their index; each is combined (it arrives and
the PE has a part of it), the PE's own, or forwarded.
Source: dtg_codegen, Sec. 4.2 (communication tasks); docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Mapping as ReadOnly
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import islpy as isl

from polyloom.ir.program import Program
from polyloom.ir.reductions import Combine
from polyloom.ir.relations import access_relation, element_set
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType
from polyloom.polyhedra.binding import PE_PARAMETERS, bind_domain, parametric_point
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.effort import naming
from polyloom.polyhedra.simplify import with_explicit_divs
from polyloom.wafer.dataflow.streams import all_needed, along_lines, every_index, on_side
from polyloom.wafer.dataflow.transfers import Move, moves_of
from polyloom.wafer.mapping.grid import Side, pes_of
from polyloom.wafer.mapping.mapping import Mapping

_DIM = isl.dim_type


class Part(Enum):
    """What a PE does with one element of a chain."""

    COMBINE = "combine"
    OWN = "own"
    FORWARD = "forward"


@dataclass(frozen=True, eq=False, kw_only=True)
class Chain:
    """The chains of one tensor towards one side, one for each row or column.

    ``order``: ``{ y[i] -> [PE[x, y] -> index[k]] }`` for all PEs of the lines; ``own``, ``upstream``:
    ``{ PE[x, y] -> y[i] }``: what a PE contributes, and what PEs farther from the side contribute;
    ``last``: the contributor nearest to the side; ``leaves``: whether the elements go on to an
    external PE (else they end in the local memory of ``last``, which then may be no contributor);
    ``contributors``: the PEs of ``own``, as simple a set as is known;
    ``nearer``: from a PE to those of its line that are nearer to the side; ``stage``: 2 where rows have been
    reduced before. A reduction may be several chains, one after the other (``collectives``): ``level``: its
    number from 1 where another one follows; ``step``: how far it is from one PE that takes part to the next;
    ``second``: the PEs that send on the second color, None for those with an odd coordinate. ``turns``: set
    where no PE passes anything on, but all send in turn: in a round for each tuple of so many outer indices.
    """

    tensor: str
    type: ElementType
    reduction: Combine
    side: Side
    leaves: bool
    sparse: bool
    order: isl.Map
    own: isl.Map
    upstream: isl.Map
    contributors: isl.Set
    last: isl.Set
    nearer: isl.Map
    stage: int = 1
    level: int = 0
    step: int = 1
    second: isl.Set | None = None
    turns: int | None = None

    @property
    def name(self) -> str:
        """A name that is unique among the chains of a PE."""
        if self.level:
            return f"{self.tensor}_{self.verb}_{self.side.value}_level_{self.level}"
        return f"{self.tensor}_{'to_' + self.side.value if self.leaves else self.verb}"

    def queue(self, *, incoming: bool) -> str:
        """Return the name of its input or output queue."""
        return f"{self.name}_{'parts' if incoming else 'out'}"

    def odd(self) -> isl.Set:
        """Return the PEs that send on the second of the two colors."""
        if self.second is not None:
            return self.second
        along = "x" if self.side.axis == "PE_X" else "y"
        return isl.Set(f"{{ PE[x, y] : {along} mod 2 = 1 }}")

    def onwards(self, least: int, most: int) -> isl.Map:
        """Return ``{ PE[x, y] -> PE[x1, y1] }``: so many PEs on towards the side."""
        distance, line = {
            Side.EAST: ("x1 - x", "y1 = y"),
            Side.WEST: ("x - x1", "y1 = y"),
            Side.SOUTH: ("y1 - y", "x1 = x"),
            Side.NORTH: ("y - y1", "x1 = x"),
        }[self.side]
        return isl.Map(f"{{ PE[x, y] -> PE[x1, y1] : {line} and {least} <= {distance} <= {most} }}")

    @property
    def verb(self) -> str:
        """What a chain that does not leave does: ``reduce``, ``reduce_2`` in a second direction."""
        return "reduce" if self.stage == 1 else f"reduce_{self.stage}"

    def completed(self) -> isl.Map:
        """Return ``{ PE[x, y] -> y[i] }``: what a chain that does not leave puts where."""
        return self.own.union(self.upstream).intersect_domain(self.last).coalesce()

    def trailing(self) -> isl.Set:
        """Return the PEs between the last contributor and the side: their routers pass the data on."""
        return self.last.apply(self.nearer).coalesce()

    def members(self) -> isl.Set:
        """Return the PEs that run code for the chain: from the first contributor of a line to the last."""
        return self._members

    @cached_property
    def _members(self) -> isl.Set:
        forwarding = self.upstream.domain().subtract(self.trailing())
        return self.contributors.union(forwarding).coalesce()

    def positions(self, part: Part) -> isl.Set:
        """Return ``[PE_X, PE_Y] -> { index[k] }``: the indices of the elements of one kind."""
        return self._positions[part]

    @cached_property
    def _positions(self) -> ReadOnly[Part, isl.Set]:
        return {part: self._positions_of(part) for part in Part}

    def _positions_of(self, part: Part) -> isl.Set:
        elements = {
            Part.COMBINE: self.own.intersect(self.upstream),
            Part.OWN: self.own.subtract(self.upstream),
            Part.FORWARD: self.upstream.subtract(self.own),
        }[part].intersect_domain(self.members())
        placed = self.order.uncurry().intersect_domain(elements.reverse().wrap()).curry()
        return with_explicit_divs(bind_domain(placed.range().unwrap(), PE_PARAMETERS))

    @cached_property
    def busy(self) -> ReadOnly[Part, isl.Set]:
        """The PEs ``{ PE[x, y] }`` that do each thing with some element."""
        return {part: pes_of(self.positions(part)) for part in Part}

    def element_at(self) -> isl.Map:
        """Return ``[PE_X, PE_Y] -> { index[k] -> y[i] }``."""
        index = every_index(self.index_rank)
        here = isl.Map.from_domain_and_range(parametric_point("PE", PE_PARAMETERS), index).wrap()
        return self.order.intersect_range(here).range_factor_range().reverse()

    @property
    def index_rank(self) -> int:
        """Number of index dimensions."""
        return int(self.order.get_space().range().unwrap().dim(_DIM.out))


@dataclass(frozen=True, eq=False, kw_only=True)
class Results:
    """Where a written tensor's final values are: ``owners``: ``{ PE[x, y] -> y[i] }``; and how it leaves.

    ``moves``: how it comes to PEs that read it and do not hold it; ``started``: ``{ PE[x, y] -> y[i] }``:
    what no instance writes, on the PEs that read it: they know the value that the reduction starts with.
    """

    tensor: str
    statement: Statement
    written: isl.Map
    owners: isl.Map
    reduce: tuple[Chain, ...]
    started: isl.Map
    moves: tuple[Move, ...]
    leave: tuple[Chain, ...]

    @property
    def chains(self) -> tuple[Chain, ...]:
        """All chains, those that reduce in place first."""
        return (*self.reduce, *self.leave)

    @property
    def steps(self) -> tuple[Chain | Move, ...]:
        """All that is done with it across PEs, in order."""
        return (*self.reduce, *self.moves, *self.leave)

    def kept(self) -> isl.Map:
        """Return ``{ PE[x, y] -> y[i] }``: elements that PEs have at some time."""
        result = self.written.union(self.owners).union(self.started)
        for chain in self.reduce[:-1]:
            result = result.union(chain.completed())
        for move in self.moves:
            result = result.union(move.sinks)
        return result


@dataclass(frozen=True, eq=False)
class Written:
    """What PEs write of a tensor, ``{ PE[x, y] -> y[i] }``, and the chains that reduce it in place.

    Those are there where it must be complete first: where it stays or is read, and where parts of an element
    are on several of the lines that its port faces.
    """

    statement: Statement
    written: isl.Map
    reduce: tuple[Chain, ...]

    @property
    def owners(self) -> isl.Map:
        """Who has the elements, or parts of them, when they leave: ``{ PE[x, y] -> y[i] }``."""
        return self.reduce[-1].completed() if self.reduce else self.written

    def reduced(self, program: Program, mapping: Mapping) -> isl.Map:
        """Return who would have the elements if they were reduced in place: ``{ PE[x, y] -> y[i] }``."""
        if self.reduce or self.written.is_injective():
            return self.owners
        return _reduce_in_place(program, mapping, self.statement, self.written)[-1].completed()


def written_by(program: Program, mapping: Mapping) -> tuple[Written, ...]:
    """Return what PEs write of each tensor, in order of definition."""
    return tuple(_named_written(program, mapping, statement) for statement in program.statements)


def _named_written(program: Program, mapping: Mapping, statement: Statement) -> Written:
    with naming(f"where the results of `{statement.name}` go", statement.span):
        return written_of(program, mapping, statement)


def build_results(program: Program, mapping: Mapping, written: Sequence[Written]) -> tuple[Results, ...]:
    """Return what becomes of each written tensor, in order of definition."""
    return tuple(_results_of(program, mapping, one) for one in written)


def _results_of(program: Program, mapping: Mapping, here: Written) -> Results:
    with naming(f"where the results of `{here.statement.name}` go", here.statement.span):
        return _found_results(program, mapping, here)


def _found_results(program: Program, mapping: Mapping, here: Written) -> Results:
    tensor = here.statement.write.buffer
    complete = here.owners
    ports = mapping.outputs.get(tensor)
    needed = _needed(program, mapping, tensor)
    started = needed.subtract_range(complete.range()).coalesce()
    owners = complete
    if tensor in program.outputs:
        owners = _with_unwritten(program, mapping, tensor, complete, ports is None)
    leave: tuple[Chain, ...] = ()
    if ports is not None:
        leave = _leaving(program, mapping, here.statement, here.written.range(), owners, ports)
    moves = moves_of(
        tensor, program.buffer(tensor).type, mapping.grid, complete, needed.subtract(started).coalesce()
    )
    return Results(
        tensor=tensor,
        statement=here.statement,
        written=here.written,
        owners=owners,
        reduce=here.reduce,
        started=started,
        moves=moves,
        leave=leave,
    )


def _needed(program: Program, mapping: Mapping, tensor: str) -> isl.Map:
    """Return ``{ PE[x, y] -> y[i] }``: what instances read, and what takes the place of a resident there."""
    needed = all_needed(program, mapping, tensor)
    for old, new in mapping.state:
        if new == tensor:
            replaced = all_needed(program, mapping, old).set_tuple_name(_DIM.out, tensor)
            needed = needed.union(replaced).coalesce()
    return needed


def written_of(program: Program, mapping: Mapping, statement: Statement) -> Written:
    """Return what PEs write of the tensor that a statement writes."""
    tensor = statement.write.buffer
    placed = mapping.placement[statement.name].reverse()
    written = with_explicit_divs(placed.apply_range(access_relation(statement, statement.write)))
    is_read = any(a.buffer == tensor for s in program.statements for a in s.reads)
    is_read |= any(new == tensor for _, new in mapping.state)
    ports = mapping.outputs.get(tensor)
    stays = is_read or ports is None or not _on_one_line(mapping, written, ports)
    in_place = stays and not written.is_injective()
    reduce = _reduce_in_place(program, mapping, statement, written) if in_place else ()
    return Written(statement, written, reduce)


def _on_one_line(mapping: Mapping, written: isl.Map, ports: isl.Map) -> bool:
    """Whether the parts of each element are on one of the lines that the sides of its ports face."""
    for side in Side:
        parts = written.intersect_range(on_side(ports, mapping.grid, side).domain())
        line = "x" if side.line == "PE_X" else "y"
        lines = parts.reverse().apply_range(isl.Map(f"{{ PE[x, y] -> [{line}] }}"))
        if not lines.is_single_valued():
            return False
    return True


def _reduce_in_place(
    program: Program, mapping: Mapping, statement: Statement, written: isl.Map
) -> tuple[Chain, ...]:
    """Reduce along rows to the east where each element stays in a row, else along columns to the south.

    Parts in several rows and columns are first reduced along the rows, to the easternmost column that has
    any, then along that column to the south.
    """
    contributors = mapping.placement[statement.name].range()
    for side in (Side.EAST, Side.SOUTH):
        if written.apply_range(written.reverse()).is_subset(_SAME_LINE[side]):
            return (_reduce_along(program, mapping, statement, side, written, contributors),)
    rows = _reduce_along(program, mapping, statement, Side.EAST, written, contributors)
    (column, _), *_rest = integer_bounds(contributors.apply(isl.Map("{ PE[x, y] -> [-x] }")))
    meeting = isl.Map(f"{{ PE[x, y] -> PE[{-column}, y] }}")
    rows = replace(rows, last=contributors.apply(meeting).coalesce())
    columns = _reduce_along(program, mapping, statement, Side.SOUTH, rows.completed(), rows.last)
    return rows, replace(columns, stage=2)


_SAME_LINE = {
    Side.EAST: isl.Map("{ PE[x, y] -> PE[x1, y1] : y1 = y }"),
    Side.SOUTH: isl.Map("{ PE[x, y] -> PE[x1, y1] : x1 = x }"),
}


def _reduce_along(
    program: Program,
    mapping: Mapping,
    statement: Statement,
    side: Side,
    parts: isl.Map,
    contributors: isl.Set,
) -> Chain:
    tensor = program.buffer(statement.write.buffer)
    order = _tensor_order(parts, tensor.extents, _SAME_LINE[side])
    return _chain(mapping, statement, tensor.type, side, order, parts, contributors, leaves=False)


def _tensor_order(written: isl.Map, shape: tuple[int, ...], same: isl.Map) -> isl.Map:
    """Return ``{ y[i] -> [PE -> index[i]] }``: elements in lexicographic order."""
    rank = len(shape)
    names = ", ".join(f"i{k}" for k in range(rank))
    name = written.get_tuple_name(_DIM.out)
    target = f"index[{names}]" if rank else "index[0]"
    identity = isl.Map(f"{{ {name}[{names}] -> {target} }}")
    pes = written.reverse().apply_range(same)
    return pes.range_product(identity).coalesce()


def _leaving(
    program: Program,
    mapping: Mapping,
    statement: Statement,
    written: isl.Set,
    owners: isl.Map,
    ports: isl.Map,
) -> tuple[Chain, ...]:
    element = program.buffer(statement.write.buffer).type
    chains: list[Chain] = []
    for side in Side:
        here = on_side(ports, mapping.grid, side)
        if here.is_empty():
            continue
        order = along_lines(here, mapping.grid, side)
        sent = owners.intersect_range(here.domain())
        facing = order.range_factor_domain().reverse()
        stray = sent.subtract(facing).range()
        assert stray.is_disjoint(written), "border adapters have seen to it"
        sent = sent.intersect(facing)  # PEs beside other ports have what no instance writes, too
        chains.append(_chain(mapping, statement, element, side, order, sent, sent.domain(), leaves=True))
    return tuple(chains)


def _with_unwritten(
    program: Program, mapping: Mapping, tensor: str, owners: isl.Map, resident: bool
) -> isl.Map:
    """Give elements that no instance writes to the PE next to their port (docs/semantics.md)."""
    unwritten = element_set(program.buffer(tensor)).subtract(owners.range())
    if unwritten.is_empty():
        return owners
    if resident:
        return owners.union(_beside(owners, unwritten))
    ports = mapping.outputs[tensor].range_factor_domain().intersect_domain(unwritten)
    nearest = isl.Map(f"{{ PE[x, y] -> PE[x1, y1] : {_ADJACENT} }}").intersect_range(mapping.grid.pes())
    return owners.union(ports.apply_range(nearest).reverse()).coalesce()


_ADJACENT = (
    "(x1 = x and y1 = y + 1) or (x1 = x and y1 = y - 1) or (y1 = y and x1 = x + 1) or (y1 = y and x1 = x - 1)"
)


def _beside(owners: isl.Map, unwritten: isl.Set) -> isl.Map:
    """Give them to the last PE that holds anything."""
    return isl.Map.from_domain_and_range(owners.domain().lexmax(), unwritten)


def _chain(
    mapping: Mapping,
    statement: Statement,
    element: ElementType,
    side: Side,
    order: isl.Map,
    own: isl.Map,
    contributors: isl.Set,
    *,
    leaves: bool,
) -> Chain:
    nearer = mapping.grid.towards(side)
    last = contributors.subtract(contributors.apply(nearer.reverse())).coalesce()
    upstream = nearer.reverse().apply_range(own).intersect(order.range_factor_domain().reverse())
    tensor = statement.write.buffer
    sparse = leaves and tensor in mapping.sparse
    own = with_explicit_divs(own)
    return Chain(
        tensor=tensor,
        type=element,
        reduction=statement.reduction,
        side=side,
        leaves=leaves,
        sparse=sparse,
        order=order,
        own=own,
        upstream=with_explicit_divs(upstream),
        contributors=contributors,
        last=last,
        nearer=nearer,
    )
