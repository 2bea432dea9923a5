"""Parameters and input arrays of a program: checked against its buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.ir.host import Buffer, HostProgram
from polyloom.ir.integers import holds, integer
from polyloom.ir.program import Program

NDArray = npt.NDArray[Any]
NO_PARAMETERS: Mapping[str, int] = MappingProxyType({})


def shape_of(buffer: Buffer, parameters: Mapping[str, int]) -> tuple[int, ...]:
    """Return a buffer's extents for given parameters; none is negative."""
    return tuple(max(0, integer(n, parameters)) for n in buffer.shape)


def elements_of(program: HostProgram, parameters: Mapping[str, Any] = NO_PARAMETERS) -> int | None:
    """Return how many elements the buffers of a program have together; None where that is open."""
    try:
        known = {name: value for name, value in parameters.items() if isinstance(value, int)}
        return len(program.parameters) + sum(prod(shape_of(b, known)) for b in program.buffers)
    except KeyError:
        return None


def checked_inputs(program: Program, inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Return the inputs as C-contiguous arrays. Raises ``PolyloomError`` with every fault found.

    Errors: ``input-missing``, ``input-unknown``, ``input-shape``, ``input-type``.
    """
    return checked_host_inputs(program, {}, inputs)


def checked_host_inputs(
    program: HostProgram, parameters: Mapping[str, int], inputs: Mapping[str, NDArray]
) -> dict[str, NDArray]:
    """Return the inputs as C-contiguous arrays. Raises ``PolyloomError`` with every fault found.

    Errors: ``parameter-missing``, ``parameter-unknown``, ``parameter-value``, ``input-missing``,
    ``input-unknown``, ``input-shape``, ``input-type``.
    """
    check_parameters(program, parameters)
    wanted = [Buffer.of(b.name, b.type, shape_of(b, parameters), b.span) for b in program.given]
    return _checked_arrays(program.name, wanted, inputs)


def _checked_arrays(
    program: str, wanted: Sequence[Buffer], inputs: Mapping[str, NDArray]
) -> dict[str, NDArray]:
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


def check_parameters(program: HostProgram, parameters: Mapping[str, int]) -> None:
    """Check values of all parameters. Raises ``PolyloomError`` with every fault found.

    Errors: ``parameter-missing``, ``parameter-unknown``, ``parameter-value``.
    """
    faults = list(_parameter_faults(program, parameters))
    if faults:
        raise PolyloomError(*faults)


def _parameter_faults(program: HostProgram, parameters: Mapping[str, int]) -> Iterator[Diagnostic]:
    known = [p.name for p in program.parameters]
    listed = f"its parameters: {', '.join(known) or 'none'}"
    for name in parameters:
        if name not in known:
            message = f"`{program.name}` has no parameter `{name}`"
            data = ["it is data, not a size: give it in `--inputs`, as an array of rank 0"]
            is_data = any(b.name == name and not b.shape for b in program.buffers)
            yield error("parameter-unknown", message, helps=[listed, *(data if is_data else ())])
    for name in known:
        if name not in parameters:
            message = f"the parameter `{name}` has no value"
            yield error("parameter-missing", message, helps=[f"give it: `--param {name}=NUMBER`"])
    context = program.context
    if context is not None and set(known) <= set(parameters) and not holds(context, parameters):
        values = ", ".join(f"{name} = {parameters[name]}" for name in known)
        message = f"`{program.name}` makes no sense for {values}"
        yield error("parameter-value", message, helps=["give values that its loops and arrays allow"])


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
