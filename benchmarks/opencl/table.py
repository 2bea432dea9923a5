"""Print the results of ``run.py --json`` as a table for a document.

    python benchmarks/opencl/table.py results.json                 device times, in GFLOP/s
    python benchmarks/opencl/table.py --calls results.json ...     whole calls, in microseconds

The second is of programs as C, nothing tuned, in the order of the files. What calls take at least is that of
the machine's rates in the same rounds: a hundred percent of the bound is as fast as the machine can be.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from workloads import workload

OURS = ("Polyloom, tuned", "device")
HEAD = """\
| workload | tuned, GFLOP/s | tuned, the call | untuned | fastest other | its time over ours |
|---|---:|---:|---:|---|---:|"""
CALLS_HEAD = """\
| workload | Polyloom | fastest other | its time over ours | of the bound |
|---|---:|---|---:|---:|"""
COLUMNS = (OURS, ("Polyloom, tuned", "call"), ("Polyloom, untuned", "device"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", action="store_true", help="whole calls of programs as C")
    parser.add_argument("results", type=Path, nargs="+")
    given = parser.parse_args()
    measured = [each for path in given.results for each in json.loads(path.read_text())]
    print(CALLS_HEAD if given.calls else HEAD)
    for each in measured:
        print(f"| {' | '.join((calls_row if given.calls else row)(each))} |")


def calls_row(measured: dict[str, Any]) -> list[str]:
    found = {each["contender"]: each for each in measured["results"] if each["metric"] == "call"}
    ours = found.pop("Polyloom, untuned")
    others = [each for name, each in found.items() if not name.startswith("Polyloom")]
    title = workload(measured["workload"]).title
    of_bound = f"{measured['bound'] / median(ours['seconds']):.0%}"
    if not others:
        return [title, microseconds(ours), "none", "", of_bound]
    best = min(others, key=lambda each: median(each["seconds"]))
    ratio = median(b / o for b, o in zip(best["seconds"], ours["seconds"], strict=True))
    return [title, microseconds(ours), f"{best['contender']}, {microseconds(best)}", f"{ratio:.2f}", of_bound]


def microseconds(result: dict[str, Any]) -> str:
    value = median(result["seconds"]) * 1e6
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def row(measured: dict[str, Any]) -> list[str]:
    found = {(each["contender"], each["metric"]): each for each in measured["results"]}
    rates = [rate(measured, found.get(column)) for column in COLUMNS]
    others = [each for (name, _), each in found.items() if not name.startswith("Polyloom")]
    title = workload(measured["workload"]).title
    if not others:
        return [title, *rates, "none", ""]
    best = min(others, key=lambda each: median(each["seconds"]))
    name = f"{best['contender']}, {rate(measured, best)}"
    low, middle, high = best["ratio"]
    return [title, *rates, name, f"{middle:.2f} ({low:.2f} to {high:.2f})"]


def rate(measured: dict[str, Any], result: dict[str, Any] | None) -> str:
    return "" if result is None else f"{measured['flops'] / median(result['seconds']) / 1e9:.3g}"


if __name__ == "__main__":
    main()
