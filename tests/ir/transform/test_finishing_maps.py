"""Maps as the end of md_homs: what joins, what does not, and that results stay what they were."""

from __future__ import annotations

import cProfile
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import Program, evaluate
from polyloom.ir.conversion.to_host_program import host_program
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.expressions import Constant, Expression, walk
from polyloom.ir.host import HostProgram, MdHom, expressions_of
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.transform import fuse_epilogues
from polyloom.ir.verification.written_elements import verify_writes
from random_tests import tried
from strategies import data, programs

JOINED = {
    "a sum and its scale": (
        "float32 x[4][5], float32 s[4] -> float32 y[4]",
        "float32 h[4] all (i, k) in (4, 5) h[i] += x[i][k] all (i) in (4) y[i] = h[i] * s[i]",
        1,
    ),
    "several maps": (
        "float32 x[4][5], float32 s[4] -> float32 y[4]",
        "float32 h[4] float32 g[4] all (i, k) in (4, 5) h[i] += x[i][k] all (j) in (4) g[j] = h[j] * s[j]"
        " all (i) in (4) y[i] = max(g[i], 0)",
        1,
    ),
    "a result read twice": (
        "float32 x[4] -> float32 y[4]",
        "float32 h[4] all (i) in (4) h[i] = x[i] + 1 all (i) in (4) y[i] = h[i] * h[i]",
        1,
    ),
    "the later of two": (
        "float32 x[4][5], float32 z[4][6] -> float32 y[4]",
        "float32 g[4] float32 h[4] all (i, k) in (4, 5) h[i] += x[i][k] all (i, k) in (4, 6) g[i] += z[i][k]"
        " all (i) in (4) y[i] = h[i] + g[i]",
        2,
    ),
    "turned": (
        "float32 x[4][5], float32 w[5][3] -> float32 y[3][4]",
        "float32 h[4][3] all (i, j, k) in (4, 3, 5) h[i][j] += x[i][k] * w[k][j]"
        " all (j, i) in (3, 4) y[j][i] = h[i][j] * 2",
        1,
    ),
    "not: turned where rows would break": (
        "float32 x[4][3][5] -> float32 y[3][4]",
        "float32 h[4][3] all (i, j, k) in (4, 3, 5) h[i][j] += x[i][j][k]"
        " all (j, i) in (3, 4) y[j][i] = h[i][j] * 2",
        2,
    ),
    "one point more": (
        "float32 x[4][5] -> float32 y[1][4]",
        "float32 h[4][1] all (i, k) in (4, 5) h[i][0] += x[i][k] all (b, i) in (1, 4) y[b][i] = h[i][b] + 1",
        1,
    ),
    "into padding where rows stay rows": (
        "float32 x[4][5] -> float32 y[6]",
        "float32 h[4] all (i, k) in (4, 5) h[i] += x[i][k] all (i) in (4) y[i + 1] += h[i]",
        2,
    ),
    "a map of all points feeds a sum": (
        "float32 x[4][5], float32 s[5] -> float32 y[4]",
        "float32 h[4][5] all (i, k) in (4, 5) h[i][k] = x[i][k] * s[k]"
        " all (i, k) in (4, 5) y[i] += abs(h[i][k])",
        1,
    ),
    "a sum, a map, a sum": (
        "float32 x[4][5][2] -> float32 y[4]",
        "float32 h[4][5] float32 g[4][5] all (i, j, k) in (4, 5, 2) h[i][j] += x[i][j][k]"
        " all (i, j) in (4, 5) g[i][j] = h[i][j] + 1 all (i, j) in (4, 5) y[i] max= g[i][j]",
        2,
    ),
    "not: each point is needed several times": (
        "float32 x[4][5], float32 w[5][3] -> float32 y[4][3]",
        "float32 h[4][5] all (i, k) in (4, 5) h[i][k] = x[i][k] + 1"
        " all (i, j, k) in (4, 3, 5) y[i][j] += h[i][k] * w[k][j]",
        2,
    ),
    "not: neighbours": (
        "float32 x[4][5] -> float32 y[3]",
        "float32 h[4] all (i, k) in (4, 5) h[i] += x[i][k] all (i) in (3) y[i] = h[i + 1]",
        2,
    ),
    "not: a part": (
        "float32 x[4][5] -> float32 y[3]",
        "float32 h[4] all (i, k) in (4, 5) h[i] += x[i][k] all (i) in (3) y[i] = h[i]",
        2,
    ),
    "not: read again": (
        "float32 x[4][5] -> float32 y[4], float32 z[4]",
        "float32 h[4] all (i, k) in (4, 5) h[i] += x[i][k] all (i) in (4) y[i] = h[i] + 1"
        " all (i) in (4) z[i] = h[i] + 2",
        3,
    ),
    "not: an output": (
        "float32 x[4][5] -> float32 y[4], float32 z[4]",
        "all (i, k) in (4, 5) z[i] += x[i][k] all (i) in (4) y[i] = z[i] + 1",
        2,
    ),
    "not: spread": (
        "float32 x[4][5] -> float32 y[4][2]",
        "float32 h[4] all (i, k) in (4, 5) h[i] += x[i][k] all (i, j) in (4, 2) y[i][j] = h[i] + 1",
        2,
    ),
    "not: a row would break": (
        "float32 x[4][4], float32 w[3] -> float32 y[6][6]",
        "float32 h[4][4] all (i, j, k) in (4, 4, 3) h[i][j] += x[i][j] * w[k]"
        " all (i, j) in (4, 4) y[i + 1][j + 1] += h[i][j]",
        3,
    ),
    "not: half precision is rounded in between": (
        "float16 x[4][5] -> float16 y[4]",
        "float16 h[4] all (i, k) in (4, 5) h[i] += x[i][k] all (i) in (4) y[i] = h[i] * h[i]",
        2,
    ),
}


def program_of(views: str, body: str) -> Program:
    return lower(parse(Source("t.lair", f"lair n(): {views} {{ {body} }}")))


@pytest.mark.parametrize("case", JOINED)
def test_what_joins(case: str) -> None:
    views, body, nodes = JOINED[case]
    program = program_of(views, body)
    host = host_program(program)
    assert len(host.body) == nodes
    left = {view.buffer for n in host.body if isinstance(n, MdHom) for view in (*n.inputs, *n.outputs)}
    assert {b.name for b in host.buffers} == left
    inputs = data(program, 5, integers=True)
    expected = evaluate(program, inputs)
    for name, array in evaluate_host(host, {}, inputs).items():
        assert np.array_equal(array, expected[name])


@tried(60)
@given(programs(guarded=True), st.integers(0, 2**32))
def test_random_programs_keep_their_meaning(program: Program, seed: int) -> None:
    inputs: dict[str, Any] = data(program, seed, integers=True)
    expected = evaluate(program, inputs)
    for name, array in evaluate_host(host_program(program), {}, inputs).items():
        if array.dtype.kind != "f":
            assert np.array_equal(array, expected[name]), name
            continue
        wanted = expected[name].astype(np.float64)
        largest = np.abs(wanted, where=np.isfinite(wanted), out=np.zeros_like(wanted)).max(initial=0)
        error = 8 * np.finfo(array.dtype).eps * largest  # sums in another order
        assert np.allclose(array.astype(np.float64), wanted, rtol=0, atol=error, equal_nan=True), name


def test_long_ends_do_not_grow_without_bound() -> None:
    maps = " ".join(f"all (i) in (4) h{k + 1}[i] = h{k}[i] * h{k}[i] + 1" for k in range(20))
    local = " ".join(f"float32 h{k}[4]" for k in range(20))
    body = f"{local} all (i) in (4) h0[i] = x[i] {maps} ".replace("h20[", "y[")
    host = host_program(program_of("float32 x[4] -> float32 y[4]", body))
    assert 1 < len(host.body) <= 10


@pytest.mark.slow
@pytest.mark.ci
def test_long_chains_of_maps_are_joined_in_time() -> None:
    """Calls of functions are counted, not seconds: expressions are as deep as they are long."""
    maps = 150
    lines = [f"  all (i) in (8)\n    t{k}[i] = t{k - 1}[i] + b{k}[i]" for k in range(1, maps)]
    given = ", ".join(f"float32 b{k}[8]" for k in range(1, maps))
    text = f"lair f(): float32 t0[8], {given} -> float32 t{maps - 1}[8]\n{{\n" + "\n".join(lines) + "\n}\n"
    program = lower(parse(Source("f.lair", text)), "f", {})
    profile = cProfile.Profile()
    profile.runcall(host_program, program)
    assert sum(entry.callcount for entry in profile.getstats()) < 20_000 * maps


def layers(ends: list[str]) -> Program:
    """Return a program of as many layers: a sum of each row, and a map that ends it."""
    names = range(len(ends))
    given = ", ".join(f"float32 x{k}[4][5]" for k in names)
    made = ", ".join(f"float32 y{k}[4]" for k in names)
    local = " ".join(f"float32 h{k}[4]" for k in names)
    sums = " ".join(f"all (i, k) in (4, 5) h{n}[i] += x{n}[i][k]" for n in names)
    maps = " ".join(f"all (i) in (4) y{n}[i] = {end.format(f'h{n}[i]')}" for n, end in enumerate(ends))
    return program_of(f"{given} -> {made}", f"{local} {sums} {maps}")


def test_equal_layers_are_proved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    proved: list[Any] = []

    def counted(*nodes: Any) -> None:
        proved.append(nodes)
        verify_writes(*nodes)

    monkeypatch.setattr(fuse_epilogues, "verify_writes", counted)
    program = layers(["{} * 2 + 1"] * 6 + ["{} * 2 - 1"] * 3)
    host = host_program(program)
    assert len(host.body) == 9 and len(proved) == 2
    assert [n.name for n in host.body if isinstance(n, MdHom)] == [s.name for s in program.body[9:]]
    inputs = data(program, 3, integers=True)
    expected = evaluate(program, inputs)
    for name, array in evaluate_host(host, {}, inputs).items():
        assert np.array_equal(array, expected[name])


@pytest.mark.parametrize("other", [-0.0, 2.0])
def test_layers_that_differ_stay_what_they_are(other: float) -> None:
    """0.0 and -0.0 are equal."""

    def changed(part: Expression) -> Expression | None:
        return replace(part, value=other) if isinstance(part, Constant) and part.value == 1 else None

    def constants(host: HostProgram) -> list[str]:
        return [
            str([p.value for e in expressions_of(n) for p in walk(e) if isinstance(p, Constant)])
            for n in host.body
            if isinstance(n, MdHom)
        ]

    program = layers(["max({}, 0.0)", "max({}, 1.0)"])
    body = tuple(s.changed(expression=rebuilt(s.expression, changed)) for s in program.body)
    assert constants(host_program(replace(program, body=body))) == ["[0.0]", f"[{other}]"]
