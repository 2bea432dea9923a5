"""Files that are made once for each name, and recognised by a digest of their content.

A cache is a convenience. Where its folder cannot be written, is full, or holds something broken, files are
made anew, if need be in a temporary folder, which goes when the process ends.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from polyloom.diagnostics import PolyloomError, error

_DIGEST = hashlib.sha256().digest_size
_HOME = "XDG_CACHE_HOME"
_POCL = "POCL_CACHE_DIR"

_MAKE_ROOM = "make room, or name another folder by the variable TMPDIR"

_TEMPORARY = "polyloom-"
_IN_USE = "in-use"
"""The file in a temporary folder that is locked while the folder is in use."""

_REMOVALS = 10
"""How often a folder is removed where others write to it."""

_replaced: dict[str, str] = {}
"""What ``XDG_CACHE_HOME`` said, by what it says now for the sake of libraries."""


@cache
def cache_folder() -> Path:
    """Return a folder that can be written: that of the platform for caches, or a temporary one."""
    folder = cache_home()
    if folder is not None and is_writable(folder / "polyloom"):
        return folder / "polyloom"
    return temporary_folder()


def cache_home() -> Path | None:
    """Return where programs keep caches; None where the system names no such place."""
    given = Path(_stated_cache_home())
    if given.is_absolute():
        return given
    try:
        home = Path.home()
    except RuntimeError:  # no HOME, and a user without an entry
        return None
    if not home.is_absolute():
        return None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache")


def _stated_cache_home() -> str:
    """Return what the user's ``XDG_CACHE_HOME`` says, empty for nothing."""
    given = os.environ.get(_HOME, "")
    return _replaced.get(given, given)


def lend_libraries_a_cache() -> None:
    """Let libraries that cannot work without a cache have a temporary one, where the user's is not writable.

    Must run before they are loaded: PyOpenCL (with pytools) and PoCL. What the user sets for PoCL stays.
    """
    home = cache_home()
    if home is None or not all(map(is_writable, (home / "pytools", home / "pyopencl"))):
        lent = str(temporary_folder() / "libraries")
        _replaced[lent] = _stated_cache_home()
        os.environ[_HOME] = lent
    if _POCL not in os.environ and (home is None or not is_writable(home / "pocl" / "kcache")):
        os.environ[_POCL] = str(temporary_folder() / "pocl")


def unusable_pocl_cache() -> str:
    """Return what the user's ``POCL_CACHE_DIR`` names where that cannot be written, else nothing."""
    given = os.environ.get(_POCL, "")
    return given if given and not is_writable(Path(given)) else ""


def is_writable(folder: Path) -> bool:
    """Return whether files can be made in a folder, which is made where there is none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
            file.flush()
            return True
    except (OSError, ValueError):
        return False


@cache
def temporary_folder() -> Path:
    """Return a folder that goes with this process, or, where that is killed, when another one makes its own.

    Errors: ``folder-none`` where there is no place for temporary files.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=_TEMPORARY))
    except OSError as fault:
        message = "no folder for temporary files can be written"
        raise PolyloomError(error("folder-none", message, notes=[str(fault)], helps=[_MAKE_ROOM])) from fault
    with suppress(OSError):
        _remove_left(folder.parent)
        _hold(folder)
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # a child that was forked leaves it alone
            remove_folder(folder)

    atexit.register(remove)
    return folder


def _hold(folder: Path) -> None:
    """Lock a file in a folder for as long as this process lives, and those that are forked from it."""
    if sys.platform != "win32":
        import fcntl

        new = folder / f"{_IN_USE}-soon"
        fcntl.flock(os.open(new, os.O_CREAT | os.O_RDWR, 0o600), fcntl.LOCK_EX)
        new.rename(folder / _IN_USE)


def _remove_left(parent: Path) -> None:
    """Remove the temporary folders of processes that were killed."""
    for folder in parent.glob(f"{_TEMPORARY}*"):
        with suppress(OSError):
            if _is_left(folder):
                remove_folder(folder)


def _is_left(folder: Path) -> bool:
    """Return whether a folder is this user's, and the process that made it is gone."""
    if sys.platform == "win32":
        return False
    import fcntl

    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return False
    descriptor = os.open(folder / _IN_USE, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


def remove_folder(folder: Path) -> None:
    """Remove a folder, also where a program that is about to end still makes files in it."""
    for _ in range(_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


@contextmanager
def alone(purpose: str) -> Iterator[None]:
    """Wait until no other process of this user does the same here, and let none begin meanwhile."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    descriptor = os.open(cache_folder() / f"{purpose}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


@contextmanager
def work_folder() -> Iterator[Path]:
    """Make a folder below the temporary one, which goes at the end. Errors: ``file-unwritable``."""
    parent = temporary_folder()
    try:
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            yield Path(folder)
    except OSError as fault:
        raise _unwritable(parent, fault) from fault


def kept(folder: Path, name: str, make: Callable[[], bytes]) -> Path:
    """Return a file with what ``make`` gives, made only where it is not there or not as it was written.

    The file ends in a digest of what stands before it: a loader of object files looks past it. A file enters
    the folder by an atomic rename, so that processes which make the same one do not disturb each other.
    """
    path = folder / name
    if not is_whole(path):
        content = make()
        try:
            _write(path, content)
        except OSError:  # it is full, or somebody else's
            path = temporary_folder() / name
            _write_or_refuse(path, content)
    with suppress(OSError):
        os.utime(path)
    return path


def is_whole(path: Path) -> bool:
    """Return whether a file is there and holds what was written."""
    try:
        data = path.read_bytes() if path.is_file() else b""
    except OSError:
        return False
    return len(data) > _DIGEST and hashlib.sha256(data[:-_DIGEST]).digest() == data[-_DIGEST:]


def _write(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix="new-", suffix=path.suffix)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 - it is open already
            file.write(content + hashlib.sha256(content).digest())
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def _write_or_refuse(path: Path, content: bytes) -> None:
    try:
        _write(path, content)
    except OSError as fault:
        raise _unwritable(path, fault) from fault


def _unwritable(path: Path, fault: OSError) -> PolyloomError:
    message = f"`{path}` cannot be written: {fault.strerror or fault}"
    return PolyloomError(error("file-unwritable", message, helps=[_MAKE_ROOM]))
