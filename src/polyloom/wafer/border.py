"""Border adapters: rows or columns peeled off the rectangle where ports do not let data flow straight.

Inside the compute rectangle all data flows straight along rows or columns. Where a tensor arrives at,
or leaves through, a port that faces another line, the outermost row or column on that side becomes a
line of adapters: it carries each element along the border to (or from) the row or column that needs
(or has) it. The compute PEs see ports, placement and rectangle as if the adapters were outside.
Source: dtg_codegen, Sec. 4.2, eqs. (5) (6) (10). Not in the paper: how its adapters work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import islpy as isl

from polyloom.diagnostics import Diagnostic, Unsupported, error
from polyloom.ir.program import Program, Statement
from polyloom.ir.types import ElementType
from polyloom.polyhedra.points import sample_of
from polyloom.wafer.border_line import BorderLine, Entry
from polyloom.wafer.chains import holders_of, reduced_holders
from polyloom.wafer.mapping import Mapping
from polyloom.wafer.sides import Grid, Side
from polyloom.wafer.streams import all_needed, along_lines, named_index, on_side

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class Adapter:
    """What a peeled border line does for one tensor.

    ``inward``: the tensor arrives (else it leaves); ``way``: ``{ [x[i] -> line[l]] -> at[p, k...] }``: the
    element with index k at port p goes to (or comes from) line l; ``ports``: ``{ x[i] -> at[p, k...] }``,
    all that the ports carry, needed or not; ``inner``: ``{ [x[i] -> line[l]] -> index[k] }``, its index on
    the line; ``least``: ``{ line[l] -> key[m...] }``, what the index counts from there; ``spread``: whether a
    stream of its own brings each line what it needs from one port.
    """

    tensor: str
    type: ElementType
    line: BorderLine
    inward: bool
    sparse: bool
    way: isl.Map
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
        return self.way.domain().unwrap().range().set_tuple_name("pos").coalesce()

    def entries(self) -> tuple[Entry, ...]:
        """Return the kinds of ports that it has."""
        return tuple(entry for entry in Entry if not self.outer(entry).is_empty())

    def outer(self, entry: Entry) -> isl.Map:
        """Return ``{ x[i] -> [PE[x, y] -> index[k]] }`` of the ports of a kind, in the given rectangle."""
        k = ", ".join(_names("k", self.rank))
        external = self.line.port_positions().reverse()
        here = isl.Map(f"{{ at[p, {k}] -> [port[p] -> index[{k}]] : {self.line.entry_of(entry)} }}")
        same = isl.Map(f"{{ index[{k}] -> index[{k}] }}")
        return self.ports.apply_range(here).apply_range(external.product(same)).coalesce()


@dataclass(frozen=True, eq=False)
class Border:
    """``given``: the user's map; ``compute``: the map as the compute PEs see it.

    ``origin``: the compute rectangle's PE (0, 0) in the given one; ``adapters``: in the order of the ports.
    """

    given: Mapping
    compute: Mapping
    origin: tuple[int, int]
    adapters: tuple[Adapter, ...]

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
    demands = [*_input_demands(program, given), *_output_demands(program, given)]
    if not demands:
        return Border(given, given, (0, 0), ())
    adapters = tuple(_adapter(program, given, demand) for demand in demands)
    peeled = {adapter.side for adapter in adapters}
    origin = int(Side.WEST in peeled), int(Side.NORTH in peeled)
    grid = Grid(
        given.grid.width - origin[0] - (Side.EAST in peeled),
        given.grid.height - origin[1] - (Side.SOUTH in peeled),
    )
    return Border(given, _compute_view(given, grid, origin, adapters), origin, adapters)


# Which tensors need adapters, and where.


@dataclass(frozen=True, eq=False)
class _Demand:
    """``lines``: ``{ x[i] -> line[l] }``: on which lines a tensor's elements are needed, or come from.

    ``ports``: ``{ x[i] -> [PE -> index] }``, the ports that the line reaches.
    """

    tensor: str
    line: BorderLine
    inward: bool
    lines: isl.Map
    ports: isl.Map


def _input_demands(program: Program, given: Mapping) -> Iterator[_Demand]:
    for tensor, schedule in given.inputs.items():
        needed = all_needed(program, given, tensor)
        straight = {side: _straight(schedule, given.grid, side, needed) for side in Side}
        missing = needed.intersect_range(schedule.domain())
        for delivered in straight.values():
            missing = missing.subtract(delivered)
        for line, share, ports in _share_out(given, tensor, schedule, missing, "iport_map"):
            wanted = share.union(straight[line.side])
            wanted = needed if wanted.is_equal(needed) else wanted
            yield _Demand(tensor, line, True, wanted.reverse().apply_range(line.line_of()), ports)


def _straight(schedule: isl.Map, grid: Grid, side: Side, needed: isl.Map) -> isl.Map:
    """Return the part of ``{ PE -> x[i] }`` that the ports of a side bring along rows or columns."""
    carried = along_lines(on_side(schedule, grid, side), grid, side)
    return needed.intersect(carried.range_factor_domain().reverse())


def _output_demands(program: Program, given: Mapping) -> Iterator[_Demand]:
    for statement in program.statements:
        schedule = given.outputs.get(statement.write.tensor)
        if schedule is not None:
            demands = _demands_of_output(program, given, statement, schedule)
            for side in Side:
                here = [d for d in demands if d.line.side is side]
                yield from [_together(here)] if here else []


def _demands_of_output(
    program: Program, given: Mapping, statement: Statement, schedule: isl.Map
) -> list[_Demand]:
    """Return what an output demands; where parts of an element would come on several lines, reduced first."""
    tensor = statement.write.tensor
    demands = list(_outputs_of(given, tensor, schedule, holders_of(program, given, statement)))
    if all(demand.lines.is_single_valued() for demand in demands):
        return demands
    return list(_outputs_of(given, tensor, schedule, reduced_holders(program, given, statement)))


def _outputs_of(given: Mapping, tensor: str, schedule: isl.Map, holders: isl.Map) -> Iterator[_Demand]:
    """Yield what the sides demand whose ports do not all lie beside the elements that leave there."""
    for side in Side:
        ports = on_side(schedule, given.grid, side)
        carried = along_lines(ports, given.grid, side).range_factor_domain()
        held = holders.intersect_range(ports.domain())
        if held.is_subset(carried.reverse()):
            continue
        unwritten = ports.domain().subtract(held.range())
        for line, share, reached in _share_out(given, tensor, ports, held, "oport_map"):
            lines = share.reverse().apply_range(line.line_of())
            nowhere = unwritten.intersect(reached.domain())
            lines = lines.union(isl.Map.from_domain_and_range(nowhere, lines.range().lexmin()))
            yield _Demand(tensor, line, False, lines.coalesce(), reached.intersect_domain(lines.domain()))
            unwritten = unwritten.subtract(nowhere)


def _together(demands: Sequence[_Demand]) -> _Demand:
    """Unite what is demanded of one line for one tensor."""
    first, *others = demands
    for other in others:
        first = replace(first, lines=first.lines.union(other.lines), ports=first.ports.union(other.ports))
    return first


def _share_out(
    given: Mapping, tensor: str, schedule: isl.Map, missing: isl.Map, key: str
) -> Iterator[tuple[BorderLine, isl.Map, isl.Map]]:
    """Split ``{ PE -> x[i] }`` over border lines that reach a port of the element, the best line first.

    Yields each line with its part and with the ports that it reaches. Raises Unsupported ``map-adapter``
    where there is no line for an element.
    """
    free = [line for line in (BorderLine(given.grid, side) for side in Side) if _is_free(given, line)]
    while not missing.is_empty():
        fitting = [
            line for line in free if not missing.range().is_disjoint(_reached(schedule, line).domain())
        ]
        if not fitting:
            raise Unsupported(_no_line(given, tensor, schedule, missing, key))
        best = min(fitting, key=lambda line: _rank(given, schedule, line, missing))
        ports = _reached(schedule, best)
        yield best, missing.intersect_range(ports.domain()), ports
        missing = missing.subtract_range(ports.domain())
        schedule = schedule.subtract(ports)
        free.remove(best)


def _reached(schedule: isl.Map, line: BorderLine) -> isl.Map:
    """Return the part of a schedule whose ports lie beside the line or at an end of it."""
    rank = schedule.range().unwrap().dim(_DIM.out)
    k = ", ".join(_names("k", rank))
    index = isl.Set(f"{{ index[{k}] }}")
    external = isl.Map.from_domain_and_range(line.port_positions().domain(), index).wrap()
    return named_index(schedule).intersect_range(external)


def _is_free(given: Mapping, line: BorderLine) -> bool:
    """Whether nothing is placed on a line, and something is left without it."""
    placed = all(p.range().is_disjoint(line.pes()) for p in given.placement.values())
    return placed and line.length > 0


def _rank(given: Mapping, schedule: isl.Map, line: BorderLine, missing: isl.Map) -> tuple[bool, bool, bool]:
    """Prefer lines that reach all, bring an element to one row or column only, and lie beside the ports."""
    reach = _reached(schedule, line).domain()
    share = missing.intersect_range(reach)
    single = share.reverse().apply_range(line.line_of()).is_single_valued()
    beside = on_side(schedule, given.grid, line.side).domain()
    return not missing.range().is_subset(reach), not single, not share.range().is_subset(beside)


def _no_line(given: Mapping, tensor: str, schedule: isl.Map, missing: isl.Map, key: str) -> Diagnostic:
    for side in Side:
        stray = missing.subtract(_straight(schedule, given.grid, side, missing))
        missing = missing if stray.is_empty() else stray
    element = sample_of(missing.range())
    here = isl.Set(f"{{ {element} }}")
    pe = sample_of(missing.intersect_range(here).domain())
    external = schedule.range_factor_domain().intersect_domain(here).range()
    arrives, needed, ends = ("arrives", "needed", "the PEs that need it")
    if key == "oport_map":
        arrives, needed, ends = ("leaves", "computed", "its ports")
    port = sample_of(external)
    sides = [side for side in Side if not external.is_disjoint(given.grid.external(side))]
    where = " or ".join(f"the {side.value}" for side in sides)
    return error(
        "map-adapter",
        f"`{tensor}` does not flow straight to {ends}, and no border row or column is free to turn it",
        given.span(key),
        notes=[
            f"{element} is {needed} on {pe}, but it {arrives} at {port}, which faces another row or column"
        ],
        helps=[
            f"leave the outermost row or column on {where} without instances, with a larger `size`: "
            "adapters there turn the data",
            "or use a port that faces the row or column",
        ],
    )


# What an adapter does.


def _adapter(program: Program, given: Mapping, demand: _Demand) -> Adapter:
    tensor, line = demand.tensor, demand.line
    ports = _at_ports(demand.ports, line)
    way = _ways(demand.lines, ports, single=demand.inward)
    used = way.range()
    ports = ports.intersect_range(_same_port(ports, used) if demand.inward else used)
    spread = demand.inward and _is_disjoint(way, line)
    least, one_port = _least(way)
    inner = _inner_index(way, least, one_port=one_port)
    element, sparse = program.tensor(tensor).type, tensor in given.sparse
    return Adapter(tensor, element, line, demand.inward, sparse, way, ports.coalesce(), inner, least, spread)


def _names(prefix: str, rank: int) -> list[str]:
    return [f"{prefix}{k}" for k in range(rank)]


def _at_ports(schedule: isl.Map, line: BorderLine) -> isl.Map:
    """Return ``{ x[i] -> at[p, k...] }`` for the ports that reach the line."""
    rank = schedule.range().unwrap().dim(_DIM.out)
    k = ", ".join(_names("k", rank))
    flat = isl.Map(f"{{ [port[p] -> index[{k}]] -> at[p, {k}] }}")
    pair = isl.Map(f"{{ index[{k}] -> index[{k}] }}")
    return named_index(schedule).apply_range(line.port_positions().product(pair)).apply_range(flat).coalesce()


def _ways(lines: isl.Map, ports: isl.Map, *, single: bool) -> isl.Map:
    """Return ``{ [x[i] -> line[l]] -> at[p, k...] }``.

    With ``single``, an element comes to a line from one port: the one beside it, else the first.
    """
    every = lines.range_product(ports)
    if not single or every.uncurry().is_single_valued():
        return every.uncurry().coalesce()
    k = ", ".join(_names("k", ports.dim(_DIM.out) - 1))
    beside = every.intersect_range(isl.Set(f"{{ [line[l] -> at[p, {k}]] : p = l }}")).uncurry()
    others = every.uncurry().subtract_domain(beside.domain())
    return beside.union(others.lexmin()).coalesce()


def _port_of(rank: int) -> isl.Map:
    """Return ``{ at[p, k...] -> port[p] }``."""
    return isl.Map(f"{{ at[{', '.join(['p', *_names('k', rank)])}] -> port[p] }}")


def _same_port(ports: isl.Map, used: isl.Set) -> isl.Set:
    """Return all ``{ at[p, k...] }`` at the ports of some."""
    to_port = _port_of(ports.dim(_DIM.out) - 1)
    return used.apply(to_port).apply(to_port.reverse())


def _is_disjoint(way: isl.Map, line: BorderLine) -> bool:
    """Whether the parts of the line between each port and the lines that it serves have no PE in common."""
    to_port = _port_of(way.dim(_DIM.out) - 1)
    serves = way.domain_factor_range().reverse().apply_domain(to_port)
    return bool(between(serves, line).is_injective())


def between(serves: isl.Map, line: BorderLine) -> isl.Map:
    """Return ``{ port[p] -> pos[c] }``: the PEs from a port to the lines ``{ port[p] -> line[l] }``."""
    start = line.pe_of_port()
    space = isl.Map("{ [pos[s] -> line[l]] -> pos[c] : s <= c <= l or l <= c <= s }")
    return start.range_product(serves).apply_range(space).coalesce()


def _key(rank: int, *, one_port: bool) -> isl.Map:
    """Return ``{ at[p, k...] -> key[k...] }``; with several ports on a line, ``key[p, k...]``."""
    at = ["p", *_names("k", rank)]
    return isl.Map(f"{{ at[{', '.join(at)}] -> key[{', '.join(at[one_port:])}] }}")


def _least(way: isl.Map) -> tuple[isl.Map, bool]:
    """Return the smallest key on each line, ``{ line[l] -> key[m...] }``, and whether each has one port."""
    rank = way.dim(_DIM.out) - 1
    by_line = way.domain_factor_range()
    one_port = bool(by_line.apply_range(_port_of(rank)).is_single_valued())
    return _smallest(by_line.apply_range(_key(rank, one_port=one_port))), one_port


def _inner_index(way: isl.Map, least: isl.Map, *, one_port: bool) -> isl.Map:
    """Return ``{ [x[i] -> line[l]] -> index[k] }``: the order along a line.

    Elements keep their order at the port, and each index counts from the smallest on the line. Where a line
    has several ports, the port counts as the outermost index.
    """
    keyed = way.apply_range(_key(way.dim(_DIM.out) - 1, one_port=one_port))
    lifted = keyed.domain().unwrap().range_map().apply_range(least)
    high, low = _names("a", keyed.dim(_DIM.out)), _names("m", keyed.dim(_DIM.out))
    shifted = ", ".join(f"{a} - {m}" for a, m in zip(high, low, strict=True))
    shift = isl.Map(f"{{ [key[{', '.join(high)}] -> key[{', '.join(low)}]] -> index[{shifted}] }}")
    return keyed.range_product(lifted).apply_range(shift).coalesce()


def _smallest(keys: isl.Map) -> isl.Map:
    """Return, for each line, the smallest value of each dimension: ``{ line[l] -> key[...] }``."""
    rank = keys.dim(_DIM.out)
    a = ", ".join(_names("a", rank))
    result: isl.Map | None = None
    for k in range(rank):
        least = keys.apply_range(isl.Map(f"{{ key[{a}] -> [a{k}] }}")).lexmin()
        result = least if result is None else result.flat_range_product(least)
    assert result is not None
    return result.set_tuple_name(_DIM.out, "key")


# How the compute PEs see the map.


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
        mine = [a for a in adapters if a.tensor == tensor]
        turned = {a.side for a in mine}
        parts = [_inner_of(a, grid, origin) for a in mine]
        for side in Side:
            if side not in turned:
                parts.append(_shifted(on_side(schedule, given.grid, side), grid, origin, side))
        result[tensor] = _one_rank([part for part in parts if not part.is_empty()] or parts[:1])
    return result


def _inner_of(adapter: Adapter, grid: Grid, origin: tuple[int, int]) -> isl.Map:
    """Return ``{ x[i] -> [PE[x, y] -> index[k]] }``, the ports that an adapter makes (5)."""
    external = _external(grid, adapter.side, f"l - {_along(origin, adapter.side)}")
    rank = adapter.inner.dim(_DIM.out)
    k = ", ".join(_names("k", rank))
    port = isl.Map(f"{{ [line[l] -> index[{k}]] -> [PE[{external}] -> index[{k}]] }}")
    return adapter.inner.curry().apply_range(port).coalesce()


def _shifted(ports: isl.Map, grid: Grid, origin: tuple[int, int], side: Side) -> isl.Map:
    """Return straight ports as the compute rectangle sees them."""
    line = "x" if side.line == "PE_X" else "y"
    external = _external(grid, side, f"{line} - {_along(origin, side)}")
    rank = ports.range().unwrap().dim(_DIM.out)
    k = ", ".join(_names("k", rank))
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

    Divisions are made explicit: isl crashes on functions of relations with many unknown ones.
    """
    most = max(part.range().unwrap().dim(_DIM.out) for part in parts)
    result: isl.Map | None = None
    for part in parts:
        rank = part.range().unwrap().dim(_DIM.out)
        k = _names("k", rank)
        more = ", ".join(["0"] * (most - rank) + k)
        same = isl.Map(f"{{ [PE[x, y] -> index[{', '.join(k)}]] -> [PE[x, y] -> index[{more}]] }}")
        moved = part.apply_range(same)
        result = moved if result is None else result.union(moved)
    assert result is not None
    return result.compute_divs().coalesce()
