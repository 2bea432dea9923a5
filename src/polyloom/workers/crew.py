"""Those who do tasks: this process alone, its children (``local``), or workers of a cluster (``cluster``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from polyloom.diagnostics import PolyloomError, error

T = TypeVar("T")
R = TypeVar("R")

Begun = Callable[[int], None]
"""Called with the position of a task that is begun, maybe from another thread."""

GivenUp: TypeAlias = Callable[[T, PolyloomError], R]
"""Called with a task of which two workers died, and ``worker-lost``; returns what stands for its result."""


class Crew(Protocol):
    """Workers that call functions, each one task at a time.

    Functions stand in modules; tasks and results can be pickled. The results do not depend on the crew.
    """

    @property
    def size(self) -> int:
        """How many tasks are done at a time."""

    def each(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        begun: Begun | None = None,
        given_up: GivenUp[T, R] | None = None,
    ) -> list[R]:
        """Call a function for each task, and return the results in the order of the tasks.

        ``given_up``: what a task has for a result of which two workers died; without it the others end, too.
        Errors: those of the function; ``worker-lost`` where two workers died of one task.
        """


class Alone:
    """The process itself; of ``Crew``."""

    size = 1

    def each(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        begun: Begun | None = None,
        given_up: GivenUp[T, R] | None = None,
    ) -> list[R]:
        """Call a function for each task. Errors: those of the function."""
        found = []
        for at, task in enumerate(tasks):
            if begun is not None:
                begun(at)
            found.append(function(task))
        return found


ALONE = Alone()


def lost(*reasons: str) -> PolyloomError:
    """Return the diagnostic for a task that nobody survives."""
    helps = ["is there enough memory? a process that asks for more than there is may be ended by the system"]
    return PolyloomError(error("worker-lost", "a task was given up", notes=reasons, helps=helps))
