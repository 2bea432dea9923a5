"""What a traced simulation counts: cycles of each line of the emitted C, and of areas as time goes on."""

from __future__ import annotations

import ctypes
from ctypes import Structure, c_char_p, c_int32, c_int64, c_uint32, c_void_p
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

ACTIVITIES = ("computes", "waits", "beside", "sends")
"""What PEs do: the main thread at work, or waiting in a task; microthreads at work; wavelets that leave the
router to a neighbour."""


@dataclass(frozen=True)
class LineUse:
    """The cycles of a line of a role's emitted C, on all its PEs together.

    ``line`` is 0 for what a task, ``task``, takes before its first statement (it is dispatched); of other
    lines ``task`` is empty, and the file's name in CSL, where ``role`` is empty. ``times``:
    how often the line was entered; ``worked``, ``waited``: cycles of the main thread; ``beside``: those of
    microthreads that the line started.
    """

    role: str
    line: int
    task: str
    times: int
    worked: int
    waited: int
    beside: int


@dataclass(frozen=True)
class Activity:
    """What PEs do, summed over cells of ``side`` x ``side`` PEs and frames of ``length`` cycles.

    ``cycles``: int64[frames, len(ACTIVITIES), rows, columns].
    """

    side: int
    length: int
    cycles: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Profile:
    """``lines`` is empty for programs that were built without knowledge of lines."""

    lines: tuple[LineUse, ...]
    activity: Activity | None


class LineUseC(Structure):
    """``struct line_use``."""

    _fields_ = [
        ("role", c_void_p),
        ("task", c_char_p),
        *((name, c_int64) for name in ("times", "worked", "waited", "beside")),
        ("line", c_int32),
    ]


class ProfileC(Structure):
    """``struct profile``."""

    _fields_ = [
        ("lines", c_void_p),
        ("places", c_void_p),
        *((name, c_uint32) for name in ("line_count", "place_count")),
        *((name, c_int32) for name in ("columns", "rows", "side", "length")),
        ("cycles", c_void_p),
    ]


MOST_FRAMES = 192


def read_profile(library: ctypes.CDLL, handle: int, cycles: int) -> Profile:
    """Return what a simulation of so many cycles that recorded has counted."""
    profile = ProfileC.from_address(library.fabric_profile(handle))
    return Profile(_lines(library, handle), _activity(profile, cycles))


def _lines(library: ctypes.CDLL, handle: int) -> tuple[LineUse, ...]:
    """Return the lines by role and number; threads of the simulator may have counted one line each."""
    sums: dict[tuple[str, int, str], npt.NDArray[np.int64]] = {}
    for k in range(library.fabric_line_count(handle)):
        use = LineUseC.from_address(library.fabric_line(handle, k))
        role = library.fabric_line_role(handle, k).decode()
        key = (role, int(use.line), (use.task or b"").decode())
        counts = np.array([use.times, use.worked, use.waited, use.beside], dtype=np.int64)
        sums[key] = sums.get(key, 0) + counts
    return tuple(LineUse(*key, *counts.tolist()) for key, counts in sorted(sums.items(), key=lambda i: i[0]))


def _activity(profile: ProfileC, cycles: int) -> Activity | None:
    if not profile.cycles:
        return None
    shape = (MOST_FRAMES, len(ACTIVITIES), profile.rows, profile.columns)
    size = int(np.prod(shape)) * np.dtype(np.int32).itemsize
    raw = np.frombuffer(ctypes.string_at(profile.cycles, size), np.int32).reshape(shape)
    length = 1 << profile.length
    frames = max(1, -(-cycles // length))
    return Activity(1 << profile.side, length, np.maximum(raw[:frames], 0).astype(np.int64))
