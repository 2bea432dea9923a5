"""Places in flat arrays: what loops and tasks do not change stands in front of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyloom.ir.expressions import Read
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.generate import IntExpression, Name, Number, Operation, operation_count
from polyloom.wafer.csl_output.flat import flattened, padding
from polyloom.wafer.csl_output.role import role_file
from polyloom.wafer.pe_program.tree import (
    ArrayDeclaration,
    Code,
    Compute,
    Configure,
    CountUp,
    DataTask,
    Element,
    For,
    Invoke,
    LocalTask,
    Node,
    OperandDeclaration,
    OperandRef,
    RoleCode,
    SetBase,
    SetInteger,
    StoreElement,
    Variable,
)

HALF = ElementType.FLOAT16
ROWS, COLUMNS = 5, 7
TABLE = ArrayDeclaration(name="a_local", type=HALF, extents=(ROWS, COLUMNS), comment="a")
VALUE = Compute(Read(0, HALF), ((0, Variable("data")),))


def loop(name: str, extent: int, body: Code) -> For:
    condition = Operation("<", (Name(name), Number(extent)))
    return For(iterator=name, start=Number(0), condition=condition, step=Number(1), body=body)


def stored(*subscripts: IntExpression) -> StoreElement:
    return StoreElement(Element("a_local", subscripts), VALUE)


def role(body: Code, array: ArrayDeclaration = TABLE, counters: tuple[str, ...] = ()) -> RoleCode:
    return RoleCode(
        name="r_0",
        comment=(),
        arrays=(array,),
        counters=counters,
        inputs=(),
        outputs=(),
        operands=(),
        main=(),
        data_tasks=(),
        local_tasks=(LocalTask("work", body, False),),
    )


def task_of(code: RoleCode) -> Code:
    return flattened(code).local_tasks[0].body


def places(code: Code, names: dict[str, int]) -> list[int]:
    """Run loops and integers; return the places that are stored to, in order."""
    found: list[int] = []
    for node in code:
        match node:
            case For(iterator=iterator, condition=Operation(operands=(_, stop)), body=body):
                for k in range(value(stop, names)):
                    found += places(body, {**names, iterator: k})
            case SetInteger(variable=variable, value=expression):
                names = {**names, variable: value(expression, names)}
            case StoreElement(target=Element(subscripts=(place,))):
                found.append(value(place, names))
    return found


def value(expression: IntExpression, names: dict[str, int]) -> int:
    match expression:
        case Number(value=number):
            return number
        case Name(name=name):
            return names[name]
        case Operation(operator="-", operands=(only,)):
            return -value(only, names)
        case Operation(operator=operator, operands=(left, right)):
            a, b = value(left, names), value(right, names)
            return {"+": a + b, "-": a - b, "*": a * b}[operator]
    raise AssertionError(expression)


def innermost(code: Code) -> list[Node]:
    return [n for node in code for n in (innermost(node.body) if isinstance(node, For) else [node])]


def test_a_loop_computes_only_what_it_changes() -> None:
    i, j, k = Name("i"), Name("j"), Name("k")
    target = stored(Operation("+", (i, k)), Operation("-", (Number(6), j)))
    body = (loop("i", 2, (loop("j", COLUMNS, (target,)),)),)
    made = task_of(role(body))
    rows = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    assert places(made, {"k": 2}) == [int(rows[i + 2, 6 - j]) for i in range(2) for j in range(COLUMNS)]
    (store,) = (node for node in innermost(made) if isinstance(node, StoreElement))
    (place,) = store.target.subscripts
    assert operation_count(place) <= 2  # what was there before, the number 6, less j


def test_a_place_that_nothing_shortens_is_left_alone() -> None:
    j = Name("j")
    made = task_of(role((loop("j", 5, (stored(j, j),)),)))
    assert [type(node) for node in made] == [For]


def test_names_set_inside_stay_inside() -> None:
    inner = SetInteger("row", Operation("*", (Number(2), Name("i"))), declare=True)
    made = task_of(role((loop("i", 2, (inner, loop("j", 3, (stored(Name("row"), Name("j")),)))),)))
    assert places(made, {}) == [14 * i + j for i in range(2) for j in range(3)]


def test_a_counter_is_read_once_where_the_task_does_not_change_it() -> None:
    n = Name("n")
    twice = (stored(n, Number(0)), stored(n, Number(1)))
    first, *rest = task_of(role(twice, counters=("n",)))
    assert first == SetInteger("n_here", n, declare=True)
    assert len(rest) == 2
    assert not any(isinstance(node, SetInteger) for node in task_of(role(twice[:1], counters=("n",))))
    counting = (*twice, CountUp("n", Number(3), ()))
    assert not any(isinstance(node, SetInteger) for node in task_of(role(counting, counters=("n",))))


def test_new_names_are_new() -> None:
    n = Name("n_here")
    made = task_of(role((stored(Name("n"), n), stored(Name("n"), n)), counters=("n", "n_here")))
    declared = [node.variable for node in made if isinstance(node, SetInteger)]
    assert len(set(declared) | {"n", "n_here"}) == 4


def test_an_array_in_another_bank_begins_later() -> None:
    moved = replace(TABLE, bank=2)
    assert padding(moved) == 2
    assert padding(replace(moved, type=ElementType.FLOAT32)) == 1
    assert places(task_of(role((stored(Number(1), Number(1)),), moved)), {}) == [COLUMNS + 1 + 2]
    text = role_file(role((stored(Number(0), Number(0)),), moved), "wse2", frozenset())
    assert "var a_local: [37]f16 align(8) = @zeros([37]f16);" in text
    assert "var a_local_ptr: [*]f16 = @ptrcast([*]f16, &a_local[2]);" in text


def test_one_branch_selects_all_operands_and_the_largest_size_comes_first() -> None:
    each = OperandRef("d", "size")
    configured = tuple(Configure(OperandRef("d", str(k)), (Number(k + 1),), (1,)) for k in range(3))
    body = (
        SetInteger("size", Name("index"), declare=True),
        SetBase(each, Element("a_local", (Number(0), Name("index")))),
        Invoke("fmovh", each, (each,)),
    )
    code = replace(
        role(()),
        inputs=("x_in",),
        operands=(OperandDeclaration("d", 3, ""),),
        main=configured,
        data_tasks=(DataTask(queue="x_in", name="handle", type=HALF, body=body, end_name="end", end=()),),
    )
    text = role_file(code, "wse2", frozenset({0}))
    handle = text[text.index("task handle") : text.index("task end")]
    assert handle.count("if (size ==") == 2
    assert handle.index("size == 2") < handle.index("size == 1") < handle.index("} else {")
    assert handle.count("@increment_dsd_offset") == handle.count("@fmovh") == 3
