"""The programs of exchanges that take a sample while they give the one before, by microthreads.

    collectors      a microthread takes what the port gives, while the main thread passes on what was taken
    distributors    a microthread takes, another one gives; a short task between any two of their instructions

With two buffers both go on side by side, with one (where memory has no room for two) in turn. A PE moves one
element a cycle in all, so this hides what the layer takes to give and to need its elements, not the moves
themselves. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation
from polyloom.wafer.machine.instructions import move_instruction
from polyloom.wafer.network.exchange import (
    BEHIND,
    BUFFER,
    BUS_IN,
    BUS_OUT,
    COUNTS,
    FROM_LAYER,
    GIVES,
    KEEPS,
    TO_LAYER,
    passing,
    shaped_nests,
    table_value,
)
from polyloom.wafer.network.tables import Shape
from polyloom.wafer.pe_program.tree import (
    Activate,
    ArrayDeclaration,
    Code,
    Compute,
    Configure,
    ConfigureFabric,
    ConfigureRun,
    Cost,
    Element,
    If,
    IfNextInvocation,
    Invoke,
    LocalTask,
    OperandDeclaration,
    OperandRef,
    RoleCode,
    SetBase,
    SetInteger,
    SetValue,
)

_I16 = ElementType.INT16
FULL, WAITING = "full", "waiting"
"""Counters: samples that were taken and not yet given; whether taking waits for a buffer."""
TAKING, GIVING = "taking", "giving"
"""Counters: where in memory the buffer begins into which samples are taken, and from which they are given."""
TAKE_ROW, GIVE_ROW = "take_row", "give_row"
"""Counters: rows of the tables that are done."""


def collector(
    name: str, type_: ElementType, cells: int, buffers: int, *, ends_line: bool, holds: bool = False
) -> RoleCode:
    """Return the program of collectors.

    ``cells``: elements of the largest port; ``buffers``: of so many elements; ``ends_line``: nothing is
    behind; ``holds``: the host loads what the first sample is given, each sample is given what came of the
    one before, and what comes of the last one stays.

    Table ``counts``: elements of its own port; blocks of ``BLOCK`` elements from behind, and the rest.
    """
    cells = max(cells, 1)
    move = move_instruction(type_).name
    taken, source, own, out, in_ = (
        OperandRef(n) for n in ("taken_own", "own_in", "own", "passed_out", "passed_in")
    )
    count = (*table_value("count", COUNTS, 0),)
    take = (
        *count,
        If(
            _above(Name("count"), 0),
            (
                Configure(taken, (Name("count"),), (1,)),
                ConfigureFabric(source, False, FROM_LAYER, Name("count")),
                SetBase(taken, Element(BUFFER, (Name(TAKING),))),
                Invoke(move, taken, (source,), "took"),
            ),
            (Activate("took"),),
        ),
    )
    started = _given_if_first("pass_on")
    took = (
        *_taken(cells, buffers),
        *(() if holds else started),
        *_again(buffers, "take", started if holds else ()),
    )
    send_own = If(
        _above(Name("count"), 0),
        (
            Configure(own, (Name("count"),), (1,)),
            ConfigureFabric(out, True, BUS_OUT, Name("count")),
            SetBase(own, Element(BUFFER, (Name(GIVING),))),
            Invoke(move, out, (own,)),
        ),
    )
    behind = () if ends_line else passing(move, out, in_)
    pass_on = (*count, send_own, *behind, *_given(cells, buffers, "take", "pass_on"))
    arrays = (
        ArrayDeclaration(name=COUNTS, type=_I16, extents=(3,), comment="own, blocks from behind, rest"),
        ArrayDeclaration(name=BUFFER, type=type_, extents=(buffers * cells,), comment="samples of the port"),
    )
    names = ("taken_own", "own_in", "own", "passed_out", *(() if ends_line else ("passed_in",)))
    counters = (FULL, WAITING, TAKING, GIVING)
    return RoleCode(
        name=name,
        comment=("collects what leaves a stage",),
        arrays=arrays,
        counters=counters,
        inputs=(FROM_LAYER,) if ends_line else (FROM_LAYER, BEHIND),
        outputs=(BUS_OUT,),
        operands=tuple(OperandDeclaration(n, 1) for n in names),
        main=(*_zeros(counters), *(_held(cells, buffers, "pass_on") if holds else (Activate("take"),))),
        data_tasks=(),
        local_tasks=(
            LocalTask("take", take, blocking=False),
            LocalTask("took", took, blocking=False),
            LocalTask("pass_on", pass_on, blocking=True),
        ),
    )


def distributor(
    name: str, type_: ElementType, sizes: tuple[int, int, int], buffers: int, shapes: Sequence[Shape]
) -> RoleCode:
    """Return the program of distributors. ``sizes``: cells of a sample, most rows of the tables ``keeps`` and
    ``gives``; ``buffers``: of so many cells; ``shapes``: nests that are configured once.

    Tables: ``counts``: rows of the others; ``keeps``: elements, address (-1: they are dropped); ``gives``:
    shape, start, and without a shape elements and stride.
    """
    cells, keeps, gives = sizes
    move = move_instruction(type_).name
    arrays = (
        ArrayDeclaration(name=COUNTS, type=_I16, extents=(2,), comment="rows of keeps, of gives"),
        ArrayDeclaration(name=KEEPS, type=_I16, extents=(keeps, 2), comment="elements, address"),
        ArrayDeclaration(name=GIVES, type=_I16, extents=(gives, 4), comment="shape, start, count, stride"),
        ArrayDeclaration(name=BUFFER, type=type_, extents=(buffers * cells,), comment="what the port needs"),
        ArrayDeclaration(name="unwanted", type=type_, extents=(), comment="what is dropped"),
    )
    took = (
        SetInteger(TAKE_ROW, Number(0)),
        *_taken(cells, buffers),
        *_given_if_first("give"),
        *_again(buffers, "take"),
    )
    gave = (SetInteger(GIVE_ROW, Number(0)), *_given(cells, buffers, "take", "give"))
    shaped = [n for k in range(len(shapes)) for n in (f"nest_{k + 1}", f"nest_{k + 1}_out")]
    operands = ("kept", "kept_in", "dropped", "dropped_in", "given", "given_out", *shaped)
    counters = (FULL, WAITING, TAKING, GIVING, TAKE_ROW, GIVE_ROW)
    return RoleCode(
        name=name,
        comment=("gives a stage what one of its ports needs",),
        arrays=arrays,
        counters=counters,
        inputs=(BUS_IN,),
        outputs=(TO_LAYER,),
        operands=tuple(OperandDeclaration(n, 1) for n in operands),
        main=(*_zeros(counters), *shaped_nests(shapes), Activate("take")),
        data_tasks=(),
        local_tasks=(
            LocalTask("take", _row_of(TAKE_ROW, 0, _take_row(move), took), blocking=False),
            LocalTask("give", _row_of(GIVE_ROW, 1, _give_row(move, shapes), gave), blocking=False),
        ),
    )


def _zeros(counters: Sequence[str]) -> Code:
    return Cost(stores=len(counters)), *(SetInteger(name, Number(0)) for name in counters)


def _row_of(row: str, table: int, body: Code, done: Code) -> Code:
    """Return the code of the next row of a table, or of what follows where all are done."""
    below = Operation("<", (Name(row), Name("rows")))
    counted = (Cost(operations=1, loads=1, stores=1), SetInteger(row, Operation("+", (Name(row), Number(1)))))
    return (
        *table_value("rows", COUNTS, table),
        Cost(loads=1, branches=1),
        If(below, (*body, *counted), done),
    )


def _held(cells: int, buffers: int, give: str) -> Code:
    """Give what the host has loaded, and take into the other buffer after that."""
    return (
        Cost(stores=3),
        SetInteger(FULL, Number(1)),
        SetInteger(WAITING, Number(1)),
        SetInteger(TAKING, Number(cells * (buffers - 1))),
        Activate(give),
    )


def _taken(cells: int, buffers: int) -> Code:
    """Count a sample that was taken; the next one goes into the other buffer."""
    return (
        Cost(operations=1, loads=1, stores=1),
        SetInteger(FULL, Operation("+", (Name(FULL), Number(1)))),
        *_other_buffer(TAKING, cells, buffers),
    )


def _given_if_first(give: str) -> Code:
    """Give a sample that was taken if no other one is being given."""
    return Cost(loads=1, branches=1), If(Operation("==", (Name(FULL), Number(1))), (Activate(give),))


def _again(buffers: int, take: str, before: Code = ()) -> Code:
    """Take another sample if one is to come and a buffer is free; else wait for one."""
    free = Operation("<", (Name(FULL), Number(buffers)))
    wait = (Cost(stores=1), SetInteger(WAITING, Number(1)))
    return (IfNextInvocation((*before, Cost(loads=1, branches=1), If(free, (Activate(take),), wait))),)


def _given(cells: int, buffers: int, take: str, give: str) -> Code:
    """Count a sample that was given, and do what waited for that."""
    go_on = (Cost(stores=1), SetInteger(WAITING, Number(0)), Activate(take))
    return (
        Cost(operations=1, loads=1, stores=1),
        SetInteger(FULL, Operation("-", (Name(FULL), Number(1)))),
        *_other_buffer(GIVING, cells, buffers),
        Cost(loads=2, branches=2),
        If(_above(Name(WAITING), 0), go_on),
        If(_above(Name(FULL), 0), (Activate(give),)),
    )


def _other_buffer(base: str, cells: int, buffers: int) -> Code:
    if buffers == 1:
        return ()
    other = Operation("-", (Number(cells), Name(base)))
    return Cost(operations=1, loads=1, stores=1), SetInteger(base, other)


def _take_row(move: str) -> Code:
    """Return the code of one row of ``keeps``: some elements kept, or dropped."""
    kept, kept_in, dropped, dropped_in = (OperandRef(n) for n in ("kept", "kept_in", "dropped", "dropped_in"))
    keep = (
        Cost(operations=1, loads=1),
        Configure(kept, (Name("count"),), (1,)),
        ConfigureFabric(kept_in, False, BUS_IN, Name("count")),
        SetBase(kept, Element(BUFFER, (_sum(Name("address"), TAKING),))),
        Invoke(move, kept, (kept_in,), "take"),
    )
    drop = (
        Configure(dropped, (Name("count"),), (0,)),
        ConfigureFabric(dropped_in, False, BUS_IN, Name("count")),
        SetBase(dropped, Element("unwanted", ())),
        Invoke(move, dropped, (dropped_in,), "take"),
    )
    read = (_value(n, KEEPS, TAKE_ROW, k) for k, n in enumerate(("count", "address")))
    return Cost(loads=3, branches=1), *read, If(_above(Name("address"), -1), keep, drop)


def _give_row(move: str, shapes: Sequence[Shape]) -> Code:
    """Return the code of one row of ``gives``: a nest that is configured, or a run."""
    given, given_out = OperandRef("given"), OperandRef("given_out")
    first = Element(BUFFER, (_sum(Name("start"), GIVING),))
    code: Code = (
        Cost(loads=2),
        _value("count", GIVES, GIVE_ROW, 2),
        _value("stride", GIVES, GIVE_ROW, 3),
        ConfigureRun(given, Name("count"), Name("stride")),
        ConfigureFabric(given_out, True, TO_LAYER, Name("count")),
        SetBase(given, first),
        Invoke(move, given_out, (given,), "give"),
    )
    for k in reversed(range(len(shapes))):
        nest, out = OperandRef(f"nest_{k + 1}"), OperandRef(f"nest_{k + 1}_out")
        chosen = Operation("==", (Name("shape"), Number(k + 1)))
        code = (
            Cost(branches=1),
            If(chosen, (SetBase(nest, first), Invoke(move, out, (nest,), "give")), code),
        )
    read = (_value(n, GIVES, GIVE_ROW, k) for k, n in enumerate(("shape", "start")))
    return Cost(operations=1, loads=4), *read, *code


def _value(name: str, array: str, row: str, k: int) -> SetValue:
    return SetValue(name, _I16, Compute.of(Element(array, (Name(row), Number(k))), _I16))


def _above(value: IntExpression, limit: int) -> IntExpression:
    return Operation(">", (value, Number(limit)))


def _sum(value: IntExpression, counter: str) -> IntExpression:
    return Operation("+", (value, Name(counter)))
