"""C functions compiled with gcc and called on NumPy arrays: what a program means to C."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

COMPILER = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc") or "cc"


def call(text: str, function: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Compile, call with the arguments in order, return the arrays as the function leaves them.

    Integers are ``int``; floats ``double``; arrays are passed by their address.
    """
    arrays = {n: np.array(a, order="C") for n, a in arguments.items() if isinstance(a, np.ndarray)}
    with tempfile.TemporaryDirectory() as folder:
        library = ctypes.CDLL(str(build(text, Path(folder))))
    getattr(library, function)(*(_passed(arrays.get(n, a)) for n, a in arguments.items()))
    return arrays


def compiled(text: str, function: str, folder: Path) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Compile once, to call several times; ``folder`` keeps the library."""
    library = ctypes.CDLL(str(build(text, folder)))

    def run(arguments: Mapping[str, Any]) -> dict[str, Any]:
        arrays = {n: np.array(a, order="C") for n, a in arguments.items() if isinstance(a, np.ndarray)}
        getattr(library, function)(*(_passed(arrays.get(n, a)) for n, a in arguments.items()))
        return arrays

    return run


def build(text: str, folder: Path) -> Path:
    (folder / "program.c").write_text(text)
    library = folder / "program.so"
    flags = ["-std=gnu11", "-O1", "-fwrapv", "-ffp-contract=off", "-w", "-shared", "-fPIC"]
    command = [COMPILER, *flags, "program.c", "-o", str(library), "-lm"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return library


def _passed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.ctypes.data_as(ctypes.c_void_p)
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int(value)
