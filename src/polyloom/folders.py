"""Folders of compiled files: written whole or not at all, and replaced only where Polyloom wrote them.

``manifest.json`` carries the mark of such a folder, with a digest of each file as it was written (its own
too). Only a file that still has its digest is ever replaced or removed; anything else is its owner's.

Where all of a folder is Polyloom's, the new one takes its place in one step. Where files of others lie
between, the files change one by one, under a mark that holds the digests of both: a process that is killed
there leaves a folder that the next call knows, and replaces.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.files import read_regular, refusing_unwritable, umask

MANIFEST = "manifest.json"
MARK = "polyloom"
FORMAT = "polyloom-folder"
VERSION = 1
LARGEST_MANIFEST = 2**26
STAGED = ".polyloom-"
"""How the temporary folders inside of a target begin."""

_NAMED = 5
"""Files that a message names at most."""

Contents = Mapping[str, "str | bytes"]
"""What files are to hold, by their names."""

Digests = Mapping[str, frozenset[str]]
"""What each file of a folder may hold for being Polyloom's, by its name."""


def write_folder(
    texts: Contents, document: Mapping[str, Any], folder: Path, *, others_stay: bool = False
) -> tuple[str, ...]:
    """Write files by name, and ``manifest.json`` (``document``, the names and the mark); return the names.

    The folder may exist if it is empty, or if an earlier call filled it and its files are unchanged. Other
    files in such a folder, or in any with ``others_stay``, stay; none of them may have a name that is wanted.

    Errors: a PolyloomError ``folder-occupied`` or ``file-unwritable``; the folder is then as it was.
    """
    digests = {name: _digest(_bytes(text)) for name, text in texts.items()}
    everything: Contents = {**texts, MANIFEST: _manifest(document, digests)}
    with refusing_unwritable(folder):
        target = folder.resolve()
        own = _own(target)
        _check_free(folder, target, own, set(everything) if others_stay or own else None)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not _replaced_at_once(everything, target, own):
            before = {name: sorted(found) for name, found in own.items() if name != MANIFEST}
            _refill(everything, _manifest(document, digests, before), target, own)
    return tuple(sorted(everything))


def _manifest(
    document: Mapping[str, Any], digests: Mapping[str, str], before: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Return the text of a manifest. ``before``: digests of files that are just being replaced."""
    mark: dict[str, Any] = {"format": FORMAT, "version": VERSION, "sha256": dict(digests)}
    if before is not None:
        mark["replacing"] = before
    return _signed({**document, "files": sorted([*digests, MANIFEST]), MARK: mark})


def _signed(document: dict[str, Any]) -> str:
    """Return a manifest as text, with a digest of itself as it is without that digest."""
    sums = {name: value for name, value in document[MARK]["sha256"].items() if name != MANIFEST}
    bare = {**document, MARK: {**document[MARK], "sha256": sums}}
    signed = {**sums, MANIFEST: _digest(json.dumps(bare).encode())}
    return json.dumps({**bare, MARK: {**bare[MARK], "sha256": signed}}, indent=2) + "\n"


def _bytes(text: str | bytes) -> bytes:
    """Return a text as it is written: in UTF-8, but for names of files, which may be any bytes."""
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _own(target: Path) -> Digests:
    """Return what the mark of a folder says, empty where it has none or a changed one."""
    try:
        data = read_regular(target / MANIFEST, LARGEST_MANIFEST)
        document = json.loads(data)
        mark = document[MARK]
        known = (mark["format"], mark["version"]) == (FORMAT, VERSION)
        if not known or _signed(document).encode() != data:
            return {}
        sums, before = mark["sha256"], mark.get("replacing", {})
        new = {name: [value] for name, value in sums.items()}
        found = {name: frozenset([*before.get(name, ()), *new.get(name, ())]) for name in {**new, **before}}
    except (PolyloomError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}
    plain = all(name not in ("", ".", "..") and Path(name).name == name for name in found)
    return {**found, MANIFEST: frozenset([_digest(data)])} if plain else {}


def _check_free(folder: Path, target: Path, own: Digests, wanted: set[str] | None) -> None:
    """Refuse a folder that holds files of others: any, or those of the ``wanted`` names."""
    if not target.exists():
        return
    if not target.is_dir():
        raise PolyloomError(_occupied(folder, "it is no folder"))
    if not os.access(target, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    present = {path.name for path in target.iterdir() if not path.name.startswith(STAGED)}
    strangers = present - set(own) if wanted is None else (present - set(own)) & wanted
    changed = {name for name in present & set(own) if not _as_written(target / name, own[name])}
    reasons = [
        *_named(strangers, "not written by Polyloom"),
        *_named(changed, "no longer as Polyloom wrote it"),
    ]
    if reasons:
        foreign = not own and MANIFEST in present
        raise PolyloomError(_occupied(folder, ", ".join(reasons), foreign=foreign))


def _as_written(path: Path, digests: frozenset[str]) -> bool:
    """Whether a file is what Polyloom wrote, and may be replaced."""
    if not stat.S_ISREG(path.lstat().st_mode) or not os.access(path, os.R_OK | os.W_OK):
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() in digests


def _named(names: set[str], what: str) -> Iterator[str]:
    if names:
        more = len(names) - _NAMED
        listed = ", ".join(f"`{name}`" for name in sorted(names)[:_NAMED])
        verb = "is" if len(names) == 1 else "are"
        yield f"{listed}{f' and {more} more' if more > 0 else ''} in it {verb} {what}"


def _occupied(folder: Path, reason: str, *, foreign: bool = False) -> Diagnostic:
    notes = [
        f"its `{MANIFEST}` has no valid mark of Polyloom: another program or an earlier Polyloom wrote it, "
        "or it was changed"
    ]
    helps = ["choose a new folder, or move these files away: only what is as Polyloom wrote it is replaced"]
    message = f"`{folder}` cannot take the compiled files: {reason}"
    return error("folder-occupied", message, notes=notes if foreign else (), helps=helps)


@contextmanager
def _staged(texts: Contents, parent: Path, prefix: str, old: Iterable[str] = ()) -> Iterator[Path]:
    """Write texts into a temporary folder; afterwards it goes, with what it holds of them and of ``old``."""
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
    try:
        for name, text in texts.items():
            (folder / name).write_bytes(_bytes(text))
        yield folder
    finally:
        with suppress(OSError):  # a file that somebody has put there meanwhile stays, and so the folder
            for name in {*texts, *old}:
                (folder / name).unlink(missing_ok=True)
            folder.rmdir()


def _replaced_at_once(texts: Contents, target: Path, own: Digests) -> bool:
    """Let a new folder take the place of ``target`` in one step; return False where that cannot be."""
    exists = target.exists()
    if exists and not _is_replaceable(target, own):
        return False
    with _staged(texts, target.parent, f".{target.name[:200]}-", own) as fresh:
        fresh.chmod(stat.S_IMODE(target.stat().st_mode) if exists else 0o777 & ~umask())
        if not exists:
            fresh.rename(target)
            return True
        return _exchanged(fresh, target)


def _is_replaceable(target: Path, own: Digests) -> bool:
    """Whether a folder holds Polyloom's files alone, and another may stand in its place."""
    whole = {path.name for path in target.iterdir()} <= set(own)
    return (
        whole
        and os.access(target.parent, os.W_OK | os.X_OK)
        and not os.path.ismount(target)
        and not _current_folder().is_relative_to(target)
    )


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:  # it was removed
        return Path(os.sep)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; return False where the system has no such step."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    at_fdcwd, exchange = -100, 2
    return rename is not None and not rename(at_fdcwd, bytes(one), at_fdcwd, bytes(other), exchange)


def _refill(texts: Contents, transition: str, target: Path, own: Digests) -> None:
    """Move new files into ``target``, each whole, and old ones out; undo that if a step fails.

    ``transition`` is the manifest while it lasts. Old files step aside first, so that all but the manifest's
    moves are to free names, and can be turned back.
    """
    former = {MANIFEST: (target / MANIFEST).read_text(encoding="utf-8")} if own else {}
    with (
        _staged(texts, target, STAGED) as new,
        _staged(former, target, STAGED, own) as old,
        _staged({MANIFEST: transition}, target, STAGED) as between,
    ):
        leaving = [name for name in own if name != MANIFEST and (target / name).exists()]
        moves = [(target / name, old / name) for name in leaving]
        moves += [(new / name, target / name) for name in texts if name != MANIFEST]
        done: list[tuple[Path, Path]] = []
        try:
            (between / MANIFEST).replace(target / MANIFEST)
            for source, to in moves:
                source.rename(to)
                done.append((source, to))
            (new / MANIFEST).replace(target / MANIFEST)
        except BaseException:
            for source, to in reversed(done):
                to.rename(source)
            if former:
                (old / MANIFEST).replace(target / MANIFEST)
            else:
                (target / MANIFEST).unlink(missing_ok=True)
            raise
