"""Messages from bytes: what cannot be read is one diagnostic.

Bytes are any bytes: lengths are checked by ``protobuf`` before anything is allocated, nesting ends at 100
levels. An empty message of two bytes takes a hundred in memory, so messages are counted before. What a
message *says* about sizes (a tensor's shape) is checked by those who use it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from polyloom.diagnostics import PolyloomError, error
from polyloom.files import open_regular, read_regular
from polyloom.frontends.protobuf.counting import MOST_FIELDS, is_modest

LARGEST_FILE = 2**31 - 1
"""Bytes of one message at most: a rule of protobuf."""


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes. Errors: ``model-large`` and those of ``open_regular``."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > LARGEST_FILE:
            message = f"`{path}` has more than {LARGEST_FILE} bytes, which no protobuf message has"
            helps = ["keep the weights in a file of their own (external data)"]
            raise PolyloomError(error("model-large", message, helps=helps))
    return read_regular(path, LARGEST_FILE)


def parse(kind: Any, data: bytes, what: str) -> Any:
    """Return the message of class ``kind`` that ``data`` holds.

    ``what``: how the diagnostic calls it. Errors: ``model-broken``.
    """
    if not is_modest(kind.DESCRIPTOR, data):
        raise broken(what, f"more than {MOST_FIELDS} fields")
    message = kind()
    try:
        message.ParseFromString(data)
    except (DecodeError, RecursionError, MemoryError, ValueError) as fault:
        reason = (str(fault).splitlines() or [type(fault).__name__])[0]
        raise broken(what, reason) from fault
    return message


def broken(what: str, reason: str) -> PolyloomError:
    """Return the error for a model whose bytes are not what they should be."""
    helps = ["is it complete, and was it written as a binary file?"]
    return PolyloomError(error("model-broken", f"{what} cannot be read", notes=[reason], helps=helps))


def text(data: bytes) -> str:
    """Return a name; bytes that are no UTF-8 stay visible, as hexadecimal numbers."""
    return data.decode("utf-8", errors="backslashreplace")
