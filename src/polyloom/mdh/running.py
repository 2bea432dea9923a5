"""One run of a compiled program: its inputs made up where none are given, its results checked where asked."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import PolyloomError, error
from polyloom.ir.host import HostProgram, Role
from polyloom.ir.host_inputs import shape_of
from polyloom.mdh.arguments import Bound, bind, check_names, known_parameters
from polyloom.mdh.arrays import DeviceArray
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.execution import Execution
from polyloom.mdh.made_up import made_up_inputs
from polyloom.mdh.tuned import TunedEmitter
from polyloom.mdh.verdict import Verdict, check_run, wanted_results

NDArray = npt.NDArray[Any]

LONG = 2.0
"""Seconds in kernels above which a run is not repeated for its time."""

BYTES_MADE_UP = 24
"""What making up an element takes at most."""


@dataclass(frozen=True, eq=False)
class RunResult:
    """What a run gave, and where its time went."""

    program: HostProgram
    device: str
    parameters: dict[str, int]
    outputs: dict[str, NDArray]
    execution: Execution
    check: Verdict | None
    schedules: Mapping[str, str]
    """Where the schedule of each md_hom comes from, if it has one."""

    def json(self) -> dict[str, Any]:
        """Return the document of ``run --json``. Source: docs/interface.md."""
        timing = self.execution.timing
        return {
            "device": self.device,
            "function": self.program.name,
            "parameters": self.parameters,
            "outputs": {n: {"shape": list(a.shape), "dtype": a.dtype.name} for n, a in self.outputs.items()},
            "seconds": {"prepare": timing.prepare, "total": timing.total, "device": timing.device},
            "launches": timing.launches,
            "kernels": self.kernels(),
            "check": None if self.check is None else self.check.json(),
        }

    def kernels(self) -> list[dict[str, Any]]:
        """Return for each node its launches, its seconds on the device, and its schedule; slowest first.

        ``schedule``: ``tuned``, ``tuned for other sizes``, ``cost model``, or ``plain`` without a choice.
        """
        counts = Counter(event.node for event in self.execution.events)
        seconds: Counter[str] = Counter()
        for event in self.execution.events:
            seconds[event.node] += event.seconds  # type: ignore[assignment]
        found = [
            {
                "name": name,
                "launches": counts[name],
                "seconds": float(seconds[name]),
                "schedule": self.schedules.get(name, "plain"),
            }
            for name in counts
        ]
        return sorted(found, key=lambda kernel: -kernel["seconds"])


def run_program(program: CompiledProgram, given: Mapping[str, Any], *, check: bool) -> RunResult:
    """Run once; the arrays in ``given`` stay as they are. Where it has no array, all are made up.

    With ``check`` the evaluator goes first: a program that leaves its arrays is refused before it runs.

    Errors: ``argument-...``, ``parameter-...``, ``input-...``, ``device-...``, ``access-outside``.
    """
    signature = program.signature
    made_up = not any(_is_array(signature.program, name) for name in given)
    inputs = {**_made_up(program, given), **given} if made_up else dict(given)
    bound = bind(signature, inputs)
    before = _read(bound, signature.program) if check else {}
    wanted = wanted_results(signature.program, bound.parameters, before) if check else {}
    execution = _timed(program, inputs)
    outputs = {n: a.get() if isinstance(a, DeviceArray) else a for n, a in execution.arrays.items()}
    verdict = None
    if check:
        steps = execution.timing.launches
        found = {n: _used(a, bound, n) for n, a in outputs.items()}
        verdict = check_run(
            signature.program, bound.parameters, before, wanted, found, steps, made_up=made_up
        )
    parameters, chosen = bound.parameters, _schedules(program)
    return RunResult(signature.program, program.device.id, parameters, outputs, execution, verdict, chosen)


def _schedules(program: CompiledProgram) -> dict[str, str]:
    if not isinstance(program.emitter, TunedEmitter):
        return {}
    return {name: choice.origin.value for name, choice in program.emitter.choices.items()}


def _timed(program: CompiledProgram, inputs: Mapping[str, Any]) -> Execution:
    """Run, and where that does not take long once more, for drivers compile as late as the first launch."""
    first = program.run(timed=True, **{name: _copied(value) for name, value in inputs.items()})
    if first.timing.device > LONG:
        return first
    again = program.run(timed=True, **{name: _copied(value) for name, value in inputs.items()})
    prepare = first.timing.prepare + max(0.0, first.timing.total - again.timing.total)
    return replace(again, timing=replace(again.timing, prepare=prepare))


def _is_array(program: HostProgram, name: str) -> bool:
    return any(b.name == name and b.shape for b in program.buffers)


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _made_up(program: CompiledProgram, given: Mapping[str, Any]) -> dict[str, NDArray]:
    """Return arrays for a program whose parameters are all given.

    Errors: ``argument-unknown``, ``parameter-...``, ``memory``.
    """
    host = program.program
    check_names(program.signature, given)
    parameters = known_parameters(host, given)
    _check_memory(host, parameters)
    return made_up_inputs(host, parameters)


def _check_memory(program: HostProgram, parameters: Mapping[str, int]) -> None:
    """Refuse sizes for which this machine has not enough memory, before the first array is made."""
    elements = sum(prod(shape_of(b, parameters)) for b in program.buffers)
    needed = elements * BYTES_MADE_UP
    there = physical_memory()
    if there is not None and needed > there:
        message = f"made-up arrays of these sizes take {needed / 2**30:,.1f} GiB, more than there is"
        raise PolyloomError(error("memory", message, helps=["give smaller sizes"]))


def physical_memory() -> int | None:
    """Return the bytes of memory that this machine has, if the system says so."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _read(bound: Bound, program: HostProgram) -> dict[str, NDArray]:
    """Return the arrays that the program starts from."""
    needed = {b.name for b in program.buffers if b.role in (Role.INPUT, Role.UPDATED)}
    found = {name: array for name, array in bound.arrays.items() if name in needed}
    return {name: a.get() if isinstance(a, DeviceArray) else a for name, a in found.items()}


def _used(array: NDArray, bound: Bound, name: str) -> NDArray:
    """Return the part of an output that the program knows of."""
    known = bound.arrays.get(name)
    return array if known is None or not array.shape else array[: known.shape[0]]
