"""Thirteen kernels: Polyloom beside the libraries that pip can install.

    python benchmarks/opencl/run.py                     as C on the processor, all workloads and libraries
    python benchmarks/opencl/run.py --device cpu        as OpenCL
    python benchmarks/opencl/run.py --tune 600          tune first, so many seconds for each workload
    python benchmarks/opencl/run.py --only matmul_pp --rounds 12 --json results.json

Loopy is OpenCL in any case. Every contender lives in a child process of its own. For each workload all of
them are visited once per round, in random order, as machines change their speed by the minute: a round's
result is the least time of a visit, and what is printed is the median of the rounds, and of the ratios within
a round, with quartiles.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from summary import Measured, print_workload, summary_json
from workloads import WORKLOADS, Workload

from polyloom.device_pipeline import tune_opencl
from polyloom.mdh.native.device import NATIVE, choose
from polyloom.mdh.tuning.database import Database, default_path
from polyloom.mdh.tuning.tune import TuneOptions
from polyloom.report.tuning_view import print_tuning, tuning_progress
from polyloom.sources import Reading, load_host_programs
from polyloom.workers.child import Died, Job, Overdue, Worker

LIMITS = {"start": 300.0, "prepare": 900.0, "visit": 300.0, "": 300.0}
PEAK, TUNED, MODEL = "peak", "Polyloom, tuned", "Polyloom, untuned"


def jobs(device: str, database: Path, empty: Path) -> dict[str, Job]:
    native = choose(device).platform == NATIVE
    opencl = None if native else device
    return {
        PEAK: Job("peak_native:Peak" if native else "peak:Peak", opencl),
        TUNED: Job("ours:Ours", (device, database)),
        MODEL: Job("ours:Ours", (device, empty)),
        "NumPy, OpenBLAS": Job("peer_numpy:Peer", None),
        "MKL": Job("peer_mkl:Peer", None),
        "PyTorch, plain": Job("peer_torch:Peer", "nchw"),
        "PyTorch, channels last": Job("peer_torch:Peer", "nhwc"),
        "PyTorch, blocked": Job("peer_torch:Peer", "blocked"),
        "Numba": Job("peer_numba:Peer", None),
        "loopy": Job("peer_loopy:Peer", opencl),
    }


def main() -> None:
    given = arguments()
    database = default_path() if given.database is None else given.database
    chosen = [w for w in WORKLOADS if not given.only or w.name in given.only]
    print(f"device: {choose(given.device).id}")
    if given.tune:
        tune_all(chosen, given.device, database, given.tune)
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.sqlite"
        Database(empty).close()
        Database(database).close()
        wanted = jobs(given.device, database, empty)
        workers = {
            name: Worker(job, LIMITS)
            for name, job in wanted.items()
            if not given.contenders or name == PEAK or any(part in name for part in given.contenders)
        }
        measured = [measure(w, workers, given) for w in chosen]
        for worker in workers.values():
            worker.close()
    if given.json:
        given.json.write_text(json.dumps([summary_json(m) for m in measured], indent=1) + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=[w.name for w in WORKLOADS], help="a workload")
    parser.add_argument("--contenders", action="append", help="a part of a contender's name")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--visit", type=float, default=0.3, help="seconds of a visit")
    parser.add_argument("--tune", type=float, default=0.0, help="seconds of tuning for each workload")
    parser.add_argument("--device", default=NATIVE, help="as for polyloom; native if not given")
    parser.add_argument("--database", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def tune_all(chosen: list[Workload], device: str, database: Path, seconds: float) -> None:
    model = choose(device)
    for workload in chosen:
        defines = {name: str(value) for name, value in workload.sizes.items()}
        loaded = load_host_programs(workload.source, Reading(defines=defines))
        with Database(database) as results, tuning_progress() as observer:
            programs = [part.program for part in loaded]
            found = tune_opencl(programs, {}, model, results, TuneOptions(budget=seconds), observer)
        print(f"\n{workload.title}, {seconds:.0f} s of tuning")
        print_tuning(found, model.id)


def measure(workload: Workload, workers: dict[str, Worker], given: argparse.Namespace) -> Measured:
    """Prepare every contender, visit them in rounds, print what came out."""
    absent = {name: reason for name, w in workers.items() if (reason := prepared(name, w, workload.name))}
    if PEAK in absent:
        raise SystemExit(f"the machine's rates could not be measured: {absent[PEAK]}")
    present = [name for name in workers if name not in absent]
    rng = random.Random(given.seed)
    rounds: list[dict[str, dict[str, list[float]]]] = []
    for _ in range(given.rounds):
        results = {}
        for name in rng.sample(present, len(present)):
            time.sleep(0.05)  # threads of the last one that spin come to rest
            results[name] = workers[name].call("visit", given.visit)
        rounds.append(results)
    measured = Measured(workload, tuple(rounds), absent)
    print_workload(measured)
    return measured


def prepared(name: str, worker: Worker, workload: str) -> str:
    """Return why a contender does not take part, else nothing."""
    try:
        reason: Any = worker.call("prepare", workload)
        return str(reason or "")
    except (Died, Overdue) as fault:
        return str(fault)
    except Exception as fault:
        text = str(fault).splitlines()[0]
        missing = "ModuleNotFoundError" in text or "ImportError" in text or "Missing" in text
        return f"not installed ({text})" if missing else text


if __name__ == "__main__":
    main()
