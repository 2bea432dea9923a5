"""Calls like one before: of what was checked then, only that is looked at which may be another now.

What a call costs beside its kernels is a few comparisons of shapes and types, and one call of C. Arrays may
be others where the program changes none of its arguments, so that no result can overlap with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.host import Buffer
from polyloom.mdh.native.execution import NativeArray, NativeExecutable, address, aligned, is_written
from polyloom.mdh.native.team import Call
from polyloom.mdh.runtime.arguments import Bound, Signature
from polyloom.mdh.runtime.arrays import is_usable

NDArray = npt.NDArray[Any]


@dataclass(eq=False, kw_only=True)
class _Argument:
    """What was given. ``position``: of its address in the call; None for a number, and what is not used."""

    value: Any
    position: int | None = None
    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any] | None = None
    written: bool = False

    def takes(self, value: Any) -> bool:
        """Return whether a call can have this value in place of the one before."""
        if self.position is None:
            return value is self.value or (type(value) is type(self.value) is int and value == self.value)
        if type(value) is not np.ndarray:
            return value is self.value
        return value.shape == self.shape and value.dtype == self.dtype and is_usable(value, written=False)


@dataclass(frozen=True, eq=False)
class _Result:
    """What is written: an array that stays, or None where each call makes one."""

    position: int
    array: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Repeated:
    """Runs a call again, with the same arguments or others of their kind."""

    def __init__(
        self,
        call: Call,
        names: tuple[str, ...],
        arguments: Sequence[_Argument],
        results: Mapping[str, _Result],
        alive: Sequence[Any],
    ) -> None:
        """``arguments``: those by ``names`` behind the others; ``results``: in the order of a call's.

        ``alive``: arrays whose addresses the call has.
        """
        self.call, self.names, self.arguments, self.alive = call, names, arguments, alive
        self.order = tuple(results)
        self._results = tuple(results.values())
        self._left = tuple(result.array for result in self._results)
        self._changes = any(argument.written for argument in arguments)
        self._lock = Lock()
        self._note()

    def _note(self) -> None:
        """Note what may have changed although the arguments are the same objects."""
        arrays = [a for a in self.arguments if a.position is not None]
        self._values = tuple(a.value for a in self.arguments)
        self._looks = [
            (a.value, a.shape, a.value.dtype, a.written and type(a.value) is np.ndarray) for a in arrays
        ]

    def __call__(self, positional: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """Run with these arguments; return what ``order`` names.

        None where the arguments have to be checked: nothing has happened then.
        """
        values = positional
        if named:
            if tuple(named) != self.names:
                return None
            values = (*positional, *named.values())
        if len(values) != len(self._values):
            return None
        if self._changes:
            if not self._are_still(values):
                return None
            self.call()
            return self._left
        with self._lock:
            if not self._are_still(values) and not self._are_replaced(values):
                return None
            return self._run()

    def _are_still(self, values: tuple[Any, ...]) -> bool:
        """Return whether arguments are the same objects, and these as they were."""
        if not all(map(is_, values, self._values)):
            return False
        for array, shape, dtype, written in self._looks:
            if array.shape != shape or array.dtype is not dtype or (written and not array.flags.writeable):
                return False
        return True

    def _are_replaced(self, values: tuple[Any, ...]) -> bool:
        """Take other arrays."""
        if not all(a.takes(value) for a, value in zip(self.arguments, values, strict=True)):
            return False
        for argument, value in zip(self.arguments, values, strict=True):
            if argument.position is not None and value is not argument.value:
                self.call.arrays[argument.position] = address(value)
                argument.value = value
        self._note()
        return True

    def _run(self) -> tuple[Any, ...]:
        """Run; every call has results of its own."""
        left = []
        for result in self._results:
            array = aligned(result.shape, result.dtype) if result.array is None else result.array
            self.call.arrays[result.position] = address(array)
            left.append(array)
        self.call()
        return tuple(left)


def repeated(
    executable: NativeExecutable,
    signature: Signature,
    bound: Bound,
    given: Mapping[str, Any],
    named: Sequence[str],
    results: Mapping[str, Any],
) -> Repeated | None:
    """Return calls like one that was just done; None where each has to be checked.

    ``given``: its arguments by name, those that were ``named`` last; ``results``: what it wrote, in order.
    """
    if signature.defaults or bound.beside:
        return None
    prepared = executable.prepared(bound.parameters)
    buffers = {b.name: (k, b) for k, b in enumerate(executable.program.buffers)}
    arguments = [_argument(value, bound.arrays.get(name), buffers.get(name)) for name, value in given.items()]
    known = [argument for argument in arguments if argument is not None]
    if len(known) < len(arguments):
        return None
    held = {**prepared.kept, **bound.arrays}
    left = {}
    for name, array in results.items():
        position, buffer = buffers[name]
        kept = array if name in held else None
        left[name] = _Result(position, kept, prepared.shapes[name], buffer.type.dtype)
    if not prepared.loading.constants.isdisjoint(given):
        return None
    call = prepared.entry.call(prepared.addresses(bound.arrays))
    return Repeated(call, tuple(named), known, left, alive=tuple(held.values()))


def _argument(value: Any, used: Any, place: tuple[int, Buffer] | None) -> _Argument | None:
    """Return an argument, None where it has to be checked and converted anew each time."""
    is_number = isinstance(value, int | float | np.generic)
    if place is None or used is None:
        return _Argument(value=value) if is_number else None
    position, buffer = place
    written = is_written(buffer)
    if is_number:
        return None if written else _Argument(value=value)
    if type(value) is np.ndarray:
        in_place = isinstance(used, np.ndarray) and address(used) == address(value)
        if not in_place or not is_usable(value, written=written):
            return None
    elif not isinstance(value, NativeArray):
        return None
    return _Argument(value=value, position=position, shape=value.shape, dtype=value.dtype, written=written)
