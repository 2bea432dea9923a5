"""Doubles that are computed as floats: the same bits for all floats, and no doubles are left."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import polyloom
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
    walk,
)
from polyloom.ir.host import MdHom
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.ir.transform.plainer_reductions import plainer_reductions
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.types import ElementType
from polyloom.scop.lowering.narrow_floats import narrowed

FLOAT, DOUBLE = ElementType.FLOAT32, ElementType.FLOAT64
A, B = (Convert(DOUBLE, Read(k, FLOAT)) for k in range(2))
LIMITS = [
    0.0,
    -0.0,
    0.5,
    0.1,
    -0.1,
    1e-60,
    -1e-60,
    1e-45,
    -1e-45,
    1e39,
    -1e39,
    np.inf,
    -np.inf,
    np.nan,
    3.4028235677973366e38,
]


def floats() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return pairs of random bits, of small and of common numbers, and of all that lies about limits."""
    rng = np.random.default_rng(11)
    bits = rng.integers(0, 2**32, (2, 20000), np.uint32).view(np.float32)
    few = (rng.integers(-(2**12), 2**12, (2, 20000)) * 2.0 ** rng.integers(-150, 100, (2, 20000))).astype(
        np.float32
    )
    with np.errstate(over="ignore"):
        near = np.array(LIMITS, np.float32)
    around = np.concatenate(
        [near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(np.inf)), -near]
    )
    pairs = np.array(list(product(around, around)), np.float32).T
    first, second = np.concatenate([bits, few, pairs], axis=1)
    return first, second


def assert_same(whole: Expression, *, narrow: bool = True) -> None:
    made = narrowed(whole)
    assert any(part.type is DOUBLE for part in walk(made)) is not narrow, made
    given = floats()
    with np.errstate(all="ignore"):
        found, wanted = (np.asarray(value(e, given, no_iterator)) for e in (made, whole))
    assert found.dtype == wanted.dtype
    if found.dtype == np.float32:
        is_nan = np.isnan(wanted)
        np.testing.assert_array_equal(np.isnan(found), is_nan)
        found, wanted = found[~is_nan].view(np.uint32), wanted[~is_nan].view(np.uint32)
    np.testing.assert_array_equal(found, wanted)


def no_iterator(dimension: int) -> npt.NDArray[np.int64]:
    raise AssertionError(dimension)


@pytest.mark.parametrize(
    "op", [BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MULTIPLY, BinaryOp.DIVIDE], ids=lambda op: op.name
)
def test_one_operation_is_rounded_once(op: BinaryFunction) -> None:
    assert_same(Convert(FLOAT, Binary(op, A, B)))
    assert_same(Convert(FLOAT, Unary(UnaryOp.NEGATE, Binary(op, A, Constant(0.75, DOUBLE)))))


def test_roots_absolute_values_and_choices() -> None:
    assert_same(Convert(FLOAT, Unary(UnaryOp.SQRT, Unary(UnaryOp.ABS, A))))
    chosen = Select(Compare(CompareOp.GT, A, Constant(0.1, DOUBLE)), Binary(BinaryOp.MULTIPLY, A, B), B)
    assert_same(Convert(FLOAT, chosen))
    assert_same(Convert(FLOAT, Binary(BinaryOp.MAXIMUM, A, B)))


@pytest.mark.parametrize("op", list(CompareOp), ids=str)
def test_comparisons(op: CompareOp) -> None:
    assert_same(Compare(op, A, B))
    for limit in LIMITS:
        with np.errstate(over="ignore"):
            is_float = float(np.float32(limit)) == limit or limit != limit
        narrow = is_float or op not in (CompareOp.EQ, CompareOp.NE)
        assert_same(Compare(op, A, Constant(limit, DOUBLE)), narrow=narrow)
        assert_same(Compare(op, Constant(limit, DOUBLE), A), narrow=narrow)


@pytest.mark.parametrize(
    "inner",
    [
        Binary(BinaryOp.MULTIPLY, A, Constant(0.1, DOUBLE)),
        Binary(BinaryOp.ADD, Binary(BinaryOp.MULTIPLY, A, B), B),
        Binary(BinaryOp.MULTIPLY, A, Convert(DOUBLE, Read(1, ElementType.INT32))),
        Unary(UnaryOp.EXP, A),
    ],
    ids=["no float", "two operations", "an integer", "a function"],
)
def test_what_needs_doubles_keeps_them(inner: Expression) -> None:
    assert narrowed(Convert(FLOAT, inner)) == Convert(FLOAT, inner)


def test_literals_without_an_f_cost_nothing(tmp_path: Path) -> None:
    """Map, choice, condition of an update, and the terms of a sum."""
    (tmp_path / "f.c").write_text(
        "void f(int n, float a[n], float b[n], float s[1]) {\n#pragma scop\n"
        "  for (int i = 0; i < n; i++)\n    b[i] = a[i] > 0.1 ? a[i] * 0.5 : -a[i] / 3.0;\n"
        "  for (int i = 1; i < n; i++)\n    if (b[i - 1] > 0.3)\n      b[i] = b[i] + 1.0;\n"
        "  for (int i = 0; i < n; i++)\n    s[0] += a[i] * 0.5;\n#pragma endscop\n}\n"
    )
    found = polyloom.load(str(tmp_path / "f.c")).explain(native={"n": 1000})
    assert "float64" not in str(found)


PLACE = """#include <math.h>
void f(int n, float a[n], float out[1], int at[1]) {
#pragma scop
  float x = fabs(a[0]);
  int k = 0;
  for (int i = 1; i < n; i++) {
    if (fabs(a[i]) < x) {
      x = fabs(a[i]);
      k = i;
    }
  }
  out[0] = x;
  at[0] = k;
#pragma endscop
}
"""


def test_reductions_are_found_without_doubles(tmp_path: Path) -> None:
    """The place of the smallest size is found in any order, though `fabs` is one of doubles."""
    (tmp_path / "f.c").write_text(PLACE)
    found = polyloom.load(str(tmp_path / "f.c")).explain()
    assert isinstance(found, polyloom.LoopExplanation)
    ((_, made),) = found.parts
    program = plainer_reductions(specialise(made.program, {"n": 1000}))
    homs = [node for node in program.body if isinstance(node, MdHom)]
    combiners = [o.combiner for hom in homs for o in hom.combine if o.combiner is not None]
    assert combiners
    assert all(combiner.commutative for combiner in combiners)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("threads", [1, 2])
def test_reductions_without_doubles_beside_c(tmp_path: Path, threads: int) -> None:
    (tmp_path / "f.c").write_text(PLACE)
    made = polyloom.compile(str(tmp_path / "f.c"), device="native", threads=threads, check=True)
    rng = np.random.default_rng(2)
    for n in (1, 10, 1000, 20000):
        a = rng.choice([-3.5, 0.0, -0.0, 1.25, -1.25, np.inf, np.nan], n).astype(np.float32)
        made(n=n, a=a, out=np.zeros(1, np.float32), at=np.zeros(1, np.int32))
