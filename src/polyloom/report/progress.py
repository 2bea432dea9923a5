"""Progress of long work on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

from polyloom.diagnostics import visible_name

DELAY = 2.0
SHORT_DELAY = 0.5
LINE_SECONDS = 10.0
"""How often a line says where work stands, where there is no terminal."""


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
    from rich.markup import escape

    line = Console(stderr=True).status(escape(visible_name(text)))
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

    ``count``: of layers; 0 where that is not known. Where stderr is no terminal, a line every 10 s.
    """
    if not sys.stderr.isatty():
        yield _lines(count)
        return
    from rich.console import Console
    from rich.markup import escape

    done = 0
    with Console(stderr=True).status("reading") as status:

        def show(name: str) -> None:
            nonlocal done
            done += 1
            status.update(escape(_progress(name, done, count)))

        yield show


def _progress(name: str, done: int, count: int) -> str:
    return f"{visible_name(name)} ({done} of {count})" if count else visible_name(name)


def _lines(count: int) -> Callable[[str], None]:
    """Return a function that says now and then where work stands."""
    done, said = 0, time.monotonic()

    def show(name: str) -> None:
        nonlocal done, said
        done += 1
        if time.monotonic() - said >= LINE_SECONDS:
            said = time.monotonic()
            print(_progress(name, done, count), file=sys.stderr, flush=True)

    return show
