"""Macros that hold statements: what a use of one does to the place where a statement ends in the text.

With ``#define TWO(x, y) x += 1; y += 2`` the loop ``for (...) TWO(a[i], s);`` ends inside of the macro; with
``#define SWAP(x, y) do { ... } while (0)`` the loop ``for (...) SWAP(a[i], b[i]);`` ends where it seems to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\([^)]*\))?((?:\\\n|[^\n])*)", re.MULTILINE)
_WORD = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\w+|[(){};]")
_BLOCK = "{}"
_CONTROL = frozenset({";", "if", "else", "for", "while", "switch", "case", "default", _BLOCK})


class Kind(IntEnum):
    """What a macro holds: the larger, the less the text around a use of it shows where statements end."""

    PLAIN = 0
    """No part of a statement's form."""
    STATEMENT = 1
    """At most one statement, which the semicolon behind it ends."""
    SEVERAL = 2
    """Whole statements, or the head of one: inside of braces nothing else depends on where they end."""
    OPEN = 3
    """Braces or parentheses that others close."""


def statement_macros(texts: Iterable[str], defines: Mapping[str, str]) -> Mapping[str, Kind]:
    """Return the macros of texts that are not plain, by the worst that a definition of each holds.

    ``defines``: further ones, of a command line.
    """
    found: dict[str, list[str]] = {name.partition("(")[0]: [value] for name, value in defines.items()}
    for text in texts:
        for name, value in _DEFINITION.findall(_COMMENT.sub(" ", text)):
            found.setdefault(name, []).append(value)
    known: dict[str, Kind] = {}
    for name in found:
        _kind(name, found, known)
    return {name: kind for name, kind in known.items() if kind is not Kind.PLAIN}


def _kind(name: str, definitions: Mapping[str, list[str]], known: dict[str, Kind]) -> Kind:
    if name not in known:
        known[name] = Kind.PLAIN  # inside of itself a macro is no macro
        inner = [_of_words(_WORD.findall(value), definitions, known) for value in definitions[name]]
        known[name] = max(inner)
    return known[name]


def _of_words(words: Sequence[str], definitions: Mapping[str, list[str]], known: dict[str, Kind]) -> Kind:
    """Return what a replacement holds, whose own macros are looked at as they are."""
    outside: list[str] = []
    braces = parentheses = 0
    held = Kind.PLAIN
    for word in words:
        kind = _kind(word, definitions, known) if word in definitions else Kind.PLAIN
        held = max(held, min(kind, Kind.STATEMENT))
        braces += {"{": 1, "}": -1}.get(word, 0)
        parentheses += {"(": 1, ")": -1}.get(word, 0)
        if braces < 0 or parentheses < 0 or kind is Kind.OPEN:
            return Kind.OPEN
        if braces == 0:
            outside.append(_BLOCK if word == "}" else ";" if kind is Kind.SEVERAL else word)
    if braces or parentheses:
        return Kind.OPEN
    if outside[:3] == ["do", _BLOCK, "while"]:
        outside, held = outside[3:], Kind.STATEMENT
    elif _BLOCK in outside and outside[0] == "(":  # a value: `(point){x, y}`, `({ ... })`
        outside, held = [word for word in outside if word != _BLOCK], Kind.STATEMENT
    return Kind.SEVERAL if _CONTROL & set(outside) else held
