"""Branches on integers that no iteration changes stand in front of loops: which do, and results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.ir.expressions import Compare, CompareOp, Constant, Read
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.nests.invariant_branches import invariant_branches_outside
from polyloom.mdh.tree.nodes import (
    Array,
    Compute,
    For,
    Function,
    If,
    Load,
    Parameter,
    Space,
    Store,
    counted,
)
from polyloom.mdh.tree.rewrite import walk
from polyloom.polyhedra.loops.tree import Name, Number, Operation

MOVED = {
    "both sides": """for (int i = 0; i < n; i++) {
        if (a[i] > b[i]) { a[i] += b[i]; if (m > 10) c[i] += b[i]; else c[i] = a[i] + 1; }
        else { b[i] = a[i] * 2; if (k > 0) c[i] = a[i]; else c[i] -= b[i]; } }""",
    "one side": "for (int i = 0; i < n; i++) { if (a[i] > 0) { b[i] = a[i]; if (m > k) c[i] = b[i]; } }",
    "in order": "for (int i = 1; i < n; i++) { a[i] = a[i - 1] + b[i]; if (m > 10) c[i] = a[i]; }",
}


def compiled(tmp_path: Path, body: str) -> Any:
    path = tmp_path / "branches.c"
    path.write_text(f"void kernel(int n, int m, int k, float a[n], float b[n], float c[n]) {{\n{body}\n}}\n")
    return polyloom.compile(path, device="native", check=True)


def asked_inside(function: Function) -> bool:
    """Whether a loop asks what it does not change."""
    return any(
        isinstance(branch, If) and not isinstance(branch.condition, Compute)
        for loop in walk(function.body)
        if isinstance(loop, For)
        for branch in walk(loop.body)
    )


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("form", MOVED)
def test_results_are_those_of_the_program(form: str, tmp_path: Path) -> None:
    made = compiled(tmp_path, MOVED[form])
    rng = np.random.default_rng(0)
    for n in (1, 7, 40):
        for m, k in ((3, -1), (11, 2), (3, 2), (11, -5)):
            a, b, c = (rng.integers(-9, 9, n).astype(np.float32) for _ in range(3))
            made(n=n, m=m, k=k, a=a, b=b, c=c)


def test_drop_ins_ask_once(tmp_path: Path) -> None:
    head = "void f(int n, int m, int k, float *a, float *b, float *c)"
    (tmp_path / "f.c").write_text(f"{head} {{ {MOVED['both sides']} }}\n")
    polyloom.drop_in(tmp_path / "f.c", target="c").write(tmp_path / "out")
    text = (tmp_path / "out" / "polyloom_loops.c").read_text()
    body = text[text.index("f_loops(struct team") :]
    assert "if (m >= 11)" in body and "if (k >= 1)" in body
    assert "if (m" not in text[: text.index("f_loops(struct team")]


def loop(*body: Any, name: str = "i") -> For:
    return counted(name, Name("n"), tuple(body))


def store(name: str) -> Store:
    return Store(name, (Name("i"),), Compute(Constant(1.0, ElementType.FLOAT32)))


def moved(*body: Any) -> tuple[Any, ...]:
    function = Function(name="f", parameters=(), integers=("n", "m"), body=tuple(body))
    return invariant_branches_outside(function).body


FIVE = Compute(Constant(5.0, ElementType.FLOAT32))
SCALAR: Any = {"name": "d", "type": ElementType.FLOAT32, "shape": (Number(1),), "space": Space.REGISTER}


def data(array: str, place: Any) -> Compute:
    """Return whether an element is not zero."""
    read = Read(0, ElementType.FLOAT32)
    zero = Constant(0.0, ElementType.FLOAT32)
    return Compute(Compare(CompareOp.NE, read, zero), (Load(array, (place,)),))


SOME = Operation("<", (Number(0), Name("n")))
ASKED = Operation(">", (Name("m"), Number(1)))


def test_a_loop_becomes_two() -> None:
    assert moved(loop(store("x"), If(ASKED, (store("y"),)), store("z"))) == (
        If(ASKED, (loop(store("x"), store("y"), store("z")),), (loop(store("x"), store("z")),)),
    )


def test_a_loop_that_is_a_branch_alone_is_inside_of_it_with_all_around_it() -> None:
    inner = loop(If(ASKED, (store("y"),)))
    assert moved(loop(inner, name="j")) == (If(ASKED, (loop(loop(store("y")), name="j"),)),)


def test_data_are_asked_where_there_is_an_iteration() -> None:
    asked = data("m", Name("n"))
    found = moved(loop(store("x"), If(asked, (store("y"),))))
    assert found == (If(SOME, (If(asked, (loop(store("x"), store("y")),), (loop(store("x")),)),)),)


def test_data_that_another_array_may_hold_too_are_asked_each_time() -> None:
    body = loop(If(data("m", Number(0)), (store("y"),)))
    parameters = tuple(
        Parameter(name=n, type=ElementType.FLOAT32, shape=(Name("n"),), alone=False) for n in ("m", "y")
    )
    function = Function(name="f", parameters=parameters, integers=("n",), body=(body,))
    assert invariant_branches_outside(function).body == (body,)


@pytest.mark.parametrize(
    "body",
    [
        (store("x"), If(Operation(">", (Name("i"), Number(1))), (store("y"),))),
        (store("x"), If(Operation(">", (Operation("/", (Name("n"), Name("m"))), Number(1))), (store("y"),))),
        (store("x"), If(data("x", Number(0)), (store("y"),))),
        (store("x"), If(data("m", Name("i")), (store("y"),))),
        (If(data("d", Number(0)), (Store("y", (Name("i"),), FIVE),)), Array(**SCALAR)),
        (loop(store("x"), name="j"), If(ASKED, (store("y"),))),
        tuple(If(Operation(">", (Name("m"), Number(k))), (store("y"),)) for k in range(3)),
    ],
    ids=[
        "its own iterator",
        "a quotient by a name",
        "data it stores",
        "data at its own iterator",
        "data it declares",
        "a loop beside it",
        "too many",
    ],
)
def test_what_stays(body: tuple[Any, ...]) -> None:
    assert moved(loop(*body)) == (loop(*body),)
