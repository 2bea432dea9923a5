"""Which function lowers which operation of PyTorch: by its name, and for all of its overloads."""

from __future__ import annotations

from polyloom.frontends.graph.context import Operation, Table
from polyloom.frontends.graph.model import Node
from polyloom.frontends.torch import assertions, bfloat16, float8
from polyloom.frontends.torch.operations import (
    counting,
    elementwise,
    indexing,
    linear,
    movement,
    normalisation,
    ordering,
    pooling,
    recurrent,
    reductions,
    resizing,
)

OPERATIONS: Table = {
    **assertions.OPERATIONS,
    **bfloat16.OPERATIONS,
    **float8.OPERATIONS,
    **counting.OPERATIONS,
    **elementwise.OPERATIONS,
    **indexing.OPERATIONS,
    **linear.OPERATIONS,
    **movement.OPERATIONS,
    **normalisation.OPERATIONS,
    **ordering.OPERATIONS,
    **pooling.OPERATIONS,
    **recurrent.OPERATIONS,
    **reductions.OPERATIONS,
    **resizing.OPERATIONS,
}


def find_operation(node: Node) -> Operation | None:
    """Return the function that lowers a node; None where there is none."""
    return OPERATIONS.get(".".join(node.op.split(".")[:2]))
