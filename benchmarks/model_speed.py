"""A network on an OpenCL device beside onnxruntime: runs take turns, the best of each counts.

    .venv/bin/python benchmarks/model_speed.py                       ResNet-50 of onnx 1.22.0 (light/)
    .venv/bin/python benchmarks/model_speed.py a.onnx -D image=1x3x224x224

Weights and inputs lie on the device before; results come back. onnxruntime is in requirements/models.txt; it
gets as many threads as there are cores. The first line is what making the kernels took.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from polyloom.frontends.graph.imported import Imported
from polyloom.mdh.device.devices import choose_device
from polyloom.pipeline import open_model
from polyloom.sources import load_model


def resnet() -> Path:
    import onnx

    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"


def made_up(model: Imported) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    tensors = (model.program.tensor(name) for name in model.arguments)
    return {t.name: generator.standard_normal(t.extents).astype(t.type.dtype) for t in tensors}


def ours(model: Imported, inputs: dict[str, Any], device: str | None) -> Callable[[], dict[str, Any]]:
    program = open_model(model, choose_device(device))
    arrays = {name: program.to_device(a) for name, a in model.inputs(inputs).items()}

    def run() -> dict[str, Any]:
        found = program.run(**arrays).arrays
        return model.outputs({n: a if isinstance(a, np.ndarray) else a.get() for n, a in found.items()})

    return run


def theirs(path: Path, model: Imported, inputs: dict[str, Any]) -> Callable[[], dict[str, Any]] | None:
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    given = {model.names.get(name, name): array for name, array in inputs.items()}
    names = [output.name for output in session.get_outputs()]
    return lambda: dict(zip(names, session.run(None, given), strict=True))


def seconds(run: Callable[[], Any]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def main() -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("-D", dest="sizes", action="append", default=[])
    parser.add_argument("--device")
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    path = options.model or resnet()
    model = load_model(path, dict(s.split("=") for s in options.sizes))
    inputs = made_up(model)
    run, other = ours(model, inputs, options.device), theirs(path, model, inputs)
    print(f"kernels made, first run: {seconds(run):.1f} s", flush=True)
    rounds = [(seconds(run), seconds(other) if other else float("nan")) for _ in range(options.runs)]
    mine, ort = (min(times) for times in zip(*rounds, strict=True))
    print(f"polyloom {1e3 * mine:.1f} ms, onnxruntime {1e3 * ort:.1f} ms: {mine / ort:.2f} times as long")
    if other is not None:
        found, wanted = run(), other()
        error = max(float(np.abs(found[n] - wanted[n]).max()) for n in wanted)
        print(
            f"largest difference {error:.2g}, of {max(float(np.abs(a).max()) for a in wanted.values()):.2g}"
        )


if __name__ == "__main__":
    main()
