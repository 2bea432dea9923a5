"""From the times of rounds to what is printed: medians, ratios within a round, fractions of the peak."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table
from workloads import Workload

PEAK, TUNED = "peak", "Polyloom, tuned"
CACHED = 16e6
Round = dict[str, dict[str, list[float]]]


@dataclass(frozen=True)
class Measured:
    """``rounds``: for each, by contender and metric, the times of a visit (rates, for the peak)."""

    workload: Workload
    rounds: tuple[Round, ...]
    absent: dict[str, str]

    def rows(self) -> list[tuple[str, str]]:
        """Return contenders with their metrics; the device's time of ours stands before that of the call."""
        names = [name for name in self.rounds[0] if name != PEAK]
        ours = [n for n in names if n.startswith("Polyloom")]
        others = [n for n in names if n not in ours]
        return [(n, m) for n in sorted(ours, reverse=False) for m in ("device", "call")] + [
            (n, "call") for n in others
        ]

    def least(self, name: str, metric: str) -> list[float]:
        """Return the least time of each round."""
        return [min(each[name][metric]) for each in self.rounds]

    def rate(self, metric: str) -> float:
        """Return a rate of the machine: the median of the rounds' best."""
        return median(max(each[PEAK][metric]) for each in self.rounds)

    def ratios(self, name: str, metric: str) -> list[float]:
        """Return, per round, how many times as long a contender took as ours on the device."""
        return [min(each[name][metric]) / min(each[TUNED]["device"]) for each in self.rounds if TUNED in each]

    @property
    def bound(self) -> float:
        """Seconds that operations, or traffic with memory, take at the machine's measured rates.

        Less than ``CACHED`` bytes stay in the caches from one call to the next: then operations alone count.
        """
        w = self.workload
        reading = 1 / self.rate("sum")
        writing = max(2 / self.rate("scale") - reading, reading)
        traffic = (w.bytes - w.written) * reading + w.written * writing if w.bytes > CACHED else 0.0
        return max(w.flops / self.rate("fma"), traffic)


def quartiles(values: list[float]) -> tuple[float, float, float]:
    ordered = sorted(values)
    last = len(ordered) - 1
    return ordered[round(last / 4)], median(ordered), ordered[round(3 * last / 4)]


def print_workload(measured: Measured) -> None:
    console = Console(highlight=False, width=130)
    w = measured.workload
    rates = f"{measured.rate('fma') / 1e9:.0f} GFLOP/s, read {measured.rate('sum') / 1e9:.1f} GB/s"
    rates += f", copy {measured.rate('scale') / 1e9:.1f} GB/s"
    console.print(
        f"\n[bold]{w.title}[/bold]: {w.flops / 1e6:.3g} MFLOP, {w.bytes / 1e6:.3g} MB; machine: {rates}"
    )
    table = Table(box=None, pad_edge=False)
    for title in ("", "median", "GFLOP/s", "best", "GB/s", "of the bound", "time over ours (quartiles)"):
        table.add_column(title, justify="left" if not title else "right")
    for name, metric in measured.rows():
        table.add_row(*_row(measured, name, metric))
    console.print(table)
    for name, reason in measured.absent.items():
        console.print(f"  {name}: {reason}")


def _row(measured: Measured, name: str, metric: str) -> tuple[str, ...]:
    w = measured.workload
    times = measured.least(name, metric)
    middle = median(times)
    ratio = ""
    if ratios := measured.ratios(name, metric):
        low, mid, high = quartiles(ratios)
        ratio = f"{mid:.2f}x ({low:.2f} to {high:.2f})"
    return (
        f"{name} ({metric})",
        f"{middle * 1e6:.4g} us",
        f"{w.flops / middle / 1e9:.1f}",
        f"{w.flops / min(times) / 1e9:.1f}",
        f"{w.bytes / middle / 1e9:.1f}",
        f"{measured.bound / middle:.0%}",
        ratio,
    )


def summary_json(measured: Measured) -> dict[str, Any]:
    w = measured.workload
    return {
        "workload": w.name,
        "flops": w.flops,
        "bytes": w.bytes,
        "bound": measured.bound,
        "peak": {metric: measured.rate(metric) for metric in ("fma", "sum", "scale")},
        "absent": measured.absent,
        "results": [
            {
                "contender": name,
                "metric": metric,
                "seconds": measured.least(name, metric),
                "median": median(measured.least(name, metric)),
                "ratio": quartiles(measured.ratios(name, metric)) if measured.ratios(name, metric) else None,
            }
            for name, metric in measured.rows()
        ],
    }
