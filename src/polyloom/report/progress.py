"""Progress of long work on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

from polyloom.diagnostics import visible_name

DELAY = 2.0
SHORT_DELAY = 0.5


@contextmanager
def progress_bar() -> Iterator[Callable[[int, int], None] | None]:
    """Give a function that takes events and cycle of a simulation, and show them on stderr after 2 s.

    Nothing is shown, and nothing given, where stderr is no terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("compiling for this computer", total=None)
    timer = Timer(DELAY, bar.start)
    timer.daemon = True
    timer.start()

    def update(events: int, cycle: int) -> None:
        bar.update(task, description=f"simulating: cycle {cycle:,}, {events:,} events")

    try:
        yield update
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


@contextmanager
def status_line(text: str) -> Iterator[None]:
    """Show on stderr what is done, from half a second on; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    line = Console(stderr=True).status(text)
    timer = Timer(SHORT_DELAY, line.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        line.stop()


@contextmanager
def layer_status(count: int) -> Iterator[Callable[[str], None] | None]:
    """Give a function that takes the name of a layer before it is simulated, and show it on stderr.

    Nothing is shown, and nothing given, where stderr is no terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape

    done = 0
    with Console(stderr=True).status("reading") as status:

        def show(name: str) -> None:
            nonlocal done
            done += 1
            status.update(f"{escape(visible_name(name))} ({done} of {count})")

        yield show
