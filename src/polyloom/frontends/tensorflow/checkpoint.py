"""A checkpoint of TensorFlow (``variables.index`` and its data files): arrays by key.

The index is a sorted table: a footer that points to an index block, whose entries point to data blocks, whose
entries are keys and ``BundleEntryProto``s. Keys share prefixes.
Every length is checked against the bytes that there are before it is used.

Source: tensorflow/core/lib/io/table_format.txt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from polyloom.files import exists
from polyloom.frontends.protobuf.reading import broken, parse, read_bytes, text
from polyloom.frontends.protobuf.tensorflow_schema import tensorflow_messages
from polyloom.frontends.tensorflow.tensors import (
    STRING,
    Elements,
    Unreadable,
    known_shape,
    of_bytes,
    stored_type,
)

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_TRAILER = 5
_CHECKSUM = 4


@dataclass(frozen=True)
class Checkpoint:
    """``entries``: a ``BundleEntryProto`` for each key; data lie in ``prefix.data-00000-of-00001``, ..."""

    prefix: Path
    shards: int
    entries: Mapping[str, Any]

    def array(self, key: str) -> Elements:
        """Return the array of a key. Raises ``Unreadable``; errors: ``file-...``."""
        entry = self.entries.get(key)
        if entry is None:
            raise Unreadable(f"the checkpoint has no `{key}`")
        kind = stored_type(entry.dtype)
        shape = known_shape(entry.shape)
        if prod(shape) * kind.dtype.itemsize != entry.size:
            raise Unreadable(f"it has {entry.size} bytes, not those of its shape {list(shape)}")
        return of_bytes(self._data(entry), entry.dtype, shape)

    def message(self, key: str) -> bytes:
        """Return the one text that a key stands for. Raises ``Unreadable``; errors: ``file-...``."""
        entry = self.entries.get(key)
        if entry is None or entry.dtype != STRING or prod(known_shape(entry.shape)) != 1:
            raise Unreadable(f"the checkpoint has no text `{key}`")
        data = self._data(entry)
        length, start = _varint(data, 0)
        found = data[start + _CHECKSUM : start + _CHECKSUM + length]
        if len(found) != length:
            raise Unreadable(f"`{key}` is cut off")
        return found

    def _data(self, entry: Any) -> bytes:
        name = f"{self.prefix.name}.data-{entry.shard_id:05d}-of-{self.shards:05d}"
        path = self.prefix.parent / name
        if exists(path) and not path.is_file():  # a pipe may wait for ever
            raise Unreadable(f"`{name}` is no file")
        try:
            with path.open("rb") as file:
                size = path.stat().st_size
                if entry.offset < 0 or entry.size < 0 or entry.offset + entry.size > size:
                    raise Unreadable(f"`{name}` is too short")
                file.seek(entry.offset)
                return file.read(entry.size)
        except OSError as fault:
            raise Unreadable(f"`{name}` cannot be read: {fault.strerror or fault}") from fault


def read_checkpoint(prefix: Path) -> Checkpoint:
    """Return the checkpoint whose index is ``prefix.index``. Errors: ``file-...``, ``model-broken``."""
    path = prefix.parent / f"{prefix.name}.index"
    data = read_bytes(path)
    what = f"`{path}`"
    messages = tensorflow_messages()
    try:
        pairs = dict(_pairs(data))
    except Unreadable as reason:
        raise broken(what, str(reason)) from reason
    header = parse(messages["BundleHeaderProto"], pairs.pop(b"", b""), what)
    entries = {text(k): parse(messages["BundleEntryProto"], v, what) for k, v in pairs.items()}
    return Checkpoint(prefix, max(1, header.num_shards), entries)


def _pairs(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a table. Raises ``Unreadable``."""
    if len(data) < _FOOTER or int.from_bytes(data[-8:], "little") != _MAGIC:
        raise Unreadable("it does not end like a checkpoint's index")
    footer = data[-_FOOTER:]
    _, at = _handle(footer, 0)
    (start, size), _ = _handle(footer, at)
    for _, handle in _entries(_block(data, start, size)):
        (start, size), _ = _handle(handle, 0)
        yield from _entries(_block(data, start, size))


def _block(data: bytes, start: int, size: int) -> bytes:
    if start + size + _TRAILER > len(data):
        raise Unreadable("a block lies outside of the file")
    if data[start + size] != 0:
        raise Unreadable("a block is compressed, which no checkpoint of TensorFlow's is")
    return data[start : start + size]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of a block: a key says how much of the one before it begins with."""
    if len(block) < 4:
        raise Unreadable("a block is cut off")
    restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 - 4 * restarts
    at, key = 0, b""
    while at < end:
        shared, at = _varint(block, at)
        own, at = _varint(block, at)
        length, at = _varint(block, at)
        if shared > len(key) or at + own + length > end:
            raise Unreadable("an entry is longer than its block")
        key = key[:shared] + block[at : at + own]
        yield key, block[at + own : at + own + length]
        at += own + length


def _handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    start, at = _varint(data, at)
    size, at = _varint(data, at)
    return (start, size), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of 7 bits a byte, the lowest first, and where it ends. Raises ``Unreadable``."""
    number = 0
    for shift in range(0, 64, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    raise Unreadable("a number is cut off")
