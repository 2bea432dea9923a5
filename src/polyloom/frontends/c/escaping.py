"""Iterators that are declared before a static control part and used behind it.

A part leaves what its loops leave in them; whoever replaces the part must know that somebody looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pycparser import c_ast

from polyloom.frontends.c.scope.writes import contains
from polyloom.frontends.c.syntax.nodes import nodes_in
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
    """Whether a part's value of a variable may be read by what runs after it, on any way.

    A jump may lead around what writes it: then all that follows counts. ``goto`` leads to all labels.
    """
    body = region.function.body
    assert region.closing is not None
    starts: list[list[c_ast.Node]] = [[*_after(body, region.closing)]]
    if contains(body, (c_ast.Goto,)) is not None:
        labels = (node for node in nodes_in(body) if isinstance(node, c_ast.Label))
        starts += [[label.stmt, *_after(body, label)] for label in labels]
    return any(_reads(nodes, name) for nodes in starts)


def _reads(nodes: Iterable[c_ast.Node], name: str) -> bool:
    jumped = False
    for node in nodes:
        found = _first_use(node, name)
        jumped = jumped or _jumps(node)
        if found is not None and (found or not jumped):
            return found
    return False


def _jumps(node: c_ast.Node) -> bool:
    """Whether a statement may lead elsewhere in the function than to what stands behind it."""
    if isinstance(node, (c_ast.For, c_ast.While, c_ast.DoWhile)):
        return contains(node, (c_ast.Goto,)) is not None
    if isinstance(node, c_ast.Switch):
        return contains(node, (c_ast.Goto, c_ast.Continue)) is not None
    if isinstance(node, (c_ast.Break, c_ast.Continue, c_ast.Goto)):
        return True
    return any(_jumps(child) for _, child in node.children())


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


def _after(node: c_ast.Node, mark: c_ast.Node) -> Iterator[c_ast.Node]:
    """Yield what runs after ``mark``, in order: what follows in its block, the loops around it once more."""
    children = [child for _, child in node.children()]
    for k, child in enumerate(children):
        if child is mark or _holds(child, mark):
            if child is not mark:
                yield from _after(child, mark)
            if isinstance(node, c_ast.For):
                yield from (n for n in (node.next, node.cond, node.stmt) if n is not None)
            elif isinstance(node, c_ast.While | c_ast.DoWhile):
                yield from (node.cond, node.stmt)
            elif isinstance(node, c_ast.Compound):
                yield from children[k + 1 :]
            return


def _holds(node: c_ast.Node, mark: c_ast.Node) -> bool:
    return any(child is mark or _holds(child, mark) for _, child in node.children())


def _sequence(nodes: Iterable[c_ast.Node | None], name: str) -> bool | None:
    """Tell whether a variable is read before it is written (True), written first (False), neither (None)."""
    return next((found for n in nodes if (found := _first_use(n, name)) is not None), None)


def _first_use(node: c_ast.Node | None, name: str) -> bool | None:
    match node:
        case None:
            return None
        case c_ast.ID(name=found):
            return True if found == name else None
        case c_ast.Compound(block_items=items):
            return _sequence(_before_shadow(items or (), name), name)
        case c_ast.Assignment(rvalue=value) if _sets(node) == name:
            return bool(_first_use(value, name))
        case c_ast.If() | c_ast.TernaryOp():
            return _branch(node, name)
        case c_ast.For(init=c_ast.DeclList(decls=decls)) if any(d.name == name for d in decls):
            return _sequence(_before_shadow(decls, name), name)
        case c_ast.For(init=init, cond=cond, next=step, stmt=body):
            return _loop(_sequence([init, cond], name), [body, step], name)
        case c_ast.While(cond=cond, stmt=body):
            return _loop(_first_use(cond, name), [body], name)
        case c_ast.Switch(cond=cond, stmt=body):
            found, cases = _first_use(cond, name), [part for _, part in body.children()]
            return found if found is not None else any(_reads([part], name) for part in cases) or None
        case c_ast.DoWhile(cond=cond, stmt=body):
            return True if _reads([body, cond], name) else None
        case c_ast.StructRef(name=base):
            return _first_use(base, name)
        case _:
            return _sequence([child for _, child in node.children()], name)


def _before_shadow(nodes: Sequence[c_ast.Node], name: str) -> Iterator[c_ast.Node]:
    """Yield the nodes up to a declaration of another variable of that name."""
    for node in nodes:
        yield node
        if isinstance(node, c_ast.Decl) and node.name == name:
            return


def _branch(node: c_ast.If | c_ast.TernaryOp, name: str) -> bool | None:
    found = _first_use(node.cond, name)
    if found is not None:
        return found
    sides = {_first_use(node.iftrue, name), _first_use(node.iffalse, name)}
    return True if True in sides else False if sides == {False} else None


def _loop(found: bool | None, body: Sequence[c_ast.Node | None], name: str) -> bool | None:
    """What a loop does whose head does ``found``: its body may not run at all."""
    if found is not None:
        return found
    return True if _sequence(body, name) else None


def _sets(node: c_ast.Node) -> str | None:
    """Return the variable that ``v = e`` sets."""
    plain = isinstance(node, c_ast.Assignment) and node.op == "=" and isinstance(node.lvalue, c_ast.ID)
    return str(node.lvalue.name) if plain else None
