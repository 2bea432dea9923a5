"""The passes in order: from an md_hom and its schedule to a kernel tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from polyloom.ir.expressions import has_procedure
from polyloom.ir.host import Buffer, HostProgram, Index, MdHom, Role, View, expressions_of
from polyloom.ir.naming import Names
from polyloom.ir.reductions import unsigned_sum
from polyloom.mdh.lowering.iterator_names import distinct_iterators
from polyloom.mdh.lowering.matrix.products import matrix_product
from polyloom.mdh.lowering.partial_results import combination, parts_only
from polyloom.mdh.lowering.rows import Rows
from polyloom.mdh.lowering.sequential_nest import term_names
from polyloom.mdh.lowering.tiles.cache_tiles import cache_tiles
from polyloom.mdh.lowering.tiles.context import Tiles
from polyloom.mdh.lowering.tiles.copies import copied
from polyloom.mdh.lowering.tiles.following import following
from polyloom.mdh.lowering.tiles.groups import LEAST_SHARED, shared_if_large, shared_loops
from polyloom.mdh.lowering.tiles.items import in_place, work_items
from polyloom.mdh.lowering.tiles.jam import jammed
from polyloom.mdh.lowering.tiles.naive import naive_loops, partial_totals
from polyloom.mdh.lowering.tiles.several_totals import several_totals
from polyloom.mdh.lowering.tiles.stages import staged
from polyloom.mdh.lowering.tiles.unrolling import unrolled_reductions
from polyloom.mdh.lowering.tiles.vectors import vectors
from polyloom.mdh.lowering.tiles.whole_tiles import whole_tiles
from polyloom.mdh.schedule.addresses import Buffers, kept_dimensions, names_used
from polyloom.mdh.schedule.schedules import Schedule, plain_schedule
from polyloom.mdh.tree.distinct import distinct
from polyloom.mdh.tree.nodes import Array, Code, Space
from polyloom.mdh.tree.rewrite import rewritten
from polyloom.polyhedra.loops.tree import Name

Pass = Callable[[Tiles, Code], Code]

PASSES: tuple[Pass, ...] = (
    shared_loops,
    cache_tiles,
    work_items,
    copied,
    staged,
    in_place,
    several_totals,
    jammed,
    unrolled_reductions,
    whole_tiles,
    vectors,
    following,
)
"""What makes a schedule's loops of the naive ones; each keeps what its docstring says."""


Second = Callable[[MdHom, Buffers], Schedule]
"""Chooses how partial results of groups are combined: a schedule whose groups leave none."""


def scheduled(
    hom: MdHom,
    buffers: Buffers,
    schedule: Schedule,
    taken: Iterable[str] = (),
    second: Second | None = None,
) -> Code:
    """Return the kernel tree of an md_hom under a schedule.

    Each group loop at the top, with what is inside, is one kernel. Where a group has several work-items,
    the arrays that they share are declared in front of the item loops, which are around everything else.
    ``hom`` has tiles, and no iterator called as a buffer or parameter is; ``schedule`` is legal for it.
    ``taken``: names that the code may not use, besides those of buffers and the md_hom's own.
    Arrays outside of group loops are shared by all groups.
    ``second``: how partial results are combined, unless by vectors along the results.
    """
    names = Names({*taken, *names_used(hom, buffers), *buffers, *hom.iterators})
    if schedule.goes_by_points:
        hom = unsigned_sum(hom)
    tiles = Tiles(hom, buffers, schedule, names, statements=term_names(hom))
    return _in_parts(tiles, second) if tiles.facts.split else _lowered(tiles)


def lower_scheduled(
    program: HostProgram,
    schedule_of: Callable[[MdHom, HostProgram], Schedule | None],
    rows: Mapping[MdHom, Rows] | None = None,
    least: int = LEAST_SHARED,
) -> Callable[[MdHom], Code | None]:
    """Return what lowers the md_homs of a program under their schedules; none without one, or of steps.

    ``rows``: what some md_homs become before they get a schedule. ``least``: points of an md_hom that threads
    share.
    """

    def lower(hom: MdHom) -> Code | None:
        found = (rows or {}).get(hom)
        around = program if found is None else found.program
        code = _scheduled(hom if found is None else found.hom, around)
        return code if code is None or found is None else rewritten(code, found.placed)

    def _scheduled(hom: MdHom, around: HostProgram) -> Code | None:
        schedule = None if has_procedure(*expressions_of(hom)) else schedule_of(hom, around)
        if schedule is None:
            return None
        code = scheduled(distinct_iterators(hom, around.by_name), around.by_name, schedule)
        return shared_if_large(hom, code, least)

    return lower


def _lowered(tiles: Tiles) -> Code:
    if tiles.schedule.matrix:
        return distinct(tiles.names, matrix_product(tiles))
    code = naive_loops(tiles)
    for step in PASSES:
        code = step(tiles, code)
    return distinct(tiles.names, code)


def _in_parts(tiles: Tiles, choose: Second | None) -> Code:
    """Return loops whose groups leave partial results, and loops that combine them."""
    hom, facts, names = tiles.hom, tiles.facts, tiles.names
    shape = (*map(facts.groups, facts.split), *(hom.extents[d] for d in facts.kept))
    assert facts.combiner is not None
    partial = tuple(
        Buffer(name=names.of(("partial", o), f"partial_{o}"), type=r.type, shape=shape, role=Role.LOCAL)
        for o, r in enumerate(facts.combiner.results)
    )
    parts = tuple(names.of(("part", d), f"{hom.iterators[d]}_part") for d in facts.split)
    offsets = tuple(Index((0,) * len(hom.extents), Name(part)) for part in parts)
    kept = tuple(Index.unit(d, len(hom.extents)) for d in facts.kept)
    views = tuple(View(buffer.name, (*offsets, *kept)) for buffer in partial)
    known = {**tiles.buffers, **{buffer.name: buffer for buffer in partial}}
    first = replace(tiles, hom=parts_only(hom, views), buffers=known, parts=facts.split)
    second = combination(facts, parts, partial)
    arrays = (
        Array(name=b.name, type=b.type, shape=b.shape, space=Space.GROUP, align=64, totals=totals)
        for b, totals in zip(partial, partial_totals(first), strict=False)
    )
    chosen = combining_schedule(second, tiles.schedule.width) if choose is None else choose(second, known)
    last = Tiles(second, known, chosen, names)
    return (*arrays, *_lowered(first), *_lowered(last))


def combining_schedule(hom: MdHom, width: int) -> Schedule:
    """Return how partial results are combined: by vectors along the last kept dimension, in groups."""
    plain = plain_schedule(len(hom.extents), len(hom.inputs))
    kept = kept_dimensions(hom)
    if not kept:
        return plain
    last = kept[-1]
    group = tuple(16 * width if d == last else 0 for d in range(len(hom.extents)))
    if width == 1:
        return replace(plain, group=group)
    return replace(plain, group=group, vector=last, width=width)
