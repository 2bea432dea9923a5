"""An md_hom whose size changes from launch to launch: what is chosen for one launch is legal for all."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from forms import transformed

import polyloom
from polyloom.ir.host import MdHom
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.lowering.tuning_targets import tune_targets
from polyloom.mdh.native.device import choose
from polyloom.mdh.schedule.legality import problems
from polyloom.mdh.schedule.tiling import TileFacts, has_tiles
from polyloom.mdh.tuning.adaptation import seeded_space
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter

FACTORISATION = """
void kernel(int n, double A[n][n]) {
  for (int k = 0; k < n; k++) {
    for (int i = k + 1; i < n; i++) A[i][k] /= A[k][k];
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j < i; j++) A[i][j] -= A[i][k] * A[k][j];
  }
}"""


def test_the_choice_is_taken_as_it_is() -> None:
    program = specialise(transformed(FACTORISATION), {"n": 200})
    device, emitter = choose("native", threads=1), TunedEmitter()
    device = replace(device, caches=(4096, 16384, 65536))
    changing = 0
    for target in tune_targets(program):
        if has_tiles(target.node):
            taken = emitter.schedule(target.node, program, device)
            assert taken == emitter.choices[target.node.name].schedule
            changing += target.node != target.launched
    assert changing


def test_drawn_schedules_are_legal_as_it_stands() -> None:
    program = specialise(transformed(FACTORISATION), {"n": 200})
    device, rng = choose("native", threads=1), Random(0)
    targets = [t for t in tune_targets(program) if isinstance(t.node, MdHom) and t.node != t.launched]
    for target in targets:
        space = seeded_space(target.launched, target.program(), device, node=target.node)
        for _ in range(40):
            facts = TileFacts(target.node, space.sample(rng))
            assert not problems(facts, target.program().by_name, device)


TRIANGLE = """
void kernel(int n, double A[n][n], double B[n][n], double C[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k <= i; k++) C[i][j] += A[i][k] * B[k][j];
}"""


def test_a_triangle_is_judged_as_one() -> None:
    """Half of a box has half of its points: what is best for all of them is not for the half."""
    (target,) = tune_targets(specialise(transformed(TRIANGLE), {"n": 512}))
    device, hom = choose("native", threads=2), target.launched
    assert isinstance(hom, MdHom) and hom.guard is not None
    triangle = seeded_space(hom, target.program(), device)
    box = seeded_space(replace(hom, guard=None), target.program(), device)
    schedule = triangle.default()
    assert triangle.predicted(schedule) < 0.7 * box.predicted(schedule)


SMALL = """
void kernel(int n, int m, double a[5 * n], double b[n], double c[m], double s[1]) {
  for (int i = 0; i < n; i++) b[i] = a[5 * i] * 2;
  for (int k = 1; k < n; k++) {
    for (int i = 0; i < k; i++) s[0] += b[i] * b[k - i - 1];
    b[k] = s[0];
  }
  for (int i = 0; i < m; i++) c[i] = c[i] * 2;
}"""


def test_what_one_thread_does_is_in_no_groups() -> None:
    """Groups of a md_hom that is too small for two threads were loops that one of them went through."""
    program = specialise(transformed(SMALL), {"n": 6000, "m": 10**6})
    device, emitter = choose("native", threads=2), TunedEmitter()
    targets = tune_targets(program)
    groups = [emitter.schedule(t.node, program, device) for t in targets if has_tiles(t.node)]
    shared = [any(schedule.group) for schedule in groups if schedule is not None]
    assert shared == [False, False, True]


IN_PLACE = """
void kernel(int n, double a[n], double b[n]) {
  for (int i = 0; i < n - 1; i++) a[i] = a[i + 1] + b[i];
}"""


def test_what_is_not_shared_is_made_for_one_thread() -> None:
    """Threads that share a map in place need a copy; one thread goes through it in order, and so do two."""
    four, two, one = (polyloom.load(IN_PLACE, device="native", threads=n).compiled for n in (4, 2, 1))
    trees = {n: (four.tree({"n": n}), one.tree({"n": n})) for n in (30_000, 10**6)}
    assert two.tree({"n": 10**6}) == trees[10**6][1]
    assert trees[30_000][0] == trees[30_000][1]
    assert trees[10**6][0] != trees[10**6][1]
