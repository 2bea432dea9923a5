"""Parts of a buffer stored in place: the values stay; zeros, sums and copies of whole buffers go."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import Program, evaluate
from polyloom.ir.conversion.to_host_program import host_program
from polyloom.ir.evaluation.programs import evaluate_host


def nodes_of(views: str, body: str) -> int:
    """Compare with the evaluator of tensor programs; return how many nodes the host program has."""
    program: Program = lower(parse(Source("t.lair", f"lair n(): {views} {{ {body} }}")))
    rng, made = np.random.default_rng(0), host_program(program)
    tensors = [program.buffer(name) for name in program.inputs]
    inputs = {t.name: rng.integers(-9, 9, t.extents).astype(t.type.dtype) for t in tensors}
    found, wanted = evaluate_host(made, {}, inputs), evaluate(program, inputs)
    for name in program.outputs:
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)
    return len(made.body)


PLACED = "float32 p[9] float32 q[9] all (i) in (4) p[i] += x[i] * 2"
CASES = {
    "two parts": (
        "float32 x[4], float32 z[5] -> float32 y[9]",
        f"{PLACED} all (i) in (5) q[i + 4] += z[i] all (k) in (9) y[k] = p[k] + q[k]",
        2,
    ),
    "not all of it: one is filled": (
        "float32 x[4], float32 z[5] -> float32 y[9]",
        f"{PLACED} all (i) in (2) q[i + 6] += z[i] all (k) in (9) y[k] = p[k] + q[k]",
        3,
    ),
    "the part that is stored last is added first": (
        "float32 x[4], float32 z[5] -> float32 y[9]",
        f"{PLACED} all (i) in (2) q[i + 6] += z[i] all (k) in (9) y[k] = q[k] + p[k]",
        3,
    ),
    "parts that meet": (
        "float32 x[4], float32 z[5] -> float32 y[9]",
        f"{PLACED} all (i) in (5) q[i + 3] += z[i] all (k) in (9) y[k] = p[k] + q[k]",
        5,
    ),
    "a part with another reader": (
        "float32 x[4], float32 z[5] -> float32 y[9], float32 w[9]",
        f"{PLACED} all (i) in (5) q[i + 4] += z[i] all (k) in (9) y[k] = p[k] + q[k]"
        " all (k) in (9) w[k] = p[8 - k]",
        6,
    ),
    "a part added to what it is added to": (
        "float32 x[4], float32 z[5] -> float32 y[9]",
        f"{PLACED} all (i) in (5) q[i + 4] += z[i] all (k) in (9) y[k] = p[k] + q[8 - k]",
        5,
    ),
    "every second element": (
        "float32 x[4], float32 z[5] -> float32 y[9]",
        "float32 p[9] float32 q[9] all (i) in (4) p[2 * i] += x[i] all (i) in (5) q[i + 4] += z[i]"
        " all (k) in (9) y[k] = p[k] + q[k]",
        5,
    ),
    "a copy that is read": (
        "float32 x[4], float32 z[5] -> float32 y[9], float32 w[4]",
        "float32 a[4] float32 p[9] float32 q[9] all (i) in (4) a[i] = x[i] * 3"
        " all (i) in (4) p[i] += a[i] all (i) in (5) q[i + 4] += z[i] all (k) in (9) y[k] = p[k] + q[k]"
        " all (i) in (4) w[i] = a[3 - i]",
        3,
    ),
    "columns lie apart: the copy stays": (
        "float32 x[3][4] -> float32 y[3][8], float32 w[3][4]",
        "float32 a[3][4] float32 p[3][8] float32 q[3][8] all (r, i) in (3, 4) a[r][i] = x[r][i] * 3"
        " all (r, i) in (3, 4) p[r][i] += a[r][i] all (r, i) in (3, 4) q[r][i + 4] += x[r][i]"
        " all (r, k) in (3, 8) y[r][k] = p[r][k] + q[r][k] all (r, i) in (3, 4) w[r][i] = a[2 - r][i]",
        4,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_stored_in_place(case: str) -> None:
    views, body, nodes = CASES[case]
    assert nodes_of(views, body) == nodes


@pytest.mark.parametrize("seed", range(12))
def test_lists_that_grow(seed: int) -> None:
    """Rows are added in front or behind; each list is read again, mirrored, by what makes the next rows."""
    rng, rows, outputs = Random(seed), 2, list[str]()
    text = "float32 t0[2][3] all (r, c) in (2, 3) t0[r][c] = x[r][c] + 1 "
    for k in range(rng.randint(1, 4)):
        more, after = rng.randint(1, 3), rng.random() < 0.5
        n, low = rows + more, (rows if after else 0)
        text += f"float32 p{k}[{n}][3] float32 q{k}[{n}][3] float32 t{k + 1}[{n}][3] "
        text += f"all (r, c) in ({rows}, 3) p{k}[r + {0 if after else more}][c] += t{k}[r][c] "
        row = rng.randrange(rows)
        text += f"float32 s{k}[{more}][3] all (r, c) in ({more}, 3) s{k}[r][c] = t{k}[{row}][2 - c] "
        text += f"all (r, c) in ({more}, 3) q{k}[r + {low}][c] += s{k}[r][c] * x[0][c] "
        text += f"all (r, c) in ({n}, 3) t{k + 1}[r][c] = p{k}[r][c] + q{k}[r][c] "
        rows = n
        if rng.random() < 0.3:
            outputs.append(f"float32 w{k}[{n}][3]")
            text += f"all (r, c) in ({n}, 3) w{k}[r][c] = t{k + 1}[{n - 1} - r][c] "
    outputs.append(f"float32 y[{rows}][3]")
    text += f"all (r, c) in ({rows}, 3) y[r][c] = t{k + 1}[r][c] * 2"
    made = nodes_of(f"float32 x[2][3] -> {', '.join(outputs)}", text)
    assert made <= 1 + 2 * (k + 1) + len(outputs)
