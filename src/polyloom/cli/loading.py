"""What every verb on the wafer begins with: the program and its map."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyloom.cli.messages import print_remarks
from polyloom.diagnostics import Unsupported, error
from polyloom.ir.program import Program
from polyloom.sources import Reading, load_tensors
from polyloom.wafer.mapping import Mapping as LairMap


def load(source: Path, options: Mapping[str, Any], *, quiet: bool) -> Program:
    """Read a source as a tensor program; print its warnings unless ``quiet``.

    ``options``: those of ``source_options``, ``c_options`` and ``parameter_option``.
    """
    reading = Reading(**{name: options[name] for name in _READING if name in options})
    loaded = load_tensors(source, reading, options.get("parameters"))
    print_remarks(loaded.warnings, quiet=quiet)
    return loaded.program


_READING = ("node", "function", "defines", "include", "preprocessor", "reductions")


def load_placed(
    source: Path, options: Mapping[str, Any], map_file: Path | None, *, quiet: bool
) -> tuple[Program, LairMap]:
    """Read a source and its map. Errors: ``Unsupported`` where no map is given."""
    from polyloom.api import read_mapping

    program = load(source, options, quiet=quiet)
    if map_file is None:
        raise Unsupported(
            error(
                "map-automatic",
                "no map is given, and Polyloom does not choose placements yet",
                helps=[_suggestion(source)],
            )
        )
    return program, read_mapping(map_file, program)


def _suggestion(source: Path) -> str:
    beside = source.with_suffix(".map")
    return f"add `--map {beside if beside.exists() else 'FILE.map'}`"
