"""Instances of tasks, as later stages get them."""

from __future__ import annotations

from polyloom import read_mapping, read_program
from polyloom.pipeline import analyse_layer
from polyloom.polyhedra.effort import at_most
from polyloom.wafer.simd.decision import SimdOptions

CONV3D = """\
lair S(): float16 x[3][12][13][9], float16 W[5][3][3][2][3] -> float16 y[5][5][6][4]
{
  all (k, d, h, w, c, r, s, t) in (5, 5, 6, 4, 3, 3, 2, 3)
    y[k][d][h][w] += x[c][2*d + r][2*h + s][2*w + 2 - t] * W[k][c][r][s][t]
}
"""
WITH_AN_UNKNOWN = """\
size: { PE[6, 120] }
compute_map: { S[k, d, h, w, c, r, s, t] -> PE[c + 3*s, d + 5*h + 30*w] }
iport_map: { x[c, a, b, e] -> [PE[p, -1] -> index[a, b, e, c]] : exists (n :
  (c + 3b - p) mod 6 = 0 and 0 <= c <= 2 and p >= -30 + c + 3b and c <= p <= 3 + c and p <= c + 3b
  and -155 + 5c + 15b - 5p <= 6n <= 564 + 5c + 15b - 5p
  and -4 + e <= 2*floor((-25 - 5c - 15b + 5p + 6n)/180) <= -2 + e
  and -180 - 5c - 3a - 15b + 5p + 6n <= 180*floor((-25 - 5c - 15b + 5p + 6n)/180)
  and 180*floor((-25 - 5c - 15b + 5p + 6n)/180) <= -174 - 5c - 3a - 15b + 5p + 6n
  and 180*floor((-25 - 5c - 15b + 5p + 6n)/180) <= -180 - 5c - 15b + 5p + 6n) }
oport_map: { y[k, d, h, w] -> [PE[6, d + 5*h + 30*w] -> index[k, 0, 0, 0]] }
trigger: S = x
"""


def test_an_unknown_of_a_port_is_a_quotient_to_the_instances() -> None:
    """Their bounds, sizes and addresses would each have it once more: minutes, and millions of operations."""
    program = read_program(CONV3D)
    mapping = read_mapping(WITH_AN_UNKNOWN, program)
    with at_most(1_000_000):
        (task,) = analyse_layer(program, mapping, SimdOptions()).graph.compute
    assert "exists" not in str(task.instances)
