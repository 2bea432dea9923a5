"""Inputs for a simulation, and whether what came out is right: against the evaluator of the IR.

Source: docs/interface.md (``--check``); docs/semantics.md (invocations and state).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.any_order import Digits, digits_of
from polyloom.ir.compare import in_units
from polyloom.ir.error_bound import error_bound
from polyloom.ir.evaluate import evaluate
from polyloom.ir.inputs import checked_inputs
from polyloom.ir.program import Program, Tensor
from polyloom.ir.random_inputs import random_inputs
from polyloom.wafer.mapping import Mapping as LairMap

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Check:
    """``max_error`` is in units of n * eps * sum of |terms| of an element, n its number of terms.

    ``mismatches``: a line for each tensor that is wrong.
    """

    passed: bool
    max_error: float
    mismatches: tuple[str, ...]


def made_up(program: Program, mapping: LairMap, invocations: int, density: float, seed: int = 0) -> Arrays:
    """Return small integers for every input; streamed tensors have a leading axis where N > 1.

    ``density``: the fraction of nonzero elements of the sparse tensors.
    """
    sparse = dict.fromkeys(mapping.sparse, density)
    runs = [random_inputs(program, seed + n, sparse) for n in range(invocations)]
    if invocations == 1:
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
) -> Check:
    """Compare with the evaluator, invocation after invocation: equal bits, or within the error bound.

    ``exactly``: inputs are small integers, so that bits must be equal where they do not hang on the order of
    a sum. What a state may be off by counts in the bounds of the next invocation.
    """
    worst, mismatches = 0.0, dict[str, str]()
    state: Arrays = {}
    errors: Arrays = {}
    digits: dict[str, Digits] = {}
    for n in range(invocations):
        run = {**_of_invocation(mapping, inputs, n, invocations), **state}
        wanted, bound = evaluate(program, run), error_bound(program, run, errors)
        state = {old: wanted[new] for old, new in mapping.state}
        errors = {old: bound[new] for old, new in mapping.state}
        known = digits_of(program, {**run, **wanted}, digits)
        digits = {old: known[new] for old, new in mapping.state}
        for name in program.outputs:
            found = _output(mapping, outputs[name], name, n, invocations)
            if found is not None:
                error = in_units(found, wanted[name], bound[name])
                worst = max(worst, float(error.max(initial=0.0)))
                wrong = ~_same(found, wanted[name]) if exactly and not known[name].ordered else error > 1
                if wrong.any():
                    mismatches.setdefault(name, _mismatch(name, n, invocations, found, wanted[name], wrong))
    return Check(not mismatches, worst, tuple(mismatches.values()))


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


def _same(found: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    equal = found == wanted
    if wanted.dtype.kind == "f":
        equal |= np.isnan(found) & np.isnan(wanted)
    return np.asarray(equal)


def _mismatch(
    name: str,
    n: int,
    invocations: int,
    found: npt.NDArray[Any],
    wanted: npt.NDArray[Any],
    wrong: npt.NDArray[np.bool_],
) -> str:
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    when = f" in invocation {n}" if invocations > 1 else ""
    element = name + "".join(f"[{k}]" for k in at)
    return f"{element} is {found[at]}, not {wanted[at]}{when}; {int(wrong.sum())} of {wrong.size} are wrong"
