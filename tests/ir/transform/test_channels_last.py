"""Layouts of local arrays: which axis gets last, where nothing changes, and that results stay the same."""

from __future__ import annotations

from cProfile import Profile
from itertools import pairwise

import numpy as np
import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir.conversion.to_host_program import host_program
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, MdHom
from polyloom.ir.transform.channels_last import with_channels_last
from polyloom.ir.transform.fuse_epilogues import with_finishing_maps
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.native.device import choose, opened
from polyloom.mdh.native.execution import NativeExecutable
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter

PADDED = "float32 p[8][6][7] all (c, h, w) in (8, 4, 5) p[c][h + 1][w + 1] += x[c][h][w]"
WINDOWS = "all (k, c, h, w, r, s) in (9, 8, 4, 5, 3, 3) y[k][h][w] += p[c][h + r][w + s] * W[k][c][r][s]"
DEPTHWISE = "all (c, h, w, r, s) in (8, 2, 3, 3, 3) d[c][h][w] += p[c][2 * h + r][2 * w + s] * V[c][r][s]"
POOLED = "all (c, h, w) in (8, 2, 3) y[c] max= abs(d[c][h][w])"

CASES = {
    "padded, and windows": (
        "float32 x[8][4][5], float32 W[9][8][3][3] -> float32 y[9][4][5]",
        f"{PADDED} {WINDOWS}",
        {"p": (6, 7, 8)},
    ),
    "in steps of two, with the channel that it has": (
        "float32 x[8][4][5], float32 V[8][3][3] -> float32 y[8]",
        f"{PADDED} float32 d[8][2][3] {DEPTHWISE} {POOLED}",
        {"p": (6, 7, 8), "d": (2, 3, 8)},
    ),
    "no: few channels": (
        "float32 x[2][4] -> float32 y[2][3]",
        "float32 q[2][1][6] all (c, w) in (2, 4) q[c][0][w + 1] += x[c][w]"
        " all (c, w, s) in (2, 3, 3) y[c][w] += q[c][0][w + s]",
        {"q": (2, 1, 6)},
    ),
    "no: point by point already": (
        "float32 x[8][4][5] -> float32 y[8][4][5], float32 z[5][4][8]",
        "float32 p[8][4][5] all (c, h, w) in (8, 4, 5) p[c][h][w] = x[c][h][w] + 1"
        " all (c, h, w) in (8, 4, 5) y[c][h][w] = p[c][h][w] * 2"
        " all (w, h, c) in (5, 4, 8) z[w][h][c] = p[c][h][w] * 3",
        {"p": (8, 4, 5)},
    ),
    "no: rows in pieces": (
        "float32 x[9][2][15] -> float32 y[9][2][3][5]",
        "float32 p[9][2][15] all (t, b, k) in (9, 2, 15) p[t][b][k] = x[t][b][k] * 2"
        " all (t, b, h, d) in (9, 2, 3, 5) y[t][b][h][d] = p[t][b][5 * h + d] + 1",
        {"p": (9, 2, 15)},
    ),
    "no: windows along all axes": (
        "float32 x[9][8][7] -> float32 y[7][6][5]",
        "float32 p[9][8][7] all (c, h, w) in (9, 8, 7) p[c][h][w] = x[c][h][w] + 1"
        " all (c, h, w, q, r, s) in (7, 6, 5, 3, 3, 3) y[c][h][w] += p[c + q][h + r][w + s]",
        {"p": (9, 8, 7)},
    ),
}


def program_of(views: str, body: str) -> HostProgram:
    return host_program(lower(parse(Source("t.lair", f"lair n(): {views} {{ {body} }}"))))


def inputs_of(program: HostProgram, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {b.name: rng.integers(-9, 9, b.extents).astype(b.type.dtype) for b in program.given}


@pytest.mark.parametrize("name", CASES)
def test_the_axis_without_windows_is_last(name: str) -> None:
    views, body, shapes = CASES[name]
    program = program_of(views, body)
    made = with_channels_last(program)
    assert {b: made.buffer(b).extents for b in shapes} == shapes
    others = [b for b in program.buffers if b.name not in shapes]
    assert all(made.buffer(b.name) == b for b in others)
    inputs = inputs_of(program)
    found, wanted = (evaluate_host(p, {}, inputs) for p in (made, program))
    for result in program.results:
        np.testing.assert_array_equal(found[result], wanted[result])


def test_results_are_gone_through_as_they_lie() -> None:
    views, body, _ = CASES["in steps of two, with the channel that it has"]
    made = with_channels_last(program_of(views, body))
    orders = {n.outputs[0].buffer: n.iterators for n in made.body if isinstance(n, MdHom) and n.inputs}
    assert orders == {"p": ("h", "w", "c"), "d": ("h", "w", "c", "r", "s"), "y": ("c", "h", "w")}


@pytest.mark.parametrize("finish", ["", " all (c, h, w) in (8, 4, 5) g[c][h][w] = abs(s0[c][h][w])"])
def test_sums_are_stored_in_padding_where_rows_are_channels(finish: str) -> None:
    """Products of points and channels need a loop more then, and have rows as long as before."""
    sums = "s0" if finish else "g"
    text = (
        f"float32 {sums}[8][4][5] all (c, e, h, w) in (8, 3, 4, 5) {sums}[c][h][w] += x[e][h][w] * U[c][e]"
        f"{' float32 g[8][4][5]' if finish else ''}{finish}"
        f" float32 p[8][6][7] all (c, i, j) in (8, 4, 5) p[c][i + 1][j + 1] += g[c][i][j] {WINDOWS}"
    )
    program = program_of(
        "float32 x[3][4][5], float32 U[8][3], float32 W[9][8][3][3] -> float32 y[9][4][5]", text
    )
    made = with_finishing_maps(with_channels_last(program))
    assert len(program.body) == 4
    assert [n.outputs[0].buffer for n in made.body if isinstance(n, MdHom)] == ["p", "p", "y"]
    inputs = inputs_of(program)
    np.testing.assert_array_equal(
        evaluate_host(made, {}, inputs)["y"], evaluate_host(program, {}, inputs)["y"]
    )


@pytest.mark.slow
@pytest.mark.ci
def test_padding_is_filled_once_on_the_processor() -> None:
    """What padded arrays have around their middles stays, though some are never needed together."""
    around = "(c, h, w) in (8, 40, 40)"
    tensors = " ".join(f"float32 {p}[8][42][{44 if p == 'q' else 42}]" for p in "pqtu")
    tensors += " " + " ".join(f"float32 {name}[8][40][40]" for name in "gve")
    body = (
        f"{tensors} all {around} p[c][h + 1][w + 1] += x[c][h][w]"
        " all (k, c, h, w, r, s) in (8, 8, 40, 40, 3, 3) g[k][h][w] += p[c][h + r][w + s] * W[k][c][r][s]"
        f" all {around} q[c][h + 1][w + 2] += g[c][h][w]"
        " all (c, h, w, r, s) in (8, 40, 40, 3, 5) v[c][h][w] += q[c][h + r][w + s]"
        f" all {around} t[c][h + 2][w + 2] += v[c][h][w]"
        " all (c, h, w, r, s) in (8, 40, 40, 3, 3) e[c][h][w] += t[c][h + r][w + s]"
        f" all {around} u[c][h + 1][w + 1] += e[c][h][w]"
        " all (c, h, w, r, s) in (8, 40, 40, 3, 3) y[c][h][w] += u[c][h + r][w + s]"
    )
    program = program_of("float32 x[8][40][40], float32 W[8][8][3][3] -> float32 y[8][40][40]", body)
    made = with_finishing_maps(with_channels_last(program))
    emitter, device = TunedEmitter(None), opened(choose("native", threads=2))
    executable = NativeExecutable(made, device, emitter.schedule)
    compiled = CompiledProgram(made, executable, emitter)
    for seed in range(3):
        inputs = inputs_of(program, seed)
        run = compiled.run(timed=True, **inputs)
        assert len(run.events) == 5
        np.testing.assert_array_equal(run.arrays["y"], evaluate_host(program, {}, inputs)["y"])
    kept = executable.prepared({}, timed=True).kept
    assert {p for p in "qtu" if np.shares_memory(kept["p"], kept[p])} == {"u"}


def calls_for(layers: int) -> int:
    """Return how many calls of functions a chain of layers with windows takes."""
    names = ["x", *(f"p{k}" for k in range(layers)), "y"]
    text = f"lair f() : float32 x[8][1][{layers + 4}] -> float32 y[8][1][3] {{"
    for k, (before, name) in enumerate(pairwise(names)):
        width = layers + 3 - k
        text += f" float32 {name}[8][1][{width}]" if name != "y" else ""
        text += f" all (c, w, s) in (8, {width}, 2) {name}[c][0][w] += {before}[c][0][w + s]"
    program = host_program(lower(parse(Source("f.lair", text + " }")), None, {}))
    with Profile() as profile:
        with_channels_last(program)
    return sum(entry.callcount for entry in profile.getstats())


def test_work_grows_with_the_layers_not_with_their_square() -> None:
    assert calls_for(48) < 2.05 * calls_for(24)
