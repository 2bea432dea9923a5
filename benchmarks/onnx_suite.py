"""ONNX's own backend tests (of the package onnx 1.22.0) through Polyloom, in this process.

    .venv/bin/python benchmarks/onnx_suite.py                      every case with the evaluator
    .venv/bin/python benchmarks/onnx_suite.py --device cpu         with an OpenCL device
    .venv/bin/python benchmarks/onnx_suite.py --table docs/onnx_support.md

An operand that says what shape a result has (Reshape's shape, axes, pads, ...) is known at import, as a
compiler for static shapes needs; the suite gives it as an input. Tolerances are the suite's. Exit status 1
where an answer is wrong, or an error is no refusal.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from polyloom.diagnostics import PolyloomError, Unsupported
from polyloom.frontends.graph.imported import Imported
from polyloom.frontends.graph.lowering import lower
from polyloom.frontends.graph.model import Graph
from polyloom.frontends.onnx.read import read_graph
from polyloom.frontends.onnx.table import find_operation
from polyloom.ir import evaluate
from polyloom.onnx_backend import shape_operands, with_constants

FOLDERS = ("node", "pytorch-converted", "pytorch-operator", "simple")
KNOWN = {
    "test_dft_inverse_opset19": "the suite expects its reference's rounding noise, 1.9e-7, in place of 0",
}
"""Cases whose expected values are further from the right ones than their tolerance, and ours are not."""


@dataclass(frozen=True)
class Case:
    """A folder of the suite: a model, and one or more sets of inputs and outputs."""

    kind: str
    path: Path

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True)
class Outcome:
    """``status``: pass, unsupported, skipped, differs (see ``KNOWN``), wrong or crash."""

    case: str
    kind: str
    ops: tuple[str, ...]
    status: str
    reason: str = ""
    seconds: float = 0.0


class Wrong(Exception):
    """An output is not what the suite expects."""


def data_folder() -> Path:
    return Path(onnx.__file__).parent / "backend" / "test" / "data"


def cases(kinds: Sequence[str] = FOLDERS) -> Iterator[Case]:
    for kind in kinds:
        yield from cases_in(data_folder() / kind, kind)


def cases_in(folder: Path, kind: str) -> Iterator[Case]:
    for model in sorted(folder.glob("*/model.onnx")):
        yield Case(kind, model.parent)


def run_case(case: Case, device: str | None = None) -> Outcome:
    started = time.perf_counter()
    graph: Graph | None = None
    try:
        graph = read_graph(case.path / "model.onnx")
        status, reason = _run(case, device)
    except Unsupported as refused:
        status, reason = "unsupported", _reason(refused)
    except PolyloomError as fault:
        status, reason = "crash", str(fault)
    except Wrong as fault:
        status = "differs" if case.name in KNOWN else "wrong"
        reason = KNOWN.get(case.name, str(fault))
    except Exception:
        status, reason = "crash", traceback.format_exc(limit=-3)
    ops = () if graph is None else tuple(sorted({node.op for node in graph.nodes}))
    return Outcome(case.name, case.kind, ops, status, reason, round(time.perf_counter() - started, 3))


def _reason(refused: Unsupported) -> str:
    return "; ".join(note for d in refused.diagnostics for note in (d.notes or (d.message,)))


def _run(case: Case, device: str | None) -> tuple[str, str]:
    sets = sorted(case.path.glob("test_data_set_*"))
    for folder in sets:
        model = onnx.load(str(case.path / "model.onnx"))
        given = _tensors(folder, "input", _inputs_of(model))
        wanted = _tensors(folder, "output", list(model.graph.output))
        if given is None or wanted is None:
            return "skipped", "sequences, maps or optionals"
        folded = _with_known_shapes(model, given)
        imported = lower(folded, find_operation)
        left = {name: array for name, array in given.items() if name not in folded.constants}
        found = _execute(imported, left, device)
        for name, array in wanted.items():
            _judge(name, found.get(name), array, *_tolerances(case))
    return "pass", ""


def _inputs_of(model: Any) -> list[Any]:
    held = {t.name for t in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in held]


def _tensors(folder: Path, side: str, declared: list[Any]) -> dict[str, Any] | None:
    found = {}
    for number, value in enumerate(declared):
        path = folder / f"{side}_{number}.pb"
        if not path.exists():
            continue
        if not value.type.HasField("tensor_type"):
            return None
        tensor = onnx.TensorProto.FromString(path.read_bytes())
        found[value.name] = numpy_helper.to_array(tensor)
    return found


def _with_known_shapes(model: Any, given: dict[str, Any]) -> Graph:
    """Return the graph of a model in which operands that say shapes are constants, as in our backend."""
    known = {name: given[name] for name in shape_operands(model.graph) if name in given}
    return read_graph(with_constants(model, known).SerializeToString())


def _execute(imported: Imported, given: dict[str, Any], device: str | None) -> dict[str, Any]:
    arrays = imported.inputs(given)
    if device is None:
        return imported.outputs(evaluate(imported.program, arrays))
    from polyloom.device_pipeline import open_model
    from polyloom.mdh.device.devices import choose_device
    from polyloom.mdh.running import run_program

    program = open_model(imported, choose_device(device))
    return imported.outputs(run_program(program, arrays, check=False).outputs)


def _tolerances(case: Case) -> tuple[float, float]:
    path = case.path / "data.json"
    stated = json.loads(path.read_text()) if path.exists() else {}
    return stated.get("rtol", 1e-3), stated.get("atol", 1e-7)


def _judge(name: str, found: Any, wanted: Any, rtol: float, atol: float) -> None:
    if found is None:
        raise Wrong(f"no output `{name}`")
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        raise Wrong(f"`{name}` is {found.dtype}{found.shape}, not {wanted.dtype}{wanted.shape}")
    try:
        if wanted.dtype == np.bool_:
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)
    except AssertionError as fault:
        raise Wrong(f"`{name}`: {' '.join(str(fault).split())[:300]}") from None


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the support table: one line for each operation, from cases of ``node`` that have it alone."""
    counts = Counter(o.status for o in outcomes)
    lines = [
        "# Which operations of ONNX Polyloom imports",
        "",
        "Written by `benchmarks/onnx_suite.py --table docs/onnx_support.md`: the backend tests that the",
        "package onnx 1.22.0 ships, each imported and evaluated, with the suite's tolerances. A case counts",
        "for every operation that it holds. What is not imported is refused with the node's name and why.",
        "",
        f"{len(outcomes)} cases: {counts['pass']} pass, {counts['wrong']} wrong, {counts['crash']} other "
        f"errors, {counts['unsupported']} refused by name, {counts['skipped']} of sequences, maps or "
        "optionals.",
        "`benchmarks/onnx_runner.py` runs the same cases by onnx's own runner, as C on the processor, and as",
        "many pass; what is refused here, and what is of sequences, maps or optionals, it calls skipped.",
        "",
        "| operation | pass | refused | reason of the first refusal |",
        "|---|---|---|---|",
    ]
    for op in sorted({op for o in outcomes for op in o.ops}):
        mine = [o for o in outcomes if op in o.ops]
        refused = [o for o in mine if o.status in ("unsupported", "skipped")]
        own = [o.reason for o in refused if f"({op})" in o.reason or len(o.ops) == 1]
        reason = " ".join((own[0] if own else "another operation of these cases" if refused else "").split())
        passed = sum(o.status == "pass" for o in mine)
        lines.append(f"| {op} | {passed} | {len(refused)} | {_short(reason)} |")
    return "\n".join([*lines, ""])


def _short(reason: str) -> str:
    text = reason.split(": ", 1)[-1].replace("|", "/")
    return text if len(text) < 110 else text[:107] + "..."


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device")
    parser.add_argument("--kind", action="append", choices=FOLDERS)
    parser.add_argument("--data", type=Path, help="a folder of cases in place of the package's")
    parser.add_argument("-k", default="", help="only cases whose name holds this")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--min-cases", type=int, default=1)
    options = parser.parse_args()
    found = cases_in(options.data, "node") if options.data else cases(options.kind or FOLDERS)
    chosen = [c for c in found if options.k in c.name]
    if len(chosen) < options.min_cases:
        print(f"only {len(chosen)} cases found, {options.min_cases} wanted")
        return 2
    outcomes = [run_case(case, options.device) for case in chosen]
    for outcome in outcomes:
        if outcome.status in ("wrong", "crash", "differs"):
            print(f"{outcome.status:8} {outcome.case}: {outcome.reason[-700:]}")
    counts = Counter(o.status for o in outcomes)
    print(f"{len(outcomes)} cases: " + ", ".join(f"{n} {status}" for status, n in sorted(counts.items())))
    if options.table:
        options.table.write_text(table(outcomes))
    if options.json:
        options.json.write_text(json.dumps([asdict(o) for o in outcomes], indent=1))
    return 1 if counts["wrong"] or counts["crash"] else 0


if __name__ == "__main__":
    sys.exit(main())
