"""Formats that tensor programs have not: bfloat16, float8, float4, integers of 2 and 4 bits.

Constants are decoded to float32, int8 and uint8, which hold all their values. What moves, casts or
dequantises them reads those, and what quantises to them gives those (``on_wide``); whatever else reads them
is refused by name.
Source: the specification of ONNX, Cast, QuantizeLinear, DequantizeLinear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.model import Node, OnWide
from polyloom.frontends.onnx.operators import fault
from polyloom.ir.scalar_functions import narrow_formats
from polyloom.ir.scalar_functions.evaluation import from_bfloat16
from polyloom.ir.scalar_functions.small_floats import of_codes

NDArray = npt.NDArray[Any]

FORMATS = {
    17: "float8_e4m3fn",
    18: "float8_e4m3fnuz",
    19: "float8_e5m2",
    20: "float8_e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4_e2m1fn",
    24: "float8_e8m0fnu",
    25: "uint2",
    26: "int2",
}
"""What callers call them, by the numbers of their types in ONNX."""

_ALL = {number: narrow_formats.FORMATS[name] for number, name in FORMATS.items()}

FLOATS = {number: form.values for number, form in _ALL.items() if form.values is not None}
"""Floats with a sign, by number."""

BFLOAT16, FLOAT8E8M0 = 16, 24
INTEGERS = {
    number: ((form.limits[1] - form.limits[0]).bit_length(), form.limits[0] < 0)
    for number, form in _ALL.items()
    if form.limits is not None
}
"""Bits of integers, and whether they have a sign."""

NAMES = {
    16: "bfloat16",
    17: "float8e4m3fn",
    18: "float8e4m3fnuz",
    19: "float8e5m2",
    20: "float8e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4e2m1",
    24: "float8e8m0",
    25: "uint2",
    26: "int2",
}
"""What ONNX calls them."""

BITS = {
    BFLOAT16: 16,
    FLOAT8E8M0: 8,
    17: 8,
    18: 8,
    19: 8,
    20: 8,
    23: 4,
    **{k: b for k, (b, _) in INTEGERS.items()},
}
"""Bits of an element."""


def stored_bytes(kind: int, shape: tuple[int, ...]) -> int:
    """Return how many bytes the elements of a tensor take; the last byte may be full in part."""
    return -(-prod(shape) * BITS[kind] // 8)


def decoded(kind: int, data: bytes, shape: tuple[int, ...]) -> NDArray:
    """Return elements as float32, int8 or uint8. Errors: ValueError where there are too few bytes."""
    if len(data) < stored_bytes(kind, shape):
        raise ValueError(f"it has {len(data)} bytes, its elements have {stored_bytes(kind, shape)}")
    if kind == BFLOAT16:
        return from_bfloat16(np.frombuffer(data, "<u2"))[: prod(shape)].reshape(shape)
    codes = _codes(np.frombuffer(data, np.uint8), BITS[kind])[: prod(shape)].reshape(shape)
    if kind in INTEGERS:
        bits, signed = INTEGERS[kind]
        return (codes ^ (1 << bits - 1)).astype(np.int8) - np.int8(1 << bits - 1) if signed else codes
    return of_codes(FLOATS.get(kind), codes)


def _codes(data: NDArray, bits: int) -> NDArray:
    """Return the codes of elements of 2, 4 or 8 bits; the first is in the lowest bits of a byte."""
    places = np.arange(0, 8, bits, dtype=np.uint8)
    return ((data[:, None] >> places) & np.uint8((1 << bits) - 1)).reshape(-1)


@dataclass(frozen=True)
class Unusable:
    """An attribute that cannot be used, and why: a fault of the node that asks for it."""

    reason: str


@dataclass(frozen=True, eq=False)
class Narrow(Unusable):
    """The elements of a constant, decoded; ``reason``: why it cannot be used as it is;
    ``kind``: the number of their type in ONNX.
    """

    values: NDArray
    kind: int


DOMAIN = "polyloom"
"""Of the operations that give narrow values: ``QuantizeNarrow`` and ``CastNarrow``."""

KIND = "kind"
"""The attribute of these that says of which type they are, by its number in ONNX."""

_MOVES = frozenset(
    [
        *("Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape"),
        *("Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    ]
)
"""Operations that give elements of their first operand, or of all (Concat)."""

NUMBERS = {name: kind for kind, name in NAMES.items()}
"""The numbers of types by what ONNX calls them."""


def on_wide(node: Node, formats: Mapping[str, str]) -> OnWide | None:
    """Return what a node is that moves, converts or gives narrow values; None for others.

    ``formats``: of what is known to be narrow (``graph/model.widened``).
    """
    if node.domain or not node.inputs or fault(node) is not None:
        return None
    first, *others = (formats.get(name, "") for name in node.inputs)
    if node.op in _MOVES:
        alike = all(form == first for form in others) if node.op == "Concat" else not any(others)
        return OnWide(node, first) if first and alike else None
    kind = _stored(node, others)
    if kind in FLOATS or kind in INTEGERS:
        given = replace(node, domain=DOMAIN, op=_GIVING[node.op], attributes={**node.attributes, KIND: kind})
        return OnWide(given, NAMES[kind])
    plain = node.op in ("Cast", "CastLike", "DequantizeLinear") and kind is None
    return OnWide(node, "") if first and plain else None


_GIVING = {"QuantizeLinear": "QuantizeNarrow", "Cast": "CastNarrow", "CastLike": "CastNarrow"}


def _stored(node: Node, others: Sequence[str]) -> int | None:
    """Return the narrow type of what a node gives, as it says itself; None where it says none."""
    match node.op:
        case "Cast":
            kind = node.attributes.get("to")
        case "CastLike":
            kind = NUMBERS.get(others[0]) if others else None
        case "QuantizeLinear":
            zero = others[1] if len(others) > 1 else ""
            kind = NUMBERS.get(zero, node.attributes.get("output_dtype"))
        case _:
            return None
    return kind if kind in NAMES and kind != BFLOAT16 else None
