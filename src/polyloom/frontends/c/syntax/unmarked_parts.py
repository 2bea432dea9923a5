"""Static control parts that nobody marked: loops of a function that as a whole is none.

    for (i = 0; i < n; i++) y[i] = 0;         <- a part
    while (read_more(&x))                        no loop that can be computed, so what is inside is looked at:
      for (i = 0; i < n; i++) y[i] += x[i];   <- a part

A part is as many loops in a row as there are, with the assignments between them. Its text is found by the
braces and semicolons of the file, so nothing that a macro hides is a part.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Generic, TypeVar

from pycparser import c_ast

from polyloom.frontends.c.syntax.nodes import LOOPS, nodes_in
from polyloom.frontends.c.syntax.openmp import keeps_its_form
from polyloom.frontends.c.syntax.places import Places
from polyloom.frontends.c.syntax.regions import Region, closing_brace
from polyloom.frontends.c.syntax.statement_macros import Kind

Found = TypeVar("Found")

Range = tuple[int, int]

MOST_TRIES = 200
"""Regions of a function that are tried at most."""


def unmarked_parts(
    function: c_ast.FuncDef,
    places: Places,
    read: Callable[[Region], Found | None],
    macros: Mapping[str, Kind],
) -> tuple[Found, ...]:
    """Return what ``read`` gives for the parts of a function; it gives None for a region that is none.

    ``macros``: those of ``statement_macros``.
    """
    finder = _Finder(function, _Text(places.source.text, macros), _starts(function, places), read)
    finder.search(list(function.body.block_items or ()), [])
    return tuple(finder.found)


@dataclass(frozen=True)
class _Text:
    """A file, and the macros in it that hold statements."""

    characters: str
    macros: Mapping[str, Kind]


@dataclass(eq=False)
class _Finder(Generic[Found]):
    function: c_ast.FuncDef
    text: _Text
    starts: Mapping[c_ast.Node, int]
    read: Callable[[Region], Found | None]
    found: list[Found] = field(default_factory=list)
    tries: int = 0
    loops: int = 0
    """Around the statements that are looked at."""

    def search(self, items: Sequence[c_ast.Node], before: Sequence[c_ast.Node]) -> None:
        """Look for parts among statements of a block, and in the blocks inside those that are none."""
        before, k = [*before], 0
        while k < len(items):
            end = self._taken(items, k, before)
            if end == k:
                end = k + 1
                around = isinstance(items[k], (*LOOPS, c_ast.DoWhile))
                self.loops += around
                for inner in () if keeps_its_form(items[k - 1] if k else None) else _blocks(items[k]):
                    self.search(inner, [*before, items[k]])
                self.loops -= around
            before += items[k:end]
            k = end

    def _taken(self, items: Sequence[c_ast.Node], first: int, before: Sequence[c_ast.Node]) -> int:
        """Take the longest part that begins with a statement; return where it ends.

        All loops in a row are tried first: as a rule they are one, and each try reads all of its statements.
        A loop behind a pragma is none without it: what stands there must be a loop.
        """
        follows = first > 0 and isinstance(items[first - 1], c_ast.Pragma)
        ends = [] if follows and not isinstance(items[first], c_ast.Pragma) else _ends(items, first)
        longest, taken = self._tried(items[first : ends[-1]], before) if ends else None, first
        if longest is not None:
            taken, ends = ends[-1], []
        for end in ends[:-1]:
            found = self._tried(items[first:end], before)
            if found is None:
                break
            longest, taken = found, end
        self.found += [] if longest is None else [longest]
        return taken

    def _tried(self, body: Sequence[c_ast.Node], before: Sequence[c_ast.Node]) -> Found | None:
        region = self._region(body, before)
        self.tries += 1
        return None if region is None or self.tries > MOST_TRIES else self.read(region)

    def _region(self, body: Sequence[c_ast.Node], before: Sequence[c_ast.Node]) -> Region | None:
        characters = _text_of(body, self.text, self.starts)
        if characters is None:
            return None
        return Region(
            function=self.function,
            before=tuple(before),
            body=tuple(body),
            marked=True,
            opening=body[0],
            closing=body[-1],
            characters=characters,
            repeated=self.loops > 0,
        )


def _ends(items: Sequence[c_ast.Node], first: int) -> list[int]:
    """Return where a part that begins with pragmas and a loop may end: behind each loop of those in a row."""
    found = []
    for k in range(first, len(items)):
        if isinstance(items[k], LOOPS):
            found.append(k + 1)
        elif not isinstance(items[k], c_ast.Pragma) and (
            not found or not isinstance(items[k], c_ast.Assignment)
        ):
            break
    return found


def _blocks(node: c_ast.Node) -> list[list[c_ast.Node]]:
    """Return the blocks right inside a statement, that of a loop with the declarations of its head."""
    match node:
        case c_ast.Compound():
            return [_statements(node)]
        case c_ast.For(init=init, stmt=stmt):
            head = [init] if isinstance(init, c_ast.DeclList) else []
            return [[*head, *_statements(stmt)]]
        case c_ast.If(iftrue=then, iffalse=otherwise):
            return [_statements(side) for side in (then, otherwise) if side is not None]
        case c_ast.Case(stmts=stmts) | c_ast.Default(stmts=stmts):
            return [list(stmts or ())]
        case (
            c_ast.While(stmt=stmt)
            | c_ast.DoWhile(stmt=stmt)
            | c_ast.Label(stmt=stmt)
            | c_ast.Switch(stmt=stmt)
        ):
            return [_statements(stmt)]
        case _:
            return []


def _statements(node: c_ast.Node) -> list[c_ast.Node]:
    return list(node.block_items or ()) if isinstance(node, c_ast.Compound) else [node]


# The text of statements


_LEXEME = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|^[ \t]*#(?:\\\n|[^\n])*|\w+|[(){};]",
    re.DOTALL | re.MULTILINE,
)


def _text_of(body: Sequence[c_ast.Node], text: _Text, starts: Mapping[c_ast.Node, int]) -> Range | None:
    """Return the range of characters of statements that begin with a loop or a pragma and end with a loop.

    None where these do not stand in the file as they are. ``starts``: of loops and pragmas.
    """
    first, last = starts.get(body[0]), starts.get(body[-1])
    end = None if first is None or last is None else _statement_end(text.characters, last)
    if first is None or last is None or end is None or end <= first:
        return None
    written = [word for word, _ in _lexemes(text.characters, first, end)]
    if any(map(_is_conditional, written)):
        return None
    kinds = [text.macros[word] for word in written if word in text.macros]
    if kinds:
        shown = Kind.OPEN not in kinds and _shows_its_end(text, last, end)
        return (first, end) if shown else None
    loops, braces = _count(body, (*LOOPS, c_ast.DoWhile)), _count(body, _BRACES)
    heads = sum(map(written.count, _HEADS))
    return (first, end) if (heads, written.count("{")) == (loops, braces) else None


def _lexemes(text: str, start: int, end: int) -> Iterator[tuple[str, int]]:
    """Yield what stands in a range, each with how many braces are open behind it."""
    depth = 0
    for found in _LEXEME.finditer(text, start, end):
        depth += {"{": 1, "}": -1}.get(found.group(), 0)
        yield found.group(), depth


def _shows_its_end(text: _Text, last: int, end: int) -> bool:
    """Whether the text of the last statement, which begins at ``last``, ends where the statement does.

    A macro with several statements does not matter inside of braces.
    """
    outside = [word for word, depth in _lexemes(text.characters, last, end) if depth == 0]
    return all(text.macros.get(word) is not Kind.SEVERAL for word in outside)


def _starts(function: c_ast.FuncDef, places: Places) -> dict[c_ast.Node, int]:
    """Return where the loops and pragmas of a function begin in the text.

    Columns are those of the preprocessed text, so loops of a kind are told apart by their order; of a line
    where the text has more of them, or fewer, none is known.
    """
    text, found = places.source.text, dict[c_ast.Node, int]()
    lines = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
    loops = defaultdict[tuple[int, str], list[c_ast.Node]](list)
    for node in nodes_in(function.body):
        if node.coord is None or not places.is_source(str(node.coord.file)):
            continue
        if node.coord.line >= len(lines):
            continue
        if isinstance(node, c_ast.Pragma):
            found[node] = lines[node.coord.line - 1]
        elif isinstance(node, LOOPS):
            loops[int(node.coord.line), "for" if isinstance(node, c_ast.For) else "while"].append(node)
    written = defaultdict[tuple[int, str], list[int]](list)
    ends = _ends_of_do(text)
    for lexeme in _LEXEME.finditer(text):
        if (word := lexeme.group()) in _HEADS and lexeme.start() not in ends:
            written[bisect(lines, lexeme.start()), word].append(lexeme.start())
    for place, nodes in loops.items():
        if len(nodes) == len(written[place]):
            found |= dict(zip(nodes, written[place], strict=True))
    return found


def _ends_of_do(text: str) -> frozenset[int]:
    """Return where each ``while`` stands that ends a ``do``."""
    bodies = (_statement_end(text, word.end()) for word in _LEXEME.finditer(text) if word.group() == "do")
    behind = (_LEXEME.finditer(text, end) for end in bodies if end is not None)
    words = (next((w for w in found if not w.group().startswith(("/*", "//"))), None) for found in behind)
    return frozenset(word.start() for word in words if word is not None and word.group() == "while")


def _is_conditional(lexeme: str) -> bool:
    return lexeme.lstrip().startswith("#") and not re.match(r"\s*#\s*pragma\b", lexeme)


_HEADS = ("for", "while")
"""What loops begin with."""

_BRACES = (c_ast.Compound, c_ast.InitList)
"""What stands in braces; of what macros hide others are in the text than in the tree."""


def _count(nodes: Sequence[c_ast.Node], kinds: tuple[type[c_ast.Node], ...]) -> int:
    return sum(isinstance(n, kinds) + _count([child for _, child in n.children()], kinds) for n in nodes)


def _statement_end(text: str, start: int) -> int | None:
    """Return where the statement ends that begins at ``start``, or behind blanks and comments there."""
    for found in _LEXEME.finditer(text, start):
        match found.group():
            case "{":
                return closing_brace(text, found.start()) + 1
            case "for" | "while" | "switch" | "if" as word:
                closed = _closed(text, found.end())
                end = None if closed is None else _statement_end(text, closed)
                return _with_else(text, end) if word == "if" and end is not None else end
            case "do":
                end = _statement_end(text, found.end())
                return None if end is None else _semicolon(text, end)
            case ";":
                return found.end()
            case lexeme if not lexeme.startswith(("/*", "//")) and not lexeme.lstrip().startswith("#"):
                return _semicolon(text, found.start())
            case _:
                pass
    return None


def _with_else(text: str, end: int) -> int | None:
    """Return where a branch ends whose first side ends at ``end``."""
    for found in _LEXEME.finditer(text, end):
        if found.group() == "else":
            return _statement_end(text, found.end())
        if not found.group().startswith(("/*", "//")):
            break
    return end


def _closed(text: str, start: int) -> int | None:
    """Return where the first parentheses from ``start`` on are closed."""
    depth = 0
    for found in _LEXEME.finditer(text, start):
        depth += {"(": 1, ")": -1}.get(found.group(), 0)
        if depth == 0 and found.group() == ")":
            return found.end()
    return None


def _semicolon(text: str, start: int) -> int | None:
    """Return where the first semicolon ends that no brackets are around."""
    depth = 0
    for found in _LEXEME.finditer(text, start):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(found.group(), 0)
        if depth == 0 and found.group() == ";":
            return found.end()
    return None
