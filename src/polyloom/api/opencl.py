"""Host programs from Python: compiled, run and replaced in C."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence

import numpy.typing as npt

from polyloom import device_pipeline
from polyloom.api.reading import Path, reading_of
from polyloom.device_pipeline import load_opencl
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.dropin.folder import DropIn
from polyloom.mdh.native.device import all_devices, choose
from polyloom.mdh.running import RunResult, run_program
from polyloom.polyhedra.effort import limited
from polyloom.sources import Given, load_host_programs


def devices() -> tuple[DeviceModel, ...]:
    """Return what programs can run on, in the order of ``polyloom devices``: the default is the first."""
    return all_devices()


@limited("the loops of the program")
def compile(
    source: Given,
    *,
    device: str | None = None,
    node: str | None = None,
    function: str | None = None,
    defines: Mapping[str, object] | None = None,
    include: Sequence[Path] = (),
    reductions: str = "detect",
    fp: str = "reassociate",
    database: Path | None = None,
    check: bool = False,
    driver_patch: bool = True,
    threads: int | None = None,
) -> CompiledProgram:
    """Make a Python function of a C function, a layer or a model, which runs on a device::

        gemm = polyloom.compile("gemm.c")
        gemm(n, m, k, alpha, beta, C, A, B)

    ``polyloom.load`` gives one that also knows its inputs and outputs, and can be simulated. The weights of a
    model need not be given; its inputs have their names in the program here.

    ``device``: as ``--device``; None: ``native`` where there is a C compiler.
    ``defines``: C macros or LAIR parameters; ``database``: tuned schedules, None
    for the user's own. What the arguments are, and how arrays stay on the device: ``CompiledProgram``.
    ``check``: the first call for each set of sizes is compared with the C program, built by the C compiler
    (a layer with the evaluator); it raises ``check-mismatch`` where an element is wrong.

    ``driver_patch``: whether PoCL's memory may be changed where it does not know the processor
    (docs/opencl_devices.md).

    ``threads``: how many run the program on ``native``; None: as many as this process may use.

    Errors: those of the front ends, ``device-...``, ``native-...``, ``function-several``, ``reductions``.
    """
    reading = reading_of(node, function, defines, include, reductions, fp)
    results = None if database is None else pathlib.Path(database)
    chosen = choose(device, driver_patch=driver_patch, threads=threads)
    return load_opencl(source, reading, chosen, results, check=check)


@limited("the loops of the program")
def drop_in(
    source: Given,
    values: Mapping[str, int] | None = None,
    *,
    target: str = "opencl",
    device: str | None = None,
    node: str | None = None,
    function: str | None = None,
    defines: Mapping[str, object] | None = None,
    include: Sequence[Path] = (),
    reductions: str = "detect",
    fp: str = "reassociate",
    database: Path | None = None,
) -> DropIn:
    """Make a C program whose loops are functions of another file, or a C function of a LAIR layer.

    polyloom.drop_in("gemm.c", {"n": 1024}, target="c").write("out")

    ``values``: of parameters for which there is code of its own; ``target``: ``c``, for the processor, or
    ``opencl``; the others as for ``compile``.

    Errors: those of the front ends, ``device-...``, ``native-...``, ``target-unknown``,
    ``parameter-unknown``, ``drop-in-device``; ``Unsupported`` with ``drop-in-...``. Source: docs/drop_in.md.
    """
    given = reading_of(node, function, defines, include, reductions, fp)
    reading = device_pipeline.reading_for(target, source, given)
    results = None if database is None else pathlib.Path(database)
    loaded = load_host_programs(source, reading)
    return device_pipeline.drop_in(source, loaded, reading, target, device, values or {}, results)


def run(
    program: CompiledProgram | Given,
    inputs: Mapping[str, npt.ArrayLike] | None = None,
    *,
    check: bool = False,
) -> RunResult:
    """Run a compiled program once, with its inputs by name, and tell how long it took.

    ``inputs``: parameters, scalars and arrays; None, or only scalars: the arrays are small integers from a
    fixed seed. The given arrays stay as they are. ``check`` compares with the NumPy evaluator: equal where
    the inputs were made up and the program only adds, multiplies and compares, else within a bound.

    Errors: ``argument-...``, ``parameter-...``, ``input-...``, ``device-...``.
    """
    return run_program(compiled_program(program), dict(inputs or {}), check=check)


def compiled_program(program: CompiledProgram | Given) -> CompiledProgram:
    """Return a compiled program, or make one of a source for the default device."""
    return program if isinstance(program, CompiledProgram) else compile(program)
