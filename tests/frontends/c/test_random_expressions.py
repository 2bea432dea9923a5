"""Random expressions and conditions mean what the C compiler makes of them."""

from __future__ import annotations

import ctypes
import random
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from sequential import run
from test_meaning import COMPILER, Setting, call, values

from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler to compare with")

COUNT = 10
TYPES = {
    "c": "signed char",
    "h": "short",
    "x": "int",
    "l": "long",
    "u": "unsigned char",
    "w": "unsigned",
    "q": "unsigned long",
    "b": "_Bool",
}
OPERATORS = ["+", "-", "*", "&", "|", "^", "<", "<=", "==", "!=", ">", ">=", "&&", "||"]
LEAVES = ["i", "n", "1", "-3", "7u", "100L", "'a'", *(f"{name}[i]" for name in TYPES)]


def data_expression(rng: random.Random, depth: int) -> str:
    """Return an expression over elements of all types."""

    def inner() -> str:
        return data_expression(rng, depth - 1)

    match rng.randrange(8) if depth else 0:
        case 0:
            return rng.choice(LEAVES)
        case 1 | 2 | 3:
            return f"({inner()} {rng.choice(OPERATORS)} {inner()})"
        case 4:
            return f"({rng.choice('-~!+')} {inner()})"
        case 5:
            return f"({inner()} {rng.choice('/%')} {rng.choice([3, 5, -4])})"
        case 6:
            return f"((int)({inner()}) {rng.choice(['<<', '>>'])} {rng.randrange(6)})"
        case _:
            return rng.choice(
                [f"(({rng.choice(list(TYPES.values()))}){inner()})", f"({inner()} ? {inner()} : {inner()})"]
            )


def affine_expression(rng: random.Random, depth: int) -> str:
    """Return a quasi-affine expression over iterators and parameters."""

    def inner() -> str:
        return affine_expression(rng, depth - 1)

    constant = rng.choice([2, 3, 4, -3])
    match rng.randrange(9) if depth else 0:
        case 0:
            return rng.choice(["i", "j", "n", "m", "1", "2", "-3", "5"])
        case 1 | 2:
            return f"({inner()} {rng.choice('+-')} {inner()})"
        case 3:
            return f"({inner()} * {constant})"
        case 4 | 5:
            return f"({inner()} {rng.choice('/%')} {constant})"
        case 6:
            return rng.choice(
                [f"({inner()} & {rng.choice([1, 3, 7])})", f"({inner()} >> {rng.randrange(4)})"]
            )
        case 7:
            return rng.choice([f"max({inner()}, {inner()})", f"(- {inner()} < {inner()})"])
        case _:
            return f"({inner()} > 0 ? {inner()} : {inner()})"


@pytest.mark.parametrize("seed", range(5))
def test_values(seed: int) -> None:
    rng = random.Random(seed)
    arrays = ", ".join(f"{spelling} {name}[n]" for name, spelling in TYPES.items())
    body = "\n".join(f"    out[{k}][i] = {data_expression(rng, 4)};" for k in range(COUNT))
    text = f"""void f(int n, {arrays}, long out[{COUNT}][n])
{{
#pragma scop
  for (int i = 0; i < n; i++) {{
{body}
  }}
#pragma endscop
}}
"""
    compare(text, {"n": 9})


@pytest.mark.parametrize("seed", range(5))
def test_affine(seed: int) -> None:
    rng = random.Random(seed)
    expressions = [affine_expression(rng, 3) for _ in range(COUNT)]
    tests = "\n".join(
        f"      if ({e} == ({e} / 2) * 2)\n        out[{k}]++;" for k, e in enumerate(expressions)
    )
    indices = "\n".join(f"      at[300 + {e}] += i;" for e in expressions)
    text = f"""#define max(a, b) ((a) > (b) ? (a) : (b))
void f(int n, int m, int out[{COUNT}], int at[600])
{{
#pragma scop
  for (int i = -3; i < n; i++)
    for (int j = i; j < m; j += 2) {{
{tests}
{indices}
    }}
#pragma endscop
}}
"""
    compare(text, {"n": 4, "m": 5})


def compare(text: str, parameters: dict[str, int]) -> None:
    """Run a text both ways; all its subscripts must be affine."""
    (scop,) = read_c(Source("f.c", text))
    assert not scop.remarks, scop.remarks
    rng = np.random.default_rng(1)
    how = Setting(parameters, ranges={"b": (0, 1), "c": (-128, 127), "u": (0, 255)})
    arrays = {a.name: values(a, how, rng) for a in scop.arrays}
    ours = {name: array.copy() for name, array in arrays.items()}
    run(scop, how.parameters, ours)
    with tempfile.TemporaryDirectory() as folder:
        call(scop, compiled(text, Path(folder)), how, arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(ours[name], array, err_msg=text)


def compiled(text: str, folder: Path) -> ctypes.CDLL:
    """Return a text as a library."""
    source, target = folder / "f.c", folder / "f.so"
    source.write_text(text)
    flags = ["-std=gnu99", "-O1", "-fwrapv", "-fPIC", "-shared", "-w"]
    subprocess.run([str(COMPILER), *flags, str(source), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))
