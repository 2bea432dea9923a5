"""How tuning looks to a person: a line that moves while it runs, a table at the end, a JSON document."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.table import Table

from polyloom.diagnostics import visible_name
from polyloom.mdh.tuning.tune import Progress, Tuned
from polyloom.report.progress import DELAY, now_and_then
from polyloom.report.terminal import console, seconds_text, takes_escapes

WIDTH = 120
"""Characters of a line where stdout is no terminal."""


@contextmanager
def tuning_progress(*, quiet: bool = False) -> Iterator[Callable[[Progress], None] | None]:
    """Give a function that shows progress on stderr; None where that is no terminal, or ``quiet``.

    On a terminal that shall get no escape sequences, a line now and then.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    if not takes_escapes(sys.stderr):
        say = now_and_then(DELAY)
        yield lambda progress: say(progress_text(progress))
        return
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    text = TextColumn("{task.description}", markup=False)
    bar = Bar(text, BarColumn(20), console=Console(stderr=True), transient=True)
    task = bar.add_task("starting the process that times candidates", total=None)
    budget = 0.0

    def show(progress: Progress) -> None:
        nonlocal budget
        budget = max(budget, progress.left)
        bar.update(task, description=progress_text(progress), total=budget, completed=budget - progress.left)

    with bar:
        yield show


def progress_text(progress: Progress) -> str:
    """Return one line: name, best so far, gain, evaluations, time left."""
    of = f" ({progress.number} of {progress.count})" if progress.count > 1 else ""
    if math.isinf(progress.best):
        best = "nothing right yet"
    else:
        best = f"best {seconds_text(progress.best)}"
        best += f", {progress.first / progress.best:.2f}x the first" if progress.first > progress.best else ""
    rejected = f", {progress.rejected} rejected" if progress.rejected else ""
    evaluated = f"{progress.evaluations} evaluated{rejected}"
    return f"{visible_name(progress.name)}{of}: {best}; {evaluated}; {progress.left:.0f} s left"


def print_tuning(results: Sequence[Tuned], device: str) -> None:
    """Print a table of what was found."""
    out = console(piped=WIDTH)
    if not results:
        out.print("there is nothing to tune: no md_hom of this program has schedules")
        return
    table = Table(box=None, pad_edge=False)
    for title in ("md_hom", "sizes", "model's choice", "tuned", "gain", "GFLOP/s", "evaluated", "rejected"):
        table.add_column(title, justify="left" if title in ("md_hom", "sizes") else "right")
    for each in results:
        table.add_row(*_row(each))
    out.print(f"tuned for {device}")
    out.print(table)


def _row(tuned: Tuned) -> tuple[str, ...]:
    gain = tuned.default / tuned.seconds
    rate = rate_of(tuned)
    return (
        tuned.name,
        " x ".join(str(size) for size in tuned.sizes),
        seconds_text(tuned.default),
        seconds_text(tuned.seconds),
        f"{gain:.2f}x" if math.isfinite(gain) else "",
        "" if rate is None else f"{rate:.1f}",
        str(tuned.evaluations),
        str(sum(tuned.rejected.values())),
    )


def rate_of(tuned: Tuned) -> float | None:
    """Return operations per second, in 10 ** 9; None where they were not counted."""
    if tuned.operations is None or not math.isfinite(tuned.seconds):
        return None
    return tuned.operations / tuned.seconds / 1e9


def tuning_document(results: Sequence[Tuned], device: str, database: str) -> dict[str, Any]:
    """Return the document of ``tune --json``."""
    return {
        "device": device,
        "database": database,
        "interrupted": any(each.interrupted for each in results),
        "md_homs": [_document(each) for each in results],
    }


def _document(tuned: Tuned) -> dict[str, Any]:
    return {
        "name": tuned.name,
        "sizes": list(tuned.sizes),
        "signature": tuned.key.signature,
        "generator": tuned.key.generator,
        "schedule": json.loads(tuned.schedule),
        "seconds": _finite(tuned.seconds),
        "default_seconds": _finite(tuned.default),
        "gflops": rate_of(tuned),
        "evaluations": tuned.evaluations,
        "rejected": {status.value: count for status, count in sorted(tuned.rejected.items(), key=str)},
    }


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None
