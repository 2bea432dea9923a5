"""``TensorProto`` as arrays. What a file declares is compared with what it holds before anything is made."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.files import note_read
from polyloom.frontends.onnx.narrow import BFLOAT16, BITS, NAMES, Narrow, decoded, stored_bytes
from polyloom.frontends.protobuf.reading import text
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]

TYPES = {
    1: ElementType.FLOAT32,
    2: ElementType.UINT8,
    3: ElementType.INT8,
    4: ElementType.UINT16,
    5: ElementType.INT16,
    6: ElementType.INT32,
    7: ElementType.INT64,
    9: ElementType.BOOL,
    10: ElementType.FLOAT16,
    11: ElementType.FLOAT64,
    12: ElementType.UINT32,
    13: ElementType.UINT64,
}
"""Element types by their numbers in ONNX."""

OTHER_TYPES = {
    8: "string",
    14: "complex64",
    15: "complex128",
    **NAMES,
}
"""Those that tensor programs have not."""

_FIELDS = {1: "float_data", 7: "int64_data", 11: "double_data", 12: "uint64_data", 13: "uint64_data"}
"""Where elements are stored if not as raw bytes; the other types in ``int32_data``."""


class Unreadable(Exception):
    """A tensor of the file cannot be used; the text says why."""


@dataclass(frozen=True)
class Place:
    """Where the model lies: external data are files beside it. None: nowhere, they cannot be read."""

    folder: Path | None


def type_name(number: int) -> str:
    """Return what ONNX calls an element type."""
    return TYPES[number].value if number in TYPES else OTHER_TYPES.get(number, f"number {number}")


def array_of(tensor: Any, place: Place) -> NDArray:
    """Return the elements of a tensor. Raises ``Unreadable``."""
    kind = TYPES.get(tensor.data_type)
    if kind is None:
        raise Unreadable(f"its elements are of type {type_name(tensor.data_type)}")
    shape = tuple(tensor.dims)
    if min(shape, default=0) < 0:
        raise Unreadable(f"a negative extent: {list(shape)}")
    flat = _elements(tensor, kind, place, prod(shape) * kind.dtype.itemsize)
    if flat.size != prod(shape):
        raise Unreadable(f"it has {flat.size} elements, not the {prod(shape)} of its shape {list(shape)}")
    return flat.reshape(shape)


def narrow_of(tensor: Any, place: Place) -> Narrow | None:
    """Return a tensor of a format that programs have not, decoded; None for other types.

    Raises ``Unreadable``.
    """
    kind, shape = tensor.data_type, tuple(tensor.dims)
    if kind not in BITS or min(shape, default=0) < 0:
        return None
    size = stored_bytes(kind, shape)
    if tensor.data_location == 1:
        data = _external(tensor, place, size)
    elif tensor.HasField("raw_data"):
        data = tensor.raw_data
    else:
        data = np.asarray(tensor.int32_data, np.int64).astype("<u2" if kind == BFLOAT16 else "u1").tobytes()
    try:
        values = decoded(kind, data, shape)
    except ValueError as fault:
        raise Unreadable(str(fault)) from fault
    return Narrow(f"its elements are of type {type_name(kind)}", values, kind)


def _elements(tensor: Any, kind: ElementType, place: Place, size: int) -> NDArray:
    little = kind.dtype.newbyteorder("<")
    if tensor.data_location == 1:
        return _of_bytes(_external(tensor, place, size), little)
    if tensor.HasField("raw_data"):
        return _of_bytes(tensor.raw_data, little)
    stored = getattr(tensor, _FIELDS.get(tensor.data_type, "int32_data"))
    if kind is ElementType.FLOAT16:
        return np.asarray(stored, np.int64).astype(np.uint16).view(np.float16)
    wide = np.uint64 if tensor.data_type in (12, 13) else np.int64
    return np.asarray(stored, None if kind.is_float else wide).astype(kind.dtype)


def _of_bytes(data: bytes, dtype: np.dtype[Any]) -> NDArray:
    if len(data) % dtype.itemsize:
        raise Unreadable(f"{len(data)} bytes are no whole number of elements")
    return np.frombuffer(data, dtype).astype(dtype.newbyteorder("="), copy=False)


def _external(tensor: Any, place: Place, wanted: int) -> bytes:
    """Return the ``wanted`` bytes of a tensor that lie in a file beside the model, and nowhere else."""
    entries = {text(e.key): text(e.value) for e in tensor.external_data}
    name = entries.get("location", "")
    if place.folder is None or not name:
        raise Unreadable("its elements are in another file, which is not given")
    try:
        path = (place.folder / name).resolve()
        if not path.is_relative_to(place.folder.resolve()):
            raise Unreadable(f"its elements are outside the model's folder: `{name}`")
        if not path.is_file():
            raise Unreadable(f"its elements are in `{name}`, which is no file")
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
        note_read(path)
        with path.open("rb") as file:
            size = path.stat().st_size
            if offset < 0 or offset > size or length > size - offset:
                raise Unreadable(f"`{name}` is too short")
            given = length if length >= 0 else size - offset
            if given != wanted:
                raise Unreadable(f"it has {given} bytes in `{name}`, its elements have {wanted}")
            file.seek(offset)
            return file.read(given)
    except (OSError, RuntimeError, ValueError) as fault:
        raise Unreadable(f"its elements are in `{name}`, which cannot be read: {fault}") from fault
