"""Reads that lie apart along vectors, and together along another dimension: blocks, turned in registers.

    for j, i in vectors: b[j, i] = a[i, j]      of a register tile of 8 j and 8 i, 8 vectors of a's rows

``print/turned_blocks`` prints them where the points along that dimension are innermost in a register tile.
"""

from __future__ import annotations

from polyloom.ir.types import ElementType
from polyloom.mdh.device.costs import NEAR
from polyloom.mdh.schedule.addresses import Access, known
from polyloom.mdh.schedule.tiling import TileFacts


def can_turn(facts: TileFacts, access: Access, v: int) -> int | None:
    """Return the kept dimension along which a read has neighbours where those along ``v`` lie apart.

    None where there is none, or a reduction: its totals are written out.
    """
    distance = known(access.strides[v])
    is_apart = distance is None or abs(distance) > max(NEAR)
    plain = access.buffer.type not in (ElementType.FLOAT16, ElementType.BOOL)
    if facts.reduced or facts.hom.guard is not None or not is_apart or not plain:
        return None
    return next((d for d in facts.kept if d != v and access.is_unit(d)), None)


def turned_dimension(facts: TileFacts, access: Access) -> int | None:
    """Return the dimension along which a schedule turns blocks of a read; None where it does not."""
    schedule, v = facts.schedule, facts.schedule.vector
    d = None if v is None else can_turn(facts, access, v)
    if d is None or schedule.private[d] % schedule.width:
        return None
    inside = schedule.unrolled_order[schedule.unrolled_order.index(d) + 1 :]
    return d if all(schedule.private[e] == 1 and e != v for e in inside) else None
