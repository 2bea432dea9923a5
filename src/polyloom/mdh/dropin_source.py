"""The user's C file with calls in place of its SCoPs; everything else stays as it is, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from polyloom.mdh.dropin_host import Signature


@dataclass(frozen=True, eq=False)
class Replacement:
    """A range of characters of the source, and the call that takes its place.

    ``pointers``: for each buffer of the call, the C expression of its first element's address.
    """

    start: int
    end: int
    call: Signature
    pointers: Mapping[str, str]


def with_calls(text: str, replacements: Sequence[Replacement], macros: Mapping[str, str]) -> str:
    """Return the text with each range replaced by a block that declares the function and calls it.

    ``macros``: what the source was read with; the block refuses to be compiled with other numbers.
    """
    pieces, position = [], 0
    for replacement in sorted(replacements, key=lambda r: r.start):
        start = replacement.start
        line = text[text.rfind("\n", 0, start) + 1 : start]
        margin = line if not line.strip() else ""
        end_of_line = "\r\n" if "\r\n" in text else "\n"
        pieces += [text[position:start], end_of_line.join(_block(replacement, macros, margin))]
        position = replacement.end
    return "".join([*pieces, text[position:]])


def _block(replacement: Replacement, macros: Mapping[str, str], margin: str) -> list[str]:
    call = replacement.call
    integers = [f"(long long){name}" for name in call.parameters]
    pointers = [replacement.pointers[buffer.name] for buffer in call.buffers]
    inside = [
        f"extern {call.declaration};",
        f"{call.function}({', '.join([*integers, *pointers])});",
    ]
    checks = [line for name, value in macros.items() for line in _same_macro(name, value)]
    return [
        "{ /* by Polyloom, in polyloom_host.c */",
        *checks,
        *(f"{margin}  {s}" for s in inside),
        margin + "}",
    ]


def _same_macro(name: str, value: str) -> list[str]:
    """Refuse another number for a macro whose value the kernels hold."""
    if not value.lstrip("-").isdigit():
        return []
    return [f"#if ({name}) != ({value})", f'#error "Polyloom compiled this for {name} = {value}"', "#endif"]
