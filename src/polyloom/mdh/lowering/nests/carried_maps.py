"""Maps that a reduction of the same points carries out: what the map stores is not loaded again.

    for i from 0 to n:                   total = 0.0
      a[i] = a[i] * 0.5 + b[i]           for i from 0 to n:
    total = 0.0                    ->      a[i] = a[i] * 0.5 + b[i]
    for i from 0 to n:                     total = total + a[i]
      total = total + a[i]

The map may also stand behind the reduction. Keeps true: the reduction's code visits each point once, in
whatever order and by whatever thread; the map's instance of a point stands before (behind) the terms of that
point, which alone load what the map stores.

Source: loop fusion (Kennedy and McKinley 1993). Not in the papers: of a map and any schedule of a reduction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from polyloom.ir.host import MdHom, Order, View
from polyloom.ir.transform.fuse_maps import combined_dimensions
from polyloom.ir.transform.joining.elements import are_apart
from polyloom.mdh.tree.nodes import Code, For, Kind, Reshaped, Statement, Store
from polyloom.mdh.tree.rewrite import arrays_used, blocks, loads_of, walk


def may_carry(a: MdHom, b: MdHom) -> bool:
    """Return whether a map ``a`` that shares data may run at the points of a reduction beside it."""
    if not _is_plain_map(a) or not _is_plain_reduction(b) or a.extents != b.extents:
        return False
    sizes = {term.type.size for term in (*a.terms, *b.terms)}
    views = {*a.inputs, *a.outputs}
    return len(sizes) == 1 and not views.isdisjoint(b.inputs) and _keeps_order(a, b)


def _is_plain_map(hom: MdHom) -> bool:
    return (
        len(hom.outputs) == 1
        and not combined_dimensions(hom)
        and all(part is None for part in (*hom.initial, *hom.finish, hom.guard, hom.written))
    )


def _is_plain_reduction(hom: MdHom) -> bool:
    return (
        bool(combined_dimensions(hom))
        and hom.guard is None
        and hom.written is None
        and all(o.order in (Order.CONCATENATE, Order.POINTWISE) for o in hom.combine)
    )


def _keeps_order(a: MdHom, b: MdHom) -> bool:
    """Whether both touch an element that one of them writes at the same point alone, or never."""
    given = [(x, y) for x in a.outputs for y in b.inputs if x != y]
    pairs = [*given, *((x, y) for x in (*a.inputs, *a.outputs) for y in b.outputs)]
    return all(x.buffer != y.buffer or are_apart(x, y, a) for x, y in pairs)


def can_carry(code: Code, terms: Sequence[str], stored: View, reshaped: Collection[Reshaped]) -> bool:
    """Return whether a reduction's code loads what a map stores in its terms alone, point by point.

    ``terms``: the statements of the reduction's terms; ``stored``: what the map writes.
    """
    if not terms or any(r.parameter == stored.buffer and r.name in arrays_used(code) for r in reshaped):
        return False
    if any(stored.buffer in _loaded(s) and not is_term(s, terms) for s in walk(code)):
        return False
    return all(_are_together(block, terms) for block in _blocks(code))


def are_alike(a: Code, b: Code) -> bool:
    """Return whether two codes are both in vectors, and both shared by threads or neither."""
    kinds, others = ({s.kind for s in walk(code) if isinstance(s, For)} for code in (a, b))
    return Kind.VECTOR in kinds & others and (Kind.GROUP in kinds) == (Kind.GROUP in others)


def _loaded(statement: Statement) -> set[str]:
    return {load.array for load in loads_of(statement)}


def is_term(statement: Statement, terms: Collection[str]) -> bool:
    """Return whether a statement carries out one of these terms."""
    return (
        isinstance(statement, Store)
        and statement.instance is not None
        and statement.instance.statement in terms
    )


def _blocks(code: Code) -> list[Code]:
    return [code, *(block for statement in walk(code) for block in blocks(statement))]


def _are_together(block: Code, terms: Sequence[str]) -> bool:
    """Whether the terms of each point follow one another in a block, the first one first."""
    instances = [s.instance for s in block if isinstance(s, Store) and is_term(s, terms)]
    found = [instance for instance in instances if instance is not None]
    groups = [found[k : k + len(terms)] for k in range(0, len(found), len(terms))]
    return all(
        [i.statement for i in group] == list(terms) and len({i.arguments for i in group}) == 1
        for group in groups
    )
