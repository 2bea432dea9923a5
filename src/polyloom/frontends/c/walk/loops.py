"""The heads of ``for`` loops: iterator, first value, step, condition, as the set of values that it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NoReturn

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import Span
from polyloom.frontends.c.expressions.values import truth
from polyloom.frontends.c.integers.affine import check_conversion, constant_of, holds, typed
from polyloom.frontends.c.integers.from_isl import expression_of
from polyloom.frontends.c.scope.declarations import type_of_name
from polyloom.frontends.c.scope.names import Known, Variable
from polyloom.frontends.c.scope.sets import constant_affine, everywhere, parameter_affine, without_set
from polyloom.frontends.c.scope.state import Mode, State
from polyloom.frontends.c.scope.types import Scalar, is_unsigned, value_range
from polyloom.frontends.c.scope.writes import contains, names_in, written_names
from polyloom.frontends.c.syntax.faults import NotAffine, refuse
from polyloom.frontends.c.walk.loop_heads import ACCEPTED, Head, changed_to, parts_of, refuse_head
from polyloom.ir.expressions import Expression, ParameterValue
from polyloom.ir.types import ElementType
from polyloom.polyhedra.functions import isl_integer
from polyloom.scop.model import Origin

_DIM = isl.dim_type
_WIDE = 8
_FAR = 2**20
"""Where no step makes an unsigned iterator wrap."""


@dataclass(frozen=True, eq=False)
class Header:
    """A loop's head. ``domain`` holds the values that the iterator takes, as the parameter ``iterator``.

    ``others``: variables that the head moves along with the iterator, by name, as functions of it.
    ``last``: the iterator's value after the loop, where it is known. ``first``, ``step``: as in C.
    """

    variable: Variable
    iterator: str
    type: ElementType
    value: Known
    domain: isl.Set
    descending: bool
    condition: Expression | None = None
    """What else must hold, where the head's condition depends on data."""
    others: tuple[tuple[Variable, Known], ...] = ()
    last: Known | None = None
    first: isl.PwAff | None = None
    step: int = 1


def loop_header(node: c_ast.For, state: State) -> Header:
    """Return what a loop's head says. Errors: ``c-loop``, ``c-bound``."""
    with state.head():
        return _header(node, state)


def _header(node: c_ast.For, state: State) -> Header:
    head = parts_of(node, state)
    variable = head.variable
    element = _integer(variable, node, state)
    iterator = state.fresh(variable.name)
    state.iterators.add(iterator)
    here = Known(parameter_affine(iterator), ParameterValue(iterator, element))
    first = _first(head, element, state)
    with _again(node, state):
        step = _step(head, node, here, state)
    reached = _reached(here.affine, first, step)
    others = _others(head, node, here, first, step, state)
    with (
        _again(node, state),
        state.within(reached.intersect(_possible(here.affine, element))),
        state.plain_arithmetic(),
    ):
        state.known.update({variable: here, **dict(others)})
        going, condition = _going(head, node, here, state)
    loop = reached.intersect(_possible(here.affine, element))
    if condition is None:
        _check_wrapping(loop, going, here, step, state.span(node), state)
        if step > 0 or not is_unsigned(element):
            _check_ending(loop, going, iterator, state.span(node), state)
    domain = _until(loop, going, iterator, descending=step < 0)
    asked = domain.union(_moved(domain, iterator, step))
    for other, known in others:
        read = asked if other.name in names_in(head.condition) else domain
        if not _keeps_in_range(known.affine, known.value.type, read, state):
            _refuse_wrapping(state.span(node))
    last = None if condition is not None else _last(reached, going, here, step, state)
    header = Header(variable, iterator, element, here, domain, step < 0, condition, others, last, first, step)
    return _after_its_test(header, state) if head.tested_first else header


@contextmanager
def _again(node: c_ast.For, state: State) -> Iterator[None]:
    """What the body changes is not known where the head is asked again, after an iteration."""
    outside = dict(state.known)
    state.forget(state.scope.variables(written_names(node.stmt, state.scope)))
    try:
        yield
    finally:
        state.known = outside


def _after_its_test(header: Header, state: State) -> Header:
    """Return the head of ``for (i = n; i-- > 4;)``, of which that of ``for (i = n; i > 4; i--)`` is given."""
    by, last = header.step, None
    if header.last is not None and not is_unsigned(header.type):
        function = header.last.affine.add(constant_affine(by))
        last = Known(function, expression_of(function, state.type_of, header.type))
    assert header.first is not None
    domain = _moved(header.domain, header.iterator, by)
    return replace(header, domain=domain, last=last, first=header.first.add(constant_affine(by)))


def _moved(points: isl.Set, iterator: str, by: int) -> isl.Set:
    """Return the set of ``iterator + by``."""
    at = points.find_dim_by_name(_DIM.param, iterator)
    if at < 0:
        return points
    moved = points.move_dims(_DIM.set, 0, _DIM.param, at, 1)
    return moved.apply(isl.Map(f"[{iterator}] -> {{ [x'] -> [] : {iterator} = x' + ({by}) }}"))


def declare_iterator(node: c_ast.DeclList, state: State) -> None:
    """Bring the variables that a loop's head declares into the scope."""
    for decl in node.decls:
        ctype = type_of_name(decl, state)
        variable = Variable(decl.name, decl.name, ctype, Origin.INNER, False, state.span(decl))
        state.scope.names[decl.name] = variable


def _integer(variable: Variable, node: c_ast.For, state: State) -> ElementType:
    if not isinstance(variable.type, Scalar) or variable.type.element.is_float:
        refuse(
            "c-loop",
            f"the loop's variable `{variable.name}` is no integer",
            state.span(node.init),
            helps=["count with an `int`"],
        )
    return variable.type.element


def _others(
    head: Head, node: c_ast.For, here: Known, first: isl.PwAff, step: int, state: State
) -> tuple[tuple[Variable, Known], ...]:
    """Return the variables that the head moves with the iterator: ``for (i = 0, j = n; ...; i++, j--)``."""
    found = []
    for variable, start in head.others:
        kind = _integer(variable, node, state)
        at = parameter_affine(f"{here_name(here)}_")
        with _again(node, state):
            state.known[variable] = Known(at, here.value)
            by = _change(head, node, variable, at, state)
        begin = _bound(start, f"the first value of `{variable.name}`", state)
        if abs(step) != 1:
            refuse_head(
                f"`{variable.name}` does not follow `{head.variable.name}` as an affine function", node, state
            )
        passed = here.affine.sub(first).scale_val(isl_integer(step))
        function = begin.add(passed.scale_val(isl_integer(by)))
        found.append((variable, Known(function, expression_of(function, state.type_of, kind))))
    return tuple(found)


def here_name(here: Known) -> str:
    """Return the iterator's name in isl."""
    assert isinstance(here.value, ParameterValue)
    return here.value.name


def _last(reached: isl.Set, going: isl.Set, here: Known, step: int, state: State) -> Known | None:
    """Return the first value for which the condition does not hold, if there always is one."""
    ended = reached.subtract(going)
    at = ended.find_dim_by_name(_DIM.param, here_name(here))
    if at < 0:
        return None
    points = ended.move_dims(_DIM.set, 0, _DIM.param, at, 1)
    if not state.path.intersect(state.context).params().is_subset(points.params()):
        return None
    last = points.dim_min(0) if step > 0 else points.dim_max(0)
    function = last.insert_domain(everywhere().get_space()).coalesce()
    return Known(function, expression_of(function, state.type_of, here.value.type))


def _possible(here: isl.PwAff, element: ElementType) -> isl.Set:
    """An unsigned iterator is not negative."""
    return here.ge_set(constant_affine(0)) if is_unsigned(element) else everywhere()


def _check_ending(loop: isl.Set, going: isl.Set, iterator: str, span: Span | None, state: State) -> None:
    """The loop ends (``i != n`` does not where ``n`` is less than the first value). Errors: ``c-loop``."""
    ended = without_set(loop.subtract(going), [iterator])
    endless = without_set(loop.intersect(going), [iterator]).subtract(ended)
    if state.always(endless.complement()):
        return
    if not state.assume(endless.complement()):
        refuse("c-loop", "the loop does not end", span, helps=[ACCEPTED])
    state.assumed[f"the loop in line {span.line if span else '?'} ends"] = None


def _check_wrapping(
    loop: isl.Set, going: isl.Set, here: Known, step: int, span: Span | None, state: State
) -> None:
    """An iterator that leaves its type's range comes back at the other end. Errors: ``c-loop``."""
    taken, element = loop.intersect(going), here.value.type
    if step < 0 and is_unsigned(element):
        _check_wrapping_down(taken, going, here, step, span, state)
    elif not _keeps_in_range(here.affine.add(constant_affine(step)), element, taken, state):
        _refuse_wrapping(span)


def _keeps_in_range(value: isl.PwAff, element: ElementType, taken: isl.Set, state: State) -> bool:
    """Whether a value is one of its type's on a set, which may have to be assumed.

    Signed types of 32 bits and more cannot wrap in C, and those of 64 bits do not live to.
    """
    if element.size >= ElementType.INT32.size and not is_unsigned(element):
        return True
    low, high = value_range(element)
    inside = value.ge_set(constant_affine(low))
    inside = inside if element.size == _WIDE else inside.intersect(value.le_set(constant_affine(high)))
    with state.within(taken):
        return state.always(inside) or state.assume(inside)


def _check_wrapping_down(
    taken: isl.Set, going: isl.Set, here: Known, step: int, span: Span | None, state: State
) -> None:
    """An unsigned iterator that passes zero becomes large: there the loop must end."""
    low = here.affine.lt_set(constant_affine(-step))
    last = taken.intersect(low).intersect(state.path).intersect(state.context).intersect(state.limits)
    name = here_name(here)
    at = last.find_dim_by_name(_DIM.param, name)
    if at < 0 or last.is_empty():
        return
    turn = f"{name} = x' + {step} + {2 ** (8 * here.value.type.size)}"
    wrapped = last.move_dims(_DIM.set, 0, _DIM.param, at, 1).apply(
        isl.Map(f"[{name}] -> {{ [x'] -> [] : {turn} }}")
    )
    if not wrapped.is_disjoint(going):
        _refuse_wrapping(span)


def _refuse_wrapping(span: Span | None) -> NoReturn:
    refuse(
        "c-loop",
        "the loop's variable leaves the range of its type, wraps and goes on",
        span,
        helps=["count with an `int` or a `long`"],
    )


def _first(head: Head, element: ElementType, state: State) -> isl.PwAff:
    with state.plain_arithmetic():
        first = _bound(head.start, "the first value of the loop", state, element)
    if not head.tested or head.tested_first:
        return first
    if is_unsigned(element):
        refuse_head("the loop's unsigned variable may wrap before it is tested", head.condition, state)
    tested = first.add(constant_affine(head.tested))
    if not _keeps_in_range(tested, element, everywhere(), state):
        _refuse_wrapping(state.span(head.condition))
    return tested


def _bound(node: c_ast.Node, what: str, state: State, element: ElementType | None = None) -> isl.PwAff:
    """Return an affine function, which must keep its value in a type. Errors: ``c-bound``."""
    try:
        found = typed(node, state)
        if element is not None:
            check_conversion(found, element, node, state)
        return found.value
    except NotAffine as fault:
        refuse("c-bound", f"{what} is not affine", fault.span, label=fault.reason, helps=[ACCEPTED])


def _step(head: Head, node: c_ast.For, here: Known, state: State) -> int:
    if head.tested:
        return head.tested
    state.known[head.variable] = here
    far = here.affine.ge_set(constant_affine(_FAR)).intersect(here.affine.le_set(constant_affine(2 * _FAR)))
    with state.within(far):
        return _change(head, node, head.variable, here.affine, state)


def _change(head: Head, node: c_ast.For, variable: Variable, here: isl.PwAff, state: State) -> int:
    """Return by how much a variable grows from one iteration to the next: what it becomes less what it
    was.
    """
    changed = next((c for c in (changed_to(n, variable.name) for n in head.nexts) if c is not None), None)
    if changed is not None:
        step = constant_of(_bound(changed, "the loop's step", state).sub(here))
        if step:
            return step
    return refuse_head(f"the loop does not change `{variable.name}` by a constant", node.next or node, state)


def _reached(here: isl.PwAff, first: isl.PwAff, step: int) -> isl.Set:
    """Return the values from ``first`` on, in steps."""
    passed = here.sub(first) if step > 0 else first.sub(here)
    reached = passed.ge_set(constant_affine(0))
    if abs(step) != 1:
        reached = reached.intersect(passed.mod_val(isl_integer(abs(step))).eq_set(constant_affine(0)))
    return reached


def _going(head: Head, node: c_ast.For, here: Known, state: State) -> tuple[isl.Set, Expression | None]:
    """Return where the loop's condition holds; in the text's form it may depend on data."""
    try:
        return holds(head.condition, state), None
    except NotAffine as fault:
        if state.mode is Mode.TEXT and not head.tested and contains(node.cond, (c_ast.FuncCall,)) is None:
            return everywhere(), truth(node.cond, state)
        return refuse(
            "c-bound",
            "the loop's condition is not affine",
            fault.span,
            label=fault.reason,
            helps=[ACCEPTED],
        )


def _until(reached: isl.Set, going: isl.Set, iterator: str, *, descending: bool) -> isl.Set:
    """Return the values up to the first for which the condition does not hold.

    Not in the papers: a condition that holds again after it has not (``i % 5 < 3``) ends the loop.
    """
    domain = reached.intersect(going)
    late = _later(reached.subtract(going), iterator, descending=descending)
    return (domain if domain.is_disjoint(late) else domain.subtract(late)).coalesce()


def _later(points: isl.Set, iterator: str, *, descending: bool) -> isl.Set:
    """Return the values of ``iterator`` that come after one in ``points``."""
    found = points.find_dim_by_name(_DIM.param, iterator)
    if found < 0:
        return points
    sign = ">" if descending else "<"
    moved = points.move_dims(_DIM.set, 0, _DIM.param, found, 1)
    order = isl.Map(f"[{iterator}] -> {{ [x'] -> [] : x' {sign} {iterator} }}")  # no name of C's has a prime
    return moved.apply(order)


def gone_after(breaks: isl.Set, header: Header) -> isl.Set:
    """Return the iterations that come after one that breaks off the loop."""
    return _later(breaks, header.iterator, descending=header.descending)
