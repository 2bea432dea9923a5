"""The points that loops reach, and the values of integers there, with C's arithmetic, as isl has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import islpy as isl

from polyloom.polyhedra.functions import isl_integer
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class Scope:
    """``points``: ``[parameters] -> { [iterators] }`` that are reached; ``iterators``: their names.

    ``parameters``: names in the text to isl's. What a text says that isl has no word for (a product of
    iterators) is an ``isl.Error``, and a name that is not known a KeyError.
    """

    points: isl.Set
    iterators: tuple[str, ...]
    parameters: Mapping[str, str]

    @staticmethod
    def outside(context: isl.Set, renamed: Mapping[str, str] | None = None) -> Scope:
        """Return the scope where there are no loops; ``renamed``: isl's parameters to names in the text."""
        renamed = renamed or {}
        count = context.dim(_DIM.param)
        names = [context.get_dim_name(_DIM.param, k) or "" for k in range(count)]
        return Scope(isl.Set.from_params(context), (), {renamed.get(name, name): name for name in names})

    @staticmethod
    def of_names(names: Sequence[str]) -> Scope:
        """Return the scope where any integers have these names."""
        return Scope.outside(isl.Set(f"[{', '.join(names)}] -> {{ : }}"))

    def restricted(self, to: isl.Set) -> Scope:
        """Return the scope of those points that are in a set, too."""
        return replace(self, points=self.points.intersect(to))

    def where(self, condition: IntExpression, *, holds: bool = True) -> Scope:
        """Return the scope inside a branch."""
        chosen = self.holds(condition)
        return self.restricted(chosen if holds else chosen.complement())

    def with_any(self, iterator: str) -> Scope:
        """Return the scope with one integer more, of which nothing is known."""
        points = self.points.insert_dims(_DIM.set, len(self.iterators), 1)
        return replace(self, points=points, iterators=(*self.iterators, iterator))

    def with_value(self, name: str, value: IntExpression) -> Scope:
        """Return the scope with one integer more, whose value is known."""
        inner = self.with_any(name)
        # the value is one of the scope without the name
        outer = replace(inner, iterators=(*self.iterators, ""))
        return inner.restricted(inner.value(Name(name)).eq_set(outer.value(value)))

    def inside(
        self, iterator: str, start: IntExpression, condition: IntExpression, step: IntExpression
    ) -> Scope:
        """Return the scope inside a loop."""
        inner = self.with_any(iterator)
        outer = replace(inner, iterators=(*self.iterators, ""))
        distance = inner.value(Name(iterator)).sub(outer.value(start))
        if isinstance(step, Number) and step.value < 0:
            distance, step = distance.neg(), Number(-step.value)
        reached = distance.nonneg_set().intersect(distance.tdiv_r(inner.value(step)).zero_set())
        return inner.restricted(reached.intersect(inner.holds(condition)))

    def tuples(self, name: str, coordinates: Sequence[IntExpression | None]) -> isl.Map:
        """Return ``{ [iterators] -> name[coordinates] }`` at the points; None is any integer."""
        found = isl.Map.from_domain_and_range(self.points, isl.Set("{ [] }"))
        for coordinate in coordinates:
            value = self._anything() if coordinate is None else isl.Map.from_pw_aff(self.value(coordinate))
            found = found.flat_range_product(value)
        return found.set_tuple_name(_DIM.out, name)

    def _anything(self) -> isl.Map:
        return isl.Map.from_domain_and_range(self.points, isl.Set("{ [x] }"))

    def value(self, expression: IntExpression) -> isl.PwAff:
        """Return the value of an expression at each point."""
        match expression:
            case Number(value=value):
                zero = isl.Aff.zero_on_domain(self._local_space)
                return isl.PwAff.from_aff(zero.add_constant_val(isl_integer(value)))
            case Name(name=name):
                return isl.PwAff.from_aff(self._variable(name))
            case Operation(operator="?", operands=(condition, then, otherwise)):
                holds = self.holds(condition)
                chosen = self.value(then).intersect_domain(holds)
                return chosen.union_max(self.value(otherwise).intersect_domain(holds.complement()))
            case Operation(operator="-", operands=(a,)):
                return self.value(a).neg()
            case Operation(operator=operator, operands=operands):
                return reduce(_OPERATORS[operator], (self.value(operand) for operand in operands))

    @property
    def _local_space(self) -> isl.LocalSpace:
        return isl.LocalSpace.from_space(self.points.get_space())

    def _variable(self, name: str) -> isl.Aff:
        if name in self.iterators:
            position = len(self.iterators) - 1 - self.iterators[::-1].index(name)
            return isl.Aff.var_on_domain(self._local_space, _DIM.set, position)
        parameter = self.points.find_dim_by_name(_DIM.param, self.parameters[name])
        return isl.Aff.var_on_domain(self._local_space, _DIM.param, parameter)

    def holds(self, condition: IntExpression) -> isl.Set:
        """Return where a condition holds, also outside of the points."""
        match condition:
            case Operation(operator="and", operands=operands):
                return reduce(isl.Set.intersect, map(self.holds, operands))
            case Operation(operator="or", operands=operands):
                return reduce(isl.Set.union, map(self.holds, operands))
            case Operation(operator="not", operands=(a,)):
                return self.holds(a).complement()
            case Operation(operator=operator, operands=(a, b)) if operator in _COMPARISONS:
                return _COMPARISONS[operator](self.value(a), self.value(b))
            case _:
                return self.value(condition).non_zero_set()


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
    "!=": isl.PwAff.ne_set,
}
