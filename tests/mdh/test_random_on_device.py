"""Random md_homs, and random programs in C, on the device: equal to the evaluator, and to gcc."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiled_c import call
from md_homs import Case, md_homs
from polyloom.device_pipeline import load_opencl
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, MdHom
from polyloom.ir.verification.programs import verify
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.device.devices import DeviceModel, choose_device, open_device
from polyloom.mdh.lowering.launch import Launch
from polyloom.mdh.lowering.lower import emit_md_hom
from polyloom.mdh.schedule.choice import default_schedule, one_kernel_schedule
from polyloom.mdh.schedule.tiling import has_tiles
from polyloom.sources import Reading
from random_c import PARAMETERS, CProgram, c_programs

SIZES = st.fixed_dictionaries({name: st.integers(*limits) for name, limits in PARAMETERS.items()})
QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}


def check_c(program: CProgram, sizes: dict[str, int], seed: int) -> None:
    arguments = {**{name: sizes[name] for name in PARAMETERS}, **program.data(seed)}
    expected = call(program.text, "kernel", arguments)
    with TemporaryDirectory() as folder:
        source = Path(folder) / "random.c"
        source.write_text(program.text)
        compiled = load_opencl(source, Reading(), choose_device(None))
    given_arrays = {n: a.copy() if isinstance(a, np.ndarray) else a for n, a in arguments.items()}
    compiled(**given_arrays)
    for name, wanted in expected.items():
        assert np.array_equal(given_arrays[name], wanted), f"{name}\n{program.text}"


def emit(node: MdHom, program: HostProgram, device: DeviceModel) -> Launch:
    """The model's schedule; what has no tiles is a plain nest."""
    buffers = {b.name: b for b in program.buffers}
    schedule = default_schedule(node, buffers, device) if has_tiles(node) else None
    return emit_md_hom(node, program, device, schedule, one_kernel_schedule)


def emit_plain(node: MdHom, program: HostProgram, device: DeviceModel) -> Launch:
    return emit_md_hom(node, program, device, None, one_kernel_schedule)


def check_md_hom(case: Case, seed: int) -> None:
    verify(case.program)
    inputs = case.data(seed)
    expected = evaluate_host(case.program, {}, inputs)
    device = open_device(choose_device(None))
    for emitter in (emit, emit_plain):
        run = CompiledProgram(case.program, device, emitter)
        found = run.run(**{n: a.copy() for n, a in inputs.items()}).arrays
        for name, wanted in expected.items():
            assert np.array_equal(found[name], wanted), (name, emitter.__name__)


@settings(max_examples=4, **QUIET)
@given(c_programs(("int",)), SIZES, st.integers(0, 2**32))
def test_a_few_programs(program: CProgram, sizes: dict[str, int], seed: int) -> None:
    check_c(program, sizes, seed)


@settings(max_examples=8, **QUIET)
@given(md_homs(extras=True), st.integers(0, 2**32))
@pytest.mark.slow
@pytest.mark.ci
def test_a_few_md_homs(case: Case, seed: int) -> None:
    check_md_hom(case, seed)


@pytest.mark.slow
@settings(max_examples=80, **QUIET)
@given(c_programs(), SIZES, st.integers(0, 2**32))
def test_many_programs(program: CProgram, sizes: dict[str, int], seed: int) -> None:
    check_c(program, sizes, seed)


@pytest.mark.slow
@settings(max_examples=200, **QUIET)
@given(md_homs(extras=True), st.integers(0, 2**32))
def test_many_md_homs(case: Case, seed: int) -> None:
    check_md_hom(case, seed)
