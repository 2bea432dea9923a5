"""``--device cuda`` on a driver that is none (``fake_gpu``): what is called, what comes back, what is said.

Kernels are built by g++: results are checked as gcc reads CUDA C. Nothing here shows what a GPU does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from fake_gpu import calls, fake_gpu
from homs import ZOO, buffers_of, check, hom_of, random_schedule

import polyloom
from polyloom.cli.main import run as command
from polyloom.diagnostics import PolyloomError
from polyloom.mdh.cuda import library as cuda_library
from polyloom.mdh.cuda.device import CudaDevice
from polyloom.mdh.device.devices import CUDA
from polyloom.mdh.lowering.launch import Kernel
from polyloom.mdh.native.device import choose, opened
from polyloom.mdh.schedule.legality import problems
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.tiling import TileFacts, has_tiles
from polyloom.polyhedra.loops.tree import Number
from polyloom.sources import Reading, load_host_programs

EXAMPLES = Path(__file__).parents[3] / "examples"
SAXPY = """
void saxpy(int n, float a, float x[n], float y[n]) {
  for (int i = 0; i < n; i++) y[i] += a * x[i];
}
"""
REPEATED = """
void repeated(int n, int t, double x[n], double y[n]) {
  for (int k = 0; k < t; k++) {
    for (int i = 1; i < n - 1; i++) y[i] = (x[i - 1] + x[i + 1]) / 2;
    for (int i = 1; i < n - 1; i++) x[i] = y[i];
  }
}
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with fake_gpu(tmp_path, monkeypatch) as found:
        yield found


def open_fake() -> CudaDevice:
    device = opened(choose("cuda"))
    assert isinstance(device, CudaDevice) and device.model.platform == CUDA
    return device


@pytest.mark.slow
@pytest.mark.ci
def test_arrays_go_there_and_back_once(log: Path) -> None:
    saxpy = polyloom.compile(SAXPY, device="cuda")
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    np.testing.assert_array_equal(saxpy(100, 2.0, x, y), 1 + 2 * x)
    calls(log)
    saxpy(100, 3.0, x, y)
    np.testing.assert_array_equal(y, 1 + 5 * x)
    said = calls(log)
    assert [line for line in said if "Memcpy" in line or "Launch" in line] == [
        "cuMemcpyHtoD_v2 4",
        "cuMemcpyHtoD_v2 400",
        "cuMemcpyHtoD_v2 400",
        next(line for line in said if "cuLaunchKernel" in line),
        "cuMemcpyDtoH_v2 400",
    ]
    assert said.index("cuCtxSynchronize") < said.index("cuMemcpyDtoH_v2 400")
    assert "nvrtcCompileProgram" not in " ".join(said), "it is built once"


@pytest.mark.slow
@pytest.mark.ci
def test_arrays_stay_on_the_device(log: Path) -> None:
    saxpy = polyloom.compile(SAXPY, device="cuda")
    x, y = (saxpy.to_device(np.arange(50, dtype=np.float32)) for _ in range(2))
    saxpy(50, 1.0, x, y)
    calls(log)
    saxpy(50, 1.0, x, y)
    assert not any("400" in line or "200" in line for line in calls(log)), "no array of them is copied"
    np.testing.assert_array_equal(y.get(), 3 * np.arange(50))


@pytest.mark.slow
@pytest.mark.ci
def test_host_loops_launch_and_results_are_right(log: Path) -> None:
    program = polyloom.compile(REPEATED, device="cuda")
    result = polyloom.run(program, {"n": 300, "t": 4}, check=True)
    assert result.passed
    assert result.execution.timing.launches >= 4


@pytest.mark.slow
@pytest.mark.ci
def test_times_are_those_of_the_events(log: Path) -> None:
    saxpy = polyloom.compile(SAXPY, device="cuda")
    x, y = np.zeros(10, np.float32), np.zeros(10, np.float32)
    timing = saxpy.run(10, 1.0, x, y, timed=True).timing
    assert timing.launches == 1 and 0 < timing.device < timing.total


def test_strict_programs_are_not_contracted(log: Path) -> None:
    program = polyloom.compile(SAXPY, device="cuda", fp="strict")
    x, y = np.zeros(10, np.float32), np.zeros(10, np.float32)
    program(10, 1.0, x, y)
    assert any("-arch=sm_80 -fmad=false" in line for line in calls(log))


def test_halves_are_rounded_once(log: Path) -> None:
    head = "lair f(N): float16 x[N], float16 y[N] -> float16 z[N]"
    layer = f"{head}\n{{\n all (i) in (N) z[i] = x[i] * y[i] + x[i]\n}}\n"
    program = polyloom.compile(layer, device="cuda", defines={"N": 300})
    assert polyloom.run(program, check=True).passed


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", ["gemm", "heat", "histogram", "running_sum", "lu", "shortest_paths"])
def test_examples(name: str, log: Path) -> None:
    path = EXAMPLES / "c" / f"{name}.c"
    (part, *_) = load_host_programs(path, Reading())
    known = [word for p in part.program.parameters for word in ("--param", f"{p.name}=24")]
    assert command(["run", str(path), "--device", "cuda", "--check", *known]) == 0


def legal(name: str, seed: int, model: object) -> Schedule | None:
    program, _ = ZOO[name]
    hom, rng = hom_of(program), Random(seed)
    if not has_tiles(hom):
        return None
    for _ in range(1000):
        schedule = random_schedule(hom, rng)
        if not problems(TileFacts(hom, schedule), buffers_of(program), model):
            return schedule
    return None


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", sorted(ZOO))
def test_md_homs_under_wild_schedules(name: str, log: Path) -> None:
    program, parameters = ZOO[name]
    device = open_fake()
    for seed in range(3):
        check(program, legal(name, seed, device.model), parameters, seed, device)


@pytest.mark.slow
@pytest.mark.ci
def test_schedules_are_tuned(log: Path, tmp_path: Path) -> None:
    gemm = polyloom.compile(EXAMPLES / "c" / "gemm.c", device="cuda", database=tmp_path / "db")
    (found,) = polyloom.tune(
        gemm, {"n": 8, "m": 8, "k": 8}, evaluations=2, budget=60, database=tmp_path / "db"
    )
    assert found.seconds > 0
    assert any("cuLaunchKernel" in line for line in calls(log))


def code_of(raised: pytest.ExceptionInfo[PolyloomError]) -> str:
    return raised.value.diagnostics[0].code


def test_without_a_driver_or_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_gpu(tmp_path, monkeypatch, POLYLOOM_CUDA="/nowhere/libcuda.so"):
        with pytest.raises(PolyloomError) as raised:
            choose("cuda")
        assert code_of(raised) == "cuda-driver" and "/nowhere" in raised.value.diagnostics[0].notes[0]
    with fake_gpu(tmp_path, monkeypatch, FAKE_CUDA_DEVICES="0"):
        with pytest.raises(PolyloomError) as raised:
            choose("cuda")
        assert code_of(raised) == "cuda-driver" and "NO_DEVICE" in raised.value.diagnostics[0].notes[0]


def test_gpus_are_chosen_by_number_or_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_gpu(tmp_path, monkeypatch, FAKE_CUDA_DEVICES="2"):
        assert choose("cuda").name == choose("cuda:0").name == "Fake GPU A"
        assert choose("cuda:1").name == choose("cuda:gpu b").name == opened(choose("cuda:1")).model.name
        assert choose("cuda:1").version == "sm_80" and choose("cuda").compute_units == 108
        with pytest.raises(PolyloomError) as raised:
            choose("cuda:GPU C")
        assert code_of(raised) == "cuda-missing" and len(raised.value.diagnostics[0].notes) == 2
        with pytest.raises(PolyloomError) as raised:
            choose("cuda", threads=2)
        assert code_of(raised) == "native-threads"


def test_of_two_gpus_of_one_name_each_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_gpu(tmp_path, monkeypatch, FAKE_CUDA_DEVICES="2", FAKE_CUDA_NAME="H100"):
        numbers = [opened(choose(f"cuda:{k}")).model.ordinal for k in (0, 1)]
        assert numbers == [0, 1] and choose("cuda:h100").ordinal == 0


def test_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_gpu(tmp_path, monkeypatch, POLYLOOM_NVRTC="/nowhere/libnvrtc.so"):
        saxpy = polyloom.compile(SAXPY, device="cuda")
        with pytest.raises(PolyloomError) as raised:
            saxpy(3, 1.0, np.zeros(3, np.float32), np.zeros(3, np.float32))
    assert code_of(raised) == "cuda-compiler"


def test_a_kernel_that_is_refused(log: Path) -> None:
    source = 'extern "C" __global__ void __launch_bounds__(1)\nk(float *x)\n{\n    x[0] = undeclared;\n}\n'
    kernel = Kernel(source=source, name="k", arguments=(), global_size=(Number(1),), local_size=(Number(1),))
    with pytest.raises(PolyloomError) as raised:
        open_fake().build([kernel])
    assert code_of(raised) == "device-build" and "undeclared" in raised.value.diagnostics[0].notes[0]


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("FAKE_CUDA_BYTES", "100", "device-resources"),
        ("FAKE_CUDA_FAULT", "cuLaunchKernel", "device-failure"),
        ("FAKE_CUDA_FAULT", "cuCtxSynchronize", "device-failure"),
    ],
)
def test_what_fails_is_one_diagnostic(
    variable: str, value: str, code: str, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saxpy = polyloom.compile(SAXPY, device="cuda")
    x, y = np.ones(100, np.float32), np.ones(100, np.float32)
    monkeypatch.setenv(variable, value)
    with pytest.raises(PolyloomError) as raised:
        saxpy(100, 1.0, x, y)
    assert code_of(raised) == code
    monkeypatch.delenv(variable)
    np.testing.assert_array_equal(saxpy(100, 1.0, x, np.ones(100, np.float32)), 2)


def test_an_old_driver_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library without the functions is no driver; the reason names the first."""
    with fake_gpu(tmp_path, monkeypatch, POLYLOOM_CUDA="libm.so.6"):
        assert "has no cuInit" in str(cuda_library.library())
