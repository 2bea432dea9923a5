"""Pointers that a part moves, as the pointers they were and integers: ``*p++ = x`` becomes ``p[at++] = x``.

The integer, ``polyloom_steps_of_p``, is 0 where the part begins, or behind the declaration of ``p`` inside of
it, so that it is an induction variable like others. At its end the part stores it in a variable of its own,
which who replaces the part adds to ``p``.
Pointers that are assigned to, or whose address is taken, stay as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace

from pycparser import c_ast

from polyloom.frontends.c.syntax.faults import STEPS_OF
from polyloom.frontends.c.syntax.nodes import nodes_in
from polyloom.frontends.c.syntax.regions import Region
from polyloom.frontends.c.syntax.steps import with_steps_apart_in
from polyloom.frontends.c.syntax.structured import structured

STEPS = ("++", "p++", "--", "p--")


def with_offsets(region: Region, *, unread: Callable[[str], bool], added: bool) -> Region:
    """Return a part with integers in the place of what is added to its pointers.

    ``unread``: whether nobody reads a pointer after the part. ``added``: whether who replaces the part adds
    the integers to the pointers.
    """
    moved = frozenset(_moved(region.body))
    outer = _declared(_arguments(region), region.before)
    inner = {d.name: d for node in region.body for d in nodes_in(node) if is_pointer(d)}
    found = moved & (inner.keys() | outer)
    if not found:
        return region
    counts = Counter(d.name for d in nodes_in(region.function) if isinstance(d, c_ast.Decl))
    names = [n for n in sorted(found) if counts[n] <= 1]  # none: it is a name that the text does not have
    names = [n for n in names if not any(_is_changed_otherwise(node, n) for node in region.body)]
    pointers = frozenset(names)
    names = [n for n in names if not any(_stays_in_head(node, n, pointers) for node in region.body)]
    names = [n for n in names if n in inner or added or not region.marked or unread(n)]
    if not names:
        return region
    offsets = {name: f"{STEPS_OF}{name}" for name in names}
    body = [new for node in deepcopy(region.body) for new in _with_declaration(node, offsets)]
    outside = [name for name in names if name in outer]
    at = region.body[0]
    first = [_declaration(offsets[name], at, c_ast.Constant("int", "0", at.coord)) for name in outside]
    totals = {name: f"{offsets[name]}_in_all" for name in outside if region.marked}
    last = [_assignment(total, offsets[name], at) for name, total in totals.items()]
    return replace(
        region,
        before=(*region.before, *(_declaration(total, at) for total in totals.values())),
        body=tuple(with_steps_apart_in([*first, *body, *last])),
        stepped=tuple(totals.items()),
    )


def _assignment(target: str, source: str, at: c_ast.Node) -> c_ast.Assignment:
    return c_ast.Assignment("=", c_ast.ID(target, at.coord), c_ast.ID(source, at.coord), at.coord)


def _declaration(name: str, at: c_ast.Node, value: c_ast.Node | None = None) -> c_ast.Decl:
    kind = c_ast.TypeDecl(name, [], None, c_ast.IdentifierType(["long"], at.coord), at.coord)
    return c_ast.Decl(name, [], [], [], [], kind, value, None, at.coord)


def _arguments(region: Region) -> Sequence[c_ast.Node]:
    listed = region.function.decl.type.args
    return listed.params if listed is not None else ()


def _declared(*groups: Sequence[c_ast.Node]) -> frozenset[str]:
    """Return the pointers that nodes of blocks and of lists of arguments declare."""
    nodes = [node for group in groups for node in group]
    each = (d for node in nodes for d in (node.decls if isinstance(node, c_ast.DeclList) else [node]))
    return frozenset(d.name for d in each if is_pointer(d) or _is_array_argument(d, groups[0]))


def is_pointer(node: c_ast.Node) -> bool:
    """Whether a node declares a pointer that is a variable of its own."""
    return (
        isinstance(node, c_ast.Decl)
        and isinstance(node.type, c_ast.PtrDecl)
        and not isinstance(node.type.type, c_ast.FuncDecl)
        and "volatile" not in (node.type.quals or [])
        and not {"static", "extern"} & set(node.storage or [])
    )


def _is_array_argument(node: c_ast.Node, arguments: Sequence[c_ast.Node]) -> bool:
    """Whether a node is an argument ``a[]``, which is a pointer."""
    return isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.ArrayDecl) and node in arguments


def _moved(nodes: Sequence[c_ast.Node]) -> Iterator[str]:
    """Yield the names that statements add to."""
    for node in (inside for one in nodes for inside in nodes_in(one)):
        match node:
            case c_ast.UnaryOp(op=op, expr=c_ast.ID(name=name)) if op in STEPS:
                yield name
            case c_ast.Assignment(op="+=" | "-=", lvalue=c_ast.ID(name=name)):
                yield name
            case _:
                pass


def _is_changed_otherwise(node: c_ast.Node, name: str) -> bool:
    """Whether a pointer gets another value in a statement, or its address is taken."""
    match node:
        case c_ast.Assignment(op=op, lvalue=c_ast.ID(name=found)) if found == name and op not in ("+=", "-="):
            return True
        case c_ast.UnaryOp(op="&" | "sizeof", expr=c_ast.ID(name=found)) if found == name:
            return True
        case _:
            return any(_is_changed_otherwise(child, name) for _, child in node.children())


def _rewritten(node: c_ast.Node, offsets: Mapping[str, str]) -> c_ast.Node:
    """Return a statement or an expression with the integers; what is inside it is changed."""
    match node:
        case c_ast.Compound(block_items=items) if items:
            node.block_items = [new for item in items for new in _with_declaration(item, offsets)]
            return node
        case c_ast.For():
            return _loop(node, offsets)
        case c_ast.UnaryOp(op="*", expr=pointer) if (at := _place(pointer, offsets)) is not None:
            return c_ast.ArrayRef(*at, node.coord)
        case c_ast.StructRef(name=pointer, type="->", field=field) if (
            at := _place(pointer, offsets)
        ) is not None:
            return c_ast.StructRef(c_ast.ArrayRef(*at, node.coord), ".", field, node.coord)
        case c_ast.UnaryOp(op=op, expr=c_ast.ID(name=name)) if op in STEPS and name in offsets:
            return c_ast.UnaryOp(op, c_ast.ID(offsets[name], node.coord), node.coord)
        case c_ast.Assignment(op=op, lvalue=c_ast.ID(name=name), rvalue=by) if name in offsets:
            kind = c_ast.Typename(None, [], None, _declaration("", node).type)
            kind.type.declname = None
            amount = c_ast.Cast(kind, _rewritten(by, offsets), node.coord)
            return c_ast.Assignment(op, c_ast.ID(offsets[name], node.coord), amount, node.coord)
        case c_ast.ID(name=name) if name in offsets:
            return c_ast.BinaryOp("+", node, c_ast.ID(offsets[name], node.coord), node.coord)
        case c_ast.FuncCall(args=args):
            node.args = None if args is None else _rewritten(args, offsets)
            return node
        case c_ast.StructRef(name=base):
            node.name = _rewritten(base, offsets)
            return node
        case _:
            return _children_rewritten(node, offsets)


def _place(pointer: c_ast.Node, offsets: Mapping[str, str]) -> tuple[c_ast.Node, c_ast.Node] | None:
    """Return the pointer and the subscript that ``p``, ``p++`` or ``--p`` are."""
    match pointer:
        case c_ast.ID(name=name) if name in offsets:
            return pointer, c_ast.ID(offsets[name], pointer.coord)
        case c_ast.UnaryOp(op=op, expr=c_ast.ID(name=name)) if op in STEPS and name in offsets:
            step = c_ast.UnaryOp(op, c_ast.ID(offsets[name], pointer.coord), pointer.coord)
            return pointer.expr, step
        case _:
            return None


def _children_rewritten(node: c_ast.Node, offsets: Mapping[str, str]) -> c_ast.Node:
    for field, child in node.children():
        new = _rewritten(child, offsets)
        name, bracket, rest = field.partition("[")
        if bracket:
            getattr(node, name)[int(rest.rstrip("]"))] = new
        else:
            setattr(node, name, new)
    return node


def _with_declaration(node: c_ast.Node, offsets: Mapping[str, str]) -> list[c_ast.Node]:
    """Return a statement of a block; behind the declaration of a pointer that of its integer."""
    new = _rewritten(node, offsets)
    if not isinstance(node, c_ast.Decl) or node.name not in offsets:
        return [new]
    return [new, _declaration(offsets[node.name], node, c_ast.Constant("int", "0", node.coord))]


def _loop(node: c_ast.For, offsets: Mapping[str, str]) -> c_ast.Node:
    """Return a loop whose head moves no pointer: where all of its body runs the body does."""
    late = [step for step in _head(node) if set(_moved([step])) & offsets.keys()]
    if late:
        node = structured(node)
        rest = [step for step in _head(node) if step not in late]
        node.next = rest[0] if len(rest) == 1 else c_ast.ExprList(rest, node.next.coord)
        node.stmt = c_ast.Compound([node.stmt, *late], node.coord)
    return _children_rewritten(node, offsets)


def _head(node: c_ast.For) -> list[c_ast.Node]:
    """Return what a loop does behind each iteration."""
    if isinstance(node.next, c_ast.ExprList):
        return list(node.next.exprs)
    return [] if node.next is None else [node.next]


def _stays_in_head(node: c_ast.Node, name: str, pointers: frozenset[str]) -> bool:
    """Whether the head of a loop moves a pointer, and its body cannot: some of it is skipped."""
    if isinstance(node, c_ast.For) and name in _moved(_head(node)):
        nested = structured(node)
        body = nested.stmt if isinstance(nested, c_ast.For) else node.stmt
        skipped = any(isinstance(inside, c_ast.Continue) for inside in nodes_in(body))
        if skipped or all(pointers & set(_moved([step])) for step in _head(node)):
            return True
    if isinstance(node, c_ast.For) and name in _moved([n for n in (node.init, node.cond) if n is not None]):
        return True
    return any(_stays_in_head(child, name, pointers) for _, child in node.children())
