"""Maps of records as maps of whole ones: which become so, and that every element keeps its value."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from c_host_programs import host_programs_of
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, MdHom
from polyloom.ir.transform.records.unrolled_records import unrolled_records
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.programs import verify
from polyloom.polyhedra.loops.tree import leaves_in
from samples import one_in

N = 40
ARGUMENTS = """int n, float p[n][3], float q[n][3], float r[n][4], float u[n][2], float s[3 * n + 4],
    float a[n], float m[3][3], float t[3][n], float b[n][4][4]"""


def special(body: str) -> HostProgram:
    (program,) = host_programs_of(f"void f({ARGUMENTS}) {{\n#pragma scop\n{body}\n#pragma endscop\n}}")
    return specialise(program, {"n": N})


def maps(program: HostProgram) -> list[MdHom]:
    return [node for node in leaves_in(program.body) if isinstance(node, MdHom)]


def assert_same(program: HostProgram) -> HostProgram:
    """The order of operations is the same, and so are all bits of floats."""
    made = unrolled_records(program)
    verify(made)
    rng = np.random.default_rng(3)
    given = {b.name: rng.standard_normal(b.extents).astype(np.float32) for b in program.given}
    for name, wanted in evaluate_host(program, {}, given).items():
        np.testing.assert_array_equal(evaluate_host(made, {}, given)[name], wanted, err_msg=name)
    return made


def loop(*extents: str) -> str:
    return " ".join(
        f"for (int {x} = 0; {x} < {extent}; {x}++)" for x, extent in zip("ijk", extents, strict=False)
    )


UNROLLED = {
    "a factor for each record": (loop("n", "3") + "q[i][j] = p[i][j] * a[i];", 3),
    "parts in another order": (loop("n", "3") + "q[i][j] = p[i][2 - j];", 3),
    "some parts": (loop("n", "2") + "r[i][j + 1] = u[i][j] * r[i][3];", 2),
    "in one dimension": (loop("n", "3") + "s[3 * i + j + 1] = t[j][i];", 3),
    "what is read has the records": (loop("n", "3") + "t[j][i] = p[i][j] - a[j];", 3),
    "what the part is counts": (loop("n", "3") + "q[i][j] = p[i][j] + a[i] * j;", 3),
    "a matrix for all records": (
        loop("n", "3") + "{ float x = 0; for (int k = 0; k < 3; k++) x += m[j][k] * p[i][k]; q[i][j] = x; }",
        3,
    ),
    "added to what is there": (
        loop("n", "3") + "for (int k = 0; k < 3; k++) q[i][j] += m[j][k] * p[i][k];",
        3,
    ),
    "the largest": (
        loop("n", "2") + "{ float x = p[i][0]; for (int k = 1; k < 3; k++) x = x > p[i][k] ? x : p[i][k];"
        " u[i][j] = x * (j + 1); }",
        2,
    ),
    "some records": (loop("n - 7", "3") + "if (i > 3) q[i + 2][j] = p[i][j] * a[i];", 3),
}

AS_THEY_ARE = {
    "rows that are one with the next": loop("n", "3") + "q[i][j] = p[i][j] * 2;",
    "four of four by four": loop("n", "4", "4") + "b[i][j][k] = b[i][j][k] * a[i] + r[i][k];",
    "few records": "for (int i = 0; i < 8; i++) for (int j = 0; j < 3; j++) q[i][j] = p[i][j] * a[i];",
    "a part decides": loop("n", "3") + "if (i + j > 5) q[i][j] = p[i][j] * a[i];",
    "sums of records as results": loop("n") + "{ float x = 0; for (int j = 0; j < 3; j++) x += p[i][j];"
    " a[i] = x; }",
    "no records": loop("n", "3") + "t[j][i] = t[j][i] * a[i];",
}


@pytest.mark.parametrize("name", UNROLLED)
def test_over_whole_records(name: str) -> None:
    body, results = UNROLLED[name]
    made = maps(assert_same(special(body)))[-1]
    assert (len(made.extents), len(made.outputs)) == (1, results)


@pytest.mark.parametrize("name", AS_THEY_ARE)
def test_what_stays(name: str) -> None:
    program = special(AS_THEY_ARE[name])
    assert assert_same(program) == program


def drawn(rng: Random) -> str:
    """Return a loop over parts of records: of other ones, of arrays, of matrices, of what the part is."""
    target, parts = rng.choice([("q[i][{}]", 3), ("r[i][{}]", 4), ("u[i][{}]", 2), ("s[3 * i + {}]", 3)])
    count = rng.randint(2, parts)
    first = rng.randint(0, parts - count)
    reads = ["p[i][{0} % 3]", "p[i][2]", "a[i]", "t[1][i]", "j", "m[1][1]", f"p[i][{parts} - 2]", "0.5f"]
    if count == 2:
        reads += ["u[i][j]", "u[i][1 - j]", "p[i][j + 1]", "r[i][2 * j + 1]"]
    if count == 3:
        reads += ["p[i][j]", "p[i][2 - j]", "t[j][i]", "m[j][1]", "s[3 * i + j + 1]"]
    chosen = [read.format("j") if "%" not in read else "p[i][1]" for read in rng.choices(reads, k=3)]
    value = f"({chosen[0]} {rng.choice('+-*')} {chosen[1]}) {rng.choice('+-*')} {chosen[2]}"
    sign = rng.choice(["=", "+="])
    body = f"{target.format(f'j + {first}')} {sign} {value};"
    return f"for (int i = {rng.randint(0, 3)}; i < n; i++) for (int j = 0; j < {count}; j++) {body}"


@pytest.mark.parametrize("seed", one_in(10, range(300)))
def test_random_records(seed: int) -> None:
    rng = Random(seed)
    assert_same(special("\n".join(drawn(rng) for _ in range(rng.randint(1, 2)))))
