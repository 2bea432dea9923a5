"""Which function lowers which operation of ONNX."""

from __future__ import annotations

from polyloom.frontends.graph.context import Operation, Table
from polyloom.frontends.graph.model import Node
from polyloom.frontends.onnx.operations import (
    elementwise,
    linear,
    movement,
    normalisation,
    pooling,
    reductions,
)

OPERATIONS: Table = {
    **elementwise.OPERATIONS,
    **linear.OPERATIONS,
    **movement.OPERATIONS,
    **normalisation.OPERATIONS,
    **pooling.OPERATIONS,
    **reductions.OPERATIONS,
}


def find_operation(node: Node) -> Operation | None:
    """Return the function that lowers a node; None where there is none."""
    return OPERATIONS.get(node.op) if node.domain == "" else None
