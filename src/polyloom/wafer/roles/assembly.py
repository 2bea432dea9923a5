"""A role's declarations, tasks and setup, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyloom.polyhedra.binding import PE_PARAMETERS, bind
from polyloom.polyhedra.loops.generate import Number
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.mapping.grid import Grid
from polyloom.wafer.pe_program.implied_costs import with_implied_costs
from polyloom.wafer.pe_program.print_c import integer_text
from polyloom.wafer.pe_program.tree import (
    Activate,
    ArrayDeclaration,
    Code,
    DataTask,
    LocalTask,
    RoleCode,
    SetBase,
    SetInteger,
    with_block_costs,
)
from polyloom.wafer.roles.builder import RoleBuilder


def assemble(
    builder: RoleBuilder,
    where: str,
    arrays: Sequence[LocalArray],
    inputs: Sequence[str],
    outputs: Sequence[str],
    counters: tuple[str, ...],
    first: str,
    data_tasks: Sequence[DataTask],
    local_tasks: Sequence[LocalTask],
) -> RoleCode:
    """Return the program: ``main`` sets up what the tasks have asked for, and activates ``first``."""
    setup = _ordered_setup(builder.setup)
    zero = tuple(SetInteger(name, Number(0)) for name in builder.counters)
    main: Code = (*setup, *zero, Activate(first))

    def costed(code: Code) -> Code:
        return with_block_costs(with_implied_costs(code, builder.counters))

    return RoleCode(
        name=builder.role.name,
        comment=(where,),
        arrays=(*(_declaration(a) for a in arrays), *builder.temporaries.values()),
        counters=(*builder.counters, *counters),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        operands=tuple(builder.operands),
        filters=tuple(builder.filters),
        main=main,
        data_tasks=tuple(replace(t, body=costed(t.body), end=costed(t.end)) for t in data_tasks),
        local_tasks=tuple(replace(t, body=costed(t.body)) for t in local_tasks),
    )


def where_text(builder: RoleBuilder, grid: Grid) -> str:
    """Say in C on which PEs of a rectangle a role runs."""
    rectangle = bind(grid.pes(), PE_PARAMETERS)
    condition = builder.code(rectangle).condition(builder.role.context)
    return "on all PEs" if condition is None else f"on the PEs with {integer_text(condition)}"


def _ordered_setup(setup: Sequence[Code]) -> Code:
    """Put configurations before base addresses."""
    nodes = [node for code in setup for node in code]
    bases = [node for node in nodes if isinstance(node, SetBase)]
    return (*(node for node in nodes if not isinstance(node, SetBase)), *bases)


def _declaration(array: LocalArray) -> ArrayDeclaration:
    text = array.map.to_str()
    comment = text[text.index("{") + 1 : text.rindex("}")].strip()
    return ArrayDeclaration(
        name=array.name, type=array.type, extents=array.shape, comment=comment, bank=array.bank
    )
