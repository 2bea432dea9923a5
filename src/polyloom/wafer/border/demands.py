"""Which tensors need adapters, and on which border line: where ports do not let data flow straight.

Source: dtg_codegen, Sec. 4.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import islpy as isl

from polyloom.diagnostics import Diagnostic, Unsupported, error
from polyloom.ir.program import Program
from polyloom.polyhedra.text.points import sample_of
from polyloom.wafer.border.line import BorderLine, numbered
from polyloom.wafer.dataflow.reductions import Written
from polyloom.wafer.dataflow.streams import all_needed, along_lines, named_index, on_side
from polyloom.wafer.mapping.grid import Grid, Side
from polyloom.wafer.mapping.mapping import Mapping

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False, kw_only=True)
class Demand:
    """``lines``: ``{ x[i] -> line[l] }``: on which lines a tensor's elements are needed, or come from.

    ``ports``: ``{ x[i] -> [PE -> index] }``, the ports that the line reaches.
    """

    tensor: str
    line: BorderLine
    inward: bool
    lines: isl.Map
    ports: isl.Map


def input_demands(program: Program, given: Mapping) -> Iterator[Demand]:
    """Yield what inputs demand of lines. Raises Unsupported ``map-adapter`` where no line is free."""
    for tensor, schedule in given.inputs.items():
        needed = all_needed(program, given, tensor)
        straight = {side: _straight(schedule, given.grid, side, needed) for side in Side}
        missing = needed.intersect_range(schedule.domain())
        for delivered in straight.values():
            missing = missing.subtract(delivered)
        for line, share, ports in _share_out(given, tensor, schedule, missing, "iport_map"):
            wanted = share.union(straight[line.side])
            wanted = needed if wanted.is_equal(needed) else wanted
            yield Demand(
                tensor=tensor,
                line=line,
                inward=True,
                lines=wanted.reverse().apply_range(line.line_of()),
                ports=ports,
            )


def _straight(schedule: isl.Map, grid: Grid, side: Side, needed: isl.Map) -> isl.Map:
    """Return the part of ``{ PE -> x[i] }`` that the ports of a side bring along rows or columns."""
    carried = along_lines(on_side(schedule, grid, side), grid, side)
    return needed.intersect(carried.range_factor_domain().reverse())


def output_demands(program: Program, given: Mapping, written: Sequence[Written]) -> Iterator[Demand]:
    """Yield what outputs demand of lines. Raises Unsupported ``map-adapter`` where no line is free."""
    for one in written:
        schedule = given.outputs.get(one.statement.write.buffer)
        if schedule is not None:
            demands = _demands_of_output(program, given, one, schedule)
            for side in Side:
                here = [d for d in demands if d.line.side is side]
                yield from [_together(here)] if here else []


def _demands_of_output(program: Program, given: Mapping, one: Written, schedule: isl.Map) -> list[Demand]:
    """Return what an output demands; where parts of an element would come on several lines, reduced first."""
    tensor = one.statement.write.buffer
    demands = list(_outputs_of(given, tensor, schedule, one.owners))
    if all(demand.lines.is_single_valued() for demand in demands):
        return demands
    return list(_outputs_of(given, tensor, schedule, one.reduced(program, given)))


def _outputs_of(given: Mapping, tensor: str, schedule: isl.Map, owners: isl.Map) -> Iterator[Demand]:
    """Yield what the sides demand whose ports do not all lie beside the elements that leave there."""
    for side in Side:
        ports = on_side(schedule, given.grid, side)
        carried = along_lines(ports, given.grid, side).range_factor_domain()
        held = owners.intersect_range(ports.domain())
        if held.is_subset(carried.reverse()):
            continue
        unwritten = ports.domain().subtract(held.range())
        for line, share, reached in _share_out(given, tensor, ports, held, "oport_map"):
            lines = share.reverse().apply_range(line.line_of())
            nowhere = unwritten.intersect(reached.domain())
            lines = lines.union(isl.Map.from_domain_and_range(nowhere, lines.range().lexmin()))
            yield Demand(
                tensor=tensor,
                line=line,
                inward=False,
                lines=lines.coalesce(),
                ports=reached.intersect_domain(lines.domain()),
            )
            unwritten = unwritten.subtract(nowhere)


def _together(demands: Sequence[Demand]) -> Demand:
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
    schedule = named_index(schedule)
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
    k = ", ".join(numbered("k", rank))
    index = isl.Set(f"{{ index[{k}] }}")
    external = isl.Map.from_domain_and_range(line.port_positions().domain(), index).wrap()
    return schedule.intersect_range(external)


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
