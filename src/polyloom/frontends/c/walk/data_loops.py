"""Loops of which data decide how often they go: procedures, each of whose variables is a statement's value.

    for (k = row[i]; k < row[i + 1]; k++)         s = { s = s; k = row[i];
      s += a[k] * x[col[k]];               ->           while (k < row[i + 1]) { s = s + ..; k = k + 1; } s }

They may change variables alone, no arrays. A ``break`` sets a variable that the rest of the loop asks.
Not in the papers; their model ends at such loops. Pencil's summaries of functions gave the idea (Baghdadi et
al., 2015): what a piece of code reads and writes is all that the polyhedral model has to know of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn, TypeAlias

from pycparser import c_ast

from polyloom.diagnostics import PolyloomError
from polyloom.frontends.c.expressions.lvalues import place
from polyloom.frontends.c.expressions.memory import accessed, place_of
from polyloom.frontends.c.expressions.values import combined, read, truth, value
from polyloom.frontends.c.integers.affine import holds
from polyloom.frontends.c.integers.enumerations import enumerate_members
from polyloom.frontends.c.scope.conversions import both, stored, truth_of
from polyloom.frontends.c.scope.declarations import type_of_name
from polyloom.frontends.c.scope.drafts import Access
from polyloom.frontends.c.scope.liveness import is_live_behind
from polyloom.frontends.c.scope.names import Formula, Place, Scope, Variable
from polyloom.frontends.c.scope.sets import everywhere
from polyloom.frontends.c.scope.state import Mode, State
from polyloom.frontends.c.scope.types import INT, Scalar
from polyloom.frontends.c.scope.writes import contains, first_change, names_in, written_names
from polyloom.frontends.c.syntax.faults import NotAffine, refuse
from polyloom.frontends.c.syntax.nodes import nodes_in
from polyloom.frontends.c.syntax.places import name_of
from polyloom.frontends.c.syntax.structured import leaves, structured
from polyloom.frontends.c.walk.drafting import begin
from polyloom.frontends.c.walk.loops import declare_iterator, loop_header
from polyloom.ir.expressions import (
    Assign,
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Expression,
    Local,
    Procedure,
    Read,
    Step,
    When,
    While,
    all_steps,
    locals_of,
    values_of_steps,
    walk,
)
from polyloom.ir.procedures.variables import locals_read, unset, useful
from polyloom.ir.rebuild import rebuilt, rebuilt_steps
from polyloom.scop.model import Origin

Loop: TypeAlias = "c_ast.For | c_ast.While | c_ast.DoWhile"

MOST_PARTS = 2000
"""Parts of a procedure's expressions, at most: what a kernel can be read with."""


def walk_data_loop(node: Loop, state: State) -> bool:
    """Draft a loop as what it leaves in variables, where data decide how often it goes, and that can be done.

    Return whether it was; nothing has changed where it was not. Errors: ``c-while`` of a loop that has no
    counter, and so no other way.
    """
    if state.mode is Mode.TEXT or not _is_on_data(node, state):
        return False
    try:
        with state.trial():
            _draft(node, state)
    except (PolyloomError, NotAffine):
        if isinstance(node, c_ast.For):
            return False
        raise
    _draft(node, state)
    return True


def _is_on_data(node: Loop, state: State) -> bool:
    """Whether a loop is none of which it is known how often it goes."""
    if not isinstance(node, c_ast.For):
        return True
    if _leaves_early(node.stmt) or _changes_iterator(node):
        return True
    try:
        with state.trial(), state.inside(Scope(state.scope)):
            if isinstance(node.init, c_ast.DeclList):
                declare_iterator(node.init, state)
            loop_header(node, state)
    except PolyloomError:
        return True
    return False


def _leaves_early(node: c_ast.Node) -> bool:
    """Whether a ``break`` under a condition may leave the loop whose body this is."""
    match node:
        case c_ast.For() | c_ast.While() | c_ast.DoWhile() | c_ast.Switch():
            return False
        case c_ast.If():
            return leaves(node, c_ast.Break)
        case _:
            return any(_leaves_early(child) for _, child in node.children())


def _changes_iterator(node: c_ast.For) -> bool:
    moved = names_in(node.next) if node.next is not None else frozenset()
    return any(first_change(node.stmt, name) is not None for name in moved)


def _draft(node: Loop, state: State) -> None:
    """Draft the assignments of what a loop leaves in the variables around it. Errors: as for statements."""
    outer = _outer_variables(node, state)
    drafts = len(state.drafts)
    known, unusable = dict(state.known), dict(state.unusable)
    found = _Reader(state)
    for variable in outer:
        found.bring(variable)
    with state.inside(Scope(state.scope)):
        steps = found.loop(node)
    state.known, state.unusable = known, unusable
    if len(state.drafts) > drafts:
        _refuse(node, "calls a function that is more than one expression", state)
    steps = found.with_elements(steps, node)
    found.check_ends()
    changed = set(locals_of(steps).values())
    live = [v for v in outer if found.locals[v] in changed and _is_live_behind(node, v, state)]
    results = [_Result(place_of(v), found.locals[v]) for v in live]
    results += [_Result(e.place, e.local, e.stored) for e in found.elements.values()]
    needed = unset(steps, [result.locals[-1] for result in results], found.spoken)
    whole = (*_first(found, needed, outer, node), *steps)
    _check(whole, found, node)
    _store([replace(r, asked=r.asked if r.asked in needed else None) for r in results], whole, found, node)


def _first(
    found: _Reader, needed: Collection[Local], outer: Collection[Variable], node: Loop
) -> Iterator[Step]:
    """Yield what variables hold before a loop, where that may matter."""
    state = found.state
    for variable in outer:
        if (local := found.locals[variable]) in needed:
            first = value(c_ast.ID(variable.name, node.coord), state)
            yield Assign(local, stored(first, _scalar(variable)))
    for element in found.elements.values():
        if element.local in needed:
            yield Assign(element.local, read(element.place, node, state))
        if element.stored in needed:
            yield _cleared(element.stored)


def _check(steps: tuple[Step, ...], found: _Reader, node: Loop) -> None:
    state = found.state
    never = locals_read(steps, found.spoken) - set(locals_of(steps).values())
    if never:
        _refuse(node, f"reads `{never.pop().name}`, which it never sets", state)
    if sum(1 for part in values_of_steps(steps) for _ in walk(part)) > MOST_PARTS:
        _refuse(node, "has too many operations", state)


@dataclass(frozen=True, eq=False)
class _Result:
    """A variable's place, or an element, and what holds its value; ``asked``: whether it was set at all."""

    place: Place
    local: Local
    asked: Local | None = None

    @property
    def locals(self) -> tuple[Local, ...]:
        """What holds the value, and where it is not sure whether there is one, what says so."""
        return (self.local,) if self.asked is None else (self.local, self.asked)


def _store(results: Sequence[_Result], steps: tuple[Step, ...], reader: _Reader, node: Loop) -> None:
    """Draft the stores; of several all values are kept first, for each begins with what was there."""
    state, alone = reader.state, len(results) == 1
    kept: list[tuple[Expression, ...]] = []
    for result in results:
        wanted = (
            steps if not alone or result.asked is not None else useful(steps, result.local, reader.spoken)
        )
        made = tuple(Procedure(wanted, local) for local in result.locals)
        kept.append(made if alone else tuple(_kept(each, node, state) for each in made))
    around = state.condition
    for result, (found, *asked) in zip(results, kept, strict=True):
        for flag in asked:
            state.condition = both(around, truth_of(flag))
        begin(result.place, found, None, node, state)
        state.condition = around


def _kept(procedure: Procedure, node: Loop, state: State) -> Expression:
    """Draft a variable of its own for what a loop leaves; return what it holds."""
    name = state.fresh(f"{procedure.result.name}_after")
    kind = Scalar(procedure.type, procedure.type.value)
    place = place_of(Variable(name, name, kind, Origin.INNER))
    begin(place, procedure, None, node, state)
    return Read(accessed(place, state, state.span(node)), procedure.type)


def _is_live_behind(node: Loop, variable: Variable, state: State) -> bool:
    """Whether the function around may read what a loop leaves in a variable."""
    if variable.origin is not Origin.INNER:
        return True
    for body in reversed(state.bodies):
        if any(part is node for part in nodes_in(body)):
            return is_live_behind(body, node, variable.name)
    return True


def _outer_variables(node: Loop, state: State) -> list[Variable]:
    """Return the variables around a loop that it changes."""
    names = written_names(node, state.scope)
    found = {v for v in state.scope.variables(names) if isinstance(state.scope.find(v.name), Variable)}
    return sorted((v for v in found if isinstance(v.type, Scalar) and not v.constant), key=lambda v: v.unique)


def _scalar(variable: Variable) -> Scalar:
    assert isinstance(variable.type, Scalar)
    return variable.type


def _refuse(node: c_ast.Node, why: str, state: State) -> NoReturn:
    refuse(
        "c-while",
        f"data decide how often the loop goes, and it {why}",
        state.span(node),
        helps=[
            "such a loop may change variables, and elements that are the same in all of its iterations",
            "where a counter says how often it goes: `for (i = first; i < last; i++)` with affine bounds",
        ],
    )


@dataclass(frozen=True, eq=False)
class _Element:
    """An element that a loop stores to, the same in all iterations; ``stored``: whether it was."""

    place: Place
    position: int
    local: Local
    stored: Local


@dataclass(eq=False)
class _Reader:
    """Reads statements as steps; ``locals``: what variables are there, ``elements``: by their arrays."""

    state: State
    locals: dict[Variable, Local] = field(default_factory=dict)
    elements: dict[str, _Element] = field(default_factory=dict)
    leaving: list[tuple[Local, Local]] = field(default_factory=list)
    """For each loop around: whether it goes on, and whether its iteration does."""
    ends: list[tuple[Expression, set[Local], Loop]] = field(default_factory=list)
    """Of loops without jumps: their conditions, and what they change."""

    def bring(self, variable: Variable) -> None:
        """Have a variable be one of the procedure's from now on."""
        local = Local(variable.unique, _scalar(variable).element)
        self.locals[variable] = local
        self.state.known[variable] = Formula(local)
        self.state.unusable.pop(variable, None)

    # -- statements

    def steps(self, node: c_ast.Node | None) -> tuple[Step, ...]:
        match node:
            case None | c_ast.EmptyStatement() | c_ast.Pragma():
                return ()
            case c_ast.Compound(block_items=items):
                with self.state.inside(Scope(self.state.scope)):
                    return self.block(items or ())
            case c_ast.ExprList(exprs=exprs):
                return self.block(exprs)
            case c_ast.DeclList(decls=decls):
                return self.block(decls)
            case c_ast.Decl():
                return self.declared(node)
            case c_ast.If():
                return self.branch(node)
            case c_ast.For() | c_ast.While() | c_ast.DoWhile():
                with self.state.inside(Scope(self.state.scope)):
                    return self.loop(node)
            case c_ast.Break() | c_ast.Continue():
                goes_on, iterates = self.leaving[-1]
                left = [iterates] if isinstance(node, c_ast.Continue) else [goes_on, iterates]
                return tuple(map(_cleared, left))
            case c_ast.Cast(expr=expr):
                return self.steps(expr)
            case c_ast.Assignment() | c_ast.UnaryOp(op="++" | "p++" | "--" | "p--"):
                return self.assigned(node)
            case c_ast.Switch() if (chosen := structured(node)) is not node:
                return self.steps(chosen)
            case _:
                _refuse(node, f"has {name_of(node)}, which is no assignment, branch or loop", self.state)

    def block(self, nodes: Sequence[c_ast.Node]) -> tuple[Step, ...]:
        """Return statements in a row; behind one that may leave its loop it is asked whether it did."""
        found: list[Step] = []
        for k, node in enumerate(nodes):
            found += self.steps(node)
            rest = nodes[k + 1 :]
            if rest and contains(node, (c_ast.Break, c_ast.Continue)) is not None and self.leaving:
                iterates = self.leaving[-1][1]
                return (*found, When(_is_set(iterates), self.block(rest)))
        return tuple(found)

    def declared(self, node: c_ast.Decl) -> tuple[Step, ...]:
        enumerate_members(node, self.state)
        ctype = type_of_name(node, self.state)
        if node.name is None:
            return ()
        if not isinstance(ctype, Scalar) or "static" in (node.storage or []):
            _refuse(node, "declares more than a single variable", self.state)
        variable = Variable(node.name, self.state.local(node.name), ctype, Origin.INNER)
        first = None if node.init is None else self.value(node.init, ctype)
        self.state.scope.names[node.name] = variable
        self.bring(variable)
        return () if first is None else (Assign(self.locals[variable], first),)

    def assigned(self, node: c_ast.Assignment | c_ast.UnaryOp) -> tuple[Step, ...]:
        left = node.lvalue if isinstance(node, c_ast.Assignment) else node.expr
        target = place(left, self.state)
        element = None if target.variable in self.locals else self.element(target, left)
        local = self.locals[target.variable] if element is None else element.local
        kind = target.type
        assert isinstance(kind, Scalar)
        match node:
            case c_ast.Assignment(op="=", rvalue=right):
                new = self.value(right, kind)
            case _:
                one = c_ast.Constant("int", "1", node.coord)
                right = node.rvalue if isinstance(node, c_ast.Assignment) else one
                op = node.op[:-1] if isinstance(node, c_ast.Assignment) else node.op.strip("p")[0]
                operands = value(left, self.state), value(right, self.state)
                new = stored(combined(op, *operands, node, self.state), kind)
        return (Assign(local, new), *([] if element is None else [_set(element.stored)]))

    def element(self, target: Place, node: c_ast.Node) -> _Element:
        """Return an element that is stored to, as a variable. Errors: ``c-while`` where it is not one."""
        text = self.state.text(node)
        if not isinstance(target.type, Scalar) or any(index.affine is None for index in target.indices):
            _refuse(node, f"stores to `{text}`, which is not the same element each time", self.state)
        position = accessed(target, self.state, self.state.span(node))
        array = self.state.pool[position].array
        known = self.elements.get(array)
        if known is None:
            local = Local(self.state.fresh(array), target.type.element)
            flag = Local(self.state.fresh(f"{array}_is_stored"), INT.element)
            known = self.elements[array] = _Element(target, position, local, flag)
        elif not _is_same(self.state.pool[position], self.state.pool[known.position]):
            _refuse(node, f"stores to `{text}`, and to another element of the array", self.state)
        return known

    def with_elements(self, steps: tuple[Step, ...], node: Loop) -> tuple[Step, ...]:
        """Return steps that read variables in the place of the elements that these stand for."""
        pool = self.state.pool
        spoken = {name for found in values_of_steps(steps) for name in self._arrays(found)}
        if not spoken & self.elements.keys():
            return steps

        def change(part: Expression) -> Expression | None:
            if not isinstance(part, Read):
                return None
            access = pool[part.position]
            if any(self._arrays(index.value) & self.elements.keys() for index in access.indices):
                _refuse(node, f"chooses an element of `{access.array}` by one that it stores to", self.state)
            element = self.elements.get(access.array)
            if element is None:
                return None
            if not _is_same(access, pool[element.position]):
                _refuse(node, f"reads another element of `{access.array}` than it stores to", self.state)
            return element.local

        return rebuilt_steps(steps, lambda e: rebuilt(e, change))

    def check_ends(self) -> None:
        """Refuse loops that change nothing of what they ask: they end at once or never."""
        for asked, changed, node in self.ends:
            if not self.spoken(asked) & changed and not self._arrays(asked) & self.elements.keys():
                _refuse(node, "changes nothing of what it asks: it ends at once or never", self.state)

    def spoken(self, expression: Expression) -> set[Local]:
        """Return the variables of which an expression speaks, in subscripts too."""
        found: set[Local] = set()
        for part in walk(expression):
            if isinstance(part, Local):
                found.add(part)
            elif isinstance(part, Read):
                indices = self.state.pool[part.position].indices
                found = found.union(*(self.spoken(index.value) for index in indices))
        return found

    def _arrays(self, expression: Expression) -> set[str]:
        """Return the arrays that an expression reads, those in subscripts too."""
        found: set[str] = set()
        for part in walk(expression):
            if isinstance(part, Read):
                access = self.state.pool[part.position]
                found |= {access.array, *(name for i in access.indices for name in self._arrays(i.value))}
        return found

    def value(self, node: c_ast.Node, ctype: object) -> Expression:
        assert isinstance(ctype, Scalar)
        return stored(value(node, self.state), ctype)

    def branch(self, node: c_ast.If) -> tuple[Step, ...]:
        try:
            where = holds(node.cond, self.state)
            otherwise = where.complement()
        except NotAffine:
            where = otherwise = everywhere()
        condition = truth(node.cond, self.state)
        with self.state.within(where):
            body = self.steps(node.iftrue)
        with self.state.within(otherwise):
            other = self.steps(node.iffalse)
        return (When(condition, body, other),) if body or other else ()

    def loop(self, node: Loop) -> tuple[Step, ...]:
        """Return a loop, with what it begins with in front."""
        first = self.steps(node.init) if isinstance(node, c_ast.For) else ()
        if contains(node.stmt, (c_ast.Break, c_ast.Continue)) is not None:
            return (*first, *self.loop_with_jumps(node))
        asked, inside = self.asked(node.cond), (*self.steps(node.stmt), *self.moved(node))
        changed = {step.local for step in all_steps(inside) if isinstance(step, Assign)}
        self.ends.append((asked, changed, node))
        before = inside if isinstance(node, c_ast.DoWhile) else ()
        return (*first, *before, While(asked, inside))

    def loop_with_jumps(self, node: Loop) -> tuple[Step, ...]:
        """Return a loop that asks variables whether it goes on, and whether its iteration does."""
        goes_on, iterates = (Local(self.state.fresh(name), INT.element) for name in ("goes_on", "iterates"))
        self.leaving.append((goes_on, iterates))
        body = self.steps(node.stmt)
        self.leaving.pop()
        asked = self.asked(node.cond)
        if isinstance(node, c_ast.DoWhile):
            again = When(_is_set(goes_on), (When(asked, (), (_cleared(goes_on),)),))
            return _set(goes_on), While(_is_set(goes_on), (_set(iterates), *body, again))
        inside = (_set(iterates), *body, When(_is_set(goes_on), self.moved(node)))
        return _set(goes_on), While(Binary(BinaryOp.AND, _is_set(goes_on), asked), inside)

    def asked(self, node: c_ast.Node | None) -> Expression:
        if node is None:
            return Compare(CompareOp.EQ, Constant(0, INT.element), Constant(0, INT.element))
        return truth(node, self.state)

    def moved(self, node: Loop) -> tuple[Step, ...]:
        return self.steps(node.next) if isinstance(node, c_ast.For) else ()


def _is_same(one: Access, other: Access) -> bool:
    """Whether two references are to one element, wherever both are made."""
    pairs = zip(one.indices, other.indices, strict=True)
    return all(
        a.affine is not None and b.affine is not None and bool(a.affine.is_equal(b.affine)) for a, b in pairs
    )


def _is_set(flag: Local) -> Expression:
    return Compare(CompareOp.NE, flag, Constant(0, flag.type))


def _set(flag: Local) -> Step:
    return Assign(flag, Constant(1, flag.type))


def _cleared(flag: Local) -> Step:
    return Assign(flag, Constant(0, flag.type))
