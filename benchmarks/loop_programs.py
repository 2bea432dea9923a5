"""Thirty loop programs, the algorithms of PolyBench/C 4.2.1 in our own words, with sizes and data.

The programs are the files of `benchmarks/loops`, each with one function `kernel`. Their scalars and arrays
have the type of the macro ``REAL``. Sizes are PolyBench's; the one difference is gramschmidt,
which has more rows than columns here: with fewer, its last columns are divided by zero.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

FOLDER = Path(__file__).parent / "loops"
CLASSES = ("mini", "small", "medium", "large")
COMPILER = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc") or "cc"

Array = npt.NDArray[Any]
Values = dict[str, Any]

_SQUARE = {"mini": 40, "small": 120, "medium": 400, "large": 2000}
_PRODUCT = {"mini": (20, 30), "small": (60, 80), "medium": (200, 240), "large": (1000, 1200)}
_TABLE = {"mini": (32, 28), "small": (100, 80), "medium": (260, 240), "large": (1400, 1200)}
_WIDE = {"mini": (38, 42), "small": (116, 124), "medium": (390, 410), "large": (1900, 2100)}


def _sizes(names: str, *rows: Sequence[int]) -> dict[str, dict[str, int]]:
    return {c: dict(zip(names.split(), row, strict=True)) for c, row in zip(CLASSES, rows, strict=True)}


def _square() -> dict[str, dict[str, int]]:
    return _sizes("n", *((n,) for n in _SQUARE.values()))


SIZES: dict[str, dict[str, dict[str, int]]] = {
    "2mm": _sizes(
        "n m k l", (16, 18, 22, 24), (40, 50, 70, 80), (180, 190, 210, 220), (800, 900, 1100, 1200)
    ),
    "3mm": _sizes(
        "n m k l p",
        (16, 18, 20, 22, 24),
        (40, 50, 60, 70, 80),
        (180, 190, 200, 210, 220),
        (800, 900, 1000, 1100, 1200),
    ),
    "adi": _sizes("steps n", (20, 20), (40, 60), (100, 200), (500, 1000)),
    "atax": _sizes("n m", *_WIDE.values()),
    "bicg": _sizes("m n", *_WIDE.values()),
    "cholesky": _square(),
    "correlation": _sizes("n m", *_TABLE.values()),
    "covariance": _sizes("n m", *_TABLE.values()),
    "deriche": _sizes("w h", (64, 64), (192, 128), (720, 480), (4096, 2160)),
    "doitgen": _sizes("n m k", (10, 8, 12), (25, 20, 30), (50, 40, 60), (150, 140, 160)),
    "durbin": _square(),
    "fdtd-2d": _sizes("steps n m", (20, 20, 30), (40, 60, 80), (100, 200, 240), (500, 1000, 1200)),
    "floyd-warshall": _sizes("n", (60,), (180,), (500,), (2800,)),
    "gemm": _sizes("n m k", (20, 25, 30), (60, 70, 80), (200, 220, 240), (1000, 1100, 1200)),
    "gemver": _square(),
    "gesummv": _sizes("n", (30,), (90,), (250,), (1300,)),
    "gramschmidt": _sizes("n m", *_PRODUCT.values()),
    "heat-3d": _sizes("steps n", (20, 10), (40, 20), (100, 40), (500, 120)),
    "jacobi-1d": _sizes("steps n", (20, 30), (40, 120), (100, 400), (500, 2000)),
    "jacobi-2d": _sizes("steps n", (20, 30), (40, 90), (100, 250), (500, 1300)),
    "lu": _square(),
    "ludcmp": _square(),
    "mvt": _square(),
    "nussinov": _sizes("n", (60,), (180,), (500,), (2500,)),
    "seidel-2d": _sizes("steps n", (20, 40), (40, 120), (100, 400), (500, 2000)),
    "symm": _sizes("n m", *_PRODUCT.values()),
    "syr2k": _sizes("k n", *_PRODUCT.values()),
    "syrk": _sizes("k n", *_PRODUCT.values()),
    "trisolv": _square(),
    "trmm": _sizes("n m", *_PRODUCT.values()),
}
"""For each program and class of sizes, the values of its integer arguments."""

TIMED: dict[str, dict[str, int]] = {
    "adi": {"steps": 20, "n": 1000},
    "cholesky": {"n": 1000},
    "correlation": {"n": 700, "m": 600},
    "covariance": {"n": 700, "m": 600},
    "durbin": {"n": 10000},
    "fdtd-2d": {"steps": 50, "n": 1000, "m": 1200},
    "floyd-warshall": {"n": 800},
    "gemver": {"n": 4000},
    "gesummv": {"n": 2600},
    "gramschmidt": {"n": 500, "m": 600},
    "heat-3d": {"steps": 50, "n": 120},
    "jacobi-1d": {"steps": 2000, "n": 20000},
    "jacobi-2d": {"steps": 50, "n": 1300},
    "lu": {"n": 1000},
    "ludcmp": {"n": 1000},
    "nussinov": {"n": 1000},
    "seidel-2d": {"steps": 20, "n": 2000},
    "symm": {"n": 700, "m": 800},
    "syr2k": {"k": 700, "n": 800},
    "trisolv": {"n": 4000},
    "trmm": {"n": 700, "m": 800},
}
"""Sizes for which a C compiler's code takes 0.02 to 1 s, where those of ``large`` take more or less."""


def sizes(name: str, size: str) -> dict[str, int]:
    """Return the integer arguments of a program for a class of sizes, or for ``timed``."""
    return SIZES[name][size] if size in CLASSES else TIMED.get(name, SIZES[name]["large"])


@dataclass(frozen=True)
class Argument:
    """One parameter of ``kernel``: ``extents`` are names of integer parameters, empty for a scalar."""

    name: str
    type: str
    extents: tuple[str, ...]


def source(name: str) -> Path:
    """Return the file of a program."""
    return FOLDER / f"{name}.c"


def arguments(name: str) -> tuple[Argument, ...]:
    """Return the parameters of a program's function, in order."""
    (inside,) = re.findall(r"kernel\((.*?)\)\s*\{", source(name).read_text(encoding="utf-8"), re.DOTALL)
    return tuple(_argument(part.strip()) for part in inside.split(","))


def _argument(text: str) -> Argument:
    found = re.fullmatch(r"(\w+) (\w+)((?:\[\w+\])*)", text)
    assert found is not None, text
    return Argument(found[2], found[1], tuple(re.findall(r"\w+", found[3])))


def values(name: str, sizes: Mapping[str, int], real: type[np.floating[Any]], seed: int = 0) -> Values:
    """Return the value of each argument, in order; the algorithm is well conditioned on this data."""
    rng = np.random.default_rng(seed)
    return {a.name: _value(name, a, sizes, real, rng) for a in arguments(name)}


def _value(
    name: str,
    wanted: Argument,
    sizes: Mapping[str, int],
    real: type[np.floating[Any]],
    rng: np.random.Generator,
) -> Any:
    if wanted.name in sizes:
        return int(sizes[wanted.name])
    if not wanted.extents:
        return real(_SCALARS[wanted.name])
    shape = tuple(sizes[extent] for extent in wanted.extents)
    maker = _DATA.get((name, wanted.name), _mixed)
    dtype = {"REAL": real, "int": np.int32, "char": np.int8}[wanted.type]
    return np.ascontiguousarray(maker(rng, shape), dtype=dtype)


_SCALARS = {"alpha": 0.75, "beta": 1.25}


def _mixed(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return reals of both signs, of sizes that differ by a factor of about a hundred."""
    return rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(-1.5, 0.5, shape)


def _dominant(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return a matrix whose diagonal exceeds the sum of each row and column."""
    return rng.uniform(-1, 1, shape) + 2 * shape[0] * np.eye(*shape)


def _definite(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return a symmetric positive definite matrix."""
    half = _dominant(rng, shape)
    return (half + half.T) / 2


def _decaying(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return autocorrelations of a stable process, the first one below 1."""
    return 0.5 ** (1 + np.arange(shape[0])) * rng.uniform(0.8, 1.0, shape)


def _integers(low: int, high: int) -> Callable[[np.random.Generator, tuple[int, ...]], Array]:
    return lambda rng, shape: rng.integers(low, high, shape)


def _zeros(_: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.zeros(shape)


_DATA: dict[tuple[str, str], Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    ("cholesky", "A"): _definite,
    ("lu", "A"): _dominant,
    ("ludcmp", "A"): _dominant,
    ("trisolv", "L"): _dominant,
    ("durbin", "r"): _decaying,
    ("floyd-warshall", "d"): _integers(1, 1000),
    ("nussinov", "base"): _integers(0, 4),
    ("nussinov", "best"): _zeros,
}


def built(name: str, real: str, folder: Path, flags: Sequence[str]) -> ctypes.CDLL:
    """Compile a program with the C compiler; ``real`` is ``float`` or ``double``."""
    library = folder / f"{name}-{real}.so"
    command = [COMPILER, "-std=gnu11", "-w", *flags, f"-DREAL={real}", "-shared", "-fPIC", str(source(name))]
    subprocess.run([*command, "-o", str(library), "-lm"], check=True, capture_output=True, text=True)
    return ctypes.CDLL(str(library))


def call(library: ctypes.CDLL, name: str, given: Mapping[str, Any], real: type[np.floating[Any]]) -> None:
    """Run a compiled program on arrays, in place."""
    scalar = ctypes.c_double if np.dtype(real).itemsize == 8 else ctypes.c_float
    passed = [_passed(given[a.name], a, scalar) for a in arguments(name)]
    library.kernel.restype = None
    library.kernel(*passed)


def _passed(value: Any, wanted: Argument, scalar: type[Any]) -> Any:
    if isinstance(value, np.ndarray):
        return value.ctypes.data_as(ctypes.c_void_p)
    return scalar(value) if wanted.type == "REAL" else ctypes.c_int(value)
