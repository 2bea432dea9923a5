"""Loops and integer expressions from sets, by isl's AST generator, as small immutable trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

_DIM = isl.dim_type


@dataclass(frozen=True)
class Number:
    """An integer."""

    value: int


@dataclass(frozen=True)
class Name:
    """A variable or parameter."""

    name: str


@dataclass(frozen=True)
class Operation:
    """An operator (``+``, ``floor``, ``min``, ``and``, ...) applied to integers or truth values."""

    operator: str
    operands: tuple[IntExpression, ...]


IntExpression = Number | Name | Operation


@dataclass(frozen=True)
class Loop:
    """``for (iterator = start; condition; iterator += step) body``."""

    iterator: str
    start: IntExpression
    condition: IntExpression
    step: IntExpression
    body: Tree


@dataclass(frozen=True)
class Branch:
    """``if (condition) body else otherwise``."""

    condition: IntExpression
    body: Tree
    otherwise: Tree


@dataclass(frozen=True)
class Instance:
    """One instance of a statement, with the coordinates of its domain."""

    statement: str
    arguments: tuple[IntExpression, ...]


Tree = tuple[Loop | Branch | Instance, ...]

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


@dataclass(frozen=True, eq=False)
class CodeBuilder:
    """Makes loops and expressions where the parameters satisfy ``context``.

    ``names`` renames parameters (``index_0`` to ``dy_index_0``).
    """

    context: isl.Set
    names: Mapping[str, str]

    def loops(self, schedule: isl.UnionMap) -> Tree:
        """Return loops that visit the schedule's domain in the lexicographic order of its range.

        isl confuses parameters whose order is not that of the context, so they are aligned first.
        """
        build = isl.AstBuild.from_context(self.context)
        aligned = schedule.align_params(self.context.get_space()).intersect_params(self.context)
        return tuple(self._tree(build.node_from_schedule_map(aligned)))

    def condition(self, holds: isl.Set) -> IntExpression | None:
        """Return when a parameter set holds, given the context; None where it always does."""
        aligned = holds.params().align_params(self.context.get_space())
        needed = aligned.gist(self.context).coalesce()
        if self.context.is_subset(aligned):
            return None
        build = isl.AstBuild.from_context(self.context)
        return self._expression(build.expr_from_set(needed))

    def value(self, function: isl.PwAff) -> IntExpression:
        """Return the value of a function of the parameters, given the context."""
        aligned = function.align_params(self.context.get_space())
        known = self.context.align_params(aligned.domain().get_space())
        simplified = aligned.intersect_params(known).coalesce().gist_params(known)
        build = isl.AstBuild.from_context(self.context)
        return self._expression(build.expr_from_pw_aff(simplified))

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

    def _tree(self, node: isl.AstNode) -> Iterator[Loop | Branch | Instance]:
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

    def _for(self, node: isl.AstNode) -> Iterator[Loop | Branch | Instance]:
        iterator = node.for_get_iterator().get_id().get_name()
        start = self._expression(node.for_get_init())
        body = tuple(self._tree(node.for_get_body()))
        if node.for_is_degenerate():
            yield from substitute(body, iterator, start)
            return
        condition = _below(self._expression(node.for_get_cond()))
        yield Loop(iterator, start, condition, self._expression(node.for_get_inc()), body)

    def _expression(self, expression: isl.AstExpr) -> IntExpression:
        kind = _kind(expression.get_type())
        if kind == "int":
            return Number(int(expression.get_val().to_python()))
        if kind == "id":
            name = expression.get_id().get_name()
            return Name(self.names.get(name, name))
        operands = tuple(self._expression(expression.get_op_arg(k)) for k in range(expression.get_op_n_arg()))
        return _tidy(Operation(_OPERATORS[_kind(expression.get_op_type())], operands))


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


def sum_of(terms: Sequence[tuple[int, IntExpression]]) -> IntExpression:
    """Return ``c0 * e0 + c1 * e1 + ...`` as a person writes it.

    Sums inside sums are taken apart, equal terms and numbers added up; what is added comes before what is
    taken off, a number last, but first where nothing else is added: ``2 * i - j + 3``, ``15 - i``.
    """
    parts, constant = _collected(terms)
    parts.sort(key=lambda part: part[0] < 0)
    if constant > 0 and not any(coefficient > 0 for coefficient, _ in parts):
        parts.insert(0, (1, Number(constant)))
    elif constant or not parts:
        parts.append((1 if constant >= 0 else -1, Number(abs(constant))))
    result = _scaled(*parts[0])
    for coefficient, term in parts[1:]:
        sign = "+" if coefficient > 0 else "-"
        result = Operation(sign, (result, _scaled(abs(coefficient), term)))
    return result


def _tidy(expression: Operation) -> IntExpression:
    """Write sums as ``sum_of`` does."""
    return sum_of([(1, expression)]) if expression.operator in ("+", "-", "*") else expression


def _collected(terms: Sequence[tuple[int, IntExpression]]) -> tuple[list[tuple[int, IntExpression]], int]:
    """Return the coefficient of each term that is no sum, in order, and the constant."""
    coefficients: dict[IntExpression, int] = {}
    constant = 0
    for coefficient, expression in terms:
        for factor, term in _terms(expression):
            if isinstance(term, Number):
                constant += coefficient * factor * term.value
            else:
                coefficients[term] = coefficients.get(term, 0) + coefficient * factor
    return [(c, term) for term, c in coefficients.items() if c], constant


def _terms(expression: IntExpression) -> Iterator[tuple[int, IntExpression]]:
    """Yield coefficients and terms whose sum the expression is."""
    match expression:
        case Operation(operator="+" | "-" as sign, operands=(first, *rest)):
            yield from _times(-1 if sign == "-" and not rest else 1, first)
            for operand in rest:
                yield from _times(-1 if sign == "-" else 1, operand)
        case Operation(operator="*", operands=(Number(value=factor), operand)):
            yield from _times(factor, operand)
        case Operation(operator="*", operands=(operand, Number(value=factor))):
            yield from _times(factor, operand)
        case _:
            yield 1, expression


def _times(factor: int, expression: IntExpression) -> Iterator[tuple[int, IntExpression]]:
    return ((factor * coefficient, term) for coefficient, term in _terms(expression))


def product_of(factors: Sequence[IntExpression]) -> IntExpression:
    """Return the product, numbers folded."""
    constant = 1
    result: IntExpression | None = None
    for factor in factors:
        if isinstance(factor, Number):
            constant *= factor.value
        else:
            result = factor if result is None else Operation("*", (result, factor))
    if result is None:
        return Number(constant)
    return result if constant == 1 else Operation("*", (Number(constant), result))


def _scaled(coefficient: int, term: IntExpression) -> IntExpression:
    if coefficient == 1:
        return term
    if isinstance(term, Number):
        return Number(coefficient * term.value)
    if coefficient == -1:
        return Operation("-", (term,))
    return Operation("*", (Number(coefficient), term))


def substitute(tree: Tree, name: str, value: IntExpression) -> Tree:
    """Replace a variable in a tree."""
    return tuple(_substitute_node(node, name, value) for node in tree)


def _substitute_node(
    node: Loop | Branch | Instance, name: str, value: IntExpression
) -> Loop | Branch | Instance:
    def inside(expression: IntExpression) -> IntExpression:
        return replace_name(expression, name, value)

    match node:
        case Loop(iterator=iterator, start=start, condition=condition, step=step, body=body):
            return Loop(
                iterator, inside(start), inside(condition), inside(step), substitute(body, name, value)
            )
        case Branch(condition=condition, body=body, otherwise=otherwise):
            return Branch(
                inside(condition), substitute(body, name, value), substitute(otherwise, name, value)
            )
        case Instance(statement=statement, arguments=arguments):
            return Instance(statement, tuple(inside(argument) for argument in arguments))


def rename_iterator(tree: Tree, iterator: str, name: str) -> Tree:
    """Call the loops over ``iterator``, and what stands in them, by another name."""

    def renamed(node: Loop | Branch | Instance) -> Loop | Branch | Instance:
        match node:
            case Loop():
                same = node.iterator == iterator
                body = rename_iterator(node.body, iterator, name)
                return Loop(name if same else node.iterator, node.start, node.condition, node.step, body)
            case Branch():
                body = rename_iterator(node.body, iterator, name)
                return Branch(node.condition, body, rename_iterator(node.otherwise, iterator, name))
            case Instance():
                return node

    return substitute(tuple(renamed(node) for node in tree), iterator, Name(name))


def instances_in(tree: Tree) -> Iterator[Instance]:
    """Yield the statement instances of a tree."""
    for node in tree:
        match node:
            case Loop(body=body):
                yield from instances_in(body)
            case Branch(body=body, otherwise=otherwise):
                yield from instances_in((*body, *otherwise))
            case Instance():
                yield node


def replace_name(expression: IntExpression, name: str, value: IntExpression) -> IntExpression:
    """Replace a variable in an expression."""
    match expression:
        case Name(name=found):
            return value if found == name else expression
        case Operation(operator=operator, operands=operands):
            replaced = Operation(operator, tuple(replace_name(o, name, value) for o in operands))
            return _tidy(replaced)
        case _:
            return expression


def names_in(expression: IntExpression) -> frozenset[str]:
    """Return the variables of an expression."""
    match expression:
        case Name(name=name):
            return frozenset({name})
        case Operation(operands=operands):
            return frozenset(n for o in operands for n in names_in(o))
        case _:
            return frozenset()


def operation_count(expression: IntExpression) -> int:
    """Return the number of operations that evaluating an expression takes."""
    if isinstance(expression, Operation):
        return max(1, len(expression.operands) - 1) + sum(operation_count(o) for o in expression.operands)
    return 0
