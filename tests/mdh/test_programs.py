"""C programs on a device: what their host programs mean, with the schedules of the cost model and without."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from c_host_programs import host_programs_of
from polyloom.ir.evaluation.random_inputs import random_inputs
from polyloom.ir.host import HostProgram
from polyloom.ir.verification.host_results import check_run
from polyloom.ir.verification.references import evaluated
from polyloom.mdh.device.devices import OpenDevice, choose_device, open_device
from polyloom.mdh.runtime.arguments import Signature, bind
from polyloom.mdh.runtime.execution import Executable, plain_launch
from polyloom.mdh.runtime.host_program import Emitter
from polyloom.mdh.tuning import schedule_lookup
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter
from random_c import PARAMETERS, CProgram, c_programs
from samples import one_in

ROOT = Path(__file__).parents[2]
KERNELS = sorted((ROOT / "tests" / "scop" / "kernels").glob("*.c"))
EXAMPLES = sorted((ROOT / "examples" / "c").glob("*.c"))
QUIET: Any = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}
SIZES = st.fixed_dictionaries({name: st.integers(*limits) for name, limits in PARAMETERS.items()})


@cache
def device() -> OpenDevice:
    return open_device(choose_device())


def emitter(name: str) -> Emitter:
    return plain_launch if name == "plain" else TunedEmitter()


@pytest.fixture(autouse=True)
def without_tuning_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_lookup, "tuning_results", lambda path: None)


def assert_right(
    program: HostProgram, parameters: dict[str, int], inputs: dict[str, Any], emit: Emitter, *, fuse: bool
) -> None:
    copies = {name: array.copy() for name, array in inputs.items()}
    bound = bind(Signature(program, ()), {**parameters, **copies})
    execution = Executable(program, device(), emit, fuse=fuse).run(bound)
    expected = evaluated(program)(parameters, inputs)
    verdict = check_run(program, parameters, inputs, expected, execution.arrays, made_up=True)  # type: ignore[arg-type]
    assert verdict.passed, (verdict.mismatches, parameters)


def check_file(path: Path, sizes: tuple[int, ...], how: str, *, fuse: bool) -> None:
    for program in host_programs_of(path.read_text()):
        parameters = {p.name: sizes[k % len(sizes)] for k, p in enumerate(program.parameters)}
        inputs = regular(random_inputs(program, parameters=parameters))
        assert_right(program, parameters, inputs, emitter(how), fuse=fuse)


def regular(inputs: dict[str, Any]) -> dict[str, Any]:
    """Square matrices of floats get a large diagonal, so that factorisations stay finite."""
    for array in inputs.values():
        if array.ndim == 2 and array.shape[0] == array.shape[1] and array.dtype.kind == "f":
            array += 30 * np.eye(len(array), dtype=array.dtype)
    return inputs


PROGRAMS = pytest.mark.parametrize("path", [*KERNELS, *EXAMPLES], ids=lambda p: p.stem)


@pytest.mark.parametrize("path", one_in(3, [*KERNELS, *EXAMPLES], name=lambda p: p.stem))
def test_a_program_of_every_form(path: Path) -> None:
    check_file(path, (7, 5, 6), "plain", fuse=True)


@pytest.mark.slow
@PROGRAMS
def test_nothing_fused(path: Path) -> None:
    check_file(path, (9, 8, 10), "plain", fuse=False)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(1, 1, 1), (17, 13, 19), (33, 2, 59)], ids=str)
@PROGRAMS
def test_schedules_of_the_cost_model(path: Path, sizes: tuple[int, ...]) -> None:
    check_file(path, sizes, "model", fuse=False)


def check_random(program: CProgram, sizes: dict[str, int], seed: int, how: str) -> None:
    (host,) = host_programs_of(program.text)
    parameters = {p.name: sizes[p.name] for p in host.parameters}
    data = program.data(seed)
    inputs = {b.name: data[b.name] for b in host.given}
    assert_right(host, parameters, inputs, emitter(how), fuse=how == "plain")


@settings(max_examples=4, **QUIET)
@given(c_programs(), SIZES, st.integers(0, 2**32), st.sampled_from(["model", "plain"]))
@pytest.mark.slow
@pytest.mark.ci
def test_random_programs(program: CProgram, sizes: dict[str, int], seed: int, how: str) -> None:
    check_random(program, sizes, seed, how)


@pytest.mark.slow
@settings(max_examples=100, **QUIET)
@given(c_programs(), SIZES, st.integers(0, 2**32), st.sampled_from(["model", "plain"]))
def test_many_random_programs(program: CProgram, sizes: dict[str, int], seed: int, how: str) -> None:
    check_random(program, sizes, seed, how)
