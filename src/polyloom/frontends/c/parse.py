"""Preprocessed text to a syntax tree, with faults at their place in the user's file."""

from __future__ import annotations

import re
from typing import NoReturn

from pycparser import c_ast, c_parser

from polyloom.diagnostics import Span
from polyloom.frontends.c.faults import fail
from polyloom.frontends.c.places import Places

_PLACE = re.compile(r"^(?P<file>.*?):(?P<line>\d+)(?::(?P<column>\d+))?: (?P<message>.*)$", re.DOTALL)
_BEFORE = re.compile(r"(?P<word>[A-Za-z_]\w*)[\s*&]*$")


def parse(text: str, places: Places) -> c_ast.FileAST:
    """Return the syntax tree. Errors: ``c-syntax``, ``c-unknown-type``, ``c-pragma-place``."""
    try:
        return c_parser.CParser().parse(text, places.source.name)
    except c_parser.ParseError as fault:
        _explain(str(fault), places)
    except RecursionError:
        fail("c-syntax", "the text is nested too deeply", None, helps=["take expressions apart"])


def _explain(message: str, places: Places) -> NoReturn:
    found = _PLACE.match(message)
    if found is None:
        fail("c-syntax", message, None, helps=["Polyloom reads C99; does the file compile?"])
    span = places.at(found["file"], int(found["line"]), int(found["column"] or 1))
    what = found["message"].strip()
    if span is not None:
        _explain_place(what, span)
    fail("c-syntax", f"syntax error: {what}", span, helps=["Polyloom reads C99; does the file compile?"])


def _explain_place(what: str, span: Span) -> None:
    """Raise what is more helpful than "before: x", if the text shows it."""
    if span.source.line(span.line).lstrip().startswith("#"):
        fail(
            "c-pragma-place",
            "a pragma cannot stand here",
            span,
            notes=[what],
            helps=[
                "put it on a line of its own, before a statement: not inside an expression, not before `else`"
            ],
        )
    word = _BEFORE.search(span.source.text[: span.start])
    if word and "before" in what and word["word"] not in _KEYWORDS and _BEGINS.match(span.text):
        at = Span(span.source, word.start("word"), word.end("word"))
        fail(
            "c-unknown-type",
            f"`{word['word']}` is not known as a type",
            at,
            helps=[f"include the header that defines it, or give it as a macro: `-D {word['word']}=float`"],
        )


_BEGINS = re.compile(r"[A-Za-z_*]")
_KEYWORDS = frozenset(
    [
        "if",
        "else",
        "for",
        "while",
        "do",
        "return",
        "break",
        "continue",
        "goto",
        "switch",
        "case",
        "default",
        "sizeof",
        "int",
        "char",
        "short",
        "long",
        "float",
        "double",
        "void",
        "signed",
        "unsigned",
        "const",
        "static",
        "inline",
        "restrict",
        "struct",
        "union",
        "enum",
        "typedef",
        "extern",
        "register",
        "volatile",
    ]
)
