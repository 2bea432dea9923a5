"""A LAIR map, checked: where instances are placed, where tensors come in and go out.

Source: dtg_codegen, Sec. 4.1.2; docs/interface.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import shorten

import islpy as isl

from polyloom.diagnostics import Span
from polyloom.wafer.mapping.grid import Grid


@dataclass(frozen=True, eq=False, kw_only=True)
class Mapping:
    """A checked map.

    ``placement``: statement name to ``{ S[i, j] -> PE[x, y] }``; ``inputs`` and ``outputs``: tensor name to
    ``{ x[i] -> [PE[x, y] -> index[k]] }`` with external PEs, in the order of the text; ``state``: pairs
    (resident input, output that takes its place); ``trigger``: statement name to stream, or None: its
    streams are stored, and it runs when they have ended.
    """

    grid: Grid
    placement: dict[str, isl.Map]
    inputs: dict[str, isl.Map]
    outputs: dict[str, isl.Map]
    sparse: tuple[str, ...]
    state: tuple[tuple[str, str], ...]
    trigger: dict[str, str | None]
    spans: dict[str, Span] = field(repr=False)

    def __repr__(self) -> str:
        placed = shorten(", ".join(self.placement), 120)
        return f"<Mapping of {placed} on {self.grid.width} x {self.grid.height} PEs>"

    def span(self, key: str) -> Span | None:
        """Where the entry ``key`` stands; None where the map has none."""
        return self.spans.get(key)
