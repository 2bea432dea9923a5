"""A GPU that is none: CUDA's driver and NVRTC as a library built from ``on_host``."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from polyloom.mdh.cuda import compiler
from polyloom.mdh.cuda import library as cuda_library

ON_HOST = Path(__file__).parent / "on_host"
GPP = shutil.which("g++")


@cache
def fake_library() -> Path:
    """Return the library, built once for each process that asks."""
    path = Path(mkdtemp(prefix="fake-cuda-")) / "libcuda.so"
    atexit.register(shutil.rmtree, path.parent, ignore_errors=True)
    source = ON_HOST / "fake_cuda.cpp"
    command = [GPP or "", "-O0", "-w", "-shared", "-fPIC", str(source), "-o", str(path), "-ldl"]
    subprocess.run(command, check=True, timeout=120)
    return path


@contextmanager
def fake_gpu(folder: Path, patch: pytest.MonkeyPatch, **variables: str) -> Iterator[Path]:
    """Let CUDA be the fake; give the file that its calls are in."""
    if GPP is None:
        pytest.skip("g++ is not installed")
    log = folder / "calls"
    log.touch()
    given = {"POLYLOOM_CUDA": str(fake_library()), "POLYLOOM_NVRTC": str(fake_library())}
    given |= {"FAKE_CUDA_HEADERS": str(ON_HOST), "FAKE_CUDA_LOG": str(log)}
    for name, value in (given | variables).items():
        patch.setenv(name, value)
    patch.setattr(compiler, "cache_folder", lambda: folder)
    cuda_library._library.cache_clear()
    try:
        yield log
    finally:
        cuda_library._library.cache_clear()


def calls(log: Path) -> list[str]:
    """Return the calls since the last time, without those that ask."""
    found = log.read_text().splitlines()
    os.truncate(log, 0)
    return [line for line in found if not line.startswith(("cuDeviceGet", "cuDriver", "cuEvent", "cuCtxSet"))]
