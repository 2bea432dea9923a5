"""Jumps that only choose what comes next, as nested ``if``: ``continue`` in a loop, ``switch``, ``do`` once.

``if (c) continue; rest`` is ``if (!c) { rest }``, and ``switch (e) { case 1: A; break; default: B }`` is
``if (e == 1) { A } else { B }``. A case that falls through goes on with the statements of those below it.
``do { A } while (0)``, as macros with several statements have it, is ``{ A }``.
What no nesting says stays as it is: two ways that meet again behind a jump, a label, a ``switch`` whose
expression has side effects, or of whose cases one may be wider than ``int``: C makes it one of the
expression's type, in which it is another number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pycparser import c_ast

from polyloom.frontends.c.syntax.nodes import nodes_in, value_and_suffix

Items = list[c_ast.Node]

_MOST = 200
"""Statements that the cases of a ``switch`` may have in all, those that they fall through to included."""


def structured(node: c_ast.Node | None) -> c_ast.Node | None:
    """Return a statement with fewer jumps in it; itself where none can go."""
    match node:
        case c_ast.For():
            body = structured(node.stmt)
            items = _nested(_items(body), c_ast.Continue) if leaves(body, c_ast.Continue) else None
            if items is not None:
                body = _block(items, node.stmt.coord)
            return node if body is node.stmt else _for(node, body)
        case c_ast.Compound():
            items = [structured(item) for item in node.block_items or ()]
            same = all(a is b for a, b in zip(items, node.block_items or (), strict=True))
            return node if same else c_ast.Compound(items, node.coord)
        case c_ast.If():
            then, other = structured(node.iftrue), structured(node.iffalse)
            same = then is node.iftrue and other is node.iffalse
            return node if same else c_ast.If(node.cond, then, other, node.coord)
        case c_ast.Switch():
            chosen = _chosen(node)
            return node if chosen is None else structured(chosen)
        case c_ast.DoWhile(cond=c_ast.Constant(type="int", value="0")):
            once = _once(node)
            return node if once is None else once
        case _:
            return node


def _once(node: c_ast.DoWhile) -> c_ast.Node | None:
    """Return the body of a ``do`` loop that runs once, without the jumps to its end; None where some stay."""
    items: Items | None = _items(structured(node.stmt))
    for jump in (c_ast.Break, c_ast.Continue):
        if items is not None and any(leaves(item, jump) for item in items):
            items = _nested(items, jump)
    if items is None or any(leaves(item, jump) for item in items for jump in (c_ast.Break, c_ast.Continue)):
        return None
    return _block(items, node.coord)


def _for(node: c_ast.For, body: c_ast.Node | None) -> c_ast.For:
    return c_ast.For(node.init, node.cond, node.next, body, node.coord)


def _items(node: c_ast.Node | None) -> Items:
    match node:
        case None:
            return []
        case c_ast.Compound(block_items=items):
            return list(items or ())
        case _:
            return [node]


def _block(items: Items, coord: object) -> c_ast.Compound:
    return c_ast.Compound(items, coord)


# -- what leaves a block


def leaves(node: c_ast.Node | None, jump: type[c_ast.Node]) -> bool:
    """Return whether a jump of this kind in a statement leaves what stands around it."""
    if node is None or isinstance(node, (c_ast.For, c_ast.While, c_ast.DoWhile)):
        return False
    if isinstance(node, jump):
        return True
    if isinstance(node, c_ast.Switch) and jump is c_ast.Break:
        return False
    return any(leaves(child, jump) for _, child in node.children())


def _goes_on(items: Items) -> bool:
    """Return whether what stands behind some statements may be reached from them."""
    return not any(_always_leaves(node) for node in items)


def _always_leaves(node: c_ast.Node) -> bool:
    match node:
        case c_ast.Break() | c_ast.Continue() | c_ast.Return():
            return True
        case c_ast.Compound(block_items=items):
            return not _goes_on(items or [])
        case c_ast.If(iftrue=then, iffalse=other):
            return not (_goes_on(_items(then)) or _goes_on(_items(other)))
        case _:
            return False


def _nested(items: Items, jump: type[c_ast.Node]) -> Items | None:
    """Return statements in which no such jump is left; None: the way behind one is not nested.

    Where they end is where the jump leads.
    """
    for k, node in enumerate(items):
        if isinstance(node, jump):
            return items[:k]
        if not leaves(node, jump):
            continue
        rest = items[k + 1 :]
        if rest and isinstance(rest[0], jump):
            rest = []
        match node:
            case c_ast.Compound():
                inner = _joined(_items(node), rest, jump)
                return None if inner is None else [*items[:k], _block(inner, node.coord)]
            case c_ast.If():
                inside = _branches(node, rest, jump)
                return None if inside is None else [*items[:k], inside]
            case _:
                return None
    return items


def _branches(node: c_ast.If, rest: Items, jump: type[c_ast.Node]) -> c_ast.If | None:
    """Return a choice, with what stands behind it in the branch that goes on."""
    sides = [_items(node.iftrue), _items(node.iffalse)]
    if rest and all(_goes_on(side) for side in sides):
        return None
    then, other = (_joined(side, rest, jump) for side in sides)
    if then is None or other is None:
        return None
    if not then:
        return c_ast.If(_negated(node.cond), _block(other, node.coord), None, node.coord)
    return c_ast.If(
        node.cond, _block(then, node.coord), _block(other, node.coord) if other else None, node.coord
    )


def _joined(side: Items, rest: Items, jump: type[c_ast.Node]) -> Items | None:
    """Return the statements of a block, and what is reached behind it. Its names must not be seen there."""
    if not rest or not _goes_on(side):
        return _nested(side, jump)
    if any(isinstance(node, (c_ast.Decl, c_ast.DeclList, c_ast.Typedef)) for node in side):
        return None
    return _nested([*side, *rest], jump)


def _negated(condition: c_ast.Node) -> c_ast.Node:
    match condition:
        case c_ast.UnaryOp(op="!", expr=expr):
            return expr
        case c_ast.BinaryOp(op="||", left=left, right=right):
            return c_ast.BinaryOp("&&", _negated(left), _negated(right), condition.coord)
        case _:
            return c_ast.UnaryOp("!", condition, condition.coord)


# -- switch


@dataclass(frozen=True)
class _Group:
    """Labels of one place in a ``switch``, and the statements from there to the next one."""

    labels: tuple[c_ast.Node, ...]
    default: bool
    items: tuple[c_ast.Node, ...]


def _chosen(node: c_ast.Switch) -> c_ast.Node | None:
    """Return a ``switch`` as nested choices; None where that is another program, or cannot be told."""
    if not isinstance(node.stmt, c_ast.Compound) or not _is_pure(node.cond):
        return None
    groups = _groups(node.stmt.block_items or ())
    if groups is None:
        return None
    bodies = [_reached(groups[k:]) for k in range(len(groups))]
    if any(body is None for body in bodies) or sum(len(b or ()) for b in bodies) > _MOST:
        return None
    otherwise: c_ast.Node | None = None
    pairs = reversed([*zip(groups, bodies, strict=True)])
    for group, body in sorted(pairs, key=lambda pair: not pair[0].default):
        block = _block(body or [], node.coord)
        if group.default:
            otherwise = block
        else:
            otherwise = c_ast.If(_any_of(node.cond, group.labels), block, otherwise, node.coord)
    return otherwise or c_ast.EmptyStatement(node.coord)


def _groups(items: Sequence[c_ast.Node]) -> list[_Group] | None:
    found: list[_Group] = []
    labels: Items = []
    default = False
    for item in items:
        if not isinstance(item, (c_ast.Case, c_ast.Default)):
            return None
        if isinstance(item, c_ast.Case) and not _is_int(item.expr):
            return None
        labels += [item.expr] if isinstance(item, c_ast.Case) else []
        default |= isinstance(item, c_ast.Default)
        if item.stmts or item is items[-1]:
            found.append(_Group(tuple(labels), default, tuple(item.stmts or ())))
            labels, default = [], False
    statements = [s for group in found for s in group.items]
    if any(isinstance(s, (c_ast.Decl, c_ast.DeclList)) or _is_labelled(s) for s in statements):
        return None
    return found


def _is_int(label: c_ast.Node) -> bool:
    """Whether a constant is surely no wider than ``int``."""
    for part in nodes_in(label):
        if isinstance(part, c_ast.Cast) or (isinstance(part, c_ast.UnaryOp) and part.op == "sizeof"):
            return False
        if isinstance(part, c_ast.Constant) and part.type != "char":
            value, suffix = value_and_suffix(part)
            if "l" in suffix or value >= 2**31:
                return False
    return True


def _is_labelled(node: c_ast.Node) -> bool:
    if isinstance(node, (c_ast.Label, c_ast.Case, c_ast.Default, c_ast.Goto)):
        return True
    return not isinstance(node, c_ast.Switch) and any(_is_labelled(child) for _, child in node.children())


def _reached(groups: Sequence[_Group]) -> Items | None:
    """Return what runs from a label on: to the first ``break`` that is surely reached."""
    items: Items = []
    for group in groups:
        items += group.items
        if not _goes_on(items):
            break
    return _nested(items, c_ast.Break)


def _any_of(value: c_ast.Node, labels: Sequence[c_ast.Node]) -> c_ast.Node:
    first, *others = (c_ast.BinaryOp("==", value, label, label.coord) for label in labels)
    for other in others:
        first = c_ast.BinaryOp("||", first, other, other.coord)
    return first


def _is_pure(node: c_ast.Node) -> bool:
    return not any(
        isinstance(part, (c_ast.Assignment, c_ast.FuncCall))
        or (isinstance(part, c_ast.UnaryOp) and part.op in ("++", "p++", "--", "p--"))
        for part in nodes_in(node)
    )
