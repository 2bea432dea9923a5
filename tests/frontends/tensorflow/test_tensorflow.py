"""Graphs out of TensorFlow: what the importer makes of them computes what TensorFlow computed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyloom.cli.main import run
from polyloom.diagnostics import PolyloomError, Unsupported
from polyloom.frontends.graph.imported import Imported
from polyloom.frontends.protobuf.tensorflow_schema import tensorflow_messages
from polyloom.frontends.tensorflow import import_tensorflow
from polyloom.frontends.tensorflow.checkpoint import read_checkpoint
from polyloom.frontends.tensorflow.tensors import Unreadable
from polyloom.ir.evaluation.programs import evaluate
from polyloom.ir.scalar_functions.evaluation import to_bfloat16

DATA = Path(__file__).parents[2] / "data" / "tensorflow"
GRAPHS = sorted(path.stem for path in DATA.glob("*.pb"))
TOLERANCE = 1e-4
"""Relative to the largest element of a tensor: TensorFlow sums in another order."""


def stored(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a case's inputs and outputs by the names of their tensors."""
    with np.load(DATA / f"{name}.npz") as arrays:
        inputs = {key[3:]: arrays[key] for key in arrays if key.startswith("in/")}
        outputs = {key[4:].removesuffix(":0"): arrays[key] for key in arrays if key.startswith("out/")}
    return inputs, outputs


def assert_computes(model: Imported, inputs: dict[str, Any], wanted: dict[str, Any]) -> None:
    found = model.outputs(evaluate(model.program, model.inputs(inputs)))
    for name, array in wanted.items():
        assert found[name].shape == array.shape, name
        narrow = name in model.narrow
        assert narrow or found[name].dtype == array.dtype, name
        assert not narrow or found[name].dtype.name in ("bfloat16", "float32"), name
        bound = (2.0**-7 if narrow else TOLERANCE) * np.abs(array).max(initial=0)
        assert np.abs(found[name].astype(float) - array).max(initial=0) <= bound, name


def test_the_corpus_is_there() -> None:
    training = [name for name in GRAPHS if name.startswith("grad_")]
    assert len(training) >= 29 and len(GRAPHS) - len(training) >= 54


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_computes_what_tensorflow_computes(name: str) -> None:
    inputs, outputs = stored(name)
    assert_computes(import_tensorflow(DATA / f"{name}.pb"), inputs, outputs)


def test_a_saved_model_reads_its_checkpoint() -> None:
    model = import_tensorflow(DATA / "saved_model")
    assert_computes(model, *stored("saved_model"))
    assert "sequential/conv2d/kernel" in model.names.values()


def test_variables_of_one_name_are_told_apart() -> None:
    model = import_tensorflow(DATA / "saved_model_unnamed")
    assert_computes(model, *stored("saved_model_unnamed"))


def test_a_saved_model_of_bfloat16() -> None:
    model = import_tensorflow(DATA / "saved_model_bfloat16")
    assert_computes(model, *stored("saved_model_bfloat16"))
    assert model.narrow == {"x": "bfloat16", "y": "bfloat16"}


def test_bfloat16_is_rounded_where_it_is_stored() -> None:
    """Elements that need more bits are none of the results, which TensorFlow's are nearly all bit by bit."""
    inputs, outputs = stored("bfloat16_mixed")
    model = import_tensorflow(DATA / "bfloat16_mixed.pb")
    found = model.outputs(evaluate(model.program, model.inputs(inputs)))
    kinds = [(name in model.narrow, found[name].dtype.name) for name in found]
    narrow = [name for name in found if name in model.narrow]
    assert len(narrow) == 5 and sum(kind == "float32" and not is_narrow for is_narrow, kind in kinds) == 2
    for name in narrow:
        values = found[name].astype(np.float32)
        assert np.array_equal(values, to_bfloat16(values)) and np.mean(values == outputs[name]) > 0.95, name


def test_layers_keep_their_names() -> None:
    model = import_tensorflow(DATA / "keras_lenet.pb")
    nodes = {row.node: row for row in model.rows}
    assert nodes["sequential_2_1/conv2d_1_1/convolution"].statements
    assert model.names["sequential_2_1_conv2d_1_1_convolution"] == "sequential_2_1/conv2d_1_1/convolution"


# -- variables that change


def graph_def(*nodes: Any) -> bytes:
    return bytes(tensorflow_messages()["GraphDef"](node=list(nodes)).SerializeToString())


def node(name: str, op: str, *inputs: str, **attributes: Any) -> Any:
    messages = tensorflow_messages()
    made = messages["NodeDef"](name=name.encode(), op=op.encode(), input=[i.encode() for i in inputs])
    for key, value in attributes.items():
        made.attr[key].CopyFrom(messages["AttrValue"](**value))
    return made


def shape(*sizes: int) -> Any:
    messages = tensorflow_messages()
    return messages["TensorShapeProto"](dim=[messages["Dimension"](size=n) for n in sizes])


def written(folder: Path, *nodes: Any) -> Path:
    path = folder / "model.pb"
    path.write_bytes(graph_def(*nodes))
    return path


def test_variables_are_read_and_written_in_order(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        node("W", "VarHandleOp", dtype={"type": 1}, shape={"shape": shape(3)}, shared_name={"s": b"W"}),
        node("d", "Placeholder", dtype={"type": 1}, shape={"shape": shape(3)}),
        node("before", "ReadVariableOp", "W"),
        node("change", "AssignSubVariableOp", "W", "d", "^before"),
        node("after", "ReadVariableOp", "W", "^change"),
        node("twice", "Add", "after", "after"),
        node("same", "Neg", "before"),
    )
    model = import_tensorflow(path)
    w, d = np.float32([1, 2, 3]), np.float32([3, 5, 9])
    found = model.outputs(evaluate(model.program, model.inputs({"W": w, "d": d})))
    assert (found["same"] == -w).all() and (found["twice"] == 2 * (w - d)).all()
    assert (found["W_new"] == w - d).all()


def adam(w: Any, m: Any, v: Any, g: Any) -> tuple[Any, Any, Any]:
    m1, v1 = m + (g - m) * 0.1, v + (g * g - v) * 0.001
    return w - 0.01 * np.sqrt(1 - 0.999) / (1 - 0.9) * m1 / (np.sqrt(v1) + 1e-7), m1, v1


def test_an_optimizer_gives_all_that_it_changes(tmp_path: Path) -> None:
    scalars = {"p1": 0.9, "p2": 0.999, "rate": 0.01, "b1": 0.9, "b2": 0.999, "e": 1e-7}
    messages = tensorflow_messages()
    constants = [
        node(
            n,
            "Const",
            value={"tensor": messages["TensorProto"](dtype=1, tensor_shape=shape(), float_val=[x])},
        )
        for n, x in scalars.items()
    ]
    handles = [node(n, "VarHandleOp", dtype={"type": 1}, shape={"shape": shape(4)}) for n in "wmv"]
    gradient = node("g", "Placeholder", dtype={"type": 1}, shape={"shape": shape(4)})
    step = node("step", "ResourceApplyAdam", "w", "m", "v", *scalars, "g")
    model = import_tensorflow(written(tmp_path, *constants, *handles, gradient, step))
    rng = np.random.default_rng(3)
    given = {n: rng.random(4).astype(np.float32) for n in "wmvg"}
    found = model.outputs(evaluate(model.program, model.inputs(given)))
    for name, wanted in zip("wmv", adam(*(given[n] for n in "wmvg")), strict=True):
        np.testing.assert_allclose(found[f"{name}_new"], wanted, rtol=1e-5)


# -- what is refused, and what is broken


def test_every_node_that_cannot_be_expressed_is_named(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        node("x", "Placeholder", dtype={"type": 1}, shape={"shape": shape(3)}),
        node("sorted", "TopKV2", "x", "x"),
        node("strange", "NoSuchOperation", "x"),
        node("fine", "Neg", "x"),
        node("sum", "AddN", "sorted", "strange", "fine"),
    )
    with pytest.raises(Unsupported) as caught:
        import_tensorflow(path)
    notes = " ".join(caught.value.diagnostics[0].notes)
    assert "sorted (TopKV2)" in notes and "strange (NoSuchOperation)" in notes and "fine" not in notes


def test_a_loop_is_refused(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        node("x", "Placeholder", dtype={"type": 1}, shape={"shape": shape(3)}),
        node("enter", "Enter", "x"),
        node("merge", "Merge", "enter", "next"),
        node("next", "NextIteration", "merge"),
        node("exit", "Exit", "merge"),
    )
    with pytest.raises(Unsupported) as caught:
        import_tensorflow(path)
    assert "merge (Merge)" in " ".join(caught.value.diagnostics[0].notes)


def test_open_dimensions_are_asked_for_and_given(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        node("x", "Placeholder", dtype={"type": 1}, shape={"shape": shape(-1, 3)}),
        node("y", "Neg", "x"),
    )
    with pytest.raises(PolyloomError) as caught:
        import_tensorflow(path)
    assert caught.value.diagnostics[0].code == "model-shape"
    assert import_tensorflow(path, {"x": (2, 3)}).program.buffer("x").extents == (2, 3)


def codes_of(path: Path) -> str:
    try:
        import_tensorflow(path)
    except PolyloomError as fault:
        return fault.diagnostics[0].code
    return "fine"


CODES = {"fine", "model-broken", "model-inexpressible", "model-shape", "model-type", "model-outputs"}


def test_truncated_and_changed_graphs_give_one_diagnostic_each(tmp_path: Path) -> None:
    data = (DATA / "grad_residual.pb").read_bytes()
    path = tmp_path / "model.pb"
    rng = np.random.default_rng(11)
    found = set()
    for _ in range(120):
        changed = bytearray(data[: rng.integers(0, len(data))] if rng.random() < 0.5 else data)
        for place in rng.integers(0, max(1, len(changed)), 5):
            if changed:
                changed[place] = rng.integers(0, 256)
        path.write_bytes(changed)
        found.add(codes_of(path))
    assert found <= CODES
    assert len(found) > 1


def test_a_constant_that_declares_more_than_it_holds(tmp_path: Path) -> None:
    messages = tensorflow_messages()
    huge = messages["TensorProto"](dtype=1, tensor_shape=shape(2**20, 2**20), float_val=[1.0])
    path = written(tmp_path, node("c", "Const", value={"tensor": huge}), node("y", "Neg", "c"))
    assert codes_of(path) == "model-inexpressible"


@pytest.mark.slow
@pytest.mark.ci
def test_changed_checkpoints_give_one_diagnostic_each(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    shutil.copytree(DATA / "saved_model", folder)
    index = folder / "variables" / "variables.index"
    data = index.read_bytes()
    rng = np.random.default_rng(12)
    for _ in range(150):
        changed = bytearray(data[: rng.integers(0, len(data))] if rng.random() < 0.3 else data)
        for place in rng.integers(0, max(1, len(changed)), 3):
            if changed:
                changed[place] = rng.integers(0, 256)
        index.write_bytes(changed)
        assert codes_of(folder) in {
            "fine",
            "model-broken",
            "model-inexpressible",
            "model-shape",
            "model-type",
        }
    index.write_bytes(data)
    (folder / "variables" / "variables.data-00000-of-00001").write_bytes(b"short")
    with pytest.raises(Unreadable):
        read_checkpoint(folder / "variables" / "variables").array("no such key")
    assert codes_of(folder) == "model-inexpressible"


def test_a_signature_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", str(DATA / "saved_model"), "--function", "train"]) == 1
    assert "`serving_default`" in capsys.readouterr().err


# -- the command line


def test_verbs_take_graphs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs, outputs = stored("dense_relu")
    given, reference = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(given, **inputs)
    np.savez(reference, **outputs)
    source = str(DATA / "dense_relu.pb")
    assert run(["trace", source, "--inputs", str(given), "--compare", str(reference)]) == 0
    capsys.readouterr()
    assert run(["show", source, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert "MatMul" in json.dumps(rows)
    assert run(["show", source, "--as", "lair"]) == 0
    assert "+=" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.ci
def test_a_graph_runs_on_the_device(tmp_path: Path) -> None:
    inputs, outputs = stored("conv2d_same_strided")
    given, found = tmp_path / "in.npz", tmp_path / "found.npz"
    np.savez(given, **inputs)
    source = str(DATA / "conv2d_same_strided.pb")
    assert run(["run", source, "--inputs", str(given), "--outputs", str(found), "--check"]) == 0
    with np.load(found) as arrays:
        for name, wanted in outputs.items():
            np.testing.assert_allclose(arrays[name], wanted, rtol=1e-4, atol=1e-5)


# -- attributes that nobody knows


def with_attribute(path: Path, folder: Path, op: str, **attributes: Any) -> Path:
    """Return a graph in which all nodes of an operation have further attributes."""
    messages = tensorflow_messages()
    graph = messages["GraphDef"].FromString(path.read_bytes())
    for each in graph.node:
        if each.op == op.encode():
            for key, value in attributes.items():
                each.attr[key].CopyFrom(messages["AttrValue"](**value))
    changed = folder / path.name
    changed.write_bytes(graph.SerializeToString())
    return changed


@pytest.mark.parametrize(
    ("name", "op"),
    [("conv2d_valid", "Conv2D"), ("dense_relu", "Relu"), ("activations", "Elu"), ("branches", "StatelessIf")],
)
@pytest.mark.parametrize("value", [{"i": 1}, {"b": True}, {"s": b"new"}, {"f": 0.5}, {"type": 1}])
def test_an_unknown_attribute_is_refused_by_name(
    name: str, op: str, value: dict[str, Any], tmp_path: Path
) -> None:
    path = with_attribute(DATA / f"{name}.pb", tmp_path, op, Tomorrow=value)
    with pytest.raises(Unsupported) as caught:
        import_tensorflow(path)
    notes = caught.value.diagnostics[0].notes
    assert notes and all(f"attribute `Tomorrow` is not known of {op}" in note for note in notes)


def test_notes_of_tools_are_no_attributes(tmp_path: Path) -> None:
    path = with_attribute(DATA / "dense_relu.pb", tmp_path, "Relu", _tool={"i": 1}, T={"type": 1})
    assert import_tensorflow(path).rows


@pytest.mark.parametrize(
    ("op", "attribute", "neutral", "other"),
    [
        ("Cast", "Truncate", {"b": False}, {"b": True}),
        ("GatherNd", "bad_indices_policy", {"s": b""}, {"s": b"IGNORE"}),
    ],
)
def test_only_the_neutral_value_of_what_is_not_done_is_taken(
    op: str, attribute: str, neutral: dict[str, Any], other: dict[str, Any], tmp_path: Path
) -> None:
    def graph(value: dict[str, Any]) -> Path:
        messages = tensorflow_messages()
        indices = messages["TensorProto"](dtype=3, tensor_shape=shape(1, 1), int_val=[0])
        operands = ("x", "at") if op == "GatherNd" else ("x",)
        return written(
            tmp_path,
            node("x", "Placeholder", dtype={"type": 1}, shape={"shape": shape(3)}),
            node("at", "Const", value={"tensor": indices}),
            node("y", op, *operands, DstT={"type": 3}, **{attribute: value})
            if op == "Cast"
            else node("y", op, *operands, **{attribute: value}),
        )

    assert import_tensorflow(graph(neutral)).rows
    with pytest.raises(Unsupported, match="cannot be expressed") as caught:
        import_tensorflow(graph(other))
    assert f"`{attribute}`" in caught.value.diagnostics[0].notes[0]


@pytest.mark.parametrize("op", ["EnsureShape", "PlaceholderWithDefault"])
def test_a_shape_that_is_not_true_is_refused(op: str, tmp_path: Path) -> None:
    def graph(*sizes: int) -> Path:
        x = node("x", "Placeholder", dtype={"type": 1}, shape={"shape": shape(2, 3)})
        return written(tmp_path, x, node("y", op, "x", shape={"shape": shape(*sizes)}), node("z", "Neg", "y"))

    assert import_tensorflow(graph(2, 3)).rows and import_tensorflow(graph(2, -1)).rows
    with pytest.raises(Unsupported) as caught:
        import_tensorflow(graph(3, 2))
    assert "[3, 2]" in caught.value.diagnostics[0].notes[0]
