"""The walk: statements of C in order, to drafts of statements with their domains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import PolyloomError
from polyloom.frontends.c.affine import holds
from polyloom.frontends.c.c_types import Array, Scalar
from polyloom.frontends.c.conditions import conjuncts, kept_condition
from polyloom.frontends.c.convert import both, no
from polyloom.frontends.c.declarations import type_of_name
from polyloom.frontends.c.drafting import affine_of, begin, draft, write
from polyloom.frontends.c.drafts import Frame, Stops
from polyloom.frontends.c.extents import extent_of
from polyloom.frontends.c.faults import NotAffine, refuse, worst
from polyloom.frontends.c.initialisers import assignments
from polyloom.frontends.c.loops import Header, after, loop_header
from polyloom.frontends.c.memory import place_of
from polyloom.frontends.c.names import Known, Place, Scope, TypeName, Variable
from polyloom.frontends.c.places import name_of
from polyloom.frontends.c.pragmas import assume, check_followed, stated_parallel
from polyloom.frontends.c.sets import everywhere
from polyloom.frontends.c.state import Mode, State
from polyloom.frontends.c.values import call, combined, place, read, truth, value
from polyloom.frontends.c.written import contains, first_change, names_in, written_names
from polyloom.ir.expressions import Expression
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
        case c_ast.For():
            _assign_first(node, state)
            return _for(node, state)
        case c_ast.If():
            return _if(node, state)
        case c_ast.Label(name=name, stmt=stmt):
            return _statement(stmt, state, name)
        case c_ast.Break():
            return Stops(breaks=_static(node, "break", state))
        case c_ast.Continue():
            return Stops(continues=_static(node, "continue", state))
        case c_ast.Return():
            return _return(node, state)
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
            _effect(node, state, label)
    return Stops()


def _static(node: c_ast.Node, word: str, state: State) -> isl.Set:
    """Return where a ``break`` or ``continue`` is reached; it must not depend on data."""
    if state.condition is not None:
        refuse(
            "c-data-jump",
            f"`{word}` depends on data",
            state.span(node),
            helps=[
                "a SCoP leaves a loop under affine conditions only; a condition on data may guard a statement"
            ],
        )
    return state.path


def _effect(node: c_ast.Node, state: State, label: str | None) -> None:
    match node:
        case c_ast.Assignment():
            assign(node, state, label)
        case c_ast.UnaryOp(op="++" | "p++" | "--" | "p--" as op, expr=expr):
            one = c_ast.Constant("int", "1", node.coord)
            _compound(op.strip("p")[0], expr, one, node, state, label)
        case c_ast.Cast(expr=expr):
            _effect(expr, state, label)
        case c_ast.ID() | c_ast.Constant() | c_ast.BinaryOp():
            value(node, state)
        case c_ast.While() | c_ast.DoWhile():
            refuse(
                "c-while",
                f"{name_of(node)} has no iteration domain that is known before it runs",
                state.span(node),
                helps=["write `for (i = first; i < last; i++)` with affine bounds"],
            )
        case c_ast.FuncCall(name=c_ast.ID(name="__pencil_assume"), args=args):
            assume(args.exprs[0], node, state)
        case c_ast.FuncCall(name=c_ast.ID(name="__pencil_kill")):
            pass
        case c_ast.FuncCall():
            _call(node, state, label)
        case _:
            refuse(
                "c-statement",
                f"{name_of(node)} cannot stand in a SCoP",
                state.span(node),
                helps=["`for`, `if`, assignments, declarations and calls of functions in this file can"],
            )


def _call(node: c_ast.FuncCall, state: State, label: str | None) -> None:
    """Walk a call whose value is not used: a statement of its own, unless its statements took its place."""
    before = len(state.drafts)
    call(node, state)
    if state.touched.refused and len(state.drafts) == before:
        draft(None, None, node, state, label)


def _return(node: c_ast.Return, state: State) -> Stops:
    if not state.results:
        refuse(
            "c-return",
            "`return` inside a SCoP",
            state.span(node),
            helps=["put `#pragma scop` and `#pragma endscop` around the loops, and return after them"],
        )
    stops = Stops(returns=_static(node, "return", state))
    target = state.results[-1]
    if node.expr is not None and target is not None:
        source = value(node.expr, state)
        found = affine_of(node.expr, target, state) if state.mode is Mode.COMPUTE else None
        begin(target, source, None if found is None else Known(found, source), node, state)
    elif node.expr is not None:
        draft(None, value(node.expr, state), node, state, None)
    return stops


def assign(node: c_ast.Assignment, state: State, label: str | None = None) -> Place:
    """Draft an assignment, after those inside it (``a = b = e``); return its target."""
    if node.op != "=":
        return _compound(node.op[:-1], node.lvalue, node.rvalue, node, state, label)
    if isinstance(node.rvalue, c_ast.Assignment):
        inner = assign(node.rvalue, state)
        target = place(node.lvalue, state)
        known = state.known.get(inner.variable) if not inner.members else None
        source = known.value if known is not None else read(inner, node.rvalue.lvalue, state)
        write(target, source, known, node, state, label)
        return target
    target = place(node.lvalue, state)
    source = value(node.rvalue, state)
    found = affine_of(node.rvalue, target, state)
    write(target, source, None if found is None else Known(found, source), node, state, label)
    return target


def _compound(
    op: str, left: c_ast.Node, right: c_ast.Node, node: c_ast.Node, state: State, label: str | None
) -> Place:
    """Draft ``left op= right``. The left side is read from memory, also where its value is known."""
    target = place(left, state)
    by = value(right, state)
    found = affine_of(c_ast.BinaryOp(op, left, right, node.coord), target, state)
    known = None
    if found is not None:
        known = Known(found, combined(op, value(left, state), by, node, state))
    result = combined(op, read(target, left, state), by, node, state)
    write(target, result, known, node, state, label)
    return target


def declare(node: c_ast.Node, state: State) -> None:
    """Bring a declared name into the scope; its initial value is an assignment."""
    ctype = type_of_name(node, state, extent_of)
    if isinstance(node, c_ast.Typedef):
        state.scope.names[node.name] = TypeName(ctype)
        return
    assert isinstance(node, c_ast.Decl)
    if node.name is None:
        return
    if "static" in (node.storage or []):
        refuse(
            "c-static",
            f"`{node.name}` is a static variable inside a SCoP",
            state.span(node),
            helps=["declare it outside"],
        )
    constant = "const" in (node.quals or [])
    variable = Variable(node.name, state.local(node.name), ctype, Origin.INNER, constant, state.span(node))
    if node.init is not None and isinstance(ctype, Array):
        state.scope.names[node.name] = replace(variable, constant=False)
        walk_all(assignments(node, ctype, state), state)
        return
    initial = None if node.init is None else _initial(variable, node.init, state)
    state.scope.names[node.name] = variable
    if initial is not None:
        begin(place_of(variable), *initial, node, state)


def _initial(variable: Variable, node: c_ast.Node, state: State) -> tuple[Expression, Known | None]:
    if not isinstance(variable.type, Scalar):
        refuse(
            "c-initialiser",
            f"`{variable.name}`, which is no number, gets an initial value inside a SCoP",
            state.span(node),
            helps=["assign its members, or declare it outside"],
        )
    source = value(node, state)
    found = affine_of(node, place_of(variable), state)
    return source, None if found is None else Known(found, source)


def _if(node: c_ast.If, state: State) -> Stops:
    try:
        with state.plain_arithmetic():
            where = holds(node.cond, state)
    except NotAffine:
        return _data_if(node, state)
    before = dict(state.known)
    stops = Stops()
    merged: list[dict[Variable, Known]] = []
    for part, branch in ((where, node.iftrue), (where.complement(), node.iffalse)):
        if state.path.intersect(state.context).intersect(part).is_empty():
            continue
        state.known = dict(before)
        with state.within(part):
            stops = stops.joined(_branch(branch, state))
        merged.append(state.known)
    state.known = _merged(merged, before)
    return stops


def _branch(branch: c_ast.Node | None, state: State) -> Stops:
    if branch is None:
        return Stops()
    with state.inside(Scope(state.scope)):
        return _statement(branch, state)


def _merged(sides: list[dict[Variable, Known]], before: dict[Variable, Known]) -> dict[Variable, Known]:
    """Keep what is the same on all sides."""
    if not sides:
        return before
    first, *others = sides
    return {
        variable: known
        for variable, known in first.items()
        if all(variable in o and _same(o[variable], known) for o in others)
    }


def _same(first: Known, second: Known) -> bool:
    return first is second or bool(first.affine.is_equal(second.affine))


def _data_if(node: c_ast.If, state: State) -> Stops:
    """Walk the branches of a condition on data; its affine conjuncts restrict the domain of the first."""
    around, before = state.condition, dict(state.known)
    kept = kept_condition(node, state)
    where, condition = everywhere(), kept
    if kept is None:
        where, rest = conjuncts(node.cond, state)
        with state.within(where):
            condition = truth(rest if rest is not None else node.cond, state)
    stops, merged = Stops(), []
    for part, positive, branch in ((where, True, node.iftrue), (everywhere(), False, node.iffalse)):
        test = condition
        if not positive and branch is not None:
            test = no(kept if kept is not None else truth(node.cond, state))
        state.known = dict(before)
        state.condition = both(around, test)
        with state.within(part):
            stops = stops.joined(_branch(branch, state))
        merged.append(state.known)
    state.condition = around
    state.known = _merged(merged, before)
    return stops


def _assign_first(node: c_ast.For, state: State) -> None:
    """Draft what a head assigns to variables that it does not move: ``for (s = 0, i = 0; ...)``."""
    moved = {name for part in (node.cond, node.next) if part is not None for name in names_in(part)}
    if isinstance(node.init, c_ast.ExprList):
        rest = []
        for part in node.init.exprs:
            if isinstance(part, c_ast.Assignment) and not moved & names_in(part.lvalue):
                _effect(part, state, None)
            else:
                rest.append(part)
        node.init = c_ast.ExprList(rest, node.init.coord)


def _for(node: c_ast.For, state: State) -> Stops:
    """Walk a loop: its iterator becomes a dimension of everything inside."""
    state.stated += [replace(stated, loop=state.span(node)) for stated in state.pending]
    state.pending.clear()
    with state.inside(Scope(state.scope)):
        if isinstance(node.init, c_ast.DeclList):
            _declare_iterator(node.init, state)
        header = loop_header(node, state)
        changed = written_names(node.stmt, state.scope)
        for variable in (header.variable, *(other for other, _ in header.others)):
            if variable.name in changed:
                _refuse_changed(variable, node, state)
        _forget(changed, state)
        before = dict(state.known)
        state.known.update({header.variable: header.value, **dict(header.others)})
        stops = _iterations(node, header, state)
        state.known = before
        _forget(changed, state)
        _leave(header, stops, state)
    _check_returns(stops.returns, node, state)
    return Stops()


def _leave(header: Header, stops: Stops, state: State) -> None:
    """After the loop its variables have their last values, where these are known."""
    for variable, _ in header.others:
        state.known.pop(variable, None)
        state.lost[variable] = f"`{variable.name}` is read after its loop"
    if header.last is not None and stops.breaks is None:
        state.known[header.variable] = header.last
        return
    state.known.pop(header.variable, None)
    state.lost[header.variable] = f"`{header.variable.name}` is read after its loop"


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
            stops = _branch(node.stmt, state)
    finally:
        state.condition = around
        state.position.pop()
        state.frames.pop()
    if stops.breaks is not None:
        gone = after(stops.breaks, header)
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


def _declare_iterator(node: c_ast.DeclList, state: State) -> None:
    for decl in node.decls:
        ctype = type_of_name(decl, state)
        variable = Variable(decl.name, decl.name, ctype, Origin.INNER, False, state.span(decl))
        state.scope.names[decl.name] = variable


def _forget(names: frozenset[str], state: State) -> None:
    for name in names:
        found = state.scope.find(name)
        if isinstance(found, Variable):
            state.forget([found])


def _refuse_changed(variable: Variable, node: c_ast.For, state: State) -> None:
    target = first_change(node.stmt, variable.name)
    refuse(
        "c-iterator",
        f"the loop's variable `{variable.name}` is changed inside the loop",
        state.span(target),
        helps=["only the loop's head may change it; `break` and `continue` may be used"],
    )
