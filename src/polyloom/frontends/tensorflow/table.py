"""Which function lowers which operation of TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyloom.frontends.graph.context import Context, Operation, Recorded, Table
from polyloom.frontends.graph.model import Node
from polyloom.frontends.graph.values import Anything
from polyloom.frontends.tensorflow import bfloat16
from polyloom.frontends.tensorflow.ignored import refuse_ignored
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
    operation = OPERATIONS.get(node.op) or bfloat16.OPERATIONS.get(node.op)
    return None if operation is None else _strict(operation)


def _strict(operation: Operation) -> Operation:
    """Return an operation that refuses attributes that nobody asks for."""

    def lowered(context: Context) -> Sequence[Anything]:
        attributes = Recorded(context.node.attributes)
        results = operation(replace(context, node=replace(context.node, attributes=attributes)))
        refuse_ignored(context.node.op, attributes.unread)
        return results

    return lowered
