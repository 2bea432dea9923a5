"""Scalar arithmetic of emitted code against NumPy, on every half and on hard cases of the other types."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from simulated import fabric, get_memory, role_text, set_memory

from polyloom.wafer.simulator.compilers import find_compiler

LAYOUT = """
#include "layout.h"
extern const struct role P;
void layout(int PE_X, int PE_Y) { program(&P); }
"""
C_TYPE = {"h": "half", "s": "float", "i16": "int16_t", "i32": "int32_t"}
DTYPE = {"h": np.float16, "s": np.float32, "i16": np.int16, "i32": np.int32}
COUNT = 1024


def applied(expressions: list[str], suffix: str, to: str, a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    """Each expression in ``a`` and ``b`` for all pairs of elements: PE[k, n] does expression k, block n."""
    t, r = C_TYPE[suffix], C_TYPE[to]
    cases = "\n".join(f"    case {k}: store(M.r[i], ({r})({e})); break;" for k, e in enumerate(expressions))
    code = f"""
    static void main(void) {{
      for (int i = 0; i < {COUNT}; i++) {{
        cost(.iterations = 1);
        {t} a = load(M.a[i]), b = load(M.b[i]);
        switch (PE_X) {{\n{cases}\n        }}
      }}
    }}
    """
    role = role_text(f"{t} a[{COUNT}]; {t} b[{COUNT}]; {r} r[{COUNT}];", code)
    padded = [np.resize(v, (-(-v.size // COUNT), COUNT)) for v in (a, b)]
    blocks = padded[0].shape[0]
    with fabric({"P.c": role, "layout.c": LAYOUT}, len(expressions), blocks) as simulation:
        for k in range(len(expressions)):
            for n, values in enumerate(padded):
                offset = n * COUNT * values.dtype.itemsize
                set_memory(simulation, [k] * blocks, range(blocks), offset, values)
        assert simulation.run().error is None
        at, size = 2 * COUNT * a.dtype.itemsize, COUNT
        rows = [
            [get_memory(simulation, at, size, DTYPE[to], k, n) for n in range(blocks)]
            for k in range(len(expressions))
        ]
    return [np.concatenate(row)[: a.size] for row in rows]


def every_half() -> np.ndarray:
    return np.arange(65536, dtype=np.uint16).view(np.float16)


def floats() -> np.ndarray:
    rng = np.random.default_rng(1)
    special = [
        0.0,
        -0.0,
        1,
        -1,
        0.5,
        1.5,
        2.5,
        -2.5,
        np.inf,
        -np.inf,
        np.nan,
        3e38,
        -3e38,
        1e-40,
        65504,
        65520,
        2**31,
        1e20,
    ]
    scale = 10.0 ** rng.uniform(-6, 6, 3000)
    return np.concatenate([special, rng.normal(size=3000) * scale]).astype(np.float32)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


erf = np.vectorize(math.erf)
UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "abs": np.abs, "exp": np.exp, "log": np.log, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "tanh": np.tanh, "sigmoid": sigmoid, "erf": erf, "floor": np.floor,
    "ceil": np.ceil, "round": np.round, "trunc": np.trunc, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "exp2": np.exp2, "log2": np.log2, "log10": np.log10, "cbrt": np.cbrt, "log1p": np.log1p,
    "expm1": np.expm1, "erfc": np.vectorize(math.erfc),
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["h", "s"])
def test_functions_of_one_float(suffix: str) -> None:
    """Computed in double and rounded once. The doubles of two libraries may differ where that shows: not
    here for half, and in the last place for float."""
    x = every_half() if suffix == "h" else floats()
    got = applied([f"{name}_{suffix}(a)" for name in UNARY], suffix, suffix, x, x)
    with np.errstate(all="ignore"):
        for values, (name, function) in zip(got, UNARY.items(), strict=True):
            expected = function(x.astype(np.float64)).astype(x.dtype)
            if suffix == "h" or name in ("abs", "sqrt", "rsqrt", "floor", "ceil", "round", "trunc"):
                np.testing.assert_array_equal(values, expected, err_msg=name)
            else:
                np.testing.assert_allclose(values, expected, rtol=1.2e-7, err_msg=name)


BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "max": np.maximum, "min": np.minimum, "div": np.divide, "pow": np.power,
}  # fmt: skip


def pairs(values: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.permutation(values), rng.permutation(values)


@pytest.mark.parametrize("suffix", ["h", "s"])
def test_functions_of_two_floats(suffix: str) -> None:
    a, b = pairs(every_half() if suffix == "h" else floats(), 3)
    got = applied([f"{name}_{suffix}(a, b)" for name in BINARY], suffix, suffix, a, b)
    with np.errstate(all="ignore"):
        for values, (name, function) in zip(got, BINARY.items(), strict=True):
            expected = function(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)
            np.testing.assert_array_equal(values, expected, err_msg=name)


@pytest.mark.parametrize("suffix", ["h", "s"])
def test_every_operation_rounds_to_its_type(suffix: str) -> None:
    """Also subnormals, overflow and NaN; nothing is fused, and no intermediate result is wider."""
    a, b = pairs(every_half() if suffix == "h" else floats(), 4)
    t = C_TYPE[suffix]
    texts = [
        f"({t})(a + b)",
        f"({t})(a - b)",
        f"({t})(a * b)",
        f"({t})(a + ({t})(b * b))",
        f"({t})(({t})(a + b) - a)",
    ]
    got = applied(texts, suffix, suffix, a, b)
    with np.errstate(all="ignore"):
        for values, expected in zip(got, [a + b, a - b, a * b, a + b * b, (a + b) - a], strict=True):
            np.testing.assert_array_equal(values, expected)


def integers(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    limits = np.iinfo(dtype)
    edge = np.array(
        [limits.min, limits.min + 1, -3, -2, -1, 0, 1, 2, 3, 7, 255, limits.max - 1, limits.max], dtype
    )
    a, b = (m.ravel() for m in np.meshgrid(edge, edge))
    rng = np.random.default_rng(2)
    more = rng.integers(limits.min, limits.max, (2, 2000), endpoint=True, dtype=dtype)
    small = rng.integers(-12, 13, (2, 1000), dtype=dtype)
    return np.concatenate([a, more[0], small[0]]), np.concatenate([b, more[1], small[1]])


def quotient(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def power(a: int, b: int) -> int:
    if b < 0:
        return quotient(1, a ** (2 - b % 2)) if a else 0
    return pow(a, b, 2**64)


@pytest.mark.parametrize("suffix", ["h", "s"])
def test_a_negated_float_is_exact(suffix: str) -> None:
    x = every_half() if suffix == "h" else floats()
    (got,) = applied([f"({C_TYPE[suffix]})(-a)"], suffix, suffix, x, x)
    np.testing.assert_array_equal(got, -x)


def wrapped(values: list[int], dtype: type) -> np.ndarray:
    bits = np.dtype(dtype).itemsize * 8
    return np.array([(v + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for v in values], dtype)


@pytest.mark.parametrize("suffix", ["i16", "i32"])
def test_integers_wrap(suffix: str) -> None:
    dtype = DTYPE[suffix]
    a, b = integers(dtype)
    t = C_TYPE[suffix]
    exact: dict[str, Callable[[int, int], int]] = {
        f"({t})(a + b)": lambda x, y: x + y,
        f"({t})(a - b)": lambda x, y: x - y,
        f"({t})(a * b)": lambda x, y: x * y,
        f"({t})(-a)": lambda x, y: -x,
        f"abs_{suffix}(a)": lambda x, y: abs(x),
        f"max_{suffix}(a, b)": max,
        f"min_{suffix}(a, b)": min,
        f"div_{suffix}(a, b)": quotient,
        f"pow_{suffix}(a, b)": power,
        f"floor_{suffix}(a)": lambda x, y: x,
        f"ceil_{suffix}(a)": lambda x, y: x,
        f"round_{suffix}(a)": lambda x, y: x,
    }
    got = applied(list(exact), suffix, suffix, a, b)
    for values, (text, function) in zip(got, exact.items(), strict=True):
        expected = wrapped([function(int(x), int(y)) for x, y in zip(a, b, strict=True)], dtype)
        np.testing.assert_array_equal(values, expected, err_msg=text)


CONVERSION = {"h": "to_half", "s": "to_float", "i16": "to_int16", "i32": "to_int32"}


@pytest.mark.parametrize("to", list(C_TYPE))
@pytest.mark.parametrize("source", list(C_TYPE))
def test_conversions(source: str, to: str) -> None:
    a = {
        "h": every_half,
        "s": floats,
        "i16": lambda: integers(np.int16)[0],
        "i32": lambda: integers(np.int32)[0],
    }[source]()
    (got,) = applied([f"{CONVERSION[to]}(a)"], source, to, a, a)
    with np.errstate(all="ignore"):
        if source in ("h", "s") and to in ("i16", "i32"):
            finite = np.where(np.isfinite(a) & (np.abs(a) < 2.0**63), a, 0)
            expected = finite.astype(np.int64).astype(DTYPE[to])
        else:
            expected = a.astype(DTYPE[to])
    np.testing.assert_array_equal(got, expected)


def test_infinity_and_smallest_integer_are_known() -> None:
    a = np.array([0], np.float16)
    (low,) = applied(["(half)-INFINITY"], "h", "h", a, a)
    assert low[0] == -np.inf


def test_the_compiler_was_probed() -> None:
    assert "-ffp-contract=off" in find_compiler().flags
    assert any("bounds" in flag for flag in find_compiler().bounds_flags)
