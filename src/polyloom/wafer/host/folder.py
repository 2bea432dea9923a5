"""A compiled layer as a folder of files: everything that a C compiler and a host program need."""

from __future__ import annotations

from pathlib import Path

from polyloom.folders import write_folder as write_files
from polyloom.wafer.host.manifest import manifest
from polyloom.wafer.machine.instructions import table_text
from polyloom.wafer.program.wafer_program import WaferProgram
from polyloom.wafer.simulator.build import INSTRUCTIONS, role_headers


def folder_files(program: WaferProgram) -> dict[str, str]:
    """Return all files but the manifest, name to text: the emitted ones, the headers that they include."""
    return {**program.files, **role_headers(), INSTRUCTIONS: table_text()}


def write_folder(program: WaferProgram, folder: Path, chosen_map: str | None = None) -> tuple[str, ...]:
    """Write the files and the manifest to a folder, whole or not at all, and return their names.

    ``chosen_map``: the text of the map, where the compiler chose a part of it: ``chosen.map``.

    Errors: those of ``folders.write_folder``.
    """
    chosen = {} if chosen_map is None else {"chosen.map": chosen_map}
    return write_files({**folder_files(program), **chosen}, manifest(program), folder)
