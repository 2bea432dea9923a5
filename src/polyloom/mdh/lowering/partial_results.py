"""Reductions that groups share: md_homs of a group's part, and of what brings the parts together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from polyloom.ir.expressions import Expression, Iterator, Read
from polyloom.ir.host import Buffer, Index, MdHom, View
from polyloom.ir.rebuild import read_positions, rebuilt
from polyloom.mdh.schedule.tiling import TileFacts


def parts_only(hom: MdHom, views: tuple[View, ...]) -> MdHom:
    """Return the md_hom that leaves partial results at ``views``, neither started nor finished."""
    none = (None,) * len(views)
    return replace(hom, outputs=views, written=None, initial=none, finish=none)


def combination(facts: TileFacts, parts: tuple[str, ...], partial: tuple[Buffer, ...]) -> MdHom:
    """Return the md_hom that combines partial results: kept dimensions, then the parts."""
    hom, kept, counts = facts.hom, facts.kept, tuple(map(facts.groups, facts.split))
    rank, count = len(kept) + len(parts), len(partial)
    used = [k for k in read_positions(*hom.initial, *hom.finish) if k < len(hom.inputs)]
    order = [*(len(kept) + k for k in range(len(parts))), *range(len(kept))]
    units = tuple(Index.unit(d, rank) for d in order)
    positions = {old: count + new for new, old in enumerate(used)}
    positions |= {len(hom.inputs) + o: count + len(used) + o for o in range(count)}

    def moved(e: Expression | None) -> Expression | None:
        return None if e is None else rebuilt(e, lambda r: _moved(r, positions, kept))

    operator = hom.combine[facts.split[0]]
    assert operator.combiner is not None
    return replace(
        hom,
        name=f"{hom.name}_whole",
        iterators=(*(hom.iterators[d] for d in kept), *parts),
        extents=(*(hom.extents[d] for d in kept), *counts),
        inputs=(
            *(View(b.name, units) for b in partial),
            *(_seen(hom.inputs[k], kept, rank) for k in used),
        ),
        outputs=tuple(_seen(view, kept, rank) for view in hom.outputs),
        terms=tuple(Read(o, r.type) for o, r in enumerate(operator.combiner.results)),
        combine=(*(hom.combine[d] for d in kept), *(operator for _ in parts)),
        initial=tuple(moved(e) for e in hom.initial),
        finish=tuple(moved(e) for e in hom.finish),
        guard=None,
    )


def _moved(e: Expression, positions: Mapping[int, int], kept: tuple[int, ...]) -> Expression | None:
    if isinstance(e, Read):
        return Read(positions[e.position], e.type)
    if isinstance(e, Iterator):
        return Iterator(kept.index(e.dimension), e.type)
    return None


def _seen(view: View, kept: tuple[int, ...], rank: int) -> View:
    """Return a view over the kept dimensions alone."""
    indices: list[Index | Expression] = []
    for index in view.indices:
        assert isinstance(index, Index)
        coefficients = [index.coefficients[d] for d in kept]
        indices.append(Index((*coefficients, *(0,) * (rank - len(kept))), index.offset))
    return View(view.buffer, tuple(indices), view.span)
