"""A model run by its own framework: the child process; a folder holds its task (``model_reference``).

``job.json`` there: ``{kind, model, function, inputs: [name]}``; ``inputs.npz``: arrays ``a0``, ``a1``, ...
It leaves ``outputs.npz`` and ``answer.json``: ``{by, outputs: [name]}``, or ``{missing}`` where no framework
is installed, or ``{by, fault}`` where it does not run the model.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.files import write_arrays
from polyloom.ir.scalar_functions.narrow_formats import FORMATS
from polyloom.oracle.in_float32 import in_float32

NDArray = npt.NDArray[Any]
Results = dict[str, NDArray]
Runner = Callable[[str, str | None, Mapping[str, NDArray]], Results]


class _Another(Exception):
    """A framework cannot be asked, the next one may; the text says why."""


def with_onnxruntime(model: str, function: str | None, given: Mapping[str, NDArray]) -> Results:
    """Run an ONNX model without rewrites. Raises ``_Another`` where NumPy has no type for its ends."""
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    narrow = [e.type for e in (*session.get_inputs(), *session.get_outputs()) if e.type.startswith(_NARROW)]
    if narrow:
        raise _Another(f"it takes and gives no {narrow[0]} as arrays of NumPy")
    feeds = {i.name: given[i.name] if i.name in given else _unused(i) for i in session.get_inputs()}
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


_NARROW = tuple(
    f"tensor({kind}" for kind in ("bfloat16", "float8", "float4", "int4", "uint4", "int2", "uint2")
)


def _unused(declared: Any) -> NDArray:
    """Return an array for an input that nothing depends on."""
    kinds = {"tensor(float)": "f4", "tensor(double)": "f8", "tensor(float16)": "f2", "tensor(bool)": "?"}
    kind = kinds.get(declared.type) or declared.type.removeprefix("tensor(").removesuffix(")")
    return np.zeros([n if isinstance(n, int) else 1 for n in declared.shape], kind)


def with_onnx(model: str, function: str | None, given: Mapping[str, NDArray]) -> Results:
    """Run an ONNX model by the evaluator of the package onnx."""
    onnx: Any = import_module("onnx")
    evaluator: Any = import_module("onnx.reference").ReferenceEvaluator(model)
    inputs = onnx.load(model, load_external_data=False).graph.input
    types = {i.name: i.type.tensor_type.elem_type for i in inputs}
    feeds = {n: a.astype(onnx.helper.tensor_dtype_to_np_dtype(types[n])) for n, a in given.items()}
    found = evaluator.run(None, feeds)
    return {n: _plain(np.asarray(a)) for n, a in zip(evaluator.output_names, found, strict=True)}


def with_torch(model: str, function: str | None, given: Mapping[str, NDArray]) -> Results:
    """Run a program of ``torch.export``; results are called ``#0``, ``#1``, ... as the program lists them."""
    torch: Any = import_module("torch")
    tree: Any = import_module("torch.utils._pytree")
    program = torch.export.load(model)
    signature = program.graph_signature
    seen = {node.name: node.meta.get("val") for node in program.graph.nodes}
    flat = [
        torch.from_numpy(np.array(given[name])).to(getattr(seen.get(name), "dtype", None))
        for name in signature.user_inputs
    ]
    arguments, keywords = tree.tree_unflatten(flat, program.call_spec.in_spec)
    module = program.module()
    with torch.no_grad():
        leaves = iter(tree.tree_leaves(module(*arguments, **keywords)))
    held = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    given_back = [(s.kind.name == "USER_OUTPUT", s.target) for s in signature.output_specs]
    results = [next(leaves) if users else held.get(target) for users, target in given_back]
    tensors = [value.detach() for value in results if isinstance(value, torch.Tensor)]
    arrays = [(t.float() if str(t.dtype).startswith(_FLOATS) else t).numpy() for t in tensors]
    return {f"#{k}": array for k, array in enumerate(arrays)}


_FLOATS = ("torch.bfloat16", "torch.float8")


def with_tensorflow(model: str, function: str | None, given: Mapping[str, NDArray]) -> Results:
    """Run a GraphDef, or a signature of a SavedModel."""
    tf: Any = import_module("tensorflow")
    if not Path(model, "saved_model.pb").exists() and Path(model).name != "saved_model.pb":
        return _graph_def(tf, model, given)
    folder = Path(model) if Path(model).is_dir() else Path(model).parent
    loaded = tf.saved_model.load(str(_in_float32(folder)))
    call = loaded.signatures[function or "serving_default"]
    wanted = call.structured_input_signature[1]
    feeds = {n: tf.cast(tf.constant(given[n]), spec.dtype) for n, spec in wanted.items()}
    return {n: _plain(v.numpy()) for n, v in call(**feeds).items()}


def _in_float32(folder: Path) -> Path:
    """Return the folder of a SavedModel, or one beside the job whose nodes on bfloat16 are rewritten."""
    saved: Any = import_module("tensorflow.core.protobuf.saved_model_pb2").SavedModel()
    saved.ParseFromString((folder / "saved_model.pb").read_bytes())
    before = saved.SerializeToString(deterministic=True)
    for part in saved.meta_graphs:
        in_float32(part.graph_def)
    if saved.SerializeToString(deterministic=True) == before:
        return folder
    copy = Path("rewritten").absolute()
    copy.mkdir()
    for each in folder.absolute().iterdir():
        if each.name not in ("saved_model.pb", "fingerprint.pb"):
            (copy / each.name).symlink_to(each)
    (copy / "saved_model.pb").write_bytes(saved.SerializeToString())
    return copy


def _graph_def(tf: Any, model: str, given: Mapping[str, NDArray]) -> Results:
    definition = tf.compat.v1.GraphDef()
    definition.ParseFromString(Path(model).read_bytes())
    operations = _imported(tf, definition).get_operations()
    used = {i.op.name for op in operations for i in op.inputs}
    ends = [op for op in operations if op.name not in used and op.outputs and op.inputs]
    results = [op.name if k == 0 else f"{op.name}:{k}" for op in ends for k in range(len(op.outputs))]
    moved = in_float32(definition)
    graph = _imported(tf, definition)
    fetched = {name: _tensor(graph, moved.get(name, name)) for name in results}
    with tf.compat.v1.Session(graph=graph) as session:
        found: Results = session.run(fetched, {_tensor(graph, n): a for n, a in given.items()})
    return {name: _plain(array) for name, array in found.items()}


def _imported(tf: Any, definition: Any) -> Any:
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
    return graph


def _tensor(graph: Any, name: str) -> Any:
    return graph.get_tensor_by_name(name if ":" in name else f"{name}:0")


def _plain(array: NDArray) -> NDArray:
    """Return an array with elements of a type of NumPy, which holds those of narrow formats."""
    form = FORMATS.get(array.dtype.name)
    return array if form is None else array.astype(form.held.dtype)


FRAMEWORKS: dict[str, tuple[tuple[str, tuple[str, ...], Runner], ...]] = {
    "onnx": (
        ("onnxruntime", ("onnxruntime", "onnxruntime-gpu"), with_onnxruntime),
        ("onnx", ("onnx",), with_onnx),
    ),
    "torch": (("torch", ("torch",), with_torch),),
    "tensorflow": (("tensorflow", ("tensorflow", "tensorflow-cpu", "tensorflow-intel"), with_tensorflow),),
}
"""For each kind of file: modules, the packages that bring them, and how they run a model; the best first."""


def main() -> None:
    """Carry out the job of a folder."""
    folder = Path(sys.argv[1])
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    with np.load(folder / "inputs.npz", allow_pickle=False) as arrays:
        given = {name: arrays[f"a{k}"] for k, name in enumerate(job["inputs"])}
    answer: dict[str, Any] = {"missing": FRAMEWORKS[job["kind"]][0][0]}
    for module, packages, run in FRAMEWORKS[job["kind"]]:
        by = _installed(module, packages)
        if by is not None:
            answer = _run(folder, by, partial(run, job["model"], job["function"], given))
            if not answer.get("another"):
                break
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


def _installed(module: str, packages: tuple[str, ...]) -> str | None:
    """Return a module's name with its version, where it can be imported."""
    try:
        import_module(module)
    except Exception:  # a package that is installed and broken raises anything
        return None
    for package in packages:
        try:
            return f"{module} {version(package)}"
        except ImportError:
            continue
    return module


def _run(folder: Path, by: str, run: Callable[[], Results]) -> dict[str, Any]:
    try:
        found = {name: np.asarray(array) for name, array in run().items()}
    except _Another as fault:
        return {"by": by, "fault": str(fault), "another": True}
    except Exception as fault:  # frameworks have their own exceptions for what they do not run
        return {"by": by, "fault": str(fault).strip().partition("\n")[0][:200]}
    write_arrays(folder / "outputs.npz", {f"a{k}": array for k, array in enumerate(found.values())})
    return {"by": by, "outputs": list(found)}


if __name__ == "__main__":
    main()
