"""Random ONNX graphs of many nodes, run on the processor beside onnxruntime and onnx's own evaluator.

    python tests/fuzz/graphs.py 0 100         seeds 0 to 99, one line for each that is not the same

``random_graph(seed)`` grows a graph node by node: windows with odd strides, paddings and groups, what follows
them in networks, movements, reductions, products; branches meet again, and several tensors are results. Each
node is tried on onnxruntime as it is added, which gives its shape and keeps numbers from growing too large.
``compare(model, seed)`` runs a graph with one thread or two. Inputs are reals of mixed magnitudes.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import models
import numpy as np
import onnx
from models import FRAGILE, Random, Verdict, ints, narrowed, pick, some_axes, some_axis, window
from onnx import helper, numpy_helper

from polyloom.device_pipeline import open_model
from polyloom.diagnostics import PolyloomError
from polyloom.frontends.graph.imported import Imported
from polyloom.frontends.graph.lowering import NOT_FORESEEN, lower
from polyloom.frontends.onnx.read import graph_of_bytes
from polyloom.frontends.onnx.table import find_operation
from polyloom.frontends.onnx.tensors import Place
from polyloom.ir import evaluate
from polyloom.ir.rounding.programs import error_bound
from polyloom.ir.verification.comparison import compared
from polyloom.mdh.native.device import choose

MOST_ELEMENTS = 9000
"""Of a tensor; the largest input has 8,619."""
LARGEST = 1e9
SLACK = 1e-6
"""How far off an element may be beside its bound, in units of the largest: functions of libraries differ."""

EXACT = frozenset({
    "Relu", "Max", "Min", "Clip", "Neg", "Abs", "MaxPool", "GlobalMaxPool", "Concat", "Slice", "Gather",
    "Split", "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Tile", "Pad", "Where",
    "DepthToSpace", "SpaceToDepth", "ReduceMax", "ReduceMin", "GatherElements", "Identity", "Trilu",
})  # fmt: skip
"""Operators that round nothing: what is decided by their results is decided the same everywhere."""


class Impossible(Exception):
    """A node that onnxruntime does not run, or whose results are too large."""


@dataclass(frozen=True)
class Known:
    """A tensor with what it holds for the inputs of the seed. ``exact``: whether nothing was rounded."""

    array: np.ndarray
    exact: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)


@dataclass
class Growing:
    """A graph that grows. ``special``: whether its inputs hold infinities and NaN."""

    r: Random
    seed: int
    opset: int
    kind: str
    special: bool
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    tensors: dict[str, Known] = field(default_factory=dict)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.tensors[name].shape

    def input(self, shape: Sequence[int]) -> str:
        name = f"x{len(self.inputs)}"
        array = data(self.seed, len(self.inputs), shape, self.kind, special=self.special)
        self.inputs[name] = array
        self.tensors[name] = Known(array, True)
        return name

    def weights(self, *shape: int) -> str:
        """Return a constant of reals, now and then with zeros."""
        found = self.r.standard_normal(shape) * pick(self.r, 0.1, 0.5, 0.5, 1)
        return self.constant(np.where(self.r.random(shape) < 0.1, 0, found).astype(self.kind))

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def add(self, op: str, *names: str, outputs: int = 1, **attributes: Any) -> str:
        """Add a node and return its first result. Errors: ``Impossible``."""
        if self.special and op in FRAGILE | {"ArgMax", "ArgMin", "TopK"}:
            raise Impossible
        made = [f"t{len(self.nodes)}" + "_" * k for k in range(outputs)]
        node = helper.make_node(op, [*names], made, f"n{len(self.nodes)}", **attributes)
        read = [n for n in dict.fromkeys(names) if n]
        given = {n: self.tensors[n].array for n in read if n in self.tensors}
        held = {n: self.constants[n] for n in read if n in self.constants}
        model = model_of([node], given, made, held, self.opset)
        results = models._tried(models._onnxruntime, model, given)
        if results is None:
            raise Impossible
        sizes = [np.abs(a[np.isfinite(a)]).max(initial=0) for a in results.values() if a.dtype.kind in "fi"]
        if any(a.size > MOST_ELEMENTS for a in results.values()) or any(s > LARGEST for s in sizes):
            raise Impossible
        if not self.special and any(
            a.dtype.kind == "f" and not np.isfinite(a).all() for a in results.values()
        ):
            raise Impossible
        exact = op in EXACT and all(self.tensors[n].exact for n in read if n in self.tensors)
        exact = exact or all(a.dtype.kind in "bui" for a in results.values())
        self.nodes.append(node)
        self.tensors |= {n: Known(a, exact) for n, a in results.items()}
        return made[0]

    def of(self, test: Callable[[Known], bool]) -> str:
        """Return a tensor that passes a test, a late one most often. Errors: ``Impossible``."""
        fit = [n for n, k in self.tensors.items() if k.array.dtype == self.kind and test(k)]
        if not fit:
            raise Impossible
        late = fit[-3:] if self.r.random() < 0.8 else fit
        return str(pick(self.r, *late))

    def image(self) -> str:
        """Return a tensor of a batch, channels and one to three axes of points."""
        return self.of(lambda k: 3 <= k.array.ndim <= 5 and k.array.size > 0)

    def some(self, least: int = 0) -> str:
        return self.of(lambda k: k.array.ndim >= least and (k.array.size > 0 or self.r.random() < 0.1))


def data(seed: int, number: int, shape: Sequence[int], kind: str, *, special: bool) -> np.ndarray:
    """Return reals of mixed magnitudes, from a hundredth to tens; zeros, infinities and NaN now and then."""
    r = np.random.default_rng([seed, number, 7])
    found = r.standard_normal(shape) * 2.0 ** r.integers(-6, 4, shape)
    found = np.where(r.random(shape) < 0.05, 0.0, found)
    if special:
        found = np.where(r.random(shape) < 0.03, r.choice([np.nan, np.inf, -np.inf], shape), found)
    return np.asarray(found, kind)


def model_of(
    nodes: Sequence[Any],
    inputs: Mapping[str, np.ndarray],
    results: Sequence[str],
    constants: Mapping[str, np.ndarray],
    opset: int,
    *,
    batch: bool = False,
) -> onnx.ModelProto:
    """Return a model. ``batch``: whether the first sizes of its inputs are left open."""
    ends = [
        helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(a.dtype), ["batch", *a.shape[1:]] if batch else a.shape
        )
        for n, a in inputs.items()
    ]
    held = [
        numpy_helper.from_array(np.ascontiguousarray(a).reshape(a.shape), n) for n, a in constants.items()
    ]
    declared = [helper.make_empty_tensor_value_info(n) for n in results]
    graph = helper.make_graph(nodes, "graph", ends, declared, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


# What a graph grows by


def conv(g: Growing) -> str:
    r, x = g.r, g.image()
    channels, spatial = g.shape(x)[1], g.shape(x)[2:]
    group = int(pick(r, 1, 1, *[n for n in (2, 3, channels) if channels % n == 0]))
    sizes = [int(n) for n in r.integers(1, 4, len(spatial))]
    if r.random() < 0.2:
        sizes = [1] * len(spatial)
    out = group * int(r.integers(1, max(2, 12 // group)))
    given = window(r, spatial, sizes)
    bias = [g.weights(out)] if r.random() < 0.5 else []
    return g.add("Conv", x, g.weights(out, channels // group, *sizes), *bias, group=group, **given)


def conv_block(g: Growing) -> str:
    """What networks are made of: a window, a normalisation, an activation, a sum with what came before."""
    r, x = g.r, g.image()
    channels, rank = g.shape(x)[1], len(g.shape(x)) - 2
    size, dilation = int(pick(r, 1, 3, 3, 5)), int(pick(r, 1, 1, 2))
    group = channels if r.random() < 0.25 else 1
    pads = [dilation * (size // 2)] * (2 * rank)
    w = g.weights(channels, channels // group, *[size] * rank)
    given = {"pads": pads, "dilations": [dilation] * rank, "group": group}
    y = g.add("Conv", x, w, *([g.weights(channels)] if r.random() < 0.5 else []), **given)
    if r.random() < 0.6 and not g.special:
        y = normalised(g, y)
    if r.random() < 0.5:
        y = activated(g, y)
    if r.random() < 0.6:
        y = g.add("Add", *(str(n) for n in r.permutation([x, y])))
    return activated(g, y) if r.random() < 0.5 else y


def normalised(g: Growing, y: str) -> str:
    n = g.shape(y)[1]
    variance = g.constant(np.abs(g.r.standard_normal(n) + 0.5).astype(g.kind))
    return g.add("BatchNormalization", y, g.weights(n), g.weights(n), g.weights(n), variance)


def activated(g: Growing, y: str) -> str:
    op = pick(
        g.r, "Relu", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid", "PRelu", "swish", "Erf"
    )
    if op == "swish":
        return g.add("Mul", y, g.add("Sigmoid", y))
    if op == "Clip":
        return g.add("Clip", y, g.constant(np.asarray(0, g.kind)), g.constant(np.asarray(6, g.kind)))
    if op == "PRelu":
        shape = g.shape(y)
        slope = [shape[1], *[1] * (len(shape) - 2)] if len(shape) > 2 else [1]
        return g.add("PRelu", y, g.weights(*slope))
    return g.add(op, y)


def activation(g: Growing) -> str:
    return activated(g, g.some())


def conv_transpose(g: Growing) -> str:
    r, x = g.r, g.image()
    channels, spatial = g.shape(x)[1], g.shape(x)[2:]
    sizes = [int(n) for n in r.integers(1, 4, len(spatial))]
    group = int(pick(r, 1, 1, *[n for n in (2, 3) if channels % n == 0]))
    given = window(r, spatial, sizes)
    if "auto_pad" not in given and "strides" in given and r.random() < 0.4:
        given["output_padding"] = [int(r.integers(0, s)) for s in given["strides"]]
    w = g.weights(channels, int(r.integers(1, 6)), *sizes)
    return g.add("ConvTranspose", x, w, group=group, **given)


def pool(g: Growing) -> str:
    r, x = g.r, g.image()
    spatial = g.shape(x)[2:]
    sizes = [int(r.integers(1, min(4, n + 1))) for n in spatial]
    op = pick(r, "MaxPool", "AveragePool")
    given = window(r, spatial, sizes, dilated=op == "MaxPool" or g.opset >= 19)
    if r.random() < 0.4:
        given["ceil_mode"] = 1
    if op == "AveragePool" and r.random() < 0.5:
        given["count_include_pad"] = 1
    return g.add(op, x, kernel_shape=sizes, **given)


def global_pool(g: Growing) -> str:
    return g.add(pick(g.r, "GlobalAveragePool", "GlobalMaxPool"), g.image())


def normalisation(g: Growing) -> str:
    r, x = g.r, g.of(lambda k: k.array.ndim >= 2 and k.array.size > 0)
    shape = g.shape(x)
    match int(r.integers(5)):
        case 0:
            return normalised(g, x)
        case 1:
            return g.add("InstanceNormalization", x, g.weights(shape[1]), g.weights(shape[1]))
        case 2:
            axis = some_axis(r, len(shape))
            own = shape[axis % len(shape) :]
            more = [g.weights(*own)] if r.random() < 0.5 else []
            if g.opset < 17:
                raise Impossible
            return g.add("LayerNormalization", x, g.weights(*own), *more, axis=axis)
        case 3:
            return g.add("LRN", g.add("Tanh", x), size=int(r.integers(1, 6)), alpha=0.3)
        case _:
            return g.add("LpNormalization", x, axis=some_axis(r, len(shape)), p=pick(r, 1, 2))


def resize(g: Growing) -> str:
    r, x = g.r, g.image()
    rank = len(g.shape(x))
    mode = pick(r, "nearest", "nearest", "linear", "cubic") if rank == 4 else "nearest"
    scales = [1, 1, *(float(pick(r, 0.5, 1, 1.5, 2, 2, 3)) for _ in range(rank - 2))]
    # of what corners are where a size is cut off, onnxruntime has another idea than onnx
    whole = all(float(n * s).is_integer() for n, s in zip(g.shape(x), scales, strict=True))
    given = {
        "mode": mode,
        "coordinate_transformation_mode": pick(r, "half_pixel", "asymmetric", *["align_corners"] * whole),
    }
    if mode == "nearest":
        given["nearest_mode"] = pick(r, "round_prefer_floor", "floor", "ceil")
    return g.add("Resize", x, "", g.constant(np.asarray(scales, "float32")), **given)


def gather(g: Growing) -> str:
    r, x = g.r, g.some(1)
    axis = some_axis(r, len(g.shape(x)))
    n = g.shape(x)[axis]
    if r.random() < 0.3:
        own = [int(r.integers(1, m + 1)) if m else 0 for m in g.shape(x)]
        return g.add("GatherElements", x, g.constant(r.integers(-n, n, own)), axis=axis)
    at = r.integers(-n, n, pick(r, [], [1], [3], [5], [2, 2]))
    return g.add("Gather", x, g.constant(at), axis=axis)


def slices(g: Growing) -> str:
    r, x = g.r, g.some(1)
    shape = g.shape(x)
    axes = some_axes(r, len(shape))
    steps = [int(pick(r, 1, 1, 2, 3, -1, -2)) for _ in axes]
    low = [int(r.integers(0, max(1, (shape[a] + 1) // 2))) for a in axes]
    high = [
        int(pick(r, shape[a], 2**31, -1, int(r.integers(low[k], shape[a] + 1)))) for k, a in enumerate(axes)
    ]
    starts = [h if s < 0 else n for n, h, s in zip(low, high, steps, strict=True)]
    ends = [
        n - 1 if s < 0 and n else -(2**31) if s < 0 else h for n, h, s in zip(low, high, steps, strict=True)
    ]
    if r.random() < 0.95 and 0 in [
        len(range(*slice(a, b if b > -99 else None, s).indices(shape[ax])))
        for a, b, s, ax in zip(starts, ends, steps, axes, strict=True)
    ]:
        raise Impossible
    return g.add("Slice", x, *(g.constant(ints(v)) for v in (starts, ends, axes, steps)))


def concat(g: Growing) -> str:
    r, x = g.r, g.some(1)
    shape = g.shape(x)
    axis = int(r.integers(len(shape)))

    def fits(k: Known) -> bool:
        return k.array.ndim == len(shape) and all(
            m == n or a == axis for a, (m, n) in enumerate(zip(k.shape, shape, strict=True))
        )

    parts = [x, *(g.of(fits) for _ in range(int(r.integers(1, 3))))]
    if r.random() < 0.2:
        parts.append(g.weights(*(int(r.integers(1, 4)) if a == axis else n for a, n in enumerate(shape))))
    return g.add(
        "Concat", *(str(n) for n in r.permutation(parts)), axis=axis - (len(shape) if r.random() < 0.5 else 0)
    )


def split(g: Growing) -> str:
    r, x = g.r, g.some(1)
    axis = some_axis(r, len(g.shape(x)))
    n = g.shape(x)[axis]
    if n < 2:
        raise Impossible
    cut = int(r.integers(1, n))
    return g.add("Split", x, g.constant(ints([cut, n - cut])), outputs=2, axis=axis)


def moved(g: Growing) -> str:
    r, x = g.r, g.some(1)
    shape = g.shape(x)
    match int(r.integers(8)):
        case 0 | 1:
            return g.add("Transpose", x, perm=r.permutation(len(shape)).tolist())
        case 2:
            wanted = [int(n) for n in r.permutation(shape)]
            at = int(r.integers(len(wanted)))
            wanted = [*wanted[:at], int(np.prod(wanted[at : at + 2])), *wanted[at + 2 :]]
            return g.add("Reshape", x, g.constant(ints(wanted)))
        case 3:
            n = int(r.integers(len(shape)))
            apart = [d for d in range(2, shape[n]) if shape[n] % d == 0] or [1]
            d = int(pick(r, *apart))
            return g.add("Reshape", x, g.constant(ints([*shape[:n], d, -1, *shape[n + 1 :]])))
        case 4:
            return g.add("Flatten", x, axis=int(r.integers(0, len(shape) + 1)))
        case 5:
            return g.add("Unsqueeze", x, g.constant(ints([int(r.integers(len(shape) + 1))])))
        case 6:
            return g.add("Tile", x, g.constant(r.integers(1, 3, len(shape))))
        case _:
            if len(shape) == 4 and shape[1] % 4 == 0:
                return g.add("DepthToSpace", x, blocksize=2, mode=pick(r, "DCR", "CRD"))
            return g.add("Expand", x, g.constant(ints([2, *[1] * len(shape)])))


def pad(g: Growing) -> str:
    r, x = g.r, g.some(1)
    shape = g.shape(x)
    mode = pick(r, "constant", "constant", "edge", "reflect")
    most = [n - 1 if mode == "reflect" else 3 for n in shape]
    pads = [int(r.integers(0, min(m, 3) + 1)) if r.random() < 0.6 else 0 for m in (*most, *most)]
    more = [g.constant(np.asarray(pick(r, 0, 0, 1.5), g.kind))] if mode == "constant" else []
    return g.add("Pad", x, g.constant(ints(pads)), *more, mode=mode)


def reduction(g: Growing) -> str:
    r, x = g.r, g.some(1)
    name = pick(r, "Sum", "Mean", "Mean", "Max", "Min", "L1", "L2", "SumSquare", "LogSumExp", "Prod")
    axes = some_axes(r, len(g.shape(x)))
    keep = int(r.random() < 0.7)
    if g.opset >= 18 or name == "Sum":
        return g.add(f"Reduce{name}", x, g.constant(ints(axes)), keepdims=keep)
    return g.add(f"Reduce{name}", x, axes=axes, keepdims=keep)


def softmax(g: Growing) -> str:
    x = g.some(1)
    return g.add(pick(g.r, "Softmax", "Softmax", "LogSoftmax"), x, axis=some_axis(g.r, len(g.shape(x))))


def product(g: Growing) -> str:
    r, x = g.r, g.some(1)
    shape = g.shape(x)
    n = int(r.integers(1, 12))
    match int(r.integers(4)):
        case 0:
            lead = narrowed(r, shape[:-2])
            return g.add("MatMul", x, g.weights(*lead, shape[-1], n))
        case 1 if len(shape) > 1:
            lead = narrowed(r, shape[:-2])
            return g.add("MatMul", g.weights(*lead, n, shape[-2]), x)
        case 2 if len(shape) > 1:
            perm = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
            return g.add("MatMul", x, g.add("Transpose", x, perm=perm))
        case _:
            y = x if len(shape) == 2 else g.add("Flatten", x, axis=int(r.integers(0, len(shape) + 1)))
            m, k = g.shape(y)
            a, b = (int(v) for v in r.integers(0, 2, 2))
            rows, inner = (k, m) if a else (m, k)
            c = [g.weights(*pick(r, [n], [1, n], [rows, n], [rows, 1], [1], []))] if r.random() < 0.6 else []
            given = {"transA": a, "transB": b} | ({"alpha": 0.5} if r.random() < 0.3 else {})
            given |= {"beta": -1.5} if r.random() < 0.3 else {}
            return g.add("Gemm", y, g.weights(*((n, inner) if b else (inner, n))), *c, **given)


def binary(g: Growing) -> str:
    r, x = g.r, g.some()
    shape = g.shape(x)
    op = pick(r, "Add", "Add", "Sub", "Mul", "Mul", "Div", "Max", "Min")

    def fits(k: Known) -> bool:
        try:
            return np.broadcast_shapes(k.shape, shape) is not None
        except ValueError:
            return False

    y = g.of(fits) if r.random() < 0.6 else g.weights(*narrowed(r, shape))
    if op == "Div":
        y = g.add("Add", g.add("Abs", y if y in g.tensors else x), g.constant(np.asarray(0.5, g.kind)))
    return g.add(op, *(str(n) for n in ([x, y] if op == "Div" else r.permutation([x, y]))))


def unary(g: Growing) -> str:
    r, x = g.r, g.some()
    op = pick(
        r, "Neg", "Abs", "Exp", "Sqrt", "Tanh", "Sigmoid", "Softplus", "Sin", "Elu", "Reciprocal", "Identity"
    )
    if op == "Exp":
        x = g.add("Min", x, g.constant(np.asarray(3, g.kind)))
    if op in ("Sqrt", "Reciprocal"):
        x = g.add("Add", g.add("Abs", x), g.constant(np.asarray(0.25, g.kind)))
    return g.add(op, x)


def decided(g: Growing) -> str:
    """What numbers decide, where nothing was rounded before: the same everywhere."""
    r = g.r
    x = g.of(lambda k: k.exact and k.array.ndim > 0 and k.array.size > 0)
    shape, axis = g.shape(x), some_axis(r, len(g.shape(x)))
    match int(r.integers(4)):
        case 0:
            return g.add(pick(r, "Floor", "Ceil", "Round", "Sign"), x)
        case 1:
            at = g.add(pick(r, "ArgMax", "ArgMin"), x, axis=axis, keepdims=1)
            return g.add("Cast", at, to=helper.np_dtype_to_tensor_dtype(np.dtype(g.kind)))
        case 2:
            k = int(r.integers(1, shape[axis] + 1))
            return g.add("TopK", x, g.constant(ints([k])), outputs=2, axis=axis)
        case _:
            truth = g.add(pick(r, "Greater", "Less", "LessOrEqual"), x, g.weights(*narrowed(r, shape)))
            y = g.of(lambda k: k.shape == shape)
            return g.add(
                "Where", truth, *(str(n) for n in r.permutation([y, g.weights(*narrowed(r, shape))]))
            )


def various(g: Growing) -> str:
    r, x = g.r, g.some(1)
    shape = g.shape(x)
    match int(r.integers(3)):
        case 0:
            return g.add(
                "CumSum", x, g.constant(np.asarray(some_axis(r, len(shape)))), reverse=int(r.integers(2))
            )
        case 1 if len(shape) > 1:
            return g.add("Trilu", x, g.constant(np.asarray(int(r.integers(-2, 3)))), upper=int(r.integers(2)))
        case _:
            low, high = sorted(r.standard_normal(2))
            return g.add("Clip", x, g.constant(np.asarray(low, g.kind)), g.constant(np.asarray(high, g.kind)))


GROWTH: tuple[Callable[[Growing], str], ...] = (
    conv, conv, conv_block, conv_block, conv_block, conv_transpose, pool, pool, global_pool, normalisation,
    resize, gather, slices, slices, concat, concat, split, moved, moved, pad, reduction, softmax, product,
    product, binary, binary, binary, unary, decided, various, activation,
)  # fmt: skip


def random_graph(seed: int) -> onnx.ModelProto:
    """Return the graph of a seed."""
    r = np.random.default_rng(seed)
    kind = "float64" if r.random() < 0.15 else "float32"
    g = Growing(r, seed, int(pick(r, 13, 17, 18, 20)), kind, r.random() < 0.1)
    batch, channels = int(pick(r, 1, 1, 2, 3)), int(r.integers(1, 18))
    spatial = [int(n) for n in r.integers(3, 14, int(pick(r, 1, 2, 2, 2, 2, 3)))]
    spatial = [min(n, 6) for n in spatial] if len(spatial) == 3 else spatial
    first = (
        [batch, channels, *spatial] if r.random() < 0.8 else [batch, *(int(n) for n in r.integers(1, 12, 2))]
    )
    g.input(first)
    while r.random() < 0.3:
        g.input(first if r.random() < 0.5 else [batch, *narrowed(r, first[1:])])
    steps = int(r.integers(2, 10))
    for _ in range(3 * steps):
        if len(g.nodes) >= 2 * steps:
            break
        try:
            pick(r, *GROWTH)(g)
        except Impossible:
            continue
    return _finished(g)


def _finished(g: Growing) -> onnx.ModelProto:
    """Return the model: its results are what nothing reads, and now and then a tensor on the way."""
    read = {n for node in g.nodes for n in node.input}
    made = [n for node in g.nodes for n in node.output]
    results = [n for n in made if n not in read or g.r.random() < 0.1] or ["t0"]
    if not g.nodes:
        g.add("Identity", "x0")
    used = {n: a for n, a in g.constants.items() if n in read}
    model = model_of(g.nodes, g.inputs, results, used, g.opset)
    helper.set_model_props(model, {"special": json.dumps(g.special)})
    return model


# What a graph gives


def inputs_of(model: onnx.ModelProto, seed: int) -> dict[str, np.ndarray]:
    """Return the inputs of a graph for a seed."""
    special = any(p.key == "special" and json.loads(p.value) for p in model.metadata_props)
    found = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        kind = str(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        shape = [d.dim_value for d in tensor.shape.dim]
        found[value.name] = data(seed, int(value.name[1:]), shape, kind, special=special)
    return found


def compare(model: onnx.ModelProto, seed: int) -> Verdict:
    """Run a graph with the inputs of a seed in every way there is."""
    given = inputs_of(model, seed)
    try:
        imported = lower(graph_of_bytes(model.SerializeToString(), "it", Place(None)), find_operation)
        return _judged(model, imported, given, 1 + seed % 2)
    except PolyloomError as refused:
        reason = " ".join((refused.diagnostics[0].message, *refused.diagnostics[0].notes))
        return Verdict("crash" if NOT_FORESEEN in reason else "refused", reason)
    except Exception as fault:
        return Verdict("crash", f"{type(fault).__name__}: {fault}"[:2000])


def _judged(
    model: onnx.ModelProto, imported: Imported, given: Mapping[str, np.ndarray], threads: int
) -> Verdict:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        inputs = imported.inputs(dict(given))
        meant = imported.outputs(evaluate(imported.program, inputs))
        bounds = error_bound(imported.program, inputs)
    limits = {n: bounds.get(v.tensor, np.zeros(())) for n, v in imported.results.items()}
    limits = {n: limits[n] if np.shape(limits[n]) == a.shape else np.zeros(a.shape) for n, a in meant.items()}
    program = open_model(imported, choose("native", threads=threads))
    needed = {n: a for n, a in inputs.items() if n in imported.arguments}
    ours = imported.outputs({**inputs, **program.run(**needed).arrays})
    if fault := _difference(ours, meant, limits, 1):
        return Verdict("wrong", f"beside the statements as read: {fault}")
    references = [
        f for run in (models._onnxruntime, models._evaluator) if (f := models._tried(run, model, given))
    ]
    if not references:
        return Verdict("unjudged")
    faults = [_difference(ours, reference, limits, 2) for reference in references]
    if not faults[0]:
        return Verdict("same")
    return Verdict("disputed" if "" in faults else "wrong", f"beside onnxruntime: {faults[0]}")


def _difference(
    found: Mapping[str, np.ndarray],
    wanted: Mapping[str, np.ndarray],
    limits: Mapping[str, np.ndarray],
    factor: float,
) -> str:
    """Return where results are further off than their bounds, else the empty text."""
    for name, right in wanted.items():
        array = found[name]
        if array.shape != right.shape or array.dtype != right.dtype:
            return f"`{name}` is {array.dtype}{array.shape}, not {right.dtype}{right.shape}"
        if right.dtype.kind != "f":
            if not np.array_equal(array, right):
                return f"`{name}` is {array.reshape(-1)[:8]}, not {right.reshape(-1)[:8]}"
            continue
        single = np.finfo(right.dtype).eps / np.finfo("float32").eps
        largest = np.abs(right[np.isfinite(right)]).max(initial=0.0).astype(float)
        verdict = compared(
            {name: array}, {name: right}, {name: factor * limits[name] + SLACK * single * largest}
        )
        if verdict.mismatches:
            return verdict.mismatches[0]
    return ""


def main() -> int:
    first, last = int(sys.argv[1]), int(sys.argv[2])
    counts: Counter[str] = Counter()
    for seed in range(first, last):
        model = random_graph(seed)
        verdict = compare(model, seed)
        counts[verdict.status] += 1
        if verdict.status != "same":
            ops = " ".join(n.op_type for n in model.graph.node)
            print(f"{seed} {verdict.status}: {verdict.reason[:300]} [{ops}]", flush=True)
        if verdict.is_fault:
            Path(f"/tmp/polyloom-graph-{seed}.onnx").write_bytes(model.SerializeToString())
    print(dict(counts))
    return 1 if counts["wrong"] or counts["crash"] else 0


if __name__ == "__main__":
    sys.exit(main())
