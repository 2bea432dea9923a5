"""The bridge from the IR to isl: instance sets, access relations, tensors as sets.

The tuple of a statement's instances has the statement's name, that of a tensor's elements the
tensor's: ``{ ff[i, j] -> x[j] }``.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyloom.ir.host import Buffer, Index, MdHom, View
from polyloom.ir.statements import Statement
from polyloom.polyhedra.binding import parsed_map, parsed_set
from polyloom.polyhedra.loops.accesses import Elements, NotKnown, meeting, question
from polyloom.polyhedra.loops.scope import Scope
from polyloom.polyhedra.loops.tree import (
    IntExpression,
    Name,
    Number,
    Operation,
    names_in,
    sum_of,
)
from polyloom.polyhedra.text.names import isl_name

OPERATIONS = 200_000
"""What isl may spend on whether two accesses meet: hundreds of times what it takes for triangles."""


def instance_set(statement: Statement) -> isl.Set:
    """Return ``{ S[i, j] : 0 <= i < M and 0 <= j < N }``, restricted by the guard."""
    bounds = [f"0 <= {i} < {n}" for i, n in zip(_names(statement), statement.domain, strict=True)]
    bounds += [f"{_text(g, statement)} >= 0" for g in statement.conditions]
    return parsed_set(f"{{ {_tuple(statement)} : {' and '.join(bounds) or 'true'} }}")


def access_relation(statement: Statement, access: View) -> isl.Map:
    """Return ``{ S[i, j] -> x[j] }`` on the whole instance space (equation 25 has such relations)."""
    indices = ", ".join(_text(index, statement) for index in access.affine)
    return parsed_map(f"{{ {_tuple(statement)} -> {access.buffer}[{indices}] }}")


def element_set(tensor: Buffer) -> isl.Set:
    """Return ``{ x[a, b] : 0 <= a < shape[0] and ... }``."""
    names = [f"i{k}" for k in range(len(tensor.extents))]
    bounds = [f"0 <= {i} < {n}" for i, n in zip(names, tensor.extents, strict=True)]
    return parsed_set(f"{{ {tensor.name}[{', '.join(names)}] : {' and '.join(bounds) or 'true'} }}")


def first_written_twice(statement: Statement) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the first two instances that write one element, None where there is none."""
    writes = access_relation(statement, statement.write).intersect_domain(instance_set(statement))
    together = writes.apply_range(writes.reverse())
    pairs = together.intersect(isl.Map.lex_lt(writes.domain().get_space()))
    if pairs.is_empty():
        return None
    values = _coordinates(pairs.wrap().lexmin())
    half = len(statement.domain)
    return values[:half], values[half:]


def first_unwritten(statement: Statement, tensor: Buffer) -> tuple[int, ...] | None:
    """Return the first element of ``tensor`` that no instance writes; None: every element is written."""
    writes = access_relation(statement, statement.write).intersect_domain(instance_set(statement))
    missing = element_set(tensor).subtract(writes.range())
    return None if missing.is_empty() else _coordinates(missing.lexmin())


def never_meet(
    first: tuple[MdHom, View], second: tuple[MdHom, View], known: Sequence[IntExpression] = ()
) -> bool:
    """Return whether two accesses to a buffer have no element in common; False where isl cannot tell soon.

    ``known``: conditions that hold for parameters and host iterators.
    """
    try:
        with question("where two maps meet", OPERATIONS):
            return meeting(_elements(*first, known), _elements(*second, known), ()) is None
    except NotKnown:
        return False


def _elements(hom: MdHom, view: View, known: Sequence[IntExpression]) -> Elements:
    """Return ``{ [i, j] -> x[...] }`` where the guard holds; an index that is computed is any."""
    indices = [_sum(i, hom) if isinstance(i, Index) else None for i in view.indices]
    conditions = (*known, *((hom.guard,) if hom.guard else ()))
    parts = (*hom.extents, *(i for i in indices if i is not None), *conditions)
    names = sorted({name for part in parts for name in names_in(part)} - {*hom.iterators})
    scope = Scope.of_names(names)
    for name, extent in zip(hom.iterators, hom.extents, strict=True):
        scope = scope.inside(name, Number(0), Operation("<", (Name(name), extent)), Number(1))
    for condition in conditions:
        scope = scope.where(condition)
    return scope.tuples(view.buffer, indices)


def _sum(index: Index, hom: MdHom) -> IntExpression:
    return sum_of([*((c, Name(hom.iterators[d])) for d, c in index.used), (1, index.offset)])


def _coordinates(points: isl.Set) -> tuple[int, ...]:
    point = points.sample_point()
    count = points.dim(isl.dim_type.set)
    return tuple(point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(count))


def _names(statement: Statement) -> list[str]:
    return [isl_name(name) for name in statement.iterators]


def _tuple(statement: Statement) -> str:
    return f"{statement.name}[{', '.join(_names(statement))}]"


def _text(affine: Index, statement: Statement) -> str:
    terms = [f"{c}*{i}" for c, i in zip(affine.coefficients, _names(statement), strict=True) if c]
    return " + ".join([*terms, str(affine.constant)])
