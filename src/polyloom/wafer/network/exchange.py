"""The programs of exchanges: PEs along a side of a stage that pass a tensor from its ports to others'.

    collectors      take what their port gives, then pass on: their own elements, then those of the PEs behind
    distributors    see all that passes, keep what their port needs, then give it in the order of the port

Both hold a whole sample of what is theirs. So a stage is always drained, port by port, whatever the others
wait for, and is fed in any order that it likes: with streams that have no cycle there is no deadlock
(docs/networks.md). What differs from PE to PE stands in tables.

Here is the distributor whose tables have loops, so that many short runs take few cycles: it takes and gives
in turn. The others are in ``overlap``. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation
from polyloom.wafer.machine.instructions import move_instruction
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
    For,
    If,
    IfNextInvocation,
    Invoke,
    LocalTask,
    Node,
    OperandDeclaration,
    OperandRef,
    RoleCode,
    SetBase,
    SetValue,
)

BLOCK = 16384
"""Elements that a collector passes on in one instruction."""
COUNTS, BUFFER, KEEPS, GIVES = "counts", "buffer", "keeps", "gives"
FROM_LAYER, TO_LAYER, BEHIND, BUS_IN, BUS_OUT = "from_layer", "to_layer", "from_behind", "bus_in", "bus_out"
_I16 = ElementType.INT16
_NEXT = LocalTask("finish", (IfNextInvocation((Activate("take"),)),), blocking=False)


def passing(move: str, out: OperandRef, in_: OperandRef) -> Code:
    """Return the code of a collector that passes on what comes from behind."""

    def some(elements: IntExpression) -> Code:
        return (
            ConfigureFabric(in_, False, BEHIND, elements),
            ConfigureFabric(out, True, BUS_OUT, elements),
            Invoke(move, out, (in_,)),
        )

    return (
        *table_value("blocks", COUNTS, 1),
        _times("block_number", Name("blocks"), some(Number(BLOCK))),
        *table_value("rest", COUNTS, 2),
        If(_above(Name("rest"), 0), some(Name("rest"))),
    )


def distributor(
    name: str, type_: ElementType, sizes: tuple[int, int, int], shapes: Sequence[Shape]
) -> RoleCode:
    """Return the program of distributors. ``sizes``: cells of memory, most rows of the tables ``keeps`` and
    ``gives``; ``shapes``: nests that are configured once.

    Tables: ``counts``: rows of the others; ``keeps`` and ``gives`` as ``tables`` has them.
    """
    cells, keeps, gives = sizes
    move = move_instruction(type_).name
    take = (
        *table_value("rows", COUNTS, 0),
        _times("row", Name("rows"), _keep_row(move)),
        Activate("give"),
    )
    give = (
        *table_value("rows", COUNTS, 1),
        _times("row", Name("rows"), _give_row(move, shapes)),
        Activate("finish"),
    )
    arrays = (
        ArrayDeclaration(name=COUNTS, type=_I16, extents=(2,), comment="rows of keeps, of gives"),
        ArrayDeclaration(name=KEEPS, type=_I16, extents=(keeps, 4), comment="times, drop, keep, address"),
        ArrayDeclaration(
            name=GIVES, type=_I16, extents=(gives, 6), comment="shape, start, times, step, count, stride"
        ),
        ArrayDeclaration(name=BUFFER, type=type_, extents=(cells,), comment="what the port needs"),
        ArrayDeclaration(name="unwanted", type=type_, extents=(), comment="what is dropped"),
    )
    shaped = [n for k in range(len(shapes)) for n in (f"nest_{k + 1}", f"nest_{k + 1}_out")]
    operands = ("kept", "kept_in", "dropped", "dropped_in", "given", "given_out", *shaped)
    return RoleCode(
        name=name,
        comment=("gives a stage what one of its ports needs",),
        arrays=arrays,
        counters=(),
        inputs=(BUS_IN,),
        outputs=(TO_LAYER,),
        operands=tuple(OperandDeclaration(n, 1) for n in operands),
        main=(*shaped_nests(shapes), Activate("take")),
        data_tasks=(),
        local_tasks=(LocalTask("take", take, True), LocalTask("give", give, True), _NEXT),
    )


def _keep_row(move: str) -> Code:
    """Return the code of one row of ``keeps``: drop and keep, so many times."""
    kept, kept_in, dropped, dropped_in = (OperandRef(n) for n in ("kept", "kept_in", "dropped", "dropped_in"))
    keep = (
        Cost(operations=2, multiplications=1),
        SetBase(kept, Element(BUFFER, (_plus("address", "time", "keep"),))),
        Invoke(move, kept, (kept_in,)),
    )
    return (
        *(_row_value(n, KEEPS, k) for k, n in enumerate(("times", "drop", "keep", "address"))),
        Cost(loads=4),
        Configure(dropped, (Name("drop"),), (0,)),
        ConfigureFabric(dropped_in, False, BUS_IN, Name("drop")),
        SetBase(dropped, Element("unwanted", ())),
        Configure(kept, (Name("keep"),), (1,)),
        ConfigureFabric(kept_in, False, BUS_IN, Name("keep")),
        _times(
            "time",
            Name("times"),
            (
                Cost(branches=2),
                If(_above(Name("drop"), 0), (Invoke(move, dropped, (dropped_in,)),)),
                If(_above(Name("keep"), 0), keep),
            ),
        ),
    )


def shaped_nests(shapes: Sequence[Shape]) -> Iterator[Node]:
    """Yield the code that configures the nests of ``give_tables``."""
    for k, shape in enumerate(shapes):
        counts = tuple(Number(count) for count, _ in shape)
        elements = Number(prod(count for count, _ in shape))
        yield Configure(OperandRef(f"nest_{k + 1}"), counts or (Number(1),), _steps(shape))
        yield ConfigureFabric(OperandRef(f"nest_{k + 1}_out"), True, TO_LAYER, elements)


def _steps(shape: Shape) -> tuple[int, ...]:
    return tuple(step for _, step in shape) or (1,)


def _give_row(move: str, shapes: Sequence[Shape]) -> Code:
    """Return the code of one row of ``gives``: a nest, or a run whose size stands there, so many times."""
    given, given_out = OperandRef("given"), OperandRef("given_out")
    first = Element(BUFFER, (_plus("start", "time", "step"),))
    code: Code = (
        _row_value("count", GIVES, 4),
        _row_value("stride", GIVES, 5),
        Cost(loads=2),
        ConfigureRun(given, Name("count"), Name("stride")),
        ConfigureFabric(given_out, True, TO_LAYER, Name("count")),
        _repeated(first, move, given, given_out),
    )
    for k in reversed(range(len(shapes))):
        nest = OperandRef(f"nest_{k + 1}"), OperandRef(f"nest_{k + 1}_out")
        chosen = Operation("==", (Name("shape"), Number(k + 1)))
        code = (Cost(branches=1), If(chosen, (_repeated(first, move, *nest),), code))
    names = ("shape", "start", "times", "step")
    return (*(_row_value(n, GIVES, k) for k, n in enumerate(names)), Cost(loads=4), *code)


def _repeated(first: Element, move: str, operand: OperandRef, out: OperandRef) -> For:
    body = (Cost(operations=2, multiplications=1), SetBase(operand, first), Invoke(move, out, (operand,)))
    return _times("time", Name("times"), body)


def table_value(name: str, array: str, k: int) -> Code:
    """Return the code that reads an element of a table of numbers."""
    return Cost(loads=1, branches=1), SetValue(name, _I16, _loaded(array, (Number(k),)))


def _row_value(name: str, array: str, k: int) -> SetValue:
    return SetValue(name, _I16, _loaded(array, (Name("row"), Number(k))))


def _loaded(array: str, subscripts: tuple[IntExpression, ...]) -> Compute:
    return Compute.of(Element(array, subscripts), _I16)


def _above(value: IntExpression, limit: int) -> IntExpression:
    return Operation(">", (value, Number(limit)))


def _plus(base: str, time: str, step: str) -> IntExpression:
    return Operation("+", (Name(base), Operation("*", (Name(time), Name(step)))))


def _times(iterator: str, count: IntExpression, body: Code) -> For:
    return For(
        iterator=iterator,
        start=Number(0),
        condition=Operation("<", (Name(iterator), count)),
        step=Number(1),
        body=(Cost(iterations=1), *body),
    )
