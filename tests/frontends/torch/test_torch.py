"""Programs of torch.export: what the importer makes of them computes what PyTorch computed."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyloom.cli.main import run
from polyloom.diagnostics import PolyloomError, Unsupported
from polyloom.frontends.graph.imported import Imported
from polyloom.frontends.graph.model import Node, widened, widened_name
from polyloom.frontends.torch import float8, import_torch
from polyloom.frontends.torch.bfloat16 import OPERATION, rounded
from polyloom.frontends.torch.in_place import base_name, without_in_place
from polyloom.frontends.torch.table import OPERATIONS
from polyloom.ir.evaluation.programs import evaluate
from polyloom.ir.scalar_functions.evaluation import from_bfloat16
from samples import one_in

DATA = Path(__file__).parents[2] / "data" / "torch"
PROGRAMS = sorted(path.stem for path in DATA.glob("*.pt2"))
TOLERANCE = 1e-5
"""Relative to the largest element of a tensor (or to 1): PyTorch sums in another order."""


def stored(name: str) -> tuple[dict[str, Any], list[Any]]:
    """Return a case's inputs by name, and its outputs in order."""
    with np.load(DATA / f"{name}.npz") as arrays:
        inputs = {key[3:]: arrays[key] for key in arrays if key.startswith("in/")}
        count = sum(key.startswith("out/") for key in arrays)
        return inputs, [arrays[f"out/{k}"] for k in range(count)]


def computed(model: Imported, inputs: dict[str, Any]) -> list[Any]:
    return [*model.outputs(evaluate(model.program, model.inputs(inputs))).values()]


def imported(name: str) -> Imported:
    inputs, _ = stored(name)
    open_sizes = {key: array.shape for key, array in inputs.items()} if name.startswith("dynamic") else {}
    return import_torch(DATA / f"{name}.pt2", open_sizes)


def assert_same(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for number, (have, want) in enumerate(zip(found, wanted, strict=True)):
        assert have.shape == want.shape, number
        assert have.dtype == want.dtype, number
        bound = TOLERANCE * max(1, np.abs(want).max(initial=0))
        assert np.abs(have.astype(float) - want).max(initial=0) <= bound, number


def test_the_corpus_is_there() -> None:
    training = [name for name in PROGRAMS if name.endswith(".train")]
    core = [name for name in PROGRAMS if name.endswith(".core")]
    assert len(training) >= 15 and len(core) >= 80 and len(PROGRAMS) - len(core) - len(training) >= 82


@pytest.mark.parametrize("name", one_in(2, PROGRAMS))
def test_a_program_computes_what_pytorch_computes(name: str) -> None:
    inputs, outputs = stored(name)
    assert_same(computed(imported(name), inputs), outputs)


# -- names


def test_modules_and_parameters_keep_their_names() -> None:
    model = imported("residual")
    assert {"conv.weight", "bn.weight", "bn.running_var"} <= {*model.names.values()}
    assert {"conv.conv2d", "bn.batch_norm"} <= {row.node for row in model.rows}
    assert [*model.results] == ["image"]


def test_gradients_have_the_names_of_their_parameters() -> None:
    model = imported("batch_norm.train")
    assert "module.0.weight_grad" in model.results
    assert "module.1.running_mean_new" in model.results


def test_a_sum_of_products_stays_one_statement() -> None:
    assert len(imported("einsum").program.statements) == 1
    assert len(imported("conv2d").program.statements) == 3  # padding, convolution, bias


def test_an_open_size_is_asked_for_by_its_name() -> None:
    with pytest.raises(Unsupported) as caught:
        import_torch(DATA / "dynamic.pt2")
    note = caught.value.diagnostics[0].notes[0]
    symbol = note.partition("[")[2].partition(",")[0]
    model = import_torch(DATA / "dynamic.pt2", {symbol: (2,)})
    assert [v.shape for v in model.results.values()] == [(2, 3)]


def test_a_size_outside_of_the_range_of_the_file_is_refused() -> None:
    with pytest.raises(PolyloomError) as caught:
        import_torch(DATA / "dynamic.pt2", {"s31": (65,)})
    (fault,) = caught.value.diagnostics
    assert fault.code == "model-size" and fault.notes == ("`s31` is 65, and at most 64 by the file",)


def test_a_dimension_has_one_size_wherever_it_stands(tmp_path: Path) -> None:
    def change(model: dict[str, Any]) -> None:
        for name in ("x", "y"):
            model["graph_module"]["graph"]["tensor_values"][name]["sizes"][0] = {
                "as_expr": {"expr_str": "s0"}
            }
        model["range_constraints"] = {"s0": {"min_val": 0, "max_val": None}}

    path = tmp_path / "program.pt2"
    path.write_bytes(changed("arithmetic", change))
    assert import_torch(path, {"x": (5, 4), "y": (5, 4)})
    with pytest.raises(PolyloomError) as caught:
        import_torch(path, {"x": (5, 4), "y": (1, 4)})
    assert caught.value.diagnostics[0].notes == ("`s0` is 5 in `x`, and 1 in `y`",)


def asserting(model: dict[str, Any]) -> None:
    """Let a program assert that its first input has at least 3 rows."""
    specs = model["graph_module"]["signature"]["input_specs"]
    given = next(s["user_input"]["arg"] for s in specs if "user_input" in s)
    size = {"as_sym_int": {"as_name": "rows"}}
    rows = {"name": "self", "arg": given}, {"name": "dim", "arg": {"as_int": 0}}
    enough = {"name": "a", "arg": size}, {"name": "b", "arg": {"as_int": 3}}
    holds = {"as_sym_bool": {"as_name": "enough"}}
    said = {"name": "self", "arg": holds}, {"name": "assert_msg", "arg": {"as_string": "three rows"}}
    least = {"name": "size", "arg": size}, {"name": "min", "arg": {"as_int": 2}}
    nodes_of(model)[:0] = [
        {"target": "torch.ops.aten.sym_size.int", "inputs": [*rows], "outputs": [size], "metadata": {}},
        {"target": "_operator.ge", "inputs": [*enough], "outputs": [holds], "metadata": {}},
        {
            "target": "torch.ops.aten.sym_constrain_range.default",
            "inputs": [*least],
            "outputs": [],
            "metadata": {},
        },
        {"target": "torch.ops.aten._assert_scalar.default", "inputs": [*said], "outputs": [], "metadata": {}},
    ]


@pytest.mark.parametrize(
    ("rows", "said"), [(3, ()), (2, ("three rows",)), (1, ("a size is in the range 2 to None",))]
)
def test_what_is_asserted_of_sizes_is_checked(tmp_path: Path, rows: int, said: tuple[str, ...]) -> None:
    path = tmp_path / "program.pt2"
    path.write_bytes(changed("dynamic", asserting))
    if not said:
        assert not import_torch(path, {"s31": (rows,)}).remarks
        return
    with pytest.raises(PolyloomError) as caught:
        import_torch(path, {"s31": (rows,)})
    (fault,) = caught.value.diagnostics
    assert fault.code == "model-size" and fault.notes == said


def test_what_is_asserted_of_data_is_remarked(capsys: pytest.CaptureFixture[str]) -> None:
    found = [remark.notes for remark in imported("index.core").remarks]
    assert found == [
        ("one_hot: Class values must be non-negative.",),
        ("one_hot: Class values must be smaller than num_classes.",),
    ]
    assert run(["show", str(DATA / "index.core.pt2")]) == 0
    assert "model-unchecked" in capsys.readouterr().err


def test_the_command_line_reads_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", str(DATA / "mlp.pt2")]) == 0
    assert "0.linear" in capsys.readouterr().out


# -- what is refused


def changed(name: str, change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return an archive with another JSON."""
    packed = io.BytesIO()
    with zipfile.ZipFile(DATA / f"{name}.pt2") as old, zipfile.ZipFile(packed, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename.endswith("models/model.json"):
                model = json.loads(content)
                change(model)
                content = json.dumps(model).encode()
            new.writestr(info.filename, content)
    return packed.getvalue()


def refusal(folder: Path, data: bytes) -> PolyloomError:
    path = folder / "program.pt2"
    path.write_bytes(data)
    with pytest.raises(PolyloomError) as caught:
        import_torch(path)
    return caught.value


def nodes_of(model: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = model["graph_module"]["graph"]["nodes"]
    return found


def test_every_unknown_operation_is_named(tmp_path: Path) -> None:
    def change(model: dict[str, Any]) -> None:
        for node in nodes_of(model):
            if "linear" in node["target"]:
                node["target"] = "torch.ops.aten.unheard_of.default"

    fault = refusal(tmp_path, changed("mlp", change))
    assert isinstance(fault, Unsupported)
    assert len(fault.diagnostics[0].notes) == 2
    assert "aten.unheard_of.default" in fault.diagnostics[0].notes[0]


def test_writing_into_what_others_see_is_refused(tmp_path: Path) -> None:
    def change(model: dict[str, Any]) -> None:
        for node in nodes_of(model):
            if node["target"].endswith("aten.relu.default"):
                node["target"] = "torch.ops.aten.relu_.default"
                node["inputs"][0]["arg"] = {"as_tensor": {"name": "input"}}

    (fault,) = refusal(tmp_path, changed("mlp", change)).diagnostics
    assert "relu_" in str(fault.notes)
    assert "run_decompositions" in fault.helps[0]


def test_a_result_that_is_written_into_is_what_it_becomes(tmp_path: Path) -> None:
    """``y = x * 2; y.relu_().mul_(z).add_(1); return y``: all three changes are seen in ``y``."""

    def change(model: dict[str, Any]) -> None:
        (spec,) = model["graph_module"]["signature"]["output_specs"]
        spec["user_output"]["arg"]["as_tensor"]["name"] = nodes_of(model)[0]["outputs"][0]["as_tensor"][
            "name"
        ]

    path = tmp_path / "program.pt2"
    path.write_bytes(changed("in_place", change))
    with np.load(DATA / "in_place.npz") as arrays:
        given = {name[3:]: arrays[name] for name in arrays.files if name.startswith("in/")}
        model = import_torch(path)
        (found,) = model.outputs(evaluate(model.program, model.inputs(given))).values()
        np.testing.assert_allclose(found, arrays["out/0"], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.ci
def test_an_archive_that_unpacks_to_much(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(DATA / "mlp.pt2") as old,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for info in old.infolist():
            content = old.read(info)
            new.writestr(info.filename, bytes(5 * 2**26) if info.filename.endswith("weight_0") else content)
    assert "unpacks" in str(refusal(tmp_path, packed.getvalue()).diagnostics[0].notes)


def test_another_schema_is_refused(tmp_path: Path) -> None:
    def change(model: dict[str, Any]) -> None:
        model["schema_version"]["major"] = 7

    assert refusal(tmp_path, changed("mlp", change)).diagnostics[0].code == "model-opset"


def archive(**entries: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for name, content in entries.items():
            file.writestr(f"program/{name}", content)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "model-broken"),
        (b"PK\x03\x04 no zip file", "model-broken"),
        (archive(), "model-broken"),
        (archive(**{"models/model.json": b"{"}), "model-broken"),
        (archive(**{"models/model.json": b"[]"}), "model-broken"),
        (archive(**{"models/model.json": b"[" * 100_000}), "model-broken"),
        (archive(**{"models/model.json": b'{"schema_version": {"major": 8}}'}), "model-broken"),
        (archive(**{"models/a.json": b"{}", "models/b.json": b"{}"}), "model-opset"),
        (archive(**{"serialized_exported_program.json": b"{}"}), "model-opset"),
        (archive(**{"data/aotinductor/model/model.so": b""}), "model-opset"),
    ],
)
def test_what_is_no_program(tmp_path: Path, data: bytes, code: str) -> None:
    assert refusal(tmp_path, data).diagnostics[0].code == code


def test_weights_that_do_not_fit_their_shape(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(DATA / "mlp.pt2") as old, zipfile.ZipFile(packed, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            new.writestr(info.filename, content[:8] if info.filename.endswith("weight_0") else content)
    assert "storage" in str(refusal(tmp_path, packed.getvalue()).diagnostics[0].notes)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return every container of a JSON value with every key in it."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    found = [(value, key) for key in keys]
    return found + [place for key in keys for place in _places(value[key])]


@pytest.mark.parametrize("seed", range(60))
def test_a_changed_program_is_read_or_refused(tmp_path: Path, seed: int) -> None:
    """Nothing but a diagnostic comes of a program that says something else somewhere."""
    chance = random.Random(seed)
    name = chance.choice(["conv2d", "mlp", "reductions.core", "views", "lstm", "max_pool.core", "index"])

    def change(model: dict[str, Any]) -> None:
        for _ in range(chance.randint(1, 2)):
            container, key = chance.choice(_places(model["graph_module"]))
            if chance.random() < 0.3:
                del container[key]
            else:
                container[key] = chance.choice([None, -1, 0, 3, 2**40, 1.5, "x", "", [], {}, [1, 2], True])

    path = tmp_path / "program.pt2"
    path.write_bytes(changed(name, change))
    try:
        import_torch(path)
    except PolyloomError as refused:
        assert refused.diagnostics


def test_the_table_has_no_operation_that_writes_into_its_operand() -> None:
    assert [name for name in OPERATIONS if name.endswith("_") and not name.endswith("__")] == ["aten.detach_"]


# -- arguments that nobody knows


def with_argument(name: str, operation: str, argument: str, value: dict[str, Any]) -> bytes:
    """Return an archive in which all calls of an operation have a further argument."""

    def change(model: dict[str, Any]) -> None:
        for node in nodes_of(model):
            if node["target"].split(".")[3] == operation:
                node["inputs"].append({"name": argument, "arg": value, "kind": 2})

    return changed(name, change)


@pytest.mark.parametrize(("name", "operation"), [("mlp", "linear"), ("mlp", "relu"), ("conv2d", "conv2d")])
@pytest.mark.parametrize(
    "value",
    [{"as_int": 1}, {"as_bool": False}, {"as_string": "new"}, {"as_float": 0.5}, {"as_weights": 3}],
)
def test_an_unknown_argument_is_refused_by_name(
    name: str, operation: str, value: dict[str, Any], tmp_path: Path
) -> None:
    fault = refusal(tmp_path, with_argument(name, operation, "tomorrow", value))
    assert isinstance(fault, Unsupported) and fault.exit_status == 3
    for note in fault.diagnostics[0].notes:
        assert f"argument `tomorrow` is not known of aten.{operation}.default" in note


def test_an_argument_that_is_not_given_or_of_the_memory_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "program.pt2"
    for argument, value in (("tomorrow", {"as_none": True}), ("pin_memory", {"as_bool": True})):
        path.write_bytes(with_argument("mlp", "relu", argument, value))
        assert import_torch(path).rows


@pytest.mark.parametrize(
    ("name", "operation", "argument", "value"),
    [("conv2d.core", "convolution", "output_padding", {"as_ints": [1, 1]})],
)
def test_only_the_neutral_value_is_taken(
    name: str, operation: str, argument: str, value: dict[str, Any], tmp_path: Path
) -> None:
    def change(model: dict[str, Any]) -> None:
        for node in nodes_of(model):
            for given in node["inputs"] if f".{operation}." in node["target"] else []:
                if given["name"] == argument:
                    given["arg"] = value

    assert f"`{argument}`" in refusal(tmp_path, changed(name, change)).diagnostics[0].notes[0]


def test_the_type_of_a_result_has_to_be_the_stated_one(tmp_path: Path) -> None:
    def change(model: dict[str, Any]) -> None:
        for node in nodes_of(model):
            if node["target"].endswith("aten.linear.default"):
                name = node["outputs"][0]["as_tensor"]["name"]
                model["graph_module"]["graph"]["tensor_values"][name]["dtype"] = 8  # float64

    assert "the file says float64" in refusal(tmp_path, changed("mlp", change)).diagnostics[0].notes[0]


# -- sizes that are of nothing


def test_a_size_of_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Unsupported) as caught:
        import_torch(DATA / "dynamic.pt2")
    symbol = caught.value.diagnostics[0].notes[0].partition("[")[2].partition(",")[0]
    right = ["-D", f"{symbol}=2"]
    assert run(["show", str(DATA / "dynamic.pt2"), *right]) == 0
    capsys.readouterr()
    assert run(["show", str(DATA / "dynamic.pt2"), *right, "-D", "wrong=2"]) == 1
    message = capsys.readouterr().err
    assert "model-size" in message and "`wrong`" in message and f"`{symbol}`, `input`" in message


@pytest.mark.parametrize("verb", ["show", "run", "trace", "simulate"])
def test_arguments_of_c_functions_are_none_of_models(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([verb, str(DATA / "mlp.pt2"), "--param", "batch=2"]) == 2
    assert "-D NAME=8" in capsys.readouterr().err


def test_operations_in_place_become_functions() -> None:
    def named(op: str, *names: str) -> Node:
        return Node(names[-1], f"aten.{op}.default", names[:-1], names[-1:])

    def ops(*nodes: Node) -> list[tuple[str, tuple[str, ...]]]:
        return [(base_name(n.op), n.inputs) for n in without_in_place(nodes)[0]]

    plus, times = named("add", "x", "x", "y"), named("mul_", "y", "x", "m")
    assert ops(plus, times, named("sub", "y", "m", "z")) == [
        ("add", ("x", "x")),
        ("mul", ("y", "x")),
        ("sub", ("m", "m")),
    ]
    again = named("exp_", "y", "e"), named("sub", "y", "m", "z")
    assert [inputs for _, inputs in ops(plus, times, *again)][2:] == [("m",), ("e", "e")]
    for before in (named("view", "y", "v"), named("anything", "y", "v")):
        assert ("mul_", ("y", "x")) in ops(plus, before, times, named("sub", "v", "m", "z"))
    assert without_in_place([plus, times, named("exp_", "m", "e")])[1] == {"y": "e", "m": "e", "e": "e"}
    assert ("relu_", ("x",)) in ops(named("relu_", "x", "z"))


def test_bfloat16_is_rounded_where_it_is_stored_and_not_where_elements_only_move() -> None:
    nodes = [
        Node("a", "aten.add.Tensor", ("x", "w"), ("a",)),
        Node("v", "aten.view.default", ("a",), ("v",)),
        Node("f", "aten._to_copy.default", ("v",), ("f",)),
        Node("c", "aten.cat.default", ("v", "f"), ("c",)),
    ]
    found = [(n.op, n.inputs, n.outputs) for n in rounded(nodes, {"x", "w", "a", "v", "c"})]
    assert found == [
        ("aten.add.Tensor", ("x", "w"), ("a as float32",)),
        (OPERATION, ("a as float32",), ("a",)),
        ("aten.view.default", ("a",), ("v",)),
        ("aten._to_copy.default", ("v",), ("f",)),
        ("aten.cat.default", ("v", "f"), ("c as float32",)),
        (OPERATION, ("c as float32",), ("c",)),
    ]


def test_weights_of_float8_are_moved_and_converted_and_read_by_nothing_else() -> None:
    unreadable: dict[str, str] = {}
    nodes = [
        Node("", "aten.t.default", ("w",), ("moved",)),
        Node("", "aten.to.dtype", ("moved",), ("y",)),
        Node("", "aten.mul.Tensor", ("moved", "y"), ("z",)),
        Node("", "aten.view.default", ("w",), ("result",)),
        Node("", "aten.t.default", ("y",), ("other",)),
    ]
    meaning = partial(float8.on_float32, {})
    read = widened(nodes, {"w": "float8"}, unreadable, ["result"], meaning)
    found = [(n.inputs[0], n.outputs[0]) for n in read]
    held, wide = widened_name("w"), widened_name("moved")
    assert found == [(held, wide), (wide, "y"), ("moved", "z"), ("w", "result"), ("y", "other")]
    assert unreadable == dict.fromkeys(["w", "moved"], "its elements are of type float8")


def test_elements_of_bfloat16_are_read_by_their_bits() -> None:
    bits = np.array([0x3F80, 0xC000, 0x7F80, 0x0001], np.uint16)
    assert from_bfloat16(bits).tolist() == [1.0, -2.0, np.inf, 2.0**-133]
