"""Folders of compiled files: written whole or not at all, and replaced only where Polyloom wrote them."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.files import refusing_unwritable, umask

MANIFEST = "manifest.json"


def write_folder(
    texts: Mapping[str, str], document: Mapping[str, Any], folder: Path, *, others_stay: bool = False
) -> tuple[str, ...]:
    """Write texts by name, and ``manifest.json`` (``document`` and the names); return the names.

    The folder may exist if it is empty, or holds nothing but what an earlier call wrote. With
    ``others_stay`` it may hold other files, which stay, if their names are other ones: what was built in it.

    Errors: a PolyloomError ``folder-occupied`` or ``file-unwritable``; nothing is left half written.
    """
    manifest = {**document, "files": sorted([*texts, MANIFEST])}
    everything = {**texts, MANIFEST: json.dumps(manifest, indent=2) + "\n"}
    with refusing_unwritable(folder):
        target = folder.resolve()
        before = _written_before(target)
        _check_free(folder, target, before, set(everything) if others_stay else None)
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
        try:
            for name, text in everything.items():
                (fresh / name).write_text(text, encoding="utf-8", newline="")
            fresh.chmod(0o777 & ~umask())
            if others_stay and target.exists():
                _refill(fresh, target, before)
            else:
                _replace(fresh, target)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return tuple(sorted(everything))


def _replace(fresh: Path, target: Path) -> None:
    """Let ``fresh`` take the place of ``target``; what was there comes back if that fails."""
    if not target.exists():
        fresh.rename(target)
        return
    aside = fresh.with_name(f"{fresh.name}-old")
    target.rename(aside)
    try:
        fresh.rename(target)
    except OSError:
        aside.rename(target)
        raise
    shutil.rmtree(aside)


def _refill(fresh: Path, target: Path, before: list[str]) -> None:
    """Move the files of ``fresh`` into ``target``, each whole, and remove those that are no longer made."""
    names = sorted((path.name for path in fresh.iterdir()), key=lambda name: name != MANIFEST)
    for name in names:
        (fresh / name).replace(target / name)
    for name in set(before) - set(names):
        (target / name).unlink(missing_ok=True)


def _check_free(folder: Path, target: Path, before: list[str], wanted: set[str] | None) -> None:
    """Refuse a folder that holds files of others: any, or those of the ``wanted`` names."""
    if not target.exists():
        return
    if not target.is_dir():
        raise PolyloomError(_occupied(folder, "it is a file"))
    found = {path.name for path in target.iterdir()} - set(before)
    strangers = sorted(found if wanted is None else found & wanted)
    if strangers:
        raise PolyloomError(_occupied(folder, f"`{strangers[0]}` in it was not written by Polyloom"))


def _written_before(target: Path) -> list[str]:
    try:
        document = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
        return [name for name in map(str, document["files"]) if Path(name).name == name]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _occupied(folder: Path, reason: str) -> Diagnostic:
    message = f"`{folder}` cannot take the compiled files: {reason}"
    return error("folder-occupied", message, helps=["choose a new folder: its content is replaced"])
