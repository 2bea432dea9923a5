"""Sequential loops as waves of tiles: whatever order threads take, the program leaves what it did before."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from test_tiles_across_time import arrays_of, in_any_order

import polyloom
from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, Nest
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.lowering.time_tiles import wavefronts
from polyloom.mdh.lowering.time_tiles.wavefronts import (
    BEGINNING,
    Wave,
    WaveCost,
    rows_of,
    touched_by,
    with_wavefronts,
)
from polyloom.mdh.native.device import choose
from polyloom.polyhedra.loops.tree import Loop, nodes_in
from polyloom.polyhedra.loops.wavefronts import skew_of
from polyloom.scop.transform import serial_program


def text_of(rng: Random) -> str:
    """Return Gauss-Seidel's method with neighbours at random, some rows shorter than others."""
    reads = " + ".join(
        f"{rng.randint(2, 9)} * A[i{rng.randint(-2, 2):+}][j{rng.randint(-2, 2):+}]" for _ in range(4)
    )
    first = rng.choice(("2", "2 + t % 3", "2 + t"))
    last = rng.choice(("n - 2", "n - 2 - t"))
    inner = rng.choice((f"B[i] = A[i][2] + 3 * B[i{rng.randint(-2, 1):+}];", ""))
    return f"""void sweep(int T, int n, int m, unsigned A[n][m], unsigned B[n]) {{
#pragma scop
  for (int t = 0; t < T; t++)
    for (int i = {first}; i < {last}; i++) {{
      {inner}
      for (int j = 2; j < m - 2; j++)
        A[i][j] = {reads} + B[i];
    }}
#pragma endscop
}}
"""


TABLE = """void table(int n, int m, unsigned a[n], unsigned b[m], unsigned best[n + 1][m + 1]) {
#pragma scop
  for (int i = 1; i <= n; i++)
    for (int j = 1; j <= m; j++)
      best[i][j] = a[i - 1] == b[j - 1] ? best[i - 1][j - 1] + 1
                   : best[i - 1][j] > best[i][j - 1] ? best[i - 1][j] : best[i][j - 1];
#pragma endscop
}
"""
BACKWARDS = """void far(int T, int n, unsigned a[n]) {
#pragma scop
  for (int t = 0; t < T; t++)
    for (int i = 0; i < n; i++)
      a[i] = 3 * a[i] + a[n - 1 - i];
#pragma endscop
}
"""


def in_order(text: str, sizes: dict[str, int]) -> HostProgram:
    """Return a program with all of its loops in one nest."""
    program = serial_program(next(iter(read_c(Source("sweep.c", text)))))
    return specialise(program, {p.name: sizes[p.name] for p in program.parameters})


def in_waves(program: HostProgram, monkeypatch: pytest.MonkeyPatch, height: int, width: int) -> HostProgram:
    monkeypatch.setattr(WaveCost, "best", lambda self: Wave(self.skew, height, width))
    return with_wavefronts(program, choose("native", threads=2))


def check(text: str, sizes: dict[str, int], rng: Random, monkeypatch: pytest.MonkeyPatch) -> None:
    program = in_order(text, sizes)
    found = in_waves(program, monkeypatch, rng.randint(1, 5), rng.randint(1, 7))
    assert any(isinstance(node, Loop) and node.parallel for node in nodes_in(found.body)), text
    given = arrays_of(text.replace("n + 1", "n1").replace("m + 1", "m1"), sizes, 1)
    given = {b.name: given[b.name] for b in program.given}
    wanted = evaluate_host(program, {}, given)
    flat = replace(found, body=tuple(in_any_order(found.body, rng)))
    for name, array in evaluate_host(flat, {}, given).items():
        np.testing.assert_array_equal(array, wanted[name])


@pytest.mark.parametrize("seed", range(8))
def test_any_order_of_tiles_leaves_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(seed)
    sizes = {"T": rng.randint(2, 6), "n": rng.randint(12, 20), "m": rng.randint(6, 9)}
    check(text_of(rng), sizes, rng, monkeypatch)


def test_a_table_needs_no_skew(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"n": 13, "m": 17, "n1": 14, "m1": 18}
    check(TABLE, sizes, Random(1), monkeypatch)
    (nest,) = in_order(TABLE, sizes).body
    assert isinstance(nest, Nest)
    rows = rows_of(nest)
    assert rows is not None and skew_of(touched_by(rows)) == 0


def test_a_skew_that_is_too_small_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of tiles matters: what these tests compare is not the same by chance."""
    monkeypatch.setattr(wavefronts, "skew_of", lambda touched: 0)
    text = text_of(Random(0))
    assert "i+" in text
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        check(text, {"T": 6, "n": 20, "m": 8}, Random(0), monkeypatch)


def test_rows_that_need_rows_far_away_stay_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    program = in_order(BACKWARDS, {"T": 5, "n": 20})
    assert in_waves(program, monkeypatch, 2, 4) == program


def test_waves_are_for_several_threads_and_for_rows_that_come_from_memory() -> None:
    one, two = (replace(choose("native", threads=n), caches=CACHES) for n in (1, 2))
    small, table = (in_order(TABLE, {"n": n, "m": n}) for n in (13, 1300))
    assert with_wavefronts(small, two) == small
    assert with_wavefronts(table, two) != table
    assert with_wavefronts(table, one) == table
    large = in_order(SEIDEL, {"T": 10, "n": 3000})
    assert with_wavefronts(large, one) != large


def test_rows_of_a_tile_are_worth_their_beginning() -> None:
    """Tiles of 16 columns took more than twice the time of those of 64 and of 256."""
    cost = WaveCost(
        skew=0,
        steps=3000,
        rows=2500,
        seconds=1.5e-9,
        row_bytes=12,
        brought=0,
        begun=BEGINNING / 3.5e9,
        threads=2,
        launch=4e-7,
        held=2e5,
    )
    found = cost.best()
    assert found is not None and found.width >= 64
    free = replace(cost, begun=0.0).best()
    assert free is not None and free.width < 64


CACHES = (32 << 10, 1 << 20, 32 << 20)
SEIDEL = """void sweep(int T, int n, double A[n][n]) {
#pragma scop
  for (int t = 0; t < T; t++)
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        A[i][j] = (A[i-1][j] + A[i][j-1] + 4 * A[i][j] + A[i][j+1] + A[i+1][j]) / 8;
#pragma endscop
}
"""


@pytest.mark.slow
@pytest.mark.ci
def test_threads_leave_what_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    given = np.random.default_rng(1).random((77, 77))
    asked: list[int] = []

    def chosen(cost: WaveCost) -> Wave:
        asked.append(cost.threads)
        return Wave(cost.skew, 2, 5)

    def chosen_by_two(cost: WaveCost) -> Wave | None:
        return chosen(cost) if cost.threads == 2 else None

    monkeypatch.setattr(WaveCost, "best", chosen_by_two)
    results = []
    for threads in (1, 2):
        array = given.copy()
        polyloom.compile(SEIDEL, device="native", threads=threads)(T=7, n=77, A=array)
        results.append(array)
    assert asked == [2]
    np.testing.assert_array_equal(*results)
