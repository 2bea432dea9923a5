"""Drop-ins on CUDA: run as gcc reads them, built by nvcc where it is installed, without a GPU their loops.

``on_host`` says what a run of kernels on this machine shows, and what it does not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from polyloom import drop_in
from polyloom.cli.main import run as polyloom
from polyloom.diagnostics import PolyloomError

EXAMPLES = Path(__file__).parents[3] / "examples" / "c"
CORPUS = Path(__file__).parents[1] / "drop_ins"
ON_HOST = Path(__file__).parent / "on_host"
PROGRAMS = [path for path in (*EXAMPLES.glob("*.c"), *CORPUS.glob("*.c")) if "int main(" in path.read_text()]
QUICK = ("gemm.c",)
GCC, GPP, NVCC = shutil.which("gcc") or "cc", shutil.which("g++"), shutil.which("nvcc")
ARCHITECTURES = ("sm_80", "sm_90")

on_host = pytest.mark.skipif(GPP is None, reason="g++ is not installed")
with_nvcc = pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")


def path_of(name: str) -> Path:
    return next(path for path in PROGRAMS if path.name == name)


def done(command: Sequence[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def well_done(command: Sequence[str], folder: Path, **variables: str) -> str:
    found = done(command, folder, **variables)
    assert (found.returncode, found.stderr) == (0, ""), found.stderr
    return found.stdout


def expected(source: Path, folder: Path) -> str:
    folder.mkdir()
    well_done([GCC, "-O1", str(source), "-o", "program", "-lm"], folder)
    return well_done([str(folder / "program")], folder)


def made(source: Path, folder: Path) -> Path:
    drop_in(source, target="cuda").write(folder)
    well_done([GCC, "-O1", "-c", source.name, "-o", "program.o"], folder)
    return folder


def built(folder: Path) -> str:
    """Build it for this machine."""
    words = [
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-unknown-pragmas",
        "-Wno-unused-function",
        "-I",
        str(ON_HOST),
        "program.o",
    ]
    well_done([GPP or "", *words, "-x", "c++", "polyloom_cuda.cu", "-o", "program", "-lm"], folder)
    return str(folder / "program")


def assert_equal(source: Path, folder: Path) -> None:
    wanted = expected(source, folder / "loops")
    out = made(source, folder / "out")
    assert well_done([built(out)], out) == wanted
    file = out / "polyloom_cuda.h"
    file.write_text(file.read_text().replace("  if (items > 0)\n", "  if (items < 0)\n"))
    assert done([built(out)], out).stdout != wanted, "it is the original loops that run"


@pytest.mark.slow
@pytest.mark.ci
@on_host
@pytest.mark.parametrize("name", QUICK)
def test_what_kernels_compute(name: str, tmp_path: Path) -> None:
    assert_equal(path_of(name), tmp_path)


OTHERS = sorted({path.name for path in PROGRAMS} - set(QUICK))
SOME = set(OTHERS[::3])
"""CI builds so many: a compiler's run takes seconds for each, and all go through the same writer."""


@on_host
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.ci] if name in SOME else []) for name in OTHERS]
)
def test_what_all_kernels_compute(name: str, tmp_path: Path) -> None:
    assert_equal(path_of(name), tmp_path)


@pytest.mark.slow
@pytest.mark.ci
@on_host
def test_faults_before_the_results_come_back_let_the_loops_run(tmp_path: Path) -> None:
    source = path_of("gemm.c")
    wanted = expected(source, tmp_path / "loops")
    out = made(source, tmp_path / "out")
    program = built(out)
    for name in ("cudaGetDeviceCount", "cudaFuncGetAttributes", "cudaDeviceSynchronize"):
        found = done([program], out, FAKE_CUDA_FAULT=name)
        assert (found.returncode, found.stdout) == (0, wanted) and found.stderr.count("\n") == 1, found.stderr
    found = done([program], out, FAKE_CUDA_BYTES="100")
    assert (found.returncode, found.stdout) == (0, wanted) and "out of memory" in found.stderr
    found = done([program], out, POLYLOOM_DEVICE="Other")
    assert (found.returncode, found.stdout) == (0, wanted) and "no device: Other" in found.stderr
    found = done([program], out, FAKE_CUDA_FAULT="cudaMemcpy")  # the arrays have changed, or may have
    assert (found.returncode, found.stdout) == (1, "") and found.stderr.startswith("polyloom: ")


@with_nvcc
@pytest.mark.slow
def test_without_a_gpu_the_loops_run(tmp_path: Path) -> None:
    """As ``build.txt`` says, by nvcc; what the device computes needs a GPU."""
    source = path_of("gemm.c")
    wanted = expected(source, tmp_path / "loops")
    assert polyloom(["compile", str(source), "--target", "cuda", "-o", str(tmp_path / "out")]) == 0
    folder = tmp_path / "out"
    assert done(["sh", "build.txt"], folder).returncode == 0
    found = done([str(folder / "a.out")], folder, CUDA_VISIBLE_DEVICES="")
    assert (found.returncode, found.stdout) == (0, wanted)
    assert re.fullmatch(r"polyloom: no device: .*\n", found.stderr)


def spills(folder: Path, architecture: str) -> dict[str, tuple[int, int]]:
    """Compile for an architecture; return each kernel's registers and bytes spilled, as ptxas says."""
    words = ["-O2", f"-arch={architecture}", "-Xptxas", "-v", "-c", "polyloom_cuda.cu", "-o", "kernels.o"]
    found = done([NVCC or "", *words], folder)
    assert found.returncode == 0, found.stderr
    form = r"Function properties for (\w+)\n.*?(\d+) bytes spill stores.*?\n.*?Used (\d+) registers"
    return {name: (int(used), int(spilled)) for name, spilled, used in re.findall(form, found.stderr)}


@with_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernels_of_a_product_stay_in_registers(architecture: str, tmp_path: Path) -> None:
    source, folder = path_of("gemm.c"), tmp_path / "out"
    drop_in(source, {"n": 1024, "m": 1024, "k": 1024}, target="cuda", device=architecture).write(folder)
    found = spills(folder, architecture)
    assert len(found) >= 2, "those for all sizes, and those for the given ones"
    assert all(used <= 255 and spilled == 0 for used, spilled in found.values()), found


@with_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in PROGRAMS))
def test_nvcc_takes_all_kernels(name: str, tmp_path: Path) -> None:
    drop_in(path_of(name), target="cuda").write(tmp_path)
    has_kernels = "__global__" in (tmp_path / "polyloom_cuda.cu").read_text()
    for architecture in ARCHITECTURES:
        assert bool(spills(tmp_path, architecture)) == has_kernels


@pytest.mark.slow
@pytest.mark.ci
def test_strict_programs_refuse_to_be_contracted(tmp_path: Path) -> None:
    found = drop_in(path_of("gemm.c"), target="cuda", fp="strict")
    assert "-fmad=false -DPOLYLOOM_UNCONTRACTED" in found.document["build"]
    assert "#ifndef POLYLOOM_UNCONTRACTED" in found.files["polyloom_cuda.cu"]


def test_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(PolyloomError) as raised:
        drop_in(path_of("gemm.c"), target="cuda", device="cuda:sm_12")
    assert raised.value.diagnostics[0].code == "cuda-architecture"
