"""Weights of float8, which tensor programs have not: decoded, and float32 where they are converted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from polyloom.frontends.graph.model import Node, OnWide
from polyloom.frontends.torch.call import TYPES_OF_RESULTS
from polyloom.frontends.torch.in_place import base_name
from polyloom.ir.scalar_functions.small_floats import E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ, of_codes
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]

NAMES = {
    29: "float8_e4m3fn",
    30: "float8_e5m2",
    31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz",
    33: "float8_e8m0fnu",
}
"""Of PyTorch, by the numbers of the schema of its archives."""

_FORMATS = {29: E4M3FN, 30: E5M2, 31: E4M3FNUZ, 32: E5M2FNUZ}

CONVERSIONS = frozenset(["to", "_to_copy", "type_as", "float", "double", "half", "long", "int", "bool"])
_MOVES = frozenset(
    [
        *("clone", "contiguous", "detach", "expand", "flatten", "permute", "reshape", "select", "slice"),
        *("squeeze", "t", "transpose", "unsqueeze", "view"),
    ]
)
"""Operations that give elements of their operand, with one result."""


def decoded(number: int, codes: NDArray) -> NDArray:
    """Return the elements of a type of ``NAMES`` as float32."""
    return of_codes(_FORMATS.get(number), codes)


def on_float32(node: Node, formats: Mapping[str, str]) -> OnWide | None:
    """Return what a node is that moves or converts float8; None for others (``graph/model.widened``)."""
    form = formats.get(node.inputs[0], "") if node.inputs else ""
    kind = base_name(node.op)
    if form and kind in _MOVES and len(node.outputs) == 1:
        attributes = {**node.attributes, TYPES_OF_RESULTS: (ElementType.FLOAT32,)}
        return OnWide(replace(node, attributes=attributes), form)
    return OnWide(node, "") if form and kind in CONVERSIONS else None
