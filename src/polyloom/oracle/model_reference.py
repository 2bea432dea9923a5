"""The reference of a model: its own framework; where that is not installed, the statements as imported.

The framework opens the file in a child process. Without it the reading of the file is not checked, but all
that is done with the statements afterwards is.

Not in the papers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.caches import work_folder
from polyloom.files import read_arrays, write_arrays
from polyloom.frontends.graph.imported import Imported
from polyloom.ir.types import ElementType
from polyloom.ir.verification.references import Expected, evaluated
from polyloom.programs import ProgramFault, python_module, run_program

NDArray = npt.NDArray[Any]

AS_IMPORTED = "the statements as imported"
SECONDS = 600.0
"""The time that a framework has."""

BOUNDS = 2.0
"""A framework takes sums in its own order, and may be off by as much as a device."""


class _Unanswered(Exception):
    """No framework gave results; the text says why."""


@dataclass(frozen=True, eq=False)
class ModelReference:
    """A ``Reference`` of a model; ``arrays`` are inputs of its program, weights among them.

    ``opened``: what its framework opens, a path or the bytes of a file; ``function``: a signature of a
    SavedModel; ``kind``: whose model it is, a key of ``frameworks.FRAMEWORKS``.
    """

    model: Imported
    opened: Path | bytes
    function: str | None
    kind: str

    def __call__(self, parameters: Mapping[str, int], arrays: Mapping[str, NDArray]) -> Expected:
        """Run the model. Errors: those of ``checked_inputs``."""
        inputs = {name: arrays[name] for name in self.model.program.inputs}
        try:
            by, found = self._answer(inputs)
        except _Unanswered as fault:
            return self._imported(inputs, str(fault))
        names = {f"#{k}": name for k, name in enumerate(self.model.results)}
        found = {names.get(name, name): array for name, array in found.items()}
        results = {n: v for n, v in self.model.results.items() if n in found and v.size}
        wanted = {v.tensor: _stored(found[n], v.type) for n, v in results.items()}
        left = [name for name in self.model.program.outputs if name not in wanted]
        if not wanted:
            return self._imported(inputs, f"{by} gives none of the model's results by name")
        if not left:
            return Expected(wanted, by, True, (), BOUNDS)
        others = self._imported(inputs, "").arrays
        note = f"{by} does not give {', '.join(left)}: compared with {AS_IMPORTED}"
        return Expected({**others, **wanted}, by, True, (note,), BOUNDS)

    def _imported(self, inputs: Mapping[str, NDArray], why: str) -> Expected:
        return replace(evaluated(self.model.program, AS_IMPORTED)({}, inputs), notes=(why,))

    def _answer(self, inputs: Mapping[str, NDArray]) -> tuple[str, dict[str, NDArray]]:
        """Return which framework ran the model, and its results by name."""
        changed = [n for n, a in self.model.constants.items() if not _same(a, inputs.get(n))]
        if changed:
            raise _Unanswered(f"weights were given ({', '.join(changed)}), and the file has others")
        given = {self.model.names.get(n, n): _given(inputs[n], k) for n, k in self.model.arguments.items()}
        with work_folder() as folder:
            path = folder / "model" if isinstance(self.opened, bytes) else self.opened
            if isinstance(self.opened, bytes):
                path.write_bytes(self.opened)
            job = {
                "kind": self.kind,
                "model": str(path.resolve()),
                "function": self.function,
                "inputs": list(given),
            }
            (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
            write_arrays(folder / "inputs.npz", {f"a{k}": a for k, a in enumerate(given.values())})
            return _asked(folder)


def _asked(folder: Path) -> tuple[str, dict[str, NDArray]]:
    command = (*python_module("polyloom.oracle.frameworks"), str(folder))
    try:
        ended = run_program(command, seconds=SECONDS, folder=folder)
    except ProgramFault as fault:
        raise _Unanswered(f"the model's framework was not used: {fault}") from fault
    if ended.status != 0 or not (folder / "answer.json").exists():
        last = ended.err.strip().splitlines()[-1:] or [f"it ended with status {ended.status}"]
        raise _Unanswered(f"the model's framework was not used: {last[0]}")
    answer = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
    if "missing" in answer:
        raise _Unanswered(f"{answer['missing']} is not installed")
    if "fault" in answer:
        raise _Unanswered(f"{answer['by']} does not run the model: {answer['fault']}")
    arrays = read_arrays(folder / "outputs.npz")
    return answer["by"], {name: arrays[f"a{k}"] for k, name in enumerate(answer["outputs"])}


def _given(array: NDArray, kind: ElementType) -> NDArray:
    return array.astype(np.bool_) if kind is ElementType.BOOL else array


def _stored(array: NDArray, kind: ElementType) -> NDArray:
    return array.astype(np.uint8) if kind is ElementType.BOOL else array


def _same(held: NDArray, given: NDArray | None) -> bool:
    floats = held.dtype.kind == "f"
    return given is held or (given is not None and np.array_equal(held, given, equal_nan=floats))
