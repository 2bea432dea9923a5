"""Operations that write into their operand (``relu_``), as functions where nobody else can see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from polyloom.frontends.graph.model import Node

FRESH = (
    *("linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "convolution", "conv1d", "conv2d", "conv3d"),
    *("conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "batch_norm", "layer_norm"),
    *("group_norm", "add", "sub", "mul", "div", "neg", "exp", "relu", "sigmoid", "tanh", "sum", "mean"),
    *("gelu", "silu", "softmax", "cat", "stack", "clamp", "pow", "sqrt", "rsqrt", "max_pool2d", "avg_pool2d"),
    *("hardtanh", "leaky_relu", "elu", "hardswish", "hardsigmoid", "embedding", "adaptive_avg_pool2d"),
)
"""Operations whose result is new memory, never a view of an operand."""


def without_in_place(nodes: Sequence[Node], results: Sequence[str]) -> list[Node]:
    """Return nodes with ``f_`` as ``f`` where its first operand is new memory that nothing else reads.

    ``results``: the tensors that the program returns.

    Elsewhere a view might see the change: there the operation keeps its name, and no table knows it.
    """
    uses = Counter([*results, *(name for node in nodes for name in node.inputs)])
    fresh: set[str] = set()
    found = []
    for node in nodes:
        base = base_name(node.op)
        if base.endswith("_") and not base.startswith("_"):
            target = node.inputs[0] if node.inputs else ""
            if target in fresh and uses[target] == 1:
                node = replace(node, op=node.op.replace(f".{base}.", f".{base[:-1]}.", 1))
                fresh |= {*node.outputs}
        elif base in FRESH:
            fresh |= {*node.outputs}
        found.append(node)
    return found


def base_name(op: str) -> str:
    """Return the name of an operation without its library and overload: ``add`` of ``aten.add.Tensor``."""
    parts = op.split(".")
    return parts[1] if len(parts) > 1 else op
