"""What the front end understood does what the C compiler makes of it: ``programs/*.c``, run both ways.

The first line of a program says how it is run: ``// n=7 m=5 a[40] idx:0..4``: parameters, extents that C
does not say, ranges of values. ``close`` allows for other rounding of functions of ``math.h``.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sequential import run, shape_of

from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.types import ElementType
from polyloom.scop.model import Origin, Scop, ScopArray
from samples import one_in

NDArray = npt.NDArray[Any]
PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.c"))
COMPILER = shutil.which("gcc") or shutil.which("cc")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler to compare with")


@dataclass
class Setting:
    """How a program is run."""

    parameters: dict[str, int] = field(default_factory=dict)
    extents: dict[str, int] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    close: bool = False


def setting(text: str) -> Setting:
    found = Setting()
    for word in text.splitlines()[0].removeprefix("//").split():
        if m := re.fullmatch(r"(\w+)=(-?\d+)", word):
            found.parameters[m[1]] = int(m[2])
        elif m := re.fullmatch(r"(\w+)\[(\d+)\]", word):
            found.extents[m[1]] = int(m[2])
        elif m := re.fullmatch(r"(\w+):(-?\d+)\.\.(-?\d+)", word):
            found.ranges[m[1]] = (int(m[2]), int(m[3]))
        else:
            assert word == "close", word
            found.close = True
    return found


@pytest.mark.parametrize("path", one_in(2, PROGRAMS, name=lambda p: p.stem))
def test_same_as_the_compiler(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    how = setting(text)
    (scop,) = read_c(Source(str(path), text))
    rng = np.random.default_rng(len(text))
    arrays = {a.name: values(a, how, rng) for a in scop.arrays}
    ours = {name: array.copy() for name, array in arrays.items()}
    run(scop, how.parameters, ours)
    theirs = {name: array.copy() for name, array in arrays.items()}
    call(scop, library(path, tmp_path), how, theirs)
    for array in scop.arrays:
        if array.shape and array.origin in (Origin.ARGUMENT, Origin.GLOBAL):
            compare(ours[array.name], theirs[array.name], close=how.close)


def compare(ours: NDArray, theirs: NDArray, *, close: bool) -> None:
    if close:
        np.testing.assert_allclose(ours, theirs, rtol=1e-6 if ours.dtype == np.float32 else 1e-13)
    else:
        np.testing.assert_array_equal(ours, theirs)


def values(array: ScopArray, how: Setting, rng: np.random.Generator) -> NDArray:
    shape = shape_of(array, how.parameters, how.extents)
    low, high = how.ranges.get(array.name, (-5, 9) if not array.type.value.startswith("u") else (0, 9))
    whole = rng.integers(low, high + 1, shape)
    if array.type.is_float:
        return np.asarray(whole / 4).astype(array.type.dtype)
    return np.asarray(whole).astype(array.type.dtype)


def library(path: Path, folder: Path) -> ctypes.CDLL:
    target = folder / "program.so"
    flags = ["-std=gnu99", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-w"]
    subprocess.run([str(COMPILER), *flags, str(path), "-o", str(target), "-lm"], check=True)
    return ctypes.CDLL(str(target))


SCALARS = {
    ElementType.FLOAT32: ctypes.c_float,
    ElementType.FLOAT64: ctypes.c_double,
    ElementType.INT8: ctypes.c_int8,
    ElementType.INT16: ctypes.c_int16,
    ElementType.INT32: ctypes.c_int32,
    ElementType.INT64: ctypes.c_int64,
    ElementType.UINT8: ctypes.c_uint8,
    ElementType.UINT16: ctypes.c_uint16,
    ElementType.UINT32: ctypes.c_uint32,
    ElementType.UINT64: ctypes.c_uint64,
}


def call(scop: Scop, compiled: ctypes.CDLL, how: Setting, arrays: dict[str, NDArray]) -> None:
    """Call the function; members of structures are laid out as C does."""
    by_name = {a.name: a for a in scop.arrays}
    types = {p.name: p.type for p in scop.parameters}
    records = {a.record[0]: record_layout(scop, a.record[0], arrays) for a in scop.arrays if a.record}
    arguments: list[Any] = []
    for name in scop.arguments:
        if name in records:
            arguments.append(records[name].ctypes.data_as(ctypes.c_void_p))
        elif name in by_name and by_name[name].shape:
            arguments.append(arrays[name].ctypes.data_as(ctypes.c_void_p))
        elif name in by_name:
            arguments.append(SCALARS[by_name[name].type](arrays[name].item()))
        else:
            arguments.append(SCALARS[types.get(name, ElementType.INT32)](how.parameters.get(name, 0)))
    shared = [(arrays[a.name], in_library(a, compiled)) for a in scop.arrays if a.origin is Origin.GLOBAL]
    for array, memory in shared:
        memory[...] = array.reshape(-1)
    getattr(compiled, scop.name)(*arguments)
    for array, memory in shared:
        array[...] = memory.reshape(array.shape)
    for a in scop.arrays:
        if a.record:
            member = records[a.record[0]]
            for part in a.record[1:]:
                member = member[part]
            arrays[a.name][...] = member


def in_library(array: ScopArray, compiled: ctypes.CDLL) -> NDArray:
    """Return the memory of a global variable."""
    count = int(np.prod(shape_of(array, {}, {}), dtype=np.int64))
    return np.ctypeslib.as_array((SCALARS[array.type] * count).in_dll(compiled, array.name))


def record_layout(scop: Scop, variable: str, arrays: dict[str, NDArray]) -> NDArray:
    """Return a structured array of one level of members that all have the rank of the variable."""
    members = [a for a in scop.arrays if a.record and a.record[0] == variable]
    dtype = np.dtype([(a.record[1], a.type.dtype) for a in members], align=True)
    result = np.zeros(arrays[members[0].name].shape, dtype)
    for a in members:
        result[a.record[1]] = arrays[a.name]
    return result
