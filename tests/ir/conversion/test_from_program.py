"""Tensor programs as host programs: the same meaning, and the form that each kind of write takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import Program, evaluate
from polyloom.ir.conversion.to_host_program import host_program
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.expressions import Read
from polyloom.ir.host import Buffer, Index, MdHom, Order, View
from polyloom.ir.reductions import Combine
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import Loop, nodes_in
from random_tests import tried
from strategies import data, programs


def assert_same_meaning(program: Program, inputs: dict[str, Any]) -> None:
    expected = evaluate(program, inputs)
    found = evaluate_host(host_program(program), {}, inputs)
    assert set(found) == set(program.outputs)
    for name, array in found.items():
        assert array.dtype == expected[name].dtype
        assert np.array_equal(array, expected[name], equal_nan=array.dtype.kind == "f"), name


def test_an_element_that_a_guard_leaves_out_is_the_neutral_one() -> None:
    kind = ElementType.FLOAT32
    for shape, write in (((), ()), ((3,), (Index.of((1,)),))):
        never = Index.of((0,) * len(shape), -1)
        access = View("x", write)
        statement = Statement.of(
            "S",
            ("i",)[: len(shape)],
            shape,
            (access,),
            View("y", write),
            Read(0, kind),
            Combine.MAXIMUM,
            (never,),
        )
        tensors = (Buffer.of("x", kind, shape), Buffer.of("y", kind, shape))
        program = Program.of("P", tensors, ("x",), ("y",), (statement,))
        assert_same_meaning(program, {"x": np.ones(shape, np.float32)})


@pytest.mark.parametrize(
    ("length", "first", "second", "looped"), [(4, 1, 0, False), (5, 1, 0, False), (17, 2, 3, True)]
)
def test_a_point_that_a_guard_leaves_out_may_have_no_element(
    length: int, first: int, second: int, looped: bool
) -> None:
    """``y[first * i + second * j - 1] += x[i][j][r]`` where ``y`` has that element."""
    kind, domain = ElementType.FLOAT32, (5, 3 if second else 1, 2)
    place = Index.of((first, second, 0), -1)
    inside = (place, Index.of(tuple(-c for c in place.coefficients), length - 1 - place.constant))
    units = [Index.unit(k, 3) for k in range(3)]
    access = View("x", tuple(units))
    write = View("y", (place,))
    statement = Statement.of(
        "S", ("i", "j", "r"), domain, (access,), write, Read(0, kind), Combine.ADD, conditions=inside
    )
    tensors = (Buffer.of("x", kind, domain), Buffer.of("y", kind, (length,)))
    program = Program.of("P", tensors, ("x",), ("y",), (statement,))
    x = np.arange(np.prod(domain), dtype=np.float32).reshape(domain)
    assert any(isinstance(n, Loop) for n in nodes_in(host_program(program).body)) == looped
    assert_same_meaning(program, {"x": x})


@tried(150)
@given(programs(guarded=True), st.integers(0, 2**32))
def test_random_programs_keep_their_meaning(program: Program, seed: int) -> None:
    kinds = {t.type.is_float for t in program.tensors}
    reductions = {s.reduction for s in program.statements}
    assume(kinds == {False} or not reductions & {Combine.ADD, Combine.MULTIPLY})
    assert_same_meaning(program, data(program, seed))


def lowered(text: str) -> Program:
    return lower(parse(Source("test.lair", text)))


FORMS = {
    "as it is": "lair n(): int32 A[5][4], int32 x[4] -> int32 y[5] "
    "{ all (i, j) in (5, 4) y[i] += A[i][j] * x[j] }",
    "reshape": "lair n(): int32 A[5][4] -> int32 y[20] { all (i, j) in (5, 4) y[4 * i + j] += A[i][j] }",
    "padding": "lair n(): int32 x[4] -> int32 y[7] { all (i) in (4) y[i + 2] += x[i] }",
    "maximum": "lair n(): int32 x[4] -> int32 y[7] { all (i) in (4) y[i + 2] max= x[i] }",
    "transposed": "lair n(): int32 x[3][4] -> int32 y[6][3] { all (i, j) in (3, 4) y[j + 1][i] += x[i][j] }",
    "scatter": "lair n(): int32 d[8], int32 W[3] -> int32 y[10] "
    "{ all (w, r) in (8, 3) y[w + r] += d[w] * W[r] }",
    "both": "lair n(): int32 d[5][6][2], int32 W[3][3][2] -> int32 y[7][8] "
    "{ all (p, q, r, s, c) in (5, 6, 3, 3, 2) y[p + r][q + s] += d[p][q][c] * W[r][s][c] }",
    "strided": "lair n(): int32 x[6] -> int32 y[13] { all (i) in (6) y[2 * i + 1] += x[i] }",
    "diagonal": "lair n(): int32 x[6] -> int32 y[6][6] { all (i) in (6) y[i][i] += x[i] }",
    "column": "lair n(): int32 x[6][2] -> int32 y[6][3] { all (i, k) in (6, 2) y[i][1] += x[i][k] }",
    "overlapping strides": "lair n(): int32 d[300], int32 W[3][2] -> int32 y[601] "
    "{ all (w, r, c) in (300, 3, 2) y[2 * w + r] += d[w] * W[r][c] }",
}
NODES = {
    "padding": 2,
    "maximum": 2,
    "transposed": 2,
    "strided": 2,
    "diagonal": 2,
    "column": 2,
    "overlapping strides": 2,
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    program = lowered(FORMS[form])
    host = host_program(program)
    assert len(host.body) == NODES.get(form, 1)
    assert any(isinstance(n, Loop) for n in nodes_in(host.body)) == (form == "overlapping strides")
    assert_same_meaning(program, data(program, 1))


def test_a_scatter_becomes_a_gather() -> None:
    (node,) = host_program(lowered(FORMS["scatter"])).body
    assert isinstance(node, MdHom)
    assert node.iterators == ("o0", "r")
    assert [o.order for o in node.combine] == [Order.CONCATENATE, Order.POINTWISE]
    assert str(node.combine[1]) == "+"
    assert node.guard is not None


def test_internal_tensors_and_several_statements() -> None:
    program = lowered(
        "lair n(): float32 x[6][5], float32 W[5][4] -> float32 z[4]"
        "{ float32 h[6][4] all (i, j, k) in (6, 4, 5) h[i][j] += x[i][k] * W[k][j]"
        " all (j, i) in (4, 6) z[j] max= select(h[i][j] > 0, h[i][j], 0) }"
    )
    assert_same_meaning(program, data(program, 2, integers=True))
