"""Registers of kernels as ptxas says, beside what the cost model of GPUs expects.

    python benchmarks/gpu_registers.py --each 4

The md_homs of ``benchmarks/opencl`` under schedules of the tuner's space at random are compiled by nvcc for
one architecture. Printed are the rank correlation between the expected and the actual number, the constant
that fits best (the median of what is left over), and of the kernels that spill how many the model expects to.
No GPU is needed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

sys.path.insert(0, str(Path(__file__).parent / "opencl"))
from ranks import rank_correlation
from workloads import WORKLOADS

from polyloom.mdh.cuda.architectures import architectures
from polyloom.mdh.device.costs import GpuCosts
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.kernels.nodes import tiled_kernels
from polyloom.mdh.lowering.tuning_targets import TuneTarget, tune_targets
from polyloom.mdh.schedule.choice import one_kernel_schedule
from polyloom.mdh.schedule.loop_sizes import LoopSizes, Reads
from polyloom.mdh.schedule.search_space import space_of
from polyloom.mdh.schedule.tiling import has_tiles
from polyloom.sources import Reading, load_host_programs


@dataclass(frozen=True)
class Used:
    """``totals``: values that an item keeps, as the model counts them; the rest as ptxas says."""

    name: str
    totals: int
    registers: int
    spilled: int


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--architecture", default="sm_80")
    parser.add_argument("--each", type=int, default=3, help="schedules of each md_hom")
    given = parser.parse_args()
    model = architectures()[given.architecture]
    jobs = [(target, seed) for target in targets() for seed in range(given.each)]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda job: of(*job, model), jobs))
    costs = model.costs.kernels
    assert isinstance(costs, GpuCosts)
    for used in sorted(found, key=lambda used: used.registers):
        print(f"{used.name:24} {used.totals:5} totals {used.registers:4} registers {used.spilled:5} spilled")
    left = [used.registers - used.totals for used in found if not used.spilled]
    expected = [min(costs.most_registers, costs.registers_of_step + used.totals) for used in found]
    rank = rank_correlation(expected, [used.registers for used in found])
    spilled = [k for k, used in enumerate(found) if used.spilled]
    said = sum(expected[k] >= costs.most_registers for k in spilled)
    print(f"{len(found)} kernels, {given.architecture}: rank correlation {rank:.2f}")
    print(
        f"registers besides totals: {median(left):.0f} in the median, the model has {costs.registers_of_step}"
    )
    print(f"{len(spilled)} spill, of which the model expects {said}")


def targets() -> list[TuneTarget]:
    """Return the md_homs of the workloads that have schedules."""
    found = []
    for workload in WORKLOADS:
        defines = {name: str(value) for name, value in workload.sizes.items()}
        for part in load_host_programs(workload.source, Reading(defines=defines)):
            found += [target for target in tune_targets(part.program) if has_tiles(target.node)]
    return found


def of(target: TuneTarget, seed: int, model: DeviceModel) -> Used:
    """Return what an md_hom under a schedule at random uses."""
    hom, program = target.launched, target.program()
    space = space_of(hom, program, model)
    schedule = space.sample(Random(seed))
    kernel = tiled_kernels(hom, program, model, schedule, one_kernel_schedule).kernels[0]
    sizes = LoopSizes(space.facts(schedule), Reads(hom, program.by_name))
    registers, spilled = by_ptxas(kernel.source, model.version)
    return Used(hom.name, sizes.totals * schedule.width, registers, spilled)


def by_ptxas(source: str, architecture: str) -> tuple[int, int]:
    """Return the registers of a kernel, and the bytes that it spills."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "k.cu").write_text(source)
        words = ["nvcc", "-cubin", f"-arch={architecture}", "-Xptxas", "-v", "k.cu", "-o", "k.cubin"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    said = done.stderr
    if done.returncode:
        sys.exit(f"{source}\n{said}")
    (registers,) = re.findall(r"Used (\d+) registers", said)
    (spilled,) = re.findall(r"(\d+) bytes spill stores", said)
    return int(registers), int(spilled)


if __name__ == "__main__":
    main()
