"""One file that holds others, each with the digest of its bytes; written whole or not at all.

It is a zip file: ``manifest.json`` first, then the members, and ``digest``, the manifest's own.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from polyloom.diagnostics import PolyloomError, error
from polyloom.files import open_regular, write_whole

MAGIC = b"PK\x03\x04"
FIRST = "manifest.json"
"""The name of the first member, which no file of PyTorch has there."""

_DIGEST = "digest"
_FAULTS = (zipfile.BadZipFile, KeyError, TypeError, ValueError, EOFError, NotImplementedError, OSError)


def is_container(path: Path) -> bool:
    """Return whether a file is one of these; False where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(30 + len(FIRST)).endswith(FIRST.encode())
    except (OSError, ValueError):
        return False


def write_container(path: Path, manifest: Mapping[str, Any], members: Mapping[str, bytes]) -> None:
    """Write members with a manifest of JSON. Errors: ``file-unwritable``; nothing is left behind then."""
    digests = {name: _digest(data) for name, data in members.items()}
    text = json.dumps({**manifest, "members": digests}).encode()

    def write(target: Path) -> None:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
            for name, data in {FIRST: text, **members, _DIGEST: _digest(text).encode()}.items():
                archive.writestr(zipfile.ZipInfo(name), data)  # a ZipInfo has a fixed date

    write_whole(path, write)


class Container:
    """A file that was opened: its ``manifest``, whose digest is right, and members on demand."""

    def __init__(self, path: Path) -> None:
        """Errors: ``file-missing``, ``file-unreadable``, ``saved-broken``."""
        self.path = path
        with open_regular(path) as file:
            try:
                with zipfile.ZipFile(file) as archive:
                    text = archive.read(FIRST)
                    if archive.read(_DIGEST) != _digest(text).encode():
                        raise self._broken(f"`{FIRST}` is not as it was written")
                self.manifest: dict[str, Any] = json.loads(text)
            except _FAULTS as fault:
                raise self._broken(str(fault)) from fault

    def member(self, name: str) -> bytes:
        """Return the bytes of a member. Errors: ``saved-broken`` where they are not as they were written."""
        return self.members([name])[name]

    def members(self, names: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of members by their names. Errors: those of ``member``."""
        with open_regular(self.path) as file:
            try:
                with zipfile.ZipFile(file) as archive:
                    found = {name: archive.read(name) for name in names}
            except _FAULTS as fault:
                raise self._broken(str(fault)) from fault
        for name, data in found.items():
            if _digest(data) != self.manifest["members"].get(name):
                raise self._broken(f"`{name}` is not as it was written")
        return found

    def _broken(self, reason: str) -> PolyloomError:
        helps = ["save it again: `polyloom.load(source).save(path)`"]
        message = f"`{self.path}` is no function that was saved, or it is damaged"
        return PolyloomError(error("saved-broken", message, notes=[reason], helps=helps))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
