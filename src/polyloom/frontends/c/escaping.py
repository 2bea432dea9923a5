"""Iterators that are declared before a static control part and used behind it.

A part leaves what its loops leave in them; whoever replaces the part must know that somebody looks.
"""

from __future__ import annotations

from collections.abc import Iterator

from pycparser import c_ast

from polyloom.frontends.c.scope.liveness import is_live_behind
from polyloom.frontends.c.syntax.regions import Region


def escaping_iterators(region: Region) -> tuple[str, ...]:
    """Return the iterators of a part whose values are read after it, before they are written again."""
    if region.closing is None:
        return ()
    names = dict.fromkeys(name for node in region.body for name in _assigned_by_loops(node))
    body = region.function.body
    return tuple(n for n in names if _given_away(body, n) or _is_read_behind(region, n))


def is_read_after(region: Region, name: str) -> bool:
    """Whether a local's value is read after a part, before it is written again, or may be read unseen."""
    body = region.function.body
    return region.closing is None or _given_away(body, name) or _is_read_behind(region, name)


def _is_read_behind(region: Region, name: str) -> bool:
    """Whether a part's value of a variable may be read by what runs after it, on any way."""
    assert region.closing is not None
    return is_live_behind(region.function.body, region.closing, name)


def _given_away(node: c_ast.Node, name: str) -> bool:
    """Whether something may read or write a variable by its address, or from an earlier call."""
    match node:
        case c_ast.UnaryOp(op="&", expr=c_ast.ID(name=found)) if found == name:
            return True
        case c_ast.Decl(name=found, storage=storage) if found == name and "static" in (storage or []):
            return True
        case _:
            return any(_given_away(child, name) for _, child in node.children())


def _assigned_by_loops(node: c_ast.Node) -> Iterator[str]:
    """Yield the variables that the heads of ``for`` loops set or move without declaring them."""
    if isinstance(node, c_ast.For):
        declared = node.init.decls if isinstance(node.init, c_ast.DeclList) else []
        own = {d.name for d in declared}
        head = (part for part in (node.init, node.cond, node.next) if part is not None)
        yield from (name for part in head for name in _changed(part) if name not in own)
    for _, child in node.children():
        yield from _assigned_by_loops(child)


def _changed(node: c_ast.Node) -> Iterator[str]:
    """Yield the variables that an expression sets or moves: ``i = 0``, ``i += 2``, ``i-- > 4``."""
    match node:
        case c_ast.Assignment(lvalue=c_ast.ID(name=name)):
            yield str(name)
        case c_ast.UnaryOp(op="++" | "p++" | "--" | "p--", expr=c_ast.ID(name=name)):
            yield str(name)
        case _:
            pass
    for _, child in node.children():
        yield from _changed(child)
