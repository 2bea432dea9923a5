"""Writes what happened when as lines that the viewer wse-viz reads: landings of words, work of PEs.

A line begins with `@CYCLE`; the first names the size. Source: what the viewer's own reader looks for (github
davidz-cerebras/wse-viz); of the vendor's traces, which it was made for, this is a small part.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from polyloom.wafer.simulator.result import Trace, TraceKind

_NEIGHBOUR = {0: (0, -1, "S"), 1: (0, 1, "N"), 2: (1, 0, "W"), 3: (-1, 0, "E"), 4: (0, 0, "R")}
"""By the side that a word leaves to (north, south, east, west, its PE): where it lands, from which link."""


def write_line_trace(trace: Trace, height: int, path: Path) -> None:
    """Write the trace as lines, ordered by cycle."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in trace_lines(trace, height))


def trace_lines(trace: Trace, height: int) -> Iterator[str]:
    """Yield the size, then a line for each landing, and for each begin and end of what a PE does."""
    yield f"@0 dimX={trace.width}, dimY={height}"
    lines = []
    for event in trace.events:
        start, end = int(event["start"]), int(event["start"] + event["duration"])
        y, x = divmod(int(event["pe"]), trace.width)
        kind, name = TraceKind(int(event["kind"])), trace.names[int(event["name"])]
        if kind is TraceKind.LINK:
            dx, dy, link = _NEIGHBOUR[int(event["lane"])]
            if 0 <= x + dx < trace.width and 0 <= y + dy < height:
                color = "".join(c for c in name if c.isdigit())
                lines.append((end, f"@{end} P{x + dx}.{y + dy} (hwtile) landing C{color} from link {link}, "))
        elif kind is not TraceKind.WAIT:
            word = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
            lines.append((start, f"@{start} P{x}.{y}: [EX OP] ^ 0x0000: T00 {word}"))
            lines.append((end, f"@{end} P{x}.{y}: [EX OP] IDLE"))
    lines.sort(key=lambda line: line[0])
    yield from (line for _, line in lines)
