"""``if``: affine conditions become domains, conditions on data become part of statements."""

from __future__ import annotations

from pycparser import c_ast

from polyloom.frontends.c.expressions.values import truth
from polyloom.frontends.c.integers.affine import holds
from polyloom.frontends.c.scope.conversions import both, no
from polyloom.frontends.c.scope.drafts import Stops
from polyloom.frontends.c.scope.names import Fact, Formula, Scope, Variable
from polyloom.frontends.c.scope.sets import everywhere
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.syntax.faults import NotAffine
from polyloom.frontends.c.walk.conditions import conjuncts, kept_condition


def walk_if(node: c_ast.If, state: State) -> Stops:
    """Walk both branches; what is known after them is what both leave."""
    try:
        with state.plain_arithmetic():
            where = holds(node.cond, state)
    except NotAffine:
        return _data_if(node, state)
    before, unstored = dict(state.known), dict(state.unusable)
    stops, left = Stops(), dict[Variable, str]()
    merged: list[dict[Variable, Fact]] = []
    for part, branch in ((where, node.iftrue), (where.complement(), node.iffalse)):
        if state.path.intersect(state.context).intersect(part).is_empty():
            continue
        state.known, state.unusable = dict(before), dict(unstored)
        with state.within(part):
            stops = stops.joined(walk_branch(branch, state))
        merged.append(state.known)
        left |= state.unusable
    state.known, state.unusable = _merged(merged, before), left if merged else unstored
    return stops


def walk_branch(branch: c_ast.Node | None, state: State) -> Stops:
    """Walk a branch or the body of a loop, in a scope of its own."""
    if branch is None:
        return Stops()
    with state.inside(Scope(state.scope)):
        return state.above.walk([branch], state)


def _merged(sides: list[dict[Variable, Fact]], before: dict[Variable, Fact]) -> dict[Variable, Fact]:
    """Keep what is the same on all sides."""
    if not sides:
        return before
    first, *others = sides
    return {
        variable: known
        for variable, known in first.items()
        if all(variable in o and _same(o[variable], known) for o in others)
    }


def _same(first: Fact, second: Fact) -> bool:
    if isinstance(first, Formula) or isinstance(second, Formula):
        return first is second
    return first is second or bool(first.affine.is_equal(second.affine))


def _data_if(node: c_ast.If, state: State) -> Stops:
    """Walk the branches of a condition on data; its affine conjuncts restrict the domain of the first."""
    around, before, unstored = state.condition, dict(state.known), dict(state.unusable)
    kept = kept_condition(node, state)
    where, condition = everywhere(), kept
    if kept is None:
        where, rest = conjuncts(node.cond, state)
        with state.within(where):
            condition = truth(rest if rest is not None else node.cond, state)
    stops, merged, left = Stops(), [], dict[Variable, str]()
    for part, positive, branch in ((where, True, node.iftrue), (everywhere(), False, node.iffalse)):
        test = condition
        if not positive and branch is not None:
            test = no(kept if kept is not None else truth(node.cond, state))
        state.known, state.unusable = dict(before), dict(unstored)
        state.condition = both(around, test)
        with state.within(part):
            stops = stops.joined(walk_branch(branch, state))
        merged.append(state.known)
        left |= state.unusable
    state.condition = around
    state.known, state.unusable = _merged(merged, before), left
    return stops
