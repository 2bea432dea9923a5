"""What is wrong with a mapping: instances without a PE, ports out of place, orders that clash.

Source: dtg_codegen, Sec. 4.1.2; docs/interface.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl

from polyloom.diagnostics import Diagnostic, PolyloomError, Span, error
from polyloom.ir.host import Buffer
from polyloom.ir.program import Program
from polyloom.ir.relations import element_set, instance_set
from polyloom.ir.statements import Statement
from polyloom.polyhedra.bounds import greatest_coordinate, least_coordinate
from polyloom.polyhedra.effort import naming
from polyloom.polyhedra.text.points import sample_of
from polyloom.wafer.mapping.grid import Grid, Side
from polyloom.wafer.mapping.mapping import Mapping

MAX_INDEX = 2**16 - 1
"""A sparse element's index has 16 bits (docs/semantics.md)."""


def check_mapping(mapping: Mapping, program: Program) -> None:
    """Raise PolyloomError (``map-...``) with everything that is wrong with a mapping."""
    faults = [*_placement_faults(mapping, program), *_port_faults(mapping, program)]
    faults += _choice_faults(mapping, program)
    if faults:
        raise PolyloomError(*faults)


def _placement_faults(mapping: Mapping, program: Program) -> Iterator[Diagnostic]:
    span = mapping.span("compute_map")
    for statement in program.statements:
        placed = mapping.placement.get(statement.name)
        if placed is None:
            message = f"`compute_map` places no instance of `{statement.name}`"
            yield error("map-placement", message, span, helps=[f"add `{statement.name}[...] -> PE[...]`"])
            continue
        with naming(f"the PEs of `{statement.name}`", span):
            yield from _faults_of(statement, placed, mapping.grid, span)


def _faults_of(statement: Statement, placed: isl.Map, grid: Grid, span: Span | None) -> Iterator[Diagnostic]:
    missing = instance_set(statement).subtract(placed.domain())
    if not missing.is_empty():
        message = f"`compute_map` does not place every instance of `{statement.name}`"
        helps = ["drop the condition, or add a part for the instances that it leaves out"]
        notes = [f"{sample_of(missing)} has no PE"]
        yield error("map-placement", message, span, notes=notes, helps=helps)
    elif not placed.is_single_valued():
        yield _placed_twice(placed, statement.name, span)
    outside = placed.range().subtract(grid.pes())
    if not outside.is_empty():
        inside = f"{{ PE[0:{grid.width - 1}, 0:{grid.height - 1}] }}"
        culprit = sample_of(placed.intersect_range(outside).domain())
        yield error(
            "map-placement",
            f"`compute_map` places instances of `{statement.name}` outside the rectangle",
            span,
            notes=[f"{culprit} is placed on {sample_of(outside)}; the rectangle is {inside}"],
            helps=["change the placement, or enlarge `size`"],
        )


def _placed_twice(placed: isl.Map, name: str, span: Span | None) -> Diagnostic:
    same = isl.Map.identity(placed.get_space().range().map_from_set()).wrap()
    twice = placed.range_product(placed).subtract_range(same)
    point, pes = _first_pair(twice)
    first, second = _first_pair(pes.unwrap())
    helps = ["every instance belongs on exactly one PE; only inputs can be sent to several"]
    if not placed.range().is_bounded():
        helps.append("a name in PE[...] that is no iterator of the statement stands for every number")
    return error(
        "map-placement",
        f"`compute_map` places instances of `{name}` on several PEs",
        span,
        notes=[f"{sample_of(point)} is placed on {sample_of(first)} and on {sample_of(second)}"],
        helps=helps,
    )


def _first_pair(relation: isl.Map) -> tuple[isl.Set, isl.Set]:
    """Return the ends of one pair, the first one where there is a first: ``{ a }`` and ``{ b }``."""
    pairs = relation.wrap()
    chosen = pairs.lexmin() if pairs.is_bounded() else pairs
    pair = isl.Set.from_point(chosen.sample_point()).unwrap()
    return pair.domain(), pair.range()


def _port_faults(mapping: Mapping, program: Program) -> Iterator[Diagnostic]:
    for key, ports in (("iport_map", mapping.inputs), ("oport_map", mapping.outputs)):
        for name, schedule in ports.items():
            with naming(f"the ports of `{name}`", mapping.span(key)):
                yield from _adjacency_faults(mapping, key, name, schedule)
                yield from _order_faults(mapping, key, name, schedule)
                yield from _missing_faults(mapping, key, program.buffer(name), schedule)


def _missing_faults(mapping: Mapping, key: str, tensor: Buffer, schedule: isl.Map) -> Iterator[Diagnostic]:
    missing = element_set(tensor).subtract(schedule.domain())
    if key == "oport_map" and not missing.is_empty():
        yield error(
            "map-port-missing",
            f"not every element of `{tensor.name}` leaves",
            mapping.span(key),
            notes=[f"`{key}` has no port for {sample_of(missing)}"],
            helps=["give it one, or leave the tensor out: it then stays in PE memory"],
        )


def _adjacency_faults(mapping: Mapping, key: str, name: str, schedule: isl.Map) -> Iterator[Diagnostic]:
    adjacent = mapping.grid.external(Side.NORTH)
    for side in (Side.SOUTH, Side.WEST, Side.EAST):
        adjacent = adjacent.union(mapping.grid.external(side))
    stray = schedule.range_factor_domain().range().subtract(adjacent)
    if not stray.is_empty():
        width, height = mapping.grid.width, mapping.grid.height
        yield error(
            "map-port-place",
            f"a port of `{name}` is not adjacent to the rectangle",
            mapping.span(key),
            notes=[f"{sample_of(stray)} is no neighbour of {{ PE[0:{width - 1}, 0:{height - 1}] }}"],
            helps=[f"ports are PE[x, -1], PE[x, {height}], PE[-1, y] and PE[{width}, y]"],
        )


def _order_faults(mapping: Mapping, key: str, name: str, schedule: isl.Map) -> Iterator[Diagnostic]:
    if not schedule.is_injective():
        clash = schedule.apply_range(schedule.reverse()).subtract(isl.Map.identity(_square(schedule)))
        first, second = _first_pair(clash)
        yield error(
            "map-port-order",
            f"two elements of `{name}` have the same index at one port",
            mapping.span(key),
            notes=[f"{sample_of(first)} and {sample_of(second)} share a port and an index"],
            helps=["give every element that a port carries an index of its own"],
        )
    if key == "iport_map" and not schedule.uncurry().is_single_valued():
        yield _sent_twice(mapping, name, schedule)
    index = schedule.range_factor_range().range()
    if index.is_empty():
        return  # no element of the tensor has this port: streams say which ones never arrive
    if not index.is_bounded():
        helps = ["write index[...] as a function of the element, such as index[i mod 4]"]
        yield error("map-port-order", f"an index of `{name}` has no bounds", mapping.span(key), helps=helps)
        return
    for k in range(index.dim(isl.dim_type.set)):
        low = least_coordinate(index, k)
        if low.is_neg():
            helps = ["indices count from 0: add a constant"]
            yield error("map-port-order", f"an index of `{name}` is negative", mapping.span(key), helps=helps)
    if name in mapping.sparse:
        yield from _sparse_faults(mapping, key, name, index)


def _sparse_faults(mapping: Mapping, key: str, name: str, index: isl.Set) -> Iterator[Diagnostic]:
    """Check what has 16 bits: an element's index, and a PE's counters of chunks."""
    *outer, innermost = (
        greatest_coordinate(index, k).to_python() for k in range(index.dim(isl.dim_type.set))
    )
    if innermost > MAX_INDEX:
        yield error(
            "map-port-order",
            f"an index of the sparse `{name}` does not fit in 16 bits",
            mapping.span(key),
            helps=["split it into chunks with an outer index: index[i // 1000, i mod 1000]"],
        )
    if max(outer, default=0) >= MAX_INDEX:
        yield error(
            "map-port-order",
            f"an outer index of the sparse `{name}` does not fit in the 16 bits of a PE's counter",
            mapping.span(key),
            notes=[f"it goes up to {max(outer)}; a chunk ends for each value from 0 on, {MAX_INDEX} at most"],
            helps=["count in two outer indices: index[i // 1000, i mod 1000, 0]"],
        )


def _sent_twice(mapping: Mapping, name: str, schedule: isl.Map) -> Diagnostic:
    at_port = schedule.uncurry()
    same = isl.Map.identity(at_port.get_space().range().map_from_set()).wrap()
    arrival, indices = _first_pair(at_port.range_product(at_port).subtract_range(same))
    (element, port), (first, second) = _first_pair(arrival.unwrap()), _first_pair(indices.unwrap())
    return error(
        "map-port-order",
        f"an element of `{name}` enters twice at one port",
        mapping.span("iport_map"),
        notes=[
            f"{sample_of(element)} has {sample_of(first)} and {sample_of(second)} at {sample_of(port)}, "
            "so it would be counted twice"
        ],
        helps=["give every element one index at a port"],
    )


def _square(schedule: isl.Map) -> isl.Space:
    return schedule.get_space().domain().map_from_set()


def _choice_faults(mapping: Mapping, program: Program) -> Iterator[Diagnostic]:
    for name in mapping.sparse:
        if name not in mapping.inputs and name not in mapping.outputs:
            message = f"`{name}` is sparse, but it has no port"
            yield error(
                "map-sparse", message, mapping.span("sparse"), helps=["give it a port, or leave it out"]
            )
        elif program.buffer(name).type.size != 2:
            yield error(
                "map-sparse",
                f"`{name}` cannot be sparse: {program.buffer(name).type.value} has more than 16 bits",
                mapping.span("sparse"),
                notes=["a value-position pair is a 16-bit value with a 16-bit index in one wavelet"],
                helps=["leave it out of `sparse`, or make it float16 or int16"],
            )
    for old, _new in mapping.state:
        if old in mapping.inputs:
            message = f"`{old}` arrives through a port, so it is no state"
            helps = [f"leave `{old}` out of `iport_map`: it then lies in PE memory from the start"]
            yield error("map-state", message, mapping.span("state"), helps=helps)
    for statement, stream in mapping.trigger.items():
        if stream is not None and stream not in mapping.inputs:
            message = f"`{stream}` has no port, so it cannot trigger `{statement}`"
            helps = [f"name a stream, or leave `trigger` out, or give `{stream}` a port"]
            yield error("map-trigger", message, mapping.span("trigger"), helps=helps)
