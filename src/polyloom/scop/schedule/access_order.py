"""How plans go through memory: accesses that jump from row to row, which the order of loops could avoid.

    for r: for c < r: x[r] -= L[r][c] * x[c]    goes along the rows of L: nothing is strided
    for c: for r > c: x[r] -= L[r][c] * x[c]    goes down a column: one access is

Not in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyloom.polyhedra.functions import function_of
from polyloom.scop.model import ScopAccess, ScopStatement
from polyloom.scop.schedule.plan import Blocks, Hyperplane, Leaf, Plan, Sequential, row_of, statements_of

_DIM = isl.dim_type


def subscripts(statement: ScopStatement, access: ScopAccess) -> list[isl.Aff]:
    """Return the subscripts of an access as functions of the iterators; none where they are not affine."""
    if access.computed:
        return []
    functions = function_of(access.relation.intersect_domain(statement.domain)).coalesce()
    functions = functions.gist(statement.domain)
    if not functions.isa_multi_aff():
        return []
    function = functions.as_multi_aff()
    return [function.get_at(k) for k in range(function.dim(_DIM.out))]


def strided(plans: Sequence[Plan], around: Sequence[Hyperplane] = ()) -> int:
    """Return how many accesses go through memory in strides, whichever iterator is innermost.

    Where steps are not those of one iterator each, and inside of nodes that are sequential, all count.
    """
    return sum(_strided(plan, tuple(around)) for plan in plans)


def _strided(plan: Plan, around: tuple[Hyperplane, ...]) -> int:
    match plan:
        case Sequential(time=time, body=body) if all(sum(map(abs, row)) == 1 for row in time.values()):
            return strided(body, (*around, time))
        case Blocks(body=body):
            return strided(body, around)
        case Leaf(statement=statement):
            return min((_jumps(statement, k) for k in _free(statement, around)), default=0)
        case _:
            return sum(len(s.reads) + 1 for s in statements_of(plan))


def _free(statement: ScopStatement, around: Sequence[Hyperplane]) -> list[int]:
    """Return the iterators that move at a step."""
    rows = [row_of(plane, statement) for plane in around]
    return [k for k in range(statement.domain.dim(_DIM.set)) if not any(row[k] for row in rows)]


def _jumps(statement: ScopStatement, innermost: int) -> int:
    """Return how many accesses an iterator moves otherwise than along the last subscript alone."""
    found = (subscripts(statement, access) for access in (statement.target, *statement.reads))
    return sum(any(_moves(f, innermost) for f in functions[:-1]) for functions in found)


def _moves(function: isl.Aff, iterator: int) -> bool:
    return not function.get_coefficient_val(_DIM.in_, iterator).is_zero()
