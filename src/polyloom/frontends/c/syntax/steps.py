"""Steps inside statements as statements of their own: ``a[k++] = e`` becomes ``a[k] = e; k++``.

That is the same where the variable stands nowhere else in the statement, and where what holds it is evaluated
exactly once. Other steps stay, and are refused where they are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pycparser import c_ast

from polyloom.frontends.c.syntax.nodes import nodes_in

_SOMETIMES = (c_ast.TernaryOp, c_ast.FuncCall, c_ast.ExprList, c_ast.Compound)
"""Of what stands in these it is not known that it is evaluated once: arguments of macros, branches."""


def with_steps_apart_in(nodes: Sequence[c_ast.Node]) -> list[c_ast.Node]:
    """Return statements of a block with the steps in them taken apart; what is inside of them is changed."""
    return [new for node in nodes for new in _statements(node)]


def with_steps_apart(tree: c_ast.FileAST) -> c_ast.FileAST:
    """Change the bodies of a file's functions, and return it."""
    for part in tree.ext:
        if isinstance(part, c_ast.FuncDef):
            _in_blocks(part.body)
    return tree


def _in_blocks(node: c_ast.Node) -> None:
    """Take steps apart in all statements inside a node."""
    match node:
        case c_ast.Compound(block_items=items) if items:
            node.block_items = [new for item in items for new in _statements(item)]
        case c_ast.Case(stmts=items) | c_ast.Default(stmts=items) if items:
            node.stmts = [new for item in items for new in _statements(item)]
        case (
            c_ast.For(stmt=stmt)
            | c_ast.While(stmt=stmt)
            | c_ast.DoWhile(stmt=stmt)
            | c_ast.Label(stmt=stmt)
            | c_ast.Switch(stmt=stmt)
        ) if stmt is not None:
            node.stmt = _one(stmt)
        case c_ast.If(iftrue=iftrue, iffalse=iffalse):
            node.iftrue = None if iftrue is None else _one(iftrue)
            node.iffalse = None if iffalse is None else _one(iffalse)
        case _:
            pass


def _one(node: c_ast.Node) -> c_ast.Node:
    found = _statements(node)
    return found[0] if len(found) == 1 else c_ast.Compound(found, node.coord)


def _statements(node: c_ast.Node) -> list[c_ast.Node]:
    _in_blocks(node)
    if not isinstance(node, c_ast.Assignment) and not _is_number(node):
        return [node]
    before: list[c_ast.Node] = []
    after: list[c_ast.Node] = []
    names = [inside.name for inside in nodes_in(node) if isinstance(inside, c_ast.ID)]
    for parent, field, step in list(_steps(node)):
        if names.count(step.expr.name) == 1:
            (after if step.op.startswith("p") else before).append(step)
            setattr(parent, field, step.expr)
    return [*before, node, *after]


def _is_number(node: c_ast.Node) -> bool:
    """Whether a statement declares a variable with a value, not a list of them."""
    return (
        isinstance(node, c_ast.Decl)
        and isinstance(node.type, c_ast.TypeDecl)
        and node.init is not None
        and not isinstance(node.init, c_ast.InitList)
    )


def _steps(node: c_ast.Node) -> Iterator[tuple[c_ast.Node, str, c_ast.UnaryOp]]:
    """Yield the steps of variables that a node surely takes, each once, with where they stand."""
    for field, child in node.children():
        if isinstance(child, c_ast.UnaryOp) and child.op in ("++", "p++", "--", "p--"):
            if isinstance(child.expr, c_ast.ID):
                yield node, field, child
        elif not (isinstance(child, _SOMETIMES) or _chooses(child) or _points(child)):
            yield from _steps(child)


def _points(node: c_ast.Node) -> bool:
    """Whether a node is ``*p++``, which steps a pointer."""
    return isinstance(node, c_ast.UnaryOp) and node.op == "*"


def _chooses(node: c_ast.Node) -> bool:
    return isinstance(node, c_ast.BinaryOp) and node.op in ("&&", "||")
