"""Where the loops of a program went: what is said of a tree is held against its loops, run by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from polyloom.api.loops import LoopExplanation, explain_loops
from polyloom.cli.main import run
from polyloom.device_pipeline import open_program
from polyloom.ir.integers import integer
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.explain.places import (
    Place,
    Visit,
    items_of,
    most_of,
    of_items,
    places,
    subscripts,
    views_of,
)
from polyloom.mdh.tree.nodes import For, Kind, LetInteger
from polyloom.scop.transform import host_program
from polyloom.sources import LoadedHost, Reading, load_scops
from processors import known_processor

LOOPS = Path(__file__).parents[3] / "benchmarks/loops"
GEMM = ("gemm", (("n", 100), ("m", 90), ("k", 70)))
ATAX = ("atax", (("n", 1900), ("m", 2100)))
JACOBI = ("jacobi-2d", (("steps", 100), ("n", 1300)))
Case = tuple[str, tuple[tuple[str, int], ...]]


@cache
def compiled(case: Case) -> tuple[Any, Any]:
    """Return a program for its sizes, and its tree, on two threads."""
    (scop,) = load_scops(LOOPS / f"{case[0]}.c", Reading())
    found = host_program(scop).program
    program = open_program(LoadedHost(found, scop, ()), known_processor(2))
    return specialise(found, dict(case[1])), program.tree(dict(case[1]))


def at(visit: Visit, moved: str, times: int) -> dict[str, int]:
    """Return the integers where each loop is in its first iteration, and one of them some steps on."""
    values: dict[str, int] = {}
    for each in visit.around:
        if isinstance(each, LetInteger):
            values[each.name] = integer(each.value, values)
        elif isinstance(each, For):
            step = integer(each.step, values) * (times if each.iterator == moved else 0)
            values[each.iterator] = integer(each.start, values) + step
    return values


def moves(visit: Visit, views: Any, k: int, loop: str, times: int) -> set[int]:
    """Return how far subscripts that are an iterator move with so many steps of a loop."""
    first, second = at(visit, loop, 0), at(visit, loop, times)
    found = (e for view in views for e in subscripts(visit, view, k))
    return {integer(e, second) - integer(e, first) for e in found}


@pytest.mark.parametrize("case", [GEMM, ATAX], ids=lambda case: case[0])
def test_loops_move_as_far_as_is_said(case: Case) -> None:
    program, tree = compiled(case)
    items = items_of(program)
    visits = of_items(tree.body, items)
    found = places(program, tree.body)
    looked_at = 0
    for name, place in found.items():
        visit = most_of(name, visits[name])
        for k, iterator in enumerate(items[name].iterators):
            for cut in place.cuts[iterator]:
                moved = moves(visit, views_of(items[name]), k, cut.loop, 1)
                assert moved == {cut.points}, (name, iterator, cut)
                looked_at += 1
            others = {loop.iterator for loop in visit.loops} - {c.loop for c in place.cuts[iterator]}
            assert all(moves(visit, views_of(items[name]), k, loop, 1) == {0} for loop in others)
    assert looked_at > 5


def kinds(place: Place, iterator: str) -> list[tuple[Kind, int, int]]:
    return [(cut.kind, cut.points, cut.extent) for cut in place.cuts[iterator]]


@pytest.mark.slow
@pytest.mark.ci
def test_tiles_across_time_move_with_time() -> None:
    program, tree = compiled(JACOBI)
    found = places(program, tree.body)
    assert set(found) == {"S1", "S2"}
    for place in found.values():
        assert place.band == ("i", "j") and place.moving
        (block, step) = place.times["t"]
        assert block.points > 1 and step.points == 1
        assert any(kind is Kind.GROUP and points > 1 for kind, points, _ in kinds(place, "i"))


def explained(case: Case) -> LoopExplanation:
    return explain_loops(LOOPS / f"{case[0]}.c", Reading(), dict(case[1]), known_processor(2))


def test_the_schedule_stands_beside_each_loop() -> None:
    text = str(explained(ATAX))
    assert "kernel on native" in text and "n = 1900" in text
    line = text.splitlines().index(next(t for t in text.splitlines() if "for (int r" in t))
    fused = re.search(r"S3, S4: fused in blocks of (\d+) rows along r", text)
    assert fused is not None
    for k, node in enumerate(("S3", "S4"), 1):
        assert f"{node}: band (r, c); in blocks of {fused[1]}" in text.splitlines()[line + k]


def test_of_joined_loops_nothing_is_said_that_is_not_so(tmp_path: Path) -> None:
    source = tmp_path / "half.c"
    source.write_text("""void f(int n, double a[n][n], double x[n]) {
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      a[i][j] = 0.5 * a[i][j];
#pragma endscop
}""")
    text = str(explain_loops(source, Reading(), {"n": 1500}, known_processor(2)))
    assert "S1: band (i, j); parallel" in text
    assert "of 0" not in text and "0 at once" not in text


def test_wavefronts_up_to_a_last_one_are_placed(tmp_path: Path) -> None:
    """Their loops end with ``<=``, which was a fault of the program."""
    source = tmp_path / "table.c"
    source.write_text("""void table(int n, int m, float s[n + 1][m + 1]) {
#pragma scop
  for (int i = 1; i <= n; i++)
    for (int j = 1; j <= m; j++)
      s[i][j] = s[i - 1][j] > s[i][j - 1] ? s[i - 1][j] : s[i][j - 1];
#pragma endscop
}""")
    for threads in (2, 64):
        text = str(explain_loops(source, Reading(), {"n": 90, "m": 80}, known_processor(threads)))
        assert "S1: " in text


def test_a_sum_over_blocks_is_where_its_rows_are_not_where_it_starts(tmp_path: Path) -> None:
    source = tmp_path / "again.c"
    source.write_text("""void f(int n, double A[n][n], double x[n], double t[n], double u[n], double y[n]) {
#pragma scop
  for (int i = 0; i < n; i++) {
    t[i] = 0;
    for (int j = 0; j < n; j++) t[i] += A[i][j] * x[j];
  }
  for (int i = 0; i < n; i++) u[i] = t[i] * t[i] + 1;
  for (int j = 0; j < n; j++) y[j] = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) y[j] += A[i][j] * u[i];
#pragma endscop
}""")
    text = str(explain_loops(source, Reading(), {"n": 4000}, known_processor(2)))
    assert "S2, S3, S5: fused in blocks of" in text and "one point" not in text
    assert text.count("; in blocks of") + text.count("S3: in blocks of") >= 3


@pytest.mark.slow
@pytest.mark.ci
def test_why_a_loop_is_not_tiled_is_said() -> None:
    small = ("jacobi-2d", (("steps", 10), ("n", 40)))
    assert "loop over t: not in tiles across time, for they would take more than 80%" in str(explained(small))
    assert "loop over t: blocks of" in str(explained(JACOBI))
    steps = ("seidel-2d", (("steps", 4), ("n", 40)))
    assert "no wavefront on 2 threads" in str(explained(steps))


def test_the_document_has_a_schedule_for_each_loop() -> None:
    document = explained(ATAX).json()
    assert isinstance(document, dict)
    assert document["parameters"] == {"n": 1900, "m": 2100} and document["reasons"]
    by_line: Mapping[int, Any] = {loop["line"]: loop["schedule"] for loop in document["loops"]}
    (inner,) = by_line[13]
    assert inner["node"] == "S3" and inner["band"] == ["r", "c"] and not inner["moving"]
    assert inner["loops"][-1]["kind"] == "vector"
    assert [entry["node"] for entry in by_line[11]] == ["S3", "S4"]


def test_the_command_says_it_for_given_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(LOOPS / "gemm.c")
    assert run(["explain", file]) == 0
    assert "band" not in capsys.readouterr().out
    assert run(["explain", file, "--param", "n=40", "--param", "m=40", "--param", "k=40"]) == 0
    assert "S2: band (r, q, c)" in capsys.readouterr().out


def test_arguments_of_a_run_may_be_given_to_explain_as_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = str(LOOPS / "gesummv.c")
    assert run(["explain", file, "--param", "n=40", "--param", "alpha=1.5"]) == 0
    assert "n = 40" in capsys.readouterr().out
    assert run(["explain", file, "--param", "n=1.5"]) != 0
    assert "n" in capsys.readouterr().err
