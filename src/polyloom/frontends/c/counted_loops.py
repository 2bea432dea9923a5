"""``while`` loops that count, as ``for`` loops, and counters that a part begins with, as its own variables.

    while (n-- > 0) *p++ = 0;             ->    long here = n; for (; here-- > 0;) *p++ = 0;
    while (i < n) { a[i] = 0; i++; }      ->    for (; i < n; i++) a[i] = 0;

That is the same where nothing skips the steps at the end of the body (``continue``), and where nobody reads
after the part what it leaves in the counter, or changes it unseen: it begins with what the part is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace

from pycparser import c_ast

from polyloom.frontends.c.syntax.faults import BEGUN_WITH
from polyloom.frontends.c.syntax.nodes import nodes_in
from polyloom.frontends.c.syntax.regions import Region, runs_once_after

STEPS = ("++", "p++", "--", "p--")


def with_counted_loops(region: Region, *, unread: Callable[[str], bool]) -> Region:
    """Return a part with such loops, and with declarations of the counters that it begins with.

    ``unread``: whether nobody reads a variable after the part.
    """
    body = [_counted(node) for node in region.body]
    given = [d for d in _given(region) if d.name in _begun_with(body) and _may_be_copied(d, region)]
    found = {d.name: d for d in given if not region.marked or unread(d.name)}
    if any(isinstance(inside, c_ast.Pragma) for node in body for inside in nodes_in(node)):
        found = {}  # its text may name them
    if found:
        body = deepcopy(body)
        for use in (use for node in body for use in _uses(node) if use.name in found):
            use.name = f"{BEGUN_WITH}{use.name}"
        body = [*(_declaration(d, body[0]) for d in found.values()), *body]
    same = len(body) == len(region.body) and all(a is b for a, b in zip(body, region.body, strict=True))
    return region if same else replace(region, body=tuple(body))


# Loops


def _counted(node: c_ast.Node) -> c_ast.Node:
    """Return a statement whose ``while`` loops are ``for`` loops where they count; itself where none does."""
    match node:
        case c_ast.Compound(block_items=items) if items:
            inner = [_counted(item) for item in items]
            same = all(a is b for a, b in zip(inner, items, strict=True))
            return node if same else c_ast.Compound(inner, node.coord)
        case c_ast.If(cond=cond, iftrue=then, iffalse=other):
            sides = [None if side is None else _counted(side) for side in (then, other)]
            same = sides[0] is then and sides[1] is other
            return node if same else c_ast.If(cond, *sides, node.coord)
        case c_ast.For(init=init, cond=cond, next=step, stmt=stmt):
            inner = _counted(stmt)
            return node if inner is stmt else c_ast.For(init, cond, step, inner, node.coord)
        case c_ast.While(cond=cond, stmt=stmt):
            inner = _counted(stmt)
            found = _as_for(c_ast.While(cond, inner, node.coord))
            same = found is None and inner is stmt
            return node if same else found or c_ast.While(cond, inner, node.coord)
        case _:
            return node


def _as_for(node: c_ast.While) -> c_ast.For | None:
    """Return a loop with the steps of what it tests, which end its body, in its head; None: it has none."""
    if any(_steps(inside) for inside in nodes_in(node.cond)):
        return c_ast.For(None, node.cond, None, node.stmt, node.coord)
    items = list(node.stmt.block_items or ()) if isinstance(node.stmt, c_ast.Compound) else [node.stmt]
    first = next((k for k in range(len(items), 0, -1) if _step_of(items[k - 1]) is None), 0)
    last = items[first:]
    steps = [step for step in last if _step_of(step) in _names(node.cond)]
    if not steps or _skips(items) or not _are_apart(last) or _declared(items) & _names(*steps):
        return None
    rest = [*items[:first], *(step for step in last if step not in steps)]
    moved = steps[0] if len(steps) == 1 else c_ast.ExprList(steps, steps[0].coord)
    return c_ast.For(None, node.cond, moved, c_ast.Compound(rest, node.stmt.coord), node.coord)


def _steps(node: c_ast.Node) -> bool:
    return isinstance(node, c_ast.UnaryOp) and node.op in STEPS


def _declared(items: Sequence[c_ast.Node]) -> frozenset[str]:
    """Return the names that mean something else in the body of a loop than in its head, or may."""
    named = (n for item in items for n in nodes_in(item) if isinstance(n, c_ast.Decl | c_ast.Enumerator))
    return frozenset(n.name for n in named if n.name is not None)


def _step_of(node: c_ast.Node) -> str | None:
    """Return the variable that a statement steps: ``i++``, ``i += 2``, ``i = i + 1``."""
    match node:
        case c_ast.UnaryOp(op=op, expr=c_ast.ID(name=name)) if op in STEPS:
            return str(name)
        case c_ast.Assignment(op="+=" | "-=", lvalue=c_ast.ID(name=name)):
            return str(name)
        case c_ast.Assignment(
            op="=", lvalue=c_ast.ID(name=name), rvalue=c_ast.BinaryOp(op="+" | "-") as value
        ):
            return str(name) if name in _names(value) else None
        case _:
            return None


def _skips(items: Sequence[c_ast.Node]) -> bool:
    """Whether the end of a loop's body may be left out; of what jumps there, or in loops inside, all does."""
    kinds = (c_ast.Continue, c_ast.Label, c_ast.Goto)
    return any(isinstance(inside, kinds) for item in items for inside in nodes_in(item))


def _are_apart(steps: Sequence[c_ast.Node]) -> bool:
    """Whether the order of steps does not matter: none reads or changes what another one changes."""
    names = [_step_of(step) for step in steps]
    reads = [_names(step) - {name} for step, name in zip(steps, names, strict=True)]
    return len(set(names)) == len(names) and not any(set(names) & read for read in reads)


# Counters


def _begun_with(nodes: Sequence[c_ast.Node]) -> frozenset[str]:
    """Return the variables that heads of loops test and move, and do not set."""
    found = set[str]()
    for loop in (inside for node in nodes for inside in nodes_in(node) if isinstance(inside, c_ast.For)):
        if loop.cond is not None:
            changed = {n.expr.name for n in nodes_in(loop.cond) if _steps(n) and isinstance(n.expr, c_ast.ID)}
            moved = {name for step in _listed(loop.next) if (name := _step_of(step)) is not None}
            found |= (changed | moved & _names(loop.cond)) - _set_by(loop.init)
    return frozenset(found)


def _set_by(node: c_ast.Node | None) -> frozenset[str]:
    if isinstance(node, c_ast.DeclList):
        return frozenset(d.name for d in node.decls)
    assigned = (n for n in _listed(node) if isinstance(n, c_ast.Assignment) and n.op == "=")
    return frozenset(n.lvalue.name for n in assigned if isinstance(n.lvalue, c_ast.ID))


def _given(region: Region) -> Iterator[c_ast.Decl]:
    """Yield the variables of the function that are declared before a part, its arguments among them."""
    listed = region.function.decl.type.args
    for node in (*(listed.params if listed is not None else ()), *region.before):
        for declared in node.decls if isinstance(node, c_ast.DeclList) else [node]:
            if isinstance(declared, c_ast.Decl) and declared.name:
                yield declared


def _may_be_copied(node: c_ast.Decl, region: Region) -> bool:
    """Whether a variable is a number, the only one of its name; one that begins with a constant is known."""
    kinds = (c_ast.Decl, c_ast.Enumerator)
    counts = Counter(d.name for d in nodes_in(region.function) if isinstance(d, kinds))
    is_number = isinstance(node.type, c_ast.TypeDecl) and isinstance(node.type.type, c_ast.IdentifierType)
    special = {*(node.storage or []), *(node.type.quals or [])} - {"register"} if is_number else {""}
    known = isinstance(node.init, c_ast.Constant) and runs_once_after(region, node.name)
    taken = any(_is_address_of(inside, node.name) for inside in nodes_in(region.function.body))
    return is_number and not special and counts[node.name] == 1 and not known and not taken


def _is_address_of(node: c_ast.Node, name: str) -> bool:
    match node:
        case c_ast.UnaryOp(op="&", expr=c_ast.ID(name=found)):
            return bool(found == name)
        case _:
            return False


def _declaration(node: c_ast.Decl, at: c_ast.Node) -> c_ast.Decl:
    """Return the declaration of a part's own counter, which begins with the one that is given."""
    name = f"{BEGUN_WITH}{node.name}"
    kind = c_ast.TypeDecl(name, [], None, node.type.type, at.coord)
    return c_ast.Decl(name, [], [], [], [], kind, c_ast.ID(node.name, at.coord), None, at.coord)


def _uses(node: c_ast.Node) -> Iterator[c_ast.ID]:
    """Yield where variables are named; members of structures may have the same names."""
    match node:
        case c_ast.ID():
            yield node
        case c_ast.StructRef(name=base):
            yield from _uses(base)
        case c_ast.NamedInitializer(expr=value):
            yield from _uses(value)
        case _:
            for _, child in node.children():
                yield from _uses(child)


def _names(*nodes: c_ast.Node) -> frozenset[str]:
    return frozenset(use.name for node in nodes for use in _uses(node))


def _listed(node: c_ast.Node | None) -> list[c_ast.Node]:
    if node is None:
        return []
    return list(node.exprs) if isinstance(node, c_ast.ExprList) else [node]
