"""What a simulation gives: counts, busy cycles, the trace, and the error that ended it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from polyloom.wafer.simulator.profile import Profile


@dataclass(frozen=True)
class SimulationError:
    """Why a simulation stopped before its end.

    ``kind`` is stable and hyphenated (``poison``, ``out-of-bounds``, ``deadlock``, ...). ``pe`` is (x, y), or
    None if it concerns no PE; ``task`` and ``place`` (emitted file, line) are None where they are not known.
    ``details`` are lines: for a deadlock, who waits for what.
    """

    kind: str
    message: str
    cycle: int
    pe: tuple[int, int] | None = None
    task: str | None = None
    place: tuple[str, int] | None = None
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = [f"PE({self.pe[0]}, {self.pe[1]})"] if self.pe else []
        where += [f"task {self.task}"] if self.task else []
        where += [f"{self.place[0]}:{self.place[1]}"] if self.place else []
        where.append(f"cycle {self.cycle}")
        return "\n".join([f"{self.message} ({', '.join(where)})", *self.details])


class TraceKind(IntEnum):
    """What an event of the trace is."""

    TASK = 0
    SIMD = 1
    MICROTHREAD = 2
    LINK = 3
    WAIT = 4


@dataclass(frozen=True)
class Trace:
    """What happened when, ordered by start.

    ``events`` is a structured array (``library.TRACE_EVENT``); its field ``name`` indexes ``names``.
    ``profile``: what was counted of the whole run; None for programs in CSL.
    """

    width: int
    events: npt.NDArray[np.void]
    names: tuple[str, ...]
    profile: Profile | None = None


@dataclass(frozen=True)
class Counts:
    """What a simulation counts.

    ``cycles``: from the start to the last thing that happened. ``events``: wavelets leaving a router port,
    and starts of tasks. ``wavelets``: those that entered the fabric; ``hops``: crossings of links, links to
    sinks included. ``max_link_use``: wavelets on the busiest link per cycle, 0 to 1. ``busy``: cycles that a
    PE's main thread and microthreads worked, int64[height, width]. ``link_use``: wavelets that left a router
    to the north, south, east, west and to its PE, int64[height, width, 5].
    """

    cycles: int
    events: int
    wavelets: int
    hops: int
    max_link_use: float
    simd_operations: int
    simd_instructions: int
    scalar_operations: int
    busy: npt.NDArray[np.int64]
    link_use: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Result(Counts):
    """How a simulation ended."""

    error: SimulationError | None
    trace: Trace | None
