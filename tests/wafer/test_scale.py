"""The layer of benchmarks/scale.py: the same bits and cycles with any threads; code that hardly grows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scale import TILE, Row, compiled, map_text, measure


def without_times(row: Row) -> Row:
    return replace(row, compile=0.0, simulate=0.0, run_cpu=0.0, memory=0.0)


@pytest.mark.slow
@pytest.mark.ci
def test_threads_change_neither_bits_nor_cycles() -> None:
    one, two, three = (measure(45, 30, 2, threads) for threads in (1, 2, 3))
    assert one.exact and one.cycles > 0
    assert without_times(one) == without_times(two) == without_times(three)


def test_the_code_grows_with_the_roles_only() -> None:
    """357,000 PEs sum up in steps of other lengths than 256 do, which makes a few more roles."""
    small, large = compiled(16, 16), compiled(600, 595)
    assert len(large.files) <= 2 * len(small.files)
    assert sum(map(len, large.files.values())) <= 3 * sum(map(len, small.files.values()))


def test_the_map_covers_the_layer() -> None:
    assert f"x[j=0:{TILE * 600 - 1}]" in map_text(600, 595)
    assert "size: { PE[600, 595] }" in map_text(600, 595)
