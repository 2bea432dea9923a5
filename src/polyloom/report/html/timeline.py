"""What happened when on some PEs, for the page: wavelets in a row joined, and bounded in number."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.wafer.simulator.result import Trace, TraceKind

MOST_EVENTS = 40_000
"""In one page."""

FEWEST_EVENTS = 300
"""That a PE may show at least."""

Events = npt.NDArray[np.void]


def timelines(trace: Trace, most: int = MOST_EVENTS) -> dict[str, Any]:
    """Return ``{names, pes: [{x, y, total, events}]}``.

    ``events`` is flat, seven numbers each: start, duration, kind (``TraceKind``), lane, name, how many
    wavelets it joins, the line of the emitted C (0: none); of a PE with more than
    its share, the first ones. PEs in the order of y and x.
    """
    numbers = np.unique(trace.events["pe"])
    by_pe = [_joined(trace.events[trace.events["pe"] == pe]) for pe in numbers]
    share = max(FEWEST_EVENTS, _share([len(rows) for rows in by_pe], most))
    return {
        "names": list(trace.names),
        "pes": [
            {
                "x": int(pe) % trace.width,
                "y": int(pe) // trace.width,
                "total": len(rows),
                "events": rows[:share].ravel().tolist(),
            }
            for pe, rows in zip(numbers, by_pe, strict=True)
        ],
    }


def _share(counts: list[int], most: int) -> int:
    """Return how many events each PE may show so that all together show at most ``most``.

    What PEs with few events leave is for those with many.
    """
    left = most
    for k, count in enumerate(sorted(counts)):
        share = left // (len(counts) - k)
        if count > share:
            return share
        left -= count
    return max(counts, default=0)


def _joined(events: Events) -> npt.NDArray[np.int64]:
    """Return int64[n, 7], ordered by start: wavelets of one color that leave in one cycle after another are
    one row.
    """
    order = np.lexsort((events["start"], events["lane"], events["kind"]))
    rows = events[order]
    follows = np.zeros(len(rows), dtype=np.bool_)
    same = [rows[field][1:] == rows[field][:-1] for field in ("kind", "lane", "name")]
    next_cycle = rows["start"][1:] == rows["start"][:-1] + rows["duration"][:-1]
    link = rows["kind"][1:] == TraceKind.LINK
    follows[1:] = link & next_cycle & np.logical_and.reduce(same)
    first = np.flatnonzero(~follows)
    if not len(first):
        return np.zeros((0, 7), dtype=np.int64)
    duration = np.add.reduceat(rows["duration"], first)
    count = np.diff(np.append(first, len(rows)))
    same_of_all = (rows[field][first] for field in ("kind", "lane", "name"))
    columns = [rows["start"][first], duration, *same_of_all, count, rows["line"][first]]
    table = np.stack([column.astype(np.int64) for column in columns], axis=1)
    return np.asarray(table[np.lexsort((table[:, 3], table[:, 2], table[:, 0]))])
