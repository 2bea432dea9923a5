"""Loops and integer expressions from sets, by isl's AST generator, as small immutable trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from polyloom.polyhedra.binding import bind_range
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.effort import remembered
from polyloom.polyhedra.functions import function_of
from polyloom.polyhedra.loops.floors import other_forms
from polyloom.polyhedra.loops.meaning import visited, visited_in_order
from polyloom.polyhedra.loops.tree import (
    Branch,
    Instance,
    IntExpression,
    Loop,
    Name,
    Number,
    Operation,
    Part,
    Tree,
    names_in,
    operation_count,
    product_of,
    rename_iterator,
    replace_name,
    substitute,
    sum_of,
    tidy,
)

__all__ = [
    "Branch",
    "CodeBuilder",
    "Instance",
    "IntExpression",
    "Loop",
    "Name",
    "Number",
    "Operation",
    "Tree",
    "names_in",
    "operation_count",
    "product_of",
    "rename_iterator",
    "replace_name",
    "substitute",
    "sum_of",
]

_DIM = isl.dim_type


_OPERATORS = {
    "and_": "and",
    "and_then": "and",
    "or_": "or",
    "or_else": "or",
    "max": "max",
    "min": "min",
    "minus": "-",
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "fdiv_q": "floor",
    "pdiv_q": "/",
    "pdiv_r": "%",
    "zdiv_r": "%",
    "cond": "?",
    "select": "?",
    "eq": "==",
    "le": "<=",
    "lt": "<",
    "ge": ">=",
    "gt": ">",
}


_MOST_PIECES = 4
"""Of a function that may be the smallest or largest of its pieces."""


class WrongLoops(Exception):  # an internal fault: no loops could be proved to visit a set
    """The text is the schedule."""


def _nested_pairs(operator: str, values: Iterator[IntExpression]) -> IntExpression:
    result = next(values)
    for value in values:
        result = Operation(operator, (result, value))
    return result


@dataclass(frozen=True, eq=False)
class CodeBuilder:
    """Makes loops and expressions where the parameters satisfy ``context``.

    ``names`` renames parameters (``index_0`` to ``dy_index_0``).
    """

    context: isl.Set
    names: Mapping[str, str]

    @remembered
    def loops(self, schedule: isl.UnionMap) -> Tree:
        """Return loops that visit the schedule's domain in the lexicographic order of its range.

        isl confuses parameters whose order is not that of the context, so they are aligned first. What
        isl makes is proved (statements with strides come out of order); where it is wrong, loops over
        the bounding box with a condition inside do.
        """
        aligned = schedule.align_params(self.context.get_space()).intersect_params(self.context)
        for make in (self._scanning, self._filtering):
            tree = make(aligned)
            if self._visits(tree, aligned):
                return tree
        raise WrongLoops(str(aligned))

    def _scanning(self, schedule: isl.UnionMap) -> Tree:
        build = isl.AstBuild.from_context(self.context)
        return tuple(self._tree(build.node_from_schedule_map(schedule)))

    def _filtering(self, schedule: isl.UnionMap) -> Tree:
        """Return loops over the box of all schedule points, with the instances of each point inside."""
        maps: list[isl.Map] = []
        schedule.foreach_map(maps.append)
        bounds = integer_bounds(isl.Set.from_union_set(schedule.range()))
        names = [f"c{k}" for k in range(len(bounds))]
        tree: Tree = tuple(self._at_point(relation, names) for relation in maps)
        for name, (low, high) in zip(reversed(names), reversed(bounds), strict=True):
            condition = Operation("<", (Name(name), Number(high + 1)))
            tree = (Loop(iterator=name, start=Number(low), condition=condition, step=Number(1), body=tree),)
        return tree

    def _at_point(self, relation: isl.Map, names: Sequence[str]) -> Part:
        """Return the instance that a schedule maps to the point ``names``, if there is one."""
        here = bind_range(relation, names)
        inner = CodeBuilder(self.context.align_params(here.get_space().params()), self.names)
        point = function_of(here)
        coordinates = (inner.value(point.get_pw_aff(k)) for k in range(here.dim(_DIM.set)))
        instance = Instance(here.get_tuple_name() or "", tuple(coordinates))
        condition = inner.condition(here)
        return instance if condition is None else Branch(condition, (instance,), ())

    def _visits(self, tree: Tree, schedule: isl.UnionMap) -> bool:
        """Whether loops visit what a schedule says, in its order; of one statement isl has it right."""
        if not visited(tree, self.context, self.names).is_equal(schedule.domain()):
            return False
        return schedule.n_map() < 2 or visited_in_order(tree, schedule, self.context, self.names)

    @remembered
    def condition(self, holds: isl.Set) -> IntExpression | None:
        """Return when a parameter set holds, given the context; None where it always does."""
        aligned = holds.params().align_params(self.context.get_space())
        needed = aligned.gist(self.context).coalesce()
        if self.context.is_subset(aligned):
            return None
        build = isl.AstBuild.from_context(self.context)
        return self._expression(build.expr_from_set(needed))

    @remembered
    def value(self, function: isl.PwAff) -> IntExpression:
        """Return the value of a function of the parameters, given the context.

        Where one is cheaper, the smallest or largest of the pieces in place of a choice by conditions:
        ``index <= 12 ? 0 : index - 13`` is ``max(0, index - 13)``.
        """
        aligned = function.align_params(self.context.get_space())
        known = self.context.align_params(aligned.domain().get_space())
        simplified = aligned.intersect_params(known).coalesce().gist_params(known)
        build = isl.AstBuild.from_context(self.context)
        choice = self._expression(build.expr_from_pw_aff(simplified))
        if simplified.n_piece() == 1:
            return self._with_few_operations(choice, simplified, build)
        extremes = self._extremes(aligned.intersect_params(known), simplified, build)
        return min((choice, *extremes), key=operation_count)

    def _with_few_operations(
        self, written: IntExpression, function: isl.PwAff, build: isl.AstBuild
    ) -> IntExpression:
        """Return how a function's floor divisions take fewest operations, isl's way at a tie."""
        pieces: list[isl.Aff] = []
        function.foreach_piece(lambda _, piece: pieces.append(piece))
        best = written
        for form in other_forms(pieces[0]):
            rest, term = (isl.PwAff.from_aff(part) for part in (form.rest, form.term))
            around, inside = (self._expression(build.expr_from_pw_aff(part)) for part in (rest, term))
            around = self._with_few_operations(around, rest, build)
            found = sum_of([(1, around), (form.factor, inside)])
            best = min((best, found), key=operation_count)
        return best

    def _extremes(
        self, exact: isl.PwAff, simplified: isl.PwAff, build: isl.AstBuild
    ) -> Iterator[IntExpression]:
        """Yield the minimum and the maximum of a function's pieces, where they are the function."""
        pieces: list[isl.Aff] = []
        simplified.foreach_piece(lambda _, piece: pieces.append(piece))
        if not 2 <= len(pieces) <= _MOST_PIECES:
            return
        functions = [isl.PwAff.from_aff(piece) for piece in pieces]
        for operator, combine in (("min", isl.PwAff.min), ("max", isl.PwAff.max)):
            together = reduce(combine, functions).intersect_domain(exact.domain())
            if together.is_equal(exact):
                values = (self._expression(build.expr_from_pw_aff(function)) for function in functions)
                yield _nested_pairs(operator, values)

    def affine(self, aff: isl.Aff, arguments: Sequence[IntExpression]) -> IntExpression:
        """Return the value of a function that is linear in its domain's variables at given arguments."""
        rest = aff
        terms: list[tuple[int, IntExpression]] = []
        for k, argument in enumerate(arguments):
            coefficient = int(aff.get_coefficient_val(_DIM.in_, k).to_python())
            rest = rest.set_coefficient_val(_DIM.in_, k, isl.Val(0))
            terms.append((coefficient, argument))
        constant = isl.PwAff.from_aff(rest.drop_dims(_DIM.in_, 0, len(arguments)))
        return sum_of([*terms, (1, self.value(_on_parameters(constant)))])

    def _tree(self, node: isl.AstNode) -> Iterator[Part]:
        kind = _kind(node.get_type())
        if kind == "block":
            children = node.block_get_children()
            for k in range(children.n_ast_node()):
                yield from self._tree(children.get_ast_node(k))
        elif kind == "for_":
            yield from self._for(node)
        elif kind == "if_":
            otherwise = tuple(self._tree(node.if_get_else_node())) if node.if_has_else_node() else ()
            body = tuple(self._tree(node.if_get_then_node()))
            yield Branch(self._expression(node.if_get_cond()), body, otherwise)
        else:
            call = node.user_get_expr()
            arguments = (self._expression(call.get_op_arg(k)) for k in range(1, call.get_op_n_arg()))
            yield Instance(call.get_op_arg(0).get_id().get_name(), tuple(arguments))

    def _for(self, node: isl.AstNode) -> Iterator[Part]:
        iterator = node.for_get_iterator().get_id().get_name()
        start = self._expression(node.for_get_init())
        body = tuple(self._tree(node.for_get_body()))
        if node.for_is_degenerate():
            yield from substitute(body, iterator, start)
            return
        condition = _below(self._expression(node.for_get_cond()))
        yield Loop(
            iterator=iterator,
            start=start,
            condition=condition,
            step=self._expression(node.for_get_inc()),
            body=body,
        )

    def _expression(self, expression: isl.AstExpr) -> IntExpression:
        kind = _kind(expression.get_type())
        if kind == "int":
            return Number(int(expression.get_val().to_python()))
        if kind == "id":
            name = expression.get_id().get_name()
            return Name(self.names.get(name, name))
        operands = tuple(self._expression(expression.get_op_arg(k)) for k in range(expression.get_op_n_arg()))
        return tidy(Operation(_OPERATORS[_kind(expression.get_op_type())], operands))


def _below(condition: IntExpression) -> IntExpression:
    """Write ``i <= 9`` as ``i < 10``."""
    match condition:
        case Operation(operator="<=", operands=(Name() as iterator, Number(value=last))):
            return Operation("<", (iterator, Number(last + 1)))
        case _:
            return condition


def _kind(value: object) -> str:
    """Return the name of a member of one of isl's enumerations."""
    return str(value).rpartition(".")[2]


def _on_parameters(function: isl.PwAff) -> isl.PwAff:
    return function if function.get_domain_space().is_params() else function.project_domain_on_params()
