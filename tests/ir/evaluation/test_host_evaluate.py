"""Host programs in NumPy against hand-written NumPy and plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from polyloom.diagnostics import PolyloomError
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Iterator,
    ParameterValue,
    Read,
    Select,
)
from polyloom.ir.host import (
    Assignment,
    Buffer,
    CombineOperator,
    Combiner,
    Copy,
    HostProgram,
    Index,
    MdHom,
    Nest,
    Order,
    Parameter,
    Role,
    View,
)
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import Branch, Instance, Loop, Name, Number, Operation

F32, F64, I32, I64 = ElementType.FLOAT32, ElementType.FLOAT64, ElementType.INT32, ElementType.INT64
N, M = Name("n"), Name("m")


def operator(op: BinaryFunction, kind: ElementType, neutral: float | None) -> Combiner:
    return Combiner(name=op.name, results=(Binary(op, Read(0, kind), Read(1, kind)),), neutral=(neutral,))


CAT = CombineOperator(Order.CONCATENATE)
SERIAL = CombineOperator(Order.SERIAL)


def pw(op: BinaryFunction, kind: ElementType, neutral: float | None) -> CombineOperator:
    return CombineOperator(Order.POINTWISE, operator(op, kind, neutral))


def ps(op: BinaryFunction, kind: ElementType, neutral: float | None) -> CombineOperator:
    return CombineOperator(Order.PREFIX, operator(op, kind, neutral))


def unit(d: int, k: int, offset: int = 0) -> Index:
    return Index(tuple(int(j == k) for j in range(d)), Number(offset))


def buffer(name: str, kind: ElementType, shape: tuple, role: Role) -> Buffer:
    return Buffer(name=name, type=kind, shape=shape, role=role)


def mul(a: Expression, b: Expression) -> Expression:
    return Binary(BinaryOp.MULTIPLY, a, b)


def add(a: Expression, b: Expression) -> Expression:
    return Binary(BinaryOp.ADD, a, b)


def integers(*shape: int, kind: str = "int32", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-5, 6, shape).astype(kind)


def program(body: tuple, buffers: tuple, parameters: tuple[str, ...] = ("n",)) -> HostProgram:
    return HostProgram(
        name="p", parameters=tuple(Parameter(p, I32) for p in parameters), buffers=buffers, body=body
    )


def gemm(kind: ElementType = I32, **changes: object) -> HostProgram:
    node = MdHom(
        name="S",
        iterators=("i", "j", "k"),
        extents=(M, N, Name("p")),
        inputs=(
            View("A", (unit(3, 0), unit(3, 2))),
            View("B", (unit(3, 2), unit(3, 1))),
            View("C", (unit(3, 0), unit(3, 1))),
            View("beta", ()),
        ),
        outputs=(View("C", (unit(3, 0), unit(3, 1))),),
        terms=(mul(Read(0, kind), Read(1, kind)),),
        combine=(CAT, CAT, pw(BinaryOp.ADD, kind, 0)),
        initial=(mul(Read(2, kind), Read(3, kind)),),
        finish=(mul(Read(4, kind), Constant(2, kind)),),
    )
    shape = {"A": (M, Name("p")), "B": (Name("p"), N), "C": (M, N), "beta": ()}
    buffers = tuple(buffer(b, kind, s, Role.UPDATED if b == "C" else Role.INPUT) for b, s in shape.items())
    return program((node,), buffers, ("m", "n", "p"))


@pytest.mark.parametrize("sizes", [(5, 7, 3), (1, 1, 1), (4, 3, 0), (0, 3, 2), (40, 700, 30)])
def test_matrix_product_with_initial_and_finish(sizes: tuple[int, int, int]) -> None:
    m, n, p = sizes
    a, b, c = integers(m, p), integers(p, n, seed=1), integers(m, n, seed=2)
    inputs = {"A": a, "B": b, "C": c, "beta": np.int32(3)}
    found = evaluate_host(gemm(), {"m": m, "n": n, "p": p}, inputs)
    assert np.array_equal(found["C"], 2 * (3 * c + a @ b))
    assert list(found) == ["C"]
    special = specialise(gemm(), {"m": m, "n": n, "p": p})
    assert special.parameters == ()
    assert np.array_equal(evaluate_host(special, {}, inputs)["C"], found["C"])


def test_floats_add_in_the_order_of_the_program() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(9, 600)).astype("float32"), rng.normal(size=(600, 11)).astype("float32")
    c, beta = rng.normal(size=(9, 11)).astype("float32"), np.float32(0.5)
    inputs = {"A": a, "B": b, "C": c, "beta": beta}
    found = evaluate_host(gemm(F32), {"m": 9, "n": 11, "p": 600}, inputs)
    total = c * beta
    for k in range(600):
        total = total + a[:, k : k + 1] * b[k]
    assert np.array_equal(found["C"], 2 * total)


def test_a_large_product_is_cut_into_boxes() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.integers(-3, 4, (70, 90)), rng.integers(-3, 4, (90, 6000))
    c = np.zeros((70, 6000))
    inputs = {"A": a.astype(float), "B": b.astype(float), "C": c, "beta": np.float64(0)}
    found = evaluate_host(gemm(F64), {"m": 70, "n": 6000, "p": 90}, inputs)
    assert np.array_equal(found["C"], 2 * (a @ b))


def scan_program(combine: tuple[CombineOperator, ...], initial: Expression | None) -> HostProgram:
    node = MdHom(
        name="S",
        iterators=("i", "j"),
        extents=(N, M),
        inputs=(View("x", (unit(2, 0), unit(2, 1))), View("s", (unit(2, 0),))),
        outputs=(View("y", (unit(2, 0), unit(2, 1))),),
        terms=(Read(0, I32),),
        combine=combine,
        initial=(initial,),
        finish=(None,),
    )
    buffers = (
        buffer("x", I32, (N, M), Role.INPUT),
        buffer("s", I32, (N,), Role.INPUT),
        buffer("y", I32, (N, M), Role.OUTPUT),
    )
    return program((node,), buffers, ("n", "m"))


def test_prefix_dimensions() -> None:
    x, s = integers(5, 8), integers(5, seed=9)
    sizes = {"n": 5, "m": 8}
    rows = scan_program((CAT, ps(BinaryOp.ADD, I32, 0)), Read(1, I32))
    found = evaluate_host(rows, sizes, {"x": x, "s": s})["y"]
    assert np.array_equal(found, s[:, None] + np.cumsum(x, axis=1))
    both = scan_program((ps(BinaryOp.MAXIMUM, I32, None),) * 2, None)
    found = evaluate_host(both, sizes, {"x": x, "s": s})["y"]
    assert np.array_equal(found, np.maximum.accumulate(np.maximum.accumulate(x, 0), 1))


def test_serial_dimension_is_listing_2() -> None:
    first = Compare(CompareOp.EQ, Iterator(2, I32), Constant(0, I32))
    begun = Select(first, Constant(0, I32), Read(2, I32))
    c = View("C", (unit(3, 0), unit(3, 1)))
    node = MdHom(
        name="S",
        iterators=("i", "j", "k"),
        extents=(N, N, N),
        inputs=(View("A", (unit(3, 0), unit(3, 2))), View("B", (unit(3, 2), unit(3, 1))), c),
        outputs=(c,),
        terms=(add(begun, mul(Read(0, I32), Read(1, I32))),),
        combine=(CAT, CAT, SERIAL),
        initial=(None,),
        finish=(None,),
    )
    buffers = tuple(buffer(b, I32, (N, N), Role.UPDATED if b == "C" else Role.INPUT) for b in "ABC")
    a, b = integers(6, 6), integers(6, 6, seed=1)
    found = evaluate_host(program((node,), buffers), {"n": 6}, {"A": a, "B": b, "C": integers(6, 6, seed=2)})
    assert np.array_equal(found["C"], a @ b)


def argmin_combiner() -> Combiner:
    """(value, index): the smaller value, of equal ones the first."""
    wins = Compare(CompareOp.LE, Read(0, I32), Read(2, I32))
    results = (Select(wins, Read(0, I32), Read(2, I32)), Select(wins, Read(1, I64), Read(3, I64)))
    return Combiner(name="argmin", results=results, neutral=(None, None), commutative=False)


@pytest.mark.parametrize("order", [Order.POINTWISE, Order.PREFIX])
def test_two_outputs_combined_together(order: Order) -> None:
    kept = (unit(2, 0),) if order is Order.POINTWISE else (unit(2, 0), unit(2, 1))
    shape = (N,) if order is Order.POINTWISE else (N, M)
    node = MdHom(
        name="S",
        iterators=("i", "j"),
        extents=(N, M),
        inputs=(View("x", (unit(2, 0), unit(2, 1))),),
        outputs=(View("least", kept), View("at", kept)),
        terms=(Read(0, I32), Iterator(1, I64)),
        combine=(CAT, CombineOperator(order, argmin_combiner())),
        initial=(None, None),
        finish=(None, None),
    )
    buffers = (
        buffer("x", I32, (N, M), Role.INPUT),
        buffer("least", I32, shape, Role.OUTPUT),
        buffer("at", I64, shape, Role.OUTPUT),
    )
    x = integers(7, 13)
    found = evaluate_host(program((node,), buffers, ("n", "m")), {"n": 7, "m": 13}, {"x": x})
    if order is Order.POINTWISE:
        assert np.array_equal(found["least"], x.min(1))
        assert np.array_equal(found["at"], x.argmin(1))
    else:
        assert np.array_equal(found["least"], np.minimum.accumulate(x, 1))
        assert np.array_equal(found["at"], [[x[i, : j + 1].argmin() for j in range(13)] for i in range(7)])


@pytest.mark.parametrize(("neutral", "start"), [(0, 0), (None, 0), (0, 1), (None, 1)])
def test_guard_initial_and_written(neutral: int | None, start: int) -> None:
    """Triangular: ``for i: for j < i: y[i] += x[i][j]``, only for i < 5."""
    node = MdHom(
        name="S",
        iterators=("i", "j"),
        extents=(N, N),
        inputs=(View("x", (unit(2, 0), unit(2, 1))), View("y", (unit(2, 0),))),
        outputs=(View("y", (unit(2, 0),)),),
        terms=(Read(0, I32),),
        combine=(CAT, pw(BinaryOp.ADD, I32, neutral)),
        initial=(Read(1, I32) if start else None,),
        finish=(None,),
        guard=Operation("<", (Name("j"), Name("i"))),
        written=Operation("<", (Name("i"), Number(5))),
    )
    buffers = (buffer("x", I32, (N, N), Role.INPUT), buffer("y", I32, (N,), Role.UPDATED))
    x, y = integers(8, 8), integers(8, seed=7)
    found = evaluate_host(program((node,), buffers), {"n": 8}, {"x": x, "y": y})["y"]
    sums = np.array([x[i, :i].sum() for i in range(8)])
    expected = start * y + sums
    if not start and neutral is None:
        expected[0] = y[0]
    expected[5:] = y[5:]
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("op", [BinaryOp.ADD, BinaryOp.MAXIMUM])
def test_histogram(op: BinaryFunction) -> None:
    element = View("h", (Read(0, I32),))
    node = MdHom(
        name="S",
        iterators=("i",),
        extents=(N,),
        inputs=(View("bin", (unit(1, 0),)), View("w", (unit(1, 0),)), element),
        outputs=(element,),
        terms=(Read(1, I32),),
        combine=(pw(op, I32, 0 if op is BinaryOp.ADD else None),),
        initial=(Read(2, I32),),
        finish=(None,),
    )
    buffers = (
        buffer("bin", I32, (N,), Role.INPUT),
        buffer("w", I32, (N,), Role.INPUT),
        buffer("h", I32, (M,), Role.UPDATED),
    )
    bins, w, h = (
        np.random.default_rng(1).integers(0, 6, 50).astype("int32"),
        integers(50),
        integers(7, seed=3),
    )
    found = evaluate_host(
        program((node,), buffers, ("n", "m")), {"n": 50, "m": 7}, {"bin": bins, "w": w, "h": h}
    )
    expected = h.copy()
    (np.add if op is BinaryOp.ADD else np.maximum).at(expected, bins, w)
    assert np.array_equal(found["h"], expected)


def test_permutation_and_custom_operator_into_data_dependent_places() -> None:
    """The first value that arrives in a bin stays: an operator without neutral element, not commutative."""
    first = Combiner(name="first", results=(Read(0, I32),), neutral=(None,), commutative=False)
    for combine, expected in ((CombineOperator(Order.POINTWISE, first), [10, 11, -1]), (CAT, [12, 13, -1])):
        node = MdHom(
            name="S",
            iterators=("i",),
            extents=(N,),
            inputs=(View("bin", (unit(1, 0),)), View("w", (unit(1, 0),))),
            outputs=(View("h", (Read(0, I32),)),),
            terms=(Read(1, I32),),
            combine=(combine,),
            initial=(None,),
            finish=(None,),
        )
        buffers = (
            buffer("bin", I32, (N,), Role.INPUT),
            buffer("w", I32, (N,), Role.INPUT),
            buffer("h", I32, (Number(3),), Role.UPDATED),
        )
        inputs = {
            "bin": np.array([0, 1, 0, 1], "int32"),
            "w": np.array([10, 11, 12, 13], "int32"),
            "h": np.full(3, -1, "int32"),
        }
        found = evaluate_host(program((node,), buffers), {"n": 4}, inputs)
        assert found["h"].tolist() == expected


def test_different_operators_in_different_dimensions() -> None:
    """The largest row sum."""
    node = MdHom(
        name="S",
        iterators=("i", "j"),
        extents=(N, M),
        inputs=(View("x", (unit(2, 0), unit(2, 1))),),
        outputs=(View("y", ()),),
        terms=(Read(0, I32),),
        combine=(pw(BinaryOp.MAXIMUM, I32, None), pw(BinaryOp.ADD, I32, 0)),
        initial=(None,),
        finish=(None,),
    )
    buffers = (buffer("x", I32, (N, M), Role.INPUT), buffer("y", I32, (), Role.OUTPUT))
    x = integers(6, 9)
    found = evaluate_host(program((node,), buffers, ("n", "m")), {"n": 6, "m": 9}, {"x": x})
    assert found["y"] == x.sum(1).max()


def test_host_loops_branches_copies_and_parameter_values() -> None:
    """Three Jacobi steps with a ping-pong copy; every odd one doubles."""
    copied = View("old", (unit(1, 0),)), View("old", (unit(1, 0, 2),))
    even = MdHom(
        name="S",
        iterators=("i",),
        extents=(Operation("-", (N, Number(2))),),
        inputs=copied,
        outputs=(View("x", (unit(1, 0, 1),)),),
        terms=(add(add(Read(0, I32), Read(1, I32)), ParameterValue("t", I32)),),
        combine=(CAT,),
        initial=(None,),
        finish=(None,),
    )
    twice = MdHom(
        name="D",
        iterators=("i",),
        extents=(N,),
        inputs=(View("x", (unit(1, 0),)),),
        outputs=(View("x", (unit(1, 0),)),),
        terms=(mul(Read(0, I32), Constant(2, I32)),),
        combine=(CAT,),
        initial=(None,),
        finish=(None,),
    )
    odd = Operation("==", (Operation("%", (Name("t"), Number(2))), Number(1)))
    loop = Loop(
        iterator="t",
        start=Number(0),
        condition=Operation("<", (Name("t"), Number(3))),
        step=Number(1),
        body=(Copy("x", "old"), even, Branch(odd, (twice,))),
    )
    buffers = (buffer("x", I32, (N,), Role.UPDATED), buffer("old", I32, (N,), Role.LOCAL))
    x = integers(9)
    whole = program((loop,), buffers)
    found = evaluate_host(whole, {"n": 9}, {"x": x})
    expected = x.copy()
    for t in range(3):
        old = expected.copy()
        expected[1:-1] = old[:-2] + old[2:] + t
        expected *= 2 if t % 2 else 1
    assert np.array_equal(found["x"], expected)
    assert np.array_equal(evaluate_host(specialise(whole, {"n": 9}), {}, {"x": x})["x"], expected)


def nest() -> Nest:
    """Per row i: t = 0; for j <= i: if (x > 0) t += x[i][j] (t private), y[i] = t; the last row n - 1 - i."""
    lanes = ("r",)
    i = Operation("-", (Operation("-", (N, Number(1))), Name("r")))
    zero = Assignment(name="Z", iterators=("i",), target=View("t", ()), reads=(), value=Constant(0, I32))
    x = View("x", (unit(2, 0), unit(2, 1)))
    more = Assignment(
        name="A",
        iterators=("i", "j"),
        target=View("t", ()),
        reads=(View("t", ()), x),
        value=add(Read(0, I32), Read(1, I32)),
        condition=Compare(CompareOp.GT, Read(1, I32), Constant(0, I32)),
    )
    out = Assignment(
        name="O",
        iterators=("i",),
        target=View("y", (unit(1, 0),)),
        reads=(View("t", ()),),
        value=Read(0, I32),
    )
    inner = Loop(
        iterator="c1",
        start=Number(0),
        condition=Operation("<=", (Name("c1"), i)),
        step=Number(2),
        body=(Instance("A", (i, Name("c1"))),),
    )
    skipped = Branch(Operation("==", (i, Number(2))), (), (Instance("O", (i,)),))
    body = (Instance("Z", (i,)), inner, skipped)
    return Nest(
        name="W",
        iterators=lanes,
        extents=(N,),
        body=body,
        assignments=(zero, more, out),
        private=(Buffer(name="t", type=I32, shape=(), role=Role.LOCAL),),
    )


@pytest.mark.parametrize("n", [7, 40])
def test_nest_with_private_scalar(n: int) -> None:
    """A few points one after another, many together."""
    buffers = (buffer("x", I32, (N, N), Role.INPUT), buffer("y", I32, (N,), Role.UPDATED))
    x, y = integers(n, n), integers(n, seed=5)
    for values in ({}, {"n": n}):
        whole = specialise(program((nest(),), buffers), values)
        found = evaluate_host(whole, {} if values else {"n": n}, {"x": x, "y": y})["y"]
        expected = np.array([sum(v for v in x[i, : i + 1 : 2] if v > 0) for i in range(n)])
        expected[2] = y[2]
        assert np.array_equal(found, expected)


def test_conversions_in_views() -> None:
    """``y[i] = x[i / 2]`` as a computed index."""
    half = Binary(BinaryOp.DIVIDE, Iterator(0, I64), Constant(2, I64))
    node = MdHom(
        name="S",
        iterators=("i",),
        extents=(N,),
        inputs=(View("x", (half,)),),
        outputs=(View("y", (unit(1, 0),)),),
        terms=(Convert(F64, Read(0, I32)),),
        combine=(CAT,),
        initial=(None,),
        finish=(None,),
    )
    buffers = (buffer("x", I32, (N,), Role.INPUT), buffer("y", F64, (N,), Role.OUTPUT))
    x = integers(9)
    assert np.array_equal(
        evaluate_host(program((node,), buffers), {"n": 9}, {"x": x})["y"], x[np.arange(9) // 2]
    )


def test_writing_outside_is_an_error() -> None:
    node = MdHom(
        name="S",
        iterators=("i",),
        extents=(N,),
        inputs=(),
        outputs=(View("y", (unit(1, 0, 1),)),),
        terms=(Constant(1, I32),),
        combine=(CAT,),
        initial=(None,),
        finish=(None,),
    )
    with pytest.raises(IndexError, match="S writes y at 4, of 4"):
        evaluate_host(program((node,), (buffer("y", I32, (N,), Role.OUTPUT),)), {"n": 4}, {})


def test_wrong_inputs_are_named() -> None:
    x = np.zeros((3, 4), "int32")
    good = scan_program((CAT, CAT), None)
    sizes = {"n": 3, "m": 4}
    faults = {
        "parameter-missing": ({"n": 3}, {"x": x}),
        "parameter-unknown": ({**sizes, "k": 1}, {"x": x}),
        "input-missing": (sizes, {"x": x}),
        "input-unknown": (sizes, {"x": x, "s": x[:, 0], "z": x}),
        "input-shape": (sizes, {"x": x.T, "s": x[:, 0]}),
        "input-type": (sizes, {"x": x, "s": x[:, 0].astype("int64")}),
    }
    for code, (parameters, inputs) in faults.items():
        with pytest.raises(PolyloomError) as caught:
            evaluate_host(good, parameters, inputs)
        assert [d.code for d in caught.value.diagnostics] == [code]
