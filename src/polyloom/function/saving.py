"""Functions as files: weights, the code that was built, and what they were read from.

A file holds machine code, which is run: load only what you trust. It is refused where it is damaged, where
another version of Polyloom wrote it, and where the processor lacks what the code may use.

manifest.json   name, version, processor; the variants, each a program as ``mdh/restored`` has it
objects/DIGEST  shared objects;   weights/K/NAME.npy  the constants of variant K
source          the text or the bytes of the model
"""

from __future__ import annotations

import io
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import PolyloomError, error
from polyloom.files import read_regular
from polyloom.frontends.graph.imported import Ends
from polyloom.function.arguments import Argument
from polyloom.function.container import Container, write_container
from polyloom.ir.types import ElementType
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.device.pocl import processor_flags
from polyloom.mdh.native.portable import Objects
from polyloom.mdh.restored import saved_program
from polyloom.sources import Given, Reading, front_end, is_path, is_text
from polyloom.sources.front_end import LayerFrontEnd, LoopFrontEnd, path_of

NDArray = npt.NDArray[Any]
Document = dict[str, Any]

FORMAT = 2
"""Of the file; one with another number is refused."""

TEXT, BYTES, PATH, NONE = "text", "bytes", "path", "none"


def own_version() -> str:
    """Return the version of Polyloom that runs."""
    found: str = import_module("polyloom").__version__
    return found


@dataclass(eq=False)
class Variant:
    """A program for certain shapes of its inputs.

    ``document``: see ``mdh/restored``; ``weights``: its constants; ``objects``: its code.
    """

    document: Document
    weights: Mapping[str, NDArray]
    objects: Objects
    inputs: Mapping[str, Argument]
    outputs: Mapping[str, Argument]
    ends: Ends | None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Saved:
    """What goes into a file. ``open_inputs``: of a model whose sizes are open, with its ``open_outputs``."""

    name: str
    source: Given
    reading: Reading
    values: Mapping[str, Any]
    variants: Sequence[Variant]
    open_inputs: Mapping[str, Argument] | None = None
    open_outputs: Mapping[str, Argument] | None = None


def variant_of(
    program: CompiledProgram,
    sizes: Sequence[Mapping[str, int]],
    ends: Ends | None,
    inputs: Mapping[str, Argument],
    outputs: Mapping[str, Argument],
) -> Variant:
    """Return a program with its code. Errors: ``save-device``, ``save-sizes``, ``native-...``."""
    objects = Objects()
    document, weights = saved_program(program, sizes, objects)
    return Variant(document, weights, objects, inputs, outputs, ends)


def save(path: Path, saved: Saved, *, source: bool) -> None:
    """Write a function. Errors: ``file-unwritable``; ``file-...`` of its source."""
    write_container(path, *contents(saved, stored_source(saved.source, saved.reading) if source else None))


def contents(saved: Saved, source: tuple[str, str, bytes] | None) -> tuple[Document, dict[str, bytes]]:
    """Return the manifest and the members of a file; ``source``: the kind, name and bytes of it."""
    members: dict[str, bytes] = {}
    variants = []
    for k, variant in enumerate(saved.variants):
        members |= {f"objects/{digest}": data for digest, data in variant.objects.content.items()}
        members |= {f"weights/{k}/{name}.npy": _packed(a) for name, a in variant.weights.items()}
        variants.append(_variant(variant))
    kind, name, data = source or (NONE, "", b"")
    manifest = {
        "format": FORMAT,
        "polyloom": own_version(),
        "machine": platform.machine(),
        "system": platform.system(),
        "processor": sorted(processor_flags()),
        "name": saved.name,
        "source": {"kind": kind, "name": name, "reading": reading_document(saved.reading)},
        "values": {name: np.asarray(value).item() for name, value in saved.values.items()},
        "open_inputs": _arguments(saved.open_inputs),
        "open_outputs": _arguments(saved.open_outputs),
        "variants": variants,
    }
    return manifest, {**members, "source": data}


def opened(path: Path) -> Container:
    """Open a file of ``save``. Errors: ``saved-broken``, ``saved-version``, ``saved-processor``."""
    container = Container(path)
    found = container.manifest
    version = found.get("polyloom")
    if (found.get("format"), version) != (FORMAT, own_version()):
        message = f"`{path}` was saved by Polyloom {version}, and this is {own_version()}"
        helps = ["save it again with this version: `polyloom.load(source).save(path)`"]
        raise PolyloomError(error("saved-version", message, helps=helps))
    lacking = sorted(set(found["processor"]) - processor_flags())
    here = platform.system(), platform.machine()
    if (found["system"], found["machine"]) != here or lacking:
        notes = [f"it was saved on {found['system']} {found['machine']}, and this is {' '.join(here)}"]
        notes += [f"this processor has no {', '.join(lacking)}"] if lacking else []
        helps = ["save it on a machine like this one, from its source"]
        message = f"the code in `{path}` is for another processor"
        raise PolyloomError(error("saved-processor", message, notes=notes, helps=helps))
    return container


def variants_of(container: Container) -> list[Variant]:
    """Return the variants of a file that was opened; code and weights are checked.

    Errors: ``saved-broken``.
    """
    names = container.manifest["members"]
    objects = Objects(
        {
            name.removeprefix("objects/"): data
            for name, data in container.members(n for n in names if n.startswith("objects/")).items()
        }
    )
    found = []
    for k, document in enumerate(container.manifest["variants"]):
        members = {name: f"weights/{k}/{name}.npy" for name in document["weights"]}
        content = container.members(members.values())
        weights = {
            name: np.load(io.BytesIO(content[member]), allow_pickle=False) for name, member in members.items()
        }
        found.append(_variant_of(document, weights, objects))
    return found


def arguments_of(rows: Any) -> dict[str, Argument] | None:
    """Return arguments of a manifest."""
    return None if rows is None else {n: Argument(n, kind, tuple(shape)) for n, kind, shape in rows}


def stored_source(source: Given, reading: Reading) -> tuple[str, str, bytes]:
    """Return the kind, the name and the bytes of a source as a file keeps it.

    A folder is kept as its path, and a function in memory not at all.
    """
    front = front_end(source)
    if isinstance(front, LayerFrontEnd | LoopFrontEnd):
        if is_text(source):
            return TEXT, "", str(source).encode()
        return TEXT, str(path_of(source).absolute()), read_regular(path_of(source))
    if is_path(source):
        path = path_of(source)
        return (PATH, str(path.absolute()), b"") if path.is_dir() else (BYTES, path.name, read_regular(path))
    if isinstance(source, bytes):
        return BYTES, "model", source
    message: Any = source
    if hasattr(source, "SerializeToString"):
        return BYTES, "model", message.SerializeToString()
    if reading.examples and front.name == "a module of PyTorch":
        from polyloom.frontends.torch.in_memory import archive_of
        from polyloom.frontends.torch.table import OPERATIONS

        return BYTES, "model", archive_of(source, reading.examples, {}, tuple(OPERATIONS))[0]
    return NONE, "", b""


def reading_of(document: Document) -> Reading:
    """Return how a source of a manifest is to be read."""
    reading = Reading(**{**document, "include": tuple(map(Path, document["include"]))})
    return replace(reading, shapes={n: tuple(s) for n, s in reading.shapes.items()})


def reading_document(reading: Reading) -> Document:
    """Return how a source is read, as a manifest has it."""
    return {
        "node": reading.node,
        "function": reading.function,
        "defines": dict(reading.defines),
        "include": [str(Path(folder).absolute()) for folder in reading.include],
        "preprocessor": reading.preprocessor,
        "reductions": reading.reductions,
        "fp": reading.fp,
        "shapes": {name: list(shape) for name, shape in reading.shapes.items()},
    }


def _packed(array: NDArray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def _arguments(arguments: Mapping[str, Argument] | None) -> Any:
    return None if arguments is None else [[a.name, a.type, list(a.shape)] for a in arguments.values()]


def _variant(variant: Variant) -> Document:
    return {
        "program": variant.document,
        "weights": list(variant.weights),
        "inputs": _arguments(variant.inputs),
        "outputs": _arguments(variant.outputs),
        "ends": None if variant.ends is None else _ends(variant.ends),
        "shapes": {name: list(shape) for name, shape in variant.shapes.items()},
    }


def _variant_of(document: Document, weights: Mapping[str, NDArray], objects: Objects) -> Variant:
    ends = document["ends"]
    return Variant(
        document["program"],
        weights,
        objects,
        arguments_of(document["inputs"]) or {},
        arguments_of(document["outputs"]) or {},
        None if ends is None else _ends_of(ends),
        {name: tuple(shape) for name, shape in document["shapes"].items()},
    )


def _ends(ends: Ends) -> Document:
    return {
        "program_inputs": list(ends.program_inputs),
        "names": dict(ends.names),
        "arguments": {name: kind.value for name, kind in ends.arguments.items()},
        "results": {
            n: [tensor, kind.value, list(shape)] for n, (tensor, kind, shape) in ends.results.items()
        },
        "unused": sorted(ends.unused),
        "narrow": dict(ends.narrow),
        "order": list(ends.order),
    }


def _ends_of(document: Document) -> Ends:
    results = document["results"].items()
    return Ends(
        tuple(document["program_inputs"]),
        document["names"],
        {name: ElementType(kind) for name, kind in document["arguments"].items()},
        {name: (tensor, ElementType(kind), tuple(shape)) for name, (tensor, kind, shape) in results},
        frozenset(document["unused"]),
        document["narrow"],
        tuple(document["order"]),
    )
