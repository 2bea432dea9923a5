"""Calls like some before: of what was checked then, only that is looked at which may be another now.

What a call costs beside its kernels is one function of C: it compares shapes and types of arrays, and that
those that are written lie apart from all others (``calls.c``). The last kinds of calls are known, so that
sizes may take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import prod
from typing import Any

import numpy as np

from polyloom.ir.host import Buffer
from polyloom.mdh.native.execution import LINE, NativeArray, NativeExecutable, Prepared, address, is_written
from polyloom.mdh.native.python_calls import (
    ARRAY,
    DOUBLE,
    FLOAT,
    INTEGER,
    SAME,
    Argument,
    Result,
    again,
    call_in_c,
)
from polyloom.mdh.native.team import team
from polyloom.mdh.runtime.arguments import Bound
from polyloom.mdh.runtime.arrays import is_usable

Again = Callable[..., Any]
"""Takes arguments like those of a call before; ``NotImplemented``, without effect, where they are not."""


KEPT = 8
"""Kinds of calls before the last that are known."""


class Repeating:
    """What is called, and repeats a call before where one is like it."""

    _again: Again | None = None
    """Of the last call."""
    _earlier: tuple[Again, ...] = ()
    """Of calls of other kinds before, the last first."""

    def _call(self, *arrays: Any, **named: Any) -> Any:
        """Run once.

        Errors: ``argument-...``, ``input-...``, ``parameter-...``, ``device-...``. Of ``polyloom.jit`` also
        ``Unsupported`` with ``python-...`` at a place in its file, where that has no affine form, and
        ``python-index`` for sizes with which an index is outside.
        """
        again = self._again
        found = NotImplemented if again is None else again(*arrays, **named)
        if found is NotImplemented:
            found = self._other_call(*arrays, **named)
        return None if not found else found[0] if len(found) == 1 else found

    __call__ = _call
    """By ``call_in_c`` the same in C, once there is a call to repeat."""

    def _other_call(self, *arrays: Any, **named: Any) -> tuple[Any, ...]:
        """Run once, not as the last time; return all results."""
        found = self._as_earlier(arrays, named)
        return self._checked_call(*arrays, **named) if found is None else found

    def _as_before(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """Repeat a call before; None, and nothing is done, where none is like this one."""
        again = self._again
        found = NotImplemented if again is None else again(*arrays, **named)
        return self._as_earlier(arrays, named) if found is NotImplemented else found

    def _as_earlier(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """Repeat a call before the last one, which is the last one then."""
        for other in self._earlier:
            found: Any = other(*arrays, **named)
            if found is not NotImplemented:
                self._remember(other)
                return tuple(found)
        return None

    def _remember(self, again: Again | None) -> None:
        """Know how calls like the last one are done; None: that no call before can be done again."""
        known = (self._again, *self._earlier) if again is not None else ()
        others = tuple(each for each in known if each is not None and each is not again)
        self._again, self._earlier = again, others[:KEPT]

    def _checked_call(self, *arrays: Any, **named: Any) -> tuple[Any, ...]:
        """Run once, whatever was called before; return all results."""
        raise NotImplementedError


_REALS = {np.dtype(np.float64): DOUBLE, np.dtype(np.float32): FLOAT}

_NUMBERS = (float, int, np.float64, np.float32)
"""What C takes for a double or float; other values than the first call's, too."""

_LARGEST = 2**63


@dataclass(frozen=True, eq=False)
class Done:
    """A call that was done, with ``bound``: its arguments as they were checked."""

    executable: NativeExecutable
    bound: Bound

    def again(
        self, given: Mapping[str, tuple[str | None, Any]], names: Sequence[str], results: Sequence[str]
    ) -> Again | None:
        """Return a function that does it again, with arguments like these; None where each has to be checked.

        ``given``: by the names that a caller knows, what that is in the program (None: nothing), and the
        argument; ``names``: all that a caller may give, in order; ``results``: what comes back as a tuple, by
        names in the program.
        """
        given = {n: given[n] for n in (*(n for n in names if n in given), *given)}
        prepared = self.executable.prepared(self.bound.parameters, arrays=self.bound.arrays)
        buffers = {b.name: (k, b) for k, b in enumerate(self.executable.program.buffers)}
        inner = [name for name, _ in given.values()]
        found = [
            _argument(outer, value, self._used(name), None if name is None else buffers.get(name))
            if name is None or name in buffers
            else _number(outer, value)
            for outer, (name, value) in given.items()
        ]
        arguments = [argument for argument in found if argument is not None]
        written = {name for name, (_, buffer) in buffers.items() if is_written(buffer)}
        unknown = len(arguments) < len(found) or not prepared.loading.constants.isdisjoint(inner)
        if unknown or len({*results}) < len(results) or not {*results} <= written <= {*inner, *results}:
            return None
        if any(name in self.bound.arrays and name not in inner for name in results):
            return None
        made = [_result(name, inner, prepared, buffers[name]) for name in results]
        stays = [n for n, a in zip(inner, arguments, strict=True) if a.kind == ARRAY]
        entry = prepared.entry
        call_in_c(Repeating, entry.team)
        return again(
            entry.team,
            team(entry.threads, entry.team).address,
            entry.address,
            prepared.addresses(self.bound.arrays),
            arguments,
            len(list(takewhile(given.__contains__, names))),
            made,
            self.executable.valid,
            [prepared, *(a for n, a in self.bound.arrays.items() if n not in stays)],
        )

    def _used(self, name: str | None) -> Any:
        return None if name is None else self.bound.arrays.get(name)


def _argument(name: str, value: Any, used: Any, place: tuple[int, Buffer] | None) -> Argument | None:
    """Return an argument, None where it has to be checked and converted anew each time."""
    if isinstance(value, int | float | np.generic):
        if place is None or used is None:
            return _number(name, value)
        kind = _REALS.get(used.dtype) if type(value) in _NUMBERS else None
        if is_written(place[1]):
            return None
        return _number(name, value) if kind is None else Argument(name, kind, value, place[0])
    if place is None or used is None:
        return Argument(name, ARRAY, value) if type(value) is np.ndarray else None
    written = is_written(place[1])
    kind = ARRAY if type(value) is np.ndarray else SAME
    if kind == ARRAY:
        in_place = isinstance(used, np.ndarray) and address(used) == address(value)
        if not in_place or not is_usable(value, written=written):
            return None
    elif not isinstance(value, NativeArray):
        return None
    return Argument(
        name=name,
        kind=kind,
        value=value,
        place=place[0],
        written=written,
        lies=address(value),
        size=value.nbytes,
    )


def _number(name: str, value: Any) -> Argument | None:
    """Return a number that has to be the same again."""
    if type(value) is int and -_LARGEST <= value < _LARGEST:
        return Argument(name, INTEGER, value)
    return Argument(name, SAME, value) if isinstance(value, int | float | np.generic) else None


def _result(name: str, inner: Sequence[str | None], prepared: Prepared, place: tuple[int, Buffer]) -> Result:
    position, buffer = place
    shape, dtype = prepared.shapes[name], buffer.type.dtype
    argument = inner.index(name) if name in inner else -1
    room = prod(shape) * dtype.itemsize + LINE
    return Result(argument=argument, place=position, shape=shape, dtype=dtype, room=room)
