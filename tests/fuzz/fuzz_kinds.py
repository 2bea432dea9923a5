"""The kinds of fuzzing by their names."""

from __future__ import annotations

from cases import (
    BentCsl,
    BentFiles,
    BentModels,
    Broken,
    Evaluated,
    Forms,
    Graphs,
    Kind,
    Layers,
    Models,
    OnDevice,
)
from loop_cases import DataLoops
from native_cases import OnNative, Scheduled
from python_cases import PythonFunctions

KINDS: dict[str, Kind] = {
    "c": Evaluated(),
    "c-forms": Forms(),
    "data-loops": DataLoops(),
    "device": OnDevice(),
    "native": OnNative(),
    "native-homs": Scheduled(),
    "lair": Layers(),
    "models": Models(),
    "graphs": Graphs(),
    "files": BentFiles(),
    "csl": BentCsl(),
    "bent-models": BentModels(),
    "python": PythonFunctions(),
    "broken": Broken(),
}
