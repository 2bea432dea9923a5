"""Input arrays of a program: checked against its tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, PolyloomError, Span, error
from polyloom.ir.program import Program, Tensor
from polyloom.ir.types import ElementType

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
            tensor = program.tensor(name)
            faults += mismatches(name, arrays[name], tensor.shape, tensor.type, tensor.span)
    if faults:
        raise PolyloomError(*faults)
    return arrays


def elements_of(program: Program, *, every: bool = False) -> int:
    """Return how many elements the inputs of a program have together; ``every``: all of its tensors."""
    return sum(prod(t.shape) for t in program.tensors if every or t.name in program.inputs)


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


def mismatches(
    name: str, array: NDArray, shape: tuple[int, ...], kind: ElementType, span: Span | None
) -> Iterator[Diagnostic]:
    """Yield what is wrong with an input array: ``input-shape``, ``input-type``."""
    if array.shape != shape:
        message = f"the input `{name}` has shape {shape_text(array.shape)}, not {shape_text(shape)}"
        yield error("input-shape", message, span, helps=[f"give an array of shape {shape_text(shape)}"])
    if array.dtype != kind.dtype:
        message = f"the input `{name}` has type {array.dtype}, not {kind.value}"
        yield error("input-type", message, span, helps=[f"convert it: `array.astype('{kind.value}')`"])


def shape_text(shape: tuple[int, ...]) -> str:
    """Return ``32 x 16``; ``()`` for rank 0."""
    return " x ".join(map(str, shape)) or "()"
