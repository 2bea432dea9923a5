"""Internal tensors that travel: to neighbours in phases, so that the length of the line does not count."""

from __future__ import annotations

import pytest

import polyloom
from samples import one_in

LAYER = """
lair widen(): float16 x[{n}][8] -> float16 p[{m}][8] {{ all (i, k) in ({n}, 8) p[i + {reach}][k] += x[i][k] }}
lair smooth(): float16 p[{m}][8], float16 W[{r}] -> float16 y[{n}][8]
{{ all (i, r, k) in ({n}, {r}, 8) y[i][k] += p[i + r][k] * W[r] }}
graph g: float16 x[{n}][8], float16 W[{r}] -> float16 y[{n}][8] {{ p = widen()(x) y = smooth()(p, W) }}
"""

MAP = """
size: {{ PE[{n}, 1] }}
compute_map: {{ widen[i, k] -> PE[i, 0]; smooth[i, r, k] -> PE[i, 0] }}
iport_map: {{ x[i = 0:{last}, k = 0:7] -> [PE[i, -1] -> index[k]] }}
oport_map: {{ y[i = 0:{last}, k = 0:7] -> [PE[i, 1] -> index[k]] }}
"""


def cycles(length: int, reach: int) -> int:
    """Simulate a window of so many neighbours on each side, one row of PEs, and check it."""
    sizes = {"n": length, "m": length + 2 * reach, "reach": reach, "r": 2 * reach + 1, "last": length - 1}
    program = polyloom.read_program(LAYER.format(**sizes))
    result = polyloom.simulate(program, polyloom.read_mapping(MAP.format(**sizes), program), check=True)
    assert result.check is not None and result.check.passed
    return result.cycles


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("reach", one_in(3, [1, 2, 4]))
def test_a_longer_line_takes_no_longer(reach: int) -> None:
    """The way to a neighbour is as long everywhere; one order for the whole line would make all wait."""
    assert cycles(36, reach) < 1.1 * cycles(18, reach)


@pytest.mark.slow
@pytest.mark.ci
def test_more_neighbours_than_phases() -> None:
    """One order for the line, right all the same."""
    assert cycles(24, 10) > 0


EVERYWHERE = """
lair first(): float16 x[12][16] -> float16 s[12][16] { all (i, k) in (12, 16) s[i][k] = x[i][k] + 1 }
lair second(): float16 s[12][16], float16 W[12][12][16] -> float16 y[12]
{ all (j, i, k) in (12, 12, 16) y[j] += s[i][k] * W[j][i][k] }
graph g: float16 x[12][16], float16 W[12][12][16] -> float16 y[12] { s = first()(x) y = second()(s, W) }
"""


@pytest.mark.parametrize("row", ["i", "0"], ids=["from all", "from one"])
def test_rows_are_passed_on_as_they_come(row: str) -> None:
    """A PE that took all it passes on at once would let the far end wait for each PE in turn."""
    program = polyloom.read_program(EVERYWHERE)
    text = f"size: {{ PE[12, 1] }}\ncompute_map: {{ first[i, k] -> PE[{row}, 0];"
    text += " second[j, i, k] -> PE[j, 0] }\noport_map: { y[j = 0:11] -> [PE[j, 1] -> index[0]] }\n"
    result = polyloom.simulate(program, polyloom.read_mapping(text, program), check=True)
    assert result.check is not None and result.check.passed
    assert result.cycles < 1.8 * result.simulation.busy.max()
