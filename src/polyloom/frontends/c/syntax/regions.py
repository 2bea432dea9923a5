"""The static control parts of a file: between ``#pragma scop`` and its end, or a whole function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pycparser import c_ast

from polyloom.diagnostics import Source
from polyloom.frontends.c.syntax.faults import fail
from polyloom.frontends.c.syntax.nodes import LOOPS, nodes_in
from polyloom.frontends.c.syntax.places import Places

PAIR = "write `#pragma scop` before the loops and `#pragma endscop` after them, in one block"


@dataclass(frozen=True, eq=False)
class Region:
    """A part: its function, what stands before it (declarations in scope), its statements.

    ``marked``: it is not the whole function. Pragmas stand around it, ``opening`` and ``closing``; where
    there are none these are its first and last statement, and ``characters`` its range in the source.
    ``stepped``: pointers that it moves, and the integers that say by how much (``stepped_pointers``).
    ``repeated``: loops of the function are around it, which are no part of it.
    """

    function: c_ast.FuncDef
    before: tuple[c_ast.Node, ...]
    body: tuple[c_ast.Node, ...]
    marked: bool
    opening: c_ast.Node | None = None
    closing: c_ast.Node | None = None
    characters: tuple[int, int] | None = None
    stepped: tuple[tuple[str, str], ...] = ()
    repeated: bool = False

    @property
    def name(self) -> str:
        """The function's name."""
        return str(self.function.decl.name)

    @property
    def has_pragmas(self) -> bool:
        """Whether a person wrote pragmas around it."""
        return self.marked and self.characters is None


def regions(
    tree: c_ast.FileAST, function: str | None, places: Places, *, every: bool = False
) -> tuple[Region, ...]:
    """Return the parts of a file, or those of one function.

    Where no pragma marks any, it is the whole body of the function, of the only function in the file, or of
    the only one that is neither ``static`` nor ``main``: the others are there to be called by it. ``every``:
    of several the bodies of all that hold loops.

    Errors: ``c-no-function``, ``c-which-function``, ``c-scop-pragma``.
    """
    functions = [node for node in tree.ext if isinstance(node, c_ast.FuncDef)]
    own = [f for f in functions if f.coord.file == places.name] or functions
    if function is not None:
        own = [f for f in own if f.decl.name == function] or _unknown(function, own, places)
    marked = [region for f in own for region in _marked(f, places)]
    _check_outside(tree, places)
    if marked:
        return tuple(marked)
    if not own:
        fail("c-no-function", f"{places.source.name} holds no function", None, helps=[PAIR])
    called = [f for f in own if "static" not in f.decl.storage and f.decl.name != "main"]
    own = called if len(called) == 1 else own
    with_loops = [f for f in own if _any(f.body, LOOPS)]
    own = with_loops if every and with_loops else own
    if len(own) > 1 and not every:
        names = ", ".join(f"`{f.decl.name}`" for f in own)
        first = next((f for f in own if f.decl.name != "main"), own[0])
        fail(
            "c-which-function",
            f"no `#pragma scop` marks a part, and there are several functions: {names}",
            None,
            helps=[f"choose one: `--function {first.decl.name}`", PAIR],
        )
    return tuple(map(_body, own))


def helpers(tree: c_ast.FileAST, places: Places) -> tuple[Region, ...]:
    """Return the bodies of functions with loops that are there to be called by others of the file.

    They are parts of their own where those that call them, and would hold them, are none.
    """
    functions = (node for node in tree.ext if isinstance(node, c_ast.FuncDef))
    own = (f for f in functions if f.coord.file == places.name and "static" in f.decl.storage)
    return tuple(_body(f) for f in own if _any(f.body, LOOPS))


def _body(function: c_ast.FuncDef) -> Region:
    body = tuple(function.body.block_items or ())
    return Region(function, (), _without_return(body), marked=False)


def _without_return(body: tuple[c_ast.Node, ...]) -> tuple[c_ast.Node, ...]:
    if body and isinstance(body[-1], c_ast.Return) and body[-1].expr is None:
        return body[:-1]
    return body


def _unknown(name: str, functions: Sequence[c_ast.FuncDef], places: Places) -> list[c_ast.FuncDef]:
    known = ", ".join(f"`{f.decl.name}`" for f in functions) or "none"
    fail(
        "c-no-function",
        f"{places.source.name} holds no function `{name}`",
        None,
        helps=[f"known here: {known}"],
    )


def _check_outside(tree: c_ast.FileAST, places: Places) -> None:
    for node in tree.ext:
        if isinstance(node, c_ast.Pragma) and _mark(node) is not None:
            fail(
                "c-scop-pragma",
                f"`#pragma {_mark(node)}` stands outside a function",
                places.span(node),
                helps=[PAIR],
            )


def _mark(node: c_ast.Node) -> str | None:
    word = node.string.strip() if isinstance(node, c_ast.Pragma) else ""
    return word if word in ("scop", "endscop") else None


def _marked(function: c_ast.FuncDef, places: Places) -> list[Region]:
    found: list[Region] = []
    _search(function, list(function.body.block_items or ()), [], found, places)
    return found


def _search(
    function: c_ast.FuncDef,
    items: list[c_ast.Node],
    before: list[c_ast.Node],
    found: list[Region],
    places: Places,
) -> None:
    """Find marked parts in a block and in the blocks inside it; ``before`` collects what is declared."""
    opened: int | None = None
    for k, node in enumerate(items):
        mark = _mark(node)
        if mark == "scop":
            if opened is not None:
                fail(
                    "c-scop-pragma",
                    "`#pragma scop` inside a SCoP",
                    places.span(node),
                    helps=["end the one before with `#pragma endscop`"],
                )
            opened = k
        elif mark == "endscop":
            if opened is None:
                fail(
                    "c-scop-pragma",
                    "`#pragma endscop` without its `#pragma scop`",
                    places.span(node),
                    helps=[PAIR],
                )
            body = tuple(items[opened + 1 : k])
            found.append(Region(function, tuple(before), body, True, items[opened], node))
            before.append(node)
            opened = None
        elif opened is None:
            before.append(node)
            for inner in _blocks(node):
                _search(function, inner, [*before], found, places)
    if opened is not None:
        fail(
            "c-scop-pragma",
            "`#pragma scop` without its `#pragma endscop`",
            places.span(items[opened]),
            helps=[PAIR],
        )


def _blocks(node: c_ast.Node) -> list[list[c_ast.Node]]:
    match node:
        case c_ast.Compound(block_items=items):
            return [list(items or ())]
        case c_ast.For(init=init, stmt=stmt):
            head = [init] if isinstance(init, c_ast.DeclList) else []
            return [[*head, *block] for block in _blocks_or_one(stmt)]
        case (
            c_ast.While(stmt=stmt)
            | c_ast.DoWhile(stmt=stmt)
            | c_ast.Label(stmt=stmt)
            | c_ast.Switch(stmt=stmt)
        ):
            return _blocks_or_one(stmt)
        case c_ast.If(iftrue=then, iffalse=otherwise):
            return [*_blocks_or_one(then), *(_blocks_or_one(otherwise) if otherwise is not None else [])]
        case _:
            return []


def _blocks_or_one(node: c_ast.Node) -> list[list[c_ast.Node]]:
    return _blocks(node) or [[node]]


def loop_lines(region: Region) -> range:
    """Return the lines of the first loops that follow one another, if a part holds other statements too."""
    loops = [isinstance(node, c_ast.For) for node in region.body]
    if all(loops) or not any(loops):
        return range(0)
    first = loops.index(True)
    last = next((k for k in range(first, len(loops)) if not loops[k]), len(loops))
    lines = [c.line for node in region.body[first:last] for c in _places(node)]
    return range(min(lines), max(lines) + 1)


def _places(node: c_ast.Node) -> list[Any]:
    own = [node.coord] if node.coord is not None else []
    return [*own, *(c for _, child in node.children() for c in _places(child))]


def runs_once_after(region: Region, name: str) -> bool:
    """Whether the part runs once after each run of the declaration of a local, which is not ``static``."""
    node, declared = region.function.body, None
    mark = region.opening if region.opening is not None else region.body[0] if region.body else None
    while node is not None and node is not mark:
        if isinstance(node, (c_ast.For, c_ast.While, c_ast.DoWhile)):
            declared = None
        children = [child for _, child in node.children()]
        inner = next((k for k, child in enumerate(children) if child is mark or _holds(child, mark)), None)
        if inner is None:
            return False
        found = [d for child in children[:inner] for d in _declarations(child) if d.name == name]
        declared = found[-1] if found else declared
        node = children[inner]
    jumps = _any(region.function.body, (c_ast.Label, c_ast.Switch))
    return declared is not None and "static" not in (declared.storage or []) and not jumps


def _declarations(node: c_ast.Node) -> list[c_ast.Decl]:
    listed = node.decls if isinstance(node, c_ast.DeclList) else [node]
    return [d for d in listed if isinstance(d, c_ast.Decl)]


def _holds(node: c_ast.Node, mark: c_ast.Node | None) -> bool:
    return any(child is mark or _holds(child, mark) for _, child in node.children())


def _any(node: c_ast.Node, kinds: tuple[type, ...]) -> bool:
    return any(isinstance(inside, kinds) for inside in nodes_in(node))


def extent_in(region: Region, places: Places) -> tuple[int, int]:
    """Return the byte range of a part in the source: from pragma to pragma, or between the function's
    braces.
    """
    source = places.source
    if region.characters is not None:
        first, end = region.characters
        return _bytes(source, first), _bytes(source, end)
    if region.opening is not None and region.closing is not None:
        start = _line_start(source, region.opening.coord.line)
        end = _line_end(source, region.closing.coord.line)
        return _bytes(source, start), _bytes(source, end)
    brace = body_start(region.function, places)
    if brace is None:
        return (0, 0)
    return _bytes(source, brace + 1), _bytes(source, closing_brace(source.text, brace))


def body_start(function: c_ast.FuncDef, places: Places) -> int | None:
    """Return where the brace stands that opens a function's body; None where the file does not show it.

    Columns are those of the preprocessed text, so it is the only brace in its line that no other is around.
    """
    coord, text = function.body.coord, places.source.text
    if not places.is_source(str(coord.file)):
        return None
    first, end = _line_start(places.source, coord.line), _line_end(places.source, coord.line)
    depth, found = 0, list[int]()
    for lexeme in _LEXEME.finditer(text, first, end):
        if lexeme.group() == "{" and depth == 0:
            found.append(lexeme.start())
        depth = max(0, depth + {"{": 1, "}": -1}.get(lexeme.group(), 0))
    return found[0] if len(found) == 1 and _follows_arguments(places.plain_text, found[0]) else None


def _follows_arguments(text: str, brace: int) -> bool:
    """Whether a brace stands behind parentheses that are not those of a loop or a condition."""
    before, depth = text[:brace].rstrip(), 0
    for at in range(len(before) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(before[at], 0)
        if depth == 0:
            return before[at] == "(" and not _CONTROL.search(before[:at])
    return False


def _line_start(source: Source, line: int) -> int:
    return source.line_starts[min(line, len(source.line_starts)) - 1]


def _line_end(source: Source, line: int) -> int:
    return _line_start(source, line) + len(source.line(line))


def _bytes(source: Source, offset: int) -> int:
    return len(source.text[:offset].encode("utf-8"))


_LEXEME = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[{}]", re.DOTALL)

_CONTROL = re.compile(r"\b(for|if|while|switch)\s*$")


def closing_brace(text: str, start: int) -> int:
    """Return where the brace at ``start`` is closed."""
    depth = 0
    for lexeme in _LEXEME.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(lexeme.group(), 0)
        if depth == 0:
            return lexeme.start()
    return len(text)


__all__ = ["Region", "body_start", "closing_brace", "extent_in", "regions"]
