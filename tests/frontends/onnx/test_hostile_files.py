"""Files that are broken, or lie: one diagnostic each, in little time and memory."""

from __future__ import annotations

import os
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx_files import declared, function, graph, model, node, tensor

from polyloom import PolyloomError, Unsupported
from polyloom.cli.main import run
from polyloom.frontends.graph import lowering
from polyloom.frontends.graph.lowering import lower
from polyloom.frontends.graph.operations import unrolling
from polyloom.frontends.onnx import import_onnx
from polyloom.frontends.onnx.read import graph_of_bytes
from polyloom.frontends.onnx.table import find_operation
from polyloom.frontends.onnx.tensors import Place
from polyloom.ir import evaluate
from random_tests import tried
from samples import LATER


def good() -> bytes:
    nodes = [
        node("Conv", "x w", "c", "conv", pads=[1, 1]),
        node("Concat", "c c", "d", axis=1),
        node("Reshape", "d s", "r"),
        node("ReduceMean", "r a", "y", keepdims=0),
    ]
    constants = {
        "w": np.ones((2, 1, 3), np.float32),
        "s": np.asarray([4, -1]),
        "a": np.asarray([1]),
    }
    return model(graph(nodes, {"x": (1, 1, 8)}, ["y"], constants))


def outcome(data: bytes) -> str:
    """Return ``imported`` or the code of the diagnostic; anything else is a fault of ours."""
    try:
        lower(graph_of_bytes(data, "it", Place(None)), find_operation)
    except PolyloomError as refused:
        return refused.diagnostics[0].code
    return "imported"


KNOWN = {
    "imported",
    "model-broken",
    "model-shape",
    "model-type",
    "model-opset",
    "model-inexpressible",
    "model-outputs",
}


def test_every_beginning_of_a_file() -> None:
    data = good()
    assert outcome(data) == "imported"
    assert {outcome(data[:k]) for k in range(len(data))} <= KNOWN


@tried(300)
@given(st.data())
def test_changed_bytes(data: Any) -> None:
    changed = bytearray(good())
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    assert outcome(bytes(changed)) in KNOWN


@tried(100)
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    assert outcome(data) in KNOWN


BIG = np.asarray([1 << 40, 1 << 20])


def _lying_tensor() -> Any:
    found = tensor("w", np.ones(3, np.float32))
    found.dims[0] = 1 << 40
    return found


def _nested(depth: int) -> Any:
    body = graph([node("Relu", "x", "y")], {}, ["y"])
    for _ in range(depth):
        body = graph([node("If", "yes", "y", then_branch=body, else_branch=body)], {}, ["y"])
        if len(body.SerializeToString()) > 1 << 20:
            break
    return body


HOSTILE = {
    "a constant of a declared size": graph([node("ConstantOfShape", "s", "y")], {}, ["y"], {"s": BIG}),
    "an expansion": graph(
        [node("Expand", "x s", "e"), node("Relu", "e", "y")], {"x": (1,)}, ["y"], {"s": BIG}
    ),
    "an expansion that is an output": graph([node("Expand", "x s", "y")], {"x": (1,)}, ["y"], {"s": BIG}),
    "tiles": graph([node("Tile", "x s", "y")], {"x": (1, 1)}, ["y"], {"s": BIG}),
    "padding": graph([node("Pad", "x s", "y")], {"x": (1,)}, ["y"], {"s": BIG}),
    "a range": graph(
        [node("Range", "a b c", "y")],
        {},
        ["y"],
        {"a": np.int64(0), "b": np.int64(1 << 60), "c": np.int64(1)},
    ),
    "one-hot": graph(
        [node("OneHot", "x d v", "y")],
        {"x": declared("x", (4,), "int64")},
        ["y"],
        {"d": np.int64(1 << 50), "v": np.asarray([0, 1], np.float32)},
    ),
    "a window": graph([node("HannWindow", "n", "y")], {}, ["y"], {"n": np.int64(1 << 50)}),
    "a resize": graph(
        [node("Resize", "x - s", "y")], {"x": (1, 4)}, ["y"], {"s": np.asarray([1, 1e12], np.float32)}
    ),
    "an input": graph([node("Relu", "x", "y")], {"x": (1 << 40, 1 << 20)}, ["y"]),
    "endless passes": graph(
        [
            node(
                "Loop",
                "n - x",
                "y",
                body=graph(
                    [node("Identity", "g", "h"), node("Add", "s s", "t")],
                    {"k": declared("k", (), "int64"), "g": declared("g", (), "bool"), "s": (1,)},
                    ["h", "t"],
                ),
            )
        ],
        {"x": (1,)},
        ["y"],
        {"n": np.int64(1 << 60)},
    ),
    "a ring": graph([node("Add", "x b", "a"), node("Relu", "a", "b")], {"x": (2,)}, ["b"]),
    "no output": graph([node("Relu", "x", "y")], {"x": (2,)}, []),
    "an output of nothing": graph([node("Relu", "x", "y")], {"x": (2,)}, ["z"]),
    "a stride of 0": graph(
        [node("MaxPool", "x", "y", kernel_shape=[2], strides=[0])], {"x": (1, 1, 4)}, ["y"]
    ),
    "a negative window": graph([node("MaxPool", "x", "y", kernel_shape=[-2])], {"x": (1, 1, 4)}, ["y"]),
    "an attribute of another kind": graph([node("Softmax", "x", "y", axis="a")], {"x": (1, 4)}, ["y"]),
    "nested bodies": _nested(12),
}


LONG = ("endless passes", "nested bodies")
"""Graphs that take seconds where every allocation is counted."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=LATER if n in LONG else ()) for n in HOSTILE])
def test_a_hostile_graph_is_refused_at_once(name: str) -> None:
    data = model(HOSTILE[name])
    tracemalloc.start()
    started = time.process_time()
    assert outcome(data) in KNOWN - {"imported"}
    assert time.process_time() - started < 10
    assert tracemalloc.get_traced_memory()[1] < 300 * 2**20
    tracemalloc.stop()


def test_a_tensor_that_says_it_is_larger_than_its_bytes() -> None:
    body = graph([node("Add", "x w", "y")], {"x": (3,)}, ["y"])
    body.initializer.append(_lying_tensor())
    assert outcome(model(body)) == "model-inexpressible"


CONSTANTS = {
    "f": np.ones((2, 2), np.float32),
    "v": np.ones(3, np.float32),
    "i": np.ones((2, 2), np.int32),
    "none": np.zeros(0, np.int64),
    "several": np.asarray([1, 2]),
    "nan": np.full(1, np.nan, np.float32),
    "many": np.ones(2**20, np.int64),
    "true": np.asarray([[True, False], [True, True]]),
    "weights": np.ones((1, 4, 3), np.float32),
    "image": np.ones((1, 1, 2, 2), np.float32),
    "boxes": np.ones((1, 4), np.float32),
    "zero": np.zeros(1, np.int64),
    "large": np.asarray([1, 1, 10**8, 1]),
}
UNFIT = {
    "two types": node("Gemm", "x i", "y", "odd"),
    "a root of integers": node("Sqrt", "i", "y", "odd"),
    "an operand too few": node("Where", "true x", "y", "odd"),
    "an operand too many": node("Where", "true x f x", "y", "odd"),
    "no condition": node(
        "If", "none", "y", "odd", then_branch=graph([], {}, ["x"]), else_branch=graph([], {}, ["x"])
    ),
    "several depths": node("OneHot", "i several v", "y", "odd"),
    "a depth that is no number": node("OneHot", "i nan v", "y", "odd"),
    "a bias of the wrong rank": node("Conv", "weights weights f", "y", "odd"),
    "a shape of a million extents": node("Reshape", "x many", "y", "odd"),
    "a million parts": node("Split", "x", "y", "odd", num_outputs=2**31),
    "initial states of the wrong rank": node(
        "LSTM", "weights weights weights - - v", "y", "odd", hidden_size=1
    ),
    "scales that are no numbers": node("Resize", "v - nan", "y", "odd"),
    "numbers of billions of elements": node("ArgMax", "huge", "y", "odd", axis=0),
    "a sequence of billions": node("SplitToSequence", "huge", "y", "odd", keepdims=0),
    "billions of points": node(
        "RoiAlign", "image boxes zero", "y", "odd", sampling_ratio=2**30, output_height=1
    ),
    "an image of a hundred million rows": node("Resize", "image - - large", "y", "odd", mode="nearest"),
    "an attribute that divides by 0": node("Attention", "weights weights weights", "y", "odd", q_num_heads=0),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_node_whose_operands_do_not_fit(name: str) -> None:
    data = model(graph([UNFIT[name]], {"x": (2, 2), "huge": (2**31,)}, ["y"], CONSTANTS), opset=23)
    with pytest.raises(Unsupported) as refused:
        lower(graph_of_bytes(data, "it", Place(None)), find_operation)
    assert any(note.startswith("odd (") for note in refused.value.diagnostics[0].notes)


def test_a_function_that_calls_itself() -> None:
    endless = function("F", "a", "b", [node("F", "a", "b", domain="own"), node("F", "b", "c", domain="own")])
    body = graph([node("F", "x", "y", domain="own")], {"x": (2,)}, ["y"])
    assert outcome(model(body, functions=[endless])) == "model-broken"


def test_other_files(tmp_path: Path) -> None:
    for data in (b"", b"\x00" * 100, b"PK\x03\x04", b"{}", bytes(range(256))):
        path = tmp_path / "other.onnx"
        path.write_bytes(data)
        with pytest.raises(PolyloomError) as refused:
            import_onnx(path)
        assert refused.value.diagnostics[0].code == "model-broken"
    with pytest.raises(PolyloomError, match="file-missing"):
        import_onnx(tmp_path / "none.onnx")


def looped(passes: int | None, again: Any, nested: int = 0) -> Any:
    """Return a model that adds 1 in a loop; ``again``: the node that tells whether it goes on."""
    body = [node("Add", "s one", "t"), again]
    if nested:
        inner = looped(nested, again).node[0]
        body = [inner, again]
    names = {"k": declared("k", (), "int64"), "g": declared("g", (), "bool"), "s": (1,)}
    results = ["h", "t"] if not nested else ["h", "y"]
    loop = node("Loop", "n - x" if passes is not None else "- - x", "y", body=graph(body, names, results))
    if nested:
        loop.attribute[0].g.node[0].input[2] = b"s"
    constants = {"one": np.ones(1, np.float32), "last": np.int64(-1), "n": np.int64(passes or 0)}
    return graph([loop], {"x": (1,)}, ["y"], constants)


ON = node("Identity", "g", "h")


@pytest.mark.parametrize("passes", [0, 1, 7, 60])
def test_a_loop_makes_all_its_passes(passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unrolling, "MOST_STEPS", 60)
    imported = lower(graph_of_bytes(model(looped(passes, ON)), "it", Place(None)), find_operation)
    found = imported.outputs(evaluate(imported.program, imported.inputs({"x": np.ones(1, np.float32)})))
    assert found["y"].tolist() == [1.0 + passes]


@pytest.mark.parametrize("passes", [61, 62, 1 << 40, None])
def test_a_loop_is_never_cut(passes: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unrolling, "MOST_STEPS", 60)
    assert outcome(model(looped(passes, ON))) == "model-inexpressible"


def test_passes_of_nested_loops_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(model(looped(20, ON, nested=20))) == "imported"
    monkeypatch.setattr(lowering, "MOST_BODIES", 300)
    assert outcome(model(looped(20, ON, nested=20))) == "model-inexpressible"


BROKEN = {
    "a ring": [node("Add", "x b", "a"), node("Relu", "a", "y"), node("Relu", "y", "b")],
    "an order": [node("Relu", "b", "y"), node("Relu", "x", "b")],
    "nothing": [node("Relu", "b", "y")],
    "a tensor twice": [node("Relu", "x", "y"), node("Abs", "x", "y")],
    "an input again": [node("Relu", "x", "x"), node("Relu", "x", "y")],
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_graph_that_contradicts_itself(name: str) -> None:
    assert outcome(model(graph(BROKEN[name], {"x": (2,)}, ["y"]))) == "model-broken"


FALSE = {
    "a rank": declared("y", (2, 2)),
    "an extent": declared("y", (7,)),
    "a type": declared("y", (2,), "int32"),
}


@pytest.mark.parametrize("name", FALSE)
@pytest.mark.parametrize("field", ["output", "value_info"])
def test_what_is_declared_has_to_be_true(name: str, field: str) -> None:
    body = graph([node("Abs", "x", "y"), node("Relu", "y", "z")], {"x": (2,)}, ["y", "z"])
    assert outcome(model(body)) == "imported"
    if field == "output":
        body.output[0].CopyFrom(FALSE[name])
    else:
        body.value_info.append(FALSE[name])
    assert outcome(model(body)) == "model-broken"


@pytest.mark.parametrize("shape", [(2,), ("n",), None])
def test_what_is_declared_may_be_open(shape: Any) -> None:
    body = graph([node("Relu", "x", "y")], {"x": (2,)}, ["y"])
    body.output[0].CopyFrom(declared("y", shape))
    assert outcome(model(body)) == "imported"


@pytest.mark.parametrize("sizes", [(2, 2), (5, 5), (3, 2)])
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_a_window_that_is_not_that_of_the_filters(op: str, sizes: tuple[int, ...]) -> None:
    def said(window: tuple[int, ...]) -> str:
        odd = node(op, "x w", "y", kernel_shape=list(window))
        return outcome(
            model(graph([odd], {"x": (1, 2, 8, 8)}, ["y"], {"w": np.ones((2, 2, 3, 3), np.float32)}))
        )

    assert said((3, 3)) == "imported"
    assert said(sizes) == "model-inexpressible"


DOUBLED = {
    "Concat": lambda a, b: node("Concat", f"{a} {a}", b, axis=0),
    "Pad": lambda a, b: node("Pad", f"{a} pads", b),
    "Tile": lambda a, b: node("Tile", f"{a} two", b),
    "Gather": lambda a, b: node("Gather", f"{a} twice", b, axis=1),
}


@pytest.mark.parametrize("name", DOUBLED)
def test_constants_that_grow_stay_small_in_memory(name: str) -> None:
    held = {"pads": np.asarray([0, 0, 1 << 20, 0]), "two": np.asarray([2, 1]), "twice": np.asarray([0, 0])}
    nodes = [DOUBLED[name](f"t{k}", f"t{k + 1}") for k in range(27)]
    last = [node("ReduceSum", "t27", "s", keepdims=0), node("Add", "x s", "y")]
    constants = {"t0": np.ones((4, 1), np.float32), **held}
    body = graph([*nodes, *last], {"x": (1,)}, ["y"], constants)
    tracemalloc.start()
    started = time.process_time()
    assert outcome(model(body)) in KNOWN
    assert time.process_time() - started < 10
    assert tracemalloc.get_traced_memory()[1] < 700 * 2**20
    tracemalloc.stop()


def stored(location: str, **more: int) -> bytes:
    found = tensor("w", np.ones(4, np.float32))
    found.ClearField("raw_data")
    found.data_location = 1
    for key, value in {"location": location, **more}.items():
        entry = found.external_data.add()
        entry.key, entry.value = key.encode(), str(value).encode()
    body = graph([node("Add", "x w", "y")], {"x": (4,)}, ["y"])
    body.initializer.append(found)
    return model(body)


def test_elements_in_other_files(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "w.bin").write_bytes(np.ones(4, np.float32).tobytes())
    (tmp_path / "outside.bin").write_bytes(np.ones(4, np.float32).tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    (folder / "ring").symlink_to(folder / "ring")
    (folder / "folder").mkdir()
    with (folder / "sparse.bin").open("wb") as file:
        file.truncate(1 << 40)
    os.mkfifo(folder / "fifo")

    def said(location: str, **more: int) -> str:
        (folder / "m.onnx").write_bytes(stored(location, **more))
        try:
            import_onnx(folder / "m.onnx")
        except Unsupported as refused:
            return refused.diagnostics[0].notes[0]
        return "imported"

    assert said("w.bin") == said("./folder/../w.bin") == said("w.bin", offset=0, length=16) == "imported"
    assert "outside the model's folder" in said("../outside.bin")
    assert "outside the model's folder" in said(str(tmp_path / "outside.bin"))
    assert "outside the model's folder" in said("link.bin")
    for odd in ("fifo", "folder", ".", "none", "a\0b", "x" * 5000, "ring", "/dev/zero", "../model/fifo"):
        assert "-> y (Add): `w`" in said(odd)
    assert "elements" in said("sparse.bin")
    for more in ({"offset": -1}, {"offset": 8}, {"length": 8}, {"length": 1 << 60}, {"offset": 1 << 70}):
        assert "-> y (Add): `w`" in said("w.bin", **more)


def test_names_of_files_are_shown_as_escapes(tmp_path: Path, capsys: Any) -> None:
    odd = "\x1b]0;owned\x07a\nerror: fake\x9b31m\u202e"
    path = tmp_path / "m.onnx"
    for op in ("Relu", "Nope\x1b[31m"):
        body = graph([node(op, "x", "y", name=odd)], {"x": (2,)}, ["y"], name=odd)
        path.write_bytes(model(body))
        run(["show", str(path)])
        found = capsys.readouterr()
        shown = found.out + found.err
        assert "\\x1b]0;owned\\x07a\\nerror: fake" in shown
        assert not any(c in shown for c in "\x1b\x07\x9b\u202e")
        assert not any(line.startswith("error: fake") for line in shown.splitlines())
