"""A compiled layer as a folder of files: everything that a C compiler and a host program need."""

from __future__ import annotations

import json
import shutil
import tempfile
from importlib.resources import files
from pathlib import Path

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.files import refusing_unwritable, umask
from polyloom.wafer.instructions import table_text
from polyloom.wafer.manifest import manifest
from polyloom.wafer.program import WaferProgram
from polyloom.wafer.simulator.build import INSTRUCTIONS, ROLE_HEADERS

MANIFEST = "manifest.json"


def folder_files(program: WaferProgram) -> dict[str, str]:
    """Return all files, name to text: the emitted ones, the headers that they include, the manifest."""
    native = files("polyloom.wafer.simulator") / "native"
    headers = {name: (native / name).read_text(encoding="utf-8") for name in ROLE_HEADERS}
    texts = {**program.files, **headers, INSTRUCTIONS: table_text()}
    document = {**manifest(program), "files": sorted([*texts, MANIFEST])}
    return {**texts, MANIFEST: json.dumps(document, indent=2) + "\n"}


def write_folder(program: WaferProgram, folder: Path) -> tuple[str, ...]:
    """Write the files to a folder, whole or not at all, and return their names.

    The folder may exist if it is empty, or holds nothing but what an earlier call wrote. Errors: a
    PolyloomError ``folder-occupied`` or ``file-unwritable``.
    """
    texts = folder_files(program)
    with refusing_unwritable(folder):
        target = folder.resolve()
        _check_free(folder, target)
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
        try:
            for name, text in texts.items():
                (fresh / name).write_text(text, encoding="utf-8")
            fresh.chmod(0o777 & ~umask())
            _replace(fresh, target)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return tuple(sorted(texts))


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
    message = f"`{folder}` cannot take the compiled layer: {reason}"
    return error("folder-occupied", message, helps=["choose a new folder: its whole content is replaced"])
