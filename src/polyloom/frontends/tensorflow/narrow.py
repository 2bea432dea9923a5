"""Constants and variables of float8, int4 and int2: held in a wider type, which has all their values.

What moves or casts them reads the wide values (``graph.model.widened``); whatever else reads them is refused
by the name of their type. Source: TensorFlow's ``types.proto`` and ``TensorProto``; ``ml_dtypes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from polyloom.frontends.graph.model import Node, OnWide
from polyloom.ir.scalar_functions.narrow_formats import FORMATS

_MOVES = frozenset(
    [
        *("BroadcastTo", "EnsureShape", "ExpandDims", "Gather", "GatherNd", "GatherV2", "Identity"),
        *("PreventGradient", "ReadVariableOp", "Reshape", "ResourceGather", "ReverseV2", "Roll", "Slice"),
        *("Snapshot", "Squeeze", "StopGradient", "StridedSlice", "Tile", "Transpose"),
    ]
)
"""Operations whose result holds elements of their first operand alone."""


def on_wide(node: Node, formats: Mapping[str, str]) -> OnWide | None:
    """Return what a node is that may read the wide values of its first operand; else None."""
    form = formats.get(node.inputs[0]) if node.inputs else None
    if form is None or any(name in formats for name in node.inputs[1:]):
        return None
    if node.op not in _MOVES and node.op != "Cast":
        return None
    attributes = {name: _held(value, form) for name, value in node.attributes.items()}
    return OnWide(replace(node, attributes=attributes), "" if node.op == "Cast" else form)


def _held(attribute: Any, form: str) -> Any:
    """Return an attribute, for the narrow type that in which its values are held."""
    return FORMATS[form].held if isinstance(attribute, str) and attribute == form else attribute
