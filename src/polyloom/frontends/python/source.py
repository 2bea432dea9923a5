"""The text and the syntax tree of a Python function, and places in its file."""

from __future__ import annotations

import ast
import copy
import inspect
import linecache
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
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


def with_truths(text: FunctionText, truths: Mapping[str, bool]) -> FunctionText:
    """Return a function with truth values in place of arguments. Errors: ``python-name``."""
    for node in ast.walk(text.tree):
        if isinstance(node, ast.Name) and node.id in truths and not isinstance(node.ctx, ast.Load):
            help_ = "give the other value a name of its own"
            text.refuse("python-name", f"`{node.id}` is True or False, and keeps that", node, "", help_)
    return replace(text, tree=_Known(truths).visit(copy.deepcopy(text.tree))) if truths else text


class _Known(ast.NodeTransformer):
    """Puts truth values in place of names, and leaves out the sides of branches that they never take."""

    def __init__(self, truths: Mapping[str, bool]) -> None:
        self.truths = truths

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return a name, or the truth value that it is."""
        known = self.truths.get(node.id)
        return node if known is None else ast.copy_location(ast.Constant(known), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Return an operation, or the truth value that it is."""
        self.generic_visit(node)
        known = _truth(node.operand) if isinstance(node.op, ast.Not) else None
        return node if known is None else ast.copy_location(ast.Constant(not known), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Return a conditional value, or that of its sides which it has."""
        self.generic_visit(node)
        known = _truth(node.test)
        return node if known is None else node.body if known else node.orelse

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """Return a branch, or that of its sides which is taken."""
        self.generic_visit(node)
        known = _truth(node.test)
        if known is None:
            return node
        return (node.body if known else node.orelse) or [ast.copy_location(ast.Pass(), node)]


def _truth(node: ast.expr) -> bool | None:
    """Return a truth value; None of what is none."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, bool) else None
