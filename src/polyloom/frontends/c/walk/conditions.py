"""Conditions on data: what they guard, and when they need a statement of their own.

A statement carries its condition as an expression. That is right as long as what the condition reads is not
changed between the first statement that it guards and the last; otherwise its value is kept.
"""

from __future__ import annotations

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import PolyloomError
from polyloom.frontends.c.expressions.memory import accessed, place_of
from polyloom.frontends.c.expressions.values import truth
from polyloom.frontends.c.integers.affine import holds
from polyloom.frontends.c.scope.conversions import both, converted, truth_of
from polyloom.frontends.c.scope.functions import returned
from polyloom.frontends.c.scope.names import Defined, Index, Place, Variable
from polyloom.frontends.c.scope.sets import everywhere, parameter_affine
from polyloom.frontends.c.scope.state import Mode, State
from polyloom.frontends.c.scope.types import INT, Record
from polyloom.frontends.c.scope.writes import changed_bases, contains, names_in
from polyloom.frontends.c.syntax.faults import NotAffine
from polyloom.frontends.c.syntax.nodes import nodes_in
from polyloom.frontends.c.walk.drafting import begin
from polyloom.ir.expressions import Expression, ParameterValue, Read
from polyloom.scop.model import Origin


def conjuncts(node: c_ast.Node, state: State) -> tuple[isl.Set, c_ast.Node | None]:
    """Split ``affine && data`` into the set where the affine part holds, and the rest (None: nothing)."""
    if isinstance(node, c_ast.BinaryOp) and node.op == "&&":
        first, left = conjuncts(node.left, state)
        with state.within(first):
            second, right = conjuncts(node.right, state)
        where = first.intersect(second)
        if left is None or right is None:
            return where, right if left is None else left
        return where, c_ast.BinaryOp("&&", left, right, node.coord)
    try:
        return holds(node, state), None
    except NotAffine:
        return everywhere(), node


def kept_condition(node: c_ast.If, state: State) -> Expression | None:
    """Draft a statement that keeps a condition's value, where one is needed; return the kept truth value."""
    needed = _needed_in_text(node, state) if state.mode is Mode.TEXT else _needed(node, state)
    if not needed:
        return None
    if state.mode is Mode.TEXT:
        target = _element(state)
        begin(target, converted(truth(node.cond, state), INT.element), None, node.cond, state)
    else:
        target = _scalar(state)
        _keep_everywhere(target, node.cond, state)
    return truth_of(Read(accessed(target, state, state.span(node.cond)), INT.element))


def _keep_everywhere(target: Place, node: c_ast.Node, state: State) -> None:
    """Draft ``target = around && node``: set under no condition, it needs nothing of other iterations."""
    around = state.condition
    found = both(around, truth(node, state))
    assert found is not None
    state.condition = None
    begin(target, converted(found, INT.element), None, node, state)
    state.condition = around


def _needed(node: c_ast.If, state: State) -> bool:
    """Whether the branches hold more than one statement, and change what the condition reads."""
    statements = [s for s in (_only(node.iftrue), node.iffalse) if s is not None]
    single = len(statements) == 1 and _stores_once(statements[0], state)
    calls = contains(node.cond, (c_ast.FuncCall,)) is not None
    return not single and (calls or _changed(node, state))


def _stores_once(node: c_ast.Node, state: State) -> bool:
    """Whether a statement stores one number: no ``b = a = e``, no structure, no function with a body."""
    match node:
        case c_ast.Assignment(lvalue=target, rvalue=source):
            try:
                whole = isinstance(state.above.place(target, state).type, Record)
            except PolyloomError:
                return False
            return not whole and not any(_stores_more(part, state) for part in nodes_in(source))
        case _:
            return isinstance(node, c_ast.UnaryOp)


def _stores_more(node: c_ast.Node, state: State) -> bool:
    match node:
        case c_ast.FuncCall(name=c_ast.ID(name=name)):
            found = state.scope.file.names.get(name)
            return isinstance(found, Defined) and found.body is not None and returned(found) is None
        case _:
            return isinstance(node, c_ast.Assignment)


def _only(node: c_ast.Node | None) -> c_ast.Node | None:
    """Return the statement that a block of one statement is."""
    if isinstance(node, c_ast.Compound) and len(node.block_items or []) == 1:
        return _only(node.block_items[0])
    return node


def _changed(node: c_ast.If, state: State) -> bool:
    """Whether the branches may change a variable that the condition reads, under whatever name."""
    scope = state.scope
    changed = changed_bases(node.iftrue, scope) | changed_bases(node.iffalse, scope)
    return not scope.variables(changed).isdisjoint(scope.variables(names_in(node.cond)))


def _needed_in_text(node: c_ast.If, state: State) -> bool:
    return not _compares(node.cond) or _changed(node, state)


_AFFINE_OPS = frozenset(["+", "-", "&&", "||", "<", "<=", ">", ">=", "==", "!="])


def _compares(node: c_ast.Node) -> bool:
    """Whether a condition is made of sums and comparisons of elements."""
    match node:
        case c_ast.ID() | c_ast.Constant() | c_ast.ArrayRef() | c_ast.StructRef():
            return True
        case c_ast.UnaryOp(op="-" | "!" | "+", expr=expr):
            return _compares(expr)
        case c_ast.BinaryOp(op=op, left=left, right=right) if op in _AFFINE_OPS:
            return _compares(left) and _compares(right)
        case c_ast.BinaryOp(op="*", left=left, right=right):
            return (isinstance(left, c_ast.Constant) and _compares(right)) or (
                isinstance(right, c_ast.Constant) and _compares(left)
            )
        case _:
            return False


def _scalar(state: State) -> Place:
    name = state.fresh("condition")
    return place_of(Variable(name, name, INT, Origin.INNER))


def _element(state: State) -> Place:
    """Return ``__pet_test_0[i][j]``, an element for each iteration around."""
    name = state.numbered("test")
    indices = tuple(
        Index(parameter_affine(f.iterator), ParameterValue(f.iterator, f.type)) for f in state.frames
    )
    variable = Variable(name, name, INT, Origin.INNER)
    return Place(variable, INT, indices, (), (len(indices),), tuple(None for _ in indices))
