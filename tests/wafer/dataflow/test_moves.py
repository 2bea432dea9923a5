"""Internal tensors that travel: to neighbours in phases, so that the length of the line does not count."""

from __future__ import annotations

import pytest

import polyloom

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


@pytest.mark.parametrize("reach", [1, 2, pytest.param(4, marks=[pytest.mark.slow, pytest.mark.ci])])
def test_a_longer_line_takes_no_longer(reach: int) -> None:
    """The way to a neighbour is as long everywhere; one order for the whole line would make all wait."""
    assert cycles(36, reach) < 1.1 * cycles(18, reach)


def test_more_neighbours_than_phases() -> None:
    """One order for the line, right all the same."""
    assert cycles(24, 10) > 0
