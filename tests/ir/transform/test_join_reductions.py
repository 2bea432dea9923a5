"""Joined reductions: what they compute is what they compute one after another; which are joined."""

from __future__ import annotations

import numpy as np
import pytest

from c_host_programs import host_programs_of
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, MdHom
from polyloom.ir.transform.joining.maps import joined_maps
from polyloom.ir.transform.joining.reductions import MOST_RESULTS
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.programs import verify
from polyloom.polyhedra.loops.tree import leaves_in

N = 13
ARGUMENTS = (
    "int n, unsigned x[n], unsigned y[n], unsigned A[n][n], unsigned s[n], unsigned t[n], unsigned o[9],"
    " double d[n], double r[2]"
)


def special(body: str) -> HostProgram:
    text = f"void f({ARGUMENTS}) {{\n#pragma scop\n{body}\n#pragma endscop\n}}"
    (program,) = host_programs_of(text)
    return specialise(program, {"n": N})


def reductions(program: HostProgram) -> list[MdHom]:
    nodes = [node for node in leaves_in(program.body) if isinstance(node, MdHom)]
    return [node for node in nodes if any(operator.combiner for operator in node.combine)]


def assert_same(program: HostProgram) -> HostProgram:
    """Unsigned numbers and small ones make every sum exact; the joined program leaves the same ones."""
    made = joined_maps(program)
    verify(made)
    rng = np.random.default_rng(5)
    given = {b.name: rng.integers(0, 9, b.extents).astype(b.type.dtype) for b in program.given}
    for name, wanted in evaluate_host(program, {}, given).items():
        np.testing.assert_array_equal(evaluate_host(made, {}, given)[name], wanted, err_msg=name)
    return made


JOINED = {
    "two sums": "for (int i = 0; i < n; i++) { o[0] += x[i]; o[1] += x[i] * y[i]; }",
    "a sum and a product": "for (int i = 0; i < n; i++) { o[0] += x[i]; o[1] *= 2 * x[i] + 1; }",
    "the same element": "for (int i = 0; i < n; i++) { o[2] += x[i] * x[i]; o[0] += 3 * x[i]; }",
    "of each row": "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++)"
    "{ s[i] += A[i][j]; t[i] += A[i][j] * x[j]; }",
    "with starts and ends": "unsigned p = 1, q = 2; for (int i = 0; i < n; i++)"
    "{ p += x[i]; q += y[i] * x[i]; } o[0] = p * 5 + s[3]; o[1] = q - y[1];",
    "four": "for (int i = 0; i < n; i++)"
    "{ o[0] += x[i]; o[1] += x[i] * y[i]; o[2] += x[i] * x[i]; o[3] += x[i] * i; }",
    "least and largest": "double p = d[0], q = d[0]; for (int i = 1; i < n; i++)"
    "{ p = d[i] < p ? d[i] : p; q = d[i] > q ? d[i] : q; } r[0] = p; r[1] = q;",
    "a sum and the largest": "double p = 0, q = 0; for (int i = 0; i < n; i++)"
    "{ p += d[i]; if (d[i] >= q) q = d[i]; } r[0] = p; r[1] = q;",
    "of triangles": "for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++)"
    "{ s[i] += A[i][j]; t[i] += A[i][j] * y[j]; }",
}
APART = {
    "other elements": "for (int i = 1; i < n; i++) { o[0] += x[i]; o[1] += x[i - 1]; }",
    "nothing shared": "for (int i = 0; i < n; i++) { o[0] += x[i]; o[1] += y[i]; }",
    "used at many points": "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++)"
    "{ s[i] += A[i][j] * x[j]; t[i] += A[j][i] * x[j]; }",
    "other results": "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++)"
    "{ s[i] += A[i][j]; t[j] += A[i][j]; }",
    "one needs the other": "for (int i = 0; i < n; i++) o[0] += x[i];"
    "for (int i = 0; i < n; i++) o[1] += x[i] * o[0];",
    "one element": "for (int i = 0; i < n; i++) o[0] += x[i]; for (int i = 0; i < n; i++) o[0] *= x[i];",
    "other points": "for (int i = 0; i < n; i++) o[0] += x[i]; for (int i = 0; i < n - 1; i++) o[1] += x[i];",
    "numbers of other sizes": "for (int i = 0; i < n; i++) { r[0] += d[i]; if (d[i] > 2) o[0] += 1; }",
    "places in data": "for (int i = 0; i < n; i++) { o[x[i] % 8] += y[i]; s[0] += x[i]; }",
}


@pytest.mark.parametrize("body", JOINED.values(), ids=JOINED)
def test_joined_into_one(body: str) -> None:
    program = special(body)
    assert len(reductions(program)) > 1
    assert len(reductions(assert_same(program))) == 1


@pytest.mark.parametrize("body", APART.values(), ids=APART)
def test_what_stays_apart(body: str) -> None:
    program = special(body)
    assert len(reductions(program)) == 2
    assert len(reductions(assert_same(program))) == 2


def test_no_more_than_registers_hold() -> None:
    sums = "".join(f"o[{k}] += x[i] * {k + 1};" for k in range(MOST_RESULTS + 1))
    program = special(f"for (int i = 0; i < n; i++) {{ {sums} }}")
    found = reductions(assert_same(program))
    assert sorted(len(node.outputs) for node in found) == [1, MOST_RESULTS]
