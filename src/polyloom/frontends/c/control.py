"""The walk: statements of C in order, to drafts of statements with their domains."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl
from pycparser import c_ast

from polyloom.frontends.c.affine import affine, fits_in, holds
from polyloom.frontends.c.c_types import Array, Scalar
from polyloom.frontends.c.convert import both, no, stored
from polyloom.frontends.c.declarations import type_of_name
from polyloom.frontends.c.extents import extent_of
from polyloom.frontends.c.faults import NotAffine, fail, refuse
from polyloom.frontends.c.loops import Stops, after, loop_header
from polyloom.frontends.c.memory import accessed, place_of
from polyloom.frontends.c.places import name_of
from polyloom.frontends.c.pragmas import stated_parallel
from polyloom.frontends.c.state import (
    Draft,
    Frame,
    Known,
    Place,
    Scope,
    State,
    TypeName,
    Variable,
    everywhere,
)
from polyloom.frontends.c.values import combined, place, read, truth, value
from polyloom.frontends.c.written import contains, written_names
from polyloom.ir.expressions import Expression, Read, walk
from polyloom.scop.model import Origin


def walk_all(nodes: Sequence[c_ast.Node], state: State) -> Stops:
    """Walk statements in order; return where the block is left by ``break`` and ``continue``."""
    stops = Stops()
    for node in nodes:
        left = stops.all()
        with state.within(left.complement() if left is not None else everywhere()):
            stops = stops.joined(_statement(node, state))
    return stops


def _statement(node: c_ast.Node, state: State, label: str | None = None) -> Stops:
    match node:
        case c_ast.Compound(block_items=items):
            with state.inside(Scope(state.scope)):
                return walk_all(items or [], state)
        case c_ast.For():
            return _for(node, state)
        case c_ast.If():
            return _if(node, state)
        case c_ast.Label(name=name, stmt=stmt):
            return _statement(stmt, state, name)
        case c_ast.Break():
            return Stops(breaks=_static(node, "break", state))
        case c_ast.Continue():
            return Stops(continues=_static(node, "continue", state))
        case c_ast.Pragma():
            state.stated += stated_parallel(node, state)
        case c_ast.EmptyStatement():
            pass
        case c_ast.ExprList(exprs=exprs):
            for expr in exprs:
                _statement(expr, state, label)
        case c_ast.Decl() | c_ast.Typedef():
            declare(node, state, Origin.INNER)
        case c_ast.DeclList(decls=decls):
            for decl in decls:
                declare(decl, state, Origin.INNER)
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
        case c_ast.Return():
            refuse(
                "c-return",
                "`return` inside a SCoP",
                state.span(node),
                helps=["put `#pragma scop` and `#pragma endscop` around the loops, and return after them"],
            )
        case _:
            refuse(
                "c-statement",
                f"{name_of(node)} cannot stand in a SCoP",
                state.span(node),
                helps=["`for`, `if`, assignments, declarations and calls of functions in this file can"],
            )


def assign(node: c_ast.Assignment, state: State, label: str | None = None) -> Place:
    """Draft an assignment, after those inside it (``a = b = e``); return its target."""
    if node.op != "=":
        return _compound(node.op[:-1], node.lvalue, node.rvalue, node, state, label)
    if isinstance(node.rvalue, c_ast.Assignment):
        inner = assign(node.rvalue, state)
        target = place(node.lvalue, state)
        known = state.known.get(inner.variable) if not inner.members else None
        source = known.value if known is not None else read(inner, node.rvalue.lvalue, state)
        write(target, source, known.affine if known is not None else None, node, state, label)
        return target
    target = place(node.lvalue, state)
    write(target, value(node.rvalue, state), _affine_of(node.rvalue, target, state), node, state, label)
    return target


def _compound(
    op: str, left: c_ast.Node, right: c_ast.Node, node: c_ast.Node, state: State, label: str | None
) -> Place:
    """Draft ``left op= right``."""
    target = place(left, state)
    binary = c_ast.BinaryOp(op, left, right, node.coord)
    result = combined(op, value(left, state), value(right, state), node, state)
    write(target, result, _affine_of(binary, target, state), node, state, label)
    return target


def _affine_of(node: c_ast.Node, target: Place, state: State) -> isl.PwAff | None:
    """Return the value that an integer scalar gets, if it is affine."""
    if (
        not isinstance(target.type, Scalar)
        or target.type.element.is_float
        or target.indices
        or target.members
    ):
        return None
    try:
        return affine(node, state)
    except NotAffine:
        return None


def write(
    target: Place,
    source: Expression,
    known: isl.PwAff | None,
    node: c_ast.Node,
    state: State,
    label: str | None = None,
) -> None:
    """Draft ``target = source``; what is known of the target from now on is ``known``."""
    if not isinstance(target.type, Scalar):
        refuse(
            "c-pointer" if not isinstance(target.type, Array) else "c-array",
            f"`{target.variable.name}` is no scalar, and is assigned to",
            state.span(node),
            helps=["assign its elements or members"],
        )
    if target.variable.constant:
        fail(
            "c-constant", f"`{target.variable.name}` is `const`", state.span(node), helps=["drop the `const`"]
        )
    result = stored(source, target.type)
    position = accessed(target, state, state.span(node))
    draft(position, result, node, state, label)
    _learn(target, known, result, state)


def _learn(target: Place, known: isl.PwAff | None, result: Expression, state: State) -> None:
    if target.members or target.indices:
        return
    variable = target.variable
    state.forget([variable])
    state.lost.pop(variable, None)
    element = result.type
    reads = any(isinstance(part, Read) for part in walk(result))
    if known is not None and not reads and state.condition is None and fits_in(known, element, state):
        state.known[variable] = Known(known, result)


def draft(target: int, result: Expression, node: c_ast.Node, state: State, label: str | None) -> None:
    """Remember a statement at this point."""
    if label is not None:
        name = state.fresh(label)
        state.labels.add(name)
    else:
        name = ""
    state.drafts.append(
        Draft(
            name,
            state.path,
            tuple(state.frames),
            tuple(state.position),
            target,
            result,
            state.condition,
            state.span(node),
            text=state.text(node),
        )
    )
    state.position[-1] += 1


def declare(node: c_ast.Node, state: State, origin: Origin) -> None:
    """Bring a declared name into the scope; inside the SCoP its initial value is an assignment."""
    ctype = type_of_name(node, state, extent_of)
    if isinstance(node, c_ast.Typedef):
        state.scope.names[node.name] = TypeName(ctype)
        return
    assert isinstance(node, c_ast.Decl)
    if node.name is None:
        return
    name = state.fresh(node.name)
    variable = Variable(node.name, name, ctype, origin, "const" in (node.quals or []), state.span(node))
    if "static" in (node.storage or []):
        refuse(
            "c-static",
            f"`{node.name}` is a static variable inside a SCoP",
            state.span(node),
            helps=["declare it outside"],
        )
    state.scope.names[node.name] = variable
    if node.init is not None:
        _initialise(variable, node, state)


def _initialise(variable: Variable, node: c_ast.Decl, state: State) -> None:
    target = place_of(variable)
    if not isinstance(variable.type, Scalar):
        refuse(
            "c-initialiser",
            f"`{variable.name}` is given initial values inside a SCoP",
            state.span(node),
            helps=["assign its elements"],
        )
    source = value(node.init, state)
    known = _affine_of(node.init, target, state)
    position = accessed(target, state, state.span(node))
    result = stored(source, variable.type)
    draft(position, result, node, state, None)
    _learn(target, known, result, state)


def _if(node: c_ast.If, state: State) -> Stops:
    try:
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
    where, rest = conjuncts(node.cond, state)
    before, around = dict(state.known), state.condition
    whole = truth(node.cond, state)
    with state.within(where):
        condition = truth(rest, state)
    stops = Stops()
    merged = []
    sides = ((where, condition, node.iftrue), (everywhere(), no(whole), node.iffalse))
    for part, test, branch in sides:
        state.known = dict(before)
        state.condition = both(around, test)
        with state.within(part):
            stops = stops.joined(_branch(branch, state))
        merged.append(state.known)
    state.condition = around
    state.known = _merged(merged, before)
    return stops


def conjuncts(node: c_ast.Node, state: State) -> tuple[isl.Set, c_ast.Node]:
    """Split ``affine && data`` into the set where the affine part holds, and the rest."""
    if isinstance(node, c_ast.BinaryOp) and node.op == "&&":
        first, left = conjuncts(node.left, state)
        with state.within(first):
            second, right = conjuncts(node.right, state)
        where = first.intersect(second)
        if _is_true(left):
            return where, right
        return where, left if _is_true(right) else c_ast.BinaryOp("&&", left, right, node.coord)
    try:
        return holds(node, state), c_ast.Constant("int", "1", node.coord)
    except NotAffine:
        return everywhere(), node


def _is_true(node: c_ast.Node) -> bool:
    return isinstance(node, c_ast.Constant) and node.value == "1"


def _for(node: c_ast.For, state: State) -> Stops:
    """Walk a loop: its iterator becomes a dimension of everything inside."""
    scope = Scope(state.scope)
    with state.inside(scope):
        if isinstance(node.init, c_ast.DeclList):
            _declare_iterator(node.init, state)
        header = loop_header(node, state)
        changed = written_names(node.stmt, state.scope)
        if header.variable.name in changed:
            _refuse_changed(header.variable, node, state)
        _forget(changed, state)
        before = dict(state.known)
        frame = Frame(header.iterator, header.variable.name, header.type, state.span(node), header.descending)
        first = len(state.drafts)
        pooled = len(state.pool)
        state.known[header.variable] = header.value
        state.frames.append(frame)
        state.position.append(0)
        with state.within(header.domain):
            stops = _branch(node.stmt, state)
        state.position.pop()
        state.frames.pop()
        if stops.breaks is not None:
            gone = after(stops.breaks, header)
            for one in state.drafts[first:]:
                one.domain = one.domain.subtract(gone).coalesce()
        state.known = before
        _forget(changed, state)
        state.known.pop(header.variable, None)
        state.lost[header.variable] = f"`{header.variable.name}` is read after its loop"
        state.position[-1] += 1
    del pooled
    return Stops()


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
    target = contains(node.stmt, (c_ast.Assignment, c_ast.UnaryOp))
    refuse(
        "c-iterator",
        f"the loop's variable `{variable.name}` is changed inside the loop",
        state.span(target),
        helps=["only the loop's head may change it; `break` and `continue` may be used"],
    )
