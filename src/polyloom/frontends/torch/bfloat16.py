"""Tensors of bfloat16: computed as float32, and rounded to nearest even where PyTorch stores one.

    y = aten.add(x, w)      becomes, where y is bfloat16,      t = aten.add(x, w);  y = polyloom.bfloat16(t)

PyTorch's kernels on processors do the same: an operation computes in float32 and rounds its results once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from polyloom.frontends.graph import scalar
from polyloom.frontends.graph.context import Table
from polyloom.frontends.graph.model import Node, with_rounding
from polyloom.frontends.graph.rows import unary
from polyloom.frontends.torch.in_place import base_name

OPERATION = "polyloom.bfloat16"

_EXACT = frozenset(
    [
        *("abs", "alias", "amax", "amin", "cat", "chunk", "clone", "contiguous", "detach", "embedding"),
        *("expand", "expand_as", "flatten", "flip", "gather", "index", "index_select", "max", "max_pool2d"),
        *("max_pool2d_with_indices", "maximum", "min", "minimum", "movedim", "narrow", "neg", "permute"),
        *("relu", "repeat", "reshape", "roll", "select", "slice", "sort", "split", "split_with_sizes"),
        *("squeeze", "stack", "t", "tile", "topk", "transpose", "unbind", "unflatten", "unsqueeze", "view"),
    ]
)
"""Operations that give only what they were given, or its sign turned; where all of that is bfloat16."""


def rounded(nodes: Iterable[Node], narrow: Collection[str]) -> Iterator[Node]:
    """Yield nodes of which those tensors are rounded that are ``narrow``: bfloat16, held as float32."""
    for node in nodes:
        stored = [name for name in node.outputs if name in narrow]
        exact = base_name(node.op) in _EXACT and {*node.inputs[:1]} <= {*narrow}
        if not stored or (exact and len(node.inputs) == 1):
            yield node
        else:
            yield from with_rounding(node, stored, OPERATION)


OPERATIONS: Table = {OPERATION: unary(scalar.as_bfloat16)}
