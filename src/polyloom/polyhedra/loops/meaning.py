"""What loops visit, worked out from their text with C's arithmetic: the proof of what isl generated.

Source: loopy's ``check_implemented_domains`` (idea). Not in the papers: isl's generator loses instances of a
few sets with large coefficients, so its result is compared with what was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from polyloom.polyhedra.effort import TooHardError, at_most
from polyloom.polyhedra.loops.tree import (
    Branch,
    Instance,
    IntExpression,
    Loop,
    Name,
    Number,
    Operation,
    Tree,
)

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class _Scope:
    """``points``: ``[parameters] -> { [iterators] }`` that are reached; ``iterators``: their names."""

    points: isl.Set
    iterators: tuple[str, ...]
    parameters: Mapping[str, str]

    @property
    def local_space(self) -> isl.LocalSpace:
        return isl.LocalSpace.from_space(self.points.get_space())

    def restricted(self, to: isl.Set) -> _Scope:
        return _Scope(self.points.intersect(to), self.iterators, self.parameters)


def visited(tree: Tree, context: isl.Set, renamed: Mapping[str, str]) -> isl.UnionSet:
    """Return ``[parameters] -> { S[i, j] }``: the instances that loops visit where ``context`` holds.

    ``renamed``: parameter names to the names that stand for them in the tree.
    """
    parameters = {renamed.get(name, name): name for name in _parameter_names(context)}
    scope = _Scope(isl.Set.from_params(context), (), parameters)
    return _visited(tree, scope)


OPERATIONS = 2_000_000
"""What isl may spend on comparing what two trees visit."""


def visit_the_same(a: Tree, b: Tree, parameters: Iterable[str]) -> str | None:
    """Return an instance that only one of two trees visits; None where they visit the same.

    None, too, where isl cannot express it or not in ``OPERATIONS``.
    """
    context = isl.Set(f"[{', '.join(sorted(parameters))}] -> {{ : }}")
    try:
        with at_most(OPERATIONS):
            return only_in_one(visited(a, context, {}), visited(b, context, {}))
    except (isl.Error, TooHardError, KeyError):
        return None


def only_in_one(a: isl.UnionSet, b: isl.UnionSet) -> str | None:
    """Return a point, as text, of one of two sets that is not in the other; None where they are equal."""
    if a.is_equal(b):
        return None
    lost = a.subtract(b)
    lost, which = (b.subtract(a), "new") if lost.is_empty() else (lost, "lost")
    return f"{which}: {lost.sample_point()}"


def _parameter_names(context: isl.Set) -> list[str]:
    return [context.get_dim_name(_DIM.param, k) or "" for k in range(context.dim(_DIM.param))]


def _visited(tree: Tree, scope: _Scope) -> isl.UnionSet:
    result = isl.UnionSet.empty(scope.points.get_space().params())
    for node in tree:
        match node:
            case Loop():
                result = result.union(_visited(node.body, _inside(node, scope)))
            case Branch():
                holds = _holds(node.condition, scope)
                result = result.union(_visited(node.body, scope.restricted(holds)))
                result = result.union(_visited(node.otherwise, scope.restricted(holds.complement())))
            case Instance():
                result = result.union(isl.UnionSet.from_set(_instances(node, scope)))
    return result


def _inside(loop: Loop, scope: _Scope) -> _Scope:
    points = scope.points.insert_dims(_DIM.set, len(scope.iterators), 1)
    inner = _Scope(points, (*scope.iterators, loop.iterator), scope.parameters)
    distance = _value(Name(loop.iterator), inner).sub(_value(loop.start, inner))
    step = _value(loop.step, inner)
    reached = distance.nonneg_set().intersect(distance.tdiv_r(step).zero_set())
    return inner.restricted(reached.intersect(_holds(loop.condition, inner)))


def _instances(node: Instance, scope: _Scope) -> isl.Set:
    coordinates = isl.Map.from_domain_and_range(scope.points, isl.Set("{ [] }"))
    for argument in node.arguments:
        value = isl.Map.from_pw_aff(_value(argument, scope))
        coordinates = coordinates.flat_range_product(value)
    return coordinates.range().set_tuple_name(node.statement)


def _value(expression: IntExpression, scope: _Scope) -> isl.PwAff:
    match expression:
        case Number(value=value):
            zero = isl.Aff.zero_on_domain(scope.local_space)
            return isl.PwAff.from_aff(zero.add_constant_val(isl.Val(value)))
        case Name(name=name):
            return isl.PwAff.from_aff(_variable(name, scope))
        case Operation(operator="?", operands=(condition, then, otherwise)):
            holds = _holds(condition, scope)
            chosen = _value(then, scope).intersect_domain(holds)
            return chosen.union_max(_value(otherwise, scope).intersect_domain(holds.complement()))
        case Operation(operator=operator, operands=operands):
            return _arithmetic(operator, [_value(operand, scope) for operand in operands])


def _variable(name: str, scope: _Scope) -> isl.Aff:
    if name in scope.iterators:
        position = len(scope.iterators) - 1 - scope.iterators[::-1].index(name)
        return isl.Aff.var_on_domain(scope.local_space, _DIM.set, position)
    parameter = scope.points.find_dim_by_name(_DIM.param, scope.parameters[name])
    return isl.Aff.var_on_domain(scope.local_space, _DIM.param, parameter)


def _arithmetic(operator: str, values: list[isl.PwAff]) -> isl.PwAff:
    if operator == "-" and len(values) == 1:
        return values[0].neg()
    return reduce(_OPERATORS[operator], values)


_OPERATORS = {
    "+": isl.PwAff.add,
    "-": isl.PwAff.sub,
    "*": isl.PwAff.mul,
    "/": isl.PwAff.tdiv_q,
    "%": isl.PwAff.tdiv_r,
    "floor": lambda a, b: a.div(b).floor(),
    "min": isl.PwAff.min,
    "max": isl.PwAff.max,
}
_COMPARISONS = {
    "<": isl.PwAff.lt_set,
    "<=": isl.PwAff.le_set,
    ">": isl.PwAff.gt_set,
    ">=": isl.PwAff.ge_set,
    "==": isl.PwAff.eq_set,
}


def _holds(condition: IntExpression, scope: _Scope) -> isl.Set:
    match condition:
        case Operation(operator="and", operands=operands):
            return reduce(isl.Set.intersect, (_holds(operand, scope) for operand in operands))
        case Operation(operator="or", operands=operands):
            return reduce(isl.Set.union, (_holds(operand, scope) for operand in operands))
        case Operation(operator=operator, operands=(a, b)) if operator in _COMPARISONS:
            return _COMPARISONS[operator](_value(a, scope), _value(b, scope))
        case _:
            return _value(condition, scope).non_zero_set()
