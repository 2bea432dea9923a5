"""Where a node of the syntax tree stands in the user's text.

The parser gives a line and a column where a node starts; where it ends is found by reading the node's
tokens off the text. Inside a macro's expansion the tokens are not there: then the span is what stands at
that place.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pycparser import c_ast, c_generator

from polyloom.diagnostics import Source, Span
from polyloom.frontends.c.syntax.faults import line_span

_TOKEN = re.compile(r"[A-Za-z_]\w*|\.?\d[\w.]*|\S")
_ASIDE = re.compile(r"/\*.*?\*/|//[^\n]*|^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)
_SKIPPED = re.compile(r"[\s()]*")


def name_in_text(source: Source) -> str:
    """Return what ``#line`` directives call a source: its name, or another where that cannot stand in one."""
    plain = source.name.isprintable() and not set(source.name) & set('"\\')
    return source.name if plain else "source.c"


def _is_one_file(a: str, b: str) -> bool:
    try:
        return Path(a).resolve() == Path(b).resolve()
    except (OSError, ValueError):
        return False


class Places:
    """Spans of nodes; other files than ``source`` are read when they are asked for."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.name = name_in_text(source)
        self._sources: dict[str, Source] = {self.name: source}
        self._spans: WeakKeyDictionary[c_ast.Node, Span | None] = WeakKeyDictionary()
        self._generator = c_generator.CGenerator()

    @cached_property
    def plain_text(self) -> str:
        """The text with blanks in the place of comments and directives."""
        return _ASIDE.sub(lambda found: " " * len(found.group()), self.source.text)

    def span(self, node: c_ast.Node | None) -> Span | None:
        """Return the span of a node; None where it has no place."""
        if getattr(node, "coord", None) is None or node is None:
            return None
        if node not in self._spans:
            self._spans[node] = self._found(node)
        return self._spans[node]

    def _found(self, node: c_ast.Node) -> Span | None:
        coord = node.coord
        source = self._source(str(coord.file))
        start = self.offset(source, int(coord.line), int(coord.column or 1))
        if start is None:
            return None
        span = Span(source, start, self._end(source, start, node))
        return line_span(source, int(coord.line)) if self.in_macro(span, node) else span

    def text(self, node: c_ast.Node) -> str:
        """Return a node as C, in one line."""
        return " ".join(str(self._generator.visit(node)).split())

    def at(self, file: str, line: int, column: int) -> Span | None:
        """Return the token at a place that the parser names."""
        source = self._source(file)
        start = self.offset(source, line, column)
        return None if start is None else Span(source, start, _token_end(source.text, start))

    def offset(self, source: Source, line: int, column: int) -> int | None:
        """Return the offset of a 1-based line and column; a column past the line's end is its last token."""
        starts = source.line_starts
        if not 1 <= line < len(starts):
            return None
        before, behind = starts[line - 1], starts[line] - 1
        text = source.text[before:behind]
        if column - 1 < len(text.rstrip()):
            return before + column - 1
        return before + len(text) - len(text.lstrip())

    def is_source(self, name: str) -> bool:
        """Whether a name that the preprocessor gives is that of the source."""
        return self._source(name) is self.source

    def _source(self, name: str) -> Source:
        if name not in self._sources and _is_one_file(name, self.source.name):
            self._sources[name] = self.source  # the preprocessor writes `../f.c` as an absolute path
        if name not in self._sources:
            try:
                text = Path(name).read_text(encoding="utf-8", errors="replace")
            except OSError:
                text = ""
            self._sources[name] = Source(name, text)
        return self._sources[name]

    def _end(self, source: Source, start: int, node: c_ast.Node) -> int:
        if isinstance(node, (c_ast.For, c_ast.If, c_ast.While, c_ast.Pragma, c_ast.Compound, c_ast.FuncDef)):
            return _token_end(source.text, start)
        end = _matching(source.text, start, self.text(node))
        return _token_end(source.text, start) if end is None else end

    def in_macro(self, span: Span, node: c_ast.Node) -> bool:
        """Whether a node comes out of a macro: then its tokens do not stand where it does."""
        if isinstance(node, (c_ast.Pragma, c_ast.Compound)):
            return False
        first = _TOKEN.search(self.text(node).lstrip("("))
        return first is not None and not span.text.startswith(first.group())


def _token_end(text: str, start: int) -> int:
    token = _TOKEN.match(text, start)
    return token.end() if token else start + 1


def _matching(text: str, start: int, wanted: str) -> int | None:
    """Return where the tokens ``wanted`` end in ``text`` from ``start`` on; blanks and parentheses aside."""
    at, end = start, start
    for token in _TOKEN.findall(wanted):
        if token in "()":
            continue
        at = _skip(text, at)
        if not text.startswith(token, at):
            return None
        at = end = at + len(token)
    return _balanced(text, start, end)


def _skip(text: str, at: int) -> int:
    found = _SKIPPED.match(text, at)
    return found.end() if found else at


def _balanced(text: str, start: int, end: int) -> int:
    """Take in the parentheses that close what was opened inside."""
    missing = text.count("(", start, end) - text.count(")", start, end)
    while missing > 0 and (at := text.find(")", end)) >= 0 and not text[end:at].strip():
        end, missing = at + 1, missing - 1
    return end


def name_of(node: Any) -> str:
    """Return the kind of a node as C programmers say it."""
    return _KINDS.get(type(node).__name__, f"`{type(node).__name__}`")


_KINDS = {
    "While": "a `while` loop",
    "DoWhile": "a `do` loop",
    "Goto": "`goto`",
    "Switch": "`switch`",
    "Return": "`return`",
    "FuncCall": "a call",
    "CompoundLiteral": "a compound literal",
    "InitList": "a list of initial values",
    "Typedef": "a type definition",
    "ExprList": "a list of expressions",
    "Case": "`case`",
    "Default": "`default`",
    "StaticAssert": "`_Static_assert`",
    "StructRef": "a member access",
}
