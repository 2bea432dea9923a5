"""Which function lowers which operation of ONNX."""

from __future__ import annotations

from polyloom.frontends.graph.context import Operation, Table
from polyloom.frontends.graph.model import Node
from polyloom.frontends.onnx.operations import (
    control,
    elementwise,
    linear,
    movement,
    normalisation,
    pooling,
    quantised,
    recurrent,
    reductions,
    training,
)

OPERATIONS: Table = {
    **control.OPERATIONS,
    **elementwise.OPERATIONS,
    **linear.OPERATIONS,
    **movement.OPERATIONS,
    **normalisation.OPERATIONS,
    **pooling.OPERATIONS,
    **quantised.OPERATIONS,
    **recurrent.OPERATIONS,
    **reductions.OPERATIONS,
}
TRAINING = "ai.onnx.preview.training"


def find_operation(node: Node) -> Operation | None:
    """Return the function that lowers a node; None where there is none."""
    if node.domain == TRAINING:
        return training.OPERATIONS.get(node.op)
    return OPERATIONS.get(node.op) if node.domain == "" else None
