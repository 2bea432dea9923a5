"""Border adapters: rows or columns peeled off the rectangle where ports do not let data flow straight.

Inside the compute rectangle all data flows straight along rows or columns. Where a tensor arrives at,
or leaves through, a port that faces another line, the outermost row or column on that side becomes a
line of adapters: it carries each element along the border to (or from) the row or column that needs
(or has) it. The compute PEs see ports, placement and rectangle as if the adapters were outside.
Source: dtg_codegen, Sec. 4.2, eqs. (5) (6) (10). Not in the paper: how its adapters work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import islpy as isl

from polyloom.diagnostics import Diagnostic, Unsupported, error
from polyloom.ir.program import Program
from polyloom.polyhedra.effort import naming
from polyloom.polyhedra.simplify import with_explicit_divs
from polyloom.polyhedra.text.points import sample_of
from polyloom.wafer.border.adapters import Adapter, adapter_of
from polyloom.wafer.border.demands import Demand, input_demands, output_demands
from polyloom.wafer.border.line import numbered
from polyloom.wafer.dataflow.reductions import Written, written_by
from polyloom.wafer.dataflow.streams import named_index, on_side
from polyloom.wafer.mapping.grid import Grid, Side
from polyloom.wafer.mapping.mapping import Mapping

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False, kw_only=True)
class Border:
    """``given``: the user's map; ``compute``: the map as the compute PEs see it.

    ``origin``: the compute rectangle's PE (0, 0) in the given one; ``adapters``: in the order of the ports.
    ``written``: what compute PEs write, by the compute map.
    """

    given: Mapping
    compute: Mapping
    origin: tuple[int, int]
    adapters: tuple[Adapter, ...]
    written: tuple[Written, ...]

    @property
    def peeled(self) -> tuple[Side, ...]:
        """The sides from which a line was peeled."""
        return tuple(side for side in Side if any(a.side is side for a in self.adapters))

    def adapter(self, tensor: str, side: Side) -> Adapter | None:
        """Return the adapter of a tensor on a side; None where there is none."""
        return next((a for a in self.adapters if (a.tensor, a.side) == (tensor, side)), None)

    def to_given(self, pes: isl.Set) -> isl.Set:
        """Return ``{ PE[x, y] }`` of the compute rectangle as PEs of the given one."""
        x, y = self.origin
        if self.origin == (0, 0):
            return pes
        return pes.apply(isl.Map(f"{{ PE[x, y] -> PE[x + {x}, y + {y}] }}"))


def peel_border(program: Program, given: Mapping) -> Border:
    """Return the compute PEs' view of a map, and the adapters that make it so.

    Raises Unsupported ``map-adapter`` where data does not flow straight and no free border line could
    turn it.
    """
    written = written_by(program, given)
    with naming("what crosses the border"):
        demands = [*input_demands(program, given), *output_demands(program, given, written)]
    if not demands:
        return Border(given=given, compute=given, origin=(0, 0), adapters=(), written=written)
    adapters = tuple(_adapter(program, given, demand) for demand in demands)
    peeled = {adapter.side for adapter in adapters}
    origin = int(Side.WEST in peeled), int(Side.NORTH in peeled)
    grid = Grid(
        given.grid.width - origin[0] - (Side.EAST in peeled),
        given.grid.height - origin[1] - (Side.SOUTH in peeled),
    )
    compute = _compute_view(given, grid, origin, adapters)
    return Border(
        given=given,
        compute=compute,
        origin=origin,
        adapters=adapters,
        written=written_by(program, compute),
    )


def _adapter(program: Program, given: Mapping, demand: Demand) -> Adapter:
    with naming(f"how `{demand.tensor}` crosses the border"):
        return adapter_of(program, given, demand)


def _compute_view(
    given: Mapping, grid: Grid, origin: tuple[int, int], adapters: Sequence[Adapter]
) -> Mapping:
    _check_straight_outputs(given, grid, origin, adapters)
    x, y = origin
    shift = isl.Map(f"{{ PE[x, y] -> PE[x - {x}, y - {y}] }}")
    converted = {a.tensor for a in adapters if not a.inward}
    return replace(
        given,
        grid=grid,
        placement={name: p.apply_range(shift).coalesce() for name, p in given.placement.items()},
        inputs=_inner_ports(given, given.inputs, grid, origin, [a for a in adapters if a.inward]),
        outputs=_inner_ports(given, given.outputs, grid, origin, [a for a in adapters if not a.inward]),
        sparse=tuple(name for name in given.sparse if name not in converted),
    )


def _check_straight_outputs(
    given: Mapping, grid: Grid, origin: tuple[int, int], adapters: Sequence[Adapter]
) -> None:
    """Refuse straight ports beside a peeled line: elements that nothing writes may leave there."""
    for tensor, schedule in given.outputs.items():
        straight = named_index(schedule)
        for adapter in (a for a in adapters if a.tensor == tensor):
            for entry in adapter.entries():
                straight = straight.subtract(adapter.outer(entry))
        for side in Side:
            ports = on_side(straight, given.grid, side)
            lost = ports.subtract_domain(_shifted(ports, grid, origin, side).domain())
            if not lost.is_empty():
                raise Unsupported(_beside_peeled(given, tensor, lost))


def _beside_peeled(given: Mapping, tensor: str, lost: isl.Map) -> Diagnostic:
    port = sample_of(lost.range_factor_domain().range())
    return error(
        "map-adapter",
        f"`{tensor}` leaves beside a border row or column that adapters take up",
        given.span("oport_map"),
        notes=[f"{sample_of(lost.domain())}, which no instance writes, leaves at {port}"],
        helps=["let it leave through a port that faces PEs with instances"],
    )


def _inner_ports(
    given: Mapping,
    schedules: dict[str, isl.Map],
    grid: Grid,
    origin: tuple[int, int],
    adapters: Sequence[Adapter],
) -> dict[str, isl.Map]:
    result: dict[str, isl.Map] = {}
    for tensor, schedule in schedules.items():
        own = [a for a in adapters if a.tensor == tensor]
        adapted = {a.side for a in own}
        parts = [_inner_of(a, grid, origin) for a in own]
        for side in Side:
            if side not in adapted:
                parts.append(_shifted(on_side(schedule, given.grid, side), grid, origin, side))
        result[tensor] = _one_rank([part for part in parts if not part.is_empty()] or parts[:1])
    return result


def _inner_of(adapter: Adapter, grid: Grid, origin: tuple[int, int]) -> isl.Map:
    """Return ``{ x[i] -> [PE[x, y] -> index[k]] }``, the ports that an adapter makes (5)."""
    external = _external(grid, adapter.side, f"l - {_along(origin, adapter.side)}")
    rank = adapter.inner.dim(_DIM.out)
    k = ", ".join(numbered("k", rank))
    port = isl.Map(f"{{ [line[l] -> index[{k}]] -> [PE[{external}] -> index[{k}]] }}")
    return adapter.inner.curry().apply_range(port).coalesce()


def _shifted(ports: isl.Map, grid: Grid, origin: tuple[int, int], side: Side) -> isl.Map:
    """Return straight ports as the compute rectangle sees them."""
    line = "x" if side.line == "PE_X" else "y"
    external = _external(grid, side, f"{line} - {_along(origin, side)}")
    rank = ports.range().unwrap().dim(_DIM.out)
    k = ", ".join(numbered("k", rank))
    move = isl.Map(f"{{ [PE[x, y] -> index[{k}]] -> [PE[{external}] -> index[{k}]] }}")
    moved = ports.apply_range(move)
    inside = isl.Map.from_domain_and_range(grid.external(side), isl.Set(f"{{ index[{k}] }}")).wrap()
    return moved.intersect_range(inside).coalesce()


def _external(grid: Grid, side: Side, along: str) -> str:
    """Return ``x, y`` of the external PE at a position of a side, as text."""
    return {
        Side.NORTH: f"{along}, -1",
        Side.SOUTH: f"{along}, {grid.height}",
        Side.WEST: f"-1, {along}",
        Side.EAST: f"{grid.width}, {along}",
    }[side]


def _along(origin: tuple[int, int], side: Side) -> int:
    return origin[0] if side.line == "PE_X" else origin[1]


def _one_rank(parts: Sequence[isl.Map]) -> isl.Map:
    """Unite schedules, with outer indices 0 where one has fewer index dimensions.

    Settled, since isl crashes on functions of relations with many unknown divisions.
    """
    most = max(part.range().unwrap().dim(_DIM.out) for part in parts)
    result: isl.Map | None = None
    for part in parts:
        rank = part.range().unwrap().dim(_DIM.out)
        k = numbered("k", rank)
        more = ", ".join(["0"] * (most - rank) + k)
        same = isl.Map(f"{{ [PE[x, y] -> index[{', '.join(k)}]] -> [PE[x, y] -> index[{more}]] }}")
        moved = part.apply_range(same)
        result = moved if result is None else result.union(moved)
    assert result is not None
    return with_explicit_divs(result)
