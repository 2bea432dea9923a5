"""What every verb on the wafer begins with: the program and its map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polyloom.cli.messages import print_remarks
from polyloom.files import read_shapes, write_text
from polyloom.ir.program import Program
from polyloom.report.progress import status_line
from polyloom.sources import Loaded, Reading, is_model, load_tensors

if TYPE_CHECKING:  # what places layers is imported by those verbs that do
    from polyloom.wafer.placement.choose import Choice


def load(source: Path, options: Mapping[str, Any], *, quiet: bool) -> Program:
    """Read a source as a tensor program; print its warnings unless ``quiet``.

    ``options``: those of ``source_options``, ``c_options`` and ``parameter_option``.
    """
    return load_whole(source, options, quiet=quiet).program


def load_whole(
    source: Path, options: Mapping[str, Any], *, quiet: bool, inputs: Path | None = None
) -> Loaded:
    """Do the same; of a model, also the values of its weights and its own names.

    ``inputs``: a file of arrays, whose shapes are taken where a model leaves them open.
    """
    shapes = read_shapes(inputs) if inputs is not None and is_model(source) else {}
    with status_line(f"reading {source.name}"):
        loaded = load_tensors(source, replace(reading_of(options), shapes=shapes))
    print_remarks(loaded.warnings, quiet=quiet)
    return loaded


def reading_of(options: Mapping[str, Any]) -> Reading:
    """Return how a source is to be read, of the options of a verb."""
    return Reading(**{each.name: options[each.name] for each in fields(Reading) if each.name in options})


def load_placed(
    source: Path,
    options: Mapping[str, Any],
    map_file: Path | None,
    *,
    quiet: bool,
    inputs: Path | None = None,
) -> tuple[Loaded, Choice]:
    """Read a source and its map; what the map leaves open is chosen, and printed unless ``quiet``."""
    loaded = load_whole(source, options, quiet=quiet, inputs=inputs)
    return loaded, chosen_for(loaded.program, map_file, quiet=quiet)


def chosen_for(program: Program, map_file: Path | None, *, quiet: bool) -> Choice:
    """Choose what a map leaves open, write it where the command line says so, print it unless ``quiet``."""
    from polyloom.api.mapping import choose_mapping
    from polyloom.api.reading import MACHINE
    from polyloom.workers.local import crew_of

    given = click.get_current_context().params
    machine, memory = given.get("machine") or MACHINE, given.get("memory")
    crew_wanted = crew_of(given.get("jobs"), given.get("cluster"))
    with crew_wanted as crew, status_line("choosing a map"):
        size = given.get("size")
        choice = choose_mapping(program, map_file, size=size, machine=machine, memory=memory, crew=crew)
    show_choice(choice, quiet=quiet)
    return choice


def show_choice(choice: Choice, *, quiet: bool) -> None:
    """Write the map that was chosen where the command line says so, and print it unless ``quiet``."""
    path = click.get_current_context().params.get("write_map")
    if path is not None:
        write_text(path, choice.text)
    if choice.candidates and not quiet:
        from polyloom.report.wafer.choice_view import print_choice

        print_choice(choice)
