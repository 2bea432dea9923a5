"""Index-set splitting: the instances of a statement by where its reads lie beside its write.

Before: ``p[i][j] = min(p[i][j], p[i][k] + p[k][j])``. After: nine statements, for i before, at and after k
and j before, at and after k; within each, no instance reads what another one writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import islpy as isl

from polyloom.ir.naming import Names
from polyloom.scop.model import ScopAccess, ScopStatement
from polyloom.scop.schedule.access_order import subscripts
from polyloom.scop.schedule.hyperplanes import Edge, edge

_DIM = isl.dim_type
MAXIMUM_PIECES = 27
_Sign = Callable[[isl.PwAff], isl.Set]
_SIGNS: tuple[_Sign, ...] = (lambda f: f.neg().pos_set(), lambda f: f.zero_set(), lambda f: f.pos_set())


def split(
    statements: Sequence[ScopStatement], edges: Sequence[Edge], names: Names
) -> tuple[list[ScopStatement], list[Edge]] | None:
    """Return the pieces and the edges between them; None where subscripts give no place to split.

    Several statements are split alike. None where they do not stand in the same loops.
    """
    if 3 * len(statements) > MAXIMUM_PIECES or any(s.loops != statements[0].loops for s in statements):
        return None
    differences = _differences(statements)
    if not differences or 3 ** len(differences) * len(statements) > MAXIMUM_PIECES:
        return None
    pieces = [
        piece(s, domain, names.of((s.name, k), f"{s.name}_{k}"))
        for s in statements
        for k, domain in enumerate(_parts(s, differences), 1)
    ]
    if len(pieces) < 2 * len(statements):
        return None
    return pieces, list(edges_between(pieces, edges))


def split_by_need(
    statements: Sequence[ScopStatement], edges: Sequence[Edge], names: Names
) -> tuple[list[ScopStatement], list[Edge]] | None:
    """Return the instances that need nothing of other iterations, and the rest, with the edges between them.

    ``a[i] = a[n / 2] + b[i]``: those up to the middle read what was there before, those behind it need one
    of them. None where there are no two such sets, or the statements do not stand in the same loops.
    """
    first = statements[0]
    if any(s.origins or s.loops != first.loops for s in statements) or not first.loops:
        return None
    needing = _needing(statements, [e for e in edges if not e.relaxed and not e.anti])
    pieces: list[ScopStatement] = []
    for k, needs in enumerate((False, True), 1):
        for s in statements:
            domain = s.domain.intersect(needing[s.name]) if needs else s.domain.subtract(needing[s.name])
            if not domain.is_empty():
                pieces.append(piece(s, domain.coalesce(), names.of((s.name, "need", k), f"{s.name}_{k}")))
    if len(pieces) == len(statements):
        return None
    return pieces, list(edges_between(pieces, edges))


def _needing(statements: Sequence[ScopStatement], edges: Sequence[Edge]) -> dict[str, isl.Set]:
    """Return the instances that other iterations have to come before, directly or not."""
    needing = {s.name: isl.Set.empty(s.domain.get_space()) for s in statements}
    same: list[Edge] = []
    for found in edges:
        space = found.relation.get_space()
        equal = isl.Map.universe(space)
        for k in range(space.dim(_DIM.in_)):
            equal = equal.equate(_DIM.in_, k, _DIM.out, k)
        needing[found.sink] = needing[found.sink].union(found.relation.subtract(equal).range())
        same.append(found)
    for _ in statements:
        for found in same:
            behind = needing[found.source].apply(found.relation)
            needing[found.sink] = needing[found.sink].union(behind).coalesce()
    return needing


def may_be_nothing(rest: Iterable[ScopStatement], others: Sequence[ScopStatement]) -> bool:
    """Whether there are parameters for which there is none of the rest, but any number of the others.

    Asked of statements in one loop: in several, any number of rows may have their first point alone.
    """
    for statement in others if all(len(s.iterators) == 1 for s in others) else ():
        alone = statement.domain.params()
        for found in rest:
            alone = alone.subtract(found.domain.params())
        domain = statement.domain.intersect_params(alone)
        domain = domain.project_out(_DIM.param, 0, domain.dim(_DIM.param))
        if not domain.is_empty() and not domain.is_bounded():
            return True
    return False


def edges_between(pieces: Sequence[ScopStatement], edges: Iterable[Edge]) -> Iterator[Edge]:
    """Yield the edges between the instances that pieces of statements have."""
    of: dict[str, list[ScopStatement]] = {}
    for found in pieces:
        of.setdefault(found.origins[0], []).append(found)
    for old in edges:
        for a, b in product(of.get(old.source, ()), of.get(old.sink, ())):
            relation = old.relation.set_tuple_name(_DIM.in_, a.name).set_tuple_name(_DIM.out, b.name)
            relation = relation.intersect_domain(a.domain).intersect_range(b.domain)
            if not relation.is_empty():
                yield edge(a.name, b.name, old.array, old.anti, old.relaxed, relation)


def _differences(statements: Sequence[ScopStatement]) -> list[isl.PwAff]:
    """Return read subscript minus written subscript, where it depends on the iterators."""
    result: list[isl.PwAff] = []
    targets = [(s.target.array, _functions(s, s.target)) for s in statements]
    for reading, (array, written) in product(statements, targets):
        for read in (r for r in reading.reads if r.array == array):
            places = _functions(reading, read)
            for a, b in zip(places, written, strict=True) if places and written else ():
                difference = a.sub(b)
                varies = difference.involves_dims(_DIM.in_, 0, difference.dim(_DIM.in_))
                known = any(difference.plain_is_equal(o) for o in result)
                if varies and not known:
                    result.append(difference)
    return result


def _functions(statement: ScopStatement, access: ScopAccess) -> list[isl.PwAff]:
    """Return the subscripts of an access as functions of the iterators, whichever statement they are of."""
    return [isl.PwAff.from_aff(f).reset_tuple_id(_DIM.in_) for f in subscripts(statement, access)]


def _parts(statement: ScopStatement, differences: Sequence[isl.PwAff]) -> Iterator[isl.Set]:
    for signs in product(_SIGNS, repeat=len(differences)):
        domain = statement.domain
        for sign, difference in zip(signs, differences, strict=True):
            domain = domain.intersect(sign(difference).set_tuple_name(statement.name))
        if not domain.is_empty():
            yield domain.coalesce()


def piece(statement: ScopStatement, domain: isl.Set, name: str) -> ScopStatement:
    """Return some instances of a statement as a statement of their own."""

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
