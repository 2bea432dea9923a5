"""Chosen maps, kept between runs and shared by layers that are alike.

    conv2: c[o, i, j] += W[...] * x[...]     conv5: the same with other names      one search, one file

Layers are alike if they differ in names only. A map is kept under a digest of the layer with names of its
own, what the map leaves open, the size, the machine, and the sources of the compiler that chose it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from polyloom.caches import cache_folder, is_whole, kept
from polyloom.diagnostics import PolyloomError, Source
from polyloom.ir.host import View
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement
from polyloom.ir.text.programs import print_program
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.placement.candidates import Candidate, SearchOptions
from polyloom.wafer.placement.choose import Choice

Size = tuple[int, int] | None
Chooser = Callable[[Source | None, Program, Machine, Size, SearchOptions | None], Choice]

_DIGEST_BYTES = hashlib.sha256().digest_size


def chosen(
    source: Source | None,
    program: Program,
    machine: Machine,
    size: Size,
    choose: Chooser,
    folder: Path | None = None,
    options: SearchOptions | None = None,
) -> Choice:
    """Return what ``choose`` chooses, or has chosen before for a layer like this one.

    ``folder``: where maps are kept; None: the user's cache. A refusal is not kept.
    Errors: those of ``choose``.
    """
    names = _names(program)
    text = "" if source is None else with_names(source.text, names)
    key = _digest(alike_text(program), text, repr((size, options)), repr(machine), _compiler())
    store = folder or cache_folder()
    path = store / f"map-{key}.json"
    if is_whole(path):
        back = {new: old for old, new in names.items()}
        known = _read(path.read_bytes()[:-_DIGEST_BYTES], program, back)
        if known is not None:
            return known
    choice = choose(source, program, machine, size, options)
    with suppress(PolyloomError):
        kept(store, path.name, lambda: _written(choice, names))
    return choice


def alike_text(program: Program) -> str:
    """Return a layer as text without names of its own: that of all layers that are alike."""
    return print_program(renamed(program, _names(program)))


def names_between(program: Program, other: Program) -> dict[str, str]:
    """Return the names of tensors and statements of a layer, each with that of a layer that is alike."""
    back = {new: old for old, new in _names(other).items()}
    return {old: back[new] for old, new in _names(program).items()}


def chosen_for(choice: Choice, program: Program, names: Mapping[str, str]) -> Choice | None:
    """Return what was chosen for a layer as what is chosen for one that is alike; ``names``: to those of it.

    None where the map cannot be read with these.
    """
    return _read(_written(choice, {}), program, names)


def _written(choice: Choice, names: Mapping[str, str]) -> bytes:
    candidates = [[with_names(c.text, names), c.cycles, c.variants] for c in choice.candidates]
    notes = [with_names(note, names) for note in choice.notes]
    document = {"map": with_names(choice.text, names), "notes": notes, "candidates": candidates}
    return json.dumps(document).encode()


def _read(written: bytes, program: Program, names: Mapping[str, str]) -> Choice | None:
    """Return a map that was written, with a program's names; None where it cannot be read with them."""
    document = json.loads(written)
    text = with_names(document["map"], names)
    try:
        mapping = read_mapping(Source("<map chosen before>", text), program)
    except PolyloomError:
        return None
    found = (Candidate(with_names(t, names), cycles, variants=n) for t, cycles, n in document["candidates"])
    notes = tuple(with_names(note, names) for note in document["notes"])
    return Choice(mapping, text, tuple(found), notes)


def _names(program: Program) -> dict[str, str]:
    """Return other names for tensors and statements, in the order in which the statements name them."""
    result: dict[str, str] = {}
    for statement in program.statements:
        for view in (statement.write, *statement.reads):
            result.setdefault(view.buffer, f"Tensor{len(result)}")
    for number, statement in enumerate(program.statements):
        result.setdefault(statement.name, f"Statement{number}")
    return result


def renamed(program: Program, names: Mapping[str, str]) -> Program:
    """Return a program with other names for its tensors and statements, and none of its iterators' own."""

    def view(given: View) -> View:
        return View(names[given.buffer], given.indices)

    def statement(given: Statement) -> Statement:
        return given.changed(
            name=names[given.name],
            iterators=tuple(f"i{k}" for k in range(len(given.domain))),
            reads=tuple(map(view, given.reads)),
            write=view(given.write),
            span=None,
        )

    tensors = (replace(t, name=names[t.name], span=None) for t in program.tensors if t.name in names)
    return Program.of(
        "layer",
        tuple(sorted(tensors, key=lambda t: t.name)),
        tuple(names[n] for n in program.inputs if n in names),
        tuple(names[n] for n in program.outputs),
        tuple(map(statement, program.statements)),
    )


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Return a text with other names."""
    return re.sub(r"[A-Za-z_]\w*", lambda found: names.get(found[0], found[0]), text)


@cache
def _compiler() -> str:
    """Return a digest of what a choice depends on: stages, and rooms that compile and price layers."""
    sources = files("polyloom")
    stages = (sources / "pipeline.py").read_text(encoding="utf-8")
    return _digest(stages, *(t for room in ("ir", "polyhedra", "wafer") for t in _texts(sources / room)))


_AFTER = frozenset({"csl_output", "explain", "host", "network", "simulation", "simulator"})
"""Rooms of the wafer that take what was chosen."""


def _texts(folder: Traversable) -> list[str]:
    found: list[str] = []
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_dir() and entry.name not in _AFTER:
            found += _texts(entry)
        elif entry.is_file() and entry.name.endswith((".py", ".json")):
            found.append(entry.read_text(encoding="utf-8"))
    return found


def _digest(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()[:32]
