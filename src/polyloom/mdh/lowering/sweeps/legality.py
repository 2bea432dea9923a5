"""How far a sweep has to lie behind another one: from the elements that both touch, as sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyloom.ir.host import HostNode, Index, MdHom, View, uses
from polyloom.ir.inequalities import inequalities_of
from polyloom.ir.rebuild import read_positions
from polyloom.mdh.lowering.sweeps.members import Member
from polyloom.mdh.schedule.addresses import known, reduced_dimensions
from polyloom.polyhedra.distances import Touch, least_distance


def conflict(a: HostNode, b: HostNode) -> bool:
    """Whether nodes touch a buffer that one of them writes, whatever the elements."""
    one, other = uses([a]), uses([b])
    return bool(one.written & other.all or one.read & other.written)


def shift_behind(a: Member, b: Member) -> int | None:
    """Return the least shift of ``b`` against ``a``, which runs before it; None: any is right.

    With it no row of ``b`` is done in an earlier block than a row of ``a`` with which it shares an element
    that one of them writes; in one block ``a`` comes first. Errors: ``TooHardError``.
    """
    distances = [
        least_distance(x.touch, y.touch, a.dimension, b.dimension)
        for x in touches(a.node)
        for y in touches(b.node)
        if x.buffer == y.buffer and (x.written or y.written)
    ]
    return max((-least for least in distances if least is not None), default=None)


def is_cut_right(member: Member) -> bool:
    """Whether no row of a node reads what another row writes; the rows of a reduction add up in turn."""
    d, node = member.dimension, member.node
    if d in reduced_dimensions(node):
        return True
    found = list(touches(node))
    pairs = [(x, y) for x in found if x.written for y in found if y.buffer == x.buffer]
    distances = [
        least_distance(first.touch, second.touch, d, d)
        for x, y in pairs
        for first, second in ((x, y), (y, x))
    ]
    return all(least is None or least >= 0 for least in distances)


@dataclass(frozen=True)
class Touched:
    """A view of a node as sets know it."""

    buffer: str
    written: bool
    touch: Touch


def touches(node: MdHom) -> Iterator[Touched]:
    """Yield what a node reads and writes: terms where its guard holds, results of reductions everywhere."""
    conditions = inequalities_of(node.guard, node.iterators) or ()
    guard = tuple((affine.coefficients, affine.constant) for affine in conditions)
    always = set(read_positions(*node.initial, *node.finish))
    for k, view in enumerate(node.inputs):
        yield _touched(node, view, written=False, conditions=() if k in always else guard)
    for view in node.outputs:
        yield _touched(node, view, written=True, conditions=() if reduced_dimensions(node) else guard)


def _touched(
    node: MdHom, view: View, *, written: bool, conditions: tuple[tuple[tuple[int, ...], int], ...]
) -> Touched:
    extents = tuple(known(extent) or 0 for extent in node.extents)
    subscripts = tuple((i.coefficients, i.offset) if isinstance(i, Index) else None for i in view.indices)
    return Touched(view.buffer, written, Touch(extents=extents, subscripts=subscripts, conditions=conditions))
