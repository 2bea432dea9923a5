"""Induction variables: integers that every iteration of a loop changes by the same: ``k++``, ``k += c``.

Also where a loop inside makes up that amount: the value at the start of an iteration is a function of the
iterator, and the value after the loop is known:

    k = -1;                                     k = -1;
    for (int i = 0; i < n; i++)                 for (int i = 0; i < n; i++)     k is m * i - 1
      for (int j = 0; j < m; j++) {      ->       for (int j = 0; j < m; j++) { k is m * i + j - 1
        k++;                                        k = m * i + j;
        a[k] = 0;                                   a[m * i + j] = 0;
      }                                           }

A loop with ``m < 0`` has no iterations and not ``m`` of them: what is found holds where the number of
iterations is what the formula says. Not in the papers; source of the idea: R. van Engelen, Efficient Symbolic
Analysis for Optimizing Compilers (CC 2001).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import PolyloomError
from polyloom.frontends.c.integers.affine import affine, constant_of, fits_in
from polyloom.frontends.c.integers.from_isl import expression_of
from polyloom.frontends.c.scope.conversions import operation, stored
from polyloom.frontends.c.scope.names import Fact, Formula, Known, Scope, Variable
from polyloom.frontends.c.scope.sets import constant_affine
from polyloom.frontends.c.scope.state import Mode, State
from polyloom.frontends.c.scope.types import Scalar, is_unsigned
from polyloom.frontends.c.scope.writes import contains, names_in, written_names
from polyloom.frontends.c.syntax.faults import NotAffine
from polyloom.frontends.c.walk.loops import Header, declare_iterator, loop_header
from polyloom.ir.expressions import BinaryOp, Constant, Expression, ParameterValue, Read, walk
from polyloom.ir.types import ElementType
from polyloom.polyhedra.functions import isl_integer

Facts = dict[Variable, Fact]
_WIDE = ElementType.INT64


def induction_variables(
    node: c_ast.For, header: Header, changed: frozenset[str], state: State
) -> tuple[Facts, Facts]:
    """Return what is known of variables that a loop changes: at the start of an iteration, and after it."""
    inside: Facts = {}
    after: Facts = {}
    if state.mode is Mode.TEXT or header.first is None or contains(node.stmt, _LEAVING) is not None:
        return inside, after
    for variable, start in _candidates(changed, state):
        with state.trial(), state.within(header.domain):
            state.known[header.variable] = header.value
            state.forget(state.scope.variables(changed))
            fixed = changed | {header.variable.name}
            amount = _advance(node.stmt, variable.name, fixed, state)
        if amount is None or not _is_free(amount, [header.iterator]):
            continue
        passed = _quotient(header.value.affine.sub(header.first), header.step)
        here = _grown(start, amount, _fact(passed, state), variable, state)
        if here is not None:
            inside[variable] = here
        count = _count(header, state)
        end = None if count is None else _grown(start, amount, count, variable, state)
        if end is not None:
            after[variable] = end
    return inside, after


_LEAVING = (
    c_ast.Break,
    c_ast.Continue,
    c_ast.Return,
    c_ast.Goto,
    c_ast.Label,
    c_ast.Switch,
    c_ast.While,
    c_ast.DoWhile,
)
"""What makes iterations differ from one another."""


def _candidates(changed: frozenset[str], state: State) -> Iterator[tuple[Variable, Fact]]:
    """Yield the integers that a loop changes and that are known when it starts."""
    for name in sorted(changed):
        variable = state.scope.names_around().get(name)
        if isinstance(variable, Variable) and variable in state.known:
            yield variable, state.known[variable]


def _advance(node: c_ast.Node | None, name: str, fixed: frozenset[str], state: State) -> Fact | None:
    """Return by how much a statement makes a variable grow; None where that is not the same each time.

    ``fixed``: names that an amount must not depend on.
    """
    if node is None or (name not in written_names(node, state.scope) and not _declares(node, name)):
        return _number(0)
    match node:
        case c_ast.Compound(block_items=items):
            return None if _declares(node, name) else _total(items or (), name, fixed, state)
        case c_ast.ExprList(exprs=exprs):
            return _total(exprs, name, fixed, state)
        case c_ast.UnaryOp(op="++" | "p++" | "--" | "p--" as op, expr=c_ast.ID()):
            return _number(1 if "+" in op else -1)
        case c_ast.Assignment(op="+=" | "-=" as op, lvalue=c_ast.ID(), rvalue=by):
            return _amount(op[0], by, name, fixed, state)
        case c_ast.Assignment(
            op="=", lvalue=c_ast.ID(), rvalue=c_ast.BinaryOp(op="+" | "-" as op, left=left, right=right)
        ):
            if isinstance(left, c_ast.ID) and left.name == name:
                return _amount(op, right, name, fixed, state)
            swapped = op == "+" and isinstance(right, c_ast.ID) and right.name == name
            return _amount("+", left, name, fixed, state) if swapped else None
        case c_ast.If(cond=cond, iftrue=iftrue, iffalse=iffalse):
            if name in written_names(cond, state.scope):
                return None
            amounts = [_advance(branch, name, fixed, state) for branch in (iftrue, iffalse)]
            return _if_equal(*amounts)
        case c_ast.For():
            return _loop(node, name, fixed, state)
        case _:
            return None


def _if_equal(first: Fact | None, second: Fact | None) -> Fact | None:
    """Return what both branches add, where that is one number."""
    if not isinstance(first, Known) or not isinstance(second, Known):
        return None
    number = constant_of(first.affine)
    return first if number is not None and number == constant_of(second.affine) else None


def _declares(node: c_ast.Node, name: str) -> bool:
    if isinstance(node, c_ast.Decl) and node.name == name:
        return True
    return any(_declares(child, name) for _, child in node.children())


def _total(nodes: Iterable[c_ast.Node], name: str, fixed: frozenset[str], state: State) -> Fact | None:
    total: Fact | None = _number(0)
    for node in nodes:
        amount = _advance(node, name, fixed, state)
        total = None if total is None or amount is None else _sum(total, amount)
    return total


def _amount(op: str, node: c_ast.Node, name: str, fixed: frozenset[str], state: State) -> Fact | None:
    """Return the value of an expression that is the same in every iteration, or its opposite."""
    if names_in(node) & (fixed | {name}) or contains(node, (c_ast.FuncCall, c_ast.Assignment)) is not None:
        return None
    try:
        value = state.above.value(node, state)
        function = affine(node, state)
    except PolyloomError:
        return None
    except NotAffine:
        function = None
    if value.type.is_float or any(isinstance(part, Read) for part in walk(value)):
        return None
    found = Formula(value) if function is None else Known(function, value)
    return found if op == "+" else _product(found, _number(-1), state)


def _loop(node: c_ast.For, name: str, fixed: frozenset[str], state: State) -> Fact | None:
    """Return by how much a loop makes a variable grow: its iterations times what each adds."""
    head = [part for part in (node.init, node.cond, node.next) if part is not None]
    if name in written_names(head, state.scope) or any(_declares(part, name) for part in head):
        return None
    try:
        with state.inside(Scope(state.scope)):
            if isinstance(node.init, c_ast.DeclList):
                declare_iterator(node.init, state)
            header = loop_header(node, state)
            if state.never(header.domain):
                return _number(0)
            state.known[header.variable] = header.value
            with state.within(header.domain):
                amount = _advance(node.stmt, name, fixed | {header.variable.name}, state)
            count = _count(header, state)
    except PolyloomError:
        return None
    if amount is None or count is None or not _is_free(amount, [header.iterator]):
        return None
    return _product(amount, count, state)


def _count(header: Header, state: State) -> Fact | None:
    """Return how often a loop runs, at the place where it stands."""
    if header.last is None or header.first is None:
        return None
    return _fact(_quotient(header.last.affine.sub(header.first), header.step), state)


def _quotient(passed: isl.PwAff, step: int) -> isl.PwAff:
    forward = passed if step > 0 else passed.neg()
    return forward if abs(step) == 1 else forward.scale_down_val(isl_integer(abs(step))).floor()


def _fact(function: isl.PwAff, state: State) -> Fact:
    """Return what a function is here."""
    here = state.path.intersect(state.context).intersect(state.limits)
    simple = function.gist(here).coalesce()
    return Known(simple, expression_of(simple, state.type_of, _WIDE))


def _one_piece(fact: Fact, state: State) -> Fact:
    """Return of a function of several pieces the one that is no constant, where it is right.

    ``max(0, m)`` is ``m`` where ``m >= 0``: products of such functions are polynomials.
    """
    growing = [] if fact.affine is None else [aff for _, aff in fact.affine.get_pieces() if not aff.is_cst()]
    if fact.affine is None or len(fact.affine.get_pieces()) == 1 or len(growing) != 1:
        return fact
    piece = isl.PwAff.from_aff(growing[0])
    where = fact.affine.eq_set(piece)
    if isinstance(fact, Formula) and fact.where is not None:
        where = where.intersect(fact.where)
    return Formula(expression_of(piece, state.type_of, _WIDE), where, piece)


def _number(value: int) -> Known:
    return Known(constant_affine(value), Constant(value, _WIDE))


def _where(first: Fact, second: Fact) -> isl.Set | None:
    sets = [f.where for f in (first, second) if isinstance(f, Formula) and f.where is not None]
    return sets[0].intersect(sets[-1]) if sets else None


def _sum(first: Fact, second: Fact) -> Fact:
    value = operation(BinaryOp.ADD, first.value, second.value)
    function = None
    if first.affine is not None and second.affine is not None:
        function = first.affine.add(second.affine)
    return _made(function, value, _where(first, second))


def _product(first: Fact, second: Fact, state: State) -> Fact:
    function = None
    if any(f.affine is not None and constant_of(f.affine) is not None for f in (first, second)):
        if first.affine is not None and second.affine is not None:
            function = first.affine.mul(second.affine)
    else:
        first, second = _one_piece(first, state), _one_piece(second, state)
    return _made(function, operation(BinaryOp.MULTIPLY, first.value, second.value), _where(first, second))


def _made(function: isl.PwAff | None, value: Expression, where: isl.Set | None) -> Fact:
    if function is not None and where is None:
        return Known(function, value)
    return Formula(value, where, function)


def _is_free(amount: Fact, iterators: Iterable[str]) -> bool:
    """Whether an amount depends on none of the iterators."""
    named = {part.name for part in walk(amount.value) if isinstance(part, ParameterValue)}
    for one in (amount.affine, amount.where if isinstance(amount, Formula) else None):
        if one is not None:
            named |= {str(name) for name in one.drop_unused_params().get_var_names(isl.dim_type.param)}
    return not named & set(iterators)


def _grown(start: Fact, amount: Fact, times: Fact | None, variable: Variable, state: State) -> Fact | None:
    """Return ``start + amount * times`` as the variable holds it; None where it may not fit."""
    if times is None or not isinstance(variable.type, Scalar) or variable.type.boolean:
        return None
    found = _sum(start, _product(amount, times, state))
    element = variable.type.element
    value = stored(found.value, variable.type)
    if isinstance(found, Known):
        known = Known(found.affine, expression_of(found.affine, state.type_of, element))
        return known if fits_in(found.affine, element, state) else None
    wide = element.size >= ElementType.INT32.size and not is_unsigned(element)
    return Formula(value, found.where, found.affine) if wide else None
