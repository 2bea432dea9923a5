"""Inputs for a simulation, and whether what came out is right: against a reference, or the evaluator.

Source: docs/interface.md (``--check``); docs/semantics.md (invocations and state).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.inputs import checked_inputs
from polyloom.ir.evaluation.programs import evaluate
from polyloom.ir.evaluation.random_inputs import SCALES, Scale, random_inputs, random_reals
from polyloom.ir.host import Buffer
from polyloom.ir.program import Program
from polyloom.ir.rounding.any_order import Digits, digits_of
from polyloom.ir.rounding.programs import error_bound
from polyloom.ir.verification.comparison import Verdict, compared
from polyloom.ir.verification.references import EVALUATOR, Expected, Reference
from polyloom.polyhedra.loops.tree import Number
from polyloom.wafer.mapping.mapping import Mapping as LairMap

Arrays = dict[str, npt.NDArray[Any]]


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
    buffers = tuple(_batched(t, invocations) if t.name in mapping.inputs else t for t in program.buffers)
    return checked_inputs(replace(program, buffers=buffers), inputs)


def check_outputs(
    program: Program,
    mapping: LairMap,
    inputs: Mapping[str, npt.NDArray[Any]],
    outputs: Mapping[str, npt.NDArray[Any]],
    invocations: int,
    *,
    exactly: bool,
    reference: Reference | None = None,
    approximate: Collection[str] = (),
) -> Verdict:
    """Compare with a reference, invocation after invocation: equal bits, or within the error bound.

    ``reference``: of the tensors that each invocation starts from; None: the evaluator.

    ``exactly``: inputs are small integers, so that bits must be equal where they do not hang on the order of
    a sum, or on a function of the statements ``approximate``, whose roundings are others. What a state may be
    off by counts in the bounds of the next invocation.
    """
    expected = Expected({}, EVALUATOR, False)
    runs: list[Arrays] = []
    bounds: list[Arrays] = []
    state: Arrays = {}
    errors: Arrays = {}
    digits: dict[str, Digits] = {}
    for n in range(invocations):
        run = {**_of_invocation(mapping, inputs, n, invocations), **state}
        wanted, bound = evaluate(program, run), error_bound(program, run, errors)
        if reference is not None:
            expected = reference({}, run)
            wanted |= expected.arrays
        state = {old: wanted[new] for old, new in mapping.state}
        errors = {old: bound[new] for old, new in mapping.state}
        known = digits_of(program, {**run, **wanted}, digits, approximate)
        digits = {old: known[new] for old, new in mapping.state}
        equal = {name for name in program.outputs if exactly and not known[name].ordered}
        bounds.append({name: (name not in equal) * expected.bounds * bound[name] for name in program.outputs})
        runs.append(wanted)
    limits = _of_all(program, mapping, bounds)
    verdict = compared(outputs, _of_all(program, mapping, runs), limits).against(expected)
    strange = [name for name in expected.arrays if name not in program.outputs]
    lines = tuple(f"`{name}` is written, and no tensor of the layer" for name in strange)
    exact = not any(limit.any() for limit in limits.values())
    return replace(verdict, exact=exact, mismatches=lines + verdict.mismatches)


def _of_all(program: Program, mapping: LairMap, runs: Sequence[Arrays]) -> Arrays:
    """Return what all invocations give: what stays in PE memory is known after the last one only."""
    apart = mapping.outputs if len(runs) > 1 else {}
    return {k: np.stack([run[k] for run in runs]) if k in apart else runs[-1][k] for k in program.outputs}


def _batched(tensor: Buffer, invocations: int) -> Buffer:
    return replace(tensor, shape=(Number(invocations), *tensor.shape))


def _of_invocation(
    mapping: LairMap, inputs: Mapping[str, npt.NDArray[Any]], n: int, invocations: int
) -> Arrays:
    return {k: a[n, ...] if invocations > 1 and k in mapping.inputs else a for k, a in inputs.items()}
