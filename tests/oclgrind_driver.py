"""Oclgrind, an OpenCL device that looks for races and accesses out of bounds."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path


@cache
def driver() -> Path | None:
    """Return Oclgrind's driver library, where it is installed."""
    program = shutil.which("oclgrind")
    if program is None:
        return None
    library = Path(program).resolve().parents[1] / "lib" / "oclgrind" / "liboclgrind-rt-icd.so"
    return library if library.exists() else None
