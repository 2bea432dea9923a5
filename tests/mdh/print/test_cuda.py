"""Kernels in CUDA C: what they look like, and that NVIDIA's compiler takes them where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from homs import ZOO, device, hom_of, matmul, wild_schedule
from scheduled_trees import legal

from polyloom.diagnostics import PolyloomError
from polyloom.ir.host import HostProgram
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.cuda.compiler import built, found_compiler
from polyloom.mdh.device.devices import CUDA
from polyloom.mdh.lowering.kernels.nodes import nest_kernels, tiled_kernels
from polyloom.mdh.lowering.launch import Launch
from polyloom.mdh.lowering.sequential_nest import plain_nest
from polyloom.mdh.print.kernel_source import kernel_body, prelude_of
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


def compiles(sources: Sequence[str], architecture: str) -> None:
    """Compile kernels, each in a namespace of its own. Errors: Refused, with what the compiler says."""
    spaces = "".join(f"namespace k{k} {{\n{kernel_body(s)}}}\n" for k, s in enumerate(sources))
    assert built(prelude_of(sources) + spaces, architecture, ())


def has_compiler() -> bool:
    try:
        return bool(found_compiler())
    except PolyloomError:
        return False


def staged_schedule(program: HostProgram) -> Schedule | None:
    model = replace(device().model, platform=CUDA)
    return legal(
        program, 0, model, lambda s: replace(s, stages=2, streaming=False), lambda facts: facts.staged
    )


@pytest.mark.slow
@pytest.mark.skipif(not has_compiler(), reason="neither NVRTC nor nvcc is installed")
@pytest.mark.parametrize("name", sorted(ZOO))
def test_kernels_compile(name: str) -> None:
    program = specialise(*ZOO[name])
    schedules = [None, *(wild_schedule(program, Random(seed)) for seed in range(3))]
    if (staged := staged_schedule(program)) is not None:
        schedules.append(staged)
    sources = [kernel.source for schedule in schedules for kernel in in_cuda(name, schedule).kernels]
    for architecture in ("sm_80", "sm_90"):
        compiles(sources, architecture)
