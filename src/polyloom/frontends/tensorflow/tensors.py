"""``TensorProto`` of TensorFlow as arrays. What it declares is compared with what it holds first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.scalar_functions.evaluation import from_bfloat16
from polyloom.ir.scalar_functions.narrow_formats import FORMATS, as_held
from polyloom.ir.scalar_functions.small_floats import of_codes
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]

TYPES = {
    1: ElementType.FLOAT32,
    2: ElementType.FLOAT64,
    3: ElementType.INT32,
    4: ElementType.UINT8,
    5: ElementType.INT16,
    6: ElementType.INT8,
    9: ElementType.INT64,
    10: ElementType.BOOL,
    17: ElementType.UINT16,
    19: ElementType.FLOAT16,
    22: ElementType.UINT32,
    23: ElementType.UINT64,
}
"""Element types by their numbers in TensorFlow (``DataType``)."""

STRING, BFLOAT16, RESOURCE, VARIANT = 7, 14, 20, 21

NARROW = {
    24: "float8_e5m2",
    25: "float8_e4m3fn",
    26: "float8_e4m3fnuz",
    28: "float8_e5m2fnuz",
    29: "int4",
    30: "uint4",
    31: "int2",
    32: "uint2",
}
"""Types of an element a byte whose values are held in a wider type: keys of ``narrow_formats.FORMATS``."""

_OTHER_TYPES = {
    STRING: "string",
    8: "complex64",
    11: "qint8",
    12: "quint8",
    13: "qint32",
    BFLOAT16: "bfloat16",
    18: "complex128",
    RESOURCE: "resource",
    VARIANT: "variant",
    27: "float8_e4m3b11fnuz",
    **NARROW,
}

_FIELDS = {
    1: "float_val",
    2: "double_val",
    9: "int64_val",
    10: "bool_val",
    BFLOAT16: "half_val",
    19: "half_val",
    22: "uint32_val",
    23: "uint64_val",
    **{number: "float8_val" for number, name in NARROW.items() if name.startswith("float8")},
}
"""Where elements are stored if not as raw bytes; the other types in ``int_val``."""

LARGEST_FILL = 2**28
"""Elements of a constant that the file gives by fewer values than it has elements."""


@dataclass(frozen=True, eq=False)
class Narrow:
    """The elements of a tensor of a narrow type, ``form``, in the wider type that holds them."""

    values: NDArray
    form: str


Elements = NDArray | Narrow


class Unreadable(Exception):
    """A tensor of the file cannot be used; the text says why."""


def type_name(number: int) -> str:
    """Return what TensorFlow calls an element type; a reference to a variable (100 and more) as its type."""
    number = number - 100 if number > 100 else number
    return TYPES[number].value if number in TYPES else _OTHER_TYPES.get(number, f"number {number}")


def element_type(number: int) -> ElementType | None:
    """Return an element type by its number, of bfloat16 float32; None where the IR has none."""
    return ElementType.FLOAT32 if number == BFLOAT16 else TYPES.get(number)


def shape_of(shape: Any) -> tuple[int | str, ...] | None:
    """Return a ``TensorShapeProto``: None for an unknown rank, ``""`` for a dimension that is left open."""
    if shape.unknown_rank:
        return None
    return tuple(int(d.size) if d.size >= 0 else "" for d in shape.dim)


def known_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape whose every dimension is known. Raises ``Unreadable``."""
    found = shape_of(shape)
    if found is None or any(isinstance(n, str) for n in found):
        raise Unreadable("its shape is not known")
    return tuple(int(n) for n in found)


def array_of(tensor: Any) -> Elements:
    """Return the elements of a tensor. Raises ``Unreadable``."""
    kind = stored_type(tensor.dtype)
    shape = known_shape(tensor.tensor_shape)
    if tensor.tensor_content:
        return of_bytes(tensor.tensor_content, tensor.dtype, shape)
    return _decoded(
        _of_values(getattr(tensor, _FIELDS.get(tensor.dtype, "int_val")), kind, shape), tensor.dtype
    )


def stored_type(number: int) -> ElementType:
    """Return the type that holds the bits of a tensor's elements. Raises ``Unreadable``."""
    if number in NARROW:
        return ElementType.UINT8
    kind = ElementType.UINT16 if number == BFLOAT16 else TYPES.get(number)
    if kind is None:
        raise Unreadable(f"its elements are of type {type_name(number)}")
    return kind


def of_bytes(data: bytes, number: int, shape: Sequence[int]) -> Elements:
    """Return an array of little-endian elements of a type by its number. Raises ``Unreadable``."""
    kind = stored_type(number)
    if len(data) != prod(shape) * kind.dtype.itemsize:
        raise Unreadable(f"it has {len(data)} bytes, not those of its shape {list(shape)}")
    stored = np.frombuffer(data, kind.dtype.newbyteorder("<"))
    return _decoded(stored.astype(kind.dtype, copy=False).reshape(shape), number)


def as_elements(array: NDArray) -> Elements:
    """Return an array of a running TensorFlow: of bfloat16 as float32, of a narrow type in a wider one."""
    name = array.dtype.name
    if name == type_name(BFLOAT16):
        return array.astype(np.float32)
    return Narrow(as_held(array, name), name) if name in NARROW.values() else array


def _decoded(stored: NDArray, number: int) -> Elements:
    """Return the elements whose bits are given."""
    if number == BFLOAT16:
        return from_bfloat16(stored)
    name = NARROW.get(number)
    if name is None:
        return stored
    form = FORMATS[name]
    if form.limits is None:
        return Narrow(of_codes(form.values, stored), name)
    least, largest = form.limits
    codes = stored & np.uint8(largest - least)
    sign = np.uint8(-least)
    return Narrow((codes ^ sign).astype(form.held.dtype) - form.held.dtype.type(sign), name)


def _of_values(stored: Any, kind: ElementType, shape: Sequence[int]) -> NDArray:
    """Return the values that a tensor lists; the last one stands for all that are left out."""
    size = prod(shape)
    if len(stored) > size:
        raise Unreadable(f"it has {len(stored)} elements, more than its shape {list(shape)}")
    if size > max(LARGEST_FILL, len(stored)):
        raise Unreadable(f"its shape {list(shape)} has more elements than a constant may have")
    given = _as_array(stored, kind)
    if given.size == size:
        return given.reshape(shape)
    last = given[-1] if given.size else kind.dtype.type(0)
    return np.concatenate([given, np.full(size - given.size, last, kind.dtype)]).reshape(shape)


def _as_array(stored: Any, kind: ElementType) -> NDArray:
    if kind is ElementType.FLOAT16:
        return np.asarray(stored, np.int64).astype(np.uint16).view(np.float16)
    if kind.is_float:
        return np.asarray(stored, kind.dtype)
    if isinstance(stored, bytes):
        return np.frombuffer(stored, kind.dtype)
    wide = np.uint64 if kind in (ElementType.UINT32, ElementType.UINT64) else np.int64
    return np.asarray(stored, wide).astype(kind.dtype)
