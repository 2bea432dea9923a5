"""A GPU of NVIDIA: Polyloom through CUDA beside cuBLAS, cuDNN, CuPy and Triton, in at most ten minutes.

    python benchmarks/gpu.py                       all workloads, libraries that are installed; what was found
    python benchmarks/gpu.py --json results.json   the same, with every time
    python benchmarks/gpu.py --only matmul_pp --seconds 60

The workloads are those of ``benchmarks/opencl``: the four of md_poly's Figure 2, and the others. Contenders
live in child processes of their own and are visited in turns; results are compared with NumPy's in double
precision. Times are the device's: from the start of the first kernel to the end of the last (Polyloom),
between events around a call (the others, arrays on the device); the least of a round, the median of the
rounds. ``--seconds`` is for everything: each workload has its share, of which tuning takes a part; what no
time is left for is named. Where there is no GPU that is said, with status 1.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "opencl"))
from run import prepared
from workloads import WORKLOADS, Workload

from polyloom.device_pipeline import tune_opencl
from polyloom.diagnostics import PolyloomError, render
from polyloom.mdh.cuda.device import choose_gpu
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.tuning.database import Database
from polyloom.mdh.tuning.tune import TuneOptions
from polyloom.sources import Reading, load_host_programs
from polyloom.workers.child import Died, Job, Overdue, Worker

OURS, PLAIN = "Polyloom, tuned", "Polyloom, untuned"
TUNING = 0.5
"""Of a workload's time."""

AIM = 0.9
"""Of the fastest other library's speed."""

Times = dict[str, list[dict[str, float]]]
"""Of each contender, for each round: the least time of each kind."""


def jobs(tuned: Path, empty: Path) -> dict[str, Job]:
    return {
        OURS: Job("ours:Ours", ("cuda", tuned)),
        PLAIN: Job("ours:Ours", ("cuda", empty)),
        "PyTorch (cuBLAS, cuDNN)": Job("peer_gpu:Torch", None),
        "CuPy (cuBLAS)": Job("peer_gpu:CuPy", None),
        "Triton": Job("peer_gpu:Triton", None),
    }


def main() -> int:
    given = arguments()
    try:
        model = choose_gpu()
    except PolyloomError as fault:
        print(render(fault.diagnostics[0]), file=sys.stderr)
        return 1
    print(f"{model.id}, {model.version}, {model.compute_units} multiprocessors")
    end = time.perf_counter() + given.seconds
    chosen = [w for w in WORKLOADS if not given.only or w.name in given.only]
    found: dict[str, Any] = {"device": model.json(), "workloads": {}}
    with tempfile.TemporaryDirectory() as folder:
        tuned, empty = Path(folder) / "tuned.sqlite", Path(folder) / "empty.sqlite"
        for path in (tuned, empty):
            Database(path).close()
        limits = {"start": 120.0, "prepare": 60.0, "visit": 60.0, "": 60.0}
        workers = {name: Worker(job, limits) for name, job in jobs(tuned, empty).items()}
        for k, workload in enumerate(chosen):
            share = (end - time.perf_counter()) / (len(chosen) - k)
            if share < given.seconds / len(chosen) / 4:
                print(f"{workload.title}: no time is left")
                continue
            tune_one(workload, model, tuned, TUNING * share)
            found["workloads"][workload.name] = measured(workload, workers, (1 - TUNING) * share)
        for worker in workers.values():
            worker.close()
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=[w.name for w in WORKLOADS], help="a workload")
    parser.add_argument("--seconds", type=float, default=540.0, help="for everything")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def tune_one(workload: Workload, model: DeviceModel, database: Path, seconds: float) -> None:
    defines = {name: str(value) for name, value in workload.sizes.items()}
    programs = [part.program for part in load_host_programs(workload.source, Reading(defines=defines))]
    with Database(database) as results:
        tune_opencl(programs, {}, model, results, TuneOptions(budget=max(seconds, 1.0)))


def measured(workload: Workload, workers: dict[str, Worker], seconds: float) -> dict[str, Any]:
    """Visit all in turns until the time is up, at least twice; print and return what came out."""
    begin = time.perf_counter()
    absent = {name: reason for name, w in workers.items() if (reason := prepared(name, w, workload.name))}
    times: Times = {name: [] for name in workers if name not in absent}
    rng = random.Random(0)
    while times and (len(next(iter(times.values()))) < 2 or time.perf_counter() - begin < seconds):
        for name in rng.sample(list(times), len(times)):
            try:
                visit = workers[name].call("visit", 0.2)
                times[name].append({kind: min(each) for kind, each in visit.items()})
            except (Died, Overdue) as fault:
                absent[name] = str(fault)
        times = {name: rounds for name, rounds in times.items() if name not in absent}
    show(workload, times, absent)
    return {"times": times, "absent": absent}


def show(workload: Workload, times: Times, absent: dict[str, str]) -> None:
    print(f"\n{workload.title}{' (md_poly)' if workload.paper else ''}")
    device = {name: median(each["device"] for each in rounds) for name, rounds in times.items()}
    for name, seconds in sorted(device.items(), key=lambda pair: pair[1]):
        calls = median(each["call"] for each in times[name])
        rates = f"{workload.flops / seconds * 1e-9:9.0f} GFLOP/s {workload.bytes / seconds * 1e-9:7.0f} GB/s"
        print(f"  {name:26} {seconds * 1e6:10.1f} us {rates}   a call {calls * 1e6:10.1f} us")
    for name, reason in absent.items():
        print(f"  {name:26} {reason}")
    others = [seconds for name, seconds in device.items() if name not in (OURS, PLAIN)]
    if others and OURS in device:
        ratio = min(others) / device[OURS]
        print(f"  {ratio:.2f} of the best other library's speed{'' if ratio >= AIM else f', below {AIM}'}")


if __name__ == "__main__":
    sys.exit(main())
