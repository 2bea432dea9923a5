"""Tensors of float8, which tensor programs have not: float32, rounded where PyTorch converts to them.

    y = aten.to(x, float8_e5m2)      becomes      y widened = polyloom.float8(x)

Numbers beyond the largest become that in E4M3FN, else infinite, or NaN where the format has no infinity.
Source: PyTorch 2.13 and 2.14 on processors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from polyloom.frontends.graph import scalar
from polyloom.frontends.graph.context import Context, Table, only
from polyloom.frontends.graph.functions import as_small_float
from polyloom.frontends.graph.model import Node, OnWide
from polyloom.frontends.graph.operations.elementwise import mapped
from polyloom.frontends.graph.values import Value
from polyloom.frontends.torch.call import ARGUMENTS, TYPES_OF_RESULTS, Operand
from polyloom.frontends.torch.in_place import base_name
from polyloom.ir.expressions import Expression
from polyloom.ir.scalar_functions.narrow_formats import FORMATS
from polyloom.ir.scalar_functions.small_floats import E4M3FN, of_codes
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

_ROUNDED = {name: form for name in NAMES.values() if (form := FORMATS[name].values) is not None}

OPERATION, FORM = "polyloom.float8", "form"
"""The operation that rounds, and its attribute: the name of the format."""

CONVERSIONS = frozenset(["to", "_to_copy", "type_as", "float", "double", "half", "long", "int", "bool"])
_MOVES = frozenset(
    [
        *("clone", "contiguous", "detach", "expand", "flatten", "permute", "reshape", "select", "slice"),
        *("alias", "squeeze", "t", "transpose", "unsqueeze", "view"),
    ]
)
"""Operations that give elements of their operand, with one result."""


def decoded(number: int, codes: NDArray) -> NDArray:
    """Return the elements of a type of ``NAMES`` as float32."""
    return of_codes(FORMATS[NAMES[number]].values, codes)


def on_float32(made: Mapping[str, str], node: Node, formats: Mapping[str, str]) -> OnWide | None:
    """Return what a node is that moves or converts float8; None for others (``graph/model.widened``).

    ``made``: the formats that tensors have in PyTorch, by name.
    """
    form, kind = formats.get(node.inputs[0], "") if node.inputs else "", base_name(node.op)
    wanted = made.get(node.outputs[0], "") if len(node.outputs) == 1 else ""
    attributes = {**node.attributes, TYPES_OF_RESULTS: (ElementType.FLOAT32,)}
    if form and kind in _MOVES and len(node.outputs) == 1:
        return OnWide(replace(node, attributes=attributes), form)
    if wanted in _ROUNDED and kind in CONVERSIONS:
        attributes = {**attributes, ARGUMENTS: {"self": Operand(0)}, FORM: wanted}
        return OnWide(Node(node.name, OPERATION, node.inputs[:1], node.outputs, attributes), wanted)
    return OnWide(node, "") if form and kind in CONVERSIONS and not wanted else None


def _round(c: Context) -> Sequence[Value]:
    form = _ROUNDED[c.node.attributes[FORM]]

    def function(x: Expression) -> Expression:
        return as_small_float(scalar.convert(x, ElementType.FLOAT32), form, saturate=form is E4M3FN)

    return only(mapped(c.b, function, c.input(0)))


OPERATIONS: Table = {OPERATION: _round}
