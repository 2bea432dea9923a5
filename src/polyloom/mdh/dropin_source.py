"""The user's C file with calls in place of its SCoPs; everything else stays as it is, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from polyloom.diagnostics import Diagnostic, Source, Span, Unsupported, error
from polyloom.ir.host import Buffer, Role
from polyloom.ir.types import ElementType
from polyloom.mdh.dropin_host import Signature

_SCALAR = {
    ElementType.FLOAT32: "float",
    ElementType.FLOAT64: "double",
    ElementType.INT8: "signed char",
    ElementType.INT16: "short",
    ElementType.INT32: "int",
    ElementType.INT64: "long long",
    ElementType.UINT8: "unsigned char",
    ElementType.UINT16: "unsigned short",
    ElementType.UINT32: "unsigned int",
    ElementType.UINT64: "unsigned long long",
}
"""Types that C has without a header."""


@dataclass(frozen=True, eq=False)
class Place:
    """Where a host program stood in a C file, and what its names are there.

    ``extent``: a range of characters of ``source``. ``parameters``: integers that C knows by that name.
    ``spans``: where arrays are declared; ``members``: those of them that are members of structures.
    """

    name: str
    source: Source
    extent: tuple[int, int]
    parameters: frozenset[str]
    spans: Mapping[str, Span | None]
    members: frozenset[str]


@dataclass(frozen=True, eq=False)
class Replacement:
    """A range of characters of the source, and the call that takes its place.

    ``pointers``: for each buffer of the call, the C expression of its first element's address.
    """

    start: int
    end: int
    call: Signature
    pointers: tuple[str, ...]


def replacement(source: Source, place: Place, call: Signature) -> Replacement:
    """Return what takes a place in ``source``; blanks at its ends stay.

    Errors: ``Unsupported`` with ``drop-in-...`` where a call cannot be written.
    """
    found = tuple(_obstacles(source, place, call))
    if found:
        raise Unsupported(*found)
    start, end = place.extent
    text = source.text[start:end]
    start, end = start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
    return Replacement(start, max(start, end), call, tuple(_pointer(buffer) for buffer in call.buffers))


def _obstacles(source: Source, place: Place, call: Signature) -> Iterator[Diagnostic]:
    if place.source.name != source.name or place.extent == (0, 0):
        helps = [f"compile `{place.source.name}` by itself"]
        yield error("drop-in-included", f"`{place.name}` stands in an included file", helps=helps)
    for name in call.parameters:
        if name not in place.parameters:
            array = name.removesuffix("_extent")
            message = f"how many elements `{array}` has is not said"
            helps = [f"declare it with its extent, such as `{array}[n]`"]
            yield error("drop-in-extent", message, place.spans.get(array), helps=helps)
    for buffer in call.buffers:
        if buffer.name in place.members:
            message = f"`{buffer.name}` is a member of a structure, whose elements do not lie side by side"
            helps = ["keep it in an array of its own, or use `polyloom run`"]
            yield error("drop-in-structure", message, place.spans.get(buffer.name), helps=helps)


def _pointer(buffer: Buffer) -> str:
    """Return the address of the first element: of an array itself, of a scalar that is only read a copy's."""
    if buffer.shape:
        return f"({'const ' if buffer.role is Role.INPUT else ''}void *){buffer.name}"
    if buffer.role is Role.INPUT and buffer.type in _SCALAR:
        return f"({_SCALAR[buffer.type]}[1]){{{buffer.name}}}"
    return f"&{buffer.name}"


def with_calls(text: str, replacements: Sequence[Replacement], macros: Mapping[str, str]) -> str:
    """Return the text with each range replaced by a block that declares the function and calls it.

    ``macros``: what the source was read with; the block refuses to be compiled with other numbers.
    """
    pieces, position = [], 0
    for part in sorted(replacements, key=lambda r: r.start):
        line = text[text.rfind("\n", 0, part.start) + 1 : part.start]
        margin = line if not line.strip() else ""
        end_of_line = "\r\n" if "\r\n" in text else "\n"
        pieces += [text[position : part.start], end_of_line.join(_block(part, macros, margin))]
        position = part.end
    return "".join([*pieces, text[position:]])


def _block(part: Replacement, macros: Mapping[str, str], margin: str) -> list[str]:
    integers = [f"(long long){name}" for name in part.call.parameters]
    call = f"{part.call.function}({', '.join([*integers, *part.pointers])});"
    inside = [f"{margin}  extern {part.call.declaration};", f"{margin}  {call}"]
    checks = [line for name, value in macros.items() for line in _same_macro(name, value)]
    return ["{ /* by Polyloom, see polyloom_host.c */", *checks, *inside, f"{margin}}}"]


def _same_macro(name: str, value: str) -> list[str]:
    """Refuse another number for a macro whose value the kernels hold."""
    if not value.lstrip("-").isdigit():
        return []
    return [f"#if ({name}) != ({value})", f'#error "Polyloom compiled this for {name} = {value}"', "#endif"]
