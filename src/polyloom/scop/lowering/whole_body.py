"""The md_hom that md_poly generates automatically: the scalar function holds all statements of the loop body.

    C[i][j] = 0;                               S1        f(i, j, k, A_i_k, B_k_j, C_i_j):
    for (k = 0; k < K; k++)                                if (k == 0) C_i_j = 0;
      C[i][j] += A[i][k] * B[k][j];            S2          C_i_j += A_i_k * B_k_j;
                                                           return C_i_j;

Dimensions that the output view does not use are serial: they have the Unknown Combine Operator.

Source: md_poly, Sec. 3.2.2, Listing 2, and its solution 1. Unlike the paper, a statement outside the
innermost loop is only moved into it where that loop runs at least once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import islpy as isl

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Expression,
    Read,
    Select,
    has_procedure,
    walk,
)
from polyloom.ir.expressions import Iterator as IteratorValue
from polyloom.ir.host import CombineOperator, Index, MdHom, Order
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.types import ElementType
from polyloom.polyhedra.bounds import least_coordinate
from polyloom.scop.lowering.conditional_stores import stores_where_asked_only
from polyloom.scop.lowering.md_homs import hom
from polyloom.scop.model import Scop, ScopAccess, ScopStatement

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class Automatic:
    """One md_hom for a whole static control part, right for the parameters in ``context``."""

    node: MdHom
    context: isl.Set


def automatic(scop: Scop) -> Automatic | None:
    """Return the md_hom whose scalar function holds all statements; None where the part has no such form.

    All statements write one element per point of the kept dimensions, read no other element of that array,
    and those outside the innermost loops come before them. Every index is affine.
    """
    if has_procedure(*(e for s in scop.statements for e in (s.value, s.condition))):
        return None
    if any(access.computed for s in scop.statements for access in (s.target, *s.reads)):
        return None
    inner = max(scop.statements, key=lambda s: s.domain.dim(_DIM.set))
    outer = [s for s in scop.statements if s is not inner]
    kept = _kept(inner)
    if (
        kept is None
        or stores_where_asked_only(scop, ())
        or not all(_fits(s, inner, scop) for s in outer)
        or not _reads_own(scop, inner)
    ):
        return None
    if not _in_order(inner, scop) or not _writes_apart(inner, kept):
        return None
    firsts = _firsts(inner, min((s.domain.dim(_DIM.set) for s in outer), default=len(inner.iterators)))
    if firsts is None:
        return None
    context = reduce(isl.Set.intersect, (_where_sunk(s, inner) for s in outer), scop.context)
    if context.is_empty():
        return None
    fused = _fused(outer, inner, firsts)
    node = hom(fused, inner.domain.set_tuple_name(fused.name), None, context)
    return Automatic(replace(node, combine=_operators(node)), context)


def _operators(node: MdHom) -> tuple[CombineOperator, ...]:
    indices = [i for v in node.outputs for i in v.indices if isinstance(i, Index)]
    used = [any(i.coefficients[k] for i in indices) for k in range(len(node.iterators))]
    return tuple(CombineOperator(Order.CONCATENATE if u else Order.SERIAL) for u in used)


def _kept(inner: ScopStatement) -> list[int] | None:
    """Return the dimensions that the target uses; None where it is no affine access."""
    if inner.target.computed:
        return None
    relation = inner.target.relation.gist_domain(inner.domain)
    return [k for k in range(len(inner.iterators)) if relation.involves_dims(_DIM.in_, k, 1)]


def _projection(inner: ScopStatement, statement: ScopStatement) -> isl.Map:
    """Return ``{ S2[i, j, k] -> S1[i, j] }``."""
    depth = statement.domain.dim(_DIM.set)
    result = isl.Map.identity(inner.domain.get_space().map_from_set())
    result = result.project_out(_DIM.out, depth, len(inner.iterators) - depth)
    return result.set_tuple_name(_DIM.out, statement.name)


def _fits(statement: ScopStatement, inner: ScopStatement, scop: Scop) -> bool:
    """Whether a statement stands in outer loops of ``inner``, before it, and writes the same element."""
    depth = statement.domain.dim(_DIM.set)
    if statement.loops != inner.loops[:depth] or statement.target.computed:
        return False
    down = _projection(inner, statement)
    if not _same_element(inner.target, _lifted(statement.target, down), inner):
        return False
    points = down.intersect_domain(inner.domain)
    return bool(points.range().is_subset(statement.domain)) and _before(points.reverse(), scop)


def _lifted(access: ScopAccess, down: isl.Map) -> ScopAccess:
    return replace(access, relation=down.apply_range(access.relation))


def _same_element(a: ScopAccess, b: ScopAccess, inner: ScopStatement) -> bool:
    if a.array != b.array or a.computed or b.computed:
        return False
    first, second = (x.relation.intersect_domain(inner.domain) for x in (a, b))
    return bool(first.is_equal(second))


def _before(pairs: isl.Map, scop: Scop) -> bool:
    """Whether the schedule runs the left instance of every pair first."""
    times = isl.UnionMap.from_map(pairs).apply_domain(scop.schedule).apply_range(scop.schedule)
    if times.is_empty():
        return True
    found = isl.Map.from_union_map(times)
    return bool(found.is_subset(isl.Map.lex_lt(found.get_space().domain())))


def _in_order(inner: ScopStatement, scop: Scop) -> bool:
    """Whether the instances of the innermost statement run in lexicographic order."""
    pairs = isl.Map.lex_lt(inner.domain.get_space())
    return _before(pairs.intersect_domain(inner.domain).intersect_range(inner.domain), scop)


def _reads_own(scop: Scop, inner: ScopStatement) -> bool:
    """Whether the array that is written is read at the point's own element alone."""
    for statement in scop.statements:
        down = _projection(inner, statement)
        for read in statement.reads:
            own = read.array == inner.target.array
            if own and not _same_element(inner.target, _lifted(read, down), inner):
                return False
    return True


def _writes_apart(inner: ScopStatement, kept: Sequence[int]) -> bool:
    """Whether different kept points write different elements."""
    relation = inner.target.relation.intersect_domain(inner.domain)
    for k in reversed(range(len(inner.iterators))):
        if k not in kept:
            relation = relation.project_out(_DIM.in_, k, 1)
    return bool(relation.is_injective())


def _firsts(inner: ScopStatement, depth: int) -> dict[int, int] | None:
    """Return the first value of each dimension from ``depth`` on, if it is the same number everywhere."""
    result = {}
    for k in range(depth, len(inner.iterators)):
        least = least_coordinate(inner.domain, k)
        if not least.is_int():
            return None
        result[k] = int(least.to_python())
        line = inner.domain.fix_val(_DIM.set, k, least)
        if not _outside(line, k).is_equal(_outside(inner.domain, k)):
            return None
    return result


def _outside(points: isl.Set, k: int) -> isl.Set:
    return points.project_out(_DIM.set, k, points.dim(_DIM.set) - k)


def _where_sunk(statement: ScopStatement, inner: ScopStatement) -> isl.Set:
    """Return the parameters for which each instance of a statement has inner instances to go with."""
    reached = _projection(inner, statement).intersect_domain(inner.domain).range()
    alone = statement.domain.subtract(reached).params()
    return alone.gist(statement.domain.params()).complement()


def _fused(outer: Sequence[ScopStatement], inner: ScopStatement, firsts: dict[int, int]) -> ScopStatement:
    """Return one statement that does what all do, one after another, at each innermost point."""
    reads: list[ScopAccess] = []
    held: Expression = Read(-1, inner.value.type)
    for statement in (*outer, inner):
        down = _projection(inner, statement)
        value = _placed(statement, statement.value, inner, down, reads, held)
        condition = _at_first(statement, firsts)
        if statement.condition is not None:
            data = _placed(statement, statement.condition, inner, down, reads, held)
            condition = data if condition is None else Binary(BinaryOp.AND, condition, data)
        held = value if condition is None else Select(condition, value, held)
    own = len(reads)
    name = "_".join(s.name for s in (*outer, inner))
    if _reads_before(held):
        reads.append(inner.target)
        held = rebuilt(held, lambda e: Read(own, e.type) if e == Read(-1, e.type) else None)

    def moved(access: ScopAccess) -> ScopAccess:
        return replace(access, relation=access.relation.set_tuple_name(_DIM.in_, name))

    return replace(
        inner,
        name=name,
        domain=inner.domain.set_tuple_name(name),
        target=moved(inner.target),
        reads=tuple(moved(r) for r in reads),
        value=held,
        condition=None,
    )


def _reads_before(expression: Expression) -> bool:
    return any(isinstance(p, Read) and p.position == -1 for p in walk(expression))


def _at_first(statement: ScopStatement, firsts: dict[int, int]) -> Expression | None:
    """Return ``k == 0`` for the loops that a statement stands outside of."""
    kind = ElementType.INT64
    depth = statement.domain.dim(_DIM.set)
    conditions: list[Expression] = [
        Compare(CompareOp.EQ, IteratorValue(k, kind), Constant(value, kind))
        for k, value in firsts.items()
        if k >= depth
    ]
    return reduce(lambda a, b: Binary(BinaryOp.AND, a, b), conditions) if conditions else None


def _placed(
    statement: ScopStatement,
    expression: Expression,
    inner: ScopStatement,
    down: isl.Map,
    reads: list[ScopAccess],
    held: Expression,
) -> Expression:
    """Return a scalar function over the reads of the fused statement; its own element is ``held``."""

    def leaf(part: Expression) -> Expression | None:
        if not isinstance(part, Read):
            return None
        access = statement.reads[part.position]
        if access.array == inner.target.array:
            return held
        reads.append(_lifted(access, down))
        return Read(len(reads) - 1, part.type)

    return rebuilt(expression, leaf)
