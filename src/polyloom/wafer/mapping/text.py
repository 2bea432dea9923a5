"""The text of a LAIR map: ``key: value`` entries with their places, before any meaning is given to them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

import islpy as isl

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, Span, error
from polyloom.polyhedra.effort import naming

KEYS = ("size", "compute_map", "iport_map", "oport_map", "sparse", "state", "trigger")

NOTHING = "none"
"""In ``trigger``: no stream drives the statement."""


@dataclass(frozen=True)
class Entry:
    """One ``key: value``; ``text`` is the value without comments, blanks in their place."""

    key: str
    text: str
    key_span: Span
    span: Span


def read_entries(source: Source) -> dict[str, Entry]:
    """Split a map into its entries, in order. Values go on over lines while a brace is open.

    Raises PolyloomError: ``map-syntax``, ``map-unknown-key``, ``map-duplicate-key``.
    """
    text = re.sub(r"#[^\n]*", lambda m: " " * len(m.group()), source.text)
    entries: dict[str, Entry] = {}
    position = 0
    while (start := _skip_blank(text, position)) < len(text):
        entry, position = _read_entry(source, text, start)
        if entry.key in entries:
            raise PolyloomError(_duplicate(entry))
        entries[entry.key] = entry
    return entries


def parse_relation(entry: Entry) -> isl.UnionMap:
    """Read the value as an isl relation. Raises PolyloomError ``map-isl``."""
    return _parsed(entry, isl.UnionMap, "a relation such as { ff[i, j] -> PE[j, i] }")


def parse_set(entry: Entry) -> isl.Set:
    """Read the value as an isl set. Raises PolyloomError ``map-isl``."""
    return _parsed(entry, isl.Set, "a set such as { PE[4, 5] }")


_Parsed = TypeVar("_Parsed", isl.Set, isl.UnionMap)


def _parsed(entry: Entry, kind: type[_Parsed], example: str) -> _Parsed:
    _check_braces(entry)
    with naming(f"what `{entry.key}` of the map says", entry.key_span):
        return _read(entry, kind, example)


def _read(entry: Entry, kind: type[_Parsed], example: str) -> _Parsed:
    try:
        found = kind(entry.text)
    except isl.Error as fault:
        raise PolyloomError(_isl_error(entry, example)) from fault
    if found.dim(isl.dim_type.param) > 0:
        raise PolyloomError(_free_name(entry, found.get_space()))
    return found


def _skip_blank(text: str, position: int) -> int:
    match = re.compile(r"\s*").match(text, position)
    return match.end() if match else position


def _read_entry(source: Source, text: str, start: int) -> tuple[Entry, int]:
    match = re.compile(r"([A-Za-z_]\w*)[ \t]*:").match(text, start)
    if match is None:
        raise PolyloomError(_no_key(source, text, start))
    key, key_span = match.group(1), Span(source, match.start(1), match.end(1))
    if key not in KEYS:
        raise PolyloomError(_unknown_key(key, key_span))
    end = _value_end(text, match.end())
    first = match.end() + len(text[match.end() : end]) - len(text[match.end() : end].lstrip())
    last = first + len(text[first:end].rstrip())
    return Entry(key, text[first:last], key_span, Span(source, first, max(last, first + 1))), end


def _value_end(text: str, position: int) -> int:
    """Return where the value ends: at the end of a line on which no brace is open and something stands."""
    depth, seen = 0, False
    for k in range(position, len(text)):
        character = text[k]
        depth += {"{": 1, "}": -1}.get(character, 0)
        seen = seen or not character.isspace()
        if character == "\n" and depth <= 0 and (seen or not _continues(text, k)):
            return k
    return len(text)


def _continues(text: str, line_end: int) -> bool:
    """Whether the next thing after an empty rest of a line is a brace: a value on a line of its own."""
    following = text[line_end:].lstrip()
    return following.startswith("{")


def _check_braces(entry: Entry) -> None:
    """Refuse what isl would ignore without a word: text after the first closing brace."""
    depth = 0
    for k, character in enumerate(entry.text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0 and k + 1 < len(entry.text):
            rest = Span(entry.span.source, entry.span.start + k + (character == "}"), entry.span.end)
            raise PolyloomError(
                error(
                    "map-syntax",
                    f"`{entry.key}` holds more than one pair of braces"
                    if character == "}"
                    else f"the value of `{entry.key}` does not start with a brace",
                    rest if character == "}" else entry.span,
                    label="this is not part of the value" if character == "}" else "expected `{`",
                    helps=["write all of it between one pair of braces, with `;` between the parts"],
                )
            )
    if not entry.text:
        helps = [f"write it behind the colon, or leave `{entry.key}` out"]
        raise PolyloomError(error("map-syntax", f"`{entry.key}` has no value", entry.key_span, helps=helps))
    if depth != 0:
        message = f"the value of `{entry.key}` has no closing brace"
        raise PolyloomError(error("map-syntax", message, entry.span, helps=["close it with `}`"]))


def _no_key(source: Source, text: str, start: int) -> Diagnostic:
    end = text.find("\n", start)
    span = Span(source, start, end if end > start else len(text))
    return error(
        "map-syntax",
        "expected an entry `key: value`",
        span,
        label="no key stands here",
        helps=[f"the keys are {', '.join(KEYS)}"],
    )


def _unknown_key(key: str, span: Span) -> Diagnostic:
    helps = [f"the keys are {', '.join(KEYS)}"]
    return error("map-unknown-key", f"a map has no entry `{key}`", span, helps=helps)


def _duplicate(entry: Entry) -> Diagnostic:
    return error(
        "map-duplicate-key",
        f"`{entry.key}` is given twice",
        entry.key_span,
        label="second one",
        helps=["put both into one value, with `;` between the parts"],
    )


def _isl_error(entry: Entry, example: str) -> Diagnostic:
    return error(
        "map-isl",
        f"the value of `{entry.key}` is not in isl notation",
        entry.span,
        label="isl cannot read this",
        helps=[f"write {example}"],
    )


def _free_name(entry: Entry, space: isl.Space) -> Diagnostic:
    name = space.get_dim_name(isl.dim_type.param, 0) or "?"
    return error(
        "map-isl",
        f"`{entry.key}` uses the name `{name}`, which stands for nothing",
        entry.span,
        helps=["a map has numbers and the variables of its tuples only; give sizes as numbers"],
    )
