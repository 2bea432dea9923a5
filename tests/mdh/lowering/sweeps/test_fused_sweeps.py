"""Fused sweeps: which programs have them, and what they compute, element for element as C does.

Integers without signs make every order of a sum exact, so a row too early, too late or too many is seen.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from c_host_programs import host_programs_of
from compiled_c import compiled
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.programs import verify
from polyloom.mdh.device.devices import DeviceKind, DeviceModel
from polyloom.mdh.lowering.sweeps import fusion
from polyloom.mdh.lowering.sweeps.fusion import fused_sweeps, sweeps_explained
from polyloom.mdh.lowering.sweeps.traffic import Traffic
from polyloom.polyhedra.loops.tree import Loop, nodes_in

DEVICE = DeviceModel(
    index=-1,
    name="made up",
    platform="native",
    vendor="",
    driver="",
    version="",
    kind=DeviceKind.CPU,
    compute_units=2,
    clock_mhz=2500,
    max_group_size=1,
    max_item_sizes=(1,),
    local_memory=32768,
    global_memory=1 << 34,
    max_allocation=1 << 34,
    vector_bytes=64,
    lanes=1,
    cache_line=64,
    caches=(32768, 1048576, 33554432),
    has_double=True,
    has_half=False,
    shares_memory=True,
)

THERE_AND_BACK = """
  for (int c = 0; c < m; c++) y[c] = 0;
  for (int r = 0; r < n; r++) {
    t[r] = 0;
    for (int c = 0; c < m; c++) t[r] += A[r][c] * x[c];
    for (int c = 0; c < m; c++) y[c] += A[r][c] * t[r];
  }"""

UPDATED_FIRST = """
  for (int r = 0; r < n; r++) for (int c = 0; c < m; c++) A[r][c] += t[r] * x[c];
  for (int r = 0; r < n; r++) for (int c = 0; c < m; c++) y[c] += 3 * A[r][c] * t[r];
  for (int c = 0; c < m; c++) y[c] = 5 * y[c] + x[c];
  for (int r = 0; r < n; r++) for (int c = 0; c < m; c++) t[r] += A[r][c] * y[c];"""

LEAPFROG = """
  for (int s = 0; s < 3; s++) {
    for (int c = 0; c < m; c++) if (n > 0) A[0][c] = s;
    for (int r = 1; r < n; r++) for (int c = 0; c < m; c++) A[r][c] -= 3 * (C[r][c] - C[r - 1][c]);
    for (int r = 0; r < n; r++) for (int c = 1; c < m; c++) B[r][c] -= 5 * (C[r][c] - C[r][c - 1]);
    for (int r = 0; r < n - 1; r++)
      for (int c = 0; c < m - 1; c++) C[r][c] -= 7 * (B[r][c + 1] - B[r][c] + A[r + 1][c] - A[r][c]);
  }"""

BOTH_WAYS = """
  for (int s = 0; s < 3; s++) {
    for (int r = 2; r < n - 2; r++) for (int c = 0; c < m; c++) B[r][c] = A[r - 2][c] + 3 * A[r + 2][c];
    for (int r = 2; r < n - 2; r++) for (int c = 0; c < m; c++) A[r][c] = B[r][c] + 5 * B[r + 1][c];
  }"""

GREATEST = """
  for (int r = 0; r < n; r++) for (int c = 0; c < m; c++) if (A[r][c] > y[c]) y[c] = A[r][c];
  for (int r = 0; r < n; r++) for (int c = 0; c < m; c++) t[r] ^= A[r][c] + x[c];"""

TRIANGLES = """
  for (int r = 0; r < n; r++) for (int c = 0; c < m && c <= r; c++) t[r] += A[r][c] * x[c];
  for (int r = 0; r < n; r++) for (int c = 0; c < m && c <= r; c++) y[c] += A[r][c] * t[r];"""

MAP_BETWEEN = """
  for (int r = 0; r < n; r++) {
    t[r] = 0;
    for (int c = 0; c < m; c++) t[r] += A[r][c] * x[c];
  }
  for (int r = 0; r < n; r++) t[r] = t[r] * t[r] + 3;
  for (int r = 0; r < n; r++) for (int c = 0; c < m; c++) y[c] += A[r][c] * t[r];"""

SUM_BETWEEN = """
  for (int r = 0; r < n; r++) for (int c = 0; c < m; c++) y[c] += A[r][c] * t[r];
  for (int c = 0; c < m; c++) x[c] = 5 * y[c] + x[c];
  for (int r = 0; r < n; r++) for (int c = 0; c < m; c++) t[r] += A[r][c] * x[c];"""

UPSIDE_DOWN = """
  for (int r = 0; r < n; r++) for (int c = 0; c < m; c++) B[r][c] = A[r][c] * x[c];
  for (int r = 0; r < n; r++) for (int c = 0; c < m; c++) C[r][c] = A[r][c] + B[n - 1 - r][m - 1 - c];"""

NEEDS_ALL = """
  for (int r = 0; r < n; r++) for (int c = 0; c < m; c++) t[r] += A[r][c] * x[c];
  for (int r = 0; r < n; r++) for (int c = 0; c < m; c++) y[c] += A[r][c] * t[n - 1 - r];"""

NUMBERED = """
  for (int r = 0; r < n; r++) for (int c = 0; c < m; c++) t[r] += A[r][c] * x[c] * (7 * r + 2 * c + 1);
  for (int r = 0; r < n; r++) for (int c = 0; c < m; c++) y[c] += (A[r][c] + r * c) * t[r];"""

ROWS_AND_COLUMNS = """
  for (int r = 0; r < n; r++) t[r] = 0;
  for (int r = 0; r < n; r++)
    for (int c = 0; c < m; c++) { y[c] += A[r][c] * (r + 1); t[r] += A[r][c] * x[c]; }"""

FUSED = {
    "there and back": THERE_AND_BACK,
    "updated first": UPDATED_FIRST,
    "leapfrog": LEAPFROG,
    "both ways": BOTH_WAYS,
    "greatest": GREATEST,
    "triangles": TRIANGLES,
    "map between": MAP_BETWEEN,
    "numbered": NUMBERED,
    "rows and columns": ROWS_AND_COLUMNS,
}
APART = {"upside down": UPSIDE_DOWN, "needs all": NEEDS_ALL, "sum between": SUM_BETWEEN}


def text_of(body: str) -> str:
    """Return a C function over three matrices and three vectors."""
    head = "unsigned A[n][m], unsigned B[n][m], unsigned C[n][m], unsigned x[m], unsigned y[m], unsigned t[n]"
    return f"void kernel(int n, int m, {head}) {{\n#pragma scop\n{body}\n#pragma endscop\n}}"


def special(text: str, n: int, m: int) -> HostProgram:
    (program,) = host_programs_of(text)
    return specialise(program, {p.name: {"n": n, "m": m}[p.name] for p in program.parameters})


def eager(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Fuse whatever dependences allow, in blocks of so many rows, where a shift is not larger."""
    monkeypatch.setattr(Traffic, "is_sweep", lambda self, node: len(node.extents) > 1)
    monkeypatch.setattr(Traffic, "is_light", lambda self, node: len(node.extents) == 1)
    monkeypatch.setattr(Traffic, "leaves_caches", lambda self, nodes: True)
    monkeypatch.setattr(Traffic, "apart", lambda self, nodes, *, repeated: float(len(nodes)))
    monkeypatch.setattr(Traffic, "together", lambda self, group, rows, *, repeated: 0.0)
    monkeypatch.setattr(Traffic, "block_bytes", lambda self, group, rows: rows)
    monkeypatch.setattr(Traffic, "room", rows)


def has_blocks(program: HostProgram) -> bool:
    return any(isinstance(n, Loop) and n.iterator.startswith("block") for n in nodes_in(program.body))


@pytest.mark.parametrize("name", FUSED)
def test_sweeps_over_what_no_cache_holds_are_fused(name: str) -> None:
    assert has_blocks(fused_sweeps(special(text_of(FUSED[name]), 3000, 3000), DEVICE))


@pytest.mark.parametrize("name", APART)
def test_what_dependences_forbid_stays_apart(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = special(text_of(APART[name]), 60, 50)
    eager(monkeypatch, 4)
    assert fused_sweeps(program, DEVICE) == program


@pytest.mark.parametrize("name", FUSED)
def test_where_arrays_stay_in_a_cache_nothing_changes(name: str) -> None:
    program = special(text_of(FUSED[name]), 100, 100)
    assert fused_sweeps(program, DEVICE) == program


def test_sizes_that_are_left_open_leave_programs_as_they_are() -> None:
    (program,) = host_programs_of(text_of(THERE_AND_BACK))
    assert fused_sweeps(program, DEVICE) == program


def test_larger_caches_make_larger_blocks() -> None:
    program = special(text_of(THERE_AND_BACK), 4000, 2000)
    found = [fused_sweeps(program, replace(DEVICE, caches=(32768, k << 20, 1 << 23))) for k in (1, 2)]
    assert len({str(p.body) for p in found}) == 2
    assert all(map(has_blocks, found))


@pytest.mark.parametrize(
    ("name", "size", "sentence"),
    [
        ("there and back", 3000, "S3, S4: fused in blocks of 24 rows along r; S4 adds up over blocks"),
        ("there and back", 100, "S3, S4: apart, though both use `A`, `t`: what S3 touches stays in a cache"),
        (
            "updated first",
            3000,
            "S2, S4: apart, though both use `A`, `t`, `y`: S4 needs what later rows",
        ),
        ("rows and columns", 3000, "S2, S3: fused in blocks of 24 rows along r; S2 adds up over blocks"),
        ("both ways", 3000, "S1, S2: fused in blocks of 8 rows along r; S2 runs 2 behind"),
        ("both ways", 1200, "S1, S2: apart, though both use `A`, `B`: what they touch stays in a cache"),
    ],
)
def test_explain_says_what_is_fused_and_why_not(name: str, size: int, sentence: str) -> None:
    said = sweeps_explained(special(text_of(FUSED[name]), size, size), DEVICE)
    assert any(text.startswith(sentence) for text in said), said


def check(text: str, folder: Path, sizes: list[tuple[int, int]]) -> int:
    """Compare fused programs with gcc's; return how many have blocks."""
    run, blocks = compiled(text, "kernel", folder), 0
    for n, m in sizes:
        program = special(text, n, m)
        made = fused_sweeps(program, DEVICE)
        verify(made)
        random = np.random.default_rng(n)
        shapes = {"A": (n, m), "B": (n, m), "C": (n, m), "x": (m,), "y": (m,), "t": (n,)}
        arrays = {a: random.integers(0, 2**32, shape, np.uint32) for a, shape in shapes.items()}
        found = evaluate_host(made, {}, {b.name: arrays[b.name] for b in made.given})
        expected = run({"n": n, "m": m, **arrays})
        for array, values in {**arrays, **found}.items():
            assert np.array_equal(values, expected[array]), f"{array}, n = {n}, m = {m}\n{text}"
        blocks += made.body != program.body
    return blocks


@pytest.mark.parametrize("rows", [2, 5])
@pytest.mark.parametrize("name", FUSED)
def test_blocks_of_all_sizes_compute_what_c_does(
    name: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    eager(monkeypatch, rows)
    monkeypatch.setattr(fusion, "MULTIPLE", 1)
    check(text_of(FUSED[name]), tmp_path, [(n, 4) for n in (0, 1, 2, 4, 5, 6, 11)])


def random_body(random: Random) -> str:
    """Return sweeps over rows or columns, forwards or backwards, with neighbours, sums and maps."""

    def matrix() -> str:
        name, a, b = random.choice("ABC"), random.randint(-1, 1), random.choice([0, 0, -1, 1])
        return f"{name}[{random.choice(['r', 'r', 'r', 'n - 1 - r'])}{a:+d}][c{b:+d}]"

    def value() -> str:
        return random.choice([matrix(), matrix(), "x[c]", "y[c]", "t[r]"])

    def sweep() -> str:
        target = random.choice([f"{random.choice('ABC')}[r][c]", "y[c]", "t[r]"])
        op = "=" if target[0] in "ABC" and random.random() < 0.7 else "+="
        inside = f"{target} {op} 3 * {value()} + {value()};"
        return f"for (int r = 2; r < n - 2; r++) for (int c = 2; c < m - 2; c++) {inside}"

    body = "\n".join(sweep() for _ in range(random.randint(2, 5)))
    return f"for (int s = 0; s < 2; s++) {{\n{body}\n}}" if random.random() < 0.4 else body


def some_random(seeds: range, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(fusion, "MULTIPLE", 1)
    found = 0
    for seed in seeds:
        random = Random(seed)
        eager(monkeypatch, random.randint(1, 4))
        (folder / str(seed)).mkdir()
        found += check(text_of(random_body(random)), folder / str(seed), [(9, 8), (12, 7)])
    return found


def test_a_few_random_sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert some_random(range(4), tmp_path, monkeypatch) > 2


@pytest.mark.slow
def test_many_random_sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert some_random(range(100, 300), tmp_path, monkeypatch) > 100
