"""The walk: statements of C in order, to drafts of statements with their domains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import PolyloomError
from polyloom.frontends.c.scope.conversions import both
from polyloom.frontends.c.scope.drafts import Frame, Stops
from polyloom.frontends.c.scope.names import Scope, Variable
from polyloom.frontends.c.scope.sets import everywhere
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.scope.writes import contains, first_change, names_in, written_names
from polyloom.frontends.c.syntax.faults import refuse, worst
from polyloom.frontends.c.syntax.structured import structured
from polyloom.frontends.c.walk.branches import walk_branch, walk_if
from polyloom.frontends.c.walk.data_loops import walk_data_loop
from polyloom.frontends.c.walk.effects import declare, effect, jump, leave
from polyloom.frontends.c.walk.induction import induction_variables
from polyloom.frontends.c.walk.loop_heads import counters_in
from polyloom.frontends.c.walk.loops import Header, declare_iterator, gone_after, loop_header
from polyloom.frontends.c.walk.pragmas import check_followed, stated_parallel
from polyloom.scop.model import Origin


def walk_all(nodes: Sequence[c_ast.Node], state: State) -> Stops:
    """Walk statements in order; return where the block is left by ``break`` and ``continue``."""
    stops = Stops()
    for node in nodes:
        left = stops.all()
        with state.within(left.complement() if left is not None else everywhere()):
            stops = stops.joined(_collecting(node, state))
    _keeping(lambda: check_followed(state), state)
    return stops


def _keeping(check: Callable[[], None], state: State) -> None:
    try:
        check()
    except PolyloomError as fault:
        state.refused.append(fault)


def _collecting(node: c_ast.Node, state: State) -> Stops:
    """Walk a statement; what is wrong in it is kept, so that one run reports as much as it can."""
    try:
        return _statement(node, state)
    except PolyloomError as fault:
        if isinstance(node, (c_ast.Decl, c_ast.DeclList)):
            raise worst([*state.refused, fault]) from fault
        state.refused.append(fault)
        return Stops()


def _statement(node: c_ast.Node, state: State, label: str | None = None) -> Stops:
    if not isinstance(node, (c_ast.For, c_ast.Pragma, c_ast.Label)):
        check_followed(state)
    match node:
        case c_ast.Compound(block_items=items):
            with state.inside(Scope(state.scope)):
                return walk_all(items or [], state)
        case c_ast.Switch() | c_ast.DoWhile() if (chosen := structured(node)) is not node:
            return _statement(chosen, state)
        case c_ast.For() | c_ast.While() | c_ast.DoWhile() if walk_data_loop(node, state):
            return Stops()
        case c_ast.For():
            return _for(_assign_first(structured(node), state), state)
        case c_ast.If():
            return walk_if(node, state)
        case c_ast.Label(name=name, stmt=stmt):
            return _statement(stmt, state, name)
        case c_ast.Break():
            return Stops(breaks=jump(node, "break", state))
        case c_ast.Continue():
            return Stops(continues=jump(node, "continue", state))
        case c_ast.Return():
            return leave(node, state)
        case c_ast.Pragma():
            state.pending += stated_parallel(node, state)
        case c_ast.EmptyStatement():
            pass
        case c_ast.ExprList(exprs=exprs):
            for expr in exprs:
                _statement(expr, state, label)
        case c_ast.Decl() | c_ast.Typedef():
            declare(node, state)
        case c_ast.DeclList(decls=decls):
            for decl in decls:
                declare(decl, state)
        case _:
            effect(node, state, label)
    return Stops()


def _assign_first(node: c_ast.For, state: State) -> c_ast.For:
    """Draft what a head assigns to variables that it does not move: ``for (s = 0, i = 0; ...)``.

    Return the loop without that.
    """
    if not isinstance(node.init, c_ast.ExprList):
        return node
    moved = {name for part in (node.cond, node.next) if part is not None for name in names_in(part)}
    rest = []
    for part in node.init.exprs:
        if isinstance(part, c_ast.Assignment) and not moved & names_in(part.lvalue):
            effect(part, state, None)
        else:
            rest.append(part)
    return c_ast.For(c_ast.ExprList(rest, node.init.coord), node.cond, node.next, node.stmt, node.coord)


def _for(node: c_ast.For, state: State) -> Stops:
    """Walk a loop: its iterator becomes a dimension of everything inside; one that never runs is nothing."""
    stated = [replace(stated, loop=state.span(node)) for stated in state.pending]
    state.pending.clear()
    with state.inside(Scope(state.scope)):
        if isinstance(node.init, c_ast.DeclList):
            declare_iterator(node.init, state)
        header = loop_header(node, state)
        changed = written_names(node.stmt, state.scope)
        for variable in (header.variable, *(other for other, _ in header.others)):
            if variable.name in changed:
                _refuse_changed(variable, node, state)
        if state.never(header.domain):
            _leave(header, Stops(), state)
            return Stops()
        state.stated += stated
        inside, after = induction_variables(node, header, changed, state)
        _forget(changed, state)
        unstored = dict(state.unusable)
        _counted_before(node, state)
        before = dict(state.known)
        state.known.update(inside)
        state.known.update({header.variable: header.value, **dict(header.others)})
        stops = _iterations(node, header, state)
        state.known = {v: k for v, k in before.items() if state.known.get(v) is k}
        _forget(changed, state)
        state.unusable = {**unstored, **state.unusable}
        state.known.update(after)
        _leave(header, stops, state)
    _check_returns(stops.returns, node, state)
    return Stops()


def _counted_before(node: c_ast.For, state: State) -> None:
    """What loops inside counted in an iteration before is not in memory, where an iteration begins."""
    for variable in state.scope.variables(counters_in(node.stmt)):
        state.unusable[variable] = f"`{variable.name}` is read after its loop"


def _leave(header: Header, stops: Stops, state: State) -> None:
    """After the loop its variables have their last values, where these are known; none is in memory."""
    counted = (header.variable, *(other for other, _ in header.others))
    state.outside |= {variable.name for variable in counted if variable.origin is Origin.GLOBAL}
    for variable, _ in header.others:
        state.known.pop(variable, None)
        state.unusable[variable] = f"`{variable.name}` is read after its loop"
    state.known.pop(header.variable, None)
    state.unusable[header.variable] = f"`{header.variable.name}` is read after its loop"
    if header.last is not None and stops.breaks is None:
        state.known[header.variable] = header.last


def _iterations(node: c_ast.For, header: Header, state: State) -> Stops:
    """Walk the body of a loop, and take away what comes after a ``break``."""
    first = len(state.drafts)
    name, span = header.variable.name, state.span(node)
    state.frames.append(Frame(header.iterator, name, header.type, span, header.descending))
    state.position.append(0)
    around = state.condition
    state.condition = both(around, header.condition)
    try:
        with state.within(header.domain):
            stops = walk_branch(node.stmt, state)
    finally:
        state.condition = around
        state.position.pop()
        state.frames.pop()
    if stops.breaks is not None:
        gone = gone_after(stops.breaks, header)
        for one in state.drafts[first:]:
            one.domain = one.domain.subtract(gone).coalesce()
    state.position[-1] += 1
    return stops


def _check_returns(returns: isl.Set | None, node: c_ast.For, state: State) -> None:
    if returns is not None:
        refuse(
            "c-return",
            "`return` inside a loop",
            state.span(contains(node, (c_ast.Return,))),
            helps=["return after the loop"],
        )


def _forget(names: frozenset[str], state: State) -> None:
    state.forget(state.scope.variables(names))


def _refuse_changed(variable: Variable, node: c_ast.For, state: State) -> None:
    target = first_change(node.stmt, variable.name)
    refuse(
        "c-iterator",
        f"the loop's variable `{variable.name}` is changed inside the loop",
        state.span(target),
        helps=["only the loop's head may change it; `break` and `continue` may be used"],
    )
