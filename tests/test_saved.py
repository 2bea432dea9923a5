"""Functions saved and taken back, without a compiler; open sizes, batches, arrays of other libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.function.container import Container, write_container

EXAMPLES = Path(__file__).parents[1] / "examples"
CNN = EXAMPLES / "models" / "cnn.onnx"
AXPY = "void axpy(int n, float a, float x[n], float y[n]) { for (int i = 0; i < n; i++) y[i] += a * x[i]; }"
IMAGE = np.random.default_rng(1).normal(size=(1, 1, 28, 28)).astype(np.float32)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved function of C, built for 6 and 9 elements."""
    path = tmp_path_factory.mktemp("saved") / "axpy.loom"
    polyloom.load(AXPY).save(path, {"n": 6}, {"n": 9})
    return path


def axpy(f: Any, n: int) -> Any:
    y = np.ones(n, np.float32)
    assert f(n, 2.0, np.arange(n, dtype=np.float32), y) is y
    np.testing.assert_array_equal(y, 1 + 2 * np.arange(n))


def test_a_function_of_c_comes_back(saved: Path) -> None:
    f = polyloom.load(saved)
    assert repr(f) == repr(polyloom.load(AXPY))
    axpy(f, 6)
    axpy(f, 9)
    assert "loaded" not in f.__dict__  # nothing was read for these
    axpy(f, 7)  # another size: the source is read and built
    assert f.run(6, 2.0, np.ones(6, np.float32), np.ones(6, np.float32), check=True).passed
    assert "y[i]" in str(f.explain())


@pytest.mark.slow
@pytest.mark.ci
def test_no_compiler_is_needed_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "cnn.loom"
    model = polyloom.load(CNN)
    np.save(tmp_path / "image.npy", IMAGE)
    np.save(tmp_path / "wanted.npy", model(IMAGE))
    model.save(path, source=False)
    program = (
        "import numpy, polyloom, sys\n"
        "from polyloom.mdh.native import build\n"
        "build._run = None\n"
        "model = polyloom.load(sys.argv[1] + '/cnn.loom')\n"
        "found = model(numpy.load(sys.argv[1] + '/image.npy'))\n"
        "assert numpy.array_equal(found, numpy.load(sys.argv[1] + '/wanted.npy'))\n"
        "print(repr(model))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    environment = {"PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == repr(model)
    with pytest.raises(polyloom.PolyloomError, match="saved-source"):
        _ = polyloom.load(path).program


def changed(path: Path, to: Path, **manifest: Any) -> Path:
    found = Container(path)
    members = {name: found.member(name) for name in found.manifest["members"]}
    write_container(to, {**found.manifest, **manifest}, members)
    return to


def test_what_does_not_fit_is_refused(saved: Path, tmp_path: Path) -> None:
    flags = [*Container(saved).manifest["processor"], "no_processor_has_this"]
    cases = {
        "saved-version": {"polyloom": "0.0.1"},
        "saved-processor": {"processor": flags},
    }
    assert isinstance(polyloom.load(changed(saved, tmp_path / "same")), polyloom.Function)
    for code, manifest in cases.items():
        with pytest.raises(polyloom.PolyloomError) as refused:
            polyloom.load(changed(saved, tmp_path / "other", **manifest))
        assert [d.code for d in refused.value.diagnostics] == [code] and refused.value.diagnostics[0].helps
    with pytest.raises(polyloom.PolyloomError, match="save-device"):
        polyloom.load(saved, device="cpu")


def test_every_damaged_byte_is_seen(saved: Path, tmp_path: Path) -> None:
    data = saved.read_bytes()
    path = tmp_path / "damaged"
    for at in (*range(100, len(data), len(data) // 23), len(data) - 1):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        try:
            f = polyloom.load(path)
            f._source  # noqa: B018 - it is read now
        except polyloom.PolyloomError as fault:
            assert fault.diagnostics[0].code == "saved-broken"
        else:  # a byte of the zip file's own directory that says nothing
            axpy(f, 6)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(polyloom.PolyloomError, match="saved-broken"):
        polyloom.load(path)


def test_it_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(polyloom.PolyloomError, match="save-sizes"):
        polyloom.load(AXPY).save(tmp_path / "axpy.loom")
    with pytest.raises(polyloom.PolyloomError, match="file-unwritable"):
        polyloom.load(AXPY).save(tmp_path / "none" / "axpy.loom", {"n": 6})
    assert list(tmp_path.iterdir()) == []


def matrix_product() -> Any:
    """Return a model of ONNX whose first dimension is open."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    w = np.arange(15, dtype=np.float32).reshape(5, 3)
    ends = [helper.make_tensor_value_info(n, 1, ["batch", k]) for n, k in (("x", 5), ("y", 3))]
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "open", ends[:1], ends[1:], [onnx.numpy_helper.from_array(w, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), w


def test_open_sizes_are_made_once_each_and_kept(tmp_path: Path) -> None:
    model, w = matrix_product()
    f = polyloom.load(model)
    assert (f.inputs["x"].shape, repr(f.outputs["y"])) == (("batch", 5), "float32[batch][3]")
    for rows in (2, 4, 2):
        x = np.random.default_rng(rows).integers(-5, 5, (rows, 5)).astype(np.float32)
        np.testing.assert_array_equal(f(x), x @ w)
    assert repr(f) == "<open(x: float32[batch][5]), 2 sizes made>"
    x = np.ones((10, 5), np.float32)
    np.testing.assert_array_equal(f.batches(x, size=4), x @ w)
    with pytest.raises(polyloom.Unsupported, match="model-shape"):
        _ = f.program
    assert repr(f.at(batch=2)) == "<open(x: float32[2][5]) -> y: float32[2][3]>"
    f.save(tmp_path / "open.loom")
    g = polyloom.load(tmp_path / "open.loom")
    for rows in (2, 3):
        np.testing.assert_array_equal(g(x[:rows]), x[:rows] @ w)
    assert repr(g) == "<open(x: float32[batch][5]), 3 sizes made>"


def test_batches_of_a_fixed_size() -> None:
    f = polyloom.load(CNN)
    images = np.random.default_rng(2).normal(size=(3, 1, 28, 28)).astype(np.float32)
    wanted = np.concatenate([f(images[k : k + 1]) for k in range(3)])
    np.testing.assert_array_equal(f.batches(images), wanted)
    layer = polyloom.load(
        "lair f(): float32 x[2][3] -> float32 y[2][3] { all (i, j) in (2, 3) y[i][j] = x[i][j] + 1 }"
    )
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    np.testing.assert_array_equal(layer.batches(x), x + 1)
    for given, code in ((np.float32(1), "batch-rows"), (x[:0], "batch-rows")):
        with pytest.raises(polyloom.PolyloomError, match=code):
            layer.batches(given)
    with pytest.raises(polyloom.PolyloomError, match="batch-size"):
        layer.batches(x, size=3)


def test_packed_copies_of_reshaped_constants_are_filled() -> None:
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    ends = [
        helper.make_tensor_value_info(n, k, s)
        for n, k, s in (("x", 1, [1, 4, 6, 6]), ("y", 1, None), ("i", 7, None))
    ]
    node = helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2], strides=[2, 2])
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = np.random.default_rng(1).normal(size=(1, 4, 6, 6)).astype(np.float32)
    y, places = polyloom.load(model)(x)
    np.testing.assert_array_equal(x.reshape(-1)[places], y)


@pytest.mark.slow
@pytest.mark.ci
def test_times_name_the_kernels() -> None:
    times = polyloom.load(CNN).times(runs=2)
    names = [name for name, *_ in times.kernels]
    assert {"relu1", "dense"} <= set(names) and times.total > 0
    assert [s for _, s, *_ in times.kernels] == sorted((s for _, s, *_ in times.kernels), reverse=True)
    assert str(times).splitlines()[1].split() == ["kernel", "µs", "share", "runs", "schedule"]
    assert times._repr_html_().count("<tr>") == 1 + len(names)
    assert "float32[1][1][28][28]" in polyloom.load(CNN)._repr_html_()


class Foreign:
    """An array of another library, known by DLPack alone."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **_: Any) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class WithInterface:
    def __init__(self, array: Any) -> None:
        self.array, self.__array_interface__ = array, array.__array_interface__


class Elsewhere:
    """An array in the memory of another device."""

    def __dlpack__(self, **_: Any) -> Any:
        raise BufferError("it is on a GPU")

    def __dlpack_device__(self) -> Any:
        return 2, 0


def test_arrays_of_other_libraries_are_taken_where_they_lie() -> None:
    f = polyloom.load(AXPY)
    x = np.arange(6, dtype=np.float32)
    for kind in (Foreign, WithInterface):
        y = np.ones(6, np.float32)
        given = WithInterface(y)
        assert f(6, 2.0, kind(x), given) is given
        np.testing.assert_array_equal(y, 1 + 2 * x)  # changed in place
    with pytest.raises(polyloom.PolyloomError, match=r"input-exchange(.|\n)*it is on a GPU"):
        f(6, 2.0, Elsewhere(), np.ones(6, np.float32))


def test_tensors_of_torch_go_in_and_come_out() -> None:
    torch = pytest.importorskip("torch")
    f = polyloom.load(AXPY)
    y = torch.ones(6)
    assert f(6, 2.0, torch.arange(6.0), y) is y and y.tolist() == [1, 3, 5, 7, 9, 11]
    model = polyloom.load(CNN)
    found = model(torch.from_numpy(IMAGE).requires_grad_())
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.numpy(), model(IMAGE))
