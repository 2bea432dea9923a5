"""Calls like one before: of what was checked then, only that is looked at which may be another now.

What a call costs beside its kernels is a few comparisons of shapes and types, and one call of C. Arrays may
be others where the program changes none of its arguments, so that no result can overlap with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.host import Buffer
from polyloom.mdh.native.execution import NativeArray, NativeExecutable, address, is_written
from polyloom.mdh.native.team import Call
from polyloom.mdh.runtime.arguments import Bound, Signature
from polyloom.mdh.runtime.arrays import is_usable

NDArray = npt.NDArray[Any]


@dataclass(eq=False)
class _Argument:
    """What was given. ``position``: of its address in the call; None for a number, and what is not used."""

    value: Any
    position: int | None = None
    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any] | None = None
    written: bool = False

    def is_still(self, value: Any) -> bool:
        """Return whether this same object is what it was."""
        if self.position is None:
            return True
        if value.shape != self.shape or value.dtype is not self.dtype:
            return False
        return not self.written or isinstance(value, NativeArray) or bool(value.flags.writeable)

    def takes(self, value: Any) -> bool:
        """Return whether another array can be used in its place as it lies."""
        if type(value) is not np.ndarray or self.position is None:
            return False
        fits = value.shape == self.shape and value.dtype == self.dtype
        return fits and is_usable(value, written=False, rows=None)


@dataclass(frozen=True, eq=False)
class Repeated:
    """``arguments``: those by ``names`` behind the others. ``made``: outputs that each call makes.

    ``results``: what is written, by name; ``order``: those that a call returns.
    """

    call: Call
    names: tuple[str, ...]
    arguments: tuple[_Argument, ...]
    made: tuple[tuple[str, int, tuple[int, ...], np.dtype[Any]], ...]
    results: dict[str, Any]
    order: tuple[str, ...]
    is_free: bool
    """Whether arrays may be others."""
    alive: tuple[Any, ...]
    """Arrays whose addresses the call has, and that nobody else may hold."""
    lock: Lock

    def __call__(self, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any] | None:
        """Run with these arguments; None where they have to be checked: nothing has happened then."""
        if len(positional) + len(named) != len(self.arguments) or (named and tuple(named) != self.names):
            return None
        with self.lock:
            for argument, value in zip(self.arguments, (*positional, *named.values()), strict=True):
                if value is argument.value:
                    if not argument.is_still(value):
                        return None
                elif not self._replaced(argument, value):
                    return None
            for name, position, shape, dtype in self.made:
                self.results[name] = array = np.zeros(shape, dtype)
                self.call.arrays[position] = address(array)
            self.call()
            return dict(self.results)

    def _replaced(self, argument: _Argument, value: Any) -> bool:
        if argument.position is None:
            return type(value) is int and type(argument.value) is int and bool(value == argument.value)
        if not self.is_free or not argument.takes(value):
            return False
        self.call.arrays[argument.position] = address(value)
        argument.value, argument.dtype = value, value.dtype
        return True


def repeated(
    executable: NativeExecutable,
    signature: Signature,
    bound: Bound,
    given: Mapping[str, Any],
    named: Sequence[str],
    results: Mapping[str, Any],
    order: Sequence[str],
) -> Repeated | None:
    """Return calls like one that was just done; None where each has to be checked.

    ``given``: its arguments by name, those that were ``named`` last; ``results``: what it wrote.
    """
    if signature.defaults or bound.beside:
        return None
    prepared = executable.prepared(bound.parameters)
    buffers = {b.name: (k, b) for k, b in enumerate(executable.program.buffers)}
    arguments = [_argument(value, bound.arrays.get(name), buffers.get(name)) for name, value in given.items()]
    if any(argument is None for argument in arguments):
        return None
    known = tuple(argument for argument in arguments if argument is not None)
    held = {**prepared.kept, **bound.arrays}
    made = tuple(
        (name, k, prepared.shapes[name], b.type.dtype) for name, (k, b) in buffers.items() if name not in held
    )
    call = prepared.entry.call([address(held[name]) if name in held else 0 for name in buffers])
    return Repeated(
        call=call,
        names=tuple(named),
        arguments=known,
        made=made,
        results={name: results[name] for name in results},
        order=tuple(order),
        is_free=not any(is_written(b) and name in bound.arrays for name, (_, b) in buffers.items()),
        alive=tuple(held.values()),
        lock=Lock(),
    )


def _argument(value: Any, used: Any, place: tuple[int, Buffer] | None) -> _Argument | None:
    """Return an argument, None where it has to be checked and converted anew each time."""
    if place is None or used is None:
        return _Argument(value) if isinstance(value, int | float | np.generic) else None
    position, buffer = place
    written = is_written(buffer)
    if isinstance(value, NativeArray):
        return _Argument(value, position, value.shape, value.dtype, written)
    if type(value) is not np.ndarray:
        constant = isinstance(value, int | float | np.generic) and not written
        return _Argument(value) if constant else None
    same = isinstance(used, np.ndarray) and address(used) == address(value)
    if not same or not is_usable(value, written=written, rows=None):
        return None
    return _Argument(value, position, value.shape, value.dtype, written)
