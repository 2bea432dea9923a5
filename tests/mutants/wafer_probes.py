"""Probes of the wafer that its own mutants (``wafer/test_wafer_mutants``) leave open."""

from __future__ import annotations

from test_extended_strategies import BAND, Made, only, used

from polyloom.wafer.machine.options import Extension

DIAGONALS = """lair f(): float16 x[48], float16 W[2][8][40] -> float16 y[2]
{ all (w, r, s) in (2, 8, 40) y[w] += x[w + r + s] * W[w][r][s] }"""


def order_is_kept() -> None:
    """Sums of floats keep the order of the layer's terms: no other basis, no boxes."""
    orders = {Extension.UNIMODULAR, Extension.BOXES}
    assert not used(only(Made(DIAGONALS, BAND.places).compile())) & orders
