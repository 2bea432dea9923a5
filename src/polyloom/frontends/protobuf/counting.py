"""How many messages some bytes hold, counted without making any.

Bytes that are no message at all are left to ``protobuf``, which says so.
"""

from __future__ import annotations

from typing import Any

MOST_FIELDS = 1_000_000
"""Fields of all messages in a file at most. Lists of numbers count once, as they are stored packed."""

_BYTES = 2
"""The wire type of texts, bytes, packed numbers and messages."""

_MESSAGE = 11
"""The number that descriptors give to fields that are messages."""


def is_modest(descriptor: Any, data: bytes, most: int = MOST_FIELDS) -> bool:
    """Tell whether a message of this kind, and all inside it, have no more than ``most`` fields."""
    inner: dict[Any, dict[int, Any]] = {}
    waiting = [(descriptor, 0, len(data))]
    count = 0
    while waiting:
        kind, at, end = waiting.pop()
        messages = inner.get(kind)
        if messages is None:
            messages = inner[kind] = {f.number: f.message_type for f in kind.fields if f.type == _MESSAGE}
        while at < end:
            count += 1
            if count > most:
                return False
            tag, at = _varint(data, at, end)
            start, at = _skipped(data, at, end, tag & 7)
            if tag & 7 == _BYTES and tag >> 3 in messages and at <= end:
                waiting.append((messages[tag >> 3], start, at))
    return True


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return a number and where it ends; 0 and the end where it is cut off."""
    number = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        number |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return number, at
        shift += 7
    return 0, end


def _skipped(data: bytes, at: int, end: int, kind: int) -> tuple[int, int]:
    """Return where a field's value starts and ends; the end where it makes no sense."""
    match kind:
        case 0:
            return at, _varint(data, at, end)[1]
        case 1:
            return at, at + 8
        case 2:
            length, start = _varint(data, at, end)
            return start, start + length
        case 5:
            return at, at + 4
        case _:
            return end, end
