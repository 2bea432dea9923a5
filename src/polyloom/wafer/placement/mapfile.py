"""A mapping as the text of a map file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyloom.ir.statements import Statement
from polyloom.wafer.placement.coordinates import Place

WIDTH = 110


def entry(key: str, parts: Sequence[str]) -> str:
    """Return ``key: { a; b }``, a part to a line where they are long."""
    one_line = f"{key}: {{ {'; '.join(parts)} }}"
    if len(one_line) <= WIDTH:
        return one_line
    indent = ";\n" + " " * (len(key) + 4)
    return f"{key}: {{ {indent.join(parts)} }}"


def placement_parts(
    statements: Sequence[Statement], places: Sequence[Place | None], fixed: Mapping[str, str]
) -> list[str]:
    """Return ``ff[i, j] -> PE[j//4, i//8]`` for each statement; ``fixed``: texts of those that are given."""
    pairs = zip(statements, places, strict=True)
    return [fixed[s.name] if p is None else p.text(s) for s, p in pairs]
