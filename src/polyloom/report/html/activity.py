"""What the PEs do as time goes on, for the page's slider."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyloom.report.html.packing import pack_numbers
from polyloom.wafer.simulator.profile import ACTIVITIES, Activity


def activity_document(activity: Activity, width: int, height: int) -> dict[str, Any]:
    """Return ``{side, length, frames, columns, rows, kinds, values}``.

    ``values``: 0 to 255 for [frame][kind][row][column], the share of the cycles of a cell's PEs; of wavelets
    that leave to neighbours, how many a PE and cycle, at most 1.
    """
    frames, _, rows, columns = activity.cycles.shape
    available = activity.length * _pes_of_cells(activity.side, width, height)
    shares = np.minimum(activity.cycles / available, 1.0)
    return {
        "side": activity.side,
        "length": activity.length,
        "frames": frames,
        "columns": columns,
        "rows": rows,
        "kinds": list(ACTIVITIES),
        "values": pack_numbers(np.ceil(shares * 255).astype(np.int64).ravel()),
    }


def _pes_of_cells(side: int, width: int, height: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return how many PEs each cell has, int64[rows, columns]; those at the edges may have fewer."""
    across, down = (
        np.minimum(side, extent - np.arange(0, extent, side, dtype=np.int64)) for extent in (width, height)
    )
    return np.asarray(down[:, None] * across[None, :])
