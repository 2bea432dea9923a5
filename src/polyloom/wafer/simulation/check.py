"""Inputs for a simulation, and whether what came out is right: against a reference, or the evaluator.

Source: docs/interface.md (``--check``); docs/semantics.md (invocations and state).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.inputs import checked_inputs
from polyloom.ir.evaluation.programs import evaluate
from polyloom.ir.evaluation.random_inputs import SCALES, Scale, random_inputs, random_reals
from polyloom.ir.program import Program, Tensor
from polyloom.ir.rounding.any_order import Digits, digits_of
from polyloom.ir.rounding.program_bounds import error_bound
from polyloom.ir.verification.comparison import Comparison, compared
from polyloom.ir.verification.references import Expected, Reference
from polyloom.wafer.mapping.mapping import Mapping as LairMap

Arrays = dict[str, npt.NDArray[Any]]
EVALUATOR = "the evaluator's results"


@dataclass(frozen=True, kw_only=True)
class Check:
    """``max_error`` is in units of an element's bound (``ir/rounding/program_bounds``).

    ``mismatches``: a line for each tensor that is wrong. ``by``: what it was compared with, as printed;
    ``reading_checked``: whether that is the file as it stands; ``notes``: why nothing better was used.
    ``tight``: the share of elements that must be equal, or whose bound is below 1 % of their value;
    ``unknown``: how many elements differ and have no bound. ``reals``: the check with made-up reals, which
    ``passed`` and ``mismatches`` speak of as well.
    """

    passed: bool
    max_error: float
    mismatches: tuple[str, ...]
    by: str = EVALUATOR
    reading_checked: bool = False
    notes: tuple[str, ...] = ()
    tight: float = 1.0
    unknown: int = 0
    reals: Reals | None = None

    def json(self) -> dict[str, Any]:
        """Return the document ``check`` of ``simulate --json``; errors without a bound are null."""
        return {
            "passed": self.passed,
            "max_error": self.max_error if math.isfinite(self.max_error) else None,
            "tight": self.tight,
            "unknown": self.unknown,
            "reference": self.by,
            "reading_checked": self.reading_checked,
            "reals": None if self.reals is None else self.reals.json(),
        }

    def with_reals(self, reals: Reals | None) -> Check:
        """Return this check together with that of made-up reals."""
        if reals is None:
            return self
        passed = self.passed and reals.check.passed
        return replace(self, passed=passed, mismatches=self.mismatches + reals.check.mismatches, reals=reals)


@dataclass(frozen=True)
class Reals:
    """A check with made-up reals from ``10**-decades`` to ``10**decades``, half so far for float16."""

    check: Check
    decades: float
    seed: int

    def json(self) -> dict[str, Any]:
        """Return the document ``check.reals`` of ``simulate --json``."""
        return {**self.check.json(), "decades": self.decades, "seed": self.seed}


@dataclass(frozen=True, eq=False)
class MadeUpReals:
    """Inputs of reals, and what they were drawn from."""

    arrays: Arrays
    decades: float
    seed: int


def made_up(program: Program, mapping: LairMap, invocations: int, density: float, seed: int = 0) -> Arrays:
    """Return small integers for every input; streamed tensors have a leading axis where N > 1.

    ``density``: the fraction of nonzero elements of the sparse tensors.
    """
    sparse = dict.fromkeys(mapping.sparse, density)
    runs = [random_inputs(program, seed + n, sparse) for n in range(invocations)]
    return _batch(program, mapping, runs)


def made_up_reals(
    program: Program,
    mapping: LairMap,
    invocations: int,
    density: float,
    draw: Callable[[Scale, int], Arrays | None] | None = None,
    seed: int = 1,
) -> MadeUpReals | None:
    """Return reals of the first scale that leaves results finite, zeros where ``made_up`` has them.

    ``draw``: inputs of a scale by a seed (of a model, whose weights stay). None where no input is of floats,
    or no scale leaves results finite.
    """
    sparse = dict.fromkeys(mapping.sparse, density)
    drawn_by = draw or (lambda scale, number: random_reals(program, scale, number, sparse))
    for scale in SCALES:
        runs = [drawn_by(scale, seed + n) for n in range(invocations)]
        drawn = [run for run in runs if run is not None]
        if len(drawn) == len(runs) and all(_finite(program, run) for run in drawn):
            return MadeUpReals(_batch(program, mapping, drawn), scale.decades, seed)
    return None


def _finite(program: Program, inputs: Arrays) -> bool:
    return all(np.isfinite(array).all() for array in evaluate(program, inputs).values())


def _batch(program: Program, mapping: LairMap, runs: Sequence[Arrays]) -> Arrays:
    if len(runs) == 1:
        return runs[0]
    streamed = mapping.inputs
    return {k: np.stack([run[k] for run in runs]) if k in streamed else runs[0][k] for k in program.inputs}


def checked_batch(
    program: Program, mapping: LairMap, inputs: Mapping[str, npt.NDArray[Any]], invocations: int
) -> Arrays:
    """Return the inputs as C-contiguous arrays, streamed ones of shape [N, ...] where N > 1.

    Errors: ``input-missing``, ``input-unknown``, ``input-shape``, ``input-type``.
    """
    if invocations == 1:
        return checked_inputs(program, inputs)
    tensors = tuple(_batched(t, invocations) if t.name in mapping.inputs else t for t in program.tensors)
    return checked_inputs(replace(program, tensors=tensors), inputs)


def check_outputs(
    program: Program,
    mapping: LairMap,
    inputs: Mapping[str, npt.NDArray[Any]],
    outputs: Mapping[str, npt.NDArray[Any]],
    invocations: int,
    *,
    exactly: bool,
    reference: Reference | None = None,
) -> Check:
    """Compare with a reference, invocation after invocation: equal bits, or within the error bound.

    ``reference``: of the tensors that each invocation starts from; None: the evaluator.

    ``exactly``: inputs are small integers, so that bits must be equal where they do not hang on the order of
    a sum. What a state may be off by counts in the bounds of the next invocation.
    """
    tally = _Tally()
    expected = Expected({}, EVALUATOR, False)
    state: Arrays = {}
    errors: Arrays = {}
    digits: dict[str, Digits] = {}
    for n in range(invocations):
        run = {**_of_invocation(mapping, inputs, n, invocations), **state}
        wanted, bound = evaluate(program, run), error_bound(program, run, errors)
        if reference is not None:
            expected = reference({}, run)
            for name in expected.arrays.keys() - set(program.outputs):
                tally.mismatches[name] = f"`{name}` is written, and no tensor of the layer"
            wanted |= expected.arrays
        state = {old: wanted[new] for old, new in mapping.state}
        errors = {old: bound[new] for old, new in mapping.state}
        known = digits_of(program, {**run, **wanted}, digits)
        digits = {old: known[new] for old, new in mapping.state}
        for name in program.outputs:
            found = _output(mapping, outputs[name], name, n, invocations)
            if found is not None:
                equal = exactly and not known[name].ordered
                bounds = {} if equal else {name: expected.bounds * bound[name]}
                result = compared({name: found}, {name: wanted[name]}, bounds)
                tally.add(name, result, found.size, f" (invocation {n})" if invocations > 1 else "")
    return tally.check(expected)


class _Tally:
    """What was found of the outputs of all invocations."""

    def __init__(self) -> None:
        self.mismatches: dict[str, str] = {}
        self.worst, self.tight = 0.0, 0.0
        self.unknown, self.count = 0, 0

    def add(self, name: str, result: Comparison, size: int, when: str) -> None:
        """Count an output of one invocation; of each the first mismatch stays."""
        self.worst = max(self.worst, result.max_error)
        self.tight += result.tight * size
        self.unknown += result.unknown
        self.count += size
        for text in result.mismatches:
            self.mismatches.setdefault(name, text + when)

    def check(self, expected: Expected) -> Check:
        """Return what all of it comes to."""
        return Check(
            passed=not self.mismatches,
            max_error=self.worst,
            mismatches=tuple(self.mismatches.values()),
            by=expected.by,
            reading_checked=expected.reading_checked,
            notes=expected.notes,
            tight=self.tight / self.count if self.count else 1.0,
            unknown=self.unknown,
        )


def _batched(tensor: Tensor, invocations: int) -> Tensor:
    return replace(tensor, shape=(invocations, *tensor.shape))


def _of_invocation(
    mapping: LairMap, inputs: Mapping[str, npt.NDArray[Any]], n: int, invocations: int
) -> Arrays:
    return {k: a[n, ...] if invocations > 1 and k in mapping.inputs else a for k, a in inputs.items()}


def _output(
    mapping: LairMap, output: npt.NDArray[Any], name: str, n: int, invocations: int
) -> npt.NDArray[Any] | None:
    """Return what an invocation gave: what stays in PE memory is known after the last one only."""
    if name not in mapping.outputs:
        return output if n == invocations - 1 else None
    return output[n, ...] if invocations > 1 else output
