"""What a worker of a cluster does: it times candidates in a child process, as is done here."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

import polyloom
from polyloom.caches import alone, remove_folder, temporary_folder
from polyloom.diagnostics import PolyloomError
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.native.device import NATIVE, all_devices, choose
from polyloom.mdh.tuning.candidates.trial import Trial
from polyloom.mdh.tuning.outcome import Outcome
from polyloom.mdh.tuning.timing import DeviceMeasure


@dataclass(frozen=True)
class Task:
    """A trial, and a name for it by which a worker knows it again."""

    name: str
    trial: Trial


@dataclass
class _Open:
    folder: Path
    measure: DeviceMeasure[str]


_OPEN: dict[str, _Open] = {}
_ONE_AT_A_TIME = Lock()
_TIMING = "timing"
"""Workers on one machine are processes of their own; two that time at once would time each other."""


def version_with(device: DeviceModel) -> str | None:
    """Return this worker's version of Polyloom; None where it has no such device."""
    return polyloom.__version__ if _own(device) is not None else None


def build(task: Task, texts: Sequence[str]) -> None:
    """Build schedules that are measured next."""
    with _ONE_AT_A_TIME:
        _opened(task).build(texts)


def measure(task: Task, text: str, stop_above: float, baseline: tuple[str, float] | None) -> Outcome:
    """Time one schedule."""
    with _ONE_AT_A_TIME, alone(_TIMING):
        return _opened(task).measure(text, stop_above, baseline)


def compare(task: Task, texts: Sequence[str], seconds: float) -> Mapping[str, Outcome]:
    """Time right schedules in turns."""
    with _ONE_AT_A_TIME, alone(_TIMING):
        return _opened(task).compare(texts, seconds)


def close(name: str) -> None:
    """End the child of a task, and remove its files."""
    with _ONE_AT_A_TIME:
        found = _OPEN.pop(name, None)
        if found is not None:
            found.measure.close()
            remove_folder(found.folder)


def _opened(task: Task) -> DeviceMeasure[str]:
    if task.name not in _OPEN:
        own = _own(task.trial.device)
        assert own is not None, "a worker without the device was asked"
        folder = Path(tempfile.mkdtemp(dir=temporary_folder()))
        trial = replace(task.trial, device=own, folder=str(folder))
        text: Callable[[str], str] = str
        _OPEN[task.name] = _Open(folder, DeviceMeasure(trial, text))
    return _OPEN[task.name].measure


def _own(device: DeviceModel) -> DeviceModel | None:
    """Return this machine's device with the same identity, by which results are kept."""
    if device.platform == NATIVE:
        with suppress(PolyloomError):
            found = choose(f"{NATIVE}:{device.version}", threads=device.compute_units)
            return found if found.id == device.id else None
        return None
    return next((found for found in all_devices() if found.id == device.id), None)
