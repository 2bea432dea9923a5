"""Host loops in trapezoids: whatever order threads take, the program leaves what it did before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest

import polyloom
from compiled_c import compiled
from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostNode, HostProgram
from polyloom.ir.integers import holds, integer
from polyloom.ir.transform.specialise import specialise, specialise_nodes
from polyloom.mdh.lowering.pieces.affine import affine_pieces
from polyloom.mdh.lowering.time_tiles.choose import with_time_tiles
from polyloom.mdh.lowering.time_tiles.sizes import Shape, TimeCost
from polyloom.mdh.native import execution
from polyloom.mdh.native.device import choose
from polyloom.polyhedra.loops.tree import Loop, nodes_in
from polyloom.scop.transform import host_program
from processors import known_processor


def text_of(rng: Random) -> str:
    """Return a stencil in C on unsigned numbers: radius, arrays, statements and borders at random."""
    arrays = ["A", "B", "C"][: rng.randint(2, 3)]
    lines = []
    for target in arrays:
        low = [rng.randint(1, 3) for _ in range(4)]
        far = rng.randint(0, min(low))
        others = [a for a in arrays if a != target]
        reads = []
        for _ in range(3):
            i, j = (f"{rng.randint(-far, far):+}" for _ in "ij")
            reads.append(f"{rng.randint(2, 9)} * {rng.choice(others)}[i{i}][j{j}]")
        own = f" + {rng.randint(2, 9)} * {target}[i][j]" if rng.random() < 0.5 else ""
        lines.append(f"for (int i = {low[0]}; i < n - {low[1]}; i++)")
        lines.append(f"  for (int j = {low[2]}; j < m - {low[3]}; j++)")
        lines.append(f"    {target}[i][j] = {' + '.join(reads)}{own};")
        if rng.random() < 0.3:
            lines.append(f"for (int j = 0; j < m; j++) {target}[0][j] = f[t];")
    given = ", ".join(f"unsigned {a}[n][m]" for a in arrays)
    body = "\n    ".join(lines)
    return f"""void stencil(int T, int n, int m, {given}, unsigned f[T]) {{
#pragma scop
  for (int t = 0; t < T; t++) {{
    {body}
  }}
#pragma endscop
}}
"""


WAVE = """void stencil(int T, int n, int m, unsigned u[3][n][m]) {
#pragma scop
  for (int t = 0; t < T; t++)
    for (int i = 2; i < n - 1; i++)
      for (int j = 1; j < m - 2; j++)
        u[(t+2)%3][i][j] = 2 * u[(t+1)%3][i][j] - u[t%3][i][j] + 3 * u[(t+1)%3][i-2][j]
                         + 5 * u[(t+1)%3][i][j+2] + 7 * u[(t+1)%3][i+1][j-1];
#pragma endscop
}
"""
LINE = """void stencil(int T, int n, int m, unsigned a[n], unsigned b[n]) {
#pragma scop
  for (int t = 0; t < T; t++) {
    for (int i = 1; i < n - 1; i++) b[i] = a[i-1] + 3 * a[i] + 5 * a[i+1];
    for (int i = 1; i < n - 1; i++) a[i] = b[i];
  }
#pragma endscop
}
"""


def shape(rng: Random, cost: TimeCost) -> Shape | None:
    """Return any shape that there is room for."""
    axes = rng.choice(list(cost.choices()) or [()])
    if not axes:
        return None
    widths = {axis: rng.randint(2, 24) for axis in axes}
    most = min(cost.highest(axis, width) for axis, width in widths.items())
    return Shape(widths, rng.randint(2, most), 0.0) if most > 1 else None


def in_any_order(nodes: Sequence[HostNode], rng: Random) -> Iterator[HostNode]:
    """Yield the leaves as they run, iterations of parallel loops in any order."""
    for node in nodes:
        if not isinstance(node, Loop):
            yield from specialise_nodes((node,), {})
            continue
        values, at = [], integer(node.start, {})
        while holds(node.condition, {node.iterator: at}):
            values.append(at)
            at += integer(node.step, {})
        if node.parallel:
            rng.shuffle(values)
        for value in values:
            yield from in_any_order(specialise_nodes(node.body, {node.iterator: value}), rng)


def made(text: str, sizes: dict[str, int]) -> HostProgram:
    program = host_program(next(iter(read_c(Source("stencil.c", text))))).program
    return specialise(program, {p.name: sizes[p.name] for p in program.parameters})


def arrays_of(text: str, sizes: dict[str, int], seed: int) -> dict[str, np.ndarray]:
    """Return numbers for the arrays of the C function, in the order of its parameters."""
    numbers = np.random.default_rng(seed)
    head = text[: text.index("{")]
    shapes = {
        name: [int(e) if e.isdigit() else sizes[e] for e in re.findall(r"\w+", extents)]
        for name, extents in re.findall(r"unsigned (\w+)((?:\[\w+\])+)", head)
    }
    return {n: numbers.integers(0, 2**32, extents, dtype=np.uint32) for n, extents in shapes.items()}


@pytest.mark.parametrize("seed", range(6))
def test_any_order_of_trapezoids_leaves_the_same(seed: int) -> None:
    rng = Random(seed)
    text = (WAVE, LINE)[seed] if seed < 2 else text_of(rng)
    sizes = {"T": rng.randint(2, 9), "n": rng.randint(8, 30), "m": rng.randint(8, 30)}
    program = made(text, sizes)
    tiled = next(
        found
        for _ in range(100)
        if (found := with_time_tiles(program, choose("native", threads=2), lambda c: shape(rng, c)).program)
        != program
    )
    assert any(isinstance(node, Loop) and node.parallel for node in nodes_in(tiled.body))
    given = arrays_of(text, sizes, seed)
    given = {b.name: given[b.name] for b in program.given}
    wanted = evaluate_host(program, {}, given)
    flat = replace(tiled, body=tuple(in_any_order(tiled.body, rng)))
    for name, found in evaluate_host(flat, {}, given).items():
        np.testing.assert_array_equal(found, wanted[name])


RING = """void stencil(int T, int n, int m, unsigned A[n], unsigned B[n]) {
#pragma scop
  for (int t = 0; t < T; t++) {
    for (int i = 0; i < n; i++) B[i] = A[(i + n - 2) % n] + 3 * A[i] + 5 * A[(i + 1) % n];
    for (int i = 0; i < n; i++) A[i] = 3 * B[i == 0 ? n - 1 : i - 1] + B[i] + 7 * B[i == n - 1 ? 0 : i + 1];
  }
#pragma endscop
}
"""
TORUS = """void stencil(int T, int n, int m, unsigned A[n][m], unsigned B[n][m]) {
#pragma scop
  for (int t = 0; t < T; t++) {
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++)
      B[i][j] = A[(i + 1) % n][j] + 3 * A[i][(j + m - 1) % m] + 5 * A[i == 0 ? n - 1 : i - 1][j] + B[i][j];
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[i][j] = B[i][j];
  }
#pragma endscop
}
"""
GHOSTS = """void stencil(int T, int n, int m, unsigned A[n][m], unsigned B[n][m]) {
#pragma scop
  for (int t = 0; t < T; t++) {
    for (int j = 1; j < m - 1; j++) { A[0][j] = A[n - 2][j]; A[n - 1][j] = A[1][j]; }
    for (int i = 1; i < n - 1; i++) for (int j = 1; j < m - 1; j++)
      B[i][j] = A[i - 1][j] + 3 * A[i][j - 1] + 5 * A[i][j + 1] + 7 * A[i + 1][j];
    for (int i = 1; i < n - 1; i++) for (int j = 1; j < m - 1; j++) A[i][j] = B[i][j];
  }
#pragma endscop
}
"""


@pytest.mark.parametrize(("text", "n"), [(RING, 41), (RING, 40), (TORUS, 33), (GHOSTS, 34)])
def test_trapezoids_of_rings_leave_the_same_in_any_order(text: str, n: int) -> None:
    rng, sizes = Random(n), {"T": 7, "n": n, "m": 6}
    program = made(text, sizes)
    pieces = affine_pieces(program)
    tiled = with_time_tiles(pieces, choose("native", threads=2), lambda cost: folded(rng, cost)).program
    assert any(isinstance(node, Loop) and node.parallel for node in nodes_in(tiled.body))
    given = arrays_of(text, sizes, n)
    given = {b.name: given[b.name] for b in program.given}
    wanted = evaluate_host(program, {}, given)
    flat = replace(tiled, body=tuple(in_any_order(tiled.body, rng)))
    for name, found in evaluate_host(flat, {}, given).items():
        np.testing.assert_array_equal(found, wanted[name])


def folded(rng: Random, cost: TimeCost) -> Shape | None:
    """Return any shape along an axis that is folded."""
    axes = set(cost.loop.folded) & set(cost.sides)
    if not axes:
        return None
    width = rng.randint(8, 14)
    most = min(cost.highest(axis, width) for axis in axes)
    return Shape(dict.fromkeys(axes, width), rng.randint(2, most), 0.0) if most > 1 else None


def test_a_choice_that_does_not_fit_is_refused() -> None:
    """Steps that trapezoids have no room for: the loop stays as it is."""
    program = made(LINE, {"T": 9, "n": 60, "m": 1})

    def too_high(cost: TimeCost) -> Shape:
        (axis,) = cost.sides
        return Shape({axis: 4}, 5, 0.0)

    found = with_time_tiles(program, choose("native", threads=2), too_high)
    assert found.program == program


def test_only_what_caches_do_not_hold_is_tiled() -> None:
    device = choose("native", threads=2)
    device = replace(device, caches=(32 << 10, 1 << 20, 16 << 20))
    small, large = (made(LINE, {"T": 100, "n": n, "m": 1}) for n in (1_500, 20_000_000))
    assert with_time_tiles(small, device).program == small
    assert with_time_tiles(large, device).program != large


PLANES = """void stencil(int T, int n, int m, double A[n][m], double B[n][m]) {
#pragma scop
  for (int t = 0; t < T; t++) {
    for (int i = 1; i < n - 1; i++) for (int j = 1; j < m - 1; j++)
      B[i][j] = 0.2 * (A[i][j] + A[i][j-1] + A[i][j+1] + A[i-1][j] + A[i+1][j]);
    for (int i = 1; i < n - 1; i++) for (int j = 1; j < m - 1; j++)
      A[i][j] = 0.2 * (B[i][j] + B[i][j-1] + B[i][j+1] + B[i-1][j] + B[i+1][j]);
  }
#pragma endscop
}
"""


@pytest.mark.parametrize("vendor", ["AuthenticAMD", "GenuineIntel"])
def test_what_the_second_caches_hold_is_not_tiled(vendor: str) -> None:
    """Data stay there from step to step: trapezoids save no traffic that takes longer than they do."""
    device = replace(known_processor(2), vendor=vendor, vector_bytes=64, caches=(48 << 10, 2 << 20, 64 << 20))
    small, large = (made(PLANES, {"T": 50, "n": n, "m": n}) for n in (300, 4000))
    assert with_time_tiles(small, device).program == small
    assert with_time_tiles(large, device).program != large


def test_where_the_last_cache_is_fast_what_it_holds_is_not_tiled() -> None:
    """Both arrays take 7 MB, of a last cache of 32: whether tiles pay follows from what it delivers."""
    slow = replace(
        known_processor(2), vendor="GenuineIntel", vector_bytes=64, caches=(48 << 10, 1 << 20, 32 << 20)
    )
    program = made(PLANES, {"T": 50, "n": 660, "m": 660})
    assert with_time_tiles(program, slow).program != program
    fast = replace(slow, vendor="AuthenticAMD")
    assert with_time_tiles(program, fast).program == program


def test_planes_of_an_array_are_arrays_of_their_own_in_traffic() -> None:
    found: list[float] = []
    for text in (
        WAVE,
        WAVE.replace("u[3][n][m]", "u[3][n][m], unsigned v[n][m]").replace("u[t%3][i][j]", "v[i][j]"),
    ):
        program = made(text, {"T": 9, "n": 3000, "m": 3000})

        def untiled(cost: TimeCost) -> None:
            (hom,) = cost.loop.homs
            found.append(cost._moved(hom))

        with_time_tiles(program, known_processor(1), untiled)
    assert found[0] == found[1] > 0


def test_sweeps_too_small_to_be_shared_are_tiled_for_several_threads() -> None:
    """The first cache holds all. Trapezoids are low: in the second phase there are three for two threads."""
    device = replace(known_processor(2), caches=(1 << 20, 2 << 20, 16 << 20))
    program = made(LINE, {"T": 1000, "n": 8_000, "m": 1})
    found: list[tuple[TimeCost, Shape]] = []

    def best(cost: TimeCost) -> Shape | None:
        shape = cost.best()
        found.extend([(cost, shape)] if shape is not None else [])
        return shape

    assert with_time_tiles(program, device, best).program != program
    ((cost, chosen),) = found
    ((axis, width),) = chosen.widths.items()
    assert chosen.height <= cost.highest(axis, width) // 2
    assert with_time_tiles(program, replace(device, compute_units=1)).program == program


@pytest.mark.slow
@pytest.mark.ci
def test_what_the_last_cache_may_hold_is_served_by_it_in_part() -> None:
    """Time without tiles rises with the arrays, and does not jump where the cache might be too small."""
    device = replace(known_processor(1), caches=(32 << 10, 1 << 20, 16 << 20))
    found: list[float] = []

    def untiled(cost: TimeCost) -> None:
        found.append(cost.untiled)

    elements = [int(300_000 * 1.1**k) for k in range(21)]
    for n in elements:
        with_time_tiles(made(LINE, {"T": 9, "n": n, "m": 1}), device, untiled)
    ratio = device.costs.kernels.bytes_per_cycle[1] / device.costs.kernels.bytes_per_cycle[2]
    assert all(1.0 < b / a < 1.1 + 0.1 * ratio for a, b in pairwise(found))
    assert found[-1] / elements[-1] > 2 * found[0] / elements[0]


NATIVE = [(WAVE, {0: 9, 1: 12}, 3), (LINE, {0: 40}, 9), (text_of(Random(3)), {1: 24}, 2)]


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("number", range(len(NATIVE)))
def test_threads_leave_what_gcc_leaves(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, widths, height = NATIVE[number]

    def chosen(cost: TimeCost) -> Shape:
        assert cost.sides.keys() >= widths.keys()
        return Shape(widths, height, 0.0)

    def forced(program: HostProgram, device: object) -> object:
        return with_time_tiles(program, choose("native", threads=2), chosen)

    monkeypatch.setattr(execution, "with_time_tiles", forced)
    (tmp_path / "stencil.c").write_text(text)
    found = polyloom.compile(str(tmp_path / "stencil.c"), device="native", threads=2)
    wanted = compiled(text, "stencil", tmp_path)
    for n, m in ((8, 9), (23, 33), (64, 70)):
        sizes = {"T": 11, "n": n, "m": m}
        given = arrays_of(text, sizes, n)
        left = {name: array.copy() for name, array in given.items()}
        found(**sizes, **left)
        for name, array in wanted({**sizes, **given}).items():
            np.testing.assert_array_equal(left[name], array)
