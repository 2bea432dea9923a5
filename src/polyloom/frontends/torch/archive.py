"""Archives of ``torch.export.save`` (``.pt2``): a zip file with the graph as JSON and tensors as raw bytes.

Read without PyTorch, and without unpickling: nothing of the file is ever executed. Source: PyTorch's
torch/export/pt2_archive and torch/_export/serde/schema.py (schema 8, PyTorch 2.9 and later).
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import PolyloomError, Unsupported, error
from polyloom.frontends.graph.builder import LARGEST_CONSTANT
from polyloom.frontends.torch import float8
from polyloom.ir.scalar_functions.evaluation import from_bfloat16
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]

MAJOR = 8
"""The version of the schema that is read; another major version means other things."""

LARGEST_JSON = 2**29
"""Bytes of a JSON text at most."""

TYPES = {
    1: ElementType.UINT8,
    2: ElementType.INT8,
    3: ElementType.INT16,
    4: ElementType.INT32,
    5: ElementType.INT64,
    6: ElementType.FLOAT16,
    7: ElementType.FLOAT32,
    8: ElementType.FLOAT64,
    12: ElementType.BOOL,
    28: ElementType.UINT16,
    34: ElementType.UINT32,
    35: ElementType.UINT64,
}
"""The numbers of the schema's ``ScalarType`` that the IR has."""

BFLOAT16 = 13
"""Of the schema; its tensors are held as float32."""

_STORED = {BFLOAT16: ElementType.UINT16, **dict.fromkeys(float8.NAMES, ElementType.UINT8)}
"""In what the bytes of other types are read; their values are held as float32."""

_OTHER_TYPES = {9: "complex32", 10: "complex64", 11: "complex128", **float8.NAMES}


def element_type(number: int) -> ElementType | None:
    """Return the type in which the IR holds elements of a ``ScalarType``; None where it cannot."""
    return ElementType.FLOAT32 if number == BFLOAT16 else TYPES.get(number)


class Unreadable(Exception):
    """A tensor's elements cannot be used; the text says why."""


@dataclass
class _Allowance:
    """How many bytes the tensors of an archive may still take: few bytes of a hostile one unpack to many."""

    left: int

    def take(self, count: int) -> None:
        """Take bytes. Raises ``Unreadable``."""
        if count > self.left:
            raise Unreadable("the archive unpacks to much more than it holds")
        self.left -= count


@dataclass(frozen=True)
class Archive:
    """``model``: the JSON of the program. ``tensors``: by the names of parameters, buffers and constants."""

    model: Mapping[str, Any]
    tensors: Mapping[str, NDArray]
    unreadable: Mapping[str, str]


def read_archive(data: bytes, what: str) -> Archive:
    """Return what an archive holds; ``what`` is its name in messages. Errors: ``model-...``."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            return _read(file, what)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as fault:
        raise broken(what, str(fault) or type(fault).__name__) from fault
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as fault:
        raise broken(what, f"it is not as its schema says: {fault!r}") from fault


def _read(file: zipfile.ZipFile, what: str) -> Archive:
    entries = {info.filename.partition("/")[2]: info for info in file.infolist()}
    models = [name for name in entries if name.startswith("models/") and name.endswith(".json")]
    if len(models) != 1:
        raise _no_program(entries, models, what)
    name = models[0].removeprefix("models/").removesuffix(".json")
    model = _json(file, entries, models[0])
    major = model["schema_version"]["major"]
    if major != MAJOR:
        helps = ["export and save it again with PyTorch 2.9 or later"]
        message = f"{what} is of schema {major}; Polyloom reads {MAJOR}"
        raise Unsupported(error("model-opset", message, helps=helps))
    if "byteorder" in entries and file.read(entries["byteorder"]).strip() != b"little":
        raise broken(what, "its bytes are not in little-endian order")
    tensors: dict[str, NDArray] = {}
    unreadable: dict[str, str] = {}
    allowance = _Allowance(2**28 + 100 * sum(info.compress_size for info in entries.values()))
    for folder in ("weights", "constants"):
        config = f"data/{folder}/{name}_{folder}_config.json"
        if config in entries:
            for key, entry in _json(file, entries, config)["config"].items():
                try:
                    tensors[key] = _tensor(file, entries, f"data/{folder}/", entry, allowance)
                except Unreadable as reason:
                    unreadable[key] = str(reason)
    return Archive(model, tensors, unreadable)


def _no_program(entries: Mapping[str, Any], models: list[str], what: str) -> PolyloomError:
    if models:
        listed = ", ".join(models)
        return Unsupported(error("model-opset", f"{what} holds several programs: {listed}"))
    old = any("serialized_exported_program" in name for name in [*entries])
    if old or any("aotinductor" in name for name in entries):
        helps = ["save it with PyTorch 2.9 or later: `torch.export.save(program, path)`"]
        kind = "is of an older PyTorch" if old else "holds compiled code and no graph"
        return Unsupported(error("model-opset", f"{what} {kind}", helps=helps))
    return broken(what, "it has no models/*.json: it is no archive of torch.export.save")


def _json(file: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], name: str) -> Any:
    if entries[name].file_size > LARGEST_JSON:
        raise ValueError(f"{name} is larger than {LARGEST_JSON} bytes")
    return json.loads(file.read(entries[name]))


def _tensor(
    file: zipfile.ZipFile,
    entries: Mapping[str, zipfile.ZipInfo],
    folder: str,
    entry: Mapping[str, Any],
    allowance: _Allowance,
) -> NDArray:
    """Return a tensor: a view of the storage that several may share. Raises ``Unreadable``."""
    meta = entry.get("tensor_meta")
    info = entries.get(folder + str(entry["path_name"]))
    if entry.get("use_pickle") or meta is None:
        raise Unreadable("it is pickled, not stored as plain bytes")
    if info is None:
        raise Unreadable("the archive does not hold its bytes")
    kind = _STORED.get(meta["dtype"]) or TYPES.get(meta["dtype"])
    if kind is None:
        raise Unreadable(f"its elements are of type {type_name(meta['dtype'])}")
    if info.file_size > LARGEST_CONSTANT:
        raise Unreadable("it is larger than 2 GiB")
    allowance.take(info.file_size)
    storage = file.read(info)
    whole = np.frombuffer(storage[: len(storage) // kind.size * kind.size], kind.dtype.newbyteorder("<"))
    found = _strided(whole.astype(kind.dtype), meta, allowance)
    if meta["dtype"] in float8.NAMES:
        return float8.decoded(meta["dtype"], found)
    return from_bfloat16(found) if meta["dtype"] == BFLOAT16 else found


def _strided(storage: NDArray, meta: Mapping[str, Any], allowance: _Allowance) -> NDArray:
    shape = tuple(int(n["as_int"]) for n in meta["sizes"])
    strides = tuple(int(n["as_int"]) for n in meta["strides"])
    start = int(meta["storage_offset"]["as_int"])
    if min((*shape, *strides, start), default=0) < 0 or len(shape) != len(strides):
        raise Unreadable("a negative extent or stride")
    if prod(shape) == 0:
        return np.zeros(shape, storage.dtype)
    last = start + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if last >= storage.size:
        raise Unreadable(f"its storage has {storage.size} elements, not {last + 1}")
    if prod(shape) * storage.itemsize > LARGEST_CONSTANT:
        raise Unreadable("it is larger than 2 GiB")
    allowance.take(prod(shape) * storage.itemsize)
    steps = [s * storage.itemsize for s in strides]
    return np.array(np.lib.stride_tricks.as_strided(storage[start:], shape, steps, writeable=False))


def type_name(number: int) -> str:
    """Return what messages call an element type that the IR has not."""
    return _OTHER_TYPES.get(number, f"number {number}")


def broken(what: str, reason: str) -> PolyloomError:
    """Return the error for an archive that is not what it should be."""
    helps = ["a `.pt2` file is written by `torch.export.save(torch.export.export(module, inputs), path)`"]
    return PolyloomError(error("model-broken", f"{what} cannot be read", notes=[reason], helps=helps))
