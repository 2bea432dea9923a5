"""Dense streams of which a PE needs elements with holes: they are kept with the holes, by instructions."""

from __future__ import annotations

import pytest

from polyloom.api.simulation import simulate
from polyloom.diagnostics import Source
from polyloom.frontends.lair.lower import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.wafer.mapping.reader import read_mapping

CASES = {
    "a dilated filter with strides": (
        """lair S(): float16 x[23][23], float16 W[3][3] -> float16 y[6][6]
{ all (h, w, r, s) in (6, 6, 3, 3) y[h][w] += x[3*h + 2*r][3*w + 2*s] * W[r][s] }""",
        """size: { PE[1, 1] }
compute_map: { S[h, w, r, s] -> PE[0, 0] }
iport_map: { x[h, w] -> [PE[0, -1] -> index[h, w]] }
oport_map: { y[h, w] -> [PE[0, 1] -> index[h, w]] }
""",
        1500,
    ),
    "a row with holes, and others before and after": (
        """lair S(): float16 x[9][40] -> float16 y[2][6]
{ all (b, i) in (2, 6) y[b][i] = x[2*b + 3][5*i + 4] * 2 }""",
        """size: { PE[1, 2] }
compute_map: { S[b, i] -> PE[0, b] }
iport_map: { x[b, i] -> [PE[0, -1] -> index[b, i]] }
oport_map: { y[b, i] -> [PE[1, b] -> index[i]] }
""",
        1500,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_needed_is_kept_by_instructions(name: str) -> None:
    text, places, most = CASES[name]
    program = lower(parse(Source("S.lair", text)), None, {})
    mapping = read_mapping(Source("S.map", places + "trigger: S = none\n"), program)
    for invocations in (1, 3):
        found = simulate(program, mapping, invocations=invocations, check=True)
        assert found.check is not None and found.check.passed
        assert found.cycles < most * invocations
    scalar = simulate(program, mapping, simd="off", check=True)
    assert scalar.check is not None and scalar.check.passed
