"""What automatic mapping chose, and among what, for a person."""

from __future__ import annotations

import re

from rich.console import Console
from rich.table import Table
from rich.text import Text

from polyloom.report.terminal import console
from polyloom.wafer.placement.choose import SHOWN, Choice


def print_choice(choice: Choice, out: Console | None = None) -> None:
    """Print the chosen map, and of the best placements the best mapping with its estimated cycles.

    ``out``: None is stdout.
    """
    out = out or console()
    out.print(Text("Map, as far as it was chosen", style="bold"))
    out.print(Text(choice.text.rstrip()))
    for note in choice.notes:
        out.print(Text(f"# {note}", style="dim"))
    out.print()
    table = Table(box=None, pad_edge=False, title_justify="left")
    table.add_column("estimated cycles", justify="right")
    table.add_column("placement")
    table.add_column("best ports")
    table.add_column("ports tried", justify="right")
    for candidate in choice.candidates[:SHOWN]:
        placement, ports = _entry(candidate.text, "compute_map"), _ports(candidate.text)
        table.add_row(f"{candidate.cycles:,.0f}", placement, ports, str(candidate.variants))
    out.print(table)
    compared = f"{sum(c.variants for c in choice.candidates)} mappings were compared"
    more = len(choice.candidates) - SHOWN
    out.print(Text(f"{compared}; the other {more} placements took no fewer cycles" if more > 0 else compared))
    out.print()


def _entry(text: str, key: str) -> str:
    match = re.search(rf"^{key}: \{{ (.*?) \}}$", text, re.MULTILINE | re.DOTALL)
    return "" if match is None else re.sub(r"\s+", " ", match.group(1)).replace("; ", "\n")


def _ports(text: str) -> str:
    """Return ``x[i = 0:15] -> PE[i//4, -1]``, a line each."""
    found = "\n".join(part for key in ("iport_map", "oport_map") if (part := _entry(text, key)))
    return re.sub(r"-> \[(PE\[.*?\]) -> index(\[.*?\])\]", r"at \1 by \2", found)
