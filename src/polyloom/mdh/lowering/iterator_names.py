"""md_homs whose iterators are called as nothing else is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from polyloom.ir.host import MdHom
from polyloom.ir.naming import fresh_all
from polyloom.mdh.schedule.addresses import Buffers, names_used
from polyloom.polyhedra.loops.tree import IntExpression, Name, replace_name


def distinct_iterators(hom: MdHom, buffers: Buffers) -> MdHom:
    """Return an md_hom none of whose iterators is called as a buffer or parameter is."""
    taken = {*buffers, *names_used(hom, buffers)}
    if taken.isdisjoint(hom.iterators):
        return hom
    old = [name for name in hom.iterators if name in taken]  # no new name is an old one: see ``_renamed``
    new = dict(zip(old, fresh_all(old, {*taken, *hom.iterators}), strict=True))
    names = tuple(new.get(name, name) for name in hom.iterators)
    return replace(
        hom,
        iterators=names,
        guard=_renamed(hom.guard, new),
        written=_renamed(hom.written, new),
    )


def _renamed(condition: IntExpression | None, new: Mapping[str, str]) -> IntExpression | None:
    """Return a condition with new names for some; none of the new ones is in it."""
    if condition is None:
        return None
    for before, after in new.items():
        condition = replace_name(condition, before, Name(after))
    return condition
