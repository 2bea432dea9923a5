"""What choosing schedules costs: searches, schedules looked at, seconds, by the time that kernels take.

    python benchmarks/choices.py                     ResNet-50, MobileNetV3, BERT, the thirty loop programs
    python benchmarks/choices.py resnet18 lu gemm    networks of benchmarks/networks.py, loop programs

Nothing that was chosen before is used, nothing is built. A search is that of one md_hom; those that are alike
in one program have one. Kernels are sorted by the time that the cost model expects of the best schedule.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from bisect import bisect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import loop_programs as loops
from networks import NETWORKS, written

import polyloom
from polyloom.mdh.schedule import choice
from polyloom.mdh.schedule.schedules import Schedule

DEFAULT = ("resnet50", "mobilenetv3", "bert_2", "loops")
BOUNDS = (1e-6, 1e-5, 1e-4, 1e-3)
CLASSES = ("below 1 us", "to 10 us", "to 100 us", "to 1 ms", "longer")


@dataclass(frozen=True)
class Searched:
    """One search. ``expected``: seconds of a run; ``spent``: of the processor; ``looked``: at how many."""

    expected: float
    spent: float
    looked: int


@contextmanager
def watched() -> Iterator[list[Searched]]:
    """Remember every search until the end."""
    found: list[Searched] = []
    search = choice._Search
    before = search.preferred

    def preferred(self: choice._Search, seeds: Sequence[Schedule]) -> Schedule:
        begin = time.process_time()
        chosen = before(self, seeds)
        found.append(Searched(self.seconds, time.process_time() - begin, self.looked))
        return chosen

    search.preferred = preferred  # type: ignore[method-assign]
    try:
        yield found
    finally:
        search.preferred = before  # type: ignore[method-assign]


def searches(name: str, folder: Path) -> list[Searched]:
    """Return the searches of a network, of a loop program in both types, or of all loop programs."""
    with watched() as found:
        if name in NETWORKS:
            polyloom.load(str(written(name, folder))).explain(native={})
        for program in loops.SIZES if name == "loops" else [name] if name in loops.SIZES else []:
            for real in ("double", "float"):
                loaded = polyloom.load(str(loops.source(program)), defines={"REAL": real})
                loaded.explain(native=loops.sizes(program, "timed"))
    return found


def main() -> None:
    """Print a row for each program, and one for each class of kernels in it."""
    print("| program | kernels of | searches | looks at a schedule | processor, s | ms a search |")
    print("|---|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = cache
        for name in sys.argv[1:] or DEFAULT:
            found = searches(name, Path(folder))
            print(row(name, "all", found))
            for k, label in enumerate(CLASSES):
                some = [s for s in found if bisect(BOUNDS, s.expected) == k]
                if some:
                    print(row("", label, some), flush=True)


def row(name: str, label: str, found: Sequence[Searched]) -> str:
    """Return a row of the table."""
    spent, count = sum(s.spent for s in found), max(1, len(found))
    looked = sum(s.looked for s in found)
    return f"| {name} | {label} | {len(found)} | {looked} | {spent:.2f} | {spent / count * 1e3:.1f} |"


if __name__ == "__main__":
    main()
