"""Streams: the PEs that take them, and what comes to a PE beside what it keeps."""

from __future__ import annotations

from pathlib import Path

import islpy as isl
import pytest

from polyloom import read_mapping, read_program
from polyloom.pipeline import analyse_layer
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.simd.decision import SimdOptions

SIZES = {"C": 3, "K": 2, "H": 6, "Q": 2, "R": 3, "S": 1, "D": 2}
EXAMPLE = Path(__file__).parents[3] / "examples" / "conv2d_training.lair"
CYCLIC = """\
size: { PE[8, 3] }
compute_map: { conv[k, h, w, c, r, s] -> PE[k + 2*h + 4*w, c]; fd[c, h, w, k, r, s] -> PE[k, c];
               fg[k, c, r, s, h, w] -> PE[k, c]; update[k, c, r, s] -> PE[k, c] }
iport_map: { x[i = 0:2, j = 0:5, k = 0:5] -> [PE[-1, i] -> index[0, j, k]] }
oport_map: { y[i = 0:1, j = 0:1, k = 0:1] -> [PE[i + 2*(j) + 4*(k), 3] -> index[0, 0, 0]];
             dx[i = 0:2, j = 0:5, k = 0:5] -> [PE[8, i] -> index[0, j, k]];
             W1[i = 0:1, j = 0:2, k = 0:2, l = 0:2] -> [PE[8, j] -> index[i, 0, k, l]] }
trigger: conv = none, fg = none
"""


@pytest.fixture(scope="module")
def analysis() -> LayerAnalysis:
    program = read_program(EXAMPLE.read_text(), defines=SIZES)
    return analyse_layer(program, read_mapping(CYCLIC, program), SimdOptions())


def test_receivers_that_are_a_box_are_written_as_one(analysis: LayerAnalysis) -> None:
    """Two statements need the input on all PEs, one of them by a division: what is cut by them grew apart."""
    (stream,) = analysis.graph.streams
    assert stream.receivers.is_equal(isl.Set("{ PE[x, y] : 0 <= x <= 7 and 0 <= y <= 2 }"))
    assert stream.receivers.n_basic_set() == stream.passes.n_basic_set() == 1


def test_what_passes_lies_before_between_or_after_what_is_kept(analysis: LayerAnalysis) -> None:
    (store,) = analysis.graph.stores
    carried = store.stream.carried
    kept = carried.uncurry().intersect_domain(store.stored.reverse().wrap()).domain_factor_range()
    others = carried.range().unwrap().intersect_domain(kept.domain()).subtract(kept)
    passing = store.passing
    later = isl.Map.lex_lt(kept.range().get_space())
    behind = others.intersect(kept.lexmin().apply_range(later))
    ahead = others.intersect(kept.lexmax().apply_range(later.reverse()))
    assert passing["before"].is_equal(ahead.subtract(behind))
    assert passing["between"].is_equal(ahead.intersect(behind))
    assert passing["after"].is_equal(behind.subtract(ahead))
    assert not passing["between"].is_empty()
