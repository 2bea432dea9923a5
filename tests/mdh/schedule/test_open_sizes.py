"""Orders of loops for sizes that are known only at launch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from homs import buffers_of, hom_of

from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.host import HostProgram
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.native.device import choose
from polyloom.mdh.schedule.choice import default_schedule
from polyloom.mdh.schedule.open_sizes import (
    LEAST_POINTS,
    fit_for_large_sizes,
    with_large_parts,
    without_groups,
)
from polyloom.mdh.schedule.search_space import ScheduleSpace
from polyloom.scop.transform import host_program

WINDOW = """void f(int n, int m, float C[n][m], float A[n + 4][m + 4], float B[5][5]) {
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++)
    for (int p = 0; p < 5; p++) for (int q = 0; q < 5; q++) C[i][j] += B[p][q] * A[i + p][j + q];
}
"""


def program() -> HostProgram:
    return host_program(next(iter(read_c(Source("f.c", WINDOW))))).program


def space(found: HostProgram, threads: int) -> ScheduleSpace:
    device = choose("native", threads=threads)
    return ScheduleSpace(hom=hom_of(found), buffers=buffers_of(found), device=device)


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_are_outside_in_arrays_of_any_size(threads: int) -> None:
    """Threads share rows too, and tiles of registers are as they were."""
    found = space(program(), threads)
    columns = replace(
        found.plain,
        private=(8, 2, 1, 1),
        vector=1,
        width=found.device.vector_bytes // 4,
        private_order=(1, 0, 2, 3),
        group=(0, 32, 0, 0) if threads > 1 else (0, 0, 0, 0),
    )
    best = fit_for_large_sizes(found, columns)
    assert best.private_order == (0, 1, 2, 3)
    assert (best.private, best.vector, best.width) == (columns.private, columns.vector, columns.width)
    assert best.group == ((32, 0, 0, 0) if threads > 1 else (0, 0, 0, 0))
    assert fit_for_large_sizes(found, best) == best


def test_sizes_that_are_known_leave_a_schedule_as_it_is() -> None:
    found = space(specialise(program(), {"n": 2000, "m": 2500}), 1)
    columns = replace(found.plain, private=(8, 2, 1, 1), vector=1, width=16, private_order=(1, 0, 2, 3))
    assert fit_for_large_sizes(found, columns) == columns


def test_what_the_cost_model_prefers_goes_through_rows() -> None:
    found = program()
    schedule = default_schedule(hom_of(found), buffers_of(found), choose("native", threads=2))
    assert schedule.private_order.index(0) < schedule.private_order.index(1)
    assert schedule.group[0] and not schedule.group[1]


def summed(text: str) -> HostProgram:
    return host_program(next(iter(read_c(Source("f.c", text))))).program


DOT = "double f(int n, double x[n]) { double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }"
COLUMNS = """void f(int n, int m, float A[n][m], float y[m]) {
  for (int j = 0; j < m; j++) for (int i = 0; i < n; i++) y[j] += A[i][j];
}
"""
ROWS = COLUMNS.replace("A[n][m]", "A[m][n]").replace("A[i][j]", "A[j][i]")


def test_threads_share_a_sum_of_many_points_in_long_parts() -> None:
    found = space(summed(DOT), 2)
    parts = with_large_parts(found, replace(found.plain, private=(8,), vector=0, width=8))
    assert parts.group[0] >= LEAST_POINTS
    assert with_large_parts(found, parts) == parts
    assert without_groups(found, parts).group == (0,)


@pytest.mark.parametrize("size", [{"n": 1 << 20}, {}])
def test_known_sizes_and_single_threads_leave_a_sum_whole(size: dict[str, int]) -> None:
    found = space(specialise(summed(DOT), size), 2 if size else 1)
    whole = replace(found.plain, private=(8,), vector=0, width=8)
    assert with_large_parts(found, whole) == whole


def test_parts_of_columns_are_longer_and_rows_that_threads_share_are_whole() -> None:
    found = space(summed(COLUMNS), 2)
    columns = replace(found.plain, group=(64, 32), private=(4, 1), vector=0, width=16)
    assert with_large_parts(found, columns).group[0] == 64 < with_large_parts(found, columns).group[1]
    rows = space(summed(ROWS), 2)
    shared = replace(rows.plain, group=(16, 0), private=(1, 4), vector=1, width=16)
    assert with_large_parts(rows, shared) == shared
