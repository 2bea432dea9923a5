"""Functions of Python, made of C alone, that repeat a call: ``calls.c``, and what it knows of the process.

CPython's functions are handed to C as addresses, so nothing has to be linked, and no header is needed. How
an array of NumPy lies in memory is compared with one of the process before C looks at any.
"""

from __future__ import annotations

import ctypes
import inspect
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.mdh.native.team import load_library

NDArray = npt.NDArray[Any]

AGAIN, OTHER = "_again", "_other_call"
"""Attributes of what is called: a function of ``again`` or None, and what does other calls."""

MOST = 1 << 14
"""Addresses, arguments and results of a call, each; they lie on the stack."""

SAME, INTEGER, DOUBLE, FLOAT, ARRAY = range(5)
"""Kinds of arguments: this very object; this integer; any number as a double or float; arrays alike."""

_FLAGS = {"c_contiguous": 0x1, "aligned": 0x100, "writeable": 0x400}

_FUNCTIONS = (
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyLong_AsLongLong",
    "PyFloat_AsDouble",
    "PyObject_Call",
    "PyTuple_Pack",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyTuple_GetItem",
    "PyTuple_Size",
    "PyLong_FromLongLong",
    "PyUnicode_Compare",
    "PyErr_Occurred",
    "PyErr_Clear",
    "Py_IncRef",
    "Py_DecRef",
    "PyObject_Vectorcall",
    "PyObject_GetAttr",
)

_FAST_WITH_NAMES = 0x80 | 0x2
"""METH_FASTCALL | METH_KEYWORDS."""


def _structure(name: str, *fields: str) -> type[ctypes.Structure]:
    return type(name, (ctypes.Structure,), {"_fields_": [(field, ctypes.c_int64) for field in fields]})


_Argument = _structure(
    "_Argument",
    *("kind", "name", "value", "number", "place", "written", "flags", "dimensions", "shape", "dtype"),
    *("bytes", "before"),
)
_Result = _structure("_Result", "argument", "place", "room", "shape", "dtype")
_Plan = _structure(
    "_Plan",
    *("valid", "crew", "function", "integers", "addresses", "count", "arguments", "given", "positional"),
    *("results", "made"),
)


class _Method(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )


@dataclass(frozen=True, eq=False)
class Argument:
    """What was given to a call. ``place``: of its address in the call, -1 where there is none.

    ``lies``: where it lay, in ``size`` bytes; 0 for what the call does not use as an array.
    """

    name: str
    kind: int
    value: Any
    place: int = -1
    written: bool = False
    lies: int = 0
    size: int = 0


@dataclass(frozen=True, eq=False)
class Result:
    """What a call leaves: ``argument``, the number of one that it is, or -1: a new array at ``place``."""

    argument: int
    place: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    room: int


def again(
    library: Path,
    crew: int,
    function: int,
    addresses: Sequence[int],
    arguments: Sequence[Argument],
    positional: int,
    results: Sequence[Result],
    valid: NDArray,
    alive: Sequence[Any],
) -> Callable[..., Any] | None:
    """Return a function that repeats a call, or returns ``NotImplemented`` where it is not one like it.

    ``crew``, ``function``: addresses of a team and of what it runs on ``addresses``; ``positional``: how many
    arguments may come without their names; ``valid``: a word that is 0 when it is over; ``alive``: what is
    kept as long as the function. Results come as a tuple.

    None in a process that has no such functions.
    """
    loaded = _library(library)
    if loaded is None or max(len(arguments), len(results), len(addresses)) > MOST:
        return None
    method = _method(loaded.call_again, "again", "Run once.")
    kept: list[Any] = [method, valid, *alive]
    integers = (ctypes.c_int64 * 1)()
    places = (ctypes.c_int64 * max(1, len(addresses)))(*addresses)
    taken = (_Argument * max(1, len(arguments)))(*(_argument(a, kept) for a in arguments))
    left = (_Result * max(1, len(results)))(*(_result(r, kept) for r in results))
    plan = _Plan(
        valid=valid.__array_interface__["data"][0],
        crew=crew,
        function=function,
        integers=ctypes.addressof(integers),
        addresses=ctypes.addressof(places),
        count=len(addresses),
        arguments=ctypes.addressof(taken),
        given=len(arguments),
        positional=positional,
        results=ctypes.addressof(left),
        made=len(results),
    )
    kept += [integers, places, taken, left, plan]
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    found: Callable[..., Any] = make(ctypes.addressof(method), ctypes.addressof(plan), tuple(kept))
    return found


def _argument(argument: Argument, kept: list[Any]) -> Any:
    name, value, kind = sys.intern(argument.name), argument.value, argument.kind
    kept.append(name)
    found = _Argument(kind=kind, name=id(name), place=argument.place, written=argument.written)
    found.bytes, found.before = argument.size, argument.lies
    if kind == SAME:
        kept.append(value)
        found.value = id(value)
    elif kind == INTEGER:
        found.number = value
    elif kind == ARRAY:
        shape = (ctypes.c_int64 * max(1, value.ndim))(*value.shape)
        kept += [shape, value.dtype]
        found.dimensions, found.shape, found.dtype = value.ndim, ctypes.addressof(shape), id(value.dtype)
        if argument.place >= 0:
            wanted = ("c_contiguous", "aligned", "writeable")[: 3 if argument.written else 2]
            found.flags = sum(_FLAGS[flag] for flag in wanted)
    return found


def _result(result: Result, kept: list[Any]) -> Any:
    room = (result.room, np.dtype(np.uint8))
    kept += [room, result.shape, result.dtype]
    return _Result(result.argument, result.place, id(room), id(result.shape), id(result.dtype))


@cache
def call_in_c(kind: Any, library: Path) -> _Method | None:
    """Replace ``__call__`` of a class by one of C that does the same (``Repeating._call``).

    Where C does not know how objects lie in memory it stays as it is. The class needs what is returned as
    long as it is there; the cache keeps it.
    """
    loaded = _library(library)
    if loaded is None:
        return None
    text = f"__call__($self, /, *arrays, **named)\n--\n\n{inspect.getdoc(kind.__call__)}"
    method = _method(loaded.call_object, "__call__", text)
    make = ctypes.pythonapi.PyDescr_NewMethod
    make.restype, make.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_void_p]
    kind.__call__ = make(kind, ctypes.addressof(method))
    return method


def _method(function: Any, name: str, text: str) -> _Method:
    address = ctypes.cast(function, ctypes.c_void_p).value
    return _Method(name.encode(), address, _FAST_WITH_NAMES, text.encode())


@cache
def _library(library: Path) -> ctypes.CDLL | None:
    """Return the functions of C, ready; None where C does not know how objects lie in memory."""
    known = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
    if not known or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    loaded = load_library(library)
    if not hasattr(loaded, "call_object") or not _is_described(loaded):
        return None
    objects = int, float, np.float64, np.float32, np.ndarray, np.zeros, NotImplemented
    functions = (ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in _FUNCTIONS)
    words = [*map(id, objects), *functions, *map(id, (None, sys.intern(AGAIN), sys.intern(OTHER)))]
    loaded.set_python((ctypes.c_void_p * len(words))(*words))
    return loaded


def _is_described(library: ctypes.CDLL) -> bool:
    """Return whether C finds in an array what Python says of it."""
    whole = np.zeros((3, 5), np.float32)
    whole.flags.writeable = False
    for array in (whole, whole[1:, ::2], np.zeros((4, 7), np.int16).T):
        found = (ctypes.c_int64 * 9)()
        library.describe(ctypes.py_object(array), found)
        flags = sum(bit for name, bit in _FLAGS.items() if getattr(array.flags, name))
        base = 0 if array.base is None else id(array.base)
        said = [id(np.ndarray), array.__array_interface__["data"][0], 2, *array.shape]
        said += [array.strides[0], base, id(array.dtype)]
        if list(found)[:8] != said or found[8] & sum(_FLAGS.values()) != flags:
            return False
    return True
