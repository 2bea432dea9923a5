"""Files that a user names: read whole, told by their ending, lowered to the IR."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, Unsupported, error
from polyloom.files import exists, read_source
from polyloom.ir.host import HostProgram
from polyloom.ir.program import Program
from polyloom.ir.verification.references import Reference
from polyloom.scop.model import Scop

if TYPE_CHECKING:
    from polyloom.frontends.c.read import Part
    from polyloom.frontends.graph.imported import Imported

NDArray = npt.NDArray[Any]


@dataclass(frozen=True)
class Loaded:
    """A program, and what the front end remarked on it; ``model``: the model that it was.

    ``reference``: what the results of a model, or of a C function with the values of its parameters, are
    compared with.
    """

    program: Program
    warnings: tuple[Diagnostic, ...]
    model: Imported | None = None
    reference: Reference | None = None


@dataclass(frozen=True)
class Reading:
    """How a source is to be read.

    ``node``: of LAIR; ``function``: of C. ``defines``: LAIR's parameters, C's macros, or sizes of a model.
    ``include`` and ``preprocessor``: as ``-I`` and ``--cpp``. ``reductions``: ``detect``, ``stated`` or
    ``ignore``. ``fp``: ``reassociate`` or ``strict``, of C alone.
    """

    node: str | None = None
    function: str | None = None
    defines: Mapping[str, str] = field(default_factory=dict)
    include: Sequence[Path] = ()
    preprocessor: str | None = None
    reductions: str = "detect"
    fp: str = "reassociate"


@dataclass(frozen=True, eq=False)
class LoadedHost:
    """A host program, the SCoP that it was (None for a layer), and what there is to remark on it.

    ``reference``: what its results are compared with; None: the evaluator's.
    """

    program: HostProgram
    scop: Scop | None
    remarks: tuple[Diagnostic, ...]
    reference: Reference | None = None


def load_host_programs(source: str | os.PathLike[str], reading: Reading) -> tuple[LoadedHost, ...]:
    """Read a C file, one host program for each SCoP, or a LAIR file, one for the node or graph.

    A text in place of a path holds a brace and is LAIR. Errors: those of ``load_program`` and ``read_c``.
    """
    from polyloom.ir.conversion.to_host_program import host_program
    from polyloom.ir.verification.references import as_read

    if is_c(source):
        return tuple(_host_of_part(part, reading) for part in _computed_parts(source, reading))
    loaded = load_tensors(source, reading)
    program = host_program(loaded.program)
    return (LoadedHost(program, None, loaded.warnings, as_read(loaded.program)),)


def only_program(source: str | os.PathLike[str], loaded: Sequence[LoadedHost]) -> LoadedHost:
    """Return the one program of a source.

    Errors: ``function-several``; ``Unsupported`` with ``function-parts``.
    """
    if len(loaded) == 1:
        return loaded[0]
    names = list(dict.fromkeys(part.program.name for part in loaded))
    listed = ", ".join(names)
    if len(names) > 1:
        message = f"`{source}` has SCoPs in several functions: {listed}"
        raise PolyloomError(error("function-several", message, helps=["choose one: `--function NAME`"]))
    raise Unsupported(
        error(
            "function-parts",
            f"`{listed}` has {len(loaded)} SCoPs, and the C code between them would not run",
            helps=["give each a function of its own", "or compile the file: `--target opencl`"],
        )
    )


def load_tensors(
    source: str | os.PathLike[str], reading: Reading, parameters: Mapping[str, int] | None = None
) -> Loaded:
    """Read a source as a tensor program: a LAIR node or graph, or a C function that is one.

    ``parameters``: values of the integer arguments of a C function.

    Errors: those of ``load_program`` or ``load_host_programs``; ``parameter-...``; ``Unsupported`` with
    ``tensor-...`` for what a tensor program has not.
    """
    from polyloom.ir.conversion.to_tensor_program import tensor_program, tensor_reference
    from polyloom.ir.evaluation.host_inputs import check_parameters
    from polyloom.ir.transform.specialise import specialise

    if is_model(source):
        model = load_model(source, reading.defines, None, reading.function)
        return Loaded(model.program, (), model, model_reference(model, source, reading.function))
    if not is_c(source):
        return load_program(source, reading.node, reading.defines)
    loaded = only_program(source, load_host_programs(source, reading))
    values = parameters or {}
    check_parameters(loaded.program, values)
    program = tensor_program(specialise(loaded.program, values))
    assert loaded.reference is not None
    reference = tensor_reference(loaded.program, values, loaded.reference, program)
    return Loaded(program, loaded.remarks, reference=reference)


def load_scops(source: str | os.PathLike[str], reading: Reading) -> tuple[Scop, ...]:
    """Read the SCoPs of a C file. Errors: ``file-...`` and ``c-...``."""
    from polyloom.frontends.c import read_c

    text = read_source(Path(source))
    return read_c(text, reading.function, reading.defines, reading.include, reading.preprocessor)


def load_parts(source: str | os.PathLike[str], reading: Reading) -> tuple[Part, ...]:
    """Read the SCoPs of a C file, also what cannot be computed in them. Errors: ``file-...``, ``c-...``."""
    from polyloom.frontends.c import read_parts

    text = read_source(Path(source))
    return read_parts(text, reading.function, reading.defines, reading.include, reading.preprocessor)


def load_macros(source: Source, reading: Reading) -> dict[str, str]:
    """Return the macros of a C file of which ``-D`` would make another program, with integers as text."""
    from polyloom.frontends.c.syntax.macros import changeable_macros

    return changeable_macros(source, reading.defines, reading.include, reading.preprocessor)


def is_c(source: str | os.PathLike[str]) -> bool:
    """Return whether a source is a C file."""
    return not (isinstance(source, str) and "{" in source) and Path(source).suffix.lower() == ".c"


def is_model(source: str | os.PathLike[str]) -> bool:
    """Return whether a source is a file (or a SavedModel's folder) of a machine-learning framework."""
    if isinstance(source, str) and "{" in source:
        return False
    path = Path(source)
    return path.suffix.lower() in (".onnx", ".pb", ".pt2") or exists(path / "saved_model.pb")


def load_model(
    source: str | os.PathLike[str],
    defines: Mapping[str, str] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    function: str | None = None,
) -> Imported:
    """Read a model. ``defines``: sizes that it leaves open, ``8`` of a dimension or ``1x3x32`` of an input.

    ``shapes``: of arrays that are given for inputs, taken where the model leaves them open. ``function``: a
    signature of a SavedModel.

    Errors: ``model-size``, ``file-...``, ``model-...``; ``Unsupported`` for what has no affine form.
    """
    stated = {name: _extents(name, text) for name, text in (defines or {}).items()}
    model = _imported(source, {**(shapes or {}), **stated}, function)
    model.check_sizes(stated)
    return model


def _imported(
    source: str | os.PathLike[str], sizes: Mapping[str, tuple[int, ...]], function: str | None
) -> Imported:
    if Path(source).suffix.lower() == ".onnx":
        from polyloom.frontends.onnx import import_onnx

        return import_onnx(Path(source), sizes)
    if Path(source).suffix.lower() == ".pt2":
        from polyloom.frontends.torch import import_torch

        return import_torch(Path(source), sizes)
    from polyloom.frontends.tensorflow import import_tensorflow

    return import_tensorflow(Path(source), sizes, function)


def model_reference(
    model: Imported, source: str | os.PathLike[str], function: str | None = None
) -> Reference:
    """Return what the results of a model are compared with: its framework's, where that is installed."""
    from polyloom.oracle.model_reference import ModelReference

    return ModelReference(model, Path(source), function)


def _extents(name: str, text: str) -> tuple[int, ...]:
    parts = text.split("x")
    if not all(p.isascii() and p.isdigit() for p in parts):
        helps = ["a dimension is given as `-D batch=8`, an input as `-D image=1x3x224x224`"]
        raise PolyloomError(error("model-size", f"`{name}={text}` is no size", helps=helps))
    return tuple(int(p) for p in parts)


def _computed_parts(source: str | os.PathLike[str], reading: Reading) -> tuple[Part, ...]:
    from polyloom.frontends.c import read_computed

    text = read_source(Path(source))
    return read_computed(text, reading.function, reading.defines, reading.include, reading.preprocessor)


def _host_of_part(part: Part, reading: Reading) -> LoadedHost:
    from polyloom.frontends.c.read import scop_of
    from polyloom.oracle.c_reference import CReference
    from polyloom.oracle.compiled_c import compiler_options
    from polyloom.scop.transform import ReductionMode, host_program

    scop = scop_of(part)
    found = host_program(scop, ReductionMode(reading.reductions), strict=reading.fp == "strict")
    options = compiler_options(scop.source, reading.defines, reading.include, reading.preprocessor)
    reference = CReference(part, scop, options)
    return LoadedHost(found.program, scop, (*scop.remarks, *found.remarks), reference)


def load_program(
    source: str | os.PathLike[str], node: str | None = None, defines: Mapping[str, str] | None = None
) -> Loaded:
    """Read a LAIR file, or a LAIR text (a ``str`` with a brace), and lower one node or graph of it.

    Errors: ``PolyloomError`` with ``file-...``, ``source-...`` and ``lair-...``.
    """
    from polyloom.frontends.lair import lower
    from polyloom.frontends.lair.syntax.parse import parse
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
    if ending != ".lair":
        message = f"`{path}` has no ending that tells what it is"
        helps = ["a C file is called NAME.c, a LAIR file NAME.lair"]
        raise PolyloomError(error("source-unknown", message, helps=helps))
