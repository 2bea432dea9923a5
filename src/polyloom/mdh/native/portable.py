"""Programs that were built as documents and shared objects, and back: no compiler is needed then.

A document is of JSON. Shared objects go by the digest of their bytes. Local arrays that share memory are
places in a region, so that they share it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.caches import is_whole, kept
from polyloom.mdh.native.build import object_folder
from polyloom.mdh.native.entry import Entry, loaded
from polyloom.mdh.native.execution import Loading, Prepared, address, aligned
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation

NDArray = npt.NDArray[Any]
Document = dict[str, Any]

_DIGEST = hashlib.sha256().digest_size


@dataclass
class Objects:
    """Shared objects by the digests of their bytes, in hexadecimal digits."""

    content: dict[str, bytes] = field(default_factory=dict)
    names: dict[Path, str] = field(default_factory=dict)

    def add(self, path: Path) -> str:
        """Add one that is kept as a file; return its digest."""
        if path not in self.names:
            data = path.read_bytes()
            content = data[:-_DIGEST] if is_whole(path) else data
            self.names[path] = hashlib.sha256(content).hexdigest()
            self.content[self.names[path]] = content
        return self.names[path]

    def path(self, digest: str) -> Path:
        """Return a file of it, made only where there is none. Errors: ``file-unwritable``."""
        return kept(object_folder(), f"saved-{digest[:40]}.so", lambda: self.content[digest])


def document_of(prepared: Prepared, objects: Objects) -> Document:
    """Return what a program that was built is; its code is added to ``objects``."""
    loading = prepared.loading
    regions, places = _regions(prepared.kept)
    return {
        "entry": _entry(prepared.entry, objects),
        "loading": None if loading.entry is None else _entry(loading.entry, objects),
        "constants": sorted(loading.constants),
        "regions": regions,
        "kept": [
            [name, list(array.shape), array.dtype.name, *places[name]]
            for name, array in prepared.kept.items()
        ],
        "shapes": {name: list(shape) for name, shape in prepared.shapes.items()},
        "nodes": list(prepared.nodes),
    }


def prepared_of(document: Document, objects: Objects, threads: int) -> Prepared:
    """Return the program that a document says, with its code loaded; ``threads``: at most.

    Errors: ``native-load``, ``file-unwritable``, MemoryError.
    """
    entry = _loaded(document["entry"], objects, threads)
    load = document["loading"]
    regions = [aligned((size,), np.dtype(np.uint8)) for size in document["regions"]]
    arrays = {}
    for name, shape, dtype, region, offset in document["kept"]:
        kind = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        arrays[name] = regions[region][offset : offset + count].view(kind).reshape(shape)
    loading = Loading(
        None if load is None else _loaded(load, objects, threads), frozenset(document["constants"])
    )
    prepared = Prepared(
        entry=entry,
        call=entry.call([0] * len(entry.parameters)),
        kept=arrays,
        shapes={name: tuple(shape) for name, shape in document["shapes"].items()},
        loading=loading,
        nodes=tuple(document["nodes"]),
    )
    for k, place in enumerate(prepared.addresses({})):
        prepared.call.arrays[k] = place
    return prepared


def _entry(entry: Entry, objects: Objects) -> Document:
    return {
        "name": entry.name,
        "parameters": list(entry.parameters),
        "object": objects.add(entry.library),
        "team": objects.add(entry.team),
        "threads": entry.threads,
    }


def _loaded(document: Document, objects: Objects, threads: int) -> Entry:
    paths = objects.path(document["object"]), objects.path(document["team"])
    return loaded(document["name"], tuple(document["parameters"]), *paths, min(document["threads"], threads))


def _regions(arrays: Mapping[str, NDArray]) -> tuple[list[int], dict[str, tuple[int, int]]]:
    """Return the sizes of regions of memory, and for each array its region and where it begins there.

    Arrays that overlap are in one region, as far from each other as they are.
    """
    order = sorted(arrays, key=lambda name: (address(arrays[name]), -arrays[name].nbytes))
    sizes: list[int] = []
    places: dict[str, tuple[int, int]] = {}
    begin = end = -1
    for name in order:
        at = address(arrays[name])
        if not sizes or at >= end:
            begin, end = at, at
            sizes.append(0)
        places[name] = len(sizes) - 1, at - begin
        end = max(end, at + arrays[name].nbytes)
        sizes[-1] = end - begin
    return sizes, places


def integer_document(expression: IntExpression) -> Any:
    """Return an integer expression as JSON: a number, a name, or ``[operator, operand, ...]``."""
    match expression:
        case Number(value=value):
            return value
        case Name(name=name):
            return name
        case Operation(operator=operator, operands=operands):
            return [operator, *map(integer_document, operands)]


def integer_of(document: Any) -> IntExpression:
    """Return the integer expression of a document of ``integer_document``."""
    if isinstance(document, int):
        return Number(document)
    if isinstance(document, str):
        return Name(document)
    return Operation(document[0], tuple(map(integer_of, document[1:])))
