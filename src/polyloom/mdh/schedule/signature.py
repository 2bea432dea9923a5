"""What a tuned schedule is kept under: the md_hom without its names and sizes, and its sizes.

Two md_homs that differ only in the names of buffers, iterators and parameters have the same signature, and
so have two that differ only in extents: a schedule found for one is where the search for the other starts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from polyloom.ir.expressions import ParameterValue
from polyloom.ir.host import Buffer, MdHom, View
from polyloom.ir.scalar_functions.function import ScalarFunction
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation

GENERATOR_ROOMS = ("mdh", "ir", "polyhedra")
"""The rooms on which the text of a kernel can depend: their text is the version of the generator."""

_LEFT_OUT = ("name", "span", "iterators", "extents")
"""Fields of an md_hom that are no part of what it computes."""


@dataclass(frozen=True, kw_only=True)
class Key:
    """What results are kept under.

    ``signature``: of the md_hom without sizes, element types included. ``sizes``: its extents, then the
    shapes of its buffers; an extent that is known only at launch is a text. ``device``: the device's
    identity with its driver. ``generator``: the version of the code generator. ``options``: what else
    changes the code, such as build options of the driver.
    """

    signature: str
    sizes: tuple[int | str, ...]
    device: str
    generator: str
    options: str = ""


def key_of(hom: MdHom, buffers: Sequence[Buffer], device: str, options: str = "") -> Key:
    """Return the key of an md_hom whose parameters are folded, over ``buffers`` (others are ignored)."""
    text, sizes = canonical(hom, buffers)
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    return Key(signature=digest, sizes=sizes, device=device, generator=generator_version(), options=options)


def options_of(*, strict: bool, constant: Sequence[int] = ()) -> str:
    """Return the options of a key: how a program's floats are rounded, and which inputs are constants."""
    words = ["strict"] if strict else []
    return " ".join([*words, *(f"constant{k}" for k in constant)])


def canonical(hom: MdHom, buffers: Sequence[Buffer]) -> tuple[str, tuple[int | str, ...]]:
    """Return the text of an md_hom without names and sizes, and its sizes."""
    names = _Names({name: f"i{k}" for k, name in enumerate(hom.iterators)})
    parts = [_text(getattr(hom, part.name), names) for part in fields(MdHom) if part.name not in _LEFT_OUT]
    known = {buffer.name: buffer for buffer in buffers}
    used = [known[name] for name in names.buffers]
    sizes = [_size(extent, names) for extent in hom.extents]
    sizes += [_size(extent, names) for buffer in used for extent in buffer.shape]
    types = " ".join(f"{buffer.type.value}[{len(buffer.shape)}]" for buffer in used)
    return f"{len(hom.extents)}; {types}; " + "; ".join(parts), tuple(sizes)


@dataclass
class _Names:
    """New names, in the order in which the old ones are met."""

    variables: dict[str, str]
    buffers: dict[str, str] = field(default_factory=dict)

    def variable(self, name: str) -> str:
        return self.variables.setdefault(name, f"n{len(self.variables)}")

    def buffer(self, name: str) -> str:
        return self.buffers.setdefault(name, f"b{len(self.buffers)}")


def _size(extent: IntExpression, names: _Names) -> int | str:
    return extent.value if isinstance(extent, Number) else _text(extent, names)


def _text(value: object, names: _Names) -> str:
    match value:
        case Name(name=name) | ParameterValue(name=name):
            return names.variable(name)
        case Number(value=number):
            return str(number)
        case Operation(operator=operator, operands=operands):
            return f"({operator} {_joined(operands, names)})"
        case View(buffer=buffer, indices=indices):
            return f"{names.buffer(buffer)}[{_joined(indices, names)}]"
        case ScalarFunction(name=name):
            return name
        case Enum():
            return str(value.value)
        case tuple():
            return f"({_joined(value, names)})"
        case _ if is_dataclass(value):
            shown = [getattr(value, part.name) for part in fields(value) if part.compare]
            return f"{type(value).__name__}({_joined(shown, names)})"
        case _:
            return repr(value)


def _joined(values: Sequence[object], names: _Names) -> str:
    return ", ".join(_text(value, names) for value in values)


@cache
def generator_version() -> str:
    """Return the version of the code generator: a digest of the text and the place of each of its modules.

    A change of the generator makes old timings stale without anybody having to think of a number. Old
    schedules still serve as seeds (``database.Database.nearest``).
    """
    return digest_of(files("polyloom"), GENERATOR_ROOMS)


def digest_of(package: Traversable, rooms: Sequence[str]) -> str:
    """Return a digest of all modules and data in some rooms of a package: their paths and their texts."""
    digest = hashlib.sha256()
    for room in rooms:
        for path, text in _modules(package / room, room):
            digest.update(f"{path}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()[:12]


def _modules(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _modules(entry, f"{path}/{entry.name}")
        elif entry.name.endswith((".py", ".json", ".c")):
            yield f"{path}/{entry.name}", entry.read_bytes()


def canonical_json(value: object) -> str:
    """Return the one text of a JSON value under which schedules are kept."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
