"""The terminal: width, colour, and what its encoding can show."""

from __future__ import annotations

from rich.console import Console

WIDEST = 120
PIPED = 100


def console() -> Console:
    """Return a console on stdout: as wide as the terminal, at most 120 columns; 100 where there is none."""
    found = Console(highlight=False, soft_wrap=False, emoji=False, markup=False)
    width = min(found.width, WIDEST) if found.is_terminal else PIPED
    return Console(width=width, highlight=False, emoji=False, markup=False)


def ascii_only(found: Console) -> bool:
    """Whether the encoding of stdout has no mathematical signs."""
    return not found.encoding.lower().startswith("utf")
