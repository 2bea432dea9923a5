"""Kernel trees as C: the text of one, and what compiled ones leave, against the evaluator of trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from test_evaluate_tree import plus
from test_tree import matrix_vector

from polyloom.c_compilers import c_compilers
from polyloom.ir.expressions import Compare, CompareOp, Constant, Convert, Iterator, Read, Select
from polyloom.ir.types import ElementType
from polyloom.mdh.native.entry import built
from polyloom.mdh.print.c_source import Reader, c_source, c_text
from polyloom.mdh.tree.evaluate import evaluate
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
    Store,
    counted,
)
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, sum_of
from samples import LATER

I32, F32, F16, I64, BOOL = (
    ElementType.INT32,
    ElementType.FLOAT32,
    ElementType.FLOAT16,
    ElementType.INT64,
    ElementType.BOOL,
)
HERE, J, L, N, T = map(Name, "ijlnt")


def test_text_of_a_kernel() -> None:
    text = c_source(matrix_vector())
    kernel = text[text.index("static void product_1") :]
    assert (
        kernel
        == """\
static void product_1(int64_t first, int64_t end, int64_t n, const float (*restrict A)[n],
        const float *restrict x, float *restrict y)
{
    for (int64_t i0 = first * 8; i0 < end * 8; i0 += 8) {
        float32x8 sum;
        sum = splat_float32x8(0.0f);
        for (int64_t k = 0; k < n; k++) {
            sum = sum + gather_float32x8(&A[i0][k], n) * splat_float32x8(x[k]);
        }
        store_float32x8(&y[i0], sum);
    }
}

void product(struct team *team, int64_t me, void *const *arrays, const int64_t *integers)
{
    const int64_t n = integers[0];
    const float (*restrict A)[n] = arrays[0];
    const float *restrict x = arrays[1];
    float *restrict y = arrays[2];
    {
        const int64_t points = 8;
        product_1(part(points, me, team), part(points, me + 1, team), n, A, x, y);
    }
}
"""
    )


def computed(
    function: Function, arrays: Mapping[str, Any], integers: Mapping[str, int], threads: int
) -> dict[str, Any]:
    """Return what the C of a function leaves in the arrays that it may write."""
    found = {p.name: arrays[p.name].copy() for p in function.parameters}
    entry = built(function, next(c_compilers()), threads)
    entry.call([a.ctypes.data for a in found.values()], [integers[n] for n in function.integers])()
    return {p.name: found[p.name] for p in function.parameters if not p.constant}


def assert_same(
    function: Function, arrays: Mapping[str, Any], integers: Mapping[str, int] | None = None
) -> None:
    wanted = evaluate(function, arrays, integers or {})
    for threads in (1, 3):
        found = computed(function, arrays, integers or {}, threads)
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name], array, err_msg=f"{name}, {threads} threads")


def kernel(
    *body: Any, kind: ElementType = I32, integers: tuple[str, ...] = (), columns: int = 24
) -> Function:
    """Return a function of ``x`` and ``y``, 24 elements each, 24 rows of ``A`` and ``B``."""
    sizes: dict[str, tuple[IntExpression, ...]] = {"x": (Number(24),), "A": (Number(24), Number(columns))}
    named = {**sizes, "y": sizes["x"], "B": sizes["A"]}
    parameters = tuple(
        Parameter(name=n, type=kind, shape=shape, constant=n in "xA") for n, shape in named.items()
    )
    return Function(name="kernel", parameters=parameters, integers=integers, body=body)


def data(kind: ElementType = I32, columns: int = 24) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    shapes = {"x": (24,), "A": (24, columns), "y": (24,), "B": (24, columns)}
    return {n: rng.integers(0, 24, shape).astype(kind.dtype) for n, shape in shapes.items()}


def read(array: str, *subscripts: IntExpression | Compute, kind: ElementType = I32) -> Compute:
    return Compute(Read(0, kind), (Load(array, subscripts),))


def lanes(*body: Any, width: int = 8) -> For:
    return counted("l", Number(width), body, kind=Kind.VECTOR)


def copied(target: IntExpression, source: IntExpression) -> Store:
    return Store("y", (target,), read("x", source))


VECTORS: dict[str, Code] = {
    "contiguous": (lanes(copied(plus(L, 3), plus(L, 5))),),
    "backwards": (lanes(copied(plus(L, 3), Operation("-", (Number(9), L)))),),
    "strided": (lanes(copied(Operation("*", (Number(3), L)), Operation("*", (Number(2), L)))),),
    "broadcast": (lanes(copied(L, Number(7))),),
    "to one element": (lanes(copied(Number(4), L)),),
    "a diagonal": (lanes(Store("B", (L, L), read("A", L, plus(L, 1)))),),
    "a column": (lanes(Store("B", (L, Number(3)), read("A", Number(2), L))),),
    "quotients": (lanes(copied(L, Operation("floor", (L, Number(3))))),),
    "from data": (lanes(Store("y", (L,), read("A", Number(1), read("x", L)))),),
    "to data": (lanes(Store("B", (read("x", L), L), read("x", L))),),
    "lanes that C has no vectors of": (lanes(copied(L, plus(L, 1)), width=6),),
    "two lanes": (lanes(copied(L, plus(L, 1)), width=2),),
    "values by names": (
        lanes(
            Let("v", Compute(Read(0, I32) + Read(1, I32), (Load("x", (L,)), Load("x", (plus(L, 8),))))),
            Let("few", Compute(Read(0, I32) < Constant(20, I32), (Load("v"),))),
            Store("y", (L,), Compute(Convert(I32, Read(0, BOOL)), (Load("few"),))),
            Store("B", (read("x", L), Number(0)), read("v")),
        ),
        lanes(Let("v", read("x", L)), Store("y", (plus(L, 8),), read("v"))),
    ),
    "an integer by a name": (lanes(LetInteger("at", Operation("*", (Number(2), L))), copied(L, Name("at"))),),
    "iterators": (
        lanes(
            Store("y", (L,), Compute(Iterator(0, I32), (), (Operation("*", (Number(2), plus(L, 1))),))),
            Store("y", (plus(L, 8),), Compute(Iterator(0, I32), (), (Operation("*", (L, L)),))),
        ),
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_vector_loops(name: str) -> None:
    assert_same(kernel(*VECTORS[name]), data())


@pytest.mark.parametrize(
    ("kind", "width"),
    [
        pytest.param(kind, width, marks=LATER if (k + i) % 3 else (), id=f"{kind.value}-{width}")
        for k, kind in enumerate(k for k in ElementType if k is not BOOL)
        for i, width in enumerate((2, 4, 8, 16, 6))
    ],
)
def test_sums_in_registers_of_every_type(kind: ElementType, width: int) -> None:
    """``y[i + l] = sum over k of A[k, i + l] * x[k]`` by tiles of two vectors, and a rest."""
    sums = Array(name="sum", type=kind, shape=(Number(2), Number(width)), space=Space.REGISTER, lanes=True)
    term = Compute(
        Read(0, kind) + Read(1, kind) * Read(2, kind),
        (Load("sum", (J, L)), Load("A", (Name("k"), plus(HERE, L))), Load("x", (Name("k"),))),
    )
    two = counted("j", Number(2), (lanes(Store("sum", (J, L), term), width=width),))
    start = counted("j", Number(2), (lanes(Store("sum", (J, L), Compute(Constant(0, kind))), width=width),))
    ends = tuple(
        lanes(Store("y", (plus(HERE, L),), read("sum", Number(j), L, kind=kind)), width=width) for j in (0, 1)
    )
    body = (sums, start, counted("k", Number(9), (two,)), *ends)
    tiles = counted("i", Number(24 - width), body, kind=Kind.GROUP, step=width)
    assert_same(kernel(tiles, kind=kind), data(kind))


def at_t(*body: Any) -> For:
    return counted("t", Number(5), body)


def group(iterator: str, end: IntExpression, *body: Any, start: int = 0, step: int = 1) -> For:
    return counted(iterator, end, body, kind=Kind.GROUP, start=Number(start), step=step)


def more(amount: int, *at: IntExpression) -> Compute:
    return Compute(Read(0, I32) + amount, (Load("y", at),))


ZERO, ONE, ALL = Number(0), Number(1), Number(24)
TWICE = (sum_of([(2, HERE), (1, T)]), J)
ONE_MORE = Compute(Read(0, I32) + 1, (Load("B", TWICE),))
PROGRAMS: dict[str, Code] = {
    "steps in time, each parallel": (
        at_t(
            group("i", ALL, Store("y", (HERE,), more(1, HERE))),
            group("i", Number(23), Store("B", (T, HERE), read("y", plus(HERE, 1)))),
        ),
    ),
    "nested parallel loops with steps": (
        group(
            "i",
            Number(23),
            group(
                "j",
                N,
                Store("B", (HERE, J), Compute(Iterator(0, I32), (), (plus(HERE, J),))),
                start=1,
                step=2,
            ),
            start=2,
            step=3,
        ),
    ),
    "three parallel loops, in rows, each point once": (
        group(
            "t",
            Number(2),
            group(
                "i",
                Number(3),
                group(
                    "j",
                    N,
                    If(Compute(Read(0, I32) < 3, (Load("A", (HERE, J)),)), (Store("B", TWICE, ONE_MORE),)),
                ),
            ),
        ),
    ),
    "a triangle": (group("i", N, group("j", plus(HERE, 1), Store("B", (HERE, J), read("A", J, HERE)))),),
    "work of one thread between": (
        Store("y", (ZERO,), Compute(Constant(5, I32))),
        group("i", ALL, Store("B", (HERE, ZERO), read("y", ZERO))),
        counted("i", ALL, (Store("y", (HERE,), read("B", HERE, ZERO)),)),
        group("i", ALL, Store("B", (HERE, ONE), read("y", HERE))),
    ),
    "a branch on data that its body changes": (
        at_t(
            If(
                Compute(Read(0, I32) < 14, (Load("y", (ZERO,)),)),
                (group("i", ALL, Store("y", (HERE,), more(5, HERE))),),
                (group("i", ALL, Store("B", (T, HERE), read("y", HERE))),),
            ),
        ),
    ),
    "a value that everybody knows": (
        at_t(
            Let("v", more(1, ZERO)),
            LetInteger("at", plus(T, 2)),
            group("i", ALL, Store("y", (HERE,), read("v")), Store("B", (Name("at"), HERE), read("v"))),
        ),
    ),
    "an array of all threads": (
        at_t(
            Array(name="kept", type=I32, shape=(N, Number(3)), space=Space.GROUP),
            group("i", N, Store("kept", (HERE, ONE), read("x", HERE))),
            group("i", N, Store("B", (T, HERE), read("kept", Operation("-", (plus(N, -1), HERE)), ONE))),
        ),
    ),
    "what one thread declares and all use": (
        at_t(
            Array(name="kept", type=I32, shape=(), space=Space.REGISTER),
            Array(name="own", type=I32, shape=(), space=Space.REGISTER),
            LetInteger("one", plus(T, 1)),
            LetInteger("two", plus(Name("one"), 1)),
            LetInteger("unused", plus(Name("two"), 1)),
            Store("own", (), read("x", Name("unused"))),
            Store("y", (Name("two"),), read("own")),
            Let("first", read("y", Name("two"))),
            Store("kept", (), Compute(Read(0, I32) + 1, (Load("first"),))),
            Let("second", read("kept")),
            Store("y", (Name("one"),), read("second")),
            group("i", ALL, Store("B", (Name("two"), HERE), read("second"))),
            Store("y", (T,), Compute(Read(0, I32) + Read(1, I32), (Load("kept"), Load("first")))),
            Store("B", (T, Name("one")), read("own")),
        ),
    ),
    "scratch of each thread": (
        group(
            "i",
            N,
            Array(name="large", type=I32, shape=(N, Number(4096)), space=Space.PRIVATE),
            counted("j", N, (Store("large", (J, J), read("A", HERE, J)),)),
            Barrier(),
            counted("j", N, (Store("B", (HERE, J), read("large", J, J)),)),
        ),
    ),
    "items without barriers": (
        group(
            "i",
            Number(3),
            counted("j", Number(8), (Store("B", (HERE, J), read("A", J, HERE)),), kind=Kind.ITEM),
        ),
    ),
    "downwards": (
        For(
            iterator="t",
            start=Number(9),
            condition=Operation(">=", (T, Number(2))),
            step=Number(-3),
            body=(Store("y", (T,), read("y", plus(T, 1))),),
        ),
    ),
    "nothing": (),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_a_team(name: str) -> None:
    for n in (0, 1, 7):
        function = kernel(*PROGRAMS[name], integers=("n",))
        assert_same(function, data(), {"n": n})


@pytest.mark.parametrize("width", [2, 4, 8, 16])
@pytest.mark.parametrize("kind", [F32, ElementType.FLOAT64])
@pytest.mark.parametrize("op", [CompareOp.GT, CompareOp.LT])
@pytest.mark.parametrize("swapped", [False, True])
def test_choices_between_what_is_compared(
    op: CompareOp, swapped: bool, kind: ElementType, width: int
) -> None:
    """``a > b ? a : b`` is an instruction: of zeros, and where one is no number, it takes the second."""
    first, second = (Load("y", (Number(k), L)) for k in (0, 1))
    a, b = Read(0, kind), Read(1, kind)
    chosen = Select(Compare(op, a, b), b, a) if swapped else Select(Compare(op, a, b), a, b)
    store = Store("B", (Number(0), L), Compute(chosen, (first, second)))
    shape = (Number(2), Number(16))
    function = Function(
        name="chosen",
        parameters=(
            Parameter(name="y", type=kind, shape=shape, constant=True),
            Parameter(name="B", type=kind, shape=shape, constant=False),
        ),
        integers=(),
        body=(counted("l", Number(width), (store,), kind=Kind.VECTOR),),
    )
    assert ("larger" in c_source(function)) != ("smaller" in c_source(function))
    special = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 2.0]
    for turn in range(len(special)):
        y = np.array([special * 2, (special[turn:] + special[:turn]) * 2], kind.dtype)
        arrays = {"y": y, "B": np.zeros((2, 16), kind.dtype)}
        (left, right), found = y[:, :width], computed(function, arrays, {}, 1)["B"][0, :width]
        holds = left > right if op is CompareOp.GT else left < right
        wanted = np.where(holds, right, left) if swapped else np.where(holds, left, right)
        assert np.array_equal(found, wanted, equal_nan=True)
        assert np.array_equal(np.signbit(found), np.signbit(wanted))


def test_halves_are_stored_as_halves() -> None:
    body = lanes(Store("y", (L,), Compute(Read(0, F16) * Constant(0.1, F16), (Load("x", (L,)),))))
    assert_same(kernel(body, kind=F16), data(F16))


def test_items_that_meet_are_refused() -> None:
    items = counted("j", Number(4), (Barrier(),), kind=Kind.ITEM)
    with pytest.raises(ValueError, match="barriers"):
        c_source(kernel(counted("i", Number(4), (items,), kind=Kind.GROUP)))


def test_names_that_mean_something_in_c() -> None:
    body = counted("for", Number(24), (Store("double", (Name("for"),), read("team", Name("for"))),))
    parameters = tuple(
        Parameter(name=n, type=I32, shape=(Number(24),), constant=n == "team") for n in ("team", "double")
    )
    function = Function(name="int", parameters=parameters, integers=(), body=(body,))
    assert_same(function, {"team": np.arange(24, dtype=np.int32), "double": np.zeros(24, np.int32)})


def test_a_long_function_is_several_files() -> None:
    loops = [group("i", ALL, Store("B", (row, HERE), read("A", row, HERE))) for row in map(Number, range(24))]
    text = c_text(kernel(*loops))
    length = sum(len(part.text) for part in text.parts)
    assert len(text.files(length // 4 + 1)) == 5
    assert text.files(length + 1) == (text.whole,)
    seen: list[str] = []
    assert c_text(kernel(*loops), reader=Reader(length // 4 + 1, seen.append)) == text
    assert seen == [*text.files(length // 4 + 1)[:3]]


def test_many_loops_of_one_thread_are_functions_of_their_own() -> None:
    def parts(count: int) -> int:
        loops = [
            counted("i", ALL, (Store("B", (HERE, HERE), read("A", Number(k), HERE)),)) for k in range(count)
        ]
        return len(c_text(kernel(*loops)).parts)

    assert (parts(8), parts(9)) == (1, 9)


def test_registers_of_one_type_and_one_constant_share_lines() -> None:
    """Wide ones with wide ones; what is filled with another constant stands by itself."""
    lanes = {"a": 8, "b": 8, "c": 4, "d": 4, "e": 8}
    constants = {"a": 3, "b": 3, "c": 3, "d": 3, "e": 5}
    body: list[Any] = [
        Array(name=n, type=I32, shape=(Number(width),), space=Space.REGISTER, lanes=True)
        for n, width in lanes.items()
    ]
    for name, width in lanes.items():
        fill = Store(name, (L,), Compute(Constant(constants[name], I32)))
        body.append(counted("l", Number(width), (fill,), kind=Kind.VECTOR))
    places = {"a": 0, "b": 8, "c": 16, "d": 20, "e": 8}
    for name, width in lanes.items():
        place = sum_of([(1, L), (1, Number(places[name]))])
        store = Store("y", (place,), Compute(Read(0, I32), (Load(name, (L,)),)))
        body.append(counted("l", Number(width), (store,), kind=Kind.VECTOR))
    function = kernel(*body)
    text = c_source(function)
    for line in ("int32x8 a, b;", "int32x4 c, d;", "int32x8 e;", "a = b = splat_int32x8(3);"):
        assert f"    {line}\n" in text
    for line in ("c = d = splat_int32x4(3);", "e = splat_int32x8(5);"):
        assert f"    {line}\n" in text
    assert_same(function, data())


def test_iterators_that_differ_by_constants_share_what_varies() -> None:
    """Only constants are added to the one vector, which the compiler makes once for all."""
    places = [sum_of([(1, HERE), (1, L), (1, Number(8 * k))]) for k in range(3)]
    stores = [lanes(Store("y", (at,), Compute(Iterator(0, I32), (), (at,)))) for at in places]
    function = kernel(counted("i", Number(24), stores, step=24))
    text = c_source(function)
    assert text.count("splat_int32x8((int32_t)(i))") == 3
    assert "(lanes_int32x8() + splat_int32x8((int32_t)(16)))" in text
    assert_same(function, data())
