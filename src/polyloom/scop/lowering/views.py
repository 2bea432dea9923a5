"""Accesses and values of statements in other coordinates: the views of host programs.

``coordinates``: ``{ [y] -> S[x] }``, which instance of a statement a point of the new box is; its constant
terms may hold parameters and host iterators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import islpy as isl

from polyloom.ir.expressions import Expression, Iterator, Read
from polyloom.ir.host import Index, View
from polyloom.ir.rebuild import Leaf, with_leaves
from polyloom.ir.types import ElementType
from polyloom.polyhedra.functions import function_of
from polyloom.polyhedra.loops.affine_expressions import affine_value
from polyloom.polyhedra.loops.generate import CodeBuilder
from polyloom.polyhedra.loops.tree import IntExpression, Name, Operation
from polyloom.scop.model import ScopAccess
from polyloom.scop.rewrite import integer_expression

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class Frame:
    """The coordinates of a node: ``points`` is ``{ [y] }``, ``names`` are those of the y."""

    coordinates: isl.MultiAff
    points: isl.Set
    names: tuple[str, ...]

    def view(self, access: ScopAccess, reads: Mapping[int, int]) -> View:
        """Return the elements that an access touches; ``reads``: new positions of the statement's reads."""
        computed = dict(access.computed)
        indices = tuple(
            self.expression(computed[k], reads) if k in computed else self._index(access.relation, k)
            for k in range(access.relation.dim(_DIM.out))
        )
        return View(access.array, indices, access.span)

    def expression(self, expression: Expression, reads: Mapping[int, int]) -> Expression:
        """Return a statement's expression with iterators of the node and other read positions."""

        def leaf(part: Leaf) -> Expression:
            match part:
                case Read(position=position, type=type_):
                    return Read(reads[position], type_)
                case Iterator(dimension=k, type=type_):
                    value = affine_value(self.coordinates.get_at(k), self.arguments)
                    return integer_expression(value, self.positions, type_, counted=self.counted)
                case _:
                    return part

        return with_leaves(expression, leaf)

    @property
    def arguments(self) -> tuple[IntExpression, ...]:
        """The iterators as integer expressions."""
        return tuple(Name(name) for name in self.names)

    @cached_property
    def counted(self) -> bool:
        """Whether no iterator is ever below zero."""
        positive = isl.Set.nat_universe(self.points.get_space())
        return bool(self.points.is_subset(positive))

    @property
    def positions(self) -> dict[str, int]:
        """The dimension of each iterator."""
        return {name: k for k, name in enumerate(self.names)}

    def _index(self, relation: isl.Map, k: int) -> Index | Expression:
        """Return one index of an access: affine where it is, else an expression with conditions.

        Where the access is not used, and its element may not exist, the index is 0; it goes on as it is where
        it only takes values there that it takes elsewhere, too, or 0.
        """
        last = relation.dim(_DIM.out) - 1
        line = relation.project_out(_DIM.out, k + 1, last - k).project_out(_DIM.out, 0, k)
        here = line.apply_domain(isl.Map.from_multi_aff(self.coordinates).reverse())
        function = function_of(here.intersect_domain(self.points)).get_pw_aff(0).coalesce()
        unused = self.points.subtract(function.domain())
        zero = isl.Aff.zero_on_domain(_local(self.points))
        pieces = function.gist(self.points).get_pieces()
        if not unused.is_empty():
            pieces = [*function.get_pieces(), (unused, zero)]
            if len(pieces) == 2 and _goes_on(pieces[0][1], function.domain(), unused):
                return _affine_index(pieces[0][1], self)
        pieces = [piece for piece in pieces if not piece[0].is_disjoint(self.points)]
        if len(pieces) <= 1:
            return _affine_index(pieces[0][1] if pieces else zero, self)
        return integer_expression(
            _choice(pieces, self), self.positions, ElementType.INT64, counted=self.counted
        )


def _local(points: isl.Set) -> isl.LocalSpace:
    return isl.LocalSpace.from_space(points.get_space())


def _goes_on(aff: isl.Aff, used: isl.Set, unused: isl.Set) -> bool:
    """Return whether a function has other values nowhere than where it is used, but for 0."""
    line = isl.Map.from_aff(aff)
    zero = isl.Map.from_aff(isl.Aff.zero_on_domain(aff.get_domain_local_space()))
    return bool(unused.apply(line).is_subset(used.apply(line).union(unused.apply(zero))))


def _affine_index(aff: isl.Aff, at: Frame) -> Index | Expression:
    arguments = at.arguments
    coefficients = [aff.get_coefficient_val(_DIM.in_, k) for k in range(len(arguments))]
    linear = all(c.is_int() for c in coefficients) and not _divides_iterators(aff)
    if not linear:
        value = affine_value(aff, arguments)
        return integer_expression(value, at.positions, ElementType.INT64, counted=at.counted)
    rest = aff
    for k in range(len(arguments)):
        rest = rest.set_coefficient_val(_DIM.in_, k, isl.Val(0))
    return Index(tuple(int(c.to_python()) for c in coefficients), affine_value(rest, arguments))


def _divides_iterators(aff: isl.Aff) -> bool:
    used = (k for k in range(aff.dim(_DIM.div)) if not aff.get_coefficient_val(_DIM.div, k).is_zero())
    return any(aff.get_div(k).involves_dims(_DIM.in_, 0, aff.dim(_DIM.in_)) for k in used)


def _choice(pieces: Sequence[tuple[isl.Set, isl.Aff]], frame: Frame) -> IntExpression:
    """Return ``condition ? value : ...`` over the pieces of a function; the last needs no condition."""
    *others, (_, last) = pieces
    result = affine_value(last, frame.arguments)
    for where, aff in reversed(others):
        condition = condition_of(where, frame.points, frame.names)
        if condition is None:
            return affine_value(aff, frame.arguments)
        result = Operation("?", (condition, affine_value(aff, frame.arguments), result))
    return result


def condition_of(holds: isl.Set, known: isl.Set, names: Sequence[str]) -> IntExpression | None:
    """Return when ``{ [y] : holds }`` for a point of ``known``, over the y and the parameters.

    None where it always does.
    """
    if known.is_subset(holds):
        return None
    bound, given = (_as_parameters(points, names) for points in (holds, known))
    return CodeBuilder(given, {}).condition(bound)


def _as_parameters(points: isl.Set, names: Sequence[str]) -> isl.Set:
    """Return ``{ [i, j] : ... }`` as ``[i, j] -> { : ... }``."""
    if not names:
        return points.params()
    text = ", ".join(names)
    universe = isl.Set(f"[{text}] -> {{ [{text}] }}")
    return points.intersect(universe).params()
