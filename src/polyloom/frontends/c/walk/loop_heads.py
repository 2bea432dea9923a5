"""The syntax of loop heads: which variable counts, which others go with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from pycparser import c_ast

from polyloom.frontends.c.scope.names import Variable
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.scope.writes import names_in
from polyloom.frontends.c.syntax.faults import refuse
from polyloom.frontends.c.syntax.nodes import nodes_in

ACCEPTED = "a SCoP has loops `for (i = first; i < last; i += step)`, with affine bounds and a constant step"


@dataclass(frozen=True, eq=False)
class Head:
    """What counts, from ``start`` on, and what goes with it.

    ``condition``: which holds as long as the loop goes on. ``nexts``: the expressions that change variables.
    ``tested``: by how much the condition itself changes the variable; 0: it does not. ``tested_first``:
    whether the condition speaks of the value before that, as ``i-- > 4`` does.
    """

    variable: Variable
    start: c_ast.Node
    others: tuple[tuple[Variable, c_ast.Node], ...]
    condition: c_ast.Node
    nexts: tuple[c_ast.Node, ...]
    tested: int = 0
    tested_first: bool = False


def parts_of(node: c_ast.For, state: State) -> Head:
    """Return the parts of a loop's head. Errors: ``c-loop``."""
    if node.cond is None:
        refuse_head("the loop has no condition", node, state)
    starts = _starts(node, state)
    nexts = _listed(node.next)
    step = _step_in(node.cond)
    if step is not None and not nexts:
        variable, start = _taken(step.expr.name, starts, node, state)
        by = 1 if "+" in step.op else -1
        condition = _without_step(node.cond, step)
        return Head(variable, start, (), condition, (), by, step.op.startswith("p"))
    if other := next((n for n in nexts if _changed_name(n) is None), None):
        refuse_head("the loop's head does more than to change variables", other, state)
    moved = [name for name in map(_changed_name, nexts) if name is not None]
    if twice := [name for name in moved if moved.count(name) > 1]:
        refuse_head(f"the loop's head changes `{twice[0]}` twice", node.next, state)
    tested = names_in(node.cond)
    counting = [name for name in dict.fromkeys([*starts, *moved]) if name in tested and name in moved]
    if not counting:
        candidates = [name for name in starts if name in tested] or list(starts)
        what = f"`{candidates[0]}` by a constant" if candidates else "a variable that its condition tests"
        refuse_head(f"the loop does not change {what}", node.next or node, state)
    variable, start = _taken(counting[0], starts, node, state)
    others = [_taken(name, starts, node, state) for name in dict.fromkeys(moved) if name != counting[0]]
    return Head(variable, start, tuple(others), node.cond, tuple(nexts))


def _taken(
    name: str, starts: dict[str, c_ast.Node], node: c_ast.For, state: State
) -> tuple[Variable, c_ast.Node]:
    """Return a variable and where it starts; one that the head does not set must have a known value."""
    variable = state.scope.find(name)
    if not isinstance(variable, Variable):
        refuse_head(f"`{name}` is no variable", node.init or node, state)
    if name not in starts and state.fact(variable) is None:
        refuse_head(f"the first value of `{name}` is not known", node, state)
    if name not in starts:
        return variable, c_ast.ID(name, node.coord)
    return variable, starts[name]


def _starts(node: c_ast.For, state: State) -> dict[str, c_ast.Node]:
    """Return the first values that the head sets, by name."""
    if isinstance(node.init, c_ast.DeclList):
        return {d.name: d.init for d in node.init.decls if d.init is not None}
    found = {}
    for part in _listed(node.init):
        match part:
            case c_ast.Assignment(op="=", lvalue=c_ast.ID(name=name), rvalue=start):
                found[name] = start
            case _:
                refuse_head("the loop begins with what is no assignment to its variables", part, state)
    return found


def _listed(node: c_ast.Node | None) -> list[c_ast.Node]:
    if node is None:
        return []
    return list(node.exprs) if isinstance(node, c_ast.ExprList) else [node]


def _step_in(condition: c_ast.Node) -> c_ast.UnaryOp | None:
    """Return the step in a condition ``i-- > e``, ``e < --i`` or ``i--``, where ``e`` does not read ``i``."""
    match condition:
        case c_ast.UnaryOp(op="++" | "p++" | "--" | "p--", expr=c_ast.ID()):
            return condition
        case c_ast.BinaryOp(op="<" | "<=" | ">" | ">=" | "!=" | "==", left=left, right=right):
            for step, other in ((_step_in(left), right), (_step_in(right), left)):
                if step is not None and step in (left, right) and step.expr.name not in names_in(other):
                    return step
    return None


def _without_step(condition: c_ast.Node, step: c_ast.UnaryOp) -> c_ast.Node:
    """Return the condition on the variable that it steps."""
    if condition is step:
        return step.expr
    left, right = (step.expr if side is step else side for side in (condition.left, condition.right))
    return c_ast.BinaryOp(condition.op, left, right, condition.coord)


def _changed_name(node: c_ast.Node) -> str | None:
    match node:
        case c_ast.UnaryOp(op="++" | "p++" | "--" | "p--", expr=c_ast.ID(name=name)):
            return str(name)
        case c_ast.Assignment(lvalue=c_ast.ID(name=name)):
            return str(name)
        case _:
            return None


def changed_to(node: c_ast.Node, name: str) -> c_ast.Node | None:
    """Return the expression that a variable becomes; None where the node does not change it."""
    if _changed_name(node) != name:
        return None
    match node:
        case c_ast.UnaryOp(op=op, expr=expr):
            return c_ast.BinaryOp(op.strip("p")[0], expr, c_ast.Constant("int", "1", node.coord), node.coord)
        case c_ast.Assignment(op="=", rvalue=changed):
            result: c_ast.Node = changed
            return result
        case c_ast.Assignment(op=op, lvalue=target, rvalue=by):
            return c_ast.BinaryOp(op[:-1], target, by, node.coord)
        case _:
            return None


def counters_in(node: c_ast.Node) -> frozenset[str]:
    """Return the variables that heads of loops in a statement move and do not declare."""
    found = set[str]()
    for loop in (inside for inside in nodes_in(node) if isinstance(inside, c_ast.For)):
        step = None if loop.cond is None else _step_in(loop.cond)
        moved = {_changed_name(part) for part in (*_listed(loop.next), *([] if step is None else [step]))}
        declared = loop.init.decls if isinstance(loop.init, c_ast.DeclList) else []
        found |= {name for name in moved if name is not None} - {d.name for d in declared}
    return frozenset(found)


def refuse_head(message: str, node: c_ast.Node, state: State) -> NoReturn:
    """Refuse a loop for what its head is. Raises ``c-loop``."""
    refuse("c-loop", message, state.span(node), helps=[ACCEPTED])
