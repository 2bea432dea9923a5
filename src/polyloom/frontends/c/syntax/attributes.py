"""``__attribute__((...))`` of GNU, which the parser does not know; most change nothing that is computed.

typedef float v4 __attribute__((vector_size(16)));  ->  typedef float v4 [__polyloom];
static __attribute__((noinline)) int f(int);        ->  static int f(int);

Those that change a type are marked by what no C program has: an extent of this name behind a declarator,
``restrict`` before one, and a first member of this name in an enumeration.
"""

from __future__ import annotations

import re

from polyloom.frontends.c.syntax.inline_assembly import closed

MARK = "__polyloom"
"""The extent, or the member of an enumeration, that stands for an attribute."""

REPLACEABLE = "__attribute__((weak))"
"""A specifier of functions in whose place others may be linked."""

_ATTRIBUTE = re.compile(r"\b__attribute(?:__)?\s*\(")
_CHANGES = re.compile(r"\b(?:__)?(vector_size|ext_vector_type|mode|cleanup)(?:__)?\b")
_LESS = re.compile(r"\b(?:__)?aligned(?:__)?\s*\((?!\s*(?:8|[1-9]\d+)\s*\))")  # maybe less than a type's own
_NAMES_A_TYPE = re.compile(r"\btypedef\b(?!.*\b(?:struct|union|enum)\s*\Z)", re.DOTALL)
_SIZES = re.compile(r"\b(?:__)?(packed|mode)(?:__)?\b")
_WEAK = re.compile(r"\b(?:__)?(?:weak|weakref|alias|ifunc)(?:__)?\b")
_WEAK_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+weak[ \t]+(\w+)", re.MULTILINE)
_FUNCTION = re.compile(r"[^;{}()]*?(\w+)\s*\(")
_PROTOTYPE = re.compile(r"(\w+)\s*\([^;{}]*\)\s*\Z")
_ENUMERATION = re.compile(r"\benum\s*(?:\w+\s*)?\Z")
_DECLARATOR_ENDS = re.compile(r"\s*(?:[;,=)]|__attribute)")


def without_attributes(text: str) -> str:
    """Return a text, line by line, without attributes, or with what stands for them."""
    if "__attribute" not in text:
        return text
    found, at, marked = list[str](), 0, list[int]()
    for word in _ATTRIBUTE.finditer(text):
        end = closed(text, word.end())
        if word.start() < at or end is None:
            continue
        attribute = text[word.start() : end]
        brace = _enumeration(text, word.start(), end) if _SIZES.search(attribute) else None
        marked += [] if brace is None else [brace]
        found += [
            text[at : word.start()],
            _in_place_of(attribute, text[: word.start()], text[end : end + 99]),
        ]
        at = end
    whole = "".join([*found, text[at:]])  # as long as the text was
    for brace in sorted(marked, reverse=True):
        whole = f"{whole[:brace]} {MARK} = -1, {whole[brace:]}"
    return whole


def replaceable_functions(text: str) -> frozenset[str]:
    """Return the functions in whose place others may be linked, whatever their bodies in this text say."""
    found = set(_WEAK_PRAGMA.findall(text))
    for word in _ATTRIBUTE.finditer(text):
        end = closed(text, word.end())
        if end is not None and _WEAK.search(text, word.start(), end):
            behind, before = _FUNCTION.match(text, end), _PROTOTYPE.search(text[: word.start()])
            found |= {match.group(1) for match in (before or behind,) if match is not None}
    return frozenset(found)


def _in_place_of(attribute: str, before: str, after: str) -> str:
    """Return what stands for an attribute, with blanks behind it up to its length."""
    mark, names_a_type = "", _NAMES_A_TYPE.search(_declaration(before))
    if _CHANGES.search(attribute) or (names_a_type and _LESS.search(attribute)):
        is_behind = re.search(r"[\w)\]]\s*\Z", before[-99:]) and _DECLARATOR_ENDS.match(after)
        mark = f"[{MARK}]" if is_behind else "restrict"
    first, *others = re.sub(r"[^\n]", " ", attribute).split("\n")
    return "\n".join([mark + first[len(mark) :], *others])


def _declaration(before: str) -> str:
    """Return what a declaration has before its declarator, without the members of a structure in it."""
    piece = re.split("[;{}]", before[-199:])[-1]
    behind = before.rstrip().removesuffix(piece.strip()).rstrip()
    if not (piece.strip() and behind.endswith("}")):  # directly behind the brace it is the structure's
        return piece
    depth = 0
    for brace in reversed([*re.finditer("[{}]", behind)]):
        depth += 1 if brace.group() == "}" else -1
        if not depth:
            return re.split("[;{}]", behind[: brace.start()])[-1] + piece
    return piece


def _enumeration(text: str, start: int, end: int) -> int | None:
    """Return where the members begin of an enumeration that has an attribute at this place."""
    if re.search(r"\benum\s*\Z", text[:start][-99:]):
        head = re.compile(r"\s*\w*\s*\{").match(text, end)
        return None if head is None else head.end()
    if text[:start].rstrip().endswith("}"):
        brace = text.rfind("{", 0, start)
        return brace + 1 if _ENUMERATION.search(text[:brace][-199:]) else None
    return None
