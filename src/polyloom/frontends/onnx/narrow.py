"""Constants in formats that tensor programs have not: bfloat16, float8, float4, integers of 2 and 4 bits.

They are decoded to float32 and int8, which hold all their values, and what only casts or dequantises them is
computed at import; whatever else reads them is refused by name.
Source: the specification of ONNX, DequantizeLinear.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.model import Node
from polyloom.ir.scalar_functions.evaluation import from_bfloat16
from polyloom.ir.scalar_functions.small_floats import (
    E2M1,
    E4M3FN,
    E4M3FNUZ,
    E5M2,
    E5M2FNUZ,
    powers_of_two,
    values_of,
)
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]


FLOATS = {17: E4M3FN, 18: E4M3FNUZ, 19: E5M2, 20: E5M2FNUZ, 23: E2M1}
"""By the numbers of their types in ONNX."""

BFLOAT16, FLOAT8E8M0 = 16, 24
INTEGERS = {21: (4, False), 22: (4, True), 25: (2, False), 26: (2, True)}
"""Bits of integers, and whether they have a sign."""

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
    found: NDArray = (powers_of_two() if kind == FLOAT8E8M0 else values_of(FLOATS[kind]))[codes]
    return found


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


def folded(
    nodes: Iterable[Node],
    constants: dict[str, NDArray],
    unreadable: dict[str, str],
    narrow: dict[str, Narrow],
    types: Mapping[int, ElementType],
) -> list[Node]:
    """Return the nodes without those that cast or dequantise constants of narrow formats.

    Their results are added to ``constants``; those in ``narrow`` are ``unreadable`` otherwise.
    ``types``: the element types by their numbers.
    """
    left = []
    for node in nodes:
        value = node.attributes.get("value")
        if node.op == "Constant" and isinstance(value, Narrow) and not node.domain:
            narrow[node.outputs[0]], unreadable[node.outputs[0]] = value, value.reason
            continue
        found = _folded(node, constants, narrow, types) if not node.domain and node.inputs else None
        if found is None:
            left.append(node)
        else:
            constants[node.outputs[0]] = found
    return left


def _folded(
    node: Node,
    constants: Mapping[str, NDArray],
    narrow: Mapping[str, Narrow],
    types: Mapping[int, ElementType],
) -> NDArray | None:
    source = narrow.get(node.inputs[0])
    if source is None:
        return None
    if node.op == "Cast":
        kind = types.get(node.attributes.get("to", 0))
        return None if kind is None else _cast(source.values, kind)
    if node.op == "DequantizeLinear":
        return _dequantised(source.values, node, constants, narrow)
    return None


def _cast(values: NDArray, kind: ElementType) -> NDArray | None:
    """Return values in another type; None for floats that an integer type has not."""
    if values.dtype.kind == "f" and not kind.is_float and kind is not ElementType.BOOL:
        limits = np.iinfo(kind.value)
        if not (np.isfinite(values) & (values > limits.min - 1.0) & (values < limits.max + 1.0)).all():
            return None
    with np.errstate(over="ignore"):
        return values.astype(kind.dtype)


def _dequantised(
    values: NDArray, node: Node, constants: Mapping[str, NDArray], narrow: Mapping[str, Narrow]
) -> NDArray | None:
    """Return ``(x - zero point) * scale``: for the whole, along an axis, or for blocks along it."""
    scale = constants.get(node.inputs[1]) if len(node.inputs) > 1 else None
    if scale is None or {*node.attributes} - {"axis", "block_size"} or scale.dtype.kind != "f":
        return None
    zero = None
    if len(node.inputs) > 2 and node.inputs[2]:
        name = node.inputs[2]
        zero = narrow[name].values if name in narrow else constants.get(name)
        if zero is None or zero.shape != scale.shape:
            return None
    axis, block = node.attributes.get("axis", 1), node.attributes.get("block_size", 0)
    each = [_spread(a, values.shape, axis, block) for a in (scale, zero) if a is not None]
    if any(a is None for a in each):
        return None
    wide = np.float32 if values.dtype.kind == "f" else np.int32
    moved = values.astype(wide) - each[1].astype(wide) if len(each) > 1 else values.astype(wide)
    found: NDArray = (moved.astype(np.float32) * each[0].astype(np.float32)).astype(scale.dtype)
    return found


def _spread(array: NDArray, shape: tuple[int, ...], axis: int, block: int) -> Any:
    """Return a scale or zero point for each element; None where its shape fits not."""
    if not -len(shape) <= axis < max(len(shape), 1) and array.size != 1:
        return None
    if array.size == 1 and array.ndim <= 1:
        return array.reshape(())
    axis %= len(shape)
    if array.ndim == 1 and not block and array.size == shape[axis]:
        return array.reshape([-1 if k == axis else 1 for k in range(len(shape))])
    if block > 0 and array.ndim == len(shape):
        wide = np.repeat(array, block, axis)[tuple(slice(n) for n in shape)]
        return wide if wide.shape == shape else None
    return None
