"""Sources read from Python: programs, models, references; paths, texts or what is in memory."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from polyloom.diagnostics import PolyloomError, error
from polyloom.frontends.graph.imported import Imported
from polyloom.ir.conversion.bytes_as_shorts import bytes_as_shorts
from polyloom.ir.program import Program
from polyloom.ir.verification.references import Reference
from polyloom.polyhedra.effort import limited
from polyloom.sources import (
    Given,
    Loaded,
    Reading,
    load_model,
    load_tensors,
)

Path = str | os.PathLike[str]

MACHINE = "cs2"
"""The machine model that is used where none is named."""


@limited("the program")
def read_program(
    source: Given,
    node: str | None = None,
    defines: Mapping[str, object] | None = None,
    *,
    function: str | None = None,
    parameters: Mapping[str, int] | None = None,
) -> Program:
    """Read a LAIR file, or LAIR text (a ``str`` with a brace), and specialize one node or graph of it.

    ``node``: its name; None for the last graph, else the only node. ``defines``: size and type parameters,
    ``{"M": 32, "T": "float32"}``. A C file is read as well, if its function is a tensor program: ``function``
    names it, ``defines`` are macros, ``parameters`` the values of its integer arguments.

    Errors: ``PolyloomError`` with everything that is wrong; ``Unsupported`` for kinds of source that are not
    read yet, and for C that is no tensor program. Source: dtg_codegen, Sec. 4.1.1.
    """
    values = {name: str(value) for name, value in (defines or {}).items()}
    return load_tensors(source, Reading(node, function, values, parameters=parameters or {})).program


def read_reference(
    source: Given,
    defines: Mapping[str, object] | None = None,
    *,
    function: str | None = None,
    parameters: Mapping[str, int] | None = None,
) -> Reference | None:
    """Return what the results of a C file's tensor program (``read_program``) are compared with.

    It runs the C program, built by the C compiler that there is. None for what is no C file.

    Errors: those of ``read_program``.
    """
    values = {name: str(value) for name, value in (defines or {}).items()}
    return load_tensors(source, Reading(None, function, values, parameters=parameters or {})).reference


def read_model(source: Given, sizes: Mapping[str, object] | None = None) -> Imported:
    """Read a model of a machine-learning framework: an ONNX file, a GraphDef, a SavedModel's folder.

    ``sizes``: of dimensions that it leaves open, ``{"batch": 1}``, or of whole inputs,
    ``{"image": "1x3x224x224"}``.
    The program, its weights, and what became of each node: ``Imported``.

    Errors: ``PolyloomError`` where the file is broken; ``Unsupported`` naming every node that has no affine
    form.
    """
    return load_model(source, {name: str(value) for name, value in (sizes or {}).items()})


def from_tensorflow(function: Any, sizes: Mapping[str, Sequence[int]] | None = None) -> Imported:
    """Return a TensorFlow function as a tensor program, with the values of what it has captured.

    ``function``: a ``ConcreteFunction``, as ``tf.function(f).get_concrete_function(...)`` gives it.
    ``sizes``: the shapes of inputs that it leaves open. Variables that it assigns to are results, as
    ``NAME_new``.

    Errors: ``PolyloomError`` for open shapes; ``Unsupported`` naming every node that has no affine form.
    """
    from polyloom.frontends.tensorflow import import_function

    model = import_function(function, sizes)
    model.check_sizes(sizes or {})
    return model


def from_torch(
    program: Any,
    arguments: Sequence[Any] = (),
    keywords: Mapping[str, Any] | None = None,
    sizes: Mapping[str, Sequence[int]] | None = None,
) -> Imported:
    """Return a PyTorch module, or an ``ExportedProgram``, as a tensor program with its parameters' values.

    ``arguments``, ``keywords``: tensors with which a module is exported; only their shapes and types matter.
    ``sizes``: of dimensions that were exported as dynamic. Inputs have the names of ``forward``'s arguments,
    parameters those of the module; a buffer that changes is a result (``bn.running_mean_new``).

    Errors: ``PolyloomError`` where PyTorch is not there or cannot export; ``Unsupported`` naming every node
    that has no affine form.
    """
    from polyloom.frontends.torch import import_program

    model = import_program(program, arguments, keywords, sizes)
    model.check_sizes(sizes or {})
    return model


@limited("the program")
def load_tensor_program(program: Program | Given) -> Loaded:
    """Return a program that was read, or read it: paths, texts, models are taken for programs."""
    return load_tensors(program, Reading())


def load_for_wafer(program: Program | Given) -> Loaded:
    """Return a program as ``load_tensor_program`` does, its internal bytes in a type that PEs have."""
    return in_shorts(load_tensor_program(program))


def in_shorts(loaded: Loaded, *, ends: bool = False) -> Loaded:
    """Return a program with its bytes in a type that PEs have; ``ends``: inputs and outputs, too."""
    return replace(loaded, program=bytes_as_shorts(loaded.program, ends=ends))


def reading_of(
    node: str | None,
    function: str | None,
    defines: Mapping[str, object] | None,
    include: Sequence[Path],
    reductions: str,
    fp: str,
    examples: Sequence[object] = (),
) -> Reading:
    """Return how a source is to be read. Errors: ``reductions``, ``fp``."""
    if reductions not in ("detect", "stated", "ignore"):
        helps = ["there are detect, stated, ignore"]
        raise PolyloomError(error("reductions", f"there is no mode `{reductions}`", helps=helps))
    if fp not in ("reassociate", "strict"):
        helps = ["there are reassociate, strict"]
        raise PolyloomError(error("fp", f"there is no mode `{fp}` of floating point", helps=helps))
    values = {name: str(value) for name, value in (defines or {}).items()}
    folders = tuple(pathlib.Path(folder) for folder in include)
    return Reading(node, function, values, folders, None, reductions, fp, examples=examples)
