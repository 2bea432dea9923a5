"""Files that a user names: read whole, told by their ending, lowered to the IR."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, Unsupported, error
from polyloom.files import read_source
from polyloom.ir.program import Program

LATER = {
    ".c": "C",
    ".onnx": "ONNX",
    ".pb": "TensorFlow graphs",
    ".pt2": "PyTorch exports",
}
"""Endings of sources that Polyloom will read one day."""


@dataclass(frozen=True)
class Loaded:
    """A program, and what the front end remarked on it."""

    program: Program
    warnings: tuple[Diagnostic, ...]


def load_program(
    source: str | os.PathLike[str], node: str | None = None, defines: Mapping[str, str] | None = None
) -> Loaded:
    """Read a LAIR file, or a LAIR text (a ``str`` with a brace), and lower one node or graph of it.

    Errors: ``PolyloomError`` with ``file-...``, ``source-...`` and ``lair-...``; ``Unsupported`` for sources
    that Polyloom does not read yet.
    """
    from polyloom.frontends.lair import lower
    from polyloom.frontends.lair.parse import parse
    from polyloom.frontends.lair.unused import unused

    module = parse(_lair_source(source))
    program = lower(module, node, defines or {})
    return Loaded(program, unused(module, node))


def text_or_file(source: str | os.PathLike[str], name: str) -> Source:
    """Return a text that is given as such (a ``str`` with a brace) under ``name``, or that of a file."""
    if isinstance(source, str) and "{" in source:
        return Source(name, source)
    return read_source(Path(source))


def _lair_source(source: str | os.PathLike[str]) -> Source:
    if isinstance(source, str) and "{" in source:
        return Source("<text>", source)
    path = Path(source)
    _check_kind(path)
    return read_source(path)


def _check_kind(path: Path) -> None:
    ending = path.suffix.lower()
    if ending in LATER or (path / "saved_model.pb").exists():
        what = LATER.get(ending, "TensorFlow graphs")
        raise Unsupported(
            error(
                "source-later",
                f"Polyloom does not read {what} yet: `{path}`",
                helps=["it comes in a later version; today a SOURCE is a LAIR file, NAME.lair"],
            )
        )
    if ending != ".lair":
        message = f"`{path}` has no ending that tells what it is"
        raise PolyloomError(error("source-unknown", message, helps=["a LAIR file is called NAME.lair"]))
