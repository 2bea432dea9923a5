"""When a call of a drop-in is worth it, and when threads share it: by how many points its loops have."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from polyloom import drop_in
from polyloom.ir.expressions import Constant
from polyloom.ir.integers import integer
from polyloom.ir.types import ElementType
from polyloom.mdh.tree.nodes import Compute, Kind, Store, counted
from polyloom.mdh.tree.trips import shared_points
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number

CENTRES = """\
void centres(long n, long d, long k, const float *x, const int *label, float *c, int *count) {
  for (long i = 0; i < n; i++) {
    int j = label[i];
    count[j]++;
    for (long t = 0; t < d; t++) c[j * d + t] += x[i * d + t];
  }
  for (long j = 0; j < k; j++)
    if (count[j] > 0)
      for (long t = 0; t < d; t++) c[j * d + t] /= count[j];
}
"""


def written(tmp_path: Path, text: str) -> tuple[str, str]:
    """Return the file with its calls, and the functions."""
    (tmp_path / "a.c").write_text(text)
    drop_in(tmp_path / "a.c", target="c").write(tmp_path / "out")
    return (tmp_path / "out" / "a.c").read_text(), (tmp_path / "out" / "polyloom_loops.c").read_text()


def test_loops_inside_of_others_are_called_where_they_are_long(tmp_path: Path) -> None:
    caller, _ = written(tmp_path, CENTRES)
    before, inside, behind = re.split(r"extern int polyloom_centres", caller)
    assert "d >= 512)\n" in inside and "512" not in before + behind
    subprocess.run(
        "gcc -O1 -fopenmp -ffp-contract=off -shared -fPIC -Wno-psabi out/a.c out/polyloom_loops.c -o a.so -lm"
        " && gcc -O1 -ffp-contract=off -shared -fPIC a.c -o b.so",
        shell=True,
        cwd=tmp_path,
        check=True,
    )
    for d in (0, 3, 511, 512, 700):
        assert left(tmp_path / "a.so", d) == left(tmp_path / "b.so", d)


def left(library: Path, d: int) -> bytes:
    """Return the centres of 20 points in ``d`` dimensions."""
    random = np.random.default_rng(d)
    x, c = random.random((20, d), np.float32), random.random((4, d), np.float32)
    label, count = random.integers(0, 4, 20).astype(np.int32), np.ones(4, np.int32)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, label, c, count)]
    ctypes.CDLL(str(library)).centres(ctypes.c_long(20), ctypes.c_long(d), ctypes.c_long(4), *pointers)
    return c.tobytes() + count.tobytes()


def test_branches_over_few_points_are_not_shared(tmp_path: Path) -> None:
    _, functions = written(tmp_path, CENTRES)
    (asked,) = re.findall(r"run\(centres_2_loops, &pace, (.*?), \(void", functions, re.DOTALL)
    assert asked == "greater(0, k) * greater(0, d) >= 16384"


STORE = Store("y", (Name("j"),), Compute(Constant(0.0, ElementType.FLOAT32)))


@pytest.mark.parametrize(
    ("start", "end", "points"),
    [
        (Number(0), Name("m"), 35),
        (Name("i"), Name("n"), 28),  # a triangle: seven rows of four, as the middle one has
        (Name("p"), Name("n"), None),  # from where data says
    ],
)
def test_points_of_nests(start: IntExpression, end: IntExpression, points: int | None) -> None:
    inner = counted("j", end, (STORE,), start=start)
    outer = counted("i", Name("n"), (inner,), kind=Kind.GROUP)
    found = shared_points((outer,), {"n", "m"})
    assert (found and [integer(n, {"n": 7, "m": 5}) for n in found]) == (points and [points])


def test_loops_that_no_thread_shares_have_no_points() -> None:
    assert shared_points((counted("j", Name("n"), (STORE,)),), {"n"}) == []


def test_threads_that_come_late_to_the_start_are_seen(tmp_path: Path) -> None:
    """Of shared calls that take longer than one thread needs, the third is the last for a while."""
    _, functions = written(tmp_path, CENTRES)
    text = f"{CLOCK}{functions}{HARNESS}"
    (tmp_path / "out" / "clock.c").write_text(text)
    subprocess.run(
        "gcc -O1 -fopenmp -Wno-psabi out/clock.c -o clock -lm", shell=True, cwd=tmp_path, check=True
    )
    done = subprocess.run([str(tmp_path / "clock")], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["work:", "111111", "start:", "111000", "end:", "111000"]


CLOCK = """#include <omp.h>
static double times[4], now;
static int asked;
static double clock_of_test(void) { return asked < 0 ? now : (now += times[asked++ % 4]); }
#define omp_get_wtime clock_of_test
"""
HARNESS = """
static void nothing(struct team *team, int64_t me, void *const *arrays, const int64_t *integers)
{
    (void)team; (void)me; (void)arrays; (void)integers;
}

/* Six calls, of which one of three parts takes a second: which of them are shared. */
static void calls(const char *name, int slow)
{
    struct pace pace = {0};
    printf("%s ", name);
    for (int call = 0; call < 6; call++) {
        for (int k = 0; k < 4; k++)
            times[k] = k == slow ? 1.0 : 0.001;
        asked = -1;
        const int is_shared = gains(&pace);
        asked = 0;
        if (is_shared)
            run_shared(nothing, &pace, NULL, NULL);
        printf("%d", is_shared);
    }
    printf("\\n");
}

int main(void)
{
    omp_set_num_threads(2);
    calls("work:", 2);
    calls("start:", 1);
    calls("end:", 3);
    return 0;
}
"""
