"""Which function lowers which operation of ONNX."""

from __future__ import annotations

from typing import NoReturn

from polyloom.frontends.graph.context import Operation, Table
from polyloom.frontends.graph.model import Node
from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.onnx import bfloat16
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
from polyloom.frontends.onnx.operators import fault

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
    bfloat16.DOMAIN: {**bfloat16.OPERATIONS, **quantised.NARROW},
    "": OPERATIONS,
    "ai.onnx.preview": attention.PREVIEW,
    "ai.onnx.preview.training": training.OPERATIONS,
}
"""The operations of each domain. Unknown ones may be functions of the file: those are inlined before."""


def find_operation(node: Node) -> Operation | None:
    """Return the function that lowers a node, or one that says why it is refused; None where none is."""
    reason = fault(node)
    if reason is not None:
        return lambda _: refuse(reason)
    return DOMAINS.get(node.domain, {}).get(node.op)


def refuse(reason: str) -> NoReturn:
    """Raise ``Refused`` with a reason."""
    raise Refused(reason)
