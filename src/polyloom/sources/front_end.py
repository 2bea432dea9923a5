"""A front end as a value: how its sources are recognised and read, and which options it knows.

There are three kinds, by what a source is read into: a language of layers (a tensor program), a language of
loops (static control parts), a model (a tensor program with weights).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, Unsupported, error
from polyloom.files import read_source
from polyloom.ir.program import Program
from polyloom.ir.verification.references import AS_READ, Reference, evaluated
from polyloom.scop.model import Scop
from polyloom.sources.reading import Loaded, LoadedHost, Reading, Shapes, Structures

if TYPE_CHECKING:
    from polyloom.frontends.c.read import Part
    from polyloom.frontends.graph.imported import Imported

Given = object
"""What a user names or hands over: a path, a text (a ``str`` with a brace), bytes, something in memory."""


def is_text(given: Given) -> bool:
    """Return whether this is a program's text, no path: a ``str`` with a brace or of several lines."""
    return isinstance(given, str) and ("{" in given or "\n" in given)


def is_path(given: Given) -> bool:
    """Return whether this names a file or folder."""
    return isinstance(given, str | os.PathLike) and not is_text(given)


def path_of(given: Given) -> Path:
    """Return a path as such."""
    assert isinstance(given, str | os.PathLike)
    return Path(os.fsdecode(given))


def opened(given: Given) -> Path | bytes:
    """Return the path of a model, or its bytes, also those of a message in memory."""
    if is_path(given):
        return path_of(given)
    message: Any = given
    found: bytes = given if isinstance(given, bytes) else message.SerializeToString()
    return found


def _never(given: object) -> bool:
    return False


@dataclass(frozen=True, eq=False, kw_only=True)
class FrontEnd:
    """What all kinds have in common.

    ``called``: how its files are called, for a message. A source is one of its own by the ending of its
    ``path`` (or ``is_folder``), by ``is_text``, by the first bytes of what is in memory (``magic``), or by
    the type of what is in memory (``is_object``). ``options``: names of the fields of ``Reading`` that mean
    something to it; another one that is given is refused.
    """

    name: str
    called: str
    endings: tuple[str, ...] = ()
    options: frozenset[str] = frozenset({"defines"})
    magic: bytes | None = None
    is_text: Callable[[str], bool] = _never
    is_folder: Callable[[Path], bool] = _never
    is_object: Callable[[object], bool] = _never

    def takes(self, given: Given) -> bool:
        """Return whether a source is of this front end."""
        if is_path(given):
            path = path_of(given)
            return path.suffix.lower() in self.endings or self.is_folder(path)
        if isinstance(given, str):
            return self.is_text(given)
        if isinstance(given, bytes):
            return self.magic is not None and given.startswith(self.magic)
        return self.is_object(given)

    def tensors(self, given: Given, reading: Reading) -> Loaded:
        """Return a source as a tensor program."""
        raise NotImplementedError

    def host_programs(self, given: Given, reading: Reading) -> tuple[LoadedHost, ...]:
        """Return a source as host programs: one, or one for each static control part."""
        return (host_of(self.tensors(given, reading)),)

    def load(self, given: Given, reading: Reading) -> Loaded | LoadedHost:
        """Return the one program of a source, before anything else is made of it."""
        return self.tensors(given, reading)


def host_of(loaded: Loaded) -> LoadedHost:
    """Return a tensor program as a host program."""
    from polyloom.ir.conversion.to_host_program import host_program

    return LoadedHost(host_program(loaded.program), None, loaded.warnings, evaluated(loaded.program, AS_READ))


def text_of(given: Given, name: str) -> Source:
    """Return a text that is given as such under ``name``, or that of a file. Errors: ``file-...``."""
    if isinstance(given, str) and is_text(given):
        return Source(name, given)
    return read_source(path_of(given))


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerFrontEnd(FrontEnd):
    """A language whose texts are tensor programs."""

    read: Callable[[Source, Reading], tuple[Program, Sequence[Diagnostic]]]

    def tensors(self, given: Given, reading: Reading) -> Loaded:
        """Return a node or graph as a tensor program."""
        program, warnings = self.read(text_of(given, "<text>"), reading)
        return Loaded(program, tuple(warnings))


@dataclass(frozen=True, eq=False, kw_only=True)
class LoopFrontEnd(FrontEnd):
    """A language whose texts hold static control parts.

    ``read``: them, each with what its results are compared with. ``parts``: what ``show`` prints, also of
    parts that cannot be computed. ``conditions``: of ``#if``, under which a compiler builds the program
    that was read, and not one that other macros make of the text.
    """

    read: Callable[[Source, Reading], Sequence[tuple[Scop, Reference]]]
    parts: Callable[[Source, Reading], tuple[Part, ...]]
    conditions: Callable[[Source, Reading], tuple[str, ...]]

    def source(self, given: Given) -> Source:
        """Return the text. Errors: ``file-...``."""
        return text_of(given, f"text{self.endings[0]}")

    def host_programs(self, given: Given, reading: Reading) -> tuple[LoadedHost, ...]:
        """Return a host program for each static control part."""
        return tuple(
            _host(scop, reference, reading) for scop, reference in self.read(self.source(given), reading)
        )

    def load(self, given: Given, reading: Reading) -> LoadedHost:
        """Return the only part. Errors: ``function-several``; ``Unsupported`` with ``function-parts``."""
        return only_program(given, self.host_programs(given, reading))

    def tensors(self, given: Given, reading: Reading) -> Loaded:
        """Return the only part as a tensor program. Errors: ``tensor-...`` for what that has not."""
        parts = self.read(self.source(given), reading)
        hosts = [_host(replace(scop, unshared=True), reference, reading) for scop, reference in parts]
        return tensors_of(only_program(given, hosts), reading.parameters)


def tensors_of(loaded: LoadedHost, values: Mapping[str, int]) -> Loaded:
    """Return a host program as a tensor program; ``values``: of all its parameters.

    Errors: ``parameter-...``; ``Unsupported`` with ``tensor-...``.
    """
    from polyloom.ir.conversion.to_tensor_program import tensor_program, tensor_reference
    from polyloom.ir.evaluation.inputs import check_parameters
    from polyloom.ir.transform.specialise import specialise

    check_parameters(loaded.program, values)
    program = tensor_program(specialise(loaded.program, values))
    assert loaded.reference is not None
    reference = tensor_reference(loaded.program, values, loaded.reference, program)
    return Loaded(program, loaded.remarks, reference=reference)


def _host(scop: Scop, reference: Reference, reading: Reading) -> LoadedHost:
    from polyloom.scop.preparation.structures_as_numbers import with_structures_as_numbers
    from polyloom.scop.transform import ReductionMode, host_program

    mode, strict = ReductionMode(reading.reductions), reading.fp == "strict"
    if reading.structures is not Structures.MEMBERS:
        several = reading.structures is Structures.NUMBERS_OF_TYPES
        scop = with_structures_as_numbers(scop, several=several)
    found = host_program(scop, mode, strict=strict, schedule=reading.schedule)
    return LoadedHost(found.program, scop, (*scop.remarks, *found.remarks), reference)


def only_program(given: Given, loaded: Sequence[LoadedHost]) -> LoadedHost:
    """Return the one program of a source.

    Errors: ``function-several``; ``Unsupported`` with ``function-parts``.
    """
    if len(loaded) == 1:
        return loaded[0]
    names = list(dict.fromkeys(part.program.name for part in loaded))
    listed = ", ".join(names)
    if len(names) > 1:
        message = f"`{given if is_path(given) else 'the text'}` has SCoPs in several functions: {listed}"
        raise PolyloomError(error("function-several", message, helps=["choose one: `--function NAME`"]))
    raise Unsupported(
        error(
            "function-parts",
            f"`{listed}` has {len(loaded)} SCoPs, and the C code between them would not run",
            helps=[
                "give each a function of its own",
                "or compile the file: `polyloom compile FILE --target c -o out`",
            ],
        )
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelFrontEnd(FrontEnd):
    """Models of a framework: a tensor program with the values of its weights.

    ``read``: one, with the sizes of what it leaves open, and the name of a function of it. ``framework``:
    what runs it for a check, a key of ``oracle.frameworks.FRAMEWORKS``; None: nothing does.
    """

    read: Callable[[Given, Shapes, Reading], Imported]
    framework: str | None = None

    def model(self, given: Given, reading: Reading) -> Imported:
        """Return a model. Errors: ``model-size``, ``file-...``, ``model-...``; ``Unsupported``."""
        stated = {name: _extents(name, text) for name, text in reading.defines.items()}
        found = self.read(given, {**reading.shapes, **stated}, reading)
        found.check_sizes(stated)
        return found

    def reference(self, model: Imported, given: Given, function: str | None = None) -> Reference:
        """Return what results are compared with: the framework's, where that is there and opens the file."""
        from polyloom.oracle.model_reference import AS_IMPORTED, ModelReference

        if self.framework is None:
            return evaluated(model.program, AS_IMPORTED)
        return ModelReference(model, opened(given), function, self.framework)

    def tensors(self, given: Given, reading: Reading) -> Loaded:
        """Return a model's program, and the model."""
        model = self.model(given, reading)
        return Loaded(model.program, model.remarks, model, self.reference(model, given, reading.function))


def _extents(name: str, text: str) -> tuple[int, ...]:
    parts = text.split("x")
    if not all(p.isascii() and p.isdigit() for p in parts):
        helps = ["a dimension is given as `-D batch=8`, an input as `-D image=1x3x224x224`"]
        raise PolyloomError(error("model-size", f"`{name}={text}` is no size", helps=helps))
    return tuple(int(p) for p in parts)
