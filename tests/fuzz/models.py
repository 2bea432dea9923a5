"""Random ONNX models of the table's operators, held against onnxruntime and onnx's own evaluator.

    python tests/fuzz/models.py 0 1000        seeds 0 to 999, one line for each that is not the same

``random_model(seed)`` makes a model of one operator with random attributes, types, ranks and opset, sometimes
with a map behind it. ``compare(model, seed)`` runs it both ways. The same seed makes the same model.
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

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from polyloom.diagnostics import PolyloomError
from polyloom.frontends.graph.lowering import NOT_FORESEEN, lower
from polyloom.frontends.onnx.read import graph_of_bytes
from polyloom.frontends.onnx.table import find_operation
from polyloom.frontends.onnx.tensors import Place
from polyloom.ir import evaluate

Random = np.random.Generator
FLOATS = ("float32", "float32", "float64", "float16")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
OPSETS = (13, 14, 15, 17, 18, 19, 20, 21)


@dataclass(frozen=True)
class Verdict:
    """``status``: same, refused, unjudged (no reference), disputed (references differ), wrong or crash."""

    status: str
    reason: str = ""

    @property
    def is_fault(self) -> bool:
        """Tell whether it is a fault of ours."""
        return self.status in ("wrong", "crash")


@dataclass
class Call:
    """One operator. ``operands``: arrays, None where one is missing; those in ``fixed`` are constants.

    ``ranges``: of the whole numbers that an operand may hold, which is else a matter of its type.
    """

    op: str
    operands: Sequence[np.ndarray | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    opset: int = 18
    outputs: int = 1
    fixed: Sequence[int] = ()
    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)


def numbers(r: Random, shape: Sequence[int], kind: str) -> np.ndarray:
    """Return numbers of mixed scale, or whole ones of a type's range (small ones most often)."""
    if kind == "bool":
        return r.integers(0, 2, shape).astype(bool)
    if kind.startswith("float"):
        found = r.standard_normal(shape) * r.choice([0.1, 1, 1, 4])
        return np.where(r.random(shape) < 0.1, np.round(found), found).astype(kind)
    info = np.iinfo(kind)
    if r.random() < 0.25:
        return r.integers(info.min, info.max, shape, dtype=kind, endpoint=True)
    return r.integers(max(info.min, -9), 10, shape).astype(kind)


def shape_of(r: Random, low: int = 0, high: int = 4, most: int = 5) -> list[int]:
    return [int(n) for n in r.integers(1, most + 1, int(r.integers(low, high + 1)))]


def pick(r: Random, *options: Any) -> Any:
    return options[int(r.integers(len(options)))]


def some_axis(r: Random, rank: int) -> int:
    return int(r.integers(-rank, rank))


def some_axes(r: Random, rank: int) -> list[int]:
    count = int(r.integers(1, rank + 1)) if rank else 0
    chosen = r.permutation(rank)[:count]
    return [int(a) - (rank if r.random() < 0.5 else 0) for a in chosen]


def ints(values: Sequence[int]) -> np.ndarray:
    return np.asarray(values, np.int64)


def narrowed(r: Random, shape: Sequence[int]) -> list[int]:
    """Return a shape that broadcasts to another one."""
    kept = list(shape)[int(r.integers(0, len(shape) + 1)) :]
    return [1 if r.random() < 0.3 else n for n in kept]


UNARY = {
    "Abs": "fi", "Neg": "fs", "Exp": "f", "Log": "f", "Sqrt": "f", "Tanh": "f", "Sigmoid": "f", "Erf": "f",
    "Reciprocal": "f", "Sign": "fi", "Relu": "fs", "Softplus": "f", "Softsign": "f", "Floor": "f", "Tan": "f",
    "Ceil": "f", "Round": "f", "Sin": "f", "Cos": "f", "Asin": "f", "Acos": "f", "Atan": "f",
    "Sinh": "f", "Cosh": "f", "Asinh": "f", "Acosh": "f", "Atanh": "f", "Not": "b", "IsNaN": "f",
    "Mish": "f", "BitwiseNot": "i", "Identity": "fib", "HardSwish": "f",
}  # fmt: skip
"""Operators of one operand, and what it may be: floats, integers, signed ones, truth values."""


def kinds_of(letters: str) -> list[str]:
    tables = {"f": FLOATS, "i": (*SIGNED, *UNSIGNED), "s": ("int32", "int64", "int8"), "b": ("bool",)}
    return [k for letter in letters for k in tables[letter]]


def unary(r: Random) -> Call:
    op = pick(r, *UNARY)
    kind = pick(r, *kinds_of(UNARY[op]))
    return Call(op, [numbers(r, shape_of(r), kind)], opset=18)


PARAMETERS = {
    "LeakyRelu": ["alpha"], "Elu": ["alpha"], "Selu": ["alpha", "gamma"], "Celu": ["alpha"],
    "HardSigmoid": ["alpha", "beta"], "ThresholdedRelu": ["alpha"], "Shrink": ["lambd", "bias"],
}  # fmt: skip


def parametric(r: Random) -> Call:
    op = pick(r, *PARAMETERS)
    given = {n: float(np.round(r.uniform(0.1, 2), 2)) for n in PARAMETERS[op] if r.random() < 0.6}
    return Call(op, [numbers(r, shape_of(r), "float32")], given, opset=18)


BINARY = (
    "Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Equal", "Greater", "Less", "LessOrEqual", "And",
    "GreaterOrEqual", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift", "PRelu",
)  # fmt: skip


def binary(r: Random) -> Call:
    op = pick(r, *BINARY)
    letters = {"And": "b", "Or": "b", "Xor": "b", "PRelu": "f", "BitShift": "i"}.get(op, "fi")
    kind = pick(
        r,
        *(kinds_of("i") if op.startswith("Bitwise") else UNSIGNED if op == "BitShift" else kinds_of(letters)),
    )
    shape = shape_of(r)
    left, right = numbers(r, shape, kind), numbers(r, narrowed(r, shape), kind)
    attributes: dict[str, Any] = {}
    if op == "Mod" and (kind.startswith("float") or r.random() < 0.3):
        attributes["fmod"] = 1
    if op in ("Div", "Mod") and not kind.startswith("float"):
        right = np.where(right == 0, np.asarray(3, kind), right)
    if op == "BitShift":
        attributes["direction"] = pick(r, "LEFT", "RIGHT")
        right = r.integers(0, 8 * right.dtype.itemsize, right.shape).astype(kind)
    if op == "Pow":
        if kind not in ("float32", "float64", "int32", "int64"):
            left, right, kind = left.astype("float32"), right.astype("float32"), "float32"
        left, right = (np.abs(left) if kind.startswith("float") else left), np.clip(right, 0, 4)
        right = right.astype(pick(r, kind, "int64", "int32", "float32"))
    if op != "PRelu" and op not in ("BitShift", "Div", "Mod", "Pow") and r.random() < 0.3:
        left, right = right, left
    fixed = [1] if op in ("Div", "Mod", "BitShift", "Pow") or r.random() < 0.2 else []
    return Call(op, [left, right], attributes, opset=18, fixed=[*fixed, 0] if op == "Pow" else fixed)


def variadic(r: Random) -> Call:
    op = pick(r, "Sum", "Mean", "Max", "Min")
    kind = pick(r, *FLOATS) if op in ("Sum", "Mean") else pick(r, *kinds_of("f"), "int32", "uint8", "int64")
    shape = shape_of(r)
    count = int(r.integers(1, 4))
    return Call(op, [numbers(r, narrowed(r, shape), kind) for _ in range(count)], opset=13)


def where(r: Random) -> Call:
    shape = shape_of(r)
    kind = pick(r, "float32", "int64", "uint8", "int32")
    parts = [numbers(r, narrowed(r, shape), k) for k in ("bool", kind, kind)]
    return Call("Where", parts, opset=16)


def cast(r: Random) -> Call:
    kind, to = pick(r, *kinds_of("fib")), pick(r, *kinds_of("fib"))
    x = numbers(r, shape_of(r), kind)
    if kind.startswith("float") and to.startswith("uint"):
        x = np.abs(x)
    return Call("Cast", [x], {"to": helper.np_dtype_to_tensor_dtype(np.dtype(to))}, opset=13, fixed=[0])


def clip(r: Random) -> Call:
    kind = pick(r, "float32", "float64", "int32", "int64", "uint8", "int8")
    x = numbers(r, shape_of(r), kind)
    low, high = sorted(numbers(r, [2], kind).tolist())
    bounds = [None if r.random() < 0.3 else np.asarray(v, kind) for v in (low, high)]
    if r.random() < 0.1:
        bounds.reverse()
    if kind == "float32" and r.random() < 0.3:
        given = {n: float(v) for n, v in zip(("min", "max"), bounds, strict=True) if v is not None}
        return Call("Clip", [x], given, opset=pick(r, 6, 10))
    return Call("Clip", [x, *bounds], opset=13, fixed=pick(r, [], [1, 2]))


REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")


def reduction(r: Random) -> Call:
    name = pick(r, *REDUCTIONS)
    kind = pick(
        r,
        "float32",
        "float32",
        "float64",
        "int32",
        "int64" if name not in ("LogSum", "LogSumExp") else "float32",
    )
    if name in ("Max", "Min") and r.random() < 0.3:
        kind = pick(r, "uint8", "int8")
    x = numbers(r, shape_of(r, 0 if r.random() < 0.2 else 1), kind)
    if name == "LogSum" and kind.startswith("float"):
        x = np.abs(x)
    axes = None if r.random() < 0.25 or not x.ndim else some_axes(r, x.ndim)
    attributes: dict[str, Any] = {"keepdims": int(r.integers(2))} if r.random() < 0.7 else {}
    opset = pick(r, 11, 12, 13, 18, 20)
    if opset >= (13 if name == "Sum" else 18):
        if r.random() < 0.3:
            attributes["noop_with_empty_axes"] = int(r.integers(2))
        given = None if axes is None else ints(axes)
        if axes is None and r.random() < 0.3:
            given = ints([])
        return Call(f"Reduce{name}", [x, given], attributes, opset, fixed=[1, 0] if name == "LogSum" else [1])
    if axes is not None:
        attributes["axes"] = axes
    return Call(f"Reduce{name}", [x], attributes, opset, fixed=[0] if name == "LogSum" else [])


def extreme(r: Random) -> Call:
    x = numbers(r, shape_of(r, 1), pick(r, "float32", "int32", "float64", "uint8", "int8"))
    given = {
        "axis": some_axis(r, x.ndim),
        "keepdims": int(r.integers(2)),
        "select_last_index": int(r.integers(2)),
    }
    kept = {k: v for k, v in given.items() if r.random() < 0.7}
    return Call(pick(r, "ArgMax", "ArgMin"), [x], kept, opset=13)


def softmax(r: Random) -> Call:
    x = numbers(r, shape_of(r, 1), pick(r, "float32", "float32", "float64"))
    given = {"axis": some_axis(r, x.ndim)} if r.random() < 0.7 else {}
    opset = pick(r, 11, 13, 18)
    if opset < 13 and x.ndim < 2:
        given = {"axis": 0}
    return Call(pick(r, "Softmax", "LogSoftmax", "Hardmax"), [x], given, opset)


def top_k(r: Random) -> Call:
    x = numbers(r, shape_of(r, 1), pick(r, "float32", "int64", "float64", "int32"))
    axis = some_axis(r, x.ndim)
    given: dict[str, Any] = {"axis": axis, "largest": int(r.integers(2))}
    return Call(
        "TopK", [x, ints([int(r.integers(1, x.shape[axis] + 1))])], given, pick(r, 11, 13), 2, fixed=[1]
    )


def cumulative(r: Random) -> Call:
    x = numbers(r, shape_of(r, 1), pick(r, "float32", "int32", "int64", "float64"))
    given = {n: int(r.integers(2)) for n in ("exclusive", "reverse") if r.random() < 0.7}
    return Call(
        "CumSum", [x, np.asarray(some_axis(r, x.ndim), pick(r, "int32", "int64"))], given, 14, fixed=[1]
    )


def concat(r: Random) -> Call:
    shape, kind = shape_of(r, 1), pick(r, "float32", "int64", "bool", "uint8", "float64")
    axis = some_axis(r, len(shape))
    parts = []
    for _ in range(int(r.integers(1, 4))):
        own = list(shape)
        own[axis] = int(r.integers(0 if r.random() < 0.2 else 1, 4))
        parts.append(numbers(r, own, kind))
    return Call("Concat", parts, {"axis": axis}, 13)


def split(r: Random) -> Call:
    x = numbers(r, shape_of(r, 1, 4, 6), "float32")
    axis = some_axis(r, x.ndim)
    count = int(r.integers(1, min(3, x.shape[axis]) + 1))
    cuts = sorted(int(c) for c in r.integers(0, x.shape[axis] + 1, count - 1))
    sizes = np.diff([0, *cuts, x.shape[axis]]).tolist()
    opset = pick(r, 11, 13, 18)
    if opset == 11:
        return Call("Split", [x], {"axis": axis, "split": sizes}, opset, count)
    if opset == 18 and r.random() < 0.5:
        return Call("Split", [x, None], {"axis": axis, "num_outputs": count}, opset, count)
    return Call("Split", [x, ints(sizes)], {"axis": axis}, opset, count, fixed=[1])


def slices(r: Random) -> Call:
    x = numbers(r, shape_of(r, 1, 4, 6), pick(r, "float32", "int64", "bool"))
    axes = some_axes(r, x.ndim)
    starts, ends = ([int(n) for n in r.integers(-8, 9, len(axes))] for _ in range(2))
    if r.random() < 0.3:
        ends = [pick(r, 2**31 - 1, 2**63 - 1, -(2**31), e) for e in ends]
    if r.random() < 0.2:
        return Call("Slice", [x], {"axes": [a % x.ndim for a in axes], "starts": starts, "ends": ends}, 9)
    steps = [pick(r, 1, 1, 2, 3, -1, -2) for _ in axes]
    more = [ints(axes), ints(steps) if r.random() < 0.7 else None]
    return Call("Slice", [x, ints(starts), ints(ends), *more], opset=13, fixed=[1, 2, 3, 4])


def pad(r: Random) -> Call:
    kind = pick(r, "float32", "float32", "int64", "int32")
    x = numbers(r, shape_of(r, 1), kind)
    mode = pick(r, "constant", "constant", "reflect", "edge", "wrap")
    opset = 19 if mode == "wrap" else pick(r, 10, 13, 18)
    axes = some_axes(r, x.ndim) if opset >= 18 and r.random() < 0.5 else None
    sizes = [x.shape[a] for a in (axes or range(x.ndim))]
    room = {"constant": [3] * len(sizes), "edge": [3] * len(sizes), "wrap": sizes}.get(
        mode, [n - 1 for n in sizes]
    )
    pads = [int(r.integers(0, m + 1)) for m in (*room, *room)]
    if mode == "constant" and r.random() < 0.3:
        pads = [int(r.integers(-1, 2)) if min(sizes) > 2 else p for p in pads]
    attributes: dict[str, Any] = {"mode": mode} if mode != "constant" or r.random() < 0.5 else {}
    if opset == 10:
        return Call(
            "Pad",
            [x.astype("float32")],
            {**attributes, "pads": pads, "value": float(r.integers(-2, 3))},
            opset,
        )
    number = numbers(r, [], kind) if mode == "constant" and r.random() < 0.7 else None
    more = [] if axes is None else [ints(axes)]
    return Call("Pad", [x, ints(pads), number, *more], attributes, opset, fixed=[1, 2, 3])


def reshape(r: Random) -> Call:
    shape = shape_of(r, 1)
    x = numbers(r, shape, pick(r, "float32", "int64", "bool"))
    wanted = [int(n) for n in r.permutation(shape)]
    if r.random() < 0.5:
        wanted = [int(np.prod(wanted[:2])), *wanted[2:]]
    for k, n in enumerate(wanted):
        if k < x.ndim and n == x.shape[k] and r.random() < 0.3:
            wanted[k] = 0
    if r.random() < 0.5:
        wanted[int(r.integers(len(wanted)))] = -1
    return Call("Reshape", [x, ints(wanted)], {"allowzero": 0} if r.random() < 0.2 else {}, 14, fixed=[1])


def moved(r: Random) -> Call:
    x = numbers(r, shape_of(r, 1), pick(r, "float32", "int32", "bool", "uint8"))
    match pick(r, "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Tile", "Shape", "Size", "Trilu"):
        case "Transpose":
            return Call(
                "Transpose", [x], {"perm": r.permutation(x.ndim).tolist()} if r.random() < 0.7 else {}, 13
            )
        case "Flatten":
            return Call(
                "Flatten", [x], {"axis": int(r.integers(-x.ndim, x.ndim + 1))} if r.random() < 0.7 else {}, 13
            )
        case "Squeeze":
            y = np.expand_dims(x, tuple({int(a) for a in r.integers(0, x.ndim + 1, 2)})[:1])
            ones = [k - (y.ndim if r.random() < 0.5 else 0) for k, n in enumerate(y.shape) if n == 1]
            if r.random() < 0.5:
                return Call("Squeeze", [y], {"axes": ones} if r.random() < 0.6 else {}, 11)
            return Call("Squeeze", [y, ints(ones) if r.random() < 0.6 else None], opset=13, fixed=[1])
        case "Unsqueeze":
            axes = some_axes(r, x.ndim + 2)[:2]
            axes = axes if len({a % (x.ndim + len(axes)) for a in axes}) == len(axes) else axes[:1]
            axes = [a % (x.ndim + len(axes)) for a in axes]
            axes = sorted(set(axes))
            return Call("Unsqueeze", [x, ints(axes)], opset=13, fixed=[1])
        case "Expand":
            small = x[..., :1]
            wanted = [*small.shape[:-1], int(r.integers(1, 4))]
            return Call(
                "Expand",
                [small, ints([pick(r, 1, 2), *wanted] if r.random() < 0.5 else wanted)],
                opset=13,
                fixed=[1],
            )
        case "Tile":
            return Call(
                "Tile",
                [x, ints(r.integers(0 if r.random() < 0.1 else 1, 4, x.ndim).tolist())],
                opset=13,
                fixed=[1],
            )
        case "Shape":
            given = {n: int(r.integers(-5, 6)) for n in ("start", "end") if r.random() < 0.6}
            return Call("Shape", [x], given, 15)
        case "Size":
            return Call("Size", [x], opset=13)
        case _:
            y = numbers(r, shape_of(r, 2), "float32")
            k = np.asarray(int(r.integers(-4, 5)), np.int64)
            return Call(
                "Trilu", [y, k if r.random() < 0.7 else None], {"upper": int(r.integers(2))}, 14, fixed=[1]
            )


def gather(r: Random) -> Call:
    x = numbers(r, shape_of(r, 1), pick(r, "float32", "int64", "bool"))
    axis = some_axis(r, x.ndim)
    size = x.shape[axis]
    positions = r.integers(-size, size, shape_of(r, 0, 2)).astype(pick(r, "int64", "int32"))
    if r.random() < 0.5:
        fixed, ranges = [1], {}
    else:
        fixed, ranges = [], {1: (-size, size)}
    if r.random() < 0.4:
        own = [int(r.integers(1, n + 1)) for n in x.shape]
        own[axis] = int(r.integers(1, 5))
        positions = r.integers(-size, size, own)
        return Call("GatherElements", [x, positions], {"axis": axis}, 13, fixed=fixed, ranges=ranges)
    return Call("Gather", [x, positions], {"axis": axis}, 13, fixed=fixed, ranges=ranges)


def gather_nd(r: Random) -> Call:
    x = numbers(r, shape_of(r, 2), "float32")
    batch = int(r.integers(0, 2))
    depth = int(r.integers(1, x.ndim - batch + 1))
    lead = [*x.shape[:batch], *shape_of(r, 0, 2, 3)] if batch else shape_of(r, 1, 2, 3)
    parts = [r.integers(-n, n, lead) for n in x.shape[batch : batch + depth]]
    return Call("GatherND", [x, np.stack(parts, -1)], {"batch_dims": batch}, 13, fixed=[1])


def scatter(r: Random) -> Call:
    x = numbers(r, shape_of(r, 1), pick(r, "float32", "int32", "int64"))
    kind = str(x.dtype)
    how = pick(r, None, "none", "add", "mul", "max", "min")
    given = {} if how is None else {"reduction": how}
    if r.random() < 0.5:
        axis = some_axis(r, x.ndim)
        own = [int(r.integers(1, n + 1)) for n in x.shape]
        size = x.shape[axis]
        own[axis] = min(own[axis], size)
        if how in (None, "none"):
            order = np.stack(
                [r.permutation(size)[: own[axis]] for _ in range(int(np.prod(own)) // own[axis])]
            )
            at = np.moveaxis(order.reshape(*np.delete(own, axis).tolist(), own[axis]), -1, axis)
        else:
            at = r.integers(-size, size, own)
        operands, given = [x, at, numbers(r, own, kind)], {**given, "axis": axis}
        if how in (None, "none") or r.random() < 0.7:
            return Call("ScatterElements", operands, given, 18, fixed=[1])
        return Call("ScatterElements", operands, given, 18, ranges={1: (-size, size)})
    depth = int(r.integers(1, x.ndim + 1))
    rows = int(np.prod(x.shape[:depth]))
    count = int(r.integers(1, rows + 1))
    flat = r.permutation(rows)[:count] if how in (None, "none") else r.integers(0, rows, count)
    at = np.stack(np.unravel_index(flat, x.shape[:depth]), -1)
    return Call(
        "ScatterND",
        [x, at.astype(np.int64), numbers(r, [count, *x.shape[depth:]], kind)],
        given,
        18,
        fixed=[1],
    )


def one_hot(r: Random) -> Call:
    depth = int(r.integers(1, 6))
    at = r.integers(-depth, depth, shape_of(r, 0, 3)).astype(pick(r, "int64", "int32", "float32"))
    values = numbers(r, [2], pick(r, "float32", "int32", "int64"))
    return Call(
        "OneHot",
        [at, np.asarray(depth, np.int64), values],
        {"axis": some_axis(r, at.ndim + 1)},
        11,
        fixed=[0, 1],
    )


def blocks(r: Random) -> Call:
    n = int(r.integers(1, 4))
    if r.random() < 0.5:
        x = numbers(r, [2, n * n * int(r.integers(1, 3)), 2, 3], "float32")
        return Call("DepthToSpace", [x], {"blocksize": n, "mode": pick(r, "DCR", "CRD")}, 13)
    return Call("SpaceToDepth", [numbers(r, [2, 2, 2 * n, 3 * n], "float32")], {"blocksize": n}, 13)


def various(r: Random) -> Call:
    x = numbers(r, shape_of(r, 2, 4), "float32")
    match int(r.integers(6)):
        case 0:
            time, batch = pick(r, (0, 1), (1, 0))
            lengths = r.integers(1, x.shape[time] + 1, x.shape[batch])
            return Call(
                "ReverseSequence", [x, lengths], {"time_axis": time, "batch_axis": batch}, 10, fixed=[1]
            )
        case 1:
            return Call(
                "EyeLike", [numbers(r, shape_of(r, 2, 2), "float32")], {"k": int(r.integers(-3, 4))}, 9
            )
        case 2:
            axis = some_axis(r, x.ndim)
            kept = r.integers(0, 2, int(r.integers(1, x.shape[axis] + 1))).astype(bool)
            return Call("Compress", [x, kept], {"axis": axis}, 11, fixed=[1])
        case 3:
            axes = some_axes(r, x.ndim)
            return Call(
                "CenterCropPad",
                [x, ints(r.integers(1, 8, len(axes)).tolist())],
                {"axes": axes},
                18,
                fixed=[1],
            )
        case 4:
            return Call(
                "NonZero", [numbers(r, shape_of(r, 1, 3), pick(r, "int32", "bool"))], opset=13, fixed=[0]
            )
        case _:
            kind = pick(r, "float32", "int64", "int32")
            start, step = numbers(r, [], "int8") % 7, pick(r, 1, 2, 3, -1, -2)
            end = int(start) + int(r.integers(-3, 12)) * (1 if step > 0 else -1)
            return Call("Range", [np.asarray(v, kind) for v in (start, end, step)], opset=11, fixed=[0, 1, 2])


def window(
    r: Random, spatial: Sequence[int], sizes: Sequence[int], *, dilated: bool = True
) -> dict[str, Any]:
    """Return random attributes of a window that fits."""
    rank = len(spatial)
    given: dict[str, Any] = {}
    if r.random() < 0.6:
        given["strides"] = [int(n) for n in r.integers(1, 4, rank)]
    if dilated and r.random() < 0.4:
        given["dilations"] = [int(n) for n in r.integers(1, 3, rank)]
    if r.random() < 0.3:
        given["auto_pad"] = pick(r, "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")
    elif r.random() < 0.6:
        given["pads"] = [int(r.integers(0, k)) for k in (*sizes, *sizes)]
    return given


def spatial_of(r: Random, low: int = 3, high: int = 8) -> list[int]:
    return [int(n) for n in r.integers(low, high, int(pick(r, 1, 2, 2, 3)))]


def conv(r: Random) -> Call:
    spatial = spatial_of(r)
    sizes = [int(n) for n in r.integers(1, 4, len(spatial))]
    group = int(pick(r, 1, 1, 2, 3))
    x = numbers(r, [int(r.integers(1, 3)), 2 * group, *spatial], pick(r, "float32", "float32", "float64"))
    w = numbers(r, [group * int(r.integers(1, 3)), 2, *sizes], str(x.dtype))
    bias = [numbers(r, [w.shape[0]], str(x.dtype))] if r.random() < 0.5 else []
    given = window(r, spatial, sizes) | ({"group": group} if group > 1 or r.random() < 0.3 else {})
    if r.random() < 0.5:
        given["kernel_shape"] = sizes
    return Call("Conv", [x, w, *bias], given, 11, fixed=pick(r, [], [1], [1, 2]))


def conv_transpose(r: Random) -> Call:
    spatial = spatial_of(r, 2, 5)
    rank = len(spatial)
    sizes = [int(n) for n in r.integers(1, 4, rank)]
    group = int(pick(r, 1, 1, 2))
    x = numbers(r, [1, 2 * group, *spatial], "float32")
    w = numbers(r, [2 * group, int(r.integers(1, 3)), *sizes], "float32")
    given = window(r, spatial, sizes)
    strides = given.get("strides", [1] * rank)
    if r.random() < 0.4 and "auto_pad" not in given:
        given["output_padding"] = [int(r.integers(0, s)) for s in strides]
    if r.random() < 0.3:
        given["output_shape"] = [n * s + int(r.integers(0, 2)) for n, s in zip(spatial, strides, strict=True)]
        given.pop("pads", None)
    if group > 1:
        given["group"] = group
    return Call("ConvTranspose", [x, w], given, 11)


def pool(r: Random) -> Call:
    spatial = spatial_of(r, 4, 9)
    sizes = [int(n) for n in r.integers(1, 4, len(spatial))]
    op = pick(r, "MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool")
    opset = (
        pick(r, 11, 12)
        if op == "MaxPool"
        else pick(r, 11, 19, 22)
        if op == "AveragePool"
        else pick(r, 11, 18)
    )
    dilated = op == "MaxPool" or opset >= 18
    given = window(r, spatial, sizes, dilated=dilated) | {"kernel_shape": sizes}
    if r.random() < 0.5 and (op != "LpPool" or opset >= 18):
        given["ceil_mode"] = int(r.integers(2))
    if op == "AveragePool" and r.random() < 0.5:
        given["count_include_pad"] = int(r.integers(2))
    if op == "LpPool" and r.random() < 0.7:
        given["p"] = int(r.integers(1, 4))
    kind = pick(r, "float32", "float32", "uint8", "int8") if op == "MaxPool" and opset == 12 else "float32"
    outputs = 2 if op == "MaxPool" and r.random() < 0.3 else 1
    if outputs == 2 and r.random() < 0.3:
        given["storage_order"] = 1
    return Call(op, [numbers(r, [1, 2, *spatial], kind)], given, opset, outputs)


def global_pool(r: Random) -> Call:
    op = pick(r, "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
    given = {"p": int(r.integers(1, 4))} if op == "GlobalLpPool" and r.random() < 0.6 else {}
    return Call(op, [numbers(r, [2, 3, *spatial_of(r, 1, 5)], "float32")], given, 11)


def normalisation(r: Random) -> Call:
    x = numbers(r, [2, 4, *spatial_of(r, 1, 4)], "float32")
    vectors = [numbers(r, [4], "float32") for _ in range(4)]
    epsilon = {"epsilon": float(pick(r, 1e-5, 1e-3, 0.1))} if r.random() < 0.6 else {}
    match int(r.integers(7)):
        case 0:
            operands = [x, *vectors[:3], np.abs(vectors[3])]
            return Call("BatchNormalization", operands, epsilon, pick(r, 9, 14, 15), fixed=[4])
        case 1:
            return Call("InstanceNormalization", [x, *vectors[:2]], epsilon, pick(r, 6, 22))
        case 2:
            axis = int(r.integers(-x.ndim, x.ndim))
            own = x.shape[axis % x.ndim :]
            more = [numbers(r, own, "float32") for _ in range(int(r.integers(1, 3)))]
            return Call(
                "LayerNormalization", [x, *more], {**epsilon, "axis": axis}, 17, int(pick(r, 1, 1, 3))
            )
        case 3:
            return Call(
                "GroupNormalization", [x, *vectors[:2]], {**epsilon, "num_groups": pick(r, 1, 2, 4)}, 21
            )
        case 4:
            given = {
                n: float(np.round(r.uniform(0.1, 2), 2))
                for n in ("alpha", "beta", "bias")
                if r.random() < 0.5
            }
            return Call("LRN", [x], {**given, "size": int(r.integers(1, 6))}, 13)
        case 5:
            return Call("LpNormalization", [x], {"axis": some_axis(r, x.ndim), "p": pick(r, 1, 2)}, 6)
        case _:
            return Call(
                "MeanVarianceNormalization",
                [x],
                {"axes": sorted(a % x.ndim for a in some_axes(r, x.ndim))},
                13,
            )


def product(r: Random) -> Call:
    m, n, k = (int(v) for v in r.integers(1, 6, 3))
    kind = pick(r, "float32", "float32", "float64", "int32")
    if r.random() < 0.5:
        a, b = numbers(r, [m, k], kind), numbers(r, [k, n], kind)
        given: dict[str, Any] = {}
        if kind != "int32":
            given = {v: float(np.round(r.uniform(-2, 2), 1)) for v in ("alpha", "beta") if r.random() < 0.5}
        for name in ("transA", "transB"):
            if r.random() < 0.5:
                given[name] = 1
        c = [numbers(r, pick(r, [m, n], [n], [1, n], [m, 1], []), kind)] if r.random() < 0.6 else []
        return Call(
            "Gemm", [a.T if given.get("transA") else a, b.T if given.get("transB") else b, *c], given, 13
        )
    lead = shape_of(r, 0, 2, 3)
    a = numbers(r, [*narrowed(r, lead), m, k] if r.random() < 0.8 else [k], kind)
    b = numbers(r, [*lead, k, n] if r.random() < 0.8 else [k], kind)
    return Call("MatMul", [a, b], opset=13)


def einsum(r: Random) -> Call:
    sizes = {c: int(r.integers(1, 5)) for c in "abcd"}
    parts = [
        "".join(r.permutation(list("abcd"))[: int(r.integers(1, 4))]) for _ in range(int(r.integers(1, 3)))
    ]
    every = sorted({c for p in parts for c in p})
    out = "".join(r.permutation(every)[: int(r.integers(0, len(every) + 1))])
    equation = ",".join(parts) + (f"->{out}" if r.random() < 0.8 else "")
    return Call(
        "Einsum", [numbers(r, [sizes[c] for c in p], "float32") for p in parts], {"equation": equation}, 12
    )


def quantised(r: Random) -> Call:
    kind = pick(r, "uint8", "int8")
    x = numbers(r, shape_of(r, 1, 4), "float32") * 10
    axis = some_axis(r, x.ndim)
    count = x.shape[axis]
    per_axis = r.random() < 0.5
    scale = np.asarray(r.uniform(0.05, 1, [count] if per_axis else []), "float32")
    zero = r.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, scale.shape).astype(kind)
    given = {"axis": axis} if per_axis else {}
    match int(r.integers(5)):
        case 0:
            return Call("QuantizeLinear", [x, scale, zero], given, 13, fixed=[1, 2])
        case 1:
            wide = pick(r, "uint8", "int8", "int32")
            y = numbers(r, x.shape, wide)
            point = np.zeros(scale.shape, wide) if wide == "int32" else zero.astype(wide)
            return Call("DequantizeLinear", [y, scale, point], given, 13, fixed=[1, 2])
        case 2:
            return Call("DynamicQuantizeLinear", [x], opset=11, outputs=3)
        case 3:
            a, b = numbers(r, [3, 4], kind), numbers(r, [4, 2], kind)
            points = [numbers(r, [], kind) for _ in range(int(r.integers(0, 3)))]
            return Call("MatMulInteger", [a, b, *points], opset=10)
        case _:
            a, b = numbers(r, [3, 4], "uint8"), numbers(r, [4, 2], kind)
            scales = [np.asarray(v, "float32") for v in r.uniform(0.01, 0.5, 3)]
            points = [numbers(r, [], k) for k in ("uint8", kind, "uint8")]
            operands = [a, scales[0], points[0], b, scales[1], points[1], scales[2], points[2]]
            return Call("QLinearMatMul", operands, opset=10, fixed=[1, 2, 4, 5, 6, 7])


def resize(r: Random) -> Call:
    x = numbers(r, [1, 2, int(r.integers(2, 7)), int(r.integers(2, 7))], "float32")
    mode = pick(r, "nearest", "linear", "cubic")
    given: dict[str, Any] = {"mode": mode}
    if r.random() < 0.8:
        given["coordinate_transformation_mode"] = pick(
            r, "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"
        )
    if mode == "nearest" and r.random() < 0.7:
        given["nearest_mode"] = pick(r, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic":
        given |= {n: v for n, v in (("cubic_coeff_a", -0.5), ("exclude_outside", 1)) if r.random() < 0.4}
    if mode != "nearest" and r.random() < 0.2:
        given["antialias"] = 1
    opset = 18 if "antialias" in given else pick(r, 11, 13, 18)
    if r.random() < 0.5:
        sizes = ints([1, 2, *r.integers(1, 10, 2).tolist()])
        return Call("Resize", [x, None, None, sizes], given, 18 if opset == 18 else 13, fixed=[3])
    scales = np.asarray([1, 1, *r.choice([0.5, 0.6, 1, 1.5, 2, 2.5, 3], 2)], "float32")
    roi = np.zeros(0, "float32") if opset == 11 else None
    return Call("Resize", [x, roi, scales], given, opset, fixed=[1, 2])


def recurrent(r: Random) -> Call:
    op = pick(r, "LSTM", "GRU", "RNN")
    steps, batch, size, hidden = (int(n) for n in r.integers(1, 4, 4))
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    direction = pick(r, "forward", "reverse", "bidirectional")
    both = 2 if direction == "bidirectional" else 1
    operands: list[np.ndarray | None] = [
        numbers(r, [steps, batch, size], "float32"),
        numbers(r, [both, gates * hidden, size], "float32"),
        numbers(r, [both, gates * hidden, hidden], "float32"),
    ]
    optional = [
        numbers(r, [both, 2 * gates * hidden], "float32"),
        r.integers(1, steps + 1, batch).astype("int32"),
    ]
    optional += [numbers(r, [both, batch, hidden], "float32") for _ in range(2 if op == "LSTM" else 1)]
    operands += [o if r.random() < 0.5 else None for o in optional]
    if op == "LSTM" and r.random() < 0.3:
        operands += [None] * (7 - len(operands)) + [numbers(r, [both, 3 * hidden], "float32")]
    given: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if op == "GRU" and r.random() < 0.5:
        given["linear_before_reset"] = 1
    return Call(op, operands, given, 14, 3 if op == "LSTM" else 2, fixed=[4])


MAKERS: tuple[Callable[[Random], Call], ...] = (
    unary, unary, parametric, binary, binary, binary, variadic, where, cast, clip, reduction, reduction,
    extreme, softmax, top_k, cumulative, concat, split, slices, slices, pad, pad, reshape, moved, moved,
    gather, gather_nd, scatter, one_hot, blocks, various, various, conv, conv_transpose, pool, pool,
    global_pool, normalisation, normalisation, product, einsum, quantised, resize, resize, recurrent,
)  # fmt: skip


def random_model(seed: int) -> onnx.ModelProto:
    """Return the model of a seed."""
    r = np.random.default_rng(seed)
    call = pick(r, *MAKERS)(r)
    kinds = [None if a is None else a.dtype for a in call.operands]
    names = ["" if a is None else f"x{k}" for k, a in enumerate(call.operands)]
    while names and not names[-1]:
        names.pop()
    outputs = [f"y{k}" for k in range(call.outputs)]
    nodes = [helper.make_node(call.op, names, outputs, "odd", **call.attributes)]
    inputs, constants = [], []
    for k, (name, array) in enumerate(zip(names, call.operands, strict=False)):
        if array is None:
            continue
        if k in call.fixed:
            constants.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        else:
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(kinds[k]))
            inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
    if not inputs:
        inputs.append(helper.make_tensor_value_info("unused", TensorProto.FLOAT, [1]))
    nodes, results = _with_more(r, call, nodes, outputs)
    declared = [helper.make_empty_tensor_value_info(n) for n in results]
    graph = helper.make_graph(nodes, f"seed_{seed}", inputs, declared, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", call.opset)], ir_version=8)
    ranges = {f"x{k}": list(v) for k, v in call.ranges.items()}
    if call.op.startswith("Reduce") or call.op in ("Gemm", "MatMul"):  # nothing is said of sums that overflow
        ranges |= {f"x{k}": [-5, 6] for k, kind in enumerate(kinds) if kind is not None and kind.kind in "iu"}
    helper.set_model_props(model, {"ranges": json.dumps(ranges)})
    return model


def _with_more(r: Random, call: Call, nodes: list[Any], outputs: list[str]) -> tuple[list[Any], list[str]]:
    """Add a node that reads the first result now and then, so that views meet other operators."""
    if r.random() < 0.7 or call.opset < 13:
        return nodes, outputs
    more = pick(r, "Transpose", "Identity", "Flatten")
    return [*nodes, helper.make_node(more, ["y0"], ["z"])], [*outputs, "z"]


FRAGILE = frozenset(
    {
        "Einsum",
        "QuantizeLinear",
        "DynamicQuantizeLinear",
        "QLinearMatMul",
        "LSTM",
        "GRU",
        "RNN",
        "Resize",
        "MaxPool",
        "GlobalMaxPool",
        "Hardmax",
        "OneHot",
        "LRN",  # onnxruntime slides its sum of squares: what was infinite once is NaN in all later channels
    }
    | {f"{n}Normalization" for n in ("Batch", "Instance", "Layer", "Group", "MeanVariance")}
)
"""Operators whose results for infinities and NaN depend on how a sum is ordered, or are not defined."""


def inputs_of(model: onnx.ModelProto, seed: int) -> dict[str, np.ndarray]:
    """Return the inputs of a model for a seed: now and then with NaN and infinities."""
    r = np.random.default_rng([seed, 1])
    ranges = json.loads(next(p.value for p in model.metadata_props if p.key == "ranges"))
    special = r.random() < 0.1 and not {n.op_type for n in model.graph.node} & FRAGILE
    found = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        kind = str(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        shape = [d.dim_value for d in tensor.shape.dim]
        array = numbers(r, shape, kind)
        if value.name in ranges:
            low, high = ranges[value.name]
            array = r.integers(max(low, 0) if kind.startswith("u") else low, high, shape).astype(kind)
        elif special and kind.startswith("float"):
            odd = r.choice(np.asarray([np.nan, np.inf, -np.inf, -0.0], kind), shape)
            array = np.where(r.random(shape) < 0.2, odd, array)
        found[value.name] = array
    return found


def compare(model: onnx.ModelProto, seed: int) -> Verdict:
    """Run a model with inputs of a seed in every way there is."""
    given = inputs_of(model, seed)
    try:
        ours = _ours(model, given)
    except PolyloomError as refused:
        reason = " ".join((refused.diagnostics[0].message, *refused.diagnostics[0].notes))
        return Verdict("crash" if NOT_FORESEEN in reason else "refused", reason)
    except Exception as fault:
        return Verdict("crash", f"{type(fault).__name__}: {fault}")
    references = [found for run in (_onnxruntime, _evaluator) if (found := _tried(run, model, given))]
    references = [found for found in references if not _contradicts(model, found)]
    if not references:
        return Verdict("unjudged")
    faults = [_difference(ours, reference) for reference in references]
    if not faults[0]:
        return Verdict("same")
    alone = len(references) == 1 and model.graph.node[0].op_type in ALONE
    return Verdict("disputed" if "" in faults or alone else "wrong", faults[0])


ALONE = frozenset({"Conv", "ConvTranspose", "MaxPool", "LRN", "Erf", "Hardmax", "Gemm", "HardSwish"})
"""Operators of which onnx's evaluator alone is no judge: SAME paddings, even sizes, doubles, opset 11."""


def _contradicts(model: onnx.ModelProto, found: Mapping[str, np.ndarray]) -> bool:
    """Whether a result without elements has another shape than onnx infers.

    onnxruntime's Slice looks at no further axes where one of them is empty.
    """
    empty = {name: array.shape for name, array in found.items() if array.size == 0}
    if not empty:
        return False
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    dims = {o.name: o.type.tensor_type.shape.dim for o in inferred.graph.output}
    return any(
        d.HasField("dim_value") and d.dim_value != extent
        for name, shape in empty.items()
        for d, extent in zip(dims[name], shape, strict=False)
    )


def _ours(model: onnx.ModelProto, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    imported = lower(graph_of_bytes(model.SerializeToString(), "it", Place(None)), find_operation)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return imported.outputs(evaluate(imported.program, imported.inputs(dict(given))))


def _tried(run: Callable[..., dict[str, np.ndarray]], model: Any, given: Any) -> dict[str, np.ndarray] | None:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return run(model, given)
    except Exception:
        return None


def _onnxruntime(model: onnx.ModelProto, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [o.name for o in model.graph.output]
    return dict(zip(names, session.run(names, dict(given)), strict=True))


def _evaluator(model: onnx.ModelProto, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    from onnx.reference import ReferenceEvaluator

    names = [o.name for o in model.graph.output]
    return dict(zip(names, ReferenceEvaluator(model).run(names, dict(given)), strict=True))


def _difference(found: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> str:
    """Return where results differ by more than rounding, else the empty text."""
    for name, right in wanted.items():
        array = found[name]
        if array.shape != right.shape or array.dtype != right.dtype:
            return f"`{name}` is {array.dtype}{array.shape}, not {right.dtype}{right.shape}"
        if right.dtype.kind != "f":
            if not np.array_equal(array, right):
                return f"`{name}` is {array.reshape(-1)[:8]}, not {right.reshape(-1)[:8]}"
            continue
        tolerance = {2: 4e-3, 4: 2e-4, 8: 1e-9}[right.dtype.itemsize]
        scale = np.abs(right[np.isfinite(right)]).max(initial=0.0).astype(float)
        with np.errstate(all="ignore"):
            close = np.isclose(
                array, right, rtol=tolerance, atol=tolerance * max(scale, 1e-3), equal_nan=True
            )
        if not close.all():
            at = tuple(int(n) for n in np.argwhere(~close)[0])
            return f"`{name}`{list(at)} is {array[at]}, not {right[at]}"
    return ""


def main() -> int:
    first, last = int(sys.argv[1]), int(sys.argv[2])
    counts: Counter[str] = Counter()
    for seed in range(first, last):
        model = random_model(seed)
        verdict = compare(model, seed)
        counts[verdict.status] += 1
        if verdict.status != "same":
            print(
                f"{seed} {model.graph.node[0].op_type} {verdict.status}: {verdict.reason[:300]}", flush=True
            )
        if verdict.is_fault:
            Path(f"/tmp/polyloom-fuzz-{seed}.onnx").write_bytes(model.SerializeToString())
    print(dict(counts))
    return 1 if counts["wrong"] or counts["crash"] else 0


if __name__ == "__main__":
    sys.exit(main())
