"""The arguments of a call: values of parameters, and an array for each buffer, checked.

A parameter that is not given follows from the shapes of the arrays, where an extent is that parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.ir.evaluation.inputs import shape_of, shape_text
from polyloom.ir.host import Buffer, HostProgram, Role
from polyloom.ir.inequalities import determined
from polyloom.ir.integers import holds, integer
from polyloom.mdh.runtime.arrays import DeviceArray
from polyloom.mdh.runtime.exchange import as_numpy
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, names_in

NDArray = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Signature:
    """A program as a function: its arguments in order.

    ``arguments`` may name what the program does not use. ``open_ended``: buffers of which C does not say the
    first extent (``double *a``); their arrays may be larger than what is accessed. ``defaults``: what
    buffers start from that need not be given: C's locals of which the part is all that matters.
    ``returned``: what the C function returns, which a call gives though no caller does.
    """

    program: HostProgram
    arguments: tuple[str, ...]
    open_ended: frozenset[str] = field(default_factory=frozenset)
    defaults: Mapping[str, float | int] = field(default_factory=dict)
    returned: str | None = None

    def named(self, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments by name.

        Errors: ``argument-count``, ``argument-unknown``, ``argument-twice``.
        """
        helps = [f"`{self.program.name}({', '.join(self.arguments)})`"]
        if len(positional) > len(self.arguments):
            message = f"{len(positional)} arguments for {len(self.arguments)}"
            raise PolyloomError(error("argument-count", message, helps=helps))
        found = dict(zip(self.arguments, positional, strict=False))
        known = {*self.arguments, *self.names}
        for name, value in named.items():
            if name in found or name not in known:
                what = "is given twice" if name in found else f"is no argument of `{self.program.name}`"
                code = "argument-twice" if name in found else "argument-unknown"
                raise PolyloomError(error(code, f"`{name}` {what}", helps=helps))
            found[name] = value
        return found

    @property
    def hidden(self) -> frozenset[str]:
        """Names of buffers that a call neither takes nor returns unless they are given."""
        return frozenset(self.defaults) - {self.returned}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters, and of all buffers that a caller may give."""
        visible = (b.name for b in self.program.buffers if b.role is not Role.LOCAL)
        return (*(p.name for p in self.program.parameters), *visible)


@dataclass(frozen=True, eq=False)
class Bound:
    """Values of all parameters, and arrays of the right shapes and types for the buffers that were given.

    ``beside``: arrays that overlap another one in memory, of which the program touches other rows than of
    that one, and these rows.
    """

    parameters: dict[str, int]
    arrays: dict[str, NDArray | DeviceArray]
    beside: Mapping[str, slice] = field(default_factory=dict)


def bind(signature: Signature, given: Mapping[str, Any]) -> Bound:
    """Check arguments and work out the parameters. Raises ``PolyloomError`` with every fault found.

    Errors: ``argument-unknown``, ``parameter-...``, ``input-missing``, ``input-shape``, ``input-type``,
    ``input-read-only``, ``input-alias``.
    """
    program = signature.program
    faults = _unknown(signature, given)
    arrays: dict[str, NDArray | DeviceArray] = {}
    for buffer in program.buffers:
        if buffer.name in given and buffer.role is not Role.LOCAL:
            arrays[buffer.name] = as_array(given[buffer.name], buffer)
    parameters = _stated(program, given, faults)
    parameters |= inferred(program, arrays, parameters)
    faults += [*_parameter_faults(program, parameters), *_negative_extents(signature, parameters)]
    faults += _read_only(program, arrays)
    if faults:
        raise PolyloomError(*faults)
    for name in signature.defaults:
        if name not in arrays:
            arrays[name] = _default(program.buffer(name), parameters, signature.defaults[name])
    faults += _missing_inputs(program, arrays, parameters)
    for name, array in arrays.items():
        arrays[name], more = _fitted(program.buffer(name), array, parameters, name in signature.open_ended)
        faults += more
    overlapping = list(_overlapping(program, arrays))
    rows = {n: _rows(program.buffer(n), parameters) for pair in overlapping for n in pair}
    faults += _aliases(program, arrays, overlapping, rows)
    if faults:
        raise PolyloomError(*faults)
    return Bound(parameters, arrays, rows)


def check_names(signature: Signature, given: Mapping[str, Any]) -> None:
    """Refuse what is no argument. Errors: ``argument-unknown``."""
    faults = _unknown(signature, given)
    if faults:
        raise PolyloomError(*faults)


def known_parameters(program: HostProgram, given: Mapping[str, Any]) -> dict[str, int]:
    """Return the value of every parameter: given, or what follows from the shapes of given arrays.

    Other names are left alone. Errors: ``parameter-missing``, ``parameter-type``, ``parameter-value``.
    """
    faults: list[Diagnostic] = []
    names = {b.name for b in program.buffers}
    arrays = {n: as_array(a, program.buffer(n)) for n, a in given.items() if n in names}
    parameters = _stated(program, given, faults)
    parameters |= inferred(program, arrays, parameters)
    faults += _parameter_faults(program, parameters)
    if faults:
        raise PolyloomError(*faults)
    return parameters


def _default(buffer: Buffer, parameters: Mapping[str, int], value: float | int) -> NDArray:
    return np.full(shape_of(buffer, parameters), value).astype(buffer.type.dtype)


def as_array(value: Any, buffer: Buffer) -> NDArray | DeviceArray:
    """Return what a caller gives for a buffer as an array.

    Plain numbers and lists take the buffer's type, and scalars do, as in C; other arrays must have it.
    """
    if isinstance(value, DeviceArray):
        return value
    if isinstance(value, np.ndarray) and (buffer.shape or value.dtype == buffer.type.dtype):
        return value
    value = as_numpy(value, buffer.name)
    if isinstance(value, np.ndarray) and (buffer.shape or value.dtype == buffer.type.dtype):
        return value
    try:
        found = np.asarray(value)
    except ValueError:
        return np.asarray(value, dtype=object)
    return found.astype(buffer.type.dtype) if found.dtype.kind in _numbers(buffer) else found


def _numbers(buffer: Buffer) -> str:
    """Return NumPy's kinds of numbers that a buffer takes."""
    return "ifub" if buffer.type.is_float else "iub"


def _unknown(signature: Signature, given: Mapping[str, Any]) -> list[Diagnostic]:
    taken = (name for name in signature.names if name != signature.returned)
    helps = [f"its arguments: {', '.join(taken) or 'none'}"]
    names = (name for name in given if name not in (*signature.names, *signature.arguments))
    who = signature.program.name
    return [error("argument-unknown", f"`{who}` has no argument `{name}`", helps=helps) for name in names]


def _stated(program: HostProgram, given: Mapping[str, Any], faults: list[Diagnostic]) -> dict[str, int]:
    """Return the parameters that are given: integers, or arrays of one integer."""
    found: dict[str, int] = {}
    for parameter in program.parameters:
        if parameter.name not in given:
            continue
        value = np.asarray(given[parameter.name])
        if value.size == 1 and value.dtype.kind in "iu":
            found[parameter.name] = int(value.reshape(()))
        else:
            faults.append(_no_integer(parameter.name, value))
    return found


def _no_integer(name: str, value: NDArray) -> Diagnostic:
    given = f"given is {value.dtype}{list(value.shape) or ''}"
    helps = [f"give one integer: `--param {name}=10`, `{name}=10` in Python"]
    return error("parameter-type", f"the parameter `{name}` is an integer", notes=[given], helps=helps)


def inferred(
    program: HostProgram, arrays: Mapping[str, NDArray | DeviceArray], known: Mapping[str, int]
) -> dict[str, int]:
    """Return parameters that follow from the shapes of arrays: extents ``n``, ``n + 1``, ``2 * n``.

    And those of which the program's context says what they are, ``h_w == h * w``.
    """
    found: dict[str, int] = {}
    for name, array in arrays.items():
        shape = program.buffer(name).shape
        for extent, size in zip(shape, array.shape, strict=False):
            solved = _solved(extent, size)
            if solved is not None and solved[0] not in known:
                found.setdefault(*solved)
    return found | determined(program.context, {**found, **known})


def _solved(extent: IntExpression, size: int) -> tuple[str, int] | None:
    """Solve ``extent == size`` for the one name in it, where that is simple."""
    match extent:
        case Name(name=name):
            return name, size
        case Operation(operator="+", operands=(inner, Number(value=constant))):
            return _solved(inner, size - constant)
        case Operation(operator="+", operands=(Number(value=constant), inner)):
            return _solved(inner, size - constant)
        case Operation(operator="-", operands=(inner, Number(value=constant))):
            return _solved(inner, size + constant)
        case Operation(operator="*", operands=(Number(value=factor), inner)) if factor:
            return _solved(inner, size // factor) if size % factor == 0 else None
        case _:
            return None


def _negative_extents(signature: Signature, parameters: Mapping[str, int]) -> Iterator[Diagnostic]:
    """Find arrays that are declared with an extent that is negative."""
    for buffer in signature.program.buffers:
        declared = buffer.shape[1:] if buffer.name in signature.open_ended else buffer.shape
        for name, value in parameters.items():
            if value < 0 and buffer.role is not Role.LOCAL and Name(name) in declared:
                message = f"`{buffer.name}` cannot have `{name}` = {value} elements in a dimension"
                yield error("parameter-value", message, helps=[f"give 0 or more: `--param {name}=10`"])


def _parameter_faults(program: HostProgram, parameters: Mapping[str, int]) -> Iterator[Diagnostic]:
    for parameter in program.parameters:
        value, limits = parameters.get(parameter.name, 0), np.iinfo(parameter.type.value)
        if not limits.min <= value <= limits.max:
            message = f"`{parameter.name}` = {value} does not fit its type, {parameter.type.value}"
            helps = [f"give a value from {limits.min} to {limits.max}"]
            yield error("parameter-value", message, helps=helps)
    missing = [p.name for p in program.parameters if p.name not in parameters]
    for name in missing:
        helps = [f"give it: `--param {name}=NUMBER`, or `{name}=...` in Python"]
        theirs = (b for b in program.buffers if b.role is not Role.LOCAL and Name(name) in b.shape)
        helps += [f"or an array for `{b.name}`" for b in theirs][:1]
        yield error("parameter-missing", f"the parameter `{name}` has no value", helps=helps)
    if not missing and program.context is not None and not holds(program.context, parameters):
        values = ", ".join(f"{name} = {value}" for name, value in parameters.items())
        message = f"`{program.name}` makes no sense for {values}"
        yield error("parameter-value", message, helps=["give values that its loops and arrays allow"])


def _missing_inputs(
    program: HostProgram, arrays: Mapping[str, NDArray | DeviceArray], parameters: Mapping[str, int]
) -> Iterator[Diagnostic]:
    for buffer in program.buffers:
        if buffer.role in (Role.INPUT, Role.UPDATED) and buffer.name not in arrays:
            wanted = buffer.type.value + "".join(f"[{n}]" for n in shape_of(buffer, parameters))
            message = f"the input `{buffer.name}` is missing"
            helps = [f"give an array {wanted} under this name"]
            yield error("input-missing", message, buffer.span, helps=helps)


def _fitted(
    buffer: Buffer, array: NDArray | DeviceArray, parameters: Mapping[str, int], open_ended: bool
) -> tuple[NDArray | DeviceArray, list[Diagnostic]]:
    """Return the part of an array that the program uses, and what is wrong with it."""
    shape = shape_of(buffer, parameters)
    faults = []
    larger = open_ended and _reaches(array.shape, shape)
    unused = open_ended and array.shape[1:] == shape[1:] and _touches_nothing(buffer, parameters)
    if array.shape != shape and not larger and not unused:
        message = f"`{buffer.name}` has shape {shape_text(array.shape)}, not {shape_text(shape)}"
        faults.append(error("input-shape", message, buffer.span, helps=[_shape_help(buffer, shape)]))
    if array.dtype != buffer.type.dtype:
        message = f"`{buffer.name}` has type {array.dtype}, not {buffer.type.value}"
        help_ = f"convert it: `array.astype('{buffer.type.value}')`"
        faults.append(error("input-type", message, buffer.span, helps=[help_]))
    if larger and not faults and isinstance(array, np.ndarray):
        return array[: shape[0]], faults
    return array, faults


def _touches_nothing(buffer: Buffer, parameters: Mapping[str, int]) -> bool:
    """Whether no row is accessed: ``a[2 * n + 8]`` in a loop up to ``n``, which is 0."""
    if buffer.rows is None:
        return False
    first, end = (integer(row, parameters) for row in buffer.rows)
    return first >= end


def _reaches(found: tuple[int, ...], needed: tuple[int, ...]) -> bool:
    return len(found) == len(needed) > 0 and found[0] >= needed[0] and found[1:] == needed[1:]


def _shape_help(buffer: Buffer, shape: tuple[int, ...]) -> str:
    names = sorted({name for extent in buffer.shape for name in names_in(extent)})
    where = f" ({', '.join(names)} as given)" if names else ""
    return f"give an array of shape {shape_text(shape)}{where}"


def _overlapping(
    program: HostProgram, arrays: Mapping[str, NDArray | DeviceArray]
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of arrays that overlap in memory where one of them is written."""
    changed = {n for n in arrays if program.buffer(n).role in (Role.OUTPUT, Role.UPDATED)}
    order = list(arrays)
    later = [n for n in order if n in changed]
    for k, a in enumerate(order):
        later = [n for n in later if n != a]
        for b in order[k + 1 :] if a in changed else later:
            if overlap(arrays[a], arrays[b]):
                yield a, b


def _rows(buffer: Buffer, parameters: Mapping[str, int]) -> slice:
    """Return the rows of a buffer that the program touches."""
    if buffer.rows is None:
        return slice(None)
    first, end = (integer(row, parameters) for row in buffer.rows)
    return slice(first, end) if first < end else slice(0, 0)


def _read_only(program: HostProgram, arrays: Mapping[str, NDArray | DeviceArray]) -> Iterator[Diagnostic]:
    """Yield a fault for each array that is written and may not be."""
    for buffer in program.buffers:
        array = arrays.get(buffer.name)
        is_written = buffer.role in (Role.OUTPUT, Role.UPDATED)
        if is_written and isinstance(array, np.ndarray) and not array.flags.writeable:
            message = f"`{buffer.name}` is written, and the array is read-only"
            yield error("input-read-only", message, buffer.span, helps=["give a copy: `array.copy()`"])


def _aliases(
    program: HostProgram,
    arrays: Mapping[str, NDArray | DeviceArray],
    overlapping: Sequence[tuple[str, str]],
    rows: Mapping[str, slice],
) -> Iterator[Diagnostic]:
    """Yield a fault for each pair of arrays of which what is touched overlaps."""
    for a, b in overlapping:
        if _apart(arrays[a], rows[a], arrays[b], rows[b]):
            continue
        written = b if program.buffer(a).role is Role.INPUT else a
        notes = [f"`{written}` is written, so the order of the loops would matter"]
        yield error("input-alias", f"`{a}` and `{b}` overlap in memory", notes=notes, helps=[f"copy `{b}`"])


def _apart(a: NDArray | DeviceArray, of_a: slice, b: NDArray | DeviceArray, of_b: slice) -> bool:
    """Whether rows of arrays that overlap lie apart; never those of arrays on a device."""
    if isinstance(a, DeviceArray) or isinstance(b, DeviceArray):
        return False
    return not overlap(a[of_a] if a.ndim else a, b[of_b] if b.ndim else b)


def overlap(a: NDArray | DeviceArray, b: NDArray | DeviceArray) -> bool:
    """Return whether two arrays share memory; in doubt they do."""
    if isinstance(a, DeviceArray) or isinstance(b, DeviceArray):
        return a is b
    try:
        return bool(np.may_share_memory(a, b) and np.shares_memory(a, b))
    except (np.exceptions.TooHardError, OverflowError):
        return True
