"""What sizes decide of a program is not asked again at each of its points."""

from __future__ import annotations

import polyloom
from polyloom.ir.host import HostProgram, MdHom
from polyloom.ir.transform.specialise import specialise
from polyloom.polyhedra.loops.tree import Number, leaves_in

HALVES = """
void f(int n, double a[n], double b[n])
{
  for (int i = 0; i < n; i++) {
    if (i < n / 2)
      a[i] += b[i];
    else
      a[i] = a[i - n / 2] + b[i];
  }
}
"""

TRIANGLE = """
void f(int n, double A[n][n])
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++)
      A[i][j] *= 2;
}
"""


def maps(program: HostProgram) -> list[MdHom]:
    return [node for node in leaves_in(program.body) if isinstance(node, MdHom)]


def test_a_guard_that_holds_at_every_point_is_left_out() -> None:
    program = polyloom.load(HALVES).compiled.program
    assert any(node.guard is not None for node in maps(program))
    assert all(node.guard is None and node.written is None for node in maps(specialise(program, {"n": 64})))


def test_a_guard_that_some_points_do_not_meet_stays() -> None:
    program = polyloom.load(TRIANGLE).compiled.program
    (map_,) = maps(specialise(program, {"n": 64}))
    assert map_.guard is not None and map_.written is not None


BEHIND = """
void f(int n, int k, double a[n], double b[n])
{
  for (int i = k; i < n; i++)
    a[i] = a[i - k] * 0.5 + b[i];
}
"""


def test_points_that_store_nothing_are_no_points() -> None:
    """A map of all iterations stores the first ``k`` alone, which do not wait for others."""
    program = polyloom.load(BEHIND).compiled.program
    (map_,) = maps(specialise(program, {"n": 64, "k": 7}))
    assert map_.extents == (Number(7),)
    assert map_.guard is None and map_.written is None
