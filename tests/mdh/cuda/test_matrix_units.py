"""Products of halves on matrix units: on a driver that is none (``on_host/mma.h``), and compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from fake_gpu import fake_gpu
from half_products import DEVICE, PRODUCTS, half_product, product_schedule, random_form
from homs import check, hom_of, made_up, run_program
from onnx import TensorProto, helper

import polyloom
from polyloom.diagnostics import PolyloomError
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, MdHom, Role
from polyloom.mdh.cuda.architectures import architectures, matrix_products
from polyloom.mdh.cuda.compiler import built, found_compiler
from polyloom.mdh.cuda.device import CudaDevice
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.kernels.nodes import tiled_kernels
from polyloom.mdh.lowering.launch import Kernel, Launch
from polyloom.mdh.lowering.lower import IllegalSchedule, emit_md_hom
from polyloom.mdh.native.device import choose, opened
from polyloom.mdh.print.kernel_source import kernel_body, prelude_of, without_prelude
from polyloom.mdh.runtime.host_program import prepare
from polyloom.mdh.schedule.choice import default_schedule, one_kernel_schedule
from polyloom.mdh.schedule.matrix_designs import Form
from polyloom.mdh.schedule.schedules import Schedule, plain_schedule, schedule_from_json, schedule_from_text
from polyloom.mdh.schedule.search_space import space_of

FORMS = ((1, 1), (1, 1)), ((2, 1), (1, 2)), ((1, 2), (2, 2))


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CudaDevice]:
    with fake_gpu(tmp_path, monkeypatch):
        device = opened(choose("cuda"))
        assert isinstance(device, CudaDevice)
        yield device


def test_a_product_is_computed(gpu: CudaDevice) -> None:
    program, matrix = PRODUCTS["rests"]
    check(program, product_schedule(program, Form(matrix, (1, 2), (2, 1), 32)), {}, 0, gpu)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_computed(name: str, gpu: CudaDevice) -> None:
    program, matrix = PRODUCTS[name]
    for blocks, warps in FORMS:
        check(program, product_schedule(program, Form(matrix, blocks, warps)), {}, 0, gpu)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("seed", range(6))
def test_products_at_random(seed: int, gpu: CudaDevice) -> None:
    rng = Random(seed)
    steps = 16 * rng.randint(1, 6)
    sizes = rng.randint(1, 90), rng.randint(1, 90), steps
    program = half_product(
        *sizes, turned=(rng.random() < 0.5, rng.random() < 0.5, False), batch=rng.randint(0, 2)
    )
    check(program, product_schedule(program, random_form(rng, (1, 2, 3), steps)), {}, seed, gpu)


def changed(program: HostProgram, schedule: Schedule, which: int, gpu: CudaDevice) -> bool:
    """Return whether results are others without one of the kernel's barriers."""

    def emit(node: MdHom, whole: HostProgram, model: DeviceModel) -> Launch:
        launch = emit_md_hom(node, whole, model, schedule, one_kernel_schedule)
        parts = launch.kernels[0].source.split("__syncthreads();")
        source = "__syncthreads();".join(parts[: which + 1]) + "__syncthreads();".join(parts[which + 1 :])
        return replace(launch, kernels=(replace(launch.kernels[0], source=source),))

    arrays = made_up(program, {}, 1)
    inputs = {b.name: arrays[b.name] for b in program.buffers if b.role is Role.INPUT}
    found = run_program(prepare(program, {}, gpu, emit), program, arrays)
    return not np.array_equal(found["C"], evaluate_host(program, {}, inputs)["C"])


@pytest.mark.slow
@pytest.mark.ci
def test_the_driver_that_is_none_shows_missing_barriers(gpu: CudaDevice) -> None:
    program, matrix = PRODUCTS["rests"]
    schedule = product_schedule(program, Form(matrix, (2, 1), (1, 2)))
    assert [changed(program, schedule, which, gpu) for which in range(3)] == [True, True, True]


def half_model() -> bytes:
    """Return a model in float16: ``relu(A @ B + b)``."""
    half = TensorProto.FLOAT16
    shapes = {"A": [2, 96, 192], "B": [192, 200], "b": [200], "C": [2, 96, 200]}
    values = {name: helper.make_tensor_value_info(name, half, shape) for name, shape in shapes.items()}
    nodes = [
        helper.make_node("MatMul", ["A", "B"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["C"]),
    ]
    graph = helper.make_graph(nodes, "layer", [values[n] for n in "ABb"], [values["C"]])
    return onnx.helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


@pytest.mark.slow
@pytest.mark.ci
def test_a_model_in_halves_runs_on_the_units(
    gpu: CudaDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = list[str]()
    build = CudaDevice.build

    def noted(device: CudaDevice, kernels: Sequence[Kernel]) -> list[Any]:
        sources.extend(kernel.source for kernel in kernels)
        return build(device, kernels)

    monkeypatch.setattr(CudaDevice, "build", noted)
    path = tmp_path / "layer.onnx"
    path.write_bytes(half_model())
    result = polyloom.run(polyloom.compile(path, device="cuda"), check=True)
    assert result.passed
    assert any("nvcuda::wmma::mma_sync" in source for source in sources)


# What is chosen


@pytest.mark.slow
@pytest.mark.ci
def test_large_products_are_for_the_units() -> None:
    program = half_product(512, 512, 512)
    for device in architectures().values():
        assert default_schedule(hom_of(program), program.by_name, device).matrix == (1, 2, 3)
    turned = half_product(512, 512, 512, turned=(False, False, True))
    assert default_schedule(hom_of(turned), turned.by_name, DEVICE).matrix == (2, 1, 3)


def test_strict_programs_and_devices_without_units_have_none() -> None:
    program = half_product(256, 256, 256)
    hom = hom_of(program)
    strict = replace(program, strict=True)
    assert space_of(hom, program, DEVICE).matrix_forms is not None
    assert space_of(hom, strict, DEVICE).matrix_forms is None
    without = replace(DEVICE, matrix_products=0)
    assert space_of(hom, program, without).matrix_forms is None
    assert default_schedule(hom, program.by_name, without).matrix == ()
    schedule = product_schedule(program, Form((1, 2, 3)))
    emit_md_hom(hom, program, DEVICE, schedule, one_kernel_schedule)
    with pytest.raises(IllegalSchedule, match="no matrix units"):
        emit_md_hom(hom, strict, DEVICE, schedule, one_kernel_schedule)


def test_what_is_drawn_is_legal_and_has_units_now_and_then() -> None:
    program, _ = PRODUCTS["rests"]
    space, rng = space_of(hom_of(program), program, DEVICE), Random(1)
    drawn = [space.sample(rng) for _ in range(40)]
    assert all(map(space.is_valid, drawn))
    assert {bool(schedule.matrix) for schedule in drawn} == {True, False}
    some = next(schedule for schedule in drawn if schedule.matrix)
    assert all(n.matrix and n != some for n in space.neighbours(some, rng))


def test_units_are_those_of_the_architecture(gpu: CudaDevice) -> None:
    assert gpu.model.matrix_products == matrix_products("sm_80") == 1024
    assert matrix_products("sm_52") == 0


# Schedules that are kept


def test_schedules_of_a_time_without_units_are_read_as_they_were() -> None:
    plain = plain_schedule(4, 2)
    assert "matrix" not in plain.text()
    assert schedule_from_text(plain.text()) == plain
    schedule = product_schedule(half_product(32, 32, 32), Form((1, 2, 3)))
    assert schedule_from_text(schedule.text()) == schedule
    assert schedule != replace(schedule, matrix=())


@pytest.mark.parametrize("wrong", ["abc", 3, None, ["a", "b", "c"], [1.5, 2, 3], [True, 2, 3], {"rows": 1}])
def test_other_things_are_no_dimensions(wrong: object) -> None:
    document = {**plain_schedule(4, 2).json(), "matrix": wrong}
    with pytest.raises(ValueError, match="list of integers"):
        schedule_from_json(document)


# NVIDIA's compilers


def source_of(name: str, form: Form) -> str:
    program, _ = PRODUCTS[name]
    schedule = product_schedule(program, form)
    return tiled_kernels(hom_of(program), program, DEVICE, schedule, one_kernel_schedule).kernels[0].source


def test_a_kernel_begins_with_what_it_needs_once() -> None:
    source = source_of("whole", Form((1, 2, 3)))
    assert "wmma" not in without_prelude(source).split("extern")[0]
    assert prelude_of([source, source]).count("#include <mma.h>") == 1
    assert source.startswith(prelude_of([source]))


def has_compiler() -> bool:
    try:
        return bool(found_compiler())
    except PolyloomError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not has_compiler(), reason="neither NVRTC nor nvcc is installed")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_kernels_compile(architecture: str) -> None:
    sources = [
        source_of(name, Form(matrix, *form)) for name, (_, matrix) in PRODUCTS.items() for form in FORMS
    ]
    spaces = "".join(f"namespace k{k} {{\n{kernel_body(s)}}}\n" for k, s in enumerate(sources))
    assert built(prelude_of(sources) + spaces, architecture, ())
