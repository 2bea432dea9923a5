"""Which schedule an md_hom runs with: what was tuned for it, else for its nearest sizes, else the model's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from polyloom.diagnostics import PolyloomError
from polyloom.ir.host import Buffer, MdHom
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.schedule.signature import key_of
from polyloom.mdh.tuning.database import Database, Entry, default_path

S = TypeVar("S")


class Origin(Enum):
    """Where a schedule comes from."""

    TUNED = "tuned"
    NEAREST = "tuned for other sizes"
    MODEL = "cost model"


class Choices(Protocol[S]):
    """The part of a space that a choice needs."""

    def default(self) -> S:
        """Return the schedule that the cost model prefers."""

    def adapted(self, text: str) -> S | None:
        """Return the legal schedule nearest to a JSON text; None where it is none at all."""

    def predicted(self, schedule: S) -> float:
        """Return the seconds that the cost model expects."""


LARGEST_PREDICTED_RATIO = 1.5
"""Largest predicted time of a schedule tuned for other sizes, over that of the model's choice. An estimate:
the model's worst choice took 1.65 times the best schedule's time (docs/schedules.md)."""


@dataclass(frozen=True)
class Choice(Generic[S]):
    """A schedule, where it comes from, and its time when it was tuned (None: never)."""

    schedule: S
    origin: Origin
    seconds: float | None = None


LARGEST_SIZE_DISTANCE = 2.0
"""Powers of two by which each size of a tuned problem may differ: 4 times as large or small. An estimate."""


def choose(
    hom: MdHom,
    buffers: Sequence[Buffer],
    device: DeviceModel,
    space: Choices[S],
    database: Database | None,
    options: str = "",
) -> Choice[S]:
    """Return the schedule of an md_hom whose parameters are folded. ``options``: those of its key."""
    if database is not None:
        key = key_of(hom, buffers, device.id, options)
        best = database.best(key)
        found = None if best is None else space.adapted(best.schedule)
        if best is not None and found is not None:
            return Choice(found, Origin.TUNED, best.outcome.seconds)
        near = [e for e in database.nearest(key, within=LARGEST_SIZE_DISTANCE) if e.key.device == key.device]
        return _nearest(near, space)
    return Choice(space.default(), Origin.MODEL)


def _nearest(entries: Sequence[Entry], space: Choices[S]) -> Choice[S]:
    """Return the first that fits here, but the model's choice where the model thinks that much better."""
    default = space.default()
    for entry in entries:
        found = space.adapted(entry.schedule)
        if found is not None and space.predicted(found) <= LARGEST_PREDICTED_RATIO * space.predicted(default):
            return Choice(found, Origin.NEAREST, entry.outcome.seconds)
    return Choice(default, Origin.MODEL)


def tuning_results(path: Path | None = None) -> Database | None:
    """Open the database of tuning results for reading; None where there is none yet.

    ``path``: another one than the user's own. A broken database of the user's own is as none: it must not
    keep a program from running. Errors: ``database-...`` where ``path`` is broken.
    """
    try:
        chosen = results_path(path)
        return None if chosen is None else Database(chosen, readonly=True)
    except PolyloomError:
        if path is None:
            return None
        raise


def results_path(path: Path | None = None) -> Path | None:
    """Return the file of tuning results; None where there is none yet. Errors: ``database-unusable``."""
    chosen = default_path() if path is None else path
    return None if _is_missing(chosen) else chosen


def _is_missing(path: Path) -> bool:
    """Whether there is no such file; one that cannot be reached may be there."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
