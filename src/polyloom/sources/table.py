"""The front ends that there are. To add one: a value here (see CONTRIBUTING.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, error
from polyloom.files import exists
from polyloom.frontends.graph.imported import Imported
from polyloom.ir.program import Program
from polyloom.ir.verification.references import Reference
from polyloom.scop.model import Scop
from polyloom.sources.front_end import (
    FrontEnd,
    Given,
    LayerFrontEnd,
    LoopFrontEnd,
    ModelFrontEnd,
    host_of,
    is_path,
    is_text,
    opened,
    path_of,
    tensors_of,
)
from polyloom.sources.reading import Loaded, LoadedHost, Reading, Shapes


def _lair(source: Source, reading: Reading) -> tuple[Program, tuple[Diagnostic, ...]]:
    from polyloom.frontends.lair import lower
    from polyloom.frontends.lair.syntax.parse import parse
    from polyloom.frontends.lair.unused import unused

    module = parse(source)
    return lower(module, reading.node, reading.defines), unused(module, reading.node)


_LAIR_BEGINS = re.compile(r"(\s|#[^\n]*\n)*(lair|graph)\b")

LAIR = LayerFrontEnd(
    name="LAIR",
    called="a LAIR file NAME.lair",
    endings=(".lair",),
    options=frozenset({"node", "defines"}),
    is_text=lambda text: _LAIR_BEGINS.match(text) is not None,
    read=_lair,
)


def _c(source: Source, reading: Reading) -> Sequence[tuple[Scop, Reference]]:
    from polyloom.frontends.c import read_computed
    from polyloom.frontends.c.read import scop_of
    from polyloom.oracle.c_reference import CReference
    from polyloom.oracle.compiled_c import compiler_options

    parts = read_computed(source, *_of_c(reading), unmarked=reading.unmarked)
    scops = [(part, scop_of(part)) for part in parts]
    options = compiler_options(source, reading.defines, reading.include, reading.preprocessor)
    return [(scop, CReference(part, scop, options)) for part, scop in scops]


def _c_parts(source: Source, reading: Reading) -> Any:
    from polyloom.frontends.c import read_parts

    return read_parts(source, *_of_c(reading))


def _c_conditions(source: Source, reading: Reading) -> tuple[str, ...]:
    from polyloom.frontends.c.syntax.macros import conditions

    return conditions(source, reading.defines, reading.include, reading.preprocessor)


def _of_c(reading: Reading) -> tuple[Any, ...]:
    return reading.function, reading.defines, reading.include, reading.preprocessor


C = LoopFrontEnd(
    name="C",
    called="a C file NAME.c",
    endings=(".c",),
    options=frozenset(
        {
            "function",
            "defines",
            "include",
            "preprocessor",
            "reductions",
            "fp",
            "parameters",
            "schedule",
            "unmarked",
            "structures",
        }
    ),
    is_text=lambda text: ";" in text,
    read=_c,
    parts=_c_parts,
    conditions=_c_conditions,
)


def _onnx(given: Given, sizes: Shapes, reading: Reading) -> Imported:
    from polyloom.frontends.onnx import import_onnx

    return import_onnx(opened(given), sizes)


def _message(name: str) -> Callable[[object], bool]:
    """Return whether something is a message of protobuf with this full name."""
    return lambda given: getattr(getattr(given, "DESCRIPTOR", None), "full_name", None) == name


def _made_by(packages: Sequence[str], *names: str) -> Callable[[object], bool]:
    """Return whether something is of a class of a package, which need not be installed."""

    def is_one(given: object) -> bool:
        kinds = ((k.__module__.partition(".")[0], k.__name__) for k in type(given).__mro__)
        return any(package in packages and name in names for package, name in kinds)

    return is_one


ONNX = ModelFrontEnd(
    name="ONNX",
    called="an ONNX model NAME.onnx",
    endings=(".onnx",),
    magic=b"\x08",
    is_object=_message("onnx.ModelProto"),
    read=_onnx,
    framework="onnx",
)


def _tensorflow(given: Given, sizes: Shapes, reading: Reading) -> Imported:
    from polyloom.frontends.tensorflow import import_tensorflow

    return import_tensorflow(opened(given), sizes, reading.function)


def _tensorflow_function(given: Given, sizes: Shapes, reading: Reading) -> Imported:
    from polyloom.frontends.tensorflow import import_function

    return import_function(given, sizes, reading.examples)


TENSORFLOW = ModelFrontEnd(
    name="TensorFlow",
    called="a GraphDef of TensorFlow NAME.pb, the folder of a SavedModel",
    endings=(".pb",),
    options=frozenset({"defines", "function"}),
    magic=b"\x0a",
    is_folder=lambda path: exists(path / "saved_model.pb"),
    is_object=_message("tensorflow.GraphDef"),
    read=_tensorflow,
    framework="tensorflow",
)

TENSORFLOW_FUNCTION = ModelFrontEnd(
    name="a function of TensorFlow",
    called="",
    options=frozenset({"defines", "examples"}),
    is_object=_made_by(("tensorflow", "keras"), "ConcreteFunction", "Function", "Layer"),
    read=_tensorflow_function,
)


def _torch(given: Given, sizes: Shapes, reading: Reading) -> Imported:
    from polyloom.frontends.torch import import_torch

    return import_torch(opened(given), sizes)


def _torch_program(given: Given, sizes: Shapes, reading: Reading) -> Imported:
    from polyloom.frontends.torch import import_program

    return import_program(given, reading.examples, None, sizes)


TORCH = ModelFrontEnd(
    name="PyTorch",
    called="a program of PyTorch NAME.pt2",
    endings=(".pt2",),
    magic=b"PK\x03\x04",
    read=_torch,
    framework="torch",
)

TORCH_PROGRAM = ModelFrontEnd(
    name="a module of PyTorch",
    called="",
    options=frozenset({"defines", "examples"}),
    is_object=_made_by(("torch",), "Module", "ExportedProgram"),
    read=_torch_program,
)


def _same(given: Any, sizes: Shapes, reading: Reading) -> Imported:
    assert isinstance(given, Imported)
    return given


IMPORTED = ModelFrontEnd(
    name="a model that was read",
    called="",
    options=frozenset(),
    is_object=lambda given: isinstance(given, Imported),
    read=_same,
)


class _ProgramFrontEnd(FrontEnd):
    """Tensor programs that were read already."""

    def tensors(self, given: Given, reading: Reading) -> Loaded:
        assert isinstance(given, Program)
        return Loaded(given, ())


PROGRAM = _ProgramFrontEnd(
    name="a program that was read",
    called="",
    options=frozenset(),
    is_object=lambda given: isinstance(given, Program),
)


class _LoadedFrontEnd(FrontEnd):
    """What ``load`` gave: it holds the program that was read."""

    def tensors(self, given: Given, reading: Reading) -> Loaded:
        found = self.load(given, reading)
        return found if isinstance(found, Loaded) else tensors_of(found, reading.parameters)

    def host_programs(self, given: Given, reading: Reading) -> tuple[LoadedHost, ...]:
        found = self.load(given, reading)
        return (host_of(found) if isinstance(found, Loaded) else found,)

    def load(self, given: Given, reading: Reading) -> Loaded | LoadedHost:
        found: Any = given
        held: Loaded | LoadedHost = getattr(found, "loaded", found)
        return held


LOADED = _LoadedFrontEnd(
    name="what `polyloom.load` gave",
    called="",
    options=frozenset({"parameters"}),
    is_object=lambda given: isinstance(getattr(given, "loaded", given), Loaded | LoadedHost),
)

FRONT_ENDS: list[FrontEnd] = [
    LAIR,
    C,
    ONNX,
    TENSORFLOW,
    TORCH,
    TENSORFLOW_FUNCTION,
    TORCH_PROGRAM,
    IMPORTED,
    PROGRAM,
    LOADED,
]
"""All front ends; a source is of the first that takes it."""

ADVICE = {
    ".pt": "save it for `.pt2`: `torch.export.save(torch.export.export(module, inputs), 'NAME.pt2')`",
    ".pth": "save it for `.pt2`: `torch.export.save(torch.export.export(module, inputs), 'NAME.pt2')`",
    ".h5": "write a SavedModel: `keras.models.load_model('NAME.h5').export('folder')`",
    ".keras": "write a SavedModel: `keras.models.load_model('NAME.keras').export('folder')`",
    ".tflite": "give the SavedModel that it was made from",
    ".map": "a map belongs to a program: `polyloom simulate layer.lair --map NAME.map`",
    ".cpp": "loops are read from C: give them as NAME.c",
    ".cc": "loops are read from C: give them as NAME.c",
    ".h": "loops are read from C: give the file NAME.c that includes it",
    ".csl": "CSL is not read: give the layer as LAIR, C or a model",
    ".loom": "a function that `save` wrote is taken back in Python: `polyloom.load(path)`",
}
"""What to do with files of other kinds, by their ending."""


def find_front_end(given: Given) -> FrontEnd | None:
    """Return the front end of a source, which need not be there; None where nothing takes it."""
    return next((front for front in FRONT_ENDS if front.takes(given)), LAIR if is_text(given) else None)


def front_end(given: Given) -> FrontEnd:
    """Return the front end of a source. Errors: ``source-unknown``."""
    found = find_front_end(given)
    if found is None:
        raise PolyloomError(_unknown(given))
    return found


def _unknown(given: Given) -> Diagnostic:
    kinds = "; ".join(front.called for front in FRONT_ENDS if front.called)
    if not is_path(given):
        message = f"{_described(given)} is no program that Polyloom reads"
        memory = "in memory: bytes of a model, a module of PyTorch, a function of TensorFlow"
        return error("source-unknown", message, helps=[f"a path or a text: {kinds}", memory])
    path = path_of(given)
    advice = [ADVICE[path.suffix.lower()]] if path.suffix.lower() in ADVICE else []
    message = f"`{path}` has no ending that tells what it is"
    notes = [] if exists(path) else ["there is no such file"]
    return error("source-unknown", message, notes=notes, helps=[*advice, f"sources: {kinds}"])


def _described(given: Given) -> str:
    return "this" if given is None else f"a value of type `{type(given).__name__}`"
