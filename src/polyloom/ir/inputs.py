"""Input arrays of a program: checked against its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.ir.program import Program, Tensor

NDArray = npt.NDArray[Any]


def checked_inputs(program: Program, inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Return the inputs as C-contiguous arrays. Raises ``PolyloomError`` with every fault found.

    Errors: ``input-missing``, ``input-unknown``, ``input-shape``, ``input-type``.
    """
    faults = [_unknown(name, program) for name in inputs if name not in program.inputs]
    arrays: dict[str, NDArray] = {}
    for name in program.inputs:
        if name not in inputs:
            faults.append(_missing(program.tensor(name)))
        else:
            arrays[name] = np.asarray(inputs[name], order="C")
            faults += _mismatch(program.tensor(name), arrays[name])
    if faults:
        raise PolyloomError(*faults)
    return arrays


def described(tensor: Tensor) -> str:
    """Return the type and shape of a tensor: ``float16[32][16]``."""
    return tensor.type.value + "".join(f"[{n}]" for n in tensor.shape)


def _unknown(name: str, program: Program) -> Diagnostic:
    known = ", ".join(program.inputs) or "none"
    return error(
        "input-unknown",
        f"`{program.name}` has no input `{name}`",
        helps=[f"its inputs: {known}"],
    )


def _missing(tensor: Tensor) -> Diagnostic:
    return error(
        "input-missing",
        f"the input `{tensor.name}` is missing",
        tensor.span,
        helps=[f"give an array {described(tensor)} under this name"],
    )


def _mismatch(tensor: Tensor, array: NDArray) -> list[Diagnostic]:
    found = []
    if array.shape != tensor.shape:
        message = (
            f"the input `{tensor.name}` has shape {shape_text(array.shape)}, not {shape_text(tensor.shape)}"
        )
        help_ = f"give an array of shape {shape_text(tensor.shape)}"
        found.append(error("input-shape", message, tensor.span, helps=[help_]))
    if array.dtype != tensor.type.dtype:
        message = f"the input `{tensor.name}` has type {array.dtype}, not {tensor.type.value}"
        help_ = f"convert it: `array.astype('{tensor.type.value}')`"
        found.append(error("input-type", message, tensor.span, helps=[help_]))
    return found


def shape_text(shape: tuple[int, ...]) -> str:
    """Return ``32 x 16``; ``()`` for rank 0."""
    return " x ".join(map(str, shape)) or "()"
