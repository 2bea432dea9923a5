"""One run of a compiled program: its inputs made up where none are given, its results checked where asked."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import PolyloomError, error
from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.evaluation.random_inputs import SCALES, Scale, random_inputs, random_reals
from polyloom.ir.evaluation.uninitialised import garbage
from polyloom.ir.host import HostProgram, MdHom, Role
from polyloom.ir.verification.comparison import MUCH, Reals, Verdict
from polyloom.ir.verification.host_results import check_run
from polyloom.ir.verification.references import Expected
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.lowering.flops import operation_count
from polyloom.mdh.runtime.arguments import Bound, bind, check_names, known_parameters
from polyloom.mdh.runtime.arrays import DeviceArray
from polyloom.mdh.runtime.execution import Execution
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter

NDArray = npt.NDArray[Any]

LONG = 2.0
"""Seconds in kernels above which a run is not repeated for its time."""

RealInputs = Callable[[Scale, int], Mapping[str, Any] | None]
"""From a scale and a seed to inputs; None where no inputs are floats."""

SEED = 1
"""Of made-up real numbers."""

RESULTS = "the device's results"

BYTES_MADE_UP = 24
"""What making up an element takes at most."""


@dataclass(frozen=True, eq=False, kw_only=True)
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

    def __repr__(self) -> str:
        checked = "" if self.check is None else f", check {'passed' if self.passed else 'failed'}"
        seconds = f"{self.execution.timing.total:.3g} s"
        return f"<RunResult of {self.program.name}: {', '.join(self.outputs)} in {seconds}{checked}>"

    def json(self) -> dict[str, Any]:
        """Return the document of ``run --json``. Source: docs/interface.md."""
        timing = self.execution.timing
        return {
            "device": self.device,
            "function": self.program.name,
            "parameters": self.parameters,
            "outputs": {n: {"shape": list(a.shape), "dtype": a.dtype.name} for n, a in self.outputs.items()},
            "seconds": {"prepare": timing.prepare, "total": timing.total, "device": timing.device},
            "gflops": self.gflops,
            "launches": timing.launches,
            "kernels": self.kernels(),
            "check": None if self.check is None else self.check.json(),
        }

    @property
    def gflops(self) -> float | None:
        """Arithmetic operations of all kernels in 10^9 a second of their time.

        None where loops of the host or guards decide how many there are.
        """
        if not self.program.body or not self.execution.timing.device:
            return None
        homs = [node for node in self.program.body if isinstance(node, MdHom) and node.guard is None]
        if len(homs) < len(self.program.body):
            return None
        operations = sum(operation_count(hom, self.parameters) for hom in homs)
        return operations / self.execution.timing.device * 1e-9

    @property
    def passed(self) -> bool:
        """Whether nothing that was checked is wrong."""
        return self.check is None or self.check.passed

    def kernels(self) -> list[dict[str, Any]]:
        """Return for each node its launches, its seconds on the device, and its schedule; slowest first.

        ``schedule``: ``tuned``, ``tuned for other sizes``, ``cost model``, or ``plain`` without a choice.
        """
        counts: Counter[str] = Counter()
        seconds: Counter[str] = Counter()
        for event in self.execution.events:
            counts[event.node] += event.runs
            seconds[event.node] += event.seconds  # type: ignore[assignment]
        found = [
            {
                "name": name,
                "launches": counts[name],
                "seconds": float(seconds[name]),
                "schedule": self._schedule(name),
            }
            for name in counts
        ]
        return sorted(found, key=lambda kernel: -kernel["seconds"])

    def _schedule(self, name: str) -> str:
        """Return what ``schedule`` says of a node; of several that are one loop, of one that has a choice."""
        return next((self.schedules[node] for node in name.split(", ") if node in self.schedules), "plain")


def run_program(
    program: CompiledProgram, given: Mapping[str, Any], *, check: bool, reals: RealInputs | None = None
) -> RunResult:
    """Run once; the arrays in ``given`` stay as they are. Where it has no array, all are made up.

    ``reals``: where ``given`` was made up, inputs of a scale to check with besides.
    With ``check`` the reference goes first: a program that leaves its arrays is refused before it runs.

    Errors: ``argument-...``, ``parameter-...``, ``input-...``, ``device-...``, ``access-outside``.
    """
    signature = program.signature
    made_up = not any(_is_array(signature.program, name) for name in given)
    given = {**program.constants, **given}
    inputs = {**_made_up(program, given), **given} if made_up else dict(given)
    bound = bind(signature, inputs)
    before = _before(bound, signature.program) if check else {}
    expected = program.reference(bound.parameters, before) if check else None
    execution = _timed(program, inputs)
    outputs = _outputs(execution)
    verdict = None
    if expected is not None:
        if made_up:
            reals = partial(_made_up_reals, program, given, bound.parameters)
        verdict = _compared(signature.program, bound, before, expected, outputs, made_up=made_up)
        verdict = verdict.with_reals(None if reals is None else _with_reals(program, reals))
    parameters, chosen = bound.parameters, _schedules(program)
    device = program.device.id
    return RunResult(
        program=signature.program,
        device=device,
        parameters=parameters,
        outputs=outputs,
        execution=execution,
        check=verdict,
        schedules=chosen,
    )


def inputs_for(
    program: CompiledProgram, given: Mapping[str, Any]
) -> tuple[dict[str, int], dict[str, NDArray]]:
    """Return the values of parameters, and all arrays that a caller may give; real ones are made up.

    Errors: those of ``run_program``.
    """
    signature = program.signature
    made_up = not any(_is_array(signature.program, name) for name in given)
    if made_up:
        integers = _made_up(program, given)
        parameters = bind(signature, {**integers, **given}).parameters
        reals = _made_up_reals(program, given, parameters, SCALES[0], SEED) or {}
        given = {**integers, **reals, **given}
    bound = bind(signature, given)
    return bound.parameters, {n: np.array(a) for n, a in _before(bound, signature.program).items()}


def _compared(
    program: HostProgram,
    bound: Bound,
    before: Mapping[str, NDArray],
    expected: Expected,
    outputs: Mapping[str, NDArray],
    *,
    made_up: bool,
) -> Verdict:
    """Compare what a run left; an array that it did not write is as it was before."""
    found = {**before, **{name: _used(array, bound, name) for name, array in outputs.items()}}
    inputs = {b.name: before[b.name] for b in program.given}
    return check_run(program, bound.parameters, inputs, expected, found, made_up=made_up)


def _made_up_reals(
    program: CompiledProgram, given: Mapping[str, Any], parameters: Mapping[str, int], scale: Scale, seed: int
) -> dict[str, Any] | None:
    made = random_reals(program.program, scale, seed, parameters=parameters)
    return None if made is None else {**made, **given}


def _with_reals(program: CompiledProgram, reals: RealInputs) -> Reals | None:
    """Check with made-up reals, of the first scale for which bounds say much; else where they say most.

    None where the program takes no floats, or where no results are numbers.
    """
    found: list[Reals] = []
    for scale in SCALES:
        inputs = reals(scale, SEED)
        verdict = None if inputs is None else _checked_with(program, inputs)
        if verdict is not None:
            found.append(Reals(verdict, scale.decades, SEED))
            if not verdict.passed or verdict.tight >= MUCH:
                return found[-1]
    return max(found, key=lambda reals: reals.verdict.tight, default=None)


def _checked_with(program: CompiledProgram, inputs: Mapping[str, Any]) -> Verdict | None:
    """Run once more and check; None where hardly any results are numbers."""
    bound = bind(program.signature, {name: _copied(value) for name, value in inputs.items()})
    before = _before(bound, program.signature.program)
    expected = program.reference(bound.parameters, before)
    floats = [array for array in expected.arrays.values() if array.dtype.kind == "f"]
    if 2 * sum(np.count_nonzero(np.isfinite(a)) for a in floats) < sum(a.size for a in floats):
        return None
    outputs = _outputs(program.run(timed=True, **{name: _copied(value) for name, value in inputs.items()}))
    return _compared(program.signature.program, bound, before, expected, outputs, made_up=False)


class CheckedProgram(CompiledProgram):
    """A program that is compared with its reference at the first call for each set of sizes.

    Kernels are made anew for these; what the arrays hold at that call is what is compared with.
    """

    @cached_property
    def _checked(self) -> set[tuple[tuple[str, int], ...]]:
        return set()

    def execute(self, bound: Bound, *, timed: bool = False) -> Execution:
        """Run once. Errors: ``check-mismatch``, after the arrays were written; those of the reference."""
        key = tuple(sorted(bound.parameters.items()))
        if key in self._checked:
            return super().execute(bound, timed=timed)
        before = {name: array.copy() for name, array in _before(bound, self.program).items()}
        expected = self.reference(bound.parameters, before)
        execution = super().execute(bound, timed=timed)
        outputs = _outputs(execution)
        verdict = _compared(self.program, bound, before, expected, outputs, made_up=False)
        if not verdict.passed:
            raise verdict.mismatch(RESULTS)
        self._checked.add(key)
        return execution


def _outputs(execution: Execution) -> dict[str, NDArray]:
    return {n: a.get() if isinstance(a, DeviceArray) else a for n, a in execution.arrays.items()}


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
    return random_inputs(host, parameters=parameters)


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


def _before(bound: Bound, program: HostProgram) -> dict[str, NDArray]:
    """Return all arrays that a caller may give as they are before the run; those not given hold garbage."""
    given = {n: a.get() if isinstance(a, DeviceArray) else a for n, a in bound.arrays.items()}
    made = [b for b in program.buffers if b.role is not Role.LOCAL and b.name not in given]
    return {**given, **{b.name: garbage(shape_of(b, bound.parameters), b.type) for b in made}}


def _used(array: NDArray, bound: Bound, name: str) -> NDArray:
    """Return the part of an output that the program knows of."""
    known = bound.arrays.get(name)
    return array if known is None or not array.shape else array[: known.shape[0]]
