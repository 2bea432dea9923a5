"""The verifier of kernel trees: right ones pass; mutants are refused, with loop, array and element."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from homs import matmul

from polyloom.ir.expressions import Binary, BinaryOp, Constant, Iterator, Read, Select
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.asked import asked
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.tree.evaluate import backwards, evaluate, shuffled
from polyloom.mdh.tree.nodes import (
    Array,
    Barrier,
    Code,
    Compute,
    For,
    Function,
    If,
    Kind,
    Let,
    LetInteger,
    Load,
    Parameter,
    Space,
    Statement,
    Store,
    Subscript,
    counted,
)
from polyloom.mdh.tree.rewrite import rewritten, walk
from polyloom.mdh.tree.verify import problems, verify
from polyloom.polyhedra.loops.tree import Instance, IntExpression, Name, Number, Operation, sum_of

F32 = ElementType.FLOAT32
PRODUCT = matmul("n", "m", "q")
ASKED = asked(PRODUCT)
Change = Callable[[Statement], tuple[Statement, ...]]


def plus(*parts: str | int) -> IntExpression:
    return sum_of([(1, Number(p) if isinstance(p, int) else Name(p)) for p in parts])


def below(a: IntExpression, b: IntExpression) -> IntExpression:
    return Operation("<", (a, b))


def least(a: int, whole: str, begin: str) -> IntExpression:
    return Operation("min", (Number(a), Operation("-", (Name(whole), Name(begin)))))


def value(array: str, *subscripts: Subscript) -> Compute:
    return Compute(Read(0, F32), (Load(array, subscripts),))


def zero(array: str, *subscripts: Subscript) -> Store:
    return Store(array, subscripts, Compute(Constant(0.0, F32)))


def term(total: Load, a: Load, b: Load, *instance: IntExpression) -> Store:
    product = Read(0, F32) + Read(1, F32) * Read(2, F32)
    return Store(total.array, total.subscripts, Compute(product, (total, a, b)), Instance("matmul", instance))


def tiled() -> Function:
    """A product for a CPU: tiles of 4 x 8 in registers, of ``B`` a copy, lanes along rows, rests masked."""
    i, j, k = plus("i0", "ii"), plus("j0", "l"), plus("k0", "kk")
    ii, lane, kk = Name("ii"), Name("l"), Name("kk")

    def rows(*body: Statement) -> For:
        return counted("ii", Number(4), (If(below(i, Name("n")), body),), kind=Kind.UNROLLED)

    def lanes(*body: Statement) -> For:
        return counted("l", Number(8), (If(below(j, Name("m")), body),), kind=Kind.VECTOR)

    step = term(Load("sum", (ii, lane)), Load("A", (i, k)), Load("b", (kk, lane)), i, j, k)
    tile = (
        Array(name="b", type=F32, shape=(Number(16), Number(8)), space=Space.GROUP),
        counted("kk", least(16, "q", "k0"), (lanes(Store("b", (kk, lane), value("B", k, j))),)),
        counted("kk", least(16, "q", "k0"), (rows(lanes(step)),)),
    )
    body = (
        Array(name="sum", type=F32, shape=(Number(4), Number(8)), space=Space.REGISTER, lanes=True),
        rows(lanes(zero("sum", ii, lane))),
        counted("k0", Name("q"), tile, step=16),
        rows(lanes(Store("C", (i, j), value("sum", ii, lane)))),
    )
    columns = counted("j0", Name("m"), body, kind=Kind.GROUP, step=8)
    return replace(
        program_tree(PRODUCT), body=(counted("i0", Name("n"), (columns,), kind=Kind.GROUP, step=4),)
    )


def grouped() -> Function:
    """A product for a GPU: groups of 4 x 4 items, that copy tiles of both factors and meet at barriers."""
    i, j, k = plus("i0", "ti"), plus("j0", "tj"), plus("k0", "kk")
    ti, tj, kk = Name("ti"), Name("tj"), Name("kk")
    across, down = plus("k0", "tj"), plus("k0", "ti")
    inside = Operation("and", (below(i, Name("n")), below(j, Name("m"))))
    step = term(Load("sum"), Load("a", (ti, kk)), Load("b", (kk, tj)), i, j, k)
    tile = (
        Barrier(),
        If(
            Operation("and", (below(i, Name("n")), below(across, Name("q")))),
            (Store("a", (ti, tj), value("A", i, across)),),
        ),
        If(
            Operation("and", (below(down, Name("q")), below(j, Name("m")))),
            (Store("b", (ti, tj), value("B", down, j)),),
        ),
        Barrier(),
        counted("kk", least(4, "q", "k0"), (If(inside, (step,)),)),
    )
    item = (
        Array(name="sum", type=F32, shape=(), space=Space.REGISTER),
        zero("sum"),
        counted("k0", Name("q"), tile, step=4),
        If(inside, (Store("C", (i, j), value("sum")),)),
    )
    square = (Number(4), Number(4))
    body = (
        Array(name="a", type=F32, shape=square, space=Space.GROUP),
        Array(name="b", type=F32, shape=square, space=Space.GROUP),
        counted("ti", Number(4), (counted("tj", Number(4), item, kind=Kind.ITEM),), kind=Kind.ITEM),
    )
    columns = counted("j0", Name("m"), body, kind=Kind.GROUP, step=4)
    return replace(
        program_tree(PRODUCT), body=(counted("i0", Name("n"), (columns,), kind=Kind.GROUP, step=4),)
    )


TREES = {"tiled": tiled(), "grouped": grouped(), "plain": program_tree(PRODUCT)}


@pytest.mark.parametrize("function", TREES.values(), ids=TREES)
def test_right_trees_pass_for_all_sizes(function: Function) -> None:
    found = verify(function, ASKED)
    assert found.wrong == () and found.unknown == ()


@pytest.mark.parametrize("function", TREES.values(), ids=TREES)
def test_they_are_products(function: Function) -> None:
    generator = np.random.default_rng(0)
    a, b = generator.integers(0, 9, (6, 21)), generator.integers(0, 9, (21, 11))
    arrays = {"A": a.astype(np.float32), "B": b.astype(np.float32)}
    for order in (backwards, shuffled(3)):
        found = evaluate(function, arrays, {"n": 6, "m": 11, "q": 21}, order=order, together=True)
        np.testing.assert_array_equal(found["C"], a @ b)


def mutant(function: Function, change: Change) -> Function:
    changed = replace(function, body=rewritten(function.body, change))
    assert changed.body != function.body
    return changed


def loops(iterator: str, **new: object) -> Change:
    def change(statement: Statement) -> tuple[Statement, ...]:
        if isinstance(statement, For) and statement.iterator == iterator:
            return (replace(statement, **new),)  # type: ignore[arg-type]
        return (statement,)

    return change


def ends(iterator: str, end: IntExpression) -> Change:
    return loops(iterator, condition=below(Name(iterator), end))


def without(number: int, chosen: Callable[[Statement], bool]) -> Change:
    """Leave out one of the statements that are chosen, counted in the order in which they are rewritten."""
    seen: list[Statement] = []

    def change(statement: Statement) -> tuple[Statement, ...]:
        if not chosen(statement):
            return (statement,)
        seen.append(statement)
        return () if len(seen) == number + 1 else (statement,)

    return change


def barrier(statement: Statement) -> bool:
    return isinstance(statement, Barrier)


def unmasked(bound: str, stores_to: str) -> Change:
    """Leave out a mask around a store."""

    def change(statement: Statement) -> tuple[Statement, ...]:
        match statement:
            case If(condition=Operation(operands=(_, Name(name=name))), body=(Store(array=array),)) if (
                name == bound and array == stores_to
            ):
                return statement.body
        return (statement,)

    return change


def stores_to(array: str) -> Callable[[Statement], bool]:
    return lambda statement: isinstance(statement, Store) and statement.array == array


def short_copy(statement: Statement) -> tuple[Statement, ...]:
    """Copy one row less than the tile has."""
    match statement:
        case For(iterator="kk", body=body) if any(map(stores_to("b"), walk(body))):
            return (replace(statement, condition=below(Name("kk"), Number(15))),)
    return (statement,)


def too_late(statement: Statement) -> tuple[Statement, ...]:
    """Copy a tile after it is used."""
    match statement:
        case For(iterator="k0", body=(array, copy, use)):
            return (replace(statement, body=(array, use, copy)),)
    return (statement,)


MUTANTS = {
    "a copy that is too short": ("tiled", short_copy, "`b` is loaded before it is stored", "`b[15, "),
    "a copy that is too late": ("tiled", too_late, "`b` is loaded before it is stored", "`b[0, 0]`"),
    "a sum without a start": ("tiled", without(0, stores_to("sum")), "`sum` is loaded before it is stored"),
    "an item's sum without a start": ("grouped", without(0, stores_to("sum")), "`sum` is loaded before"),
    "items that copy nothing": ("grouped", without(0, stores_to("a")), "`a` is loaded before", "`a[0, 0]`"),
    "tiles that overlap": ("tiled", loops("j0", step=Number(7)), "parallel loop over `j0`", "`C["),
    "tiles with gaps": ("tiled", loops("i0", step=Number(5)), "is not carried out"),
    "tiles done twice": ("tiled", loops("k0", step=Number(15)), "is carried out twice", "`matmul("),
    "a rest that is none": ("tiled", ends("kk", Number(16)), "`A[", "does not exist"),
    "one step too many": ("plain", ends("k", plus("q", 1)), "`A[i, k]`", "does not exist"),
    "one step too few": ("tiled", ends("k0", plus("q", -1)), "`matmul(", "is not carried out"),
    "rows without a mask": ("tiled", unmasked("m", "C"), "`C[i0 + ii, j0 + l]`", "in all lanes"),
    "a sum that is parallel": ("plain", loops("k", kind=Kind.GROUP), "loop over `k`", "`result`"),
    "a sum in lanes": ("plain", loops("k", kind=Kind.VECTOR), "the vector for over `k`"),
    "no barrier before a copy": ("grouped", without(0, barrier), "two items meet in", "`a["),
    "no barrier after a copy": ("grouped", without(1, barrier), "two items meet in", "`b["),
    "results that nobody stores": ("tiled", without(0, stores_to("C")), "`C[0, 0]`", "is not stored"),
    "sums that nobody stores": ("tiled", without(0, stores_to("C")), "`sum` is stored and never loaded"),
    "half of the items": ("grouped", ends("ti", Number(2)), "is not carried out"),
    "too many items": ("grouped", ends("tj", Number(5)), "`a[ti, tj]`", "does not exist"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_refused(name: str) -> None:
    tree, change, *words = MUTANTS[name]
    found = problems(mutant(TREES[tree], change), ASKED)
    assert any(all(word in text for word in words) for text in found), found


def test_registers_of_items_outside_of_their_loop() -> None:
    """Each item has its own: another one that the loops of items share would be one for all."""

    def moved(statement: Statement) -> tuple[Statement, ...]:
        match statement:
            case For(iterator="tj", body=(Array() as own, *rest)):
                return own, replace(statement, body=tuple(rest))
        return (statement,)

    found = problems(mutant(TREES["grouped"], moved), ASKED)
    assert any("`sum`" in text and "each item has its own" in text for text in found), found


@pytest.mark.parametrize(
    "condition",
    [
        below(Name("ti"), Number(2)),
        Compute(Select(Iterator(0, F32) < 1, Constant(1, F32), Constant(0, F32)) < 1, (), (Name("ti"),)),
    ],
)
def test_barriers_that_some_items_do_not_reach(condition: IntExpression | Compute) -> None:
    def some(statement: Statement) -> tuple[Statement, ...]:
        return (If(condition, (statement,)),) if isinstance(statement, Barrier) else (statement,)

    found = problems(mutant(TREES["grouped"], some), ASKED)
    assert any("a barrier is inside" in text for text in found), found


def test_a_barrier_in_a_loop_that_is_longer_for_some() -> None:
    def longer(statement: Statement) -> tuple[Statement, ...]:
        if isinstance(statement, Barrier):
            named = LetInteger("often", Name("ti"))
            return named, counted("again", Name("often"), (statement,))
        return (statement,)

    found = problems(mutant(TREES["grouped"], longer), ASKED)
    assert any("a barrier is inside the loop over `again`" in text for text in found), found


def lanes_of(*body: Statement) -> Function:
    """``y[0 .. 7]`` from ``x[0 .. 8]``, eight lanes at once."""
    program = program_tree(matmul(9, 9, 9))
    return replace(program, body=(counted("l", Number(8), body, kind=Kind.VECTOR),))


LANE, NEXT, ZERO = Name("l"), plus("l", 1), Number(0)


@pytest.mark.parametrize(
    ("body", "right"),
    [
        ((Store("C", (ZERO, LANE), value("C", ZERO, NEXT)),), True),
        ((Store("C", (ZERO, NEXT), value("C", ZERO, LANE)),), False),
        ((zero("C", ZERO, LANE), Store("C", (Number(1), LANE), value("C", ZERO, LANE))), True),
        ((zero("C", ZERO, NEXT), Store("C", (Number(1), LANE), value("C", ZERO, LANE))), True),
        ((zero("C", ZERO, LANE), Store("C", (Number(1), LANE), value("C", ZERO, NEXT))), False),
        ((Let("x", value("C", ZERO, NEXT)), Store("C", (ZERO, LANE), value("x"))), True),
        ((Let("x", value("C", ZERO, LANE)), Store("C", (ZERO, NEXT), value("x"))), False),
        ((zero("C", ZERO, ZERO),), False),
    ],
)
def test_lanes_that_depend_on_each_other(body: Code, right: bool) -> None:
    """The verifier refuses what statement by statement is not what lane by lane is, and only that."""
    function = lanes_of(*body)
    start = {"C": np.arange(81, dtype=np.float32).reshape(9, 9)}
    runs = [evaluate(function, start, {}, together=t)["C"] for t in (False, True)]
    same = np.array_equal(*runs) and "C[0, 0] = 0" not in str(body)
    assert (problems(function) == ()) == right
    assert same or not right


def test_what_data_choose_is_not_known() -> None:
    place = Compute(Read(0, ElementType.INT32), (Load("bin", (Name("i"),)),))

    parameters = (
        Parameter(name="bin", type=ElementType.INT32, shape=(Number(9),), constant=True),
        Parameter(name="y", type=F32, shape=(Number(5),)),
    )
    body = (counted("i", Number(9), (zero("y", place),), kind=Kind.GROUP),)
    found = verify(Function(name="f", parameters=parameters, integers=(), body=body))
    assert found.wrong == () and len(found.unknown) == 2, found.unknown


def test_choices_keep_loads_inside() -> None:
    """``l > 0 ? x[l - 1] : 0`` loads nothing outside, but in lanes, which load before they choose."""
    load = Load("A", (ZERO, plus("l", -1)))
    chosen = Select(Iterator(0, ElementType.INT64) > 0, Read(0, F32), Constant(0, F32))
    store = Store("C", (ZERO, LANE), Compute(chosen, (load,), (LANE,)))
    function = lanes_of(store)
    assert problems(mutant(function, loops("l", kind=Kind.GROUP))) == ()
    (text,) = problems(function)
    assert text.startswith("`A[0, l - 1]` is accessed in all lanes where it does not exist")


def test_what_stands_behind_and_is_loaded_only_where_it_counts() -> None:
    """``l > 0 and x[l - 1] > 0`` loads nothing outside."""
    load = Load("A", (ZERO, plus("l", -1)))
    both = Binary(BinaryOp.AND, Iterator(0, ElementType.INT64) > 0, Read(0, F32) > 0)
    store = Store(
        "C", (ZERO, LANE), Compute(Select(both, Constant(1, F32), Constant(0, F32)), (load,), (LANE,))
    )
    function = lanes_of(store)
    assert problems(mutant(function, loops("l", kind=Kind.GROUP))) == ()
    assert problems(function) != ()


def test_small_faults() -> None:
    store = Store("A", (ZERO,), Compute(Constant(1, ElementType.INT32)))
    nowhere = Store("D", (), value("E"))
    assert problems(lanes_of(store, nowhere)) == (
        "`A` is constant, and stored to",
        "int32 is stored to `A`, of float32",
        "`A[0]`: the array has 2 dimensions",
        "`E` is loaded, and is nothing there",
        "`D` is stored to, and is no array there",
    )


def stored_at(place: IntExpression) -> tuple[str, ...]:
    """Return what is wrong with a parallel loop over four points that store there."""
    loop = counted("i", Number(4), (zero("C", ZERO, place),), kind=Kind.GROUP)
    return problems(replace(lanes_of(), body=(loop,)))


def test_points_of_a_parallel_loop_that_share_an_element() -> None:
    here = Name("i")
    assert stored_at(here) == stored_at(Operation("*", (Number(2), here))) == ()
    for place in (ZERO, Operation("floor", (here, Number(2)))):
        (text,) = stored_at(place)
        assert "parallel loop over `i` `C[0, " in text


def test_instances_that_isl_has_no_word_for_are_not_known_to_be_missing() -> None:
    """Blocks whose size a parameter says: ``k = part * size + kk`` is not affine."""
    k = Operation("+", (Operation("*", (Name("part"), Name("q"))), Name("kk")))
    i, j = Name("i0"), Name("j0")
    step = term(Load("C", (i, j)), Load("A", (i, k)), Load("B", (k, j)), i, j, k)
    code: Code = (step,)
    for name, end in (("kk", "q"), ("part", "m"), ("j0", "m"), ("i0", "n")):
        code = (counted(name, Name(end), code),)
    verdict = verify(replace(program_tree(PRODUCT), body=code), ASKED)
    assert "which instances of `matmul` are carried out" in verdict.unknown
    assert not any("carried out" in fault for fault in verdict.wrong)
