"""Files of users: read completely or refused with one diagnostic, written completely or not at all."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, Span, error, visible_name

NDArray = npt.NDArray[Any]

LARGEST_ELEMENT = 16
"""Bytes of an element of an array at most."""

SMALL_ARRAYS = 2**26
"""Bytes of arrays that are read whatever they are for."""

MOST_PACKED = 64
"""How many times its size a file may unpack to, where nobody knows how large its arrays should be."""

LARGEST_TEXT = 2**26
"""Bytes of a text that is read: no source, map or document that people write has as many."""

_OPEN_ALREADY = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")

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

    Raises PolyloomError ``file-missing``, ``file-unreadable``, ``file-irregular``, ``file-large``,
    ``file-encoding``.
    """
    data = read_regular(path, LARGEST_TEXT)
    try:
        return Source(str(path), data.decode("utf-8"))
    except UnicodeDecodeError as fault:
        raise PolyloomError(_not_utf8(path, data, fault.start)) from fault


def read_regular(path: Path, most: int = sys.maxsize) -> bytes:
    """Return the bytes of a file, ``most`` of them.

    Raises PolyloomError ``file-large`` and those of ``open_regular``.
    """
    with open_regular(path) as file:
        try:
            data = file.read(most + 1 if most < sys.maxsize else -1)
        except OSError as fault:
            raise PolyloomError(unreadable(path, fault)) from fault
        except MemoryError as fault:
            raise PolyloomError(_too_large(path, "the memory")) from fault
    if len(data) > most:
        raise PolyloomError(_too_large(path, f"{most:,} bytes"))
    return data


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading: one that lies on a disk, or a pipe that is open already (``/dev/stdin``).

    A pipe or device with a name may wait for ever, or never end.

    Raises PolyloomError ``file-missing``, ``file-unreadable``, ``file-irregular``.
    """
    try:
        kind = path.stat().st_mode
        handed_over = stat.S_ISFIFO(kind) and str(path.absolute()).startswith(_OPEN_ALREADY)
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind) or handed_over):
            raise PolyloomError(_irregular(path))
        note_read(path)
        return path.open("rb")
    except ValueError as fault:  # a null character
        raise PolyloomError(unreadable(path, OSError(str(fault)))) from fault
    except OSError as fault:
        raise PolyloomError(unreadable(path, fault)) from fault


_noted: ContextVar[list[Path] | None] = ContextVar("_noted", default=None)


@contextmanager
def noting_reads() -> Iterator[list[Path]]:
    """Give a list to which the path of each file is added that is read inside."""
    found: list[Path] = []
    before = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(before)


def note_read(path: Path) -> None:
    """Note that a file is read, for ``noting_reads``."""
    found = _noted.get()
    if found is not None and path not in found:
        found.append(path)


def exists(path: Path) -> bool:
    """Return whether there is a file or folder that can be reached; ``Path.exists`` may raise an error."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Return whether there is a folder that can be reached."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _irregular(path: Path) -> Diagnostic:
    helps = ["save what comes out of it as a file, and give that"]
    return error("file-irregular", f"`{path}` is a device, a pipe or a socket, no file", helps=helps)


def _too_large(path: Path, limit: str) -> Diagnostic:
    helps = ["give a smaller file"]
    return error("file-large", f"`{path}` is too large: more than {limit}", helps=helps)


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


def read_arrays(path: Path, most: int | None = None) -> dict[str, NDArray]:
    """Return the arrays of an ``.npz`` file by name, in the order of the file.

    ``most``: elements that all arrays together may have; None: nobody knows. A file of far more is refused
    before it is unpacked: few bytes may unpack to many. The caller refuses one that is little larger.

    Raises PolyloomError ``file-missing``, ``file-unreadable``, ``npz-broken``, ``npz-large``.
    """
    with _opened_archive(path) as file:
        _headers(path, file, most)
        file.seek(0)
        with _broken_as_diagnostic(path), np.load(file, allow_pickle=False) as archive:
            return {name: _array(path, name, archive[name]) for name in archive.files}


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of an ``.npz`` file, without unpacking it. Raises as above."""
    with _opened_archive(path) as file:
        return {name: shape for name, shape, _ in _headers(path, file, None)}


Header = tuple[str, tuple[int, ...], np.dtype[Any]]


@contextmanager
def _opened_archive(path: Path) -> Iterator[BinaryIO]:
    with open_regular(path) as file:
        if not zipfile.is_zipfile(file):
            raise PolyloomError(_broken(path, "it is no zip file, as every .npz is"))
        file.seek(0)
        yield file


@contextmanager
def _broken_as_diagnostic(path: Path) -> Iterator[None]:
    try:
        yield
    except _BROKEN as fault:
        raise PolyloomError(_broken(path, _reason(fault))) from fault


def _headers(path: Path, file: BinaryIO, most: int | None) -> list[Header]:
    """Return the name, shape and type of each array. Raises ``npz-large`` where they say too much."""
    with _broken_as_diagnostic(path), zipfile.ZipFile(file) as archive:
        headers = [_header(path, archive, name) for name in archive.namelist()]
    space = sum(abs(prod(shape)) * kind.itemsize for _, shape, kind in headers)
    packed = os.fstat(file.fileno()).st_size
    expected = packed * MOST_PACKED if most is None else most * LARGEST_ELEMENT
    if space > max(expected, SMALL_ARRAYS):
        raise PolyloomError(_too_many(path, headers, most))
    return headers


def _header(path: Path, archive: zipfile.ZipFile, member: str) -> Header:
    with archive.open(member) as stream:
        if stream.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
            raise PolyloomError(_broken(path, f"its member `{member}` is no array"))
        major, _ = stream.read(2)
        read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, _, kind = read(stream)
        return member.removesuffix(".npy"), shape, kind


def _too_many(path: Path, headers: Sequence[Header], most: int | None) -> Diagnostic:
    listed = [f"`{visible_name(name)}`: {kind}{list(shape)}" for name, shape, kind in headers[:10]]
    if most is None:
        message = f"the arrays of `{path}` unpack to more than {MOST_PACKED} times its size"
        helps = ["write it with `numpy.savez`, which packs nothing"]
    else:
        size = f"{most:,} elements in all"
        message = f"the arrays of `{path}` are larger than those of the program, which have {size}"
        helps = ["give arrays of the shapes of the program"]
    return error("npz-large", message, notes=listed, helps=helps)


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
        to.write_text(text, encoding="utf-8", newline="", errors="backslashreplace")  # names of files

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
