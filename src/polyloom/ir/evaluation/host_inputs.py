"""Parameters and input arrays of a host program: checked against its buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.ir.evaluation.inputs import checked_arrays
from polyloom.ir.host import Buffer, HostProgram, Role
from polyloom.ir.integers import holds, integer

NDArray = npt.NDArray[Any]


def shape_of(buffer: Buffer, parameters: Mapping[str, int]) -> tuple[int, ...]:
    """Return a buffer's extents for given parameters; none is negative."""
    return tuple(max(0, integer(n, parameters)) for n in buffer.shape)


def elements_of(program: HostProgram, parameters: Mapping[str, Any]) -> int | None:
    """Return how many elements the arguments of a program have together; None where that is open."""
    try:
        known = {name: value for name, value in parameters.items() if isinstance(value, int)}
        return len(program.parameters) + sum(prod(shape_of(b, known)) for b in program.buffers)
    except KeyError:
        return None


def input_buffers(program: HostProgram) -> tuple[Buffer, ...]:
    """Return the buffers that a caller gives: inputs, and what is updated."""
    return tuple(b for b in program.buffers if b.role in (Role.INPUT, Role.UPDATED))


def checked_host_inputs(
    program: HostProgram, parameters: Mapping[str, int], inputs: Mapping[str, NDArray]
) -> dict[str, NDArray]:
    """Return the inputs as C-contiguous arrays. Raises ``PolyloomError`` with every fault found.

    Errors: ``parameter-missing``, ``parameter-unknown``, ``parameter-value``, ``input-missing``,
    ``input-unknown``, ``input-shape``, ``input-type``.
    """
    check_parameters(program, parameters)
    buffers = input_buffers(program)
    wanted = [Buffer.of(b.name, b.type, shape_of(b, parameters), b.span) for b in buffers]
    return checked_arrays(program.name, wanted, inputs)


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
