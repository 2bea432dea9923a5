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


def write_folder(texts: Mapping[str, str], document: Mapping[str, Any], folder: Path) -> tuple[str, ...]:
    """Write texts by name, and ``manifest.json`` (``document`` and the names); return the names.

    The folder may exist if it is empty, or holds nothing but what an earlier call wrote. Errors: a
    PolyloomError ``folder-occupied`` or ``file-unwritable``; nothing is left half written.
    """
    manifest = {**document, "files": sorted([*texts, MANIFEST])}
    everything = {**texts, MANIFEST: json.dumps(manifest, indent=2) + "\n"}
    with refusing_unwritable(folder):
        target = folder.resolve()
        _check_free(folder, target)
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
        try:
            for name, text in everything.items():
                (fresh / name).write_text(text, encoding="utf-8", newline="")
            fresh.chmod(0o777 & ~umask())
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


def _check_free(folder: Path, target: Path) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise PolyloomError(_occupied(folder, "it is a file"))
    found = {path.name for path in target.iterdir()}
    strangers = sorted(found - set(_written_before(target)))
    if strangers:
        raise PolyloomError(_occupied(folder, f"`{strangers[0]}` in it was not written by Polyloom"))


def _written_before(target: Path) -> list[str]:
    try:
        document = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
        return [str(name) for name in document["files"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _occupied(folder: Path, reason: str) -> Diagnostic:
    message = f"`{folder}` cannot take the compiled files: {reason}"
    return error("folder-occupied", message, helps=["choose a new folder: its whole content is replaced"])
