"""Networks beside onnxruntime: rounds take turns, the median of the rounds' best runs counts.

    python benchmarks/model_speed.py                        all of benchmarks/networks.py, 1 and 2 threads
    python benchmarks/model_speed.py resnet50 --threads 2   some of them
    python benchmarks/model_speed.py a.onnx -D image=1x3x224x224 --device cpu

Weights and inputs lie on the device before; results come back. onnxruntime, of requirements/models.txt, has
all its optimisations and as many threads. `made`: seconds until the first call was done; `again`: of the same
in another process, Python's start in it, which finds the function that a process before it kept.
"""

from __future__ import annotations

import argparse
import gc
import math
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from networks import NETWORKS, written

from polyloom.device_pipeline import open_model
from polyloom.frontends.graph.imported import Imported
from polyloom.mdh.native.device import choose
from polyloom.sources import load_model

FOLDER = Path.home() / ".cache" / "polyloom" / "networks"

PAUSE = 0.01
"""Seconds between the runs of one and those of the other: threads stop looking for work."""

ROUND = 0.08
"""Seconds of the runs of a round."""


def resnet() -> Path:
    import onnx

    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"


def made_up(model: Imported) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    tensors = (model.program.buffer(name) for name in model.arguments)
    return {t.name: generator.standard_normal(t.extents).astype(t.type.dtype) for t in tensors}


Run = Callable[[], Mapping[str, Any]]


def ours(model: Imported, inputs: Mapping[str, Any], device: str | None, threads: int | None) -> Run:
    program = open_model(model, choose(device, threads=threads))
    arrays = {name: program.to_device(inputs[name]) for name in model.arguments}

    def run() -> dict[str, Any]:
        found = program.results(**arrays)
        return model.outputs({n: a if isinstance(a, np.ndarray) else a.get() for n, a in found.items()})

    return run


def theirs(path: Path, model: Imported, inputs: Mapping[str, Any], threads: int) -> Run | None:
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    given = {model.names.get(name, name): array for name, array in inputs.items()}
    names = [output.name for output in session.get_outputs()]
    return lambda: dict(zip(names, session.run(None, given), strict=True))


OTHER = """
import time
begin = time.perf_counter()
import sys
import numpy
import polyloom
path, device, threads, *sizes = sys.argv[1:]
sizes = dict(s.split("=") for s in sizes)
f = polyloom.load(path, defines=sizes, device=device, threads=int(threads) or None)
f(*(numpy.ones(a.shape, a.type) for a in f.inputs.values()))
print(time.perf_counter() - begin)
"""
"""What another process does: it loads a model and calls it once."""


def in_another_process(path: Path, options: argparse.Namespace, threads: int | None) -> float:
    """Return the seconds until a process has called a model once, after one that may have kept it."""
    words = [sys.executable, "-c", OTHER, str(path), options.device, str(threads or 0), *options.sizes]
    done = [subprocess.run(words, capture_output=True, text=True, check=True) for _ in range(2)]
    return float(done[-1].stdout)


def seconds(run: Run) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def best_of_a_round(run: Run) -> float:
    """Return the least time of some runs, the first one not counted."""
    time.sleep(PAUSE)
    found, total = [seconds(run)], 0.0
    while total < ROUND or len(found) < 3:
        found.append(seconds(run))
        total += found[-1]
    return min(found[1:])


@dataclass(frozen=True)
class Measured:
    """Seconds of a run, and until the first one was done."""

    mine: float
    other: float
    made: float
    again: float
    difference: float


def measured(path: Path, options: argparse.Namespace, threads: int) -> Measured:
    begin = time.perf_counter()
    model = load_model(path, dict(s.split("=") for s in options.sizes))
    inputs = made_up(model)
    run = ours(model, inputs, options.device, threads if options.device.startswith("native") else None)
    run()
    made = time.perf_counter() - begin
    again = in_another_process(path, options, threads if options.device.startswith("native") else None)
    other = theirs(path, model, inputs, threads)
    rounds = [
        (best_of_a_round(run), best_of_a_round(other) if other else math.nan) for _ in range(options.rounds)
    ]
    mine, ort = (median(times) for times in zip(*rounds, strict=True))
    return Measured(mine, ort, made, again, difference(run(), other()) if other else math.nan)


def difference(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """Return the largest difference, relative to the largest value."""
    return max(float(np.abs(found[n] - wanted[n]).max() / np.abs(wanted[n]).max()) for n in wanted)


def main() -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("models", nargs="*", help="ONNX files, or networks of benchmarks/networks.py")
    parser.add_argument("-D", dest="sizes", action="append", default=[])
    parser.add_argument("--device", default="native")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    ratios: dict[int, list[float]] = {threads: [] for threads in options.threads}
    print("network            threads  ours, ms  onnxruntime  ratio   made   again  difference")
    for name in options.models or NETWORKS:
        path = written(name, FOLDER) if name in NETWORKS else Path(name)
        for threads in options.threads:
            m = measured(path, options, threads)
            ratios[threads].append(m.mine / m.other)
            times = f"{1e3 * m.mine:9.2f} {1e3 * m.other:12.2f} {m.mine / m.other:6.2f}"
            made = f"{m.made:6.1f} s {m.again:5.1f} s {m.difference:8.1g}"
            print(f"{path.stem:18} {threads:7} {times} {made}", flush=True)
            gc.collect()
    for threads, found in ratios.items():
        mean = math.exp(sum(map(math.log, found)) / len(found))
        print(f"{threads} threads: {mean:.2f} in the geometric mean, {max(found):.2f} at most")


if __name__ == "__main__":
    main()
