"""One of several layers: what goes wrong in it does not end the others."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TypeVar

from polyloom.diagnostics import InternalFault, PolyloomError, Refusal, error, visible
from polyloom.polyhedra.effort import apart, refusing

T = TypeVar("T")


def attempt(task: Callable[[], T]) -> T | Refusal:
    """Return what the task of a layer gives, or why it gives nothing: ``PolyloomError``, or a fault of ours.

    isl may do for it what it may do for a whole command. What the system refuses (``OSError``,
    ``MemoryError``) is raised: the other layers would meet it, too.
    """
    try:
        with apart(), refusing("all that one layer asks for"):
            return task()
    except PolyloomError as refused:
        return refused
    except (OSError, MemoryError):
        raise
    except Exception as fault:
        return _ours(fault)


def _ours(fault: Exception) -> InternalFault:
    what = visible(f"{type(fault).__name__}: {fault}".strip().partition("\n")[0])
    helps = ["please report it with the command and its files; `--debug` shows where it happened"]
    message = f"this is a fault of Polyloom, not yours: {what}"
    trace = "".join(traceback.format_exception(fault))
    return InternalFault(error("internal-fault", message, helps=helps), trace=trace)
