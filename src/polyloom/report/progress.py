"""Progress of long work on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from threading import Timer

from polyloom.diagnostics import visible_name
from polyloom.report.terminal import takes_escapes

DELAY = 2.0
SHORT_DELAY = 0.5
LINE_SECONDS = 10.0
"""How often a line says where work stands, where there is no terminal."""


@contextmanager
def progress_bar() -> Iterator[Callable[[int, int], None] | None]:
    """Give a function that takes events and cycle of a simulation, and show them on stderr after 2 s.

    Nothing is shown, and nothing given, where stderr is no terminal; on one that shall get no escape
    sequences, a line now and then.
    """
    if not takes_escapes(sys.stderr):
        say = now_and_then(DELAY)
        yield (lambda events, cycle: say(_simulating(events, cycle))) if sys.stderr.isatty() else None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("compiling for this computer", total=None)

    def update(events: int, cycle: int) -> None:
        bar.update(task, description=_simulating(events, cycle))

    try:
        with _begun_after(DELAY, bar.start):
            yield update
    finally:
        bar.stop()


@contextmanager
def status_line(text: str) -> Iterator[None]:
    """Show on stderr what is done, from half a second on; nothing where stderr is no terminal.

    On a terminal that shall get no escape sequences, a line after two seconds.
    """
    if not takes_escapes(sys.stderr):
        say = partial(print, visible_name(text), file=sys.stderr, flush=True)
        with _begun_after(DELAY, say) if sys.stderr.isatty() else nullcontext():
            yield
        return
    from rich.console import Console
    from rich.markup import escape

    line = Console(stderr=True).status(escape(visible_name(text)))
    try:
        with _begun_after(SHORT_DELAY, line.start):
            yield
    finally:
        line.stop()


@contextmanager
def _begun_after(seconds: float, begin: Callable[[], object]) -> Iterator[None]:
    """Call a function where what is inside takes longer than so many seconds."""
    timer = Timer(seconds, begin)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@contextmanager
def layer_status(count: int) -> Iterator[Callable[[str], None] | None]:
    """Give a function that takes the name of a layer before it is simulated, and show it on stderr.

    ``count``: of layers. Where stderr is no terminal, a line every 10 s.
    """
    if not takes_escapes(sys.stderr):
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
    return f"{visible_name(name)} ({done} of {count})"


@contextmanager
def network_status() -> Iterator[tuple[Callable[[str], None], Callable[[int, int], None]]]:
    """Give two functions: one takes what of a network is placed, one events and cycle of its simulation.

    What takes more than two seconds is shown on stderr: one line of a terminal that changes, elsewhere a
    line now and then.
    """
    if not takes_escapes(sys.stderr):
        say = now_and_then(DELAY)
        yield (lambda name: say(f"placing {visible_name(name)}")), lambda e, c: say(_simulating(e, c))
        return
    from rich.console import Console
    from rich.markup import escape

    status = Console(stderr=True).status("reading")
    timer = Timer(DELAY, status.start)
    timer.daemon = True
    timer.start()

    def placing(name: str) -> None:
        status.update(escape(f"placing {visible_name(name)}"))

    def simulating(events: int, cycle: int) -> None:
        status.update(_simulating(events, cycle))

    try:
        yield placing, simulating
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def _simulating(events: int, cycle: int) -> str:
    return f"simulating: cycle {cycle:,}, {events:,} events"


def _lines(count: int) -> Callable[[str], None]:
    """Return a function that says now and then where work stands."""
    done, say = 0, now_and_then(LINE_SECONDS)

    def show(name: str) -> None:
        nonlocal done
        done += 1
        say(_progress(name, done, count))

    return show


def now_and_then(first: float) -> Callable[[str], None]:
    """Return a function that prints a line to stderr, the first one after so many seconds."""
    due = time.monotonic() + first

    def say(line: str) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + LINE_SECONDS
            print(line, file=sys.stderr, flush=True)

    return say
