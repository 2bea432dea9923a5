"""Building and running drop-ins as a user does, with the OpenCL library and the driver that pip brought."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

STRICT = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-Wno-unused-function")


PATCHED = "polyloom: PoCL does not know this processor"
"""What a program says where it runs on a processor younger than PoCL."""


def opencl_folder() -> Path:
    """Return pyopencl's folder: its ``.libs`` hold the loader and PoCL."""
    import pyopencl

    return Path(pyopencl.__file__).parent


def opencl_library() -> Path:
    return next((opencl_folder() / ".libs").glob("libOpenCL*.so*"))


def opencl_environment() -> dict[str, str]:
    """Return the environment in which a C program finds PoCL where pip put it."""
    here = opencl_folder()
    return {**os.environ, "PYOPENCL_HOME": str(here), "LD_LIBRARY_PATH": str(here / ".libs")}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def build(folder: Path, sources: Sequence[str], options: Sequence[str] = (), *, opencl: bool = True) -> Path:
    """Compile C files of a folder; the program is ``folder/program``."""
    program = folder / ("with_opencl" if opencl else "sequential")
    libraries = ["-DPOLYLOOM_LINK", str(opencl_library())] if opencl else []
    compiler = shutil.which("gcc") or "cc"
    command = [compiler, *STRICT, *options, *sources, "-o", str(program), *libraries, "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return program


def run(
    program: Path, environment: Mapping[str, str] | None = None, arguments: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    everything = {**opencl_environment(), **(environment or {})}
    done = subprocess.run(
        [str(program), *arguments], env=everything, capture_output=True, text=True, timeout=120
    )
    done.stderr = "".join(line for line in done.stderr.splitlines(True) if PATCHED not in line)
    return done
