"""Sources, files or in memory: recognised, read by their front end, lowered to the IR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from polyloom.diagnostics import PolyloomError, error
from polyloom.scop.model import Scop
from polyloom.sources.front_end import (
    Given,
    LoopFrontEnd,
    ModelFrontEnd,
    host_of,
    is_path,
    is_text,
    tensors_of,
    text_of,
)
from polyloom.sources.reading import Loaded, LoadedHost, Reading, Structures
from polyloom.sources.table import find_front_end, front_end

if TYPE_CHECKING:
    from polyloom.frontends.c.read import Part
    from polyloom.frontends.graph.imported import Imported

__all__ = [
    "Given",
    "Loaded",
    "LoadedHost",
    "Reading",
    "Structures",
    "find_front_end",
    "front_end",
    "host_of",
    "is_loops",
    "is_model",
    "is_path",
    "is_text",
    "load_host_programs",
    "load_model",
    "load_parts",
    "load_program",
    "load_scops",
    "load_tensors",
    "loops",
    "tensors_of",
    "text_of",
]


def load_host_programs(source: Given, reading: Reading) -> tuple[LoadedHost, ...]:
    """Read a source as host programs: of a file of loops one for each SCoP, else one.

    Errors: ``source-unknown``, those of the front end.
    """
    return front_end(source).host_programs(source, reading)


def load_program(source: Given, reading: Reading) -> Loaded | LoadedHost:
    """Read the one program of a source: of loops as a host program, else as a tensor program.

    Errors: ``source-unknown``, those of the front end; ``function-several``, ``function-parts``.
    """
    return front_end(source).load(source, reading)


def load_tensors(source: Given, reading: Reading) -> Loaded:
    """Read a source as a tensor program: a node or graph, a model, or a function of C that is one.

    Errors: ``source-unknown``, those of the front end; ``parameter-...``; ``Unsupported`` with ``tensor-...``
    for what a tensor program has not.
    """
    return front_end(source).tensors(source, reading)


def load_scops(source: Given, reading: Reading) -> tuple[Scop, ...]:
    """Read the SCoPs of a file of loops. Errors: ``file-...`` and ``c-...``."""
    front = loops(source)
    return tuple(scop for scop, _ in front.read(front.source(source), reading))


def load_parts(source: Given, reading: Reading) -> tuple[Part, ...]:
    """Read the SCoPs of a C file, also what cannot be computed in them. Errors: ``file-...``, ``c-...``."""
    front = loops(source)
    return front.parts(front.source(source), reading)


def load_model(
    source: Given,
    defines: Mapping[str, str] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    function: str | None = None,
) -> Imported:
    """Read a model. ``defines``: sizes that it leaves open, ``8`` of a dimension or ``1x3x32`` of an input.

    ``shapes``: of arrays that are given for inputs, taken where the model leaves them open. ``function``: a
    signature of a SavedModel.

    Errors: ``model-size``, ``file-...``, ``model-...``; ``Unsupported`` for what has no affine form.
    """
    reading = Reading(function=function, defines=defines or {}, shapes=shapes or {})
    return models(source).model(source, reading)


def is_loops(source: Given) -> bool:
    """Return whether a source is of a language of loops: C."""
    return isinstance(find_front_end(source), LoopFrontEnd)


def is_model(source: Given) -> bool:
    """Return whether a source is a model of a machine-learning framework."""
    return isinstance(find_front_end(source), ModelFrontEnd)


def loops(source: Given) -> LoopFrontEnd:
    """Return the front end of a source of loops. Errors: ``source-unknown``, ``source-kind``."""
    front = front_end(source)
    if not isinstance(front, LoopFrontEnd):
        helps = ["give a C file, NAME.c"]
        raise PolyloomError(error("source-kind", f"it is {front.name}, and loops are meant", helps=helps))
    return front


def models(source: Given) -> ModelFrontEnd:
    """Return the front end of a model. Errors: ``source-unknown``, ``source-kind``."""
    front = front_end(source)
    if not isinstance(front, ModelFrontEnd):
        helps = ["`polyloom.load` takes any source", "give an ONNX file, a SavedModel, a program of PyTorch"]
        raise PolyloomError(error("source-kind", f"it is {front.name}, and a model is meant", helps=helps))
    return front
