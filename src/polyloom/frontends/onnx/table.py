"""Which function lowers which operation of ONNX."""

from __future__ import annotations

from polyloom.frontends.graph.context import Operation, Table
from polyloom.frontends.graph.model import Node
from polyloom.frontends.onnx.operations import (
    attention,
    control,
    elementwise,
    linear,
    movement,
    normalisation,
    pooling,
    quantised,
    recurrent,
    reductions,
    resize,
    sampling,
    sequences,
    signal,
    training,
)

OPERATIONS: Table = {
    **attention.OPERATIONS,
    **control.OPERATIONS,
    **elementwise.OPERATIONS,
    **linear.OPERATIONS,
    **movement.OPERATIONS,
    **normalisation.OPERATIONS,
    **pooling.OPERATIONS,
    **quantised.OPERATIONS,
    **recurrent.OPERATIONS,
    **reductions.OPERATIONS,
    **resize.OPERATIONS,
    **sampling.OPERATIONS,
    **sequences.OPERATIONS,
    **signal.OPERATIONS,
}
DOMAINS = {
    "": OPERATIONS,
    "ai.onnx.preview": attention.PREVIEW,
    "ai.onnx.preview.training": training.OPERATIONS,
}
"""The operations of each domain. Unknown ones may be functions of the file: those are inlined before."""


def find_operation(node: Node) -> Operation | None:
    """Return the function that lowers a node; None where there is none."""
    return DOMAINS.get(node.domain, {}).get(node.op)
