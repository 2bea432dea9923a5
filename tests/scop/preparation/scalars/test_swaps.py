"""Swaps under a comparison as minima and maxima: which are, and values beside C."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np
import pytest

import polyloom
from c_host_programs import host_programs_of
from polyloom.ir.expressions import Binary, BinaryOp, Select, walk
from polyloom.ir.host import MdHom
from polyloom.polyhedra.loops.tree import leaves_in

BUBBLES = [(j, j + 1) for last in range(4, 0, -1) for j in range(last)]
"""A network that sorts five values."""

FORMS = [
    "if (p{a} > p{b}) {{ {kind} t = p{a}; p{a} = p{b}; p{b} = t; }}",
    "if (p{b} < p{a}) {{ {kind} t = p{b}; p{b} = p{a}; p{a} = t; }}",
    "if (p{a} >= p{b}) {{ s = p{a}; p{a} = p{b}; p{b} = s; }}",
    "if (p{b} <= p{a}) {{ s = p{b}; p{b} = p{a}; p{a} = s; }}",
]


def network(kind: str, seed: int) -> str:
    """Return a function that sorts five neighbours, each swap in another form."""
    random = Random(seed)
    swaps = "\n".join(random.choice(FORMS).format(a=a, b=b, kind=kind) for a, b in BUBBLES)
    given = ", ".join(f"p{k} = x[i + {k}]" for k in range(5))
    taken = " ".join(f"y[i][{k}] = p{k};" for k in range(5))
    head = f"void f(int n, const {kind} x[n + 4], {kind} y[n][5])"
    return f"{head} {{ for (int i = 0; i < n; i++) {{ {kind} s, {given};\n{swaps}\n{taken} }} }}\n"


@pytest.mark.parametrize(
    "kind", ["unsigned char", "short", "int", "unsigned", "long", "signed char", "float", "double"]
)
def test_values_are_those_of_c(kind: str, tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(network(kind, seed=len(kind)))
    made = polyloom.compile(tmp_path / "f.c", device="native", check=True)
    dtype = {"unsigned char": "uint8", "short": "int16", "int": "int32", "unsigned": "uint32"}
    dtype |= {"long": "int64", "signed char": "int8", "float": "float32", "double": "float64"}
    random = np.random.default_rng(3)
    for n in (1, 8, 101):
        if kind in ("float", "double"):
            x = random.choice([np.nan, 0.0, -0.0, 1, 2, -3, np.inf, -np.inf], n + 4).astype(dtype[kind])
        else:
            ends = np.iinfo(dtype[kind])
            x = random.integers(ends.min, ends.max, n + 4, dtype[kind], endpoint=True)
        made(n=n, x=x, y=np.zeros((n, 5), dtype[kind]))


def parts(body: str, before: str = "") -> list[object]:
    text = f"""void f(int n, const short x[n], const short z[n], short y[n], short u[n]) {{
        #pragma scop
        for (int i = 0; i < n; i++) {{ short a = x[i], b = z[i], t = 7; {before} {body} }}
        #pragma endscop
        }}"""
    (program,) = host_programs_of(text)
    return [
        part
        for node in leaves_in(program.body)
        if isinstance(node, MdHom)
        for term in node.terms
        for part in walk(term)
    ]


def test_a_swap_asks_nothing() -> None:
    found = parts("if (a > b) { t = a; a = b; b = t; } y[i] = a; u[i] = b;")
    assert {p.op for p in found if isinstance(p, Binary)} == {BinaryOp.MINIMUM, BinaryOp.MAXIMUM}
    assert not any(isinstance(part, Select) for part in found)


@pytest.mark.parametrize(
    "body",
    [
        "if (a > b) { t = a; a = b; b = t; } y[i] = a; u[i] = b + t;",
        "if (a > b) { t = a; a = b; b = t; y[i] = 1; } u[i] = b;",
        "if (a > b) { t = b; a = t; b = t; } y[i] = a; u[i] = b;",
        "if (a > 2 * b) { t = a; a = b; b = t; } y[i] = a; u[i] = b;",
        "if ((signed char)a > (signed char)b) { t = a; a = b; b = t; } y[i] = a; u[i] = b;",
        "if (a > b) { t = a; a = b; b = t; } else a = 3; y[i] = a; u[i] = b;",
    ],
    ids=["read later", "more to do", "no swap", "another comparison", "of a part", "another side"],
)
def test_what_is_no_swap_stays(body: str, tmp_path: Path) -> None:
    head = "void f(int n, const short x[n], const short z[n], short y[n], short u[n])"
    text = f"{head} {{ for (int i = 0; i < n; i++) {{ short a = x[i], b = z[i], t = 7; {body} }} }}\n"
    (tmp_path / "f.c").write_text(text)
    made = polyloom.compile(tmp_path / "f.c", device="native", check=True)
    random = np.random.default_rng(5)
    x, z, y, u = (random.integers(-300, 300, 50).astype(np.int16) for _ in range(4))
    made(n=50, x=x, z=z, y=y, u=u)


def test_medians_of_bytes_are_one_map(tmp_path: Path) -> None:
    swaps = "\n".join(FORMS[0].format(a=a, b=b, kind="unsigned char") for a, b in combinations(range(5), 2))
    given = ", ".join(f"p{k} = x[i + {k}]" for k in range(5))
    text = f"void f(int n, const unsigned char x[n + 4], unsigned char y[n]) {{\n\
for (int i = 0; i < n; i++) {{ unsigned char {given};\n{swaps}\ny[i] = p2; }} }}\n"
    (tmp_path / "f.c").write_text(text)
    files = polyloom.drop_in(tmp_path / "f.c", target="c").files
    made = files["polyloom_loops.c"]
    assert not re.search(r"p\d_each|condition", made) and "min_uint8" in made
