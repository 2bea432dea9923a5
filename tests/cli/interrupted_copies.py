"""A command of which copies are interrupted: ``python interrupted_copies.py ONE_IN VERB ...``.

A trace function looks at the first call of each function. At one in so many the process forks, and its copy
gets a Ctrl-C there. The last line says, as JSON, of each copy what was wrong with its end; nothing, if all is
well.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import zlib
from types import CodeType, FrameType

from polyloom.cli import supervise
from polyloom.cli.main import run

ONE_IN = int(sys.argv[1])
SECONDS = 20
"""More a copy does not get. It takes a second where it imports a module in C, on a busy machine more."""
seen: set[CodeType] = set()
copies: list[str] = []


def called(frame: FrameType, event: str, argument: object) -> None:
    code = frame.f_code
    if code in seen or code.co_filename == supervise.__file__:
        return
    seen.add(code)
    place = f"{code.co_filename}:{code.co_firstlineno}"
    if zlib.crc32("/".join(place.split("/")[-2:]).encode()) % ONE_IN == 0:
        interrupt_copy(place)


def interrupt_copy(place: str) -> None:
    with tempfile.TemporaryFile() as errors:
        copy = os.fork()
        if copy == 0:
            sys.settrace(None)
            os.dup2(errors.fileno(), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            signal.alarm(SECONDS)
            signal.raise_signal(signal.SIGINT)
            return
        _, status = os.waitpid(copy, 0)
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
    ended = os.waitstatus_to_exitcode(status)
    copies.append("" if (ended, said) == (130, "interrupted") else f"{place}: {ended}: {said}")


def work() -> int:
    global first
    first = os.getpid()
    sys.settrace(called)
    try:
        return run(sys.argv[2:])
    finally:
        sys.settrace(None)


first = 0
status = supervise.supervised(work)
if os.getpid() == first:
    print("\n" + json.dumps(copies))
sys.exit(status)
