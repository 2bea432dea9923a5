"""Statements over the subscripts of what they write, in place of the loops of the source.

Before:                                         After:
for d: for i: for k < d:                        for i: for d_i = i + d: for i_k from i to d_i - 1:
  t[i][i + d] |= t[i][i + k] & t[i + k + 1][i + d]   t[i][d_i] |= t[i][i_k] & t[i_k + 1][d_i]

What is a box in the one may be a parallelogram in the other: tiles of an array are boxes of its elements. The
order of execution stays the same.

Source: unimodular transformations (Banerjee 1990; Wolf and Lam 1991).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

import islpy as isl

from polyloom.ir.expressions import Iterator, walk
from polyloom.ir.naming import fresh
from polyloom.polyhedra.lattice import column_echelon
from polyloom.scop.dependence.dependences import maps_of
from polyloom.scop.model import Scop, ScopAccess, ScopStatement
from polyloom.scop.schedule.access_order import subscripts
from polyloom.scop.schedule.hyperplanes import are_independent, rows_map
from polyloom.scop.schedule.plan import Row

_DIM = isl.dim_type


def over_written(scop: Scop) -> Scop:
    """Return the part with its statements over the subscripts of what they write, where that can be."""
    found = {s.name: rows for s in scop.statements if (rows := _coordinates(s)) is not None}
    if not found:
        return scop
    moves = {s.name: _move(s, found[s.name]) for s in scop.statements if s.name in found}
    times = maps_of(scop.schedule)
    moved = (
        m.apply_domain(moves[name]) if (name := m.get_tuple_name(_DIM.in_) or "") in moves else m
        for m in times
    )
    return replace(
        scop,
        statements=tuple(
            _moved(s, found[s.name], moves[s.name]) if s.name in found else s for s in scop.statements
        ),
        schedule=reduce(isl.UnionMap.union, map(isl.UnionMap.from_map, moved)),
    )


def _coordinates(statement: ScopStatement) -> tuple[Row, ...] | None:
    """Return a unimodular matrix that begins with the subscripts written; None where its loops stay."""
    size = len(statement.iterators)
    values = [statement.value, *([] if statement.condition is None else [statement.condition])]
    values += [v for a in (statement.target, *statement.reads) for _, v in a.computed]
    if any(isinstance(part, Iterator) for value in values for part in walk(value)):
        return None
    units = [tuple(int(i == k) for i in range(size)) for k in range(size)]
    written = _rows(statement, [statement.target])
    own = [read for read in statement.reads if read.array == statement.target.array]
    if not size or all(row in units for row in written):
        return None
    rows: list[Row] = []
    for row in (*written, *_rows(statement, own), *units):
        if len(rows) < size and any(row) and are_independent([*rows, row]):
            rows.append(row)
    return tuple(rows) if _is_unimodular(rows) else None


def _rows(statement: ScopStatement, accesses: Iterable[ScopAccess]) -> list[Row]:
    """Return the coefficients of the iterators in each subscript that is affine."""
    found = []
    for access in accesses:
        for index in subscripts(statement, access):
            values = [index.get_coefficient_val(_DIM.in_, k) for k in range(len(statement.iterators))]
            if all(value.is_int() for value in values):
                found.append(tuple(int(value.to_python()) for value in values))
    return found


def _is_unimodular(rows: Sequence[Row]) -> bool:
    """Whether a matrix has an inverse in integers: its determinant is 1 or -1."""
    form = column_echelon(tuple(rows), len(rows)).form
    return all(form[k][k] == 1 for k in range(len(rows)))


def _move(statement: ScopStatement, rows: Sequence[Row]) -> isl.Map:
    """Return ``{ S[x] -> S[rows . x] }``."""
    space = statement.domain.get_space()
    functions = reduce(isl.Map.flat_range_product, (rows_map(space, row) for row in rows))
    return functions.set_tuple_name(_DIM.out, statement.name)


def _moved(statement: ScopStatement, rows: Sequence[Row], move: isl.Map) -> ScopStatement:
    def access(given: ScopAccess) -> ScopAccess:
        return replace(given, relation=given.relation.apply_domain(move), indices=())

    return replace(
        statement,
        domain=statement.domain.apply(move),
        iterators=_names(statement, rows),
        target=access(statement.target),
        reads=tuple(map(access, statement.reads)),
    )


def _names(statement: ScopStatement, rows: Sequence[Row]) -> tuple[str, ...]:
    """Name each coordinate after the iterators that it combines."""
    result: list[str] = []
    for row in rows:
        parts = [name for name, c in zip(statement.iterators, row, strict=True) if c]
        result.append(fresh("_".join(parts), result))
    return tuple(result)
