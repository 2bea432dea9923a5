"""The text and the syntax tree of a Python function, and places in its file."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from polyloom.diagnostics import PolyloomError, Source, Span, Unsupported, error


@dataclass(frozen=True, eq=False)
class FunctionText:
    """A function: its tree, whose lines count from ``first`` and whose columns are ``indent`` less than in
    its file. ``names``: what its free names mean.
    """

    name: str
    source: Source
    tree: ast.FunctionDef
    first: int
    indent: int
    names: Mapping[str, Any]
    _starts: list[int] = field(default_factory=list)

    def is_same(self, other: FunctionText) -> bool:
        """Return whether both are one function."""
        return (self.source.name, self.first, self.name) == (other.source.name, other.first, other.name)

    def span(self, node: ast.AST) -> Span:
        """Return where a node stands in the file."""
        return Span(
            self.source,
            self._at(node, "lineno", "col_offset"),
            self._at(node, "end_lineno", "end_col_offset"),
        )

    def _at(self, node: ast.AST, line: str, column: str) -> int:
        if not self._starts:
            lines = self.source.text.split("\n")
            self._starts.extend(sum(len(text) + 1 for text in lines[:k]) for k in range(len(lines) + 1))
        number: int = getattr(node, line) - 1 + self.first
        row = self.source.text.split("\n")[number]
        before = row.encode()[: getattr(node, column) + self.indent].decode(errors="ignore")
        return self._starts[number] + len(before)

    def refuse(self, code: str, message: str, node: ast.AST, label: str = "", *helps: str) -> NoReturn:
        """Raise ``Unsupported`` with a place in the file."""
        raise self.fault(code, message, node, label, *helps)

    def fault(self, code: str, message: str, node: ast.AST, label: str = "", *helps: str) -> Unsupported:
        """Return the error at a place in the file."""
        return Unsupported(error(code, message, self.span(node), label=label, helps=helps))


def text_of_function(function: Callable[..., Any]) -> FunctionText:
    """Return the text of a function that was written in a file or a cell of a notebook.

    Errors: ``python-source`` where it has none, or is no ``def``.
    """
    function = inspect.unwrap(function)
    try:
        lines, start = inspect.getsourcelines(function)
        path = inspect.getsourcefile(function) or "<python>"
    except (OSError, TypeError) as fault:
        helps = ["write it in a file or a cell of a notebook"]
        message = f"`{getattr(function, '__name__', function)}` has no text that can be read"
        raise PolyloomError(error("python-source", message, notes=[str(fault)], helps=helps)) from fault
    whole = "".join(linecache.getlines(path)) or "".join(lines)
    try:
        tree: ast.stmt | None = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except SyntaxError:  # a lambda in the middle of a statement
        tree = None
    if not isinstance(tree, ast.FunctionDef):
        helps = ["write `def name(arguments): ...`"]
        raise PolyloomError(error("python-source", "only functions with `def` are read", helps=helps))
    at_start = whole.split("\n")[start - 1 : start] != ["".join(lines[:1]).rstrip("\n")]
    source = Source(path, "".join(lines) if at_start else whole)
    closed = inspect.getclosurevars(function)
    names = {**vars(__import__("builtins")), **closed.globals, **closed.nonlocals}
    indent = len(lines[0]) - len(lines[0].lstrip())
    return FunctionText(function.__name__, source, tree, 0 if at_start else start - 1, indent, names)
