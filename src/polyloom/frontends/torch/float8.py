"""Weights of float8, which tensor programs have not: decoded, and read as float32 where they are converted.

    w.t().to(torch.float32)      becomes, where w is a weight of float8,      that of its values as float32

PyTorch moves tensors of float8 and converts them. Whatever else reads one is refused by the name of its type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from polyloom.frontends.graph.model import Node
from polyloom.frontends.torch.call import TYPES_OF_RESULTS
from polyloom.frontends.torch.in_place import base_name
from polyloom.ir.scalar_functions.small_floats import (
    E4M3FN,
    E4M3FNUZ,
    E5M2,
    E5M2FNUZ,
    powers_of_two,
    values_of,
)
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
    values = values_of(_FORMATS[number]) if number in _FORMATS else powers_of_two()
    found: NDArray = values[codes]
    return found


def as_float32(name: str) -> str:
    """Return the name under which the values of a tensor of float8 are held."""
    return f"{name} as float32"


def widened(
    nodes: Iterable[Node],
    constants: Collection[str],
    unreadable: dict[str, str],
    results: Collection[str],
) -> Iterator[Node]:
    """Yield nodes with those that move or convert weights of float8 on their values as float32.

    What a move gives is of float8 too, and becomes ``unreadable`` to others. ``constants``: where the values
    are held, by ``as_float32``. ``results``: of the graph, which stay as they are.
    """
    held = {*constants}
    for node in nodes:
        source = as_float32(node.inputs[0]) if node.inputs else ""
        kind = base_name(node.op)
        moves = kind in _MOVES and len(node.outputs) == 1 and node.outputs[0] not in results
        if source not in held or node.inputs[0] not in unreadable or not (moves or kind in CONVERSIONS):
            yield node
            continue
        read = replace(node, inputs=(source, *node.inputs[1:]))
        if moves:
            (moved,) = node.outputs
            unreadable[moved] = unreadable[node.inputs[0]]
            held.add(as_float32(moved))
            attributes = {**node.attributes, TYPES_OF_RESULTS: (ElementType.FLOAT32,)}
            read = replace(read, outputs=(as_float32(moved),), attributes=attributes)
        yield read
