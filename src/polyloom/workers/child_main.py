"""The child of ``child``: reads calls from stdin, answers on what was stdout.

Everything that the driver prints goes to stderr. Ctrl-C is the parent's to handle; where the parent dies,
so does the child, also in the middle of a kernel (Linux) or before its next call (elsewhere).
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
from importlib import import_module
from typing import IO, Any

from polyloom.diagnostics import PolyloomError, Unsupported
from polyloom.workers.child import Fault, Job, read_message, write_message

_PR_SET_PDEATHSIG = 1


def main(parent: int) -> None:
    """Serve the process ``parent`` until its pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with(parent)
    faulthandler.disable()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _serve(sys.stdin.buffer, answers)


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the call
            sys.exit(1)


def _serve(calls: IO[bytes], answers: IO[bytes]) -> None:
    def stage(name: str) -> None:
        write_message(answers, ("stage", name))

    job = read_message(calls)
    try:
        target = _made(job)
        write_message(answers, ("result", None))
    except Exception as fault:
        write_message(answers, ("fault", _fault(fault)))
        return
    while (call := read_message(calls)) is not None:
        method, arguments = call
        try:
            write_message(answers, ("result", getattr(target, method)(stage, *arguments)))
        except Exception as fault:
            write_message(answers, ("fault", _fault(fault)))


def _made(job: Job) -> Any:
    module, _, name = job.factory.partition(":")
    return getattr(import_module(module), name)(job.argument)


def _fault(fault: Exception) -> Fault:
    diagnostics = fault.diagnostics if isinstance(fault, PolyloomError) else ()
    text = f"{type(fault).__name__}: {fault}"
    return Fault(diagnostics, isinstance(fault, Unsupported), text)


if __name__ == "__main__":
    main(int(sys.argv[1]))
