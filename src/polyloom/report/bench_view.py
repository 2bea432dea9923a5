"""C programs beside what Polyloom makes of them, as a table for a person and as a document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyloom.report.terminal import print_pairs
from polyloom.side_by_side import Comparison, mean_ratio


def document(found: Mapping[str, Comparison], device: str, cc: str) -> dict[str, Any]:
    """Return the document of ``bench --json``. Source: docs/interface.md."""
    programs = {name: _program(comparison) for name, comparison in found.items()}
    return {"device": device, "cc": cc, "programs": programs, "ratio": mean_ratio([*found.values()])}


def _program(found: Comparison) -> dict[str, Any]:
    ours, theirs = found.seconds
    return {
        "seconds": {"polyloom": ours, "cc": theirs},
        "ratio": found.ratio,
        "spread": list(found.spread),
        "rounds": {"polyloom": list(found.ours), "cc": list(found.theirs)},
    }


def print_bench(found: Mapping[str, Comparison], device: str, cc: str) -> None:
    """Print the medians of whole calls, their ratio, and the quarters in which the ratios of rounds lie."""
    rows = [("device", device), ("cc", cc)]
    for name, comparison in found.items():
        ours, theirs = (f"{1e3 * seconds:.4g} ms" for seconds in comparison.seconds)
        low, high = comparison.spread
        text = f"{ours}, as it stands {theirs}: {comparison.ratio:.2f} times as fast"
        rows.append((name, f"{text} ({low:.2f} to {high:.2f} in half of the rounds)"))
    if len(found) > 1:
        rows.append(("mean", f"{mean_ratio([*found.values()]):.2f} times as fast (geometric)"))
    print_pairs(rows)
