"""``polyloom.load``: every kind of source as a function that is called, explained, simulated and reported."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.sources import Reading, find_front_end, load_tensors
from samples import LATER

EXAMPLES = Path(__file__).parents[1] / "examples"
DATA = Path(__file__).parent / "data"
CNN = EXAMPLES / "models" / "cnn.onnx"
LAYER = "lair f(N): float32 x[N], float32 w[N] -> float32 y[N] { all (i) in (N) y[i] = x[i] * w[i] }"
AXPY = "void axpy(int n, float a, float x[n], float y[n]) { for (int i = 0; i < n; i++) y[i] += a * x[i]; }"
X = np.arange(6, dtype=np.float32)


def stored(path: Path) -> tuple[list[Any], list[Any]]:
    """Return a model's inputs and outputs as its framework has computed them."""
    with np.load(path.with_suffix(".npz")) as arrays:
        return tuple([arrays[k] for k in arrays if k.startswith(part)] for part in ("in/", "out/"))  # type: ignore[return-value]


def test_a_layer_of_a_text() -> None:
    f = polyloom.load(LAYER, N=6)
    assert repr(f) == "<f(x: float32[6], w: float32[6]) -> y: float32[6]>"
    assert (f.inputs["x"].type, f.inputs["x"].shape, list(f.outputs)) == ("float32", (6,), ["y"])
    np.testing.assert_array_equal(f(X, w=X), X * X)
    np.testing.assert_array_equal(f(list(range(6)), X), X * X)


def test_c_of_a_text_and_of_a_file(tmp_path: Path) -> None:
    f = polyloom.load(AXPY)
    assert [f.inputs[n].shape for n in f.inputs] == [(), (), ("n",), ("n",)]
    y = np.ones(6, np.float32)
    assert f(6, 2.0, X, y) is y
    np.testing.assert_array_equal(y, 1 + 2 * X)
    path = tmp_path / "axpy.c"
    path.write_text(AXPY)
    for source in (path, str(path)):
        known = polyloom.load(source, n=6)
        assert list(known.inputs) == ["a", "x", "y"] and known.inputs["x"].shape == (6,)
        np.testing.assert_array_equal(known(1.0, X, y.copy()), 1 + 3 * X)
        result = known.run(check=True)
        assert result.passed and result.check is not None and result.check.by.startswith("the C program")


@pytest.mark.slow
@pytest.mark.ci
def test_the_weights_of_a_model_are_bound(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    path = tmp_path / "dense.onnx"
    onnx.save(dense_layer(), path)
    x = np.random.default_rng(1).normal(size=(2, 5)).astype(np.float32)
    wanted = runtime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    sources = (path, path.read_bytes(), onnx.load(path), polyloom.read_model(path))
    for source in sources:
        model = polyloom.load(source)
        assert list(model.inputs) == ["x"] and model.outputs["y"].shape == (2, 3)
        np.testing.assert_allclose(model(x), wanted, rtol=1e-4)
        np.testing.assert_allclose(model(x=x), wanted, rtol=1e-4)
        np.testing.assert_allclose(polyloom.compile(source)(x), wanted, rtol=1e-4)
    checked = [polyloom.load(source).run(check=True) for source in sources[:3]]
    assert all(r.passed and r.check is not None and r.check.reading_checked for r in checked)


def dense_layer() -> Any:
    """Return an ONNX model of one matrix product, whose matrix and vector are weights."""
    from onnx import TensorProto, helper, numpy_helper

    generator = np.random.default_rng(2)
    weights = {"w": generator.normal(size=(5, 3)), "b": generator.normal(size=3)}
    initializers = [numpy_helper.from_array(v.astype(np.float32), n) for n, v in weights.items()]
    given, made = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [2, 5]), ("y", [2, 3]))
    )
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["g"]), helper.make_node("Relu", ["g"], ["y"])]
    graph = helper.make_graph(nodes, "dense", [given], [made], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.slow
@pytest.mark.ci
def test_other_weights_may_be_given() -> None:
    model = polyloom.load(CNN)
    assert model.model is not None
    name, weights = next(iter(model.model.constants.items()))
    image = np.ones((1, 1, 28, 28), np.float32)
    other = model(image, **{name: np.zeros_like(weights)})
    assert not np.array_equal(model(image), other)
    np.testing.assert_array_equal(model(image), model(image))


@pytest.mark.parametrize(
    "path",
    [
        DATA / "tensorflow" / "conv1d.pb",
        pytest.param(DATA / "tensorflow" / "saved_model", marks=LATER),
        next((DATA / "torch").glob("linear*.pt2"), DATA / "torch" / "none.pt2"),
    ],
)
def test_models_of_other_frameworks(path: Path) -> None:
    given, wanted = stored(path)
    assert given and wanted
    for source in (path, *([] if path.is_dir() else [path.read_bytes()])):
        model = polyloom.load(source)
        found = model(*given)
        for have, want in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


def test_what_is_in_memory_is_told_by_its_type() -> None:
    """Without its framework: the class alone says what it is."""
    kinds = {
        ("torch.nn.modules.module", "Module"): "a module of PyTorch",
        ("torch.export.exported_program", "ExportedProgram"): "a module of PyTorch",
        ("tensorflow.python.eager.concrete_function", "ConcreteFunction"): "a function of TensorFlow",
        ("keras.src.layers.layer", "Layer"): "a function of TensorFlow",
    }
    for (module, name), front in kinds.items():
        base = type(name, (), {"__module__": module})
        found = find_front_end(type("Mine", (base,), {})())
        assert found is not None and found.name == front
    assert find_front_end(type("Module", (), {})()) is None


@pytest.mark.slow
@pytest.mark.ci
def test_explain() -> None:
    loops = polyloom.load(AXPY, n=6)
    assert "i parallel" in str(loops.explain())
    assert repr(loops.explain()) == "<LoopExplanation of axpy; print it>"
    placed = loops.explain(size=(2, 1))
    assert isinstance(placed, polyloom.Explanation) and "Tasks" in str(placed) and len(repr(placed)) < 100
    assert placed.json()["tasks"]


@pytest.mark.slow
@pytest.mark.ci
def test_simulate_and_report(tmp_path: Path) -> None:
    conv = polyloom.load(EXAMPLES / "conv1d.lair")
    result = conv.simulate(map=EXAMPLES / "conv1d.map", check=True)
    assert result.cycles > 0 and result.check is not None and result.check.passed
    page = tmp_path / "report.html"
    assert conv.report(page, map=EXAMPLES / "conv1d.map").cycles == result.cycles
    assert page.read_text().startswith("<!doctype html>")
    axpy = polyloom.load(AXPY, n=6).simulate({"a": 2.0, "x": X, "y": X}, size=(2, 1), check=True)
    np.testing.assert_array_equal(axpy.outputs["y"], 3 * X)


@pytest.mark.slow
@pytest.mark.ci
def test_a_model_is_simulated_with_its_weights(tmp_path: Path) -> None:
    path = DATA / "tensorflow" / "matrix_vector.pb"
    model = polyloom.load(path)
    given, wanted = stored(path)
    result = model.simulate(dict(zip(model.inputs, given, strict=True)), size=(2, 1), check=True)
    assert result.check is not None and result.check.passed
    np.testing.assert_allclose(next(iter(result.outputs.values())), wanted[0], rtol=1e-4)


@pytest.mark.slow
@pytest.mark.ci
def test_write(tmp_path: Path) -> None:
    axpy = polyloom.load(AXPY, n=6, a=1.5)
    assert "text.c" in axpy.write(tmp_path / "opencl", "opencl")
    assert "manifest.json" in axpy.write(tmp_path / "wafer", "wafer", size=(2, 1))
    with pytest.raises(polyloom.PolyloomError, match="target-unknown"):
        axpy.write(tmp_path / "none", "fpga")
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
@pytest.mark.ci
def test_tune(tmp_path: Path) -> None:
    f = polyloom.load(AXPY, n=64, database=tmp_path / "tuned.sqlite")
    (tuned,) = f.tune(20, evaluations=2)
    assert tuned.evaluations >= 1 and len(repr(tuned)) < 120


@pytest.mark.parametrize(
    ("source", "options", "code"),
    [
        (3, {}, "source-unknown"),
        (None, {}, "source-unknown"),
        ("model.h5", {}, "source-unknown"),
        ("net.pth", {}, "source-unknown"),
        (str(EXAMPLES / "conv1d.map"), {}, "source-unknown"),
        ("nowhere.lair", {}, "file-missing"),
        (b"\x08broken", {}, "model-broken"),
        (LAYER, {"N": 6, "function": "f"}, "option-unknown"),
        (AXPY, {"node": "f"}, "option-unknown"),
        (CNN, {"include": ["."]}, "option-unknown"),
        (AXPY, {"m": 6}, "size-unknown"),
        (CNN, {"batch": 6}, "model-size"),
        (LAYER, {}, "lair-missing-parameter"),
        (LAYER, {"N": 6, "M": 3}, "lair-unknown-define"),
        ("liar f() {\n}", {}, "lair-syntax"),
        ("void f(int n) {\n int x = ;\n}", {}, "c-syntax"),
    ],
)
def test_what_cannot_be_loaded(source: Any, options: dict[str, Any], code: str) -> None:
    with pytest.raises(polyloom.PolyloomError) as caught:
        polyloom.load(source, **options)
    assert code in {d.code for d in caught.value.diagnostics}
    assert all(d.helps or d.span for d in caught.value.diagnostics)
    assert f"error[{code}]" in str(caught.value)


def test_of_a_model_with_open_sizes_others_are_refused() -> None:
    onnx = pytest.importorskip("onnx")
    ends = [onnx.helper.make_tensor_value_info(name, 1, ("batch", 6)) for name in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
    model = onnx.helper.make_model(graph)
    for wrong in (lambda: polyloom.load(model, bath=2), lambda: polyloom.load(model).at(bath=2)):
        with pytest.raises(polyloom.PolyloomError, match=r"model-size.*`bath`(.|\n)*`batch`, `x`"):
            wrong()
    assert polyloom.load(model).at(batch=2)(np.ones((2, 6), np.float32)).shape == (2, 6)


def test_a_source_of_no_kind_that_is_not_there() -> None:
    with pytest.raises(polyloom.PolyloomError) as caught:
        polyloom.load("net.loom")
    (fault,) = caught.value.diagnostics
    assert "there is no such file" in fault.notes and "`save` wrote" in fault.helps[0]


def test_wrong_arguments() -> None:
    f = polyloom.load(LAYER, N=6)
    for arrays, named, code in (
        ([X, X, X], {}, "argument-count"),
        ([X], {"x": X}, "argument-twice"),
        ([X], {}, "input-missing"),
        ([X, X[:3]], {}, "input-shape"),
        ([X, X], {"z": X}, "argument-unknown"),
    ):
        with pytest.raises(polyloom.PolyloomError) as caught:
            f(*arrays, **named)
        assert [d.code for d in caught.value.diagnostics] == [code]


def test_arguments_that_are_none() -> None:
    f = polyloom.load(LAYER, N=6)
    for given in ((X, None), (None, X)):
        with pytest.raises(polyloom.PolyloomError, match=r"the input `[xw]` is None"):
            f(*given)
    np.testing.assert_array_equal(f(X, None, X), X * X)
    with pytest.raises(polyloom.PolyloomError, match="3 arguments for 2"):
        f(X, X, X, None)


def test_an_input_without_influence_is_named() -> None:
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    ends = [helper.make_tensor_value_info(n, 1, shape) for n, shape in (("x", [0, 3]), ("z", [2, 3]))]
    node, out = (
        helper.make_node("Concat", ["x", "z"], ["y"], axis=0),
        helper.make_tensor_value_info("y", 1, None),
    )
    model = helper.make_model(helper.make_graph([node], "g", ends, [out]))
    f, z = polyloom.load(model), np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(f(z), z)
    np.testing.assert_array_equal(f(np.ones((0, 3), np.float32), z), z)
    with pytest.raises(polyloom.PolyloomError, match=r"no result depends on `x`"):
        f(z, z, z)


def test_paths_where_programs_are_meant() -> None:
    lair, placed = EXAMPLES / "conv1d.lair", EXAMPLES / "conv1d.map"
    result = polyloom.simulate(lair, placed, check=True)
    assert result.check is not None and result.check.passed
    assert polyloom.explain(str(lair), str(placed)).json()["tasks"]
    assert "C_0.c" in polyloom.compile_wafer(lair, placed).files
    assert polyloom.run(lair).outputs["y"].shape == (2, 14)
    assert set(polyloom.trace_tensors(lair)) == {"x", "W", "y"}
    assert polyloom.evaluate(lair, polyloom.random_inputs(lair))["y"].shape == (2, 14)
    for call in (
        lambda: polyloom.simulate(polyloom.read_mapping(placed, lair), lair),  # type: ignore[arg-type]
        lambda: polyloom.simulate(placed, lair),
        lambda: polyloom.explain(lair, polyloom.read_program(lair)),  # type: ignore[arg-type]
        lambda: polyloom.read_mapping(polyloom.read_program(lair), lair),  # type: ignore[arg-type]
    ):
        with pytest.raises(polyloom.PolyloomError, match=r"error\[(source-unknown|map-kind)\]"):
            call()


def test_a_function_is_a_source_itself() -> None:
    f = polyloom.load(LAYER, N=6)
    assert load_tensors(f, Reading()).program is f.program
    assert polyloom.load(f).inputs.keys() == f.inputs.keys()
    assert polyloom.load(f.program).outputs.keys() == f.outputs.keys()


def test_public_values_print_as_one_short_line() -> None:
    lair, placed = EXAMPLES / "conv1d.lair", EXAMPLES / "conv1d.map"
    f = polyloom.load(lair)
    values: list[object] = [
        f,
        f.inputs,
        f.program,
        f.tensors,
        f.compiled,
        f.compiled.program,
        f.run(check=True),
        f.place(placed),
        f.place(placed).mapping,
        f.explain(placed),
        polyloom.compile_wafer(lair, placed),
        polyloom.simulate(lair, placed, check=True),
        polyloom.simulate_layers(lair, maps={"C": placed}),
        polyloom.drop_in(lair),
        polyloom.devices()[0],
        polyloom.read_model(CNN),
        polyloom.load(CNN),
    ]
    assert [value for value in values if len(repr(value)) > 250 or "\n" in repr(value)] == []


def test_there_is_one_list_of_names() -> None:
    listed = [name for names in polyloom._MODULES.values() for name in names.split()]
    assert sorted(listed) == sorted(polyloom.__all__)
    for name in polyloom.__all__:
        assert getattr(polyloom, name).__name__ == name
    assert not [
        n for n in dir(polyloom.Function) if n[0] != "_" and not inspect.getdoc(getattr(polyloom.Function, n))
    ]


def test_a_function_may_have_the_name_of_a_variable_of_its_kernel() -> None:
    f = polyloom.load(
        "void total(int n, double s[1], double x[n]) { for (int i = 0; i < n; i++) s[0] += x[i]; }"
    )
    s = np.zeros(1)
    f(4, s, np.ones(4))
    assert s.tolist() == [4]
