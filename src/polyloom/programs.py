"""Programs of the system, such as C compilers: not from the current folder, and with a time limit."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MOST_OUTPUT = 2**24
"""Bytes that a program may print on each of its two outputs."""

_PIECE = 2**16


class ProgramFault(Exception):
    """A program that cannot be started, was killed, took too long or printed too much; the text says what."""


@dataclass(frozen=True)
class Ended:
    """What became of a program. ``status`` is never a signal's."""

    status: int
    out: str
    err: str


def find_program(name: str) -> str | None:
    """Return the path of a program; entries of ``PATH`` that mean the current folder do not count."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which(name, path=os.pathsep.join(f for f in folders if Path(f).is_absolute()))


def python_module(name: str) -> tuple[str, ...]:
    """Return the command that runs a module of Python, which is not looked for in the current folder."""
    return (sys.executable, "-P", "-m", name)


def run_program(
    command: Sequence[str],
    *,
    seconds: float,
    folder: Path | None = None,
    temporary: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program in ``folder``, without input, to its end or that of so many seconds.

    Its temporary files lie in ``temporary``, else in ``folder``: a compiler that is killed leaves them.

    Raises ``ProgramFault``.
    """
    temporary = temporary or folder
    if temporary is not None:
        environment = {**(environment or os.environ), "TMPDIR": str(temporary)}
    own_group = {"process_group": 0} if os.name == "posix" else {}
    try:
        process = subprocess.Popen(
            list(command),
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **own_group,  # type: ignore[call-overload]
        )
    except (OSError, ValueError) as fault:
        raise ProgramFault(f"it cannot be started: {fault}") from fault
    with process:
        try:
            out, err = _read(process, time.monotonic() + seconds, seconds)
        except BaseException:
            _kill(process)
            raise
    if process.returncode < 0:
        raise ProgramFault(f"it was killed by {signal_name(-process.returncode)}")
    return Ended(process.returncode, out, err)


def _read(process: subprocess.Popen[bytes], deadline: float, seconds: float) -> tuple[str, str]:
    """Return both outputs when they end and the program did."""
    pipes = [pipe.fileno() for pipe in (process.stdout, process.stderr) if pipe]
    found = {pipe: bytearray() for pipe in pipes}
    with selectors.DefaultSelector() as waiting:
        for pipe in pipes:
            waiting.register(pipe, selectors.EVENT_READ)
        while waiting.get_map():
            ready = waiting.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise ProgramFault(f"it took longer than {seconds:g} s")
            for key, _ in ready:
                piece = os.read(key.fd, _PIECE)
                found[key.fd] += piece
                if not piece:
                    waiting.unregister(key.fd)
                if len(found[key.fd]) > MOST_OUTPUT:
                    raise ProgramFault(f"it printed more than {MOST_OUTPUT} bytes")
    with suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, deadline - time.monotonic()))
        out, err = (data.decode("utf-8", errors="replace") for data in found.values())
        return out, err
    raise ProgramFault(f"it took longer than {seconds:g} s")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a program that nobody has waited for, with the processes that it started."""
    with suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def signal_name(number: int) -> str:
    """Return what a signal is called."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def first_error(log: str) -> str:
    """Return the first line of a log that names an error, else the first that says anything."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    named = (line for line in lines if re.search(r"\berror\b(?! code)", line, re.IGNORECASE))
    return next(named, lines[0] if lines else "no reason is given")
