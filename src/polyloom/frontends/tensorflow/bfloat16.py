"""Tensors of bfloat16: computed as float32, and rounded to nearest even where TensorFlow stores one.

    y = AddV2(x, w)      becomes, where its type T is bfloat16,      t = AddV2(x, w);  y = Bfloat16(t)

TensorFlow's kernels on processors do the same for most operations; in a few they round inside as well
(softmax, ELU, running sums, products of batches), and are less exact there; the oracle lets them not
(``oracle.in_float32``). Which results are bfloat16 follows from the attributes that state types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from polyloom.frontends.graph import scalar
from polyloom.frontends.graph.context import Table
from polyloom.frontends.graph.model import Graph, Node, with_rounding
from polyloom.frontends.graph.rows import unary
from polyloom.frontends.tensorflow.functions import BODIES
from polyloom.ir.scalar_functions.narrow_formats import BFLOAT16
from polyloom.ir.types import ElementType

OPERATION = "PolyloomBfloat16"

_TYPE_OF_RESULT = {"Cast": ("DstT",), "BatchMatMulV3": ("Tout",), "Range": ("Tidx",)}
"""The attribute that states it, where it is none of ``_TYPES``."""

_TYPES = ("T", "dtype", "Tparams")

_OTHERS = frozenset(
    [
        *("ApproximateEqual", "ArgMax", "ArgMin", "CropAndResize", "Equal", "Greater", "GreaterEqual"),
        *("IsFinite", "IsInf", "IsNan", "Less", "LessEqual", "LowerBound", "NotEqual", "Rank", "ResizeArea"),
        *("ResizeBicubic", "ResizeBilinear", "ScaleAndTranslate", "Shape", "ShapeN", "Size", "UpperBound"),
        "Where",
    ]
)
"""Operations whose results are not of their operands' type: numbers, truth values, float32."""

_ONLY_FIRST = ("ListDiff", "MaxPoolWithArgmax", "TopKV2", "Unique", "UniqueV2")
"""Operations whose other results are whole numbers."""

_STATISTICS = "FusedBatchNorm"
"""How the names of operations begin whose other results are of the type U."""

_EXACT = frozenset(
    [
        *("Abs", "BatchToSpaceND", "BroadcastTo", "Concat", "ConcatV2", "DepthToSpace", "Diag", "DiagPart"),
        *("EnsureShape", "ExpandDims", "FakeParam", "Gather", "GatherNd", "GatherV2", "Identity"),
        *(
            "IdentityN",
            "MatrixBandPart",
            "MatrixDiagPartV3",
            "MatrixDiagV3",
            "MatrixSetDiagV3",
            "Max",
            "MaxPool",
        ),
        *("MaxPoolWithArgmax", "Maximum", "Min", "Minimum", "MirrorPad", "Neg", "OnesLike", "Pack", "Pad"),
        *("PadV2", "PreventGradient", "ReadVariableOp", "Relu", "Relu6", "Reshape", "ResourceGather"),
        *("ReverseSequence", "ReverseV2", "Roll", "Select", "SelectV2", "Sign", "Slice", "Snapshot"),
        *("SpaceToBatchND", "SpaceToDepth", "Split", "SplitV", "Squeeze", "StopGradient", "StridedSlice"),
        *("StridedSliceGrad", "TensorScatterUpdate", "Tile", "TopKV2", "Transpose", "Unpack", "ZerosLike"),
    ]
)
"""Operations that give only what they were given, its sign turned, or small whole numbers."""


def rounded(graph: Graph) -> Graph:
    """Return a graph whose bfloat16 tensors, which it holds as float32, are rounded where they are stored.

    The graphs of branches and loops have been through it already.
    """
    known = {t.name for t in graph.inputs if t.other_type == BFLOAT16}
    nodes = tuple(_nodes(graph.nodes, known))
    found = tuple(
        replace(t, type=ElementType.FLOAT32, other_type=BFLOAT16) if t.name in known else t
        for t in graph.outputs
    )
    return replace(graph, nodes=nodes, outputs=found)


def _nodes(nodes: Iterable[Node], known: set[str]) -> Iterator[Node]:
    for node in nodes:
        stored = _stored(node, known)
        known |= {*stored}
        plain = replace(node, attributes={k: _wide(a) for k, a in node.attributes.items()})
        if not stored or node.op in _EXACT or node.op in BODIES:
            yield plain
        else:
            yield from with_rounding(plain, stored, OPERATION)


def _stored(node: Node, known: Collection[str]) -> list[str]:
    """Return the results of a node that are bfloat16."""
    if node.op in _OTHERS or node.op.startswith("TensorList"):
        return []
    kinds = [kind for name in _TYPE_OF_RESULT.get(node.op, _TYPES) if (kind := node.attributes.get(name))]
    kinds = kinds or [BFLOAT16 for name in node.inputs[:1] if name in known and node.op == "Identity"]
    kind = node.attributes.get("Tout", kinds) if node.op in BODIES else next(iter(kinds), None)
    return [name for k, name in enumerate(node.outputs) if name and _of_result(node, kind, k) == BFLOAT16]


def _of_result(node: Node, kind: Any, number: int) -> Any:
    """Return the type of a result: one of those that are listed, or that of all."""
    if number and node.op in _ONLY_FIRST:
        return None
    if number and node.op.startswith(_STATISTICS):
        return node.attributes.get("U")
    return kind[number] if isinstance(kind, tuple) and number < len(kind) else kind


def _wide(attribute: Any) -> Any:
    """Return an attribute with float32 for bfloat16."""
    if isinstance(attribute, tuple):
        return tuple(_wide(a) for a in attribute)
    return ElementType.FLOAT32 if isinstance(attribute, str) and attribute == BFLOAT16 else attribute


OPERATIONS: Table = {OPERATION: unary(scalar.as_bfloat16)}
