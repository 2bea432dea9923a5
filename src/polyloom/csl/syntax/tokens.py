"""CSL text to tokens, with the place of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, Span, error

Kind = Literal["name", "keyword", "builtin", "integer", "float", "string", "operator", "end"]

_KEYWORDS = """
align and anytype break comptime const continue else enum export extern false fn for if inline layout
linkname linksection or packed param return struct switch task true union var while
"""

KEYWORDS = frozenset(_KEYWORDS.split())


@dataclass(frozen=True, slots=True)
class Token:
    """``text`` as written; ``start`` and ``end`` are offsets into the text."""

    kind: Kind
    text: str
    start: int
    end: int


_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n\f\v\ufeff]+|//[^\n]*)
  | (?P<float>0[xX][0-9a-fA-F_]+(?:\.[0-9a-fA-F_]+)?[pP][+-]?\d+
           |\d[\d_]*\.\d[\d_]*(?:[eE][+-]?\d+)?|\d[\d_]*[eE][+-]?\d+)
  | (?P<integer>0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|\d[\d_]*)
  | (?P<builtin>@[A-Za-z_]\w*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<string>"(?:\\.|[^"\\\n])*")
  | (?P<operator><<=|>>=|\.\.\.|->|=>|==|!=|<=|>=|<<|>>|\+=|-=|\*=|/=|%=|&=|\|=|\^=|\.\*
               |[-+*/%&|^~!<>=.,:;(){}\[\]])
    """,
    re.VERBOSE | re.ASCII,
)

_GLUED = re.compile(r"[A-Za-z_0-9]", re.ASCII)


def tokens_of(source: Source) -> tuple[Token, ...]:
    """Return the tokens of a file, at last one of kind ``end``.

    Errors: ``csl-character``, ``csl-string``, ``csl-number``.
    """
    text, place = source.text, 0
    tokens: list[Token] = []
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise PolyloomError(_unreadable(source, place))
        kind, place = cast(Kind | Literal["space"], match.lastgroup), match.end()
        if kind == "space":
            continue
        if kind in ("integer", "float") and _GLUED.match(text, place):
            raise PolyloomError(_bad_number(source, match.start()))
        if kind == "name" and match[0] in KEYWORDS:
            kind = "keyword"
        tokens.append(Token(kind, match[0], match.start(), place))
    end = len(text.rstrip())
    return (*tokens, Token("end", "", end, end))


_DIRECTIVE = re.compile(r"#\s*(include|define|pragma|if|ifdef|ifndef|undef)\b")
"""Of C's preprocessor."""
_OF_C = "this is C, not CSL: `polyloom run FILE --check` runs a C function, `polyloom show FILE` reads it"


def _unreadable(source: Source, place: int) -> Diagnostic:
    character = source.text[place]
    span = Span(source, place, place + 1)
    if character == '"':
        return error(
            "csl-string",
            "string has no end on its line",
            span,
            helps=['end it with `"`; a line break in it is `\\n`'],
        )
    helps = {"@": "a builtin is `@` and its name, as `@get_color(1)`", "#": "a comment begins with `//`"}
    help_ = _OF_C if _DIRECTIVE.match(source.text, place) else helps.get(character, "remove it")
    return error("csl-character", f"`{character}` is no part of CSL", span, helps=[help_])


def _bad_number(source: Source, start: int) -> Diagnostic:
    match = re.compile(r"[\w.]+", re.ASCII).match(source.text, start)
    end = match.end() if match else start + 1
    return error(
        "csl-number",
        f"`{source.text[start:end]}` is not a number",
        Span(source, start, end),
        helps=["numbers are `42`, `0xff`, `0b11`, `1.5` and `1e-3`; a name cannot begin with a digit"],
    )
