"""Static control parts as text and as documents: ``show --as scop``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyloom.frontends.c.document import document
from polyloom.frontends.c.read import Part


def documents(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return the documents of ``show --as scop --json``. Source: docs/interface.md (JSON of show)."""
    return [document(part) for part in parts]


def text(parts: Sequence[Part]) -> str:
    """Return the parts for a person: each statement with its line, its domain and its accesses."""
    return "\n".join(_text(document(part)) for part in parts)


def _text(found: dict[str, Any]) -> str:
    lines = [f"{found['function']}:"]
    lines += [f"  {s['name']}, line {s['line']}: {s['body']}" for s in found["statements"]]
    for name in ("context", "domain", "schedule", "reads", "writes", "must_writes"):
        lines += [f"{name.replace('_', ' ')}:", *_pieces(found[name])]
    lines += ["arrays:", *(f"  {a['element_type']} {a['extent']}" for a in found["arrays"])]
    return "\n".join(lines) + "\n"


def _pieces(text: str) -> list[str]:
    """Return one line for each part of a union, without the parameters or colon in front."""
    inside = text[text.index("{") + 1 : text.rindex("}")]
    parts = [piece.strip() for piece in inside.split(";") if piece.strip()]
    return [f"  {part.removeprefix(':').strip() or 'nothing is known'}" for part in parts]
