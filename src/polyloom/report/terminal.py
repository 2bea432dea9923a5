"""The terminal: width, colour, and what its encoding can show."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from io import StringIO
from typing import Any, Literal, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from polyloom.diagnostics import visible

WIDEST = 120
PIPED = 100
WIDE = 150
"""For tables of many columns that nobody's terminal has to fold."""


def console(piped: int = PIPED) -> Console:
    """Return a console on stdout: as wide as the terminal, at most 120; ``piped`` where there is none."""
    found = Console(highlight=False, soft_wrap=False, emoji=False, markup=False)
    width = min(found.width, WIDEST) if found.is_terminal else piped
    colours: Literal["auto"] | None = None if wants_plain_text() else "auto"
    return _Console(width=width, color_system=colours, highlight=False, emoji=False, markup=False)


def wants_plain_text() -> bool:
    """Whether the environment asks for text without escape sequences. Source: no-color.org."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def takes_escapes(stream: TextIO) -> bool:
    """Whether colours, and lines that change, may be written to a stream."""
    return stream.isatty() and not wants_plain_text()


def text_of(draw: Callable[[Console], None]) -> str:
    """Return what is printed on a console that is given to ``draw``."""
    written = StringIO()
    draw(
        _Console(file=written, force_terminal=False, width=PIPED, highlight=False, emoji=False, markup=False)
    )
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


def seconds_text(seconds: float) -> str:
    """Return a time as a person reads it: ``1.23 ms``."""
    if not math.isfinite(seconds):
        return "none"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


class _Console(Console):
    """A console that shows control characters of what it is given as escapes."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)


def print_pairs(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and values on stdout, a line each."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in rows:
        table.add_row(name, value)
    console().print(table)


def ascii_only(found: Console) -> bool:
    """Whether the encoding of stdout has no mathematical signs."""
    return not found.encoding.lower().startswith("utf")
