"""Registers of kernels as ptxas says, beside what the cost model of GPUs expects.

    python benchmarks/gpu_registers.py                   sm_80 and sm_90, some two hundred kernels: minutes
    python benchmarks/gpu_registers.py --each 1 --architecture sm_90

Products, convolutions, reductions, stencils and maps in float, half and double, of round sizes and of odd
ones, under schedules of the tuner's space, half of them at random and half improved by the cost model, are
compiled by nvcc. Printed are the rank correlation between what the model expects and what a thread has, of
all kernels and of those with a warp or more in a group, by how much it is wrong in the median, and of the
kernels that spill how many the model expects to. No GPU is needed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from random import Random
from statistics import median

sys.path.insert(0, str(Path(__file__).parent / "opencl"))
from ranks import rank_correlation

from polyloom.mdh.cuda.architectures import architectures
from polyloom.mdh.device.costs import GpuCosts
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.kernels.nodes import tiled_kernels
from polyloom.mdh.lowering.tuning_targets import TuneTarget, tune_targets
from polyloom.mdh.print.kernel_source import kernel_body, prelude_of
from polyloom.mdh.schedule.choice import one_kernel_schedule
from polyloom.mdh.schedule.cost.compute_cost import StepModel
from polyloom.mdh.schedule.cost.gpu_cost import GpuRegisters
from polyloom.mdh.schedule.cost.loop_sizes import LoopSizes
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.search_space import ScheduleSpace, space_of
from polyloom.mdh.schedule.tiling import has_tiles
from polyloom.sources import Reading, load_host_programs

ROUND = {"M": 1024, "N": 768, "K": 512, "H": 56, "W": 56, "C": 64, "F": 128, "L": 1 << 22, "S": 130}
ODD = {"M": 10, "N": 500, "K": 64, "H": 7, "W": 7, "C": 96, "F": 50, "L": 1000003, "S": 67}
TYPES = ("float", "_Float16", "double")
PROGRAMS = {
    "product": ("T a[M][K], T b[K][N], T c[M][N]", "MNK", "c[i][j]", "a[i][k] * b[k][j]"),
    "of transposed": ("T a[K][M], T b[N][K], T c[M][N]", "MNK", "c[i][j]", "a[k][i] * b[j][k]"),
    "channels last": (
        "T x[H + 2][W + 2][C], T f[F][3][3][C], T y[H][W][F]",
        "HWF33C",
        "y[i][j][k]",
        "x[i + l][j + m][n] * f[k][l][m][n]",
    ),
    "channels first": (
        "T x[C][H + 2][W + 2], T f[F][C][3][3], T y[F][H][W]",
        "FHWC33",
        "y[i][j][k]",
        "x[l][j + m][k + n] * f[i][l][m][n]",
    ),
    "dot": ("T x[L], T y[L], T s[1]", "1L", "s[i]", "x[j] * y[j]"),
    "matrix and vector": ("T a[M][K], T x[K], T y[M]", "MK", "y[i]", "a[i][j] * x[j]"),
    "squares of columns": ("T a[K][M], T y[M]", "MK", "y[i]", "a[j][i] * a[j][i]"),
    "gaussian": ("T x[H + 4][W + 4], T f[5][5], T y[H][W]", "HW55", "y[i][j]", "f[k][l] * x[i + k][j + l]"),
    "five points": (
        "T x[M + 2][N + 2], T y[M][N]",
        "MN",
        "y[i][j]",
        "(T)0.2f * (x[i + 1][j + 1] + x[i][j + 1] + x[i + 2][j + 1] + x[i + 1][j] + x[i + 1][j + 2])",
    ),
    "seven points": (
        "T x[S + 2][S + 2][S + 2], T y[S][S][S]",
        "SSS",
        "y[i][j][k]",
        "(T)0.4f * x[i + 1][j + 1][k + 1] + (T)0.1f * (x[i][j + 1][k + 1] + x[i + 2][j + 1][k + 1]"
        " + x[i + 1][j][k + 1] + x[i + 1][j + 2][k + 1] + x[i + 1][j + 1][k] + x[i + 1][j + 1][k + 2])",
    ),
    "saxpy": ("T x[L], T y[L], T z[L]", "L", "z[i]", "x[i] * (T)3.0f + y[i]"),
}
"""Arrays, extents of the loops over i, j, k, l, m, n, the result, the term; a result with fewer subscripts
than there are loops is a sum."""

SPILLS = 64
"""Bytes: fewer are a few values that ptxas gives up for more threads."""

AT_ONCE = 12
"""Kernels in a file."""


@dataclass(frozen=True)
class Kernel:
    """A kernel, and the registers that the model expects a thread to need."""

    name: str
    source: str
    items: int
    expected: float


@dataclass(frozen=True)
class Used:
    """What ptxas says: registers of a thread, bytes that are spilled."""

    registers: int
    spilled: int


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--architecture", action="append", choices=sorted(architectures()))
    parser.add_argument("--each", type=int, default=4, help="schedules of each md_hom")
    given = parser.parse_args()
    for name in given.architecture or ["sm_80", "sm_90"]:
        model = architectures()[name]
        kernels = [k for title, target in targets() for k in kernels_of(title, target, given.each, model)]
        batches = [kernels[at : at + AT_ONCE] for at in range(0, len(kernels), AT_ONCE)]
        with ThreadPoolExecutor(2) as pool:
            used = [u for found in pool.map(by_ptxas, batches, repeat(name)) for u in found]
        show(name, model, kernels, used)


def show(name: str, model: DeviceModel, kernels: Sequence[Kernel], used: Sequence[Used]) -> None:
    """Print what the model expects beside what ptxas says."""
    costs = model.costs.kernels
    assert isinstance(costs, GpuCosts)
    most = costs.most_registers
    needed = [most + 1 if u.spilled > SPILLS else u.registers for u in used]
    expected = [min(most + 1, k.expected) for k in kernels]
    for k in sorted(range(len(kernels)), key=needed.__getitem__):
        text = (
            f"{kernels[k].expected:5.0f} expected {used[k].registers:4} registers {used[k].spilled:6} spilled"
        )
        print(f"{kernels[k].name:34} {kernels[k].items:5} threads {text}")
    print(f"{name}: {len(kernels)} kernels")
    for text, least in (("all", 1), ("of a warp or more", model.lanes)):
        chosen = [k for k, kernel in enumerate(kernels) if kernel.items >= least]
        pairs = [(expected[k], needed[k]) for k in chosen]
        wrong = median(abs(a / b - 1.0) for a, b in pairs)
        rank = rank_correlation([a for a, _ in pairs], [b for _, b in pairs])
        print(f"  {text}: {len(chosen)}, rank correlation {rank:.2f}, wrong by {wrong:.0%} in the median")
    spilled = [k for k, u in enumerate(used) if u.spilled > SPILLS]
    said = [k for k, kernel in enumerate(kernels) if kernel.expected > most]
    both = len({*spilled} & {*said})
    print(f"  {len(spilled)} spill more than {SPILLS} bytes; of {len(said)} it is expected, right for {both}")


def text_of(name: str) -> str:
    """Return a program in C."""
    arrays, extents, result, term = PROGRAMS[name]
    loops = "".join(f"for (int {i} = 0; {i} < {n}; {i}++) " for i, n in zip("ijklmn", extents, strict=False))
    kept = result.count("[")
    if kept == len(extents):
        return f"void f({arrays}) {{ {loops}{result} = {term}; }}"
    cut = loops.index(f"for (int {'ijklmn'[kept]}")
    return f"void f({arrays}) {{ {loops[:cut]}{{ {result} = 0; {loops[cut:]}{result} += {term}; }} }}"


def targets() -> Iterator[tuple[str, TuneTarget]]:
    """Yield the md_homs: of programs with sums these, of others the maps."""
    with tempfile.TemporaryDirectory() as folder:
        for name in PROGRAMS:
            path = Path(folder) / "program.c"
            path.write_text(text_of(name))
            for kind in TYPES:
                for size, extents in (("round", ROUND), ("odd", ODD)):
                    defines = {"T": kind, **{n: str(value) for n, value in extents.items()}}
                    (part,) = load_host_programs(path, Reading(defines=defines))
                    found = [t for t in tune_targets(part.program) if has_tiles(t.node)]
                    yield f"{name}, {kind}, {size}", found[-1]


def kernels_of(title: str, target: TuneTarget, each: int, model: DeviceModel) -> Iterator[Kernel]:
    """Yield kernels of an md_hom: under random schedules, and under improved ones."""
    hom, program = target.launched, target.program()
    space = space_of(hom, program, model)
    for seed in range(each):
        schedule = chosen(space, seed)
        kernel = tiled_kernels(hom, program, model, schedule, one_kernel_schedule).kernels[0]
        sizes = LoopSizes(space.facts(schedule), space.reads)
        costs = model.costs
        assert isinstance(costs.kernels, GpuCosts)
        registers = GpuRegisters(StepModel(sizes, costs.instructions, model.vector_bytes), costs.kernels)
        yield Kernel(title, kernel.source, sizes.facts.total_items, registers.needed)


def chosen(space: ScheduleSpace, seed: int) -> Schedule:
    """Return a random schedule, or one that was improved a little."""
    rng = Random(seed)
    schedule = space.sample(rng)
    for _ in range(3 if seed % 2 else 0):
        schedule = min([schedule, *space.neighbours(schedule, rng)], key=space.predicted)
    return schedule


def by_ptxas(kernels: Sequence[Kernel], architecture: str) -> list[Used]:
    """Return what kernels use. They are compiled as one file, each in a namespace of its own."""
    sources = [kernel.source for kernel in kernels]
    spaces = "".join(f"namespace k{k} {{\n{kernel_body(s)}}}\n" for k, s in enumerate(sources))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "k.cu").write_text(prelude_of(sources) + spaces)
        words = ["nvcc", "-cubin", f"-arch={architecture}", "-Xptxas", "-v", "k.cu", "-o", "k.cubin"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[int, Used] = {}
    for said in done.stderr.split("Compiling entry function")[1:]:
        registers, spilled = re.search(r"Used (\d+)", said), re.search(r"(\d+) bytes spill stores", said)
        space = re.search(r"_ZN(\d+)k", said)  # as in _ZN3k123gemmEPKf: the length of a name, then the name
        assert space and registers and spilled
        number = int(said[space.end() :][: int(space[1]) - 1])
        found[number] = Used(int(registers[1]), int(spilled[1]))
    return [found[k] for k in range(len(kernels))]


if __name__ == "__main__":
    main()
