"""Maps from Python: read, or chosen where they leave something open."""

from __future__ import annotations

from dataclasses import replace

from polyloom.api.reading import MACHINE, Path, load_for_wafer
from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.ir.program import Program
from polyloom.pipeline import complete_mapping
from polyloom.polyhedra.effort import limited
from polyloom.sources import (
    Given,
    is_path,
    is_text,
    text_of,
)
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.machine.variants import machine_of
from polyloom.wafer.mapping.mapping import Mapping as LairMap
from polyloom.wafer.placement.choose import Choice
from polyloom.wafer.placement.known_maps import chosen
from polyloom.workers.crew import ALONE, Crew


@limited("the mapping")
def read_mapping(source: Path, program: Program | Given, machine: str = MACHINE) -> LairMap:
    """Read a LAIR map (a file, or text with a brace) for a program, and check it.

    What the map leaves open is chosen as ``choose_mapping`` does.

    Errors: ``PolyloomError`` where the map is wrong; ``Unsupported`` where nothing was found that fits.
    Source: dtg_codegen, Sec. 4.1.2.
    """
    return choose_mapping(program, source, machine=machine).mapping


@limited("a mapping")
def choose_mapping(
    program: Program | Given,
    source: Path | None = None,
    *,
    size: tuple[int, int] | None = None,
    machine: str | Machine = MACHINE,
    memory: int | None = None,
    crew: Crew = ALONE,
) -> Choice:
    """Choose what a map leaves open, or all of it where there is none: placement, ports, size.

    ``source``: the map (a file, or text with a brace); ``size``: columns and rows, in place of the map's. The
    result's ``text`` is a map file. A map that leaves nothing open comes back as it is. ``crew``: who
    compiles the maps that are compared.

    Errors: ``PolyloomError`` where the map is wrong; ``Unsupported`` where nothing was found that fits.
    Source: docs/mapping.md.
    """
    if source is not None and not (is_path(source) or is_text(source)):
        raise PolyloomError(_no_map(source))
    given = None if source is None else text_of(source, "<map>")
    loaded, model = load_for_wafer(program).program, machine_model(machine, memory)
    return complete_mapping(given, loaded, model, size, crew=crew)


@limited("a mapping")
def known_mapping(program: Program, *, machine: str = MACHINE, memory: int | None = None) -> Choice:
    """Return what is chosen without a map, now or before, for a layer that is alike but for names."""
    return chosen(None, program, machine_model(machine, memory), None, complete_mapping)


def layer_mapping(program: Program, source: Path | None, *, machine: str, memory: int | None) -> Choice:
    """Return the map of a layer of a network: ``choose_mapping``'s, ``known_mapping``'s without a source."""
    if source is None:
        return known_mapping(program, machine=machine, memory=memory)
    return choose_mapping(program, source, machine=machine, memory=memory)


def mapping_of(
    given: Path | LairMap | Choice, program: Program, machine: str | Machine, memory: int | None
) -> LairMap:
    """Return a map that was read, or read it."""
    if isinstance(given, LairMap | Choice):
        return given if isinstance(given, LairMap) else given.mapping
    return choose_mapping(program, given, machine=machine, memory=memory).mapping


def _no_map(given: object) -> Diagnostic:
    message = f"a map is meant, and this is a value of type `{type(given).__name__}`"
    helps = ["give a path, the text of a map, or what `polyloom.read_mapping` gives"]
    return error("map-kind", message, helps=helps)


def machine_model(name: str | Machine, memory: int | None = None) -> Machine:
    """Return a machine by its name or file, with ``memory`` bytes for data where they are given."""
    model = machine_of(name) if isinstance(name, str) else name
    return model if memory is None else replace(model, sram_bytes=memory, reserved_bytes=0)
