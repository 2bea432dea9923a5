"""Tensors of bfloat16: computed as float32, and rounded to nearest even wherever a node stores one.

    y = Add(x, w)      becomes, where x is bfloat16,      t = Add(x, w);  y = Bfloat16(t)

What is bfloat16 follows from the inputs, the constants and casts: a node whose floats are bfloat16 gives
bfloat16. Frameworks do the same: sums go on in float32, and are rounded once.
Source: the types of ONNX's operations; PyTorch's and onnxruntime's kernels on processors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from polyloom.frontends.graph import scalar
from polyloom.frontends.graph.context import Table
from polyloom.frontends.graph.model import Graph, Node, with_rounding
from polyloom.frontends.graph.rows import unary
from polyloom.ir.scalar_functions.narrow_formats import BFLOAT16

NUMBER, FLOAT32 = 16, 1
"""Of the types in ONNX."""

DOMAIN = "polyloom"
"""Of the operation that rounds."""

NAME = BFLOAT16

_NO_FLOATS = frozenset(
    [
        "And",
        "ArgMax",
        "ArgMin",
        "Equal",
        "Greater",
        "GreaterOrEqual",
        "IsInf",
        "IsNaN",
        "Less",
        "LessOrEqual",
        "NonZero",
        "Not",
        "Or",
        "Shape",
        "Size",
        "Xor",
    ]
)
"""Operations whose results are no floats."""

_EXACT = frozenset(
    [
        "Abs",
        "Concat",
        "DepthToSpace",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "Identity",
        "Max",
        "MaxPool",
        "Min",
        "Neg",
        "Relu",
        "Reshape",
        "ReduceMax",
        "ReduceMin",
        "ReverseSequence",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "Tile",
        "TopK",
        "Transpose",
        "Trilu",
        "Unsqueeze",
        "Where",
    ]
)
"""Operations that give only what they were given, or its sign turned."""

_DECIDED_BY = {"Where": (1, 2), "Gather": (0,), "GatherND": (0,), "GatherElements": (0,), "Resize": (0,)}
"""Operands whose type the results have, where others may have another one; else all have it."""


def rounded(graph: Graph, narrow: Iterable[str], around: frozenset[str] = frozenset()) -> Graph:
    """Return a graph whose bfloat16 tensors, which it holds as float32, are rounded where they are stored.

    ``narrow``: its inputs and constants of bfloat16; ``around``: such names of graphs around it.
    """
    known = {*narrow, *around}
    nodes = tuple(_nodes(graph.nodes, known))
    outputs = tuple(replace(o, other_type=NAME) if o.name in known else o for o in graph.outputs)
    return replace(graph, nodes=nodes, outputs=outputs)


def _nodes(nodes: Iterable[Node], known: set[str]) -> Iterator[Node]:
    for given in nodes:
        inner = {k: _body(a, known) for k, a in given.attributes.items()}
        node = replace(given, attributes=inner)
        if not _stores(node, known):
            yield node
            continue
        if node.op in _EXACT:
            known |= {name for name in node.outputs if name}
            yield node
            continue
        if node.op == "Cast" and not node.domain:
            node = replace(node, attributes={**node.attributes, "to": FLOAT32})
        stored = [name for name in node.outputs if name]
        known |= {*stored}
        yield from with_rounding(node, stored, "Bfloat16", DOMAIN)


def _body(attribute: Any, known: set[str]) -> Any:
    if not isinstance(attribute, Graph):
        return attribute
    declared = [t.name for t in attribute.inputs if t.other_type == NAME]
    return rounded(attribute, declared, frozenset(known))


def _stores(node: Node, known: set[str]) -> bool:
    """Tell whether a node's floats are bfloat16."""
    if node.op == "Cast" and not node.domain:
        return bool(node.attributes.get("to") == NUMBER)
    if node.op == "CastLike" and not node.domain:
        return node.inputs[1] in known
    bodies = [a for a in node.attributes.values() if isinstance(a, Graph)]
    if bodies:
        return any(o.other_type == NAME for body in bodies for o in body.outputs)
    if node.op in _NO_FLOATS or node.domain == DOMAIN:
        return False
    deciding = _DECIDED_BY.get(node.op, range(len(node.inputs)))
    return any(node.inputs[k] in known for k in deciding if k < len(node.inputs))


OPERATIONS: Table = {"Bfloat16": unary(scalar.as_bfloat16)}
