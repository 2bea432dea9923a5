"""Statements of tensor programs as the md_homs that they are.

    dx[w + r] += dy[w] * W[r]       dx[w + r] . md_hom(dy[w] * W[r], (++, +)), starting from dx[w + r]

A statement is an md_hom with one output, extents and offsets that are numbers, one operator for all
dimensions that are reduced, and the neutral element in all of its output before it starts. What is said of
md_homs (evaluation, rounding) is thereby said of statements. The back ends of md_homs take a narrower form,
in which points that reduced dimensions tell apart write one element (``conversion/to_host_program``).
"""

from __future__ import annotations

from dataclasses import replace

from polyloom.ir.expressions import Binary, Read
from polyloom.ir.host import CombineOperator, Combiner, Index, MdHom, Order, View
from polyloom.ir.order import loops_of
from polyloom.ir.program import Combine, Statement
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, sum_of

KEPT = CombineOperator(Order.CONCATENATE)


def neutral(reduction: Combine, kind: ElementType) -> float | int:
    """Return what a reduction starts from, a number of the element type; 0 for ``++``."""
    match reduction:
        case Combine.CONCATENATE | Combine.ADD:
            return 0.0 if kind.is_float else 0
        case Combine.MULTIPLY:
            return 1.0 if kind.is_float else 1
        case Combine.MAXIMUM:
            return kind.lowest
        case Combine.MINIMUM:
            return kind.highest


def combiner(reduction: Combine, kind: ElementType) -> Combiner:
    """Return a reduction's operator on elements of a type."""
    operator = reduction.operator
    assert operator is not None, reduction
    result = Binary(operator, Read(0, kind), Read(1, kind))
    return Combiner(name=reduction.value, results=(result,), neutral=(neutral(reduction, kind),))


def md_hom_of(statement: Statement) -> MdHom:
    """Return the md_hom of a statement, which starts from what its output holds.

    A reduction that reduces no dimension (``y[2*i] += x[i]``) gets one, of a single point.
    """
    kind = statement.expression.type
    names, extents, operators = statement.iterators, statement.domain, (KEPT,) * len(statement.domain)
    reduces = statement.reduction is not Combine.CONCATENATE
    if reduces:
        reduced = CombineOperator(Order.POINTWISE, combiner(statement.reduction, kind))
        met = {*lost_dimensions(statement), *(loop.dimension for loop in loops_of(statement))}
        operators = tuple(reduced if k in met else KEPT for k in range(len(extents)))
        if not met:
            names, extents, operators = (*names, _fresh(names)), (*extents, 1), (*operators, reduced)
    accesses = (*statement.reads, *((statement.write,) if reduces else ()))
    return MdHom(
        name=statement.name,
        iterators=names,
        extents=tuple(map(Number, extents)),
        inputs=tuple(_view(access, len(extents)) for access in accesses),
        outputs=(_view(statement.write, len(extents)),),
        terms=(statement.expression,),
        combine=operators,
        initial=(Read(len(statement.reads), kind) if reduces else None,),
        finish=(None,),
        guard=guard_of(statement),
        span=statement.span,
    )


def lost_dimensions(statement: Statement) -> tuple[int, ...]:
    """Return the dimensions that no index of the write uses."""
    indices = statement.write.affine
    return tuple(k for k in range(len(statement.domain)) if not any(i.coefficients[k] for i in indices))


def _fresh(names: tuple[str, ...]) -> str:
    return "_" + max((*names, ""), key=len)


def _view(access: View, dimensions: int) -> View:
    """Return the view with a coefficient for each of so many dimensions, the last ones of no influence."""
    pairs = ((i, (0,) * (dimensions - len(i.coefficients))) for i in access.affine)
    return replace(access, indices=tuple(Index((*i.coefficients, *rest), i.offset) for i, rest in pairs))


def guard_of(statement: Statement) -> IntExpression | None:
    """Return a statement's guard as one condition; None where it has none."""
    conditions = tuple(_at_least_zero(g, statement) for g in statement.guard)
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else Operation("and", conditions)


def _at_least_zero(affine: Index, statement: Statement) -> IntExpression:
    pairs = zip(affine.coefficients, statement.iterators, strict=True)
    terms: list[tuple[int, IntExpression]] = [(c, Name(name)) for c, name in pairs if c]
    return Operation(">=", (sum_of([*terms, (1, Number(affine.constant))]), Number(0)))
