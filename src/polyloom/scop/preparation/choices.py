"""Choices of the iterators between what a statement reads of its own array become statements of their own.

Before: ``s[j] = a[j] + (j > 0 ? s[j - 1] : 0)``, which reads ``s`` in some iterations only.
After: ``s[j] = a[j] + 0`` for j = 0, and ``s[j] = a[j] + s[j - 1]`` for the others, which is a scan.

Source: index-set splitting (Allen and Kennedy 2001, Sec. 5.7). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product

import islpy as isl

from polyloom.ir import expressions as scalar
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    ParameterValue,
    Select,
    Unary,
    UnaryOp,
    walk,
)
from polyloom.ir.naming import fresh
from polyloom.ir.rebuild import read_positions, rebuilt, with_reads
from polyloom.ir.types import ElementType
from polyloom.polyhedra.functions import isl_integer
from polyloom.scop.dependence.dependences import maps_of
from polyloom.scop.model import Scop, ScopAccess, ScopStatement

_DIM = isl.dim_type

MAXIMUM_CHOICES = 4
"""Of one statement: it becomes at most two to this power, each with loops of its own."""


def with_choices_made(scop: Scop) -> Scop:
    """Return the part with a statement for each way in which another one chooses between its reads."""
    for statement in scop.statements:
        parts = list(_parts(statement))
        if len(parts) > 1:
            scop = _replaced(scop, statement, parts)
    return scop


def _parts(statement: ScopStatement) -> Iterator[isl.Set]:
    """Yield the instances for which all choices of its own array fall alike."""
    chosen = list(_choices(statement))
    if not chosen or len(chosen) > MAXIMUM_CHOICES:
        return
    for sides in product((False, True), repeat=len(chosen)):
        domain = statement.domain
        for holds, side in zip(chosen, sides, strict=True):
            domain = domain.intersect(holds) if side else domain.subtract(holds)
        if not domain.is_empty():
            yield domain.coalesce()


def _choices(statement: ScopStatement) -> Iterator[isl.Set]:
    """Yield where conditions hold, each once, that decide whether the statement reads its own array."""
    seen: list[isl.Set] = []
    for part in walk(statement.value):
        if not isinstance(part, Select):
            continue
        sides = read_positions(part.then, part.otherwise)
        own = [p for p in sides if statement.reads[p].array == statement.target.array]
        holds = _where(part.condition, statement.domain) if own else None
        if holds is not None and not any(holds.is_equal(other) for other in seen):
            seen.append(holds)
            yield holds


def _replaced(scop: Scop, statement: ScopStatement, parts: Sequence[isl.Set]) -> Scop:
    taken = [s.name for s in scop.statements]
    pieces: list[ScopStatement] = []
    for k, domain in enumerate(parts, 1):
        name = fresh(f"{statement.name}_{k}", taken)
        taken.append(name)
        pieces.append(_piece(statement, domain, name))
    time = next(m for m in maps_of(scop.schedule) if m.get_tuple_name(_DIM.in_) == statement.name)
    times = [time.set_tuple_name(_DIM.in_, p.name).intersect_domain(p.domain) for p in pieces]
    others = scop.schedule.subtract(isl.UnionMap.from_map(time))
    return replace(
        scop,
        statements=tuple(n for s in scop.statements for n in (pieces if s is statement else (s,))),
        schedule=reduce(isl.UnionMap.union, map(isl.UnionMap.from_map, times), others),
    )


def _piece(statement: ScopStatement, domain: isl.Set, name: str) -> ScopStatement:
    """Return some instances as a statement, without the choices that they all make alike."""

    def made(part: Expression) -> Expression | None:
        if not isinstance(part, Select):
            return None
        holds = _where(part.condition, domain)
        if holds is None or not (holds.is_empty() or domain.is_subset(holds)):
            return None
        return rebuilt(part.otherwise if holds.is_empty() else part.then, made)

    value = rebuilt(statement.value, made)
    used = sorted(_used(statement, value))
    places = {old: new for new, old in enumerate(used)}

    def renumbered(part: Expression) -> Expression:
        return with_reads(part, places.__getitem__)

    def moved(access: ScopAccess) -> ScopAccess:
        return replace(
            access,
            relation=access.relation.set_tuple_name(_DIM.in_, name).intersect_domain(named),
            computed=tuple((k, renumbered(index)) for k, index in access.computed),
            indices=tuple(map(renumbered, access.indices)),
        )

    named = domain.set_tuple_name(name)
    condition = statement.condition
    return replace(
        statement,
        name=name,
        domain=named,
        target=moved(statement.target),
        reads=tuple(moved(statement.reads[p]) for p in used),
        value=renumbered(value),
        condition=None if condition is None else renumbered(condition),
    )


def _used(statement: ScopStatement, value: Expression) -> set[int]:
    """Return the reads that a value, a condition and the subscripts of those ask for."""
    found: set[int] = set()
    asked = [value, *statement.target.indices, *dict(statement.target.computed).values()]
    if statement.condition is not None:
        asked.append(statement.condition)
    while asked:
        for position in set(read_positions(asked.pop())) - found:
            found.add(position)
            access = statement.reads[position]
            asked += [*access.indices, *dict(access.computed).values()]
    return found


def _where(condition: Expression, domain: isl.Set) -> isl.Set | None:
    """Return the points of a domain at which a condition of its iterators holds; None where it is no such."""
    match condition:
        case Binary(op=BinaryOp.AND | BinaryOp.OR as op, left=a, right=b):
            left, right = _where(a, domain), _where(b, domain)
            if left is None or right is None:
                return None
            return left.intersect(right) if op == BinaryOp.AND else left.union(right)
        case Unary(op=UnaryOp.NOT, operand=a):
            inner = _where(a, domain)
            return None if inner is None else domain.subtract(inner)
        case Compare(op=op, left=a, right=b):
            before, after = affine_integer(a, domain), affine_integer(b, domain)
            if before is None or after is None:
                return None
            return _COMPARED[op](before.sub(after)).intersect(domain)
        case _:
            return None


_COMPARED: Mapping[CompareOp, Callable[[isl.PwAff], isl.Set]] = {
    CompareOp.LT: lambda d: d.neg().pos_set(),
    CompareOp.LE: lambda d: d.neg().nonneg_set(),
    CompareOp.GT: lambda d: d.pos_set(),
    CompareOp.GE: lambda d: d.nonneg_set(),
    CompareOp.EQ: lambda d: d.zero_set(),
    CompareOp.NE: lambda d: d.non_zero_set(),
}


def affine_integer(value: Expression, domain: isl.Set) -> isl.PwAff | None:
    """Return a signed integer as a function of the iterators and parameters; None where it is not affine."""
    if value.type not in _SIGNED:
        return None
    space = isl.LocalSpace.from_space(domain.get_space())
    match value:
        case scalar.Iterator(dimension=k):
            return isl.PwAff.from_aff(isl.Aff.var_on_domain(space, _DIM.set, k))
        case ParameterValue(name=name):
            k = domain.find_dim_by_name(_DIM.param, name)
            return None if k < 0 else isl.PwAff.from_aff(isl.Aff.var_on_domain(space, _DIM.param, k))
        case Constant(value=int() as number):
            return isl.PwAff.from_aff(isl.Aff.zero_on_domain(space).add_constant_val(isl_integer(number)))
        case Convert(type=kind, operand=a) if kind.size >= a.type.size:
            return affine_integer(a, domain)
        case Binary(op=BinaryOp.ADD | BinaryOp.SUBTRACT | BinaryOp.MULTIPLY as op, left=a, right=b):
            left, right = affine_integer(a, domain), affine_integer(b, domain)
            if left is None or right is None:
                return None
            if op != BinaryOp.MULTIPLY:
                return left.add(right) if op == BinaryOp.ADD else left.sub(right)
            return left.mul(right) if left.is_cst() or right.is_cst() else None
        case _:
            return None


_SIGNED = (ElementType.INT32, ElementType.INT64)
"""Of these a sum is what it is in the integers: one that does not fit has no meaning in C."""
