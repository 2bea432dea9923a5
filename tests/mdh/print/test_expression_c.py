"""Every operator and type, in OpenCL C on a device and in C, against NumPy; scalars and vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import numpy as np
import pytest

from polyloom.c_compilers import c_compilers
from polyloom.ir.evaluation.arithmetic import value
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Read,
    Select,
    Unary,
    UnaryOp,
)
from polyloom.ir.scalar_functions.function import UNARY, UnaryFunction
from polyloom.ir.types import ElementType
from polyloom.mdh.device.devices import OpenDevice, choose_device, open_device
from polyloom.mdh.lowering.host_expressions import int_function
from polyloom.mdh.lowering.launch import Kernel
from polyloom.mdh.native.entry import built
from polyloom.mdh.print.dialect import OPENCL, C
from polyloom.mdh.print.helpers import helper_functions
from polyloom.mdh.print.values import (
    Leaves,
    expression_c,
    integer_c,
    literal,
    memory_type,
    value_type,
)
from polyloom.mdh.runtime.build import build_kernels
from polyloom.mdh.tree.nodes import Code, Compute, Function, Kind, Load, Parameter, Store, counted
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, sum_of
from samples import LATER

T = ElementType
FLOATS = (T.FLOAT16, T.FLOAT32, T.FLOAT64)
INTEGERS = (T.INT8, T.INT16, T.INT32, T.INT64, T.UINT8, T.UINT16, T.UINT32, T.UINT64)
COUNT = 64
"""Elements of each operand; a multiple of all vector widths."""

EXACT_OF_FLOATS = (UnaryOp.NEGATE, UnaryOp.ABS, UnaryOp.FLOOR, UnaryOp.CEIL, UnaryOp.ROUND, UnaryOp.TRUNC)
OF_INTEGERS = (
    BinaryOp.ADD,
    BinaryOp.SUBTRACT,
    BinaryOp.MULTIPLY,
    BinaryOp.DIVIDE,
    BinaryOp.REMAINDER,
    BinaryOp.MAXIMUM,
    BinaryOp.MINIMUM,
    BinaryOp.BIT_AND,
    BinaryOp.BIT_OR,
    BinaryOp.BIT_XOR,
    BinaryOp.POWER,
)
OF_FLOATS = (
    BinaryOp.ADD,
    BinaryOp.SUBTRACT,
    BinaryOp.MULTIPLY,
    BinaryOp.DIVIDE,
    BinaryOp.MAXIMUM,
    BinaryOp.MINIMUM,
    BinaryOp.FMAX,
    BinaryOp.FMIN,
)
FUNCTIONS = (
    *(op for op in UNARY.values() if op not in (*EXACT_OF_FLOATS, UnaryOp.NOT, UnaryOp.COMPLEMENT)),
    BinaryOp.POWER,
    BinaryOp.REMAINDER,
    BinaryOp.ATAN2,
    BinaryOp.HYPOT,
)


@cache
def device() -> OpenDevice:
    return open_device(choose_device())


Run = Callable[[list[Expression], list[Any], int], list[Any]]
"""Computes expressions over operands; truth values as integers, 1 or 0."""


def on_device(expressions: list[Expression], operands: list[Any], width: int) -> list[Any]:
    """Compute expressions over the operands on the device, in one kernel."""
    import pyopencl as cl

    kinds = [T(a.dtype.name) for a in operands]
    results = [np.zeros(COUNT, e.type.dtype if e.type is not T.BOOL else np.int32) for e in expressions]
    lines, dialect = [], OPENCL.noting()
    for k, kind in enumerate(kinds):
        lines.append(f"{value_type(kind, width)} a{k} = {_loaded(f'p{k}', kind, width)};")
    for k, e in enumerate(expressions):
        text = expression_c(e, Leaves([f"a{k}" for k in range(len(operands))]), width, dialect)
        lines.append(_stored(f"r{k}", text, T(results[k].dtype.name), width))
    parameters = [f"__global const {memory_type(kind)} *p{k}" for k, kind in enumerate(kinds)]
    parameters += [f"__global {memory_type(T(r.dtype.name))} *r{k}" for k, r in enumerate(results)]
    body = "\n".join(["long i = get_global_id(0);", *lines])
    text = f"__kernel void k({', '.join(parameters)}) {{\n{body}\n}}\n"
    source = (
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" + helper_functions(dialect.noted, OPENCL) + text
    )
    (made,) = build_kernels(
        device(), [Kernel(source=source, name="k", arguments=(), global_size=(Number(COUNT),))]
    )
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(device().context, flags, hostbuf=a) for a in (*operands, *results)]
    made.set_args(*buffers)
    cl.enqueue_nd_range_kernel(device().queue, made, (COUNT // width,), None)
    for buffer, result in zip(buffers[len(operands) :], results, strict=True):
        cl.enqueue_copy(device().queue, result, buffer)
    masks = [e.type is T.BOOL and width > 1 for e in expressions]
    return [-result if mask else result for result, mask in zip(results, masks, strict=True)]


def in_c(expressions: list[Expression], operands: list[Any], width: int) -> list[Any]:
    """Compute expressions over the operands in C, by vectors of ``width`` elements."""
    at = sum_of([(1, Name("i")), (1, Name("l"))]) if width > 1 else Name("i")
    values = [Convert(T.INT32, e) if e.type is T.BOOL else e for e in expressions]
    results = [np.zeros(COUNT, e.type.dtype) for e in values]
    loads = tuple(Load(f"a{k}", (at,)) for k in range(len(operands)))
    body: Code = tuple(Store(f"r{k}", (at,), Compute(e, loads)) for k, e in enumerate(values))
    if width > 1:
        body = (counted("l", Number(width), body, kind=Kind.VECTOR),)
    arrays = [(f"a{k}", a) for k, a in enumerate(operands)] + [(f"r{k}", r) for k, r in enumerate(results)]
    parameters = tuple(
        Parameter(name=n, type=T(a.dtype.name), shape=(Number(COUNT),), constant=n.startswith("a"))
        for n, a in arrays
    )
    loop = counted("i", Number(COUNT), body, step=width, kind=Kind.GROUP)
    function = Function(name="f", parameters=parameters, integers=(), body=(loop,), contracted=False)
    built(function, next(c_compilers()), 2).call([a.ctypes.data for _, a in arrays])()
    return results


@pytest.fixture(params=[on_device, in_c], ids=["opencl", "c"])
def run(request: pytest.FixtureRequest) -> Run:
    return cast(Run, request.param)


def _loaded(pointer: str, kind: T, width: int) -> str:
    if width == 1:
        return f"vload_half(i, {pointer})" if kind is T.FLOAT16 else f"{pointer}[i]"
    return f"vload_half{width}(i, {pointer})" if kind is T.FLOAT16 else f"vload{width}(i, {pointer})"


def _stored(pointer: str, text: str, kind: T, width: int) -> str:
    if width == 1 and kind is not T.FLOAT16:
        return f"{pointer}[i] = {text};"
    if kind is T.FLOAT16:
        return f"vstore_half{'' if width == 1 else width}_rte({text}, i, {pointer});"
    return f"vstore{width}({text}, i, {pointer});"


def numpy_value(e: Expression, operands: list[Any]) -> Any:
    with np.errstate(all="ignore"):
        return np.broadcast_to(value(e, operands, lambda k: np.zeros(1)), (COUNT,))


def interesting(kind: T, seed: int) -> Any:
    """Extremes, zeros and small numbers, in random order."""
    rng = np.random.default_rng(seed)
    if kind.is_float:
        special = [0.0, -0.0, 1.0, -1.5, 2.5, 3.5, np.inf, -np.inf, np.nan, 65504.0, 0.1, -2.75]
        values = np.concatenate([np.asarray(special), rng.normal(size=COUNT - len(special)) * 10])
    else:
        limits = np.iinfo(kind.value)
        special = [0, 1, 2, 3, 7, limits.max, limits.min, limits.max - 1, limits.min + 1]
        special += [-1, -2, -7] if limits.min < 0 else []
        small = rng.integers(max(limits.min, -9), 10, COUNT - len(special))
        values = np.asarray([*special, *small], dtype=object)
    return rng.permutation(values).astype(kind.dtype)


def assert_equal(e: Expression, found: Any, wanted: Any, operands: list[Any]) -> None:
    wanted = wanted.astype(found.dtype)
    same = (found == wanted) | ((found != found) & (wanted != wanted))
    at = np.flatnonzero(~same)[:3]
    assert same.all(), (e, [(found[k], wanted[k], [a[k] for a in operands]) for k in at])


def check(run: Run, expressions: list[Expression], operands: list[Any], width: int) -> None:
    found = run(expressions, operands, width)
    for e, result in zip(expressions, found, strict=True):
        assert_equal(e, result, numpy_value(e, operands), operands)


def in_widths(kinds: Sequence[T], wide: int = 8) -> pytest.MarkDecorator:
    """Each type as a scalar or as a vector, in turns, and the other way round for later."""
    pairs = [(kind, width, (k + i) % 2) for k, kind in enumerate(kinds) for i, width in enumerate((1, wide))]
    cases = [
        pytest.param(kind, width, marks=LATER if later else (), id=f"{kind.value}-{width}")
        for kind, width, later in pairs
    ]
    return pytest.mark.parametrize(("kind", "width"), cases)


@in_widths(INTEGERS)
def test_integers_wrap_and_divide_as_stated(kind: T, width: int, run: Run) -> None:
    a, b = Read(0, kind), Read(1, kind)
    expressions: list[Expression] = [Binary(op, a, b) for op in OF_INTEGERS]
    expressions += [Unary(op, a) for op in (UnaryOp.NEGATE, UnaryOp.ABS, UnaryOp.COMPLEMENT, UnaryOp.ROUND)]
    expressions += [Binary(op, a, Constant(3, kind)) for op in (BinaryOp.DIVIDE, BinaryOp.REMAINDER)]
    shift = Binary(BinaryOp.BIT_AND, b, Constant(7, kind))
    expressions += [Binary(op, a, shift) for op in (BinaryOp.SHIFT_LEFT, BinaryOp.SHIFT_RIGHT)]
    check(run, expressions, [interesting(kind, 1), interesting(kind, 2)], width)


@in_widths(FLOATS)
def test_floats_are_rounded_once(kind: T, width: int, run: Run) -> None:
    a, b = Read(0, kind), Read(1, kind)
    expressions: list[Expression] = [Binary(op, a, b) for op in OF_FLOATS]
    expressions += [Unary(op, a) for op in EXACT_OF_FLOATS]
    expressions += [Unary(UnaryOp.SQRT, Unary(UnaryOp.ABS, a)), Binary(BinaryOp.ADD, a, Constant(0.1, kind))]
    check(run, expressions, [interesting(kind, 3), interesting(kind, 4)], width)


@in_widths([T.INT16, T.INT32, T.UINT32, T.INT64, *FLOATS])
def test_comparisons_choices_and_truth(kind: T, width: int, run: Run) -> None:
    a, b = Read(0, kind), Read(1, kind)
    less, same = Compare(CompareOp.LT, a, b), Compare(CompareOp.EQ, a, b)
    both = Binary(BinaryOp.AND, less, Unary(UnaryOp.NOT, same))
    either = Binary(BinaryOp.OR, less, same)
    wide, narrow = Constant(7, T.INT64), Constant(-1, T.INT64)
    expressions: list[Expression] = [Select(Compare(op, a, b), a, b) for op in CompareOp]
    expressions += [Select(Compare(op, a, b), b, a) for op in CompareOp]
    expressions += [Select(both, a, b), Select(either, b, a), Select(less, wide, narrow)]
    expressions += [Convert(T.INT32, less), Convert(T.FLOAT32, either)]
    operands = [interesting(kind, 5), interesting(kind, 6)]
    operands[1][::3] = operands[0][::3]
    check(run, expressions, operands, width)


@in_widths([*INTEGERS, *FLOATS])
def test_conversions(kind: T, width: int, run: Run) -> None:
    operand = interesting(kind, 7)
    if kind.is_float:  # what lies outside of 64 bits is left open
        operand = np.where(np.abs(operand) < 2**15, operand, 1).astype(kind.dtype)
    check(run, [Convert(other, Read(0, kind)) for other in (*INTEGERS, *FLOATS)], [operand], width)


@in_widths(FLOATS, 4)
def test_functions_are_close(kind: T, width: int, run: Run) -> None:
    """A device's functions may differ from the evaluator's in the last places."""
    rng = np.random.default_rng(8)
    a, b = Read(0, kind), Read(1, kind)
    expressions = [Unary(op, a) if isinstance(op, UnaryFunction) else Binary(op, a, b) for op in FUNCTIONS]
    operands = [
        rng.uniform(0.05, 0.95, COUNT).astype(kind.dtype),
        rng.uniform(1, 3, COUNT).astype(kind.dtype),
    ]
    found = run(expressions, operands, width)
    eps = float(np.finfo(kind.value).eps)
    for e, result in zip(expressions, found, strict=True):
        np.testing.assert_allclose(result, numpy_value(e, operands), rtol=16 * eps, atol=eps, err_msg=str(e))


@pytest.mark.parametrize(
    ("number", "kind", "text"),
    [
        (0.1, T.FLOAT32, "0.1f"),
        (0.1, T.FLOAT64, "0.1"),
        (3, T.FLOAT32, "3.0f"),
        (-2.5, T.FLOAT64, "(-2.5)"),
        (float("inf"), T.FLOAT32, "INFINITY"),
        (-(2**31), T.INT32, "(-2147483647 - 1)"),
        (2**31, T.INT32, "(-2147483647 - 1)"),
        (-1, T.UINT8, "(uchar)255"),
        (5, T.INT64, "5L"),
        (5, T.UINT64, "5UL"),
    ],
)
def test_literals(number: float, kind: T, text: str) -> None:
    assert literal(number, kind) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Binary(BinaryOp.SUBTRACT, Read(0, T.INT32), Read(1, T.INT32)), "wrap_sub_int32_t(a, b)"),
        (
            Binary(
                BinaryOp.SUBTRACT, Convert(T.INT32, Read(0, T.UINT16)), Convert(T.INT32, Read(1, T.UINT16))
            ),
            "(int32_t)a - (int32_t)b",
        ),
        (
            Binary(
                BinaryOp.MULTIPLY, Convert(T.INT32, Read(0, T.UINT16)), Convert(T.INT32, Read(1, T.UINT16))
            ),
            "wrap_mul_int32_t((int32_t)a, (int32_t)b)",
        ),
        (
            Binary(
                BinaryOp.MULTIPLY, Convert(T.INT32, Read(0, T.INT16)), Convert(T.INT32, Read(1, T.UINT16))
            ),
            "(int32_t)a * (int32_t)b",
        ),
        (Binary(BinaryOp.ADD, Read(0, T.INT8), Constant(1, T.INT8)), "wrap_add_int8_t(a, (int8_t)1)"),
        (
            Binary(
                BinaryOp.ADD,
                Binary(BinaryOp.SHIFT_RIGHT, Read(0, T.INT8), Constant(1, T.INT8)),
                Constant(1, T.INT8),
            ),
            "(int8_t)((int8_t)(a >> (int8_t)1) + (int8_t)1)",
        ),
        (Unary(UnaryOp.ABS, Read(0, T.INT32)), "abs_int32_t(a)"),
        (Unary(UnaryOp.ABS, Convert(T.INT32, Read(0, T.INT16))), "plain_abs_int32_t((int32_t)a)"),
    ],
)
def test_what_cannot_overflow_does_not_wrap(value: Expression, text: str) -> None:
    assert expression_c(value, Leaves(reads=["a", "b"]), 1, C) == text


def test_parentheses_are_few() -> None:
    a, b = Read(0, T.FLOAT32), Read(1, T.FLOAT32)
    product = Binary(BinaryOp.MULTIPLY, a, Binary(BinaryOp.ADD, a, b))
    term = Binary(BinaryOp.SUBTRACT, b, Binary(BinaryOp.SUBTRACT, product, b))
    assert expression_c(term, Leaves(["x", "y"])) == "y - (x * (x + y) - y)"


ITERATOR, N = Name("i"), Name("n")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (Operation("+", (Operation("*", (Number(2), ITERATOR)), Number(3))), "2 * i + 3"),
        (Operation("-", (ITERATOR, Operation("-", (N, ITERATOR)))), "i - (n - i)"),
        (Operation("floor", (ITERATOR, Number(3))), "floor_div(i, 3)"),
        (Operation("min", (ITERATOR, N, Number(3))), "lesser(lesser(i, n), 3)"),
        (
            Operation("and", (Operation("<", (ITERATOR, N)), Operation(">=", (ITERATOR, Number(0))))),
            "i < n && i >= 0",
        ),
        (Operation("?", (Operation("==", (ITERATOR, N)), ITERATOR, N)), "i == n ? i : n"),
        (Operation("not", (Operation("<", (ITERATOR, N)),)), "!(i < n)"),
        (Operation("-", (ITERATOR,)), "-i"),
    ],
)
def test_integer_expressions(expression: IntExpression, text: str) -> None:
    assert integer_c(expression) == text


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "%", "floor", "min", "max", "<", "<=", "==", "?"])
def test_the_host_computes_what_the_ir_says(operator: str) -> None:
    from polyloom.ir.integers import values_of

    values = [-7, -3, -1, 1, 2, 5]
    for a in values:
        for b in values:
            names = {"i": a, "n": b}
            operands: tuple[IntExpression, ...] = (ITERATOR, N)
            if operator == "?":
                operands = (Operation("<", (ITERATOR, N)), ITERATOR, N)
            expression = Operation(operator, operands)
            assert int_function(expression)(names) == int(values_of(expression, names)), (a, b)


@pytest.mark.parametrize("kind", [T.INT32, T.FLOAT64])
def test_what_a_choice_compares_and_returns_stands_once(kind: ElementType) -> None:
    """A chain of choices would be as long as two to the power of their number."""
    best: Expression = Read(0, kind)
    for k in range(1, 7):
        best = Select(Compare(CompareOp.GT, Read(k, kind), best), Read(k, kind), best)
    names = [f"read_{k}" for k in range(7)]
    text = expression_c(best, Leaves(names), dialect=C)
    assert [text.count(name) for name in names] == [1] * 7
