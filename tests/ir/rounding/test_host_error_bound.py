"""Bounds of host programs: no correct evaluation is beyond them, whatever its order or precision."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c_host_programs import host_programs_of
from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir import Program
from polyloom.ir.conversion.to_host_program import host_program as of_tensors
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.evaluation.random_inputs import Scale, random_reals
from polyloom.ir.expressions import Binary, BinaryOp, Compare, CompareOp, Read, Select
from polyloom.ir.host import (
    ZERO,
    Buffer,
    CombineOperator,
    Combiner,
    HostProgram,
    Index,
    MdHom,
    Order,
    Role,
    View,
)
from polyloom.ir.rounding.programs import host_error_bound
from polyloom.ir.scalar_functions.function import BinaryFunction, ScalarFunction
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import Number
from polyloom.scop.transform import host_program
from random_tests import tried
from samples import one_in
from strategies import data, programs

F32, F64, I32 = ElementType.FLOAT32, ElementType.FLOAT64, ElementType.INT32
KERNELS = sorted((Path(__file__).parents[2] / "scop" / "kernels").glob("*.c"))
LOOPS = sorted((Path(__file__).parents[3] / "benchmarks" / "loops").glob("*.c"))
UNDERFLOW = 1e-4


def of_type(part: Any, kind: ElementType) -> Any:
    """Return a program whose floats all have one type."""
    if isinstance(part, ElementType):
        return kind if part.is_float else part
    if isinstance(part, tuple):
        return tuple(of_type(p, kind) for p in part)
    if isinstance(part, ScalarFunction):
        return part
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        fields = [f.name for f in dataclasses.fields(part) if f.init and f.name != "span"]
        return dataclasses.replace(part, **{n: of_type(getattr(part, n), kind) for n in fields})
    return part


def assert_covered(program: HostProgram, parameters: dict[str, int], inputs: dict[str, Any]) -> float:
    """Assert that the program in float64 lies within the bounds; return the share that they are tight for."""
    found = host_error_bound(program, parameters, inputs)
    assert found is not None
    wider = {n: a.astype(float) if a.dtype.kind == "f" else a for n, a in inputs.items()}
    with np.errstate(all="ignore"):
        exact = evaluate_host(of_type(program, F64), parameters, wider)
        narrow = evaluate_host(program, parameters, inputs)
        tight = []
        for name, array in found.arrays.items():
            assert np.array_equal(array, narrow[name], equal_nan=array.dtype.kind == "f"), name
            bound, wanted = found.bounds[name], exact[name]
            apart = np.abs(array.astype(float) - wanted.astype(float))
            known = np.isfinite(bound) & ~((array == wanted) | ((array != array) & (wanted != wanted)))
            limit = np.finfo(array.dtype).max / 2 if array.dtype.kind == "f" else np.inf
            known &= ~(np.abs(wanted.astype(float)) > limit)
            slack = UNDERFLOW if array.dtype == np.float16 else 0.0
            assert np.all(~known | (apart <= bound + slack)), name
            tight.append(np.mean(bound <= 0.01 * np.abs(array.astype(float))))
    return float(np.mean(tight)) if tight else 1.0


@tried(30)
@given(programs(), st.integers(0, 2**32))
def test_tensor_programs(made: Program, seed: int) -> None:
    if all(t.type.is_float for t in made.tensors):
        assert_covered(of_tensors(made), {}, data(made, seed))


def check_file(path: Path, size: int) -> float:
    shares = []
    for host in host_programs_of(path.read_text()):
        program = of_type(host, F32)
        parameters = {p.name: size for p in program.parameters}
        inputs = random_reals(program, Scale(1, dominant=True), 1, parameters=parameters)
        if inputs is not None:
            shares.append(assert_covered(program, parameters, inputs))
    return min(shares, default=1.0)


@pytest.mark.parametrize("path", one_in(3, KERNELS, name=lambda p: p.stem))
def test_loop_programs_in_lower_precision(path: Path) -> None:
    check_file(path, 7)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("path", LOOPS, ids=lambda p: p.stem)
def test_algorithms_in_lower_precision(path: Path) -> None:
    check_file(path, 20)


def reads(count: int, kind: ElementType = F32) -> list[Read]:
    return [Read(k, kind) for k in range(count)]


def affine_maps() -> Combiner:
    """(a, b) stands for x -> a x + b."""
    a, b, c, d = reads(4)
    product = Binary(BinaryOp.MULTIPLY, c, b)
    return Combiner(
        name="then",
        results=(Binary(BinaryOp.MULTIPLY, a, c), Binary(BinaryOp.ADD, product, d)),
        neutral=(1, 0),
        commutative=False,
    )


def largest_with_place() -> Combiner:
    a, i, b, j = Read(0, F32), Read(1, I32), Read(2, F32), Read(3, I32)
    wins = Compare(CompareOp.GE, a, b)
    return Combiner(
        name="argmax",
        results=(Select(wins, a, b), Select(wins, i, j)),
        neutral=(None, None),
        commutative=False,
    )


def one(op: BinaryFunction, neutral: float) -> Combiner:
    a, b = reads(2)
    return Combiner(name=op.name, results=(Binary(op, a, b),), neutral=(neutral,))


def combined(combiner: Combiner, order: Order, n: int) -> HostProgram:
    """Return the program that combines the rows of ``x`` (n by outputs), which is scaled by ``s`` first."""
    kinds = [r.type for r in combiner.results]
    names = [f"y{o}" for o in range(len(kinds))]
    kept = order is Order.PREFIX
    shape = (Number(n),) if kept else ()
    buffers = [Buffer(name=f"x{o}", type=k, shape=(Number(n),), role=Role.INPUT) for o, k in enumerate(kinds)]
    buffers += [
        Buffer(name=name, type=k, shape=shape, role=Role.OUTPUT) for name, k in zip(names, kinds, strict=True)
    ]
    buffers.append(Buffer(name="s", type=F32, shape=(), role=Role.INPUT))
    count = len(kinds)
    unit = (Index((1,), ZERO),)
    views = (*(View(f"x{o}", unit) for o in range(count)), View("s", ()))
    terms = tuple(
        Binary(BinaryOp.MULTIPLY, Read(o, k), Read(count, k)) if k is F32 else Read(o, k)
        for o, k in enumerate(kinds)
    )
    node = MdHom(
        name="combined",
        iterators=("i",),
        extents=(Number(n),),
        inputs=views,
        outputs=tuple(View(name, unit if kept else ()) for name in names),
        terms=terms,
        combine=(CombineOperator(order, combiner),),
        initial=(None,) * count,
        finish=(None,) * count,
    )
    return HostProgram(name="combined", parameters=(), buffers=tuple(buffers), body=(node,))


def in_random_order(combiner: Combiner, rows: list[tuple[Any, ...]], rng: np.random.Generator) -> Any:
    """Combine rows in a random tree, in float32; operands change places where they may."""
    from polyloom.ir.evaluation.arithmetic import value

    rows = list(rows)
    if combiner.commutative:
        rng.shuffle(rows)
    while len(rows) > 1:
        k = int(rng.integers(len(rows) - 1))
        both = [np.asarray(v) for v in (*rows[k], *rows[k + 1])]
        rows[k : k + 2] = [tuple(value(r, both, lambda _: np.zeros(()), {}) for r in combiner.results)]
    return rows[0]


OPERATORS = [
    one(BinaryOp.ADD, 0.0),
    one(BinaryOp.MULTIPLY, 1.0),
    one(BinaryOp.MAXIMUM, -np.inf),
    affine_maps(),
    largest_with_place(),
]


@pytest.mark.parametrize("order", [Order.POINTWISE, Order.PREFIX], ids=["reduction", "scan"])
@pytest.mark.parametrize("combiner", OPERATORS, ids=lambda c: c.name)
@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_combination(combiner: Combiner, order: Order, seed: int) -> None:
    n, rng = 60, np.random.default_rng(seed)
    program = combined(combiner, order, n)
    spread = 0.3 if combiner.name in ("*", "then") else 4
    inputs: dict[str, Any] = {
        b.name: (np.exp(rng.uniform(-spread, spread, n)) * rng.choice([-1, 1], n)).astype(np.float32)
        if b.type is F32
        else np.arange(n, dtype=np.int32)
        for b in program.given
        if b.shape
    }
    inputs["s"] = np.asarray(1.1, np.float32)
    with np.errstate(all="ignore"):
        found = host_error_bound(program, {}, inputs)
        assert found is not None and all(np.isfinite(b).all() for b in found.bounds.values())
        kinds = [r.type for r in combiner.results]
        scaled = [inputs[f"x{o}"] * inputs["s"] if k is F32 else inputs[f"x{o}"] for o, k in enumerate(kinds)]
        for end in range(1, n + 1) if order is Order.PREFIX else [n]:
            rows = [tuple(column[k] for column in scaled) for k in range(end)]
            results = in_random_order(combiner, rows, rng)
            for o, result in enumerate(results):
                at = (end - 1,) if order is Order.PREFIX else ()
                apart = abs(float(result) - float(found.arrays[f"y{o}"][at]))
                assert apart <= found.bounds[f"y{o}"][at], (combiner.name, end, seed)


def test_exact_operators_keep_equal_bits() -> None:
    program = combined(one(BinaryOp.MAXIMUM, -np.inf), Order.POINTWISE, 9)
    inputs = {"x0": np.arange(9, dtype=np.float32), "s": np.asarray(1, np.float32)}
    found = host_error_bound(program, {}, inputs)
    assert found is not None and found.bounds["y0"] <= 8 * np.finfo(np.float32).eps


def c_program(body: str) -> HostProgram:
    head = "void f(int n, double a[n], double b[n], int k[n], double y[n])"
    text = f"{head}\n{{\n#pragma scop\n{body}\n#pragma endscop\n}}\n"
    (scop,) = read_c(Source("f.c", text), None, {}, (), None)
    return host_program(scop).program


def bounds_of(body: str, **given: Any) -> np.ndarray:
    program = c_program(body)
    n = 8
    made = {"a": np.linspace(0.1, 2, n), "b": np.linspace(1, 3, n), "k": np.arange(n, dtype=np.int32)}
    arrays = {**made, "y": np.zeros(n), **given}
    found = host_error_bound(program, {"n": n}, {b.name: arrays[b.name] for b in program.given})
    assert found is not None
    return found.bounds["y"]


def test_a_histogram_of_reals() -> None:
    bound = bounds_of(
        "for (int i = 0; i < n; i++) y[i] = 0; for (int i = 0; i < n; i++) y[k[i] / 4] += a[i] * b[i];"
    )
    assert (bound[:2] > 0).all() and (bound[:2] < 1e-13).all() and not bound[2:].any()


def test_an_index_in_doubt_makes_its_target_unknown() -> None:
    bound = bounds_of("for (int i = 0; i < n; i++) y[(int)(a[i] * b[i] - a[i] * b[i] + 1.0)] += 1;")
    assert np.isinf(bound).all()


def test_a_write_in_doubt_counts_both_values() -> None:
    body = "for (int i = 0; i < n; i++) { y[i] = 5; if (a[i] * b[i] > 0.3) y[i] = a[i]; }"
    bound = bounds_of(body, a=np.full(8, 0.3), b=np.ones(8))
    assert (bound >= 4.6).all()
    assert (bounds_of(body, a=np.full(8, 0.4), b=np.ones(8)) < 1e-12).all()


def test_a_recurrence_grows_with_its_steps() -> None:
    bound = bounds_of("for (int i = 1; i < n; i++) y[i] = y[i - 1] * a[i] / b[i] + b[i];")
    eps = np.finfo(float).eps
    assert bound[0] == 0 and (bound[1:] >= eps).all() and (bound < 100 * eps).all()


def test_sizes_that_are_too_large_have_no_bounds() -> None:
    program = c_program("for (int i = 0; i < n; i++) y[i] = a[i] / b[i];")
    inputs = {"a": np.ones(9), "b": np.ones(9)}
    assert host_error_bound(program, {"n": 9}, inputs, most=8) is None
