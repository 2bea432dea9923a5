"""Which function lowers which operation of TensorFlow."""

from __future__ import annotations

from polyloom.frontends.graph.context import Operation, Table
from polyloom.frontends.graph.model import Node
from polyloom.frontends.tensorflow.operations import (
    control,
    diagonals,
    elementwise,
    images,
    indexing,
    linear,
    lists,
    movement,
    normalisation,
    optimizers,
    pooling,
    reductions,
    resizing,
)

OPERATIONS: Table = {
    **control.OPERATIONS,
    **diagonals.OPERATIONS,
    **elementwise.OPERATIONS,
    **images.OPERATIONS,
    **indexing.OPERATIONS,
    **linear.OPERATIONS,
    **lists.OPERATIONS,
    **movement.OPERATIONS,
    **normalisation.OPERATIONS,
    **optimizers.OPERATIONS,
    **pooling.OPERATIONS,
    **reductions.OPERATIONS,
    **resizing.OPERATIONS,
}


def find_operation(node: Node) -> Operation | None:
    """Return the function that lowers a node; None where there is none."""
    return OPERATIONS.get(node.op)
