"""NaN, infinities, rows masked whole, shifts beyond the width: what ONNX and NumPy say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_files import declared, graph, model, node

from polyloom import Unsupported
from polyloom.frontends.graph.lowering import lower
from polyloom.frontends.onnx.read import graph_of_bytes
from polyloom.frontends.onnx.table import find_operation
from polyloom.frontends.onnx.tensors import Place
from polyloom.ir import evaluate

NAN = float("nan")


def computed(one: Any, given: dict[str, Any], opset: int = 18, constants: Any = None) -> dict[str, Any]:
    inputs = {n: declared(n, a.shape, a.dtype.name) for n, a in given.items()}
    outputs = [o.decode() for o in one.output]
    data = model(graph([one], inputs, outputs, constants), opset=opset)
    imported = lower(graph_of_bytes(data, "it", Place(None)), find_operation)
    return imported.outputs(evaluate(imported.program, imported.inputs(given)))


def rows(kind: str) -> np.ndarray:
    r = np.random.default_rng(5)
    x = r.integers(-3, 4, (200, 5)).astype(kind)
    x[r.random(x.shape) < 0.3] = NAN
    x[r.random(x.shape) < 0.1] = np.inf
    return x


@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
def test_nan_is_larger_than_every_number_in_order(kind: str) -> None:
    x = rows(kind)
    size = {"k": np.asarray([5])}
    for largest in (0, 1):
        found = computed(node("TopK", "x k", "y p", axis=1, largest=largest), {"x": x}, constants=size)
        wanted = np.sort(x, axis=1)[:, :: -1 if largest else 1]
        np.testing.assert_array_equal(found["y"], wanted)
        np.testing.assert_array_equal(np.take_along_axis(x, found["p"], 1), wanted)
        assert (np.sort(found["p"], axis=1) == np.arange(5)).all()


@pytest.mark.parametrize(("op", "numpy"), [("ArgMax", np.argmax), ("ArgMin", np.argmin)])
def test_nan_is_the_extreme(op: str, numpy: Any) -> None:
    x = rows("float32")
    found = computed(node(op, "x", "y", axis=1, keepdims=0), {"x": x})["y"]
    np.testing.assert_array_equal(found, numpy(x, axis=1))
    last = computed(node(op, "x", "y", axis=1, keepdims=0, select_last_index=1), {"x": x})["y"]
    np.testing.assert_array_equal(last, 4 - numpy(x[:, ::-1], axis=1))


def test_places_of_maxima_of_windows_with_nan_lie_inside() -> None:
    x = rows("float32")[:40].reshape(1, 1, 10, 20)
    found = computed(node("MaxPool", "x", "y p", kernel_shape=[2, 2], strides=[2, 2]), {"x": x})
    np.testing.assert_array_equal(x.reshape(-1)[found["p"]], found["y"])


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_nan_and_infinities_reach_the_channels_around_alone(kind: str, size: int) -> None:
    x = rows(kind)[:48].reshape(2, 6, 4, 5)
    x[0, 0, 0, 0], x[0, 5, 0, 0] = np.inf, -np.inf
    found = computed(node("LRN", "x", "y", alpha=0.5, beta=0.25, bias=2.0, size=size), {"x": x})["y"]
    before, after = (size - 1) // 2, size // 2
    for c in range(6):
        squares = (x[:, max(0, c - before) : c + after + 1] ** 2).sum(axis=1)
        with np.errstate(invalid="ignore"):
            wanted = x[:, c] / (2 + 0.5 / size * squares) ** 0.25
        np.testing.assert_allclose(found[:, c], wanted, rtol=1e-6)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_nan_stays_near_where_it_is(mode: str) -> None:
    x = np.zeros((1, 1, 12), np.float32)
    x[0, 0, 2] = NAN
    scales = {"s": np.asarray([1, 1, 2], np.float32)}
    found = computed(node("Resize", "x - s", "y", mode=mode), {"x": x}, constants=scales)["y"][0, 0]
    assert np.isnan(found[4:6]).all()
    assert (found[10:] == 0).all()


@pytest.mark.parametrize("kind", ["int8", "int32", "uint8", "uint64"])
def test_bits_that_are_shifted_out(kind: str) -> None:
    width = 8 * np.dtype(kind).itemsize
    amounts = [0, 1, width - 1, width, width + 1, np.iinfo(kind).max, np.iinfo(kind).min]
    pairs = [(v, n) for v in (np.iinfo(kind).min, -2 if kind[0] != "u" else 2, 5) for n in amounts]
    x, n = (np.asarray(c, kind) for c in zip(*pairs, strict=True))
    for direction in ("LEFT", "RIGHT"):
        found = computed(node("BitShift", "x n", "y", direction=direction), {"x": x, "n": n}, opset=28)["y"]
        assert found.tolist() == [shifted(int(v), int(k), direction, kind, width) for v, k in pairs]


def shifted(value: int, amount: int, direction: str, kind: str, width: int) -> int:
    if direction == "RIGHT":
        return value >> amount if 0 <= amount < width else -1 if value < 0 else 0
    wide = value << amount if 0 <= amount < width else 0
    low = wide % 2**width
    return low - 2**width if kind[0] != "u" and low >= 2 ** (width - 1) else low


def attention(q: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Return attention of ``q`` to itself where it is allowed; rows without a key are 0."""
    scores = np.where(allowed, np.einsum("bhsd,bhtd->bhst", q, q) / np.sqrt(q.shape[-1]), -np.inf)
    most = scores.max(axis=-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isneginf(most), 0, most))
    total = powers.sum(axis=-1, keepdims=True)
    return np.einsum("bhst,bhtd->bhsd", powers / np.where(total == 0, 1, total), q)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("left", [-1, 0, 2])
@pytest.mark.parametrize("right", [-1, 1])
@pytest.mark.parametrize("lengths", [None, (4, 2), (6, 0)])
def test_attention_to_places(causal: int, left: int, right: int, lengths: Any) -> None:
    q = np.random.default_rng(3).standard_normal((2, 2, 6, 4)).astype(np.float32)
    given = {"q": q} | ({} if lengths is None else {"n": np.asarray(lengths)})
    names = "q q q" + ("" if lengths is None else " - - - n")
    one = node("Attention", names, "y", is_causal=causal, left_window_size=left, right_window_size=right)
    i, j = np.ogrid[:6, :6]
    ends = np.asarray(lengths or (6, 6)).reshape(2, 1, 1, 1)
    place = i + ends - 6
    allowed = (j < ends) & (j >= place - left if left >= 0 else True)
    allowed = allowed & (j <= place if causal else True) & (j <= place + right if right >= 0 else True)
    found = computed(one, given, opset=25)["y"]
    np.testing.assert_allclose(found, attention(q, allowed), rtol=1e-5, atol=1e-6)


def test_rows_that_a_mask_excludes_whole() -> None:
    q = np.random.default_rng(3).standard_normal((1, 1, 4, 4)).astype(np.float32)
    truth = np.asarray([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1]], bool)
    for mask in (truth, np.where(truth, 0, -np.inf).astype(np.float32)):
        found = computed(node("Attention", "q q q m", "y"), {"q": q, "m": mask}, opset=24)["y"]
        np.testing.assert_allclose(found, attention(q, truth), rtol=1e-5, atol=1e-6)


def test_heads_that_nobody_states() -> None:
    x = np.ones((1, 4, 8), np.float32)
    with pytest.raises(Unsupported):
        computed(node("Attention", "x x x", "y"), {"x": x}, opset=24)


@pytest.mark.parametrize(("mode", "before"), [("NOTSET", 2), ("SAME_LOWER", 2), ("SAME_UPPER", 1)])
def test_an_odd_padding_of_a_transposed_convolution(mode: str, before: int) -> None:
    """Three elements are cut off; ONNX cuts the larger part in front but for SAME_UPPER."""
    x, w = np.ones((1, 1, 2), np.float32), np.arange(1, 6, dtype=np.float32).reshape(1, 1, 5)
    full = np.convolve([1, 1], np.arange(1, 6))
    one = node("ConvTranspose", "x w", "y", auto_pad=mode, output_shape=[3])
    found = computed(one, {"x": x}, constants={"w": w})["y"]
    assert found.reshape(-1).tolist() == full[before : before + 3].tolist()


def test_softplus_where_it_is_small() -> None:
    x = np.asarray([-30, -20, -5, 0, 20], np.float32)
    found = computed(node("Softplus", "x", "y"), {"x": x})["y"]
    np.testing.assert_allclose(found, np.log1p(np.exp(x.astype(float))), rtol=1e-6)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["asinh", "acosh", "atanh"])
def test_inverses_of_hyperbolic_functions_are_right_near_0_and_far_out(name: str, kind: str) -> None:
    """Their squares overflow far out, and a logarithm of nearly 1 has no digits near 0."""
    limits = np.finfo(kind)
    sizes = np.geomspace(limits.smallest_normal * 4, limits.max / 4, 301)
    x = np.asarray([0.0, *sizes, *-sizes, 1 + 1 / 64, 63 / 64, np.inf, -np.inf, NAN, 1.0, -1.0]).astype(kind)
    found = computed(node(name.capitalize(), "x", "y"), {"x": x}, opset=22)["y"]
    with np.errstate(all="ignore"):
        wanted = getattr(np, "arc" + name[1:])(x.astype("float64")).astype(kind)
    np.testing.assert_allclose(found, wanted, rtol=float(8 * limits.eps))
