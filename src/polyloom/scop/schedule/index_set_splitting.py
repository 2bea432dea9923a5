"""Index-set splitting: the instances of a statement by where its reads lie beside its write.

Before: ``p[i][j] = min(p[i][j], p[i][k] + p[k][j])``. After: nine statements, for i before, at and after k
and j before, at and after k; within each, no instance reads what another one writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import islpy as isl

from polyloom.ir.naming import Names
from polyloom.scop.model import ScopAccess, ScopStatement
from polyloom.scop.schedule.hyperplanes import Edge, edge

_DIM = isl.dim_type
MAXIMUM_PIECES = 27
_Sign = Callable[[isl.PwAff], isl.Set]
_SIGNS: tuple[_Sign, ...] = (lambda f: f.neg().pos_set(), lambda f: f.zero_set(), lambda f: f.pos_set())


def split(
    statement: ScopStatement, edges: Sequence[Edge], names: Names
) -> tuple[list[ScopStatement], list[Edge]] | None:
    """Return the pieces and the edges between them; None where subscripts give no place to split."""
    differences = _differences(statement)
    if not differences or 3 ** len(differences) > MAXIMUM_PIECES:
        return None
    pieces = [
        _piece(statement, domain, names.of((statement.name, k), f"{statement.name}_{k}"))
        for k, domain in enumerate(_parts(statement, differences), 1)
    ]
    if len(pieces) < 2:
        return None
    found = []
    for old in edges:
        for a, b in product(pieces, pieces):
            relation = old.relation.set_tuple_name(_DIM.in_, a.name).set_tuple_name(_DIM.out, b.name)
            relation = relation.intersect_domain(a.domain).intersect_range(b.domain)
            if not relation.is_empty():
                found.append(edge(a.name, b.name, old.array, old.anti, old.relaxed, relation))
    return pieces, found


def _differences(statement: ScopStatement) -> list[isl.PwAff]:
    """Return read subscript minus written subscript, where it depends on the iterators."""
    written = _subscripts(statement, statement.target)
    result: list[isl.PwAff] = []
    for read in statement.reads:
        if read.array != statement.target.array:
            continue
        subscripts = _subscripts(statement, read)
        for a, b in zip(subscripts, written, strict=True) if subscripts and written else ():
            difference = isl.PwAff.from_aff(a).sub(isl.PwAff.from_aff(b))
            varies = difference.involves_dims(_DIM.in_, 0, difference.dim(_DIM.in_))
            known = any(difference.plain_is_equal(o) for o in result)
            if varies and not known:
                result.append(difference)
    return result


def _subscripts(statement: ScopStatement, access: ScopAccess) -> list[isl.Aff]:
    if access.computed:
        return []
    functions = access.relation.intersect_domain(statement.domain).as_pw_multi_aff().coalesce()
    functions = functions.gist(statement.domain)
    if not functions.isa_multi_aff():
        return []
    function = functions.as_multi_aff()
    return [function.get_at(k) for k in range(function.dim(_DIM.out))]


def _parts(statement: ScopStatement, differences: Sequence[isl.PwAff]) -> Iterator[isl.Set]:
    for signs in product(_SIGNS, repeat=len(differences)):
        domain = statement.domain
        for sign, difference in zip(signs, differences, strict=True):
            domain = domain.intersect(sign(difference))
        if not domain.is_empty():
            yield domain.coalesce()


def _piece(statement: ScopStatement, domain: isl.Set, name: str) -> ScopStatement:
    def moved(access: ScopAccess) -> ScopAccess:
        return replace(access, relation=access.relation.set_tuple_name(_DIM.in_, name))

    return replace(
        statement,
        name=name,
        domain=domain.set_tuple_name(name),
        target=moved(statement.target),
        reads=tuple(moved(read) for read in statement.reads),
        origins=(statement.name, *statement.origins),
    )
