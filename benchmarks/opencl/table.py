"""Print the results of ``run.py --json`` as a table for a document.

python benchmarks/opencl/table.py results.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from workloads import workload

OURS = ("Polyloom, tuned", "device")
COLUMNS = (OURS, ("Polyloom, tuned", "call"), ("Polyloom, untuned", "device"))


def main() -> None:
    print("| workload | tuned, GFLOP/s | tuned, the call | untuned | fastest other | its time over ours |")
    print("|---|---:|---:|---:|---|---:|")
    for measured in json.loads(Path(sys.argv[1]).read_text()):
        print(f"| {' | '.join(row(measured))} |")


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
