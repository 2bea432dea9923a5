"""Loops and integer expressions from isl: what they execute is what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from random import Random

import islpy as isl
import pytest

from polyloom.polyhedra.loops.generate import (
    Branch,
    CodeBuilder,
    Instance,
    IntExpression,
    Loop,
    Name,
    Number,
    Operation,
    Tree,
    names_in,
    operation_count,
    product_of,
    replace_name,
    substitute,
    sum_of,
)

_BINARY: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "floor": lambda a, b: a // b,
    "==": lambda a, b: int(a == b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "and": lambda a, b: int(bool(a and b)),
    "or": lambda a, b: int(bool(a or b)),
    "min": min,
    "max": max,
}


def value_of(expression: IntExpression, names: dict[str, int]) -> int:
    match expression:
        case Number(value=value):
            return value
        case Name(name=name):
            return names[name]
        case Operation(operator="-", operands=(a,)):
            return -value_of(a, names)
        case Operation(operator="?", operands=(c, a, b)):
            return value_of(a if value_of(c, names) else b, names)
        case Operation(operator=operator, operands=(first, *rest)):
            result = value_of(first, names)
            for operand in rest:
                result = _BINARY[operator](result, value_of(operand, names))
            return result
    raise AssertionError(expression)


def executed(tree: Tree, names: dict[str, int]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for node in tree:
        match node:
            case Loop():
                value = value_of(node.start, names)
                while value_of(node.condition, {**names, node.iterator: value}):
                    found += executed(node.body, {**names, node.iterator: value})
                    value += value_of(node.step, names)
            case Branch():
                found += executed(node.body if value_of(node.condition, names) else node.otherwise, names)
            case Instance():
                found.append(tuple(value_of(argument, names) for argument in node.arguments))
    return found


def points_at(points: isl.Set, names: dict[str, int]) -> list[tuple[int, ...]]:
    for name, value in names.items():
        position = points.find_dim_by_name(isl.dim_type.param, name)
        if position >= 0:
            points = points.fix_val(isl.dim_type.param, position, isl.Val(value))
    found: list[tuple[int, ...]] = []
    rank = points.dim(isl.dim_type.set)
    points.project_out(isl.dim_type.param, 0, points.dim(isl.dim_type.param)).foreach_point(
        lambda p: found.append(
            tuple(p.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(rank))
        )
    )
    return sorted(found)


@pytest.mark.parametrize(
    "text",
    [
        "[n] -> { S[i, j] : 0 <= i < 5 and i <= j < n }",
        "[n] -> { S[i, j] : 0 <= i < 6 and exists a : j = 3a + n and 0 <= j < 8 }",
        "[n] -> { S[i, j] : (i = n and 0 <= j < 2) or (i = 4 and 1 <= j <= n) }",
        "[n] -> { S[i] : 2i = n }",
        "[n] -> { S[n, n + 1] : n > 2 }",
        "[n] -> { S[i] : i = floor((n + 3)/4) or n = 6 and 0 <= i < 2 }",
        "[n] -> { S[i] : false }",
        "[n] -> { S[] : n > 3 }",
    ],
)
def test_loops_visit_the_points_of_the_set_in_order(text: str) -> None:
    points = isl.Set(text)
    order = isl.Map.identity(points.get_space().map_from_set()).intersect_domain(points)
    schedule = isl.UnionMap.from_map(order.reset_tuple_id(isl.dim_type.out))
    tree = CodeBuilder(isl.Set("[n] -> { : 0 <= n < 8 }"), {}).loops(schedule)
    for n in range(8):
        assert executed(tree, {"n": n}) == points_at(points, {"n": n})


@pytest.mark.parametrize(
    "holds", ["n >= 3", "n mod 3 = 1", "n = 2 or n >= 5", "exists a : n = 2a + 1", "n < 0", "m = n"]
)
def test_a_condition_holds_where_the_set_does(holds: str) -> None:
    context = isl.Set("[m, n] -> { : 0 <= n < 8 and 0 <= m < 4 }")
    wanted = isl.Set(f"[n, m] -> {{ : {holds} }}")
    condition = CodeBuilder(context, {}).condition(wanted)
    assert condition is not None
    for n in range(8):
        for m in range(4):
            here = isl.Set(f"[n, m] -> {{ : n = {n} and m = {m} }}")
            assert bool(value_of(condition, {"n": n, "m": m})) == here.is_subset(wanted)


def test_what_always_holds_is_no_condition() -> None:
    builder = CodeBuilder(isl.Set("[n] -> { : 0 <= n < 8 }"), {})
    assert builder.condition(isl.Set("[n] -> { : n > -2 }")) is None


def test_values_and_renamed_parameters() -> None:
    builder = CodeBuilder(isl.Set("[index_0] -> { : 0 <= index_0 < 9 }"), {"index_0": "x_index_0"})
    value = builder.value(isl.PwAff("[index_0] -> { [(2 * floor(index_0/4) + index_0)] }"))
    assert names_in(value) == {"x_index_0"}
    for n in range(9):
        assert value_of(value, {"x_index_0": n}) == 2 * (n // 4) + n


def test_an_affine_function_at_arguments() -> None:
    builder = CodeBuilder(isl.Set("[n] -> { : 0 <= n < 8 }"), {})
    aff = isl.Aff("[n] -> { S[i, j] -> [(3i - 2j + n + 5)] }")
    value = builder.affine(aff, [Name("a"), Number(2)])
    assert value_of(value, {"a": 7, "n": 4}) == 3 * 7 - 4 + 4 + 5


def test_sums_and_products_fold_numbers() -> None:
    a, b = Name("a"), Name("b")
    assert sum_of([]) == Number(0)
    assert sum_of([(2, Number(3)), (0, a)]) == Number(6)
    assert sum_of([(-1, a), (1, b)]) == Operation("-", (b, a))
    assert sum_of([(1, a), (1, Number(-2))]) == Operation("-", (a, Number(2)))
    assert sum_of([(-1, a)]) == Operation("-", (a,))
    assert product_of([]) == Number(1)
    assert product_of([Number(2), a, Number(3)]) == Operation("*", (Number(6), a))
    assert product_of([a, b]) == Operation("*", (a, b))


def test_replacing_names() -> None:
    inside = Operation("+", (Name("a"), Name("b")))
    replaced = replace_name(inside, "a", Number(1))
    assert names_in(replaced) == {"b"}
    assert value_of(replaced, {"b": 5}) == 6
    tree: Tree = (Branch(Name("a"), (Instance("S", (Name("a"),)),), ()),)
    assert substitute(tree, "a", Name("c")) == (Branch(Name("c"), (Instance("S", (Name("c"),)),), ()),)


def test_operations_are_counted() -> None:
    a = Name("a")
    assert operation_count(a) == 0
    assert operation_count(Operation("+", (a, Operation("*", (Number(2), a))))) == 2
    assert operation_count(Operation("min", (a, a, a))) == 2
    assert operation_count(Operation("-", (a,))) == 1


_AT = "[i, j] -> { : 0 <= i <= 24 and 0 <= j <= 9 }"


def written(function: str) -> IntExpression:
    return CodeBuilder(isl.Set(_AT), {}).value(isl.PwAff(f"[i, j] -> {{ [{function}] }}"))


@pytest.mark.parametrize(
    ("function", "operations"),
    [
        ("i - floor((i + 1)/2) + 1", 2),  # i / 2 + 1
        ("-i + 2*floor((i + 1)/2)", 1),  # i % 2
        ("2 - i + floor((2*i + 3)/4) - floor((1 - i)/2)", 0),  # 2
        ("floor((i + 3)/4)", 2),
    ],
)
def test_floor_divisions_take_few_operations(function: str, operations: int) -> None:
    assert operation_count(written(function)) == operations


def test_floor_divisions_have_their_values_in_every_form() -> None:
    random = Random(7)
    for _ in range(60):
        a, b, c, d, e, f, g, h = (random.randint(-6, 6) for _ in range(8))
        m, n = random.randint(2, 5), random.randint(2, 7)
        text = f"{a}*i + {b}*j + {c} + {d}*floor(({e}*i + {f}*j + {g})/{m}) + {h}*floor(({g}*i + {a})/{n})"
        found = written(text)
        for i, j in product(range(0, 25, 3), range(10)):
            exact = a * i + b * j + c + d * ((e * i + f * j + g) // m) + h * ((g * i + a) // n)
            assert value_of(found, {"i": i, "j": j}) == exact, text
            assert all(value_of(o, {"i": i, "j": j}) >= 0 for o in dividends(found)), text


def dividends(expression: IntExpression) -> Iterator[IntExpression]:
    """What is divided as C divides, which must not be negative."""
    if isinstance(expression, Operation):
        if expression.operator in ("/", "%"):
            yield expression.operands[0]
        for operand in expression.operands:
            yield from dividends(operand)
