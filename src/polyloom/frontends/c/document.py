"""A static control part as a document: sets and relations as isl writes them.

Source: docs/interface.md (JSON of show).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import islpy as isl

from polyloom.frontends.c.parameters import context_of
from polyloom.frontends.c.read import Part
from polyloom.frontends.c.scope.drafts import FoundArray
from polyloom.frontends.c.scope.types import spelling
from polyloom.scop.model import ScopAccess


def document(part: Part) -> dict[str, Any]:
    """Return the document of ``show --as scop --json``; ``line`` is that of a statement's first character.

    An element of a structure's member is written with its levels: ``s_a[s[i] -> a[j]]`` for ``s[i].a[j]``.
    """
    arrays = part.state.arrays
    shown = [s for s in part.statements if not s.domain.is_empty()]
    reads = [access for s in shown for access in s.reads]
    writes = [access for s in shown for access in s.writes]
    must = [access for s in shown for access in s.must]
    return {
        "function": part.name,
        "context": str(context_of(part.state, part.statements)),
        "domain": str(_union_set(s.domain for s in shown)),
        "schedule": str(part.schedule),
        "reads": str(_union(reads, arrays)),
        "writes": str(_union(writes, arrays)),
        "must_writes": str(_union(must, arrays)),
        "statements": [
            {"name": s.name, "line": s.draft.span.line if s.draft.span else None, "body": s.draft.text}
            for s in shown
        ],
        "arrays": [
            {"name": a.name, "extent": str(_extent(a)), "element_type": spelling(a.type)}
            for a in arrays.values()
        ],
    }


def _union_set(sets: Iterable[isl.Set]) -> isl.UnionSet:
    result = isl.UnionSet("{ }")
    for one in sets:
        result = result.union(isl.UnionSet.from_set(one))
    return result


def _union(accesses: Iterable[ScopAccess], arrays: dict[str, FoundArray]) -> isl.UnionMap:
    result = isl.UnionMap("{ }")
    for access in accesses:
        relation = access.relation.apply_range(_levelled(arrays[access.array]))
        result = result.union(isl.UnionMap.from_map(relation))
    return result.coalesce()


def _levelled(array: FoundArray) -> isl.Map:
    """Return ``{ s_a[i, j] -> s_a[s[i] -> a[j]] }``; the identity outside structures."""
    names = [f"i{k}" for k in range(sum(array.levels))]
    flat = f"{array.name}[{', '.join(names)}]"
    nested, path = _take(array.place.variable.unique, array.levels[0], names), array.place.variable.unique
    for name, count in zip(array.place.members, array.levels[1:], strict=True):
        path = f"{path}_{name}"
        nested = f"{path}[{nested} -> {_take(name, count, names)}]"
    return isl.Map(f"{{ {flat} -> {nested} }}")


def _take(name: str, count: int, names: list[str]) -> str:
    taken = [names.pop(0) for _ in range(count)]
    return f"{name}[{', '.join(taken)}]"


def _extent(array: FoundArray) -> isl.Set:
    """Return the elements of an array; an extent that is unknown or no affine function is left open."""
    elements = isl.Map("{ [] -> [] }")
    for extent in array.extents:
        index = isl.Map("{ [] -> [i] : i >= 0 }")
        if extent is not None and extent.affine is not None:
            below = isl.Map.from_pw_aff(extent.affine).apply_range(isl.Map("{ [n] -> [i] : i < n }"))
            index = index.intersect(below)
        elements = elements.flat_range_product(index)
    return elements.range().set_tuple_name(array.name)
