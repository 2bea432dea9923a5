"""Random static control programs: what gcc makes of them is what their host programs mean, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiled_c import call
from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.programs import verify
from polyloom.scop.transform import ReductionMode, host_program, serial_program
from random_c import PARAMETERS, CProgram, c_programs

SIZES = st.fixed_dictionaries({name: st.integers(*limits) for name, limits in PARAMETERS.items()})
QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}


def host_programs(program: CProgram) -> dict[str, HostProgram]:
    (scop,) = read_c(Source("random.c", program.text), None, {}, (), None)
    found = {mode.value: host_program(scop, mode).program for mode in ReductionMode}
    return {"serial": serial_program(scop), **found}


def check(program: CProgram, sizes: dict[str, int], seed: int) -> None:
    arrays = program.data(seed)
    expected = call(program.text, "kernel", {**{name: sizes[name] for name in PARAMETERS}, **arrays})
    for name, host in host_programs(program).items():
        verify(host)
        used = {p.name: sizes[p.name] for p in host.parameters}
        special = specialise(host, used)
        verify(special)
        found = evaluate_host(special, {}, {b.name: arrays[b.name] for b in special.given})
        for array, values in {**arrays, **found}.items():
            assert np.array_equal(values, expected[array]), f"{name}: {array}\n{program.text}"


@pytest.mark.slow
@pytest.mark.ci
@settings(max_examples=6, **QUIET)
@given(c_programs(), SIZES, st.integers(0, 2**32))
def test_a_few(program: CProgram, sizes: dict[str, int], seed: int) -> None:
    check(program, sizes, seed)


@pytest.mark.slow
@settings(max_examples=250, **QUIET)
@given(c_programs(), SIZES, st.integers(0, 2**32))
def test_many(program: CProgram, sizes: dict[str, int], seed: int) -> None:
    check(program, sizes, seed)


@pytest.mark.slow
@settings(max_examples=150, **QUIET)
@given(c_programs(("unsigned", "long", "unsigned char", "int")), SIZES, st.integers(0, 2**32))
def test_types(program: CProgram, sizes: dict[str, int], seed: int) -> None:
    check(program, sizes, seed)
