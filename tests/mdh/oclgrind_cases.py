"""Kernels in GPU form, run on Oclgrind in this process: what it complains of, as JSON on standard output.

``test_oclgrind`` starts it with Oclgrind as the only driver. Every case is small: each instruction is
interpreted. Oclgrind's own check for uninitialised values is not used: it complains of vectors that are built
element by element, and with other settings of the optimiser of others. New memory is filled with NaN instead,
and results are compared.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import homs
import loop_programs as loops
import numpy as np
import pyopencl as cl

from polyloom.files import read_source
from polyloom.frontends.c import read_c
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, MdHom, Nest, Role
from polyloom.mdh.device.devices import DeviceModel, choose_device, open_device
from polyloom.mdh.lowering.kernels import launches
from polyloom.mdh.lowering.kernels.nodes import nest_kernels
from polyloom.mdh.lowering.launch import Launch
from polyloom.mdh.lowering.lower import emit_md_hom
from polyloom.mdh.print.dialect import OPENCL
from polyloom.mdh.print.kernel_source import OPENCL_KERNELS, kernel_source
from polyloom.mdh.runtime.host_program import prepare
from polyloom.mdh.schedule.choice import default_schedule, one_kernel_schedule
from polyloom.mdh.schedule.tiling import has_tiles
from polyloom.scop.transform import host_program

DEVICE = "oclgrind"
SMALL = 11
"""No loop of a C program has more passes."""

Case = Callable[[], None]


def cases(seeds: int) -> Iterator[tuple[str, Case]]:
    """Yield every case: md_homs under the model's and under wild schedules, C programs node by node."""
    for name, (given, parameters) in homs.ZOO.items():
        hom = homs.hom_of(given)
        yield f"{name}, the model's schedule", lambda g=given, h=hom, p=parameters: _default(g, h, p)
        for seed in range(seeds):
            yield f"{name}, schedule {seed}", lambda g=given, s=seed, p=parameters: _wild(g, p, s)
    for name in loops.SIZES:
        yield f"{name}.c", lambda n=name: _program(n)
    for name in ("matmul", "matmul_half", "stencil"):
        yield f"{name}, copies in two stages", lambda n=name: _staged(*homs.ZOO[n])
    yield "left out: the barrier behind copies", _without_barrier
    yield "left out: the barriers of two stages", lambda: _without_barrier(stages=2)
    yield "left out: the end of a work-group", _without_clamp


def _default(given: HostProgram, hom: MdHom, parameters: Mapping[str, int]) -> None:
    homs.check(given, default_schedule(hom, homs.buffers_of(given), homs.device().model), parameters)


def _wild(given: HostProgram, parameters: Mapping[str, int], seed: int) -> None:
    homs.check(given, homs.wild_schedule(given, Random(seed)), parameters, seed)


def _staged(given: HostProgram, parameters: Mapping[str, int]) -> None:
    homs.check(given, replace(homs.copying_schedule(given), stages=2), parameters)


def _program(name: str) -> None:
    """Run a C program with a kernel, or more, for each node; tiny ones are not joined here."""
    (scop,) = read_c(read_source(loops.source(name)), None, {"REAL": "float"}, [])
    program = host_program(scop).program
    mini = loops.SIZES[name]["mini"]
    sizes = {n: min(mini[n], SMALL) - k for k, n in enumerate(reversed(mini))}
    given = loops.values(name, sizes, np.float32)
    arrays = homs.made_up(program, sizes, 0)
    arrays |= {n: np.asarray(v) for n, v in given.items() if n in arrays}
    inputs = {b.name: arrays[b.name] for b in program.buffers if b.role in (Role.INPUT, Role.UPDATED)}
    wanted = evaluate_host(program, sizes, inputs)
    found = homs.run_program(prepare(program, sizes, homs.device(), _emit, fuse=False), program, arrays)
    for array, value in wanted.items():
        np.testing.assert_allclose(found[array], value, rtol=1e-3, atol=1e-4, err_msg=array)


def _emit(node: MdHom | Nest, program: HostProgram, device: DeviceModel) -> Launch:
    if isinstance(node, Nest):
        return nest_kernels(node, program, device)
    buffers = {b.name: b for b in program.buffers}
    schedule = default_schedule(node, buffers, device) if has_tiles(node) else None
    return emit_md_hom(node, program, device, schedule, one_kernel_schedule)


def _without_barrier(stages: int = 1) -> None:
    """A kernel that is wrong on purpose: Oclgrind must see it."""
    dialect = replace(OPENCL, barrier="", barrier_everywhere="")
    language = replace(OPENCL_KERNELS, dialect=dialect)
    kept = launches.kernel_source
    launches.kernel_source = lambda tree, given: kernel_source(tree, language)
    try:
        given, parameters = homs.ZOO["matmul"]
        schedule = replace(homs.copying_schedule(given), stages=stages)
        homs.run_on_device(given, schedule, parameters, homs.made_up(given, parameters, 0))
    finally:
        launches.kernel_source = kept


def _without_clamp() -> None:
    """Another one, whose last work-group goes beyond the end."""
    given, parameters = homs.ZOO["dot"]
    small = {n: a[: a.size // 2] if a.size > 1 else a for n, a in homs.made_up(given, parameters, 0).items()}
    homs.run_on_device(given, None, parameters, small)


def fill_new_memory() -> None:
    """Let every buffer that is made without contents start with bytes that no right result has."""
    plain = cl.Buffer

    def filled(context: cl.Context, flags: int, size: int = 0, hostbuf: object = None) -> cl.Buffer:
        if hostbuf is not None:
            return plain(context, flags, hostbuf=hostbuf)
        contents = np.full(size, 0xFF, np.uint8)
        return plain(context, flags | cl.mem_flags.COPY_HOST_PTR, hostbuf=contents)

    cl.Buffer = filled


def main() -> None:
    fill_new_memory()
    log = Path(sys.argv[1])
    names, seeds = set(sys.argv[3:]), int(sys.argv[2])
    assert "oclgrind" in open_device(choose_device(DEVICE)).model.id.lower()
    for name, case in cases(seeds):
        if names and name not in names:
            continue
        before = _size(log)
        try:
            case()
            failure = ""
        except Exception as fault:
            failure = f"{type(fault).__name__}: {fault}"
        print(json.dumps({"case": name, "failure": failure, "complaints": _new(log, before)}), flush=True)


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _new(log: Path, before: int) -> str:
    return log.read_text(errors="replace")[before:] if log.exists() else ""


if __name__ == "__main__":
    main()
