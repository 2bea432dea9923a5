"""Those who do tasks: this process alone, its children (``local``), or workers of a cluster (``cluster``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from polyloom.diagnostics import PolyloomError, error

T = TypeVar("T")
R = TypeVar("R")

Begun = Callable[[int], None]
"""Called with the position of a task that is begun, maybe from another thread."""


class Crew(Protocol):
    """Workers that call functions, each one task at a time.

    Functions stand in modules; tasks and results can be pickled. The results do not depend on the crew.
    """

    @property
    def size(self) -> int:
        """How many tasks are done at a time."""

    def each(self, function: Callable[[T], R], tasks: Sequence[T], begun: Begun | None = None) -> list[R]:
        """Call a function for each task, and return the results in the order of the tasks.

        Errors: those of the function; ``worker-lost`` where two workers died of one task.
        """


class Alone:
    """The process itself; of ``Crew``."""

    size = 1

    def each(self, function: Callable[[T], R], tasks: Sequence[T], begun: Begun | None = None) -> list[R]:
        """Call a function for each task. Errors: those of the function."""
        found = []
        for at, task in enumerate(tasks):
            if begun is not None:
                begun(at)
            found.append(function(task))
        return found


ALONE = Alone()


def lost(reason: str) -> PolyloomError:
    """Return the diagnostic for a task that nobody survives."""
    helps = ["is there enough memory for so many at a time? `--jobs 1` does one after another"]
    return PolyloomError(error("worker-lost", "a task was given up", notes=[reason], helps=helps))
