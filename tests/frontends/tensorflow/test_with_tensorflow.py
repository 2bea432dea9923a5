"""Functions of a running TensorFlow, and a SavedModel that others made.

These need packages that no other test needs (requirements/models.txt); where one is absent, its tests are
named as not run.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.frontends.graph.model import Graph, GraphTensor, Node
from polyloom.frontends.tensorflow import import_tensorflow
from polyloom.frontends.tensorflow.bfloat16 import rounded
from polyloom.frontends.tensorflow.functions import OUTPUTS
from polyloom.frontends.tensorflow.table import OPERATIONS
from polyloom.ir.evaluation.programs import evaluate
from polyloom.ir.scalar_functions.narrow_formats import BFLOAT16

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def tensorflow() -> Any:
    return pytest.importorskip("tensorflow", reason="the package tensorflow is not installed")


def test_a_training_step_in_memory(tensorflow: Any) -> None:
    tf = tensorflow
    rng = np.random.default_rng(1)
    kernel = tf.Variable(rng.standard_normal((6, 4)).astype(np.float32), name="kernel")
    scale = tf.constant(rng.standard_normal(4).astype(np.float32))

    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.nn.relu(x @ kernel) * scale))
        kernel.assign_sub(0.1 * tape.gradient(loss, kernel))
        return {"loss": loss}

    concrete = step.get_concrete_function(tf.TensorSpec((3, 6), tf.float32, name="x"))
    model = polyloom.from_tensorflow(concrete)
    x = rng.standard_normal((3, 6)).astype(np.float32)
    found = model.outputs(evaluate(model.program, model.inputs({"x": x})))
    loss = concrete(tf.constant(x))["loss"].numpy()
    np.testing.assert_allclose(found["loss"], loss, rtol=1e-5)
    np.testing.assert_allclose(found["kernel_new"], kernel.numpy(), rtol=1e-5, atol=1e-6)


def test_a_training_step_of_bfloat16_in_memory(tensorflow: Any) -> None:
    tf = tensorflow
    rng = np.random.default_rng(1)
    kernel = tf.Variable(tf.cast(rng.standard_normal((6, 4)), tf.bfloat16), name="kernel")

    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.relu(x @ kernel))
        kernel.assign_sub(tape.gradient(loss, kernel) * 0.1)
        return {"loss": loss}

    concrete = step.get_concrete_function(tf.TensorSpec((3, 6), tf.bfloat16, name="x"))
    function = polyloom.load(concrete)
    assert repr(function.inputs["x"]) == "bfloat16[3][6]"
    x = tf.cast(rng.standard_normal((3, 6)), tf.bfloat16)
    devices = (function, polyloom.load(concrete, device="cpu"))
    results = [dict(zip(f.outputs, f(x), strict=True)) for f in devices]
    loss = concrete(x)["loss"].numpy()
    for found in results:
        assert found["kernel_new"].dtype == tf.bfloat16.as_numpy_dtype
        np.testing.assert_allclose(found["loss"].astype(np.float32), loss.astype(np.float32), rtol=2**-7)
        wanted = kernel.numpy().astype(np.float32)
        np.testing.assert_allclose(found["kernel_new"].astype(np.float32), wanted, rtol=2**-6, atol=2**-8)


@pytest.mark.parametrize("saved", [False, True], ids=["GraphDef", "SavedModel"])
def test_the_check_of_bfloat16_compares_with_what_operations_define(
    tensorflow: Any, tmp_path: Path, saved: bool
) -> None:
    """TensorFlow's own kernels round each step of a running sum, of a softmax and of ``add_n``."""
    tf = tensorflow

    class Sums(tf.Module):  # type: ignore[misc]
        @tf.function(input_signature=[tf.TensorSpec((3, 300), tf.bfloat16, name="x")])
        def call(self, x: Any) -> Any:
            sums = tf.cumsum(x, axis=1)
            soft = tf.nn.softmax(x / tf.constant(128, tf.bfloat16))
            return {
                "sums": sums,
                "soft": soft,
                "all": tf.add_n([x, sums, soft]),
                "top": tf.math.top_k(sums, 2)[0],
            }

    module = Sums()
    if saved:
        path = tmp_path / "saved"
        tf.saved_model.save(module, str(path), signatures={"serving_default": module.call})
    else:
        path = tmp_path / "sums.pb"
        path.write_bytes(module.call.get_concrete_function().graph.as_graph_def().SerializeToString())
    result = polyloom.load(path).run(check=True)
    assert result.passed, result.check
    assert result.check.by.startswith("tensorflow")


def test_a_keras_training_step_in_memory(tensorflow: Any) -> None:
    tf = tensorflow
    tf.keras.utils.set_random_seed(3)
    model = tf.keras.Sequential(
        [tf.keras.Input((6,)), tf.keras.layers.Dense(5, "relu"), tf.keras.layers.Dense(2)]
    )
    optimizer = tf.keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        optimizer.apply_gradients(
            zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
        )
        return {"loss": loss}

    shapes = [tf.TensorSpec((4, n), tf.float32, name=name) for n, name in ((6, "x"), (2, "y"))]
    concrete = step.get_concrete_function(*shapes)
    imported = polyloom.from_tensorflow(concrete)
    rng = np.random.default_rng(4)
    x, y = (rng.standard_normal((4, n)).astype(np.float32) for n in (6, 2))
    found = imported.outputs(evaluate(imported.program, imported.inputs({"x": x, "y": y})))
    loss = concrete(tf.constant(x), tf.constant(y))["loss"].numpy()
    np.testing.assert_allclose(found["loss"], loss, rtol=1e-5)
    variables = {v.name.removesuffix(":0"): v.numpy() for v in concrete.variables}
    changed = {name.removesuffix("_new"): array for name, array in found.items() if name.endswith("_new")}
    assert len([name for name in changed if "dense" in name]) == 12  # weights, momenta, velocities
    for name, array in changed.items():
        np.testing.assert_allclose(array, variables[name], rtol=1e-4, atol=1e-6)


def test_what_is_bfloat16_is_what_tensorflow_says(tensorflow: Any) -> None:
    """Results by the definitions of TensorFlow's operations, where every type that may be is bfloat16."""
    from tensorflow.python.framework import op_def_registry

    number = tensorflow.bfloat16.as_datatype_enum
    for op in (name for name in OPERATIONS if not name.startswith("TensorList")):
        found = op_def_registry.get(op)
        allowed = {a.name: a.allowed_values.list.type for a in found.attr if a.type == "type"}
        kinds = {name: BFLOAT16 for name, types in allowed.items() if not types or number in types}
        outputs = tuple(a.name for a in found.output_arg)
        graph = Graph("g", (Node("n", op, ("x",), outputs, kinds),), (), tuple(declared(n) for n in outputs))
        narrow = [t.name for t in rounded(graph).outputs if t.other_type == BFLOAT16]
        assert narrow == [a.name for a in found.output_arg if a.type_attr in kinds], op


def declared(name: str) -> GraphTensor:
    return GraphTensor(name, None, None)


@pytest.mark.parametrize("known", [True, False])
def test_one_of_several_branches(tensorflow: Any, known: bool) -> None:
    tf = tensorflow

    @tf.function
    def choose(x: Any) -> Any:
        number = tf.constant(1) if known else tf.cast(x[0, 0], tf.int32)
        return {"y": tf.switch_case(number, [lambda: x, lambda: -x, lambda: tf.exp(x)])}

    concrete = choose.get_concrete_function(tf.TensorSpec((2, 3), tf.float32, name="x"))
    model = polyloom.from_tensorflow(concrete)
    for first in (-1, 0, 1, 2, 3):
        x = np.full((2, 3), first, np.float32)
        found = model.outputs(evaluate(model.program, model.inputs({"x": x})))
        np.testing.assert_allclose(found["y"], concrete(tf.constant(x))["y"].numpy(), rtol=1e-6)


def test_a_variable_that_changes_in_a_loop_is_refused(tensorflow: Any) -> None:
    tf = tensorflow
    total = tf.Variable(np.zeros(3, np.float32), name="total")

    @tf.function
    def step(x: Any) -> Any:
        for _ in tf.range(3):
            total.assign_add(x)
        return x * 2

    with pytest.raises(polyloom.Unsupported) as refused:
        polyloom.from_tensorflow(step.get_concrete_function(tf.TensorSpec((3,), tf.float32, name="x")))
    assert "a variable that changes inside a branch or loop" in refused.value.diagnostics[0].notes[0]


def test_variables_of_one_name_have_values_of_their_own(tensorflow: Any) -> None:
    tf = tensorflow
    first, second = (tf.Variable(np.asarray(v, np.float32), name="w") for v in ([1, 2], [10, 20]))

    @tf.function
    def step(x: Any) -> Any:
        y = x * first - second
        second.assign(y)
        return {"y": y}

    model = polyloom.from_tensorflow(step.get_concrete_function(tf.TensorSpec((2,), tf.float32, name="x")))
    found = model.outputs(evaluate(model.program, model.inputs({"x": np.asarray([3, 4], np.float32)})))
    assert set(found) == {"y", "w_1_new"}
    for array in found.values():
        np.testing.assert_array_equal(array, [-7, -12])


def test_operations_with_several_results_name_them_as_tensorflow_does(tensorflow: Any) -> None:
    from tensorflow.python.framework import op_def_registry

    definitions = {name: op_def_registry.get(name) for name in OPERATIONS}
    several = {
        name: tuple(a.name for a in found.output_arg)
        for name, found in definitions.items()
        if len(found.output_arg) > 1
    }
    assert several
    assert several == {name: OUTPUTS.get(name) for name in several}


def test_basic_pitch() -> None:
    """A SavedModel of 2022 (44 convolutions among 104 functions) gives what TensorFlow gives.

    ``basic_pitch.npz`` holds every 7th element of TensorFlow 2.21's results for the same input.
    """
    package = find_spec("basic_pitch")
    if package is None or package.origin is None:
        pytest.skip("the package basic-pitch is not installed")
    folder = Path(package.origin).parent / "saved_models" / "icassp_2022" / "nmp"
    model = import_tensorflow(folder, {"input_2": (1, 43844, 1)})
    x = np.random.default_rng(5).standard_normal((1, 43844, 1)).astype(np.float32) * np.float32(0.3)
    found = model.outputs(evaluate(model.program, model.inputs({"input_2": x})))
    with np.load(DATA / "basic_pitch.npz") as wanted:
        assert {*wanted} == {"contour", "note", "onset"}
        for name in wanted:
            np.testing.assert_allclose(found[name].reshape(-1)[::7], wanted[name], rtol=1e-4, atol=1e-5)
