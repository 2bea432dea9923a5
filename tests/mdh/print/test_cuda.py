"""Kernels in CUDA C: what they look like, and that NVIDIA's compiler takes them where it is installed."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest
from homs import ZOO, device, hom_of, matmul, wild_schedule

from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.device.devices import CUDA
from polyloom.mdh.lowering.kernels.nodes import nest_kernels, tiled_kernels
from polyloom.mdh.lowering.launch import Launch
from polyloom.mdh.lowering.sequential_nest import plain_nest
from polyloom.mdh.schedule.choice import one_kernel_schedule
from polyloom.mdh.schedule.schedules import Schedule, plain_schedule

GOLDEN = Path(__file__).parents[1] / "golden" / "matmul.cu"


def in_cuda(name: str, schedule: Schedule | None) -> Launch:
    given, parameters = ZOO[name]
    program = specialise(given, parameters)
    hom, model = hom_of(program), replace(device().model, platform=CUDA)
    if schedule is None:
        return nest_kernels(plain_nest(hom), program, model)
    return tiled_kernels(hom, program, model, schedule, one_kernel_schedule)


def test_a_product_reads_well(golden: Callable[[Path, str], None]) -> None:
    program = matmul(64, 64, 64)
    plain = plain_schedule(3, 2)
    schedule = replace(plain, group=(16, 32, 0), items=(4, 8, 1), private=(4, 1, 1), vector=1, width=4)
    launch = tiled_kernels(
        hom_of(program), program, replace(device().model, platform=CUDA), schedule, one_kernel_schedule
    )
    golden(GOLDEN, launch.kernels[0].source)


@cache
def nvrtc() -> ctypes.CDLL | None:
    """Return NVIDIA's compiler as a library, from pip's package or the system; None where there is none."""
    spec = find_spec("nvidia.cuda_nvrtc") if find_spec("nvidia") else None
    folders = list(spec.submodule_search_locations or []) if spec else []
    names = [str(Path(folder) / "lib" / "libnvrtc.so.12") for folder in folders]
    for name in (*names, os.environ.get("NVRTC", ""), "libnvrtc.so.12", "libnvrtc.so"):
        try:
            return ctypes.CDLL(name) if name else None
        except OSError:
            continue
    return None


def complaints(source: str, architecture: str) -> str:
    """Return what the compiler says of a kernel that it refuses; empty where it takes it."""
    library = nvrtc()
    assert library is not None
    program = ctypes.c_void_p()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"k.cu", 0, None, None) == 0
    includes = os.environ.get("CUDA_INCLUDE", "/usr/local/cuda/include")
    options = (ctypes.c_char_p * 2)(f"--gpu-architecture={architecture}".encode(), f"-I{includes}".encode())
    if library.nvrtcCompileProgram(program, 2, options) == 0:
        return ""
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    return log.value.decode()


@pytest.mark.skipif(nvrtc() is None, reason="NVRTC is not installed (pip install nvidia-cuda-nvrtc-cu12)")
@pytest.mark.parametrize("name", sorted(ZOO))
def test_kernels_compile(name: str) -> None:
    schedules = [None, *(wild_schedule(specialise(*ZOO[name]), Random(seed)) for seed in range(3))]
    for schedule in schedules:
        for kernel in in_cuda(name, schedule).kernels:
            for architecture in ("sm_80", "sm_90"):
                assert not complaints(kernel.source, architecture), kernel.source
