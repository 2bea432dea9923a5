"""A compiled program, where it lies on its wafer, and what it was compiled with."""

from __future__ import annotations

from dataclasses import dataclass, field

from polyloom.csl.compiled import Compiled


@dataclass(frozen=True)
class Built:
    """A program of an output folder. fabric_size: (width, height); fabric_offset: where its PE (0, 0) is."""

    program: Compiled
    arch: str
    fabric_size: tuple[int, int]
    fabric_offset: tuple[int, int]
    params: dict[str, int] = field(default_factory=dict)
