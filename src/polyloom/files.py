"""Files of a user: read whole or refused with one diagnostic, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, Span, error

NDArray = npt.NDArray[Any]

_BROKEN = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    RuntimeError,
    MemoryError,
    OverflowError,
    SyntaxError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy and zipfile raise for a file that is not what it should be."""


def read_source(path: Path) -> Source:
    """Return a text with its name.

    Raises PolyloomError ``file-missing``, ``file-unreadable``, ``file-encoding``.
    """
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise PolyloomError(unreadable(path, fault)) from fault
    try:
        return Source(str(path), data.decode("utf-8"))
    except UnicodeDecodeError as fault:
        raise PolyloomError(_not_utf8(path, data, fault.start)) from fault


def unreadable(path: Path, fault: OSError) -> Diagnostic:
    """Return the diagnostic for a file that cannot be opened."""
    if isinstance(fault, FileNotFoundError):
        return error("file-missing", f"there is no file `{path}`", helps=["check the name and the folder"])
    helps = ["give a file that can be read"]
    return error("file-unreadable", f"`{path}` cannot be read: {_reason(fault)}", helps=helps)


def _not_utf8(path: Path, data: bytes, start: int) -> Diagnostic:
    at = len(data[:start].decode("utf-8"))
    source = Source(str(path), data.decode("utf-8", errors="replace"))
    return error(
        "file-encoding",
        f"`{path}` is not a text in UTF-8",
        Span(source, at, at + 1),
        label=f"byte 0x{data[start]:02x}",
        helps=["save it as UTF-8"],
    )


def _reason(fault: BaseException) -> str:
    text = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
    return (text.splitlines() or [type(fault).__name__])[0]


def read_arrays(path: Path) -> dict[str, NDArray]:
    """Return the arrays of an ``.npz`` file by name, in the order of the file.

    Raises PolyloomError ``file-missing``, ``file-unreadable``, ``npz-broken``.
    """
    try:
        file = path.open("rb")
    except OSError as fault:
        raise PolyloomError(unreadable(path, fault)) from fault
    with file:
        if not zipfile.is_zipfile(file):
            raise PolyloomError(_broken(path, "it is no zip file, as every .npz is"))
        file.seek(0)
        try:
            with np.load(file, allow_pickle=False) as archive:
                return {name: _array(path, name, archive[name]) for name in archive.files}
        except _BROKEN as fault:
            raise PolyloomError(_broken(path, _reason(fault))) from fault


def _array(path: Path, name: str, found: object) -> NDArray:
    if isinstance(found, np.ndarray):
        return found
    raise PolyloomError(_broken(path, f"its member `{name}` is no array"))


def _broken(path: Path, reason: str) -> Diagnostic:
    return error(
        "npz-broken",
        f"`{path}` is not a file of arrays in .npz form",
        notes=[reason],
        helps=["write it with `numpy.savez(path, x=..., W=...)`: plain arrays, no objects"],
    )


def write_arrays(path: Path, arrays: Mapping[str, NDArray]) -> None:
    """Write an ``.npz`` file, one array for each name. Raises PolyloomError ``file-unwritable``."""

    def write(target: Path) -> None:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
            for name, array in arrays.items():  # a ZipInfo has a fixed date: the same arrays, the same bytes
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)

    write_whole(path, write)


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a temporary file in the same folder, which then takes the name ``path``.

    A device or pipe gets the finished bytes. Raises PolyloomError ``file-unwritable``; nothing half written
    is left behind.
    """
    with refusing_unwritable(path):
        target = path.resolve()
        special = target.exists() and not target.is_file()
        handle, name = tempfile.mkstemp(
            dir=None if special else target.parent, prefix=f".{target.name}-", suffix=".part"
        )
        os.close(handle)
        temporary = Path(name)
        try:
            write(temporary)
            if special:
                target.write_bytes(temporary.read_bytes())
            else:
                temporary.chmod(0o666 & ~umask())
                temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text, whole or not at all. Errors: ``file-unwritable``."""

    def write(to: Path) -> None:
        to.write_text(text, encoding="utf-8", newline="")

    write_whole(path, write)


@contextmanager
def refusing_unwritable(path: Path) -> Iterator[None]:
    """Turn an ``OSError`` inside into the diagnostic ``file-unwritable`` for ``path``."""
    try:
        yield
    except OSError as fault:
        message = f"`{path}` cannot be written: {_reason(fault)}"
        helps = ["choose a name in a folder that exists and can be written"]
        raise PolyloomError(error("file-unwritable", message, helps=helps)) from fault


def umask() -> int:
    """Return which permissions new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


@cache
def cache_folder() -> Path:
    """Return a folder that can be written: that of the platform for caches, or a temporary one."""
    try:
        given = os.environ.get("XDG_CACHE_HOME", "")
        folder = (Path(given) if Path(given).is_absolute() else Path.home() / ".cache") / "polyloom"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):
        return Path(tempfile.mkdtemp(prefix="polyloom-"))
