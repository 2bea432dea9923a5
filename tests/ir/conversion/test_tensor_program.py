"""Host programs as tensor programs: the same meaning, arrays written once, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.diagnostics import Source, Unsupported
from polyloom.frontends.c import read_c
from polyloom.ir import Program, evaluate, verify
from polyloom.ir.conversion.to_host_program import host_program as host_of_program
from polyloom.ir.conversion.to_tensor_program import tensor_program
from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram
from polyloom.ir.transform.specialise import specialise
from polyloom.polyhedra.loops.tree import Loop, nodes_in
from polyloom.scop.transform import host_program
from random_tests import tried
from strategies import data, programs


def host(text: str, **values: int) -> HostProgram:
    (scop,) = read_c(Source("test.c", text), None, {}, (), None)
    return specialise(host_program(scop).program, values)


def arrays(program: HostProgram, seed: int = 0) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    return {b.name: generator.integers(-5, 6, shape_of(b, {})).astype(b.type.value) for b in program.given}


def assert_same_meaning(program: HostProgram) -> Program:
    tensors = tensor_program(program)
    verify(tensors)
    inputs = arrays(program)
    expected = evaluate_host(program, {}, inputs)
    given = {n: inputs[n.removesuffix("_in")] for n in tensors.inputs}
    found = evaluate(tensors, given)
    for name in tensors.outputs:
        assert np.array_equal(found[name], expected[name]), name
    assert set(tensors.outputs) == set(expected)
    return tensors


GEMM = """void gemm(int n, int m, int k, float beta, float C[n][m], float A[n][k], float B[k][m]) {
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) {
    C[i][j] *= beta;
    for (int l = 0; l < k; l++) C[i][j] += A[i][l] * B[l][j];
  } }"""
MATVEC = """void mv(int y[5], int A[5][7], int x[7]) {
  for (int i = 0; i < 5; i++) { y[i] = 0; for (int j = 0; j < 7; j++) y[i] += A[i][j] * x[j]; } }"""
PADDED = """void conv(int y[8], int x[8], int w[3]) { int p[10];
  for (int i = 0; i < 10; i++) p[i] = 0;
  for (int i = 0; i < 8; i++) p[i + 1] = x[i];
  for (int i = 0; i < 8; i++) { y[i] = 0; for (int r = 0; r < 3; r++) y[i] += p[i + r] * w[r]; } }"""
TRIANGLE = """void low(int y[6], int A[6][6]) {
  for (int i = 0; i < 6; i++) { y[i] = 0; for (int j = 0; j <= i; j++) y[i] += A[i][j]; } }"""
RELU = """void relu(float y[9], float x[9], float b) {
  for (int i = 0; i < 9; i++) y[i] = x[i] + b > 0 ? x[i] + b : 0; }"""
TWICE = """void twice(int x[6]) {
  for (int i = 0; i < 6; i++) x[i] = x[i] + 1;
  for (int i = 0; i < 6; i++) x[i] *= 3; }"""


def test_matrix_product() -> None:
    program = assert_same_meaning(host(GEMM, n=4, m=5, k=6))
    assert set(program.inputs) == {"C_in", "A", "B", "beta"}
    assert program.outputs == ("C",)
    assert {s.name for s in program.statements} >= {"S2", "S2_end"}


def test_a_reduction_from_zero_is_one_statement() -> None:
    program = assert_same_meaning(host(MATVEC))
    (statement,) = program.statements
    assert statement.name == "S2"
    assert program.inputs == ("A", "x")


@pytest.mark.parametrize("text", [PADDED, TRIANGLE, RELU, TWICE])
def test_forms(text: str) -> None:
    assert_same_meaning(host(text))


REFUSED = {
    "tensor-part": "void f(int x[6]) { for (int i = 1; i < 6; i++) x[i] = 0; }",
    "tensor-index": "void f(int y[6], int x[6], int p[6]) { for (int i = 0; i < 6; i++) y[i] = x[p[i]]; }",
    "tensor-empty": "void f(int n, int x[n]) { for (int i = 0; i < n; i++) x[i] = 0; }",
    "tensor-size": "void f(int n, int x[n], int y[3]) { for (int i = 0; i < 3; i++) y[i] = n ? x[0] : 0; }",
}


@pytest.mark.parametrize("code", REFUSED)
def test_refusals(code: str) -> None:
    values = {"n": 0} if code in ("tensor-size", "tensor-empty") else {}
    with pytest.raises(Unsupported) as caught:
        tensor_program(host(REFUSED[code], **values))
    assert [d.code for d in caught.value.diagnostics] == [code]
    assert (caught.value.diagnostics[0].span is not None) == (code != "tensor-empty")


def test_unknown_sizes_are_named() -> None:
    with pytest.raises(Unsupported, match="the sizes n, m, k are not known"):
        tensor_program(host(GEMM))


@tried(60)
@given(programs(guarded=True), st.integers(0, 2**32))
def test_there_and_back_again(program: Program, seed: int) -> None:
    there = host_of_program(program)
    if any(isinstance(node, Loop) for node in nodes_in(there.body)):
        return
    try:
        back = tensor_program(there)
    except Unsupported as refusal:
        assert [d.code for d in refusal.diagnostics] == ["tensor-part"]
        return
    verify(back)
    inputs = data(program, seed, integers=True)
    expected = evaluate(program, inputs)
    found = evaluate(back, {n: inputs[n] for n in back.inputs})
    for name in program.outputs:
        if program.buffer(name).type.is_float:
            assert np.allclose(found[name], expected[name], rtol=1e-2, atol=1, equal_nan=True)
        else:
            assert np.array_equal(found[name], expected[name])
