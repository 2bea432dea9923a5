"""What SIMD detection does beyond the paper: each part has a name and can be switched off.

Not in the papers: dtg_codegen names several of these as future work (Sec. 3, 5.2, 5.3). See docs/simd.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Extension(Enum):
    """One step beyond the paper; the value is its name on the command line and in JSON."""

    FLOOR_OFFSET = "floor-offset"
    WHOLE_STREAM = "whole-stream"

    @property
    def meaning(self) -> str:
        """What it does, in a line."""
        return MEANINGS[self]


MEANINGS = {
    Extension.FLOOR_OFFSET: "the offset of a box hull may hold floor divisions",
    Extension.WHOLE_STREAM: "one instruction works on a whole dense stream as it comes",
}

ALL_EXTENSIONS = frozenset(Extension)


@dataclass(frozen=True)
class Effect:
    """An extension that changed how a task is done; ``detail`` says how."""

    extension: Extension
    detail: str


def without(*names: str) -> frozenset[Extension]:
    """Return all extensions but the named ones; ValueError where a name is unknown."""
    return ALL_EXTENSIONS - {Extension(name) for name in names}
