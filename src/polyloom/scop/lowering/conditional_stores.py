"""Which statements under conditions on data may store where their conditions do not hold, and which may not.

Before: ``if (f[i]) a[i] = e`` as a map stores ``f[i] ? e : a[i]``. C stores nothing where ``f[i]`` is 0, and
there ``a[i]`` need not exist, or another thread may write it. After: such a statement is a nest, all of whose
points are parallel and store under the condition. It stays a map where nobody can tell: in arrays of the
function itself, and in elements that the part surely writes at some time.

Source: C11, 5.1.2.4: a compiler introduces no store that would make a data race. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce

import islpy as isl

from polyloom.ir.expressions import Binary, Expression, Select, has_procedure, walk
from polyloom.ir.rebuild import read_positions
from polyloom.ir.scalar_functions.table import BinaryOp
from polyloom.scop.model import Origin, Scop, ScopStatement


def stores_where_asked_only(scop: Scop, updates: Collection[str]) -> frozenset[str]:
    """Return the names of the statements of the source that store only where their conditions hold.

    ``updates``: statements that combine into their targets; where all combine into one element, it exists, as
    it does where each looks at it first (``if (e > y[c]) y[c] = e``).
    """
    if scop.unshared:
        return frozenset()
    seen = {a.name for a in scop.arrays if a.origin not in (Origin.INNER, Origin.OUTER)}
    asking = [s for s in scop.statements if s.condition is not None and s.target.array in seen]
    moving = [s for s in asking if s.root not in updates or (_moves(s) and not _looks_first(s))]
    return frozenset(s.root for s in moving if not _is_surely_written(s, scop))


def in_steps(scop: Scop) -> frozenset[str]:
    """Return the names of the statements of the source whose values are those of procedures.

    They are nests, too: no schedule of an md_hom carries steps out.
    """
    return frozenset(s.root for s in scop.statements if has_procedure(s.value, s.condition))


def _moves(statement: ScopStatement) -> bool:
    relation = statement.target.relation.gist_domain(statement.domain)
    return bool(relation.involves_dims(isl.dim_type.in_, 0, statement.domain.dim(isl.dim_type.set)))


def _looks_first(statement: ScopStatement) -> bool:
    """Whether a comparison reads the target before anything is decided."""
    condition = statement.condition
    if condition is None or any(_decides(part) for part in walk(condition)):
        return False
    read = [statement.reads[p] for p in read_positions(condition)]
    target = statement.target
    same = (r for r in read if r.array == target.array and not r.computed)
    return not target.computed and any(r.relation.is_equal(target.relation) for r in same)


def _decides(part: Expression) -> bool:
    """Whether an operand may not be evaluated."""
    return isinstance(part, Select) or (isinstance(part, Binary) and part.op in (BinaryOp.AND, BinaryOp.OR))


def _is_surely_written(statement: ScopStatement, scop: Scop) -> bool:
    if statement.target.computed:
        return False
    array = statement.target.array
    surely = [_stored(s) for s in scop.statements if _is_plain(s) and s.target.array == array]
    if not surely:
        return False
    return bool(_stored(statement).intersect_params(scop.context).is_subset(reduce(isl.Set.union, surely)))


def _is_plain(statement: ScopStatement) -> bool:
    return statement.condition is None and not statement.target.computed


def _stored(statement: ScopStatement) -> isl.Set:
    return statement.target.relation.intersect_domain(statement.domain).range()
