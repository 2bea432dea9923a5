"""Input arrays of a program: checked against its tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.ir.host import Buffer
from polyloom.ir.program import Program

NDArray = npt.NDArray[Any]


def checked_inputs(program: Program, inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Return the inputs as C-contiguous arrays. Raises ``PolyloomError`` with every fault found.

    Errors: ``input-missing``, ``input-unknown``, ``input-shape``, ``input-type``.
    """
    return checked_arrays(program.name, [program.tensor(name) for name in program.inputs], inputs)


def checked_arrays(
    program: str, wanted: Sequence[Buffer], inputs: Mapping[str, NDArray]
) -> dict[str, NDArray]:
    """Return an array for each of the wanted tensors, as ``checked_inputs``; ``program``: its name."""
    known = [tensor.name for tensor in wanted]
    faults = [_unknown(name, program, known) for name in inputs if name not in known]
    arrays: dict[str, NDArray] = {}
    for tensor in wanted:
        if tensor.name not in inputs:
            faults.append(_missing(tensor))
        else:
            arrays[tensor.name] = np.asarray(inputs[tensor.name], order="C")
            faults += _mismatches(arrays[tensor.name], tensor)
    if faults:
        raise PolyloomError(*faults)
    return arrays


def elements_of(program: Program, *, every: bool = False) -> int:
    """Return how many elements the inputs of a program have together; ``every``: all of its tensors."""
    return sum(prod(t.extents) for t in program.tensors if every or t.name in program.inputs)


def described(tensor: Buffer) -> str:
    """Return the type and shape of a tensor: ``float16[32][16]``."""
    return tensor.type.value + "".join(f"[{n}]" for n in tensor.extents)


def _unknown(name: str, program: str, known: Sequence[str]) -> Diagnostic:
    message = f"`{program}` has no input `{name}`"
    return error("input-unknown", message, helps=[f"its inputs: {', '.join(known) or 'none'}"])


def _missing(tensor: Buffer) -> Diagnostic:
    return error(
        "input-missing",
        f"the input `{tensor.name}` is missing",
        tensor.span,
        helps=[f"give an array {described(tensor)} under this name"],
    )


def _mismatches(array: NDArray, tensor: Buffer) -> Iterator[Diagnostic]:
    name, wanted = tensor.name, shape_text(tensor.extents)
    if array.shape != tensor.extents:
        message = f"the input `{name}` has shape {shape_text(array.shape)}, not {wanted}"
        yield error("input-shape", message, tensor.span, helps=[f"give an array of shape {wanted}"])
    if array.dtype != tensor.type.dtype:
        kind = tensor.type.value
        message = f"the input `{name}` has type {array.dtype}, not {kind}"
        yield error("input-type", message, tensor.span, helps=[f"convert it: `array.astype('{kind}')`"])


def shape_text(shape: tuple[int, ...]) -> str:
    """Return ``32 x 16``; ``()`` for rank 0."""
    return " x ".join(map(str, shape)) or "()"
