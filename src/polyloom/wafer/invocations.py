"""Repeated invocations as the host sees them: inputs with a leading axis, states carried over.

With N > 1 invocations, tensors that enter or leave through ports have a leading axis N; residents do not.
Source: DESIGN 6; INTERFACE.md (state).
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Arrays
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.error_bound import error_bound
from polyloom.ir.evaluate import evaluate
from polyloom.ir.inputs import checked_inputs
from polyloom.ir.program import Program, Tensor
from polyloom.ir.random_inputs import random_inputs
from polyloom.wafer.mapping import Mapping

NDArray = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


def checked_batch(
    program: Program, mapping: Mapping, inputs: Arrays[str, NDArray], invocations: int
) -> dict[str, NDArray]:
    """Return the inputs of ``invocations`` N as C-contiguous arrays.

    Errors: ``input-missing``, ``input-unknown``, ``input-shape``, ``input-type``.
    """
    if invocations == 1:
        return checked_inputs(program, inputs)
    batched = tuple(_batched(t, invocations) if t.name in mapping.inputs else t for t in program.tensors)
    return checked_inputs(replace(program, tensors=batched), inputs)


def _batched(tensor: Tensor, invocations: int) -> Tensor:
    return replace(tensor, shape=(invocations, *tensor.shape))


def made_up_inputs(
    program: Program, mapping: Mapping, density: float = 1.0, invocations: int = 1
) -> dict[str, NDArray]:
    """Return small integers from a fixed seed; of a sparse tensor a fraction ``density`` is not 0."""
    sparse = {name: density for name in mapping.sparse if name in program.inputs}
    runs = [random_inputs(program, seed, sparse) for seed in range(invocations)]
    return {
        name: np.stack([run[name] for run in runs]) if _is_batched(mapping, name, invocations) else array
        for name, array in runs[0].items()
    }


def _is_batched(mapping: Mapping, name: str, invocations: int) -> bool:
    return invocations > 1 and (name in mapping.inputs or name in mapping.outputs)


@dataclass(frozen=True, eq=False)
class Reference:
    """What the evaluator gives for every output, in the shapes of a simulation, and how far one may differ.

    ``bounds``: ``n * eps * sum of |terms|`` for each element, with what reaches it of earlier errors; None
    where it was not asked for.
    """

    outputs: dict[str, NDArray]
    bounds: dict[str, Floats] | None


def reference(
    program: Program, mapping: Mapping, inputs: Arrays[str, NDArray], invocations: int, *, bounds: bool
) -> Reference:
    """Evaluate all invocations one after another. ``inputs`` as ``checked_batch`` returns them."""
    runs = list(_runs(program, mapping, inputs, invocations, bounds))
    values = {name: _collected(mapping, name, [v for v, _ in runs]) for name in program.outputs}
    if not bounds:
        return Reference(values, None)
    return Reference(values, {n: _collected(mapping, n, [b for _, b in runs]) for n in program.outputs})


def _runs(
    program: Program, mapping: Mapping, inputs: Arrays[str, NDArray], invocations: int, bounds: bool
) -> Iterator[tuple[dict[str, NDArray], dict[str, Floats]]]:
    """Yield what each invocation writes, with its error bounds (empty if they are not asked for)."""
    state: dict[str, NDArray] = {}
    errors: dict[str, Floats] = {}
    for number in range(invocations):
        here = {
            name: array[number, ...] if _is_batched(mapping, name, invocations) else array
            for name, array in inputs.items()
        }
        here.update(state)
        written = evaluate(program, here)
        bound = error_bound(program, here, errors) if bounds else {}
        yield written, bound
        state = {old: written[new] for old, new in mapping.state}
        errors = {old: bound[new] for old, new in mapping.state if bounds}


def _collected(mapping: Mapping, name: str, runs: list[dict[str, NDArray]]) -> NDArray:
    """Stack what leaves through ports; of what stays in memory the last invocation's remains."""
    if _is_batched(mapping, name, len(runs)):
        return np.stack([run[name] for run in runs])
    return runs[-1][name]
