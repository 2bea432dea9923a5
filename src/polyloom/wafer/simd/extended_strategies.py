"""Our extensions of the paper's SIMD strategies, used where the cost model finds them cheaper.

The paper's strategies are tried first. Where they give several configurations, loops, or a hull with extra
instances, those of this module are compared with them by the estimated cycles of the costliest run.

Not in the papers: dtg_codegen names these as future work (Sec. 3, 5.2, 5.3). See docs/simd.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import prod

import islpy as isl

from polyloom.ir.reductions import Combine
from polyloom.polyhedra.bounds import integer_bounds, is_independent_of
from polyloom.polyhedra.box_hull import box_hull
from polyloom.polyhedra.compression import Compression
from polyloom.polyhedra.coordinates import other_bases, without_constants
from polyloom.polyhedra.functions import compose, is_linear
from polyloom.polyhedra.pieces import few_boxes
from polyloom.polyhedra.text.documents import function_text
from polyloom.polyhedra.text.paper_notation import notation, set_notation
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.dataflow.sparsity import zeros_may_be_dropped
from polyloom.wafer.dataflow.tasks import TaskKind
from polyloom.wafer.machine.options import Effect, Extension
from polyloom.wafer.simd.cost import run_cycles, single_instance_cycles
from polyloom.wafer.simd.decision import SimdAnalysis, SimdMode, SimdOptions, Sizing, Strategy
from polyloom.wafer.simd.domain import Operand, arrange
from polyloom.wafer.simd.paper_strategies import (
    analyse,
    choose_strategy,
    enlarge,
    floor_effect,
    hull_sizes,
    is_too_deep,
    protected_cells,
)

_MOST_BASES = 12
"""Bases of the lattice that are tried, at most."""

_MOST_GROWTH = 4
"""Largest allowed growth factor of an array padded for over-reads."""

_MOST_BOXES = 4
"""Boxes that a set is cut into, at most."""

_DIM = isl.dim_type
Arrays = Mapping[str, LocalArray]


def improve(analysis: SimdAnalysis, arrays: Arrays, options: SimdOptions) -> SimdAnalysis:
    """Return the cheapest way to do a task; the paper's where none is cheaper."""
    if not _is_open(analysis, options):
        return analysis
    ways = [analysis, *_alternatives(analysis, arrays, options)]
    best = min(ways, key=lambda way: run_cycles(way, enlarge(arrays, (way,)), options.machine))
    return _as_scalar_code(_without_constants(best, arrays, options), arrays, options)


def _is_open(analysis: SimdAnalysis, options: SimdOptions) -> bool:
    """Whether there is an instruction for the task and something to vectorise."""
    if options.mode is SimdMode.OFF or analysis.whole is not None or analysis.match is None:
        return False
    if analysis.compression.compressed.dim(_DIM.set) == 0:
        return False
    return all(is_linear(o.local) for o in analysis.operands)


def _alternatives(analysis: SimdAnalysis, arrays: Arrays, options: SimdOptions) -> Iterator[SimdAnalysis]:
    """Yield alternatives where the paper's strategies gave several configurations, loops, or extra work."""
    if options.has(Extension.UNIMODULAR) and not analysis.box.dense:
        yield from _in_other_bases(analysis, arrays, options)
    if analysis.strategy not in (Strategy.NONE, Strategy.ENUMERATED):
        return
    if options.mode in (SimdMode.AUTO, SimdMode.EXACT):
        yield from _sized_anew(analysis, arrays, options)
    if options.has(Extension.BOXES) and options.mode is SimdMode.AUTO and not analysis.box.dense:
        yield from _as_few_boxes(analysis, arrays, options)
    if options.mode in (SimdMode.AUTO, SimdMode.HULL):
        hull_only = replace(options, mode=SimdMode.HULL)
        affine = (choose_strategy(a, arrays, hull_only) for a in _with_affine_hull(analysis, arrays))
        yield from (way for way in affine if way.strategy is Strategy.HULL)
        padded = _padded_hull(analysis, arrays, options)
        if padded is not None:
            yield padded


# ---- Other coordinates ---


def _in_coordinates(
    analysis: SimdAnalysis, change: isl.MultiAff, arrays: Arrays, options: SimdOptions
) -> SimdAnalysis:
    """Return the task with its instances in other coordinates: ``change``: ``{ [new] -> [old] }``."""
    order = compose(change, analysis.compression.map)
    instances = analysis.compression.compressed.preimage_multi_aff(change)
    here = arrange(analysis.task, order, instances, arrays, purely_affine=options.affine_only)
    return replace(
        analysis,
        compression=Compression(order, instances),
        box=here.box,
        operands=here.operands,
        hull=here.hull,
        extra=here.extra,
        enumeration=here.enumeration,
        strategy=Strategy.NONE,
        sizes=None,
        plain=analysis.plain or analysis,
    )


def _in_other_bases(analysis: SimdAnalysis, arrays: Arrays, options: SimdOptions) -> Iterator[SimdAnalysis]:
    """Yield the ways in other bases whose box hull is smaller: without extra instances, or with fewer."""
    if order_matters(analysis):
        return
    volume = None if analysis.hull is None else prod(analysis.hull.size)
    compressed = analysis.compression.compressed
    for basis in islice(other_bases(compressed), _MOST_BASES):
        hull = box_hull(compressed.preimage_multi_aff(basis), purely_affine=options.affine_only)
        if hull is None or (volume is not None and prod(hull.size) >= volume):
            continue
        moved = _in_coordinates(analysis, basis, arrays, options)
        order = notation(function_text(moved.compression.map), ascii_only=True)
        effect = Effect(Extension.UNIMODULAR, f"{order}, size {list(hull.size)}")
        moved = replace(moved, effects=(effect,), reason="", notes=())
        found = choose_strategy(moved, arrays, options)
        yield from (way for way in (found,) if way.strategy is not Strategy.NONE)
        padded = _padded_hull(moved, arrays, options)
        yield from (way for way in (padded,) if way is not None)


def _without_constants(analysis: SimdAnalysis, arrays: Arrays, options: SimdOptions) -> SimdAnalysis:
    """Leave out the dimensions of the nest that hold one value (Example 5.7)."""
    if analysis.strategy is Strategy.NONE or analysis.parts or not options.has(Extension.CONSTANT_DIMENSIONS):
        return analysis
    change = without_constants(analysis.compression.compressed, purely_affine=options.affine_only)
    if change is None or change.dim(_DIM.in_) == 0:
        return analysis
    found = _in_coordinates(analysis, change, arrays, options)
    sizes = found.box.size
    if analysis.strategy is Strategy.HULL:
        if found.hull is None or prod(found.hull.size) != prod(analysis.hull.size if analysis.hull else ()):
            return analysis
        sizes = hull_sizes(found, found.hull)
    before, after = (a.compression.compressed.dim(_DIM.set) for a in (analysis, found))
    effect = Effect(Extension.CONSTANT_DIMENSIONS, f"the nest has {after} of {before} dimensions")
    effects = (*analysis.effects, effect)
    return replace(found, strategy=analysis.strategy, sizes=sizes, effects=effects)


def order_matters(analysis: SimdAnalysis) -> bool:
    """Whether instances of one run that write one element must keep their order: it decides the bits."""
    statement = analysis.task.statement
    rounds = statement.expression.type.is_float and statement.reduction in (Combine.ADD, Combine.MULTIPLY)
    writes = isl.Map.from_multi_aff(analysis.write.compressed)
    return rounds and not writes.intersect_domain(analysis.compression.compressed).is_injective()


# ---- Sizes that are set anew ---


def _sized_anew(analysis: SimdAnalysis, arrays: Arrays, options: SimdOptions) -> Iterator[SimdAnalysis]:
    """Yield the task as a dense box whose sizes are set before each call, or when an outer index changes."""
    sizes = analysis.box.size
    if not analysis.box.dense or is_too_deep(analysis, arrays, options, sizes):
        return
    exact = replace(analysis, strategy=Strategy.EXACT, sizes=sizes, reason="", notes=())
    one = sum(low < high or high > 1 for low, high in integer_bounds(sizes)) == 1
    wanted = Extension.SET_LENGTH if one and options.machine.set_length else Extension.CONFIGURE_EACH_CALL
    shown = set_notation(sizes, analysis.task.known, ascii_only=True)
    ways = [(Sizing.CALL, wanted)]
    outer = analysis.task.index_names[:-1]
    sparse = analysis.task.kind is TaskKind.SPARSE
    if sparse and outer and is_independent_of(sizes, analysis.task.index_names[-1:]):
        ways.append((Sizing.CHUNK, Extension.OUTER_SIZES))
    for sizing, extension in ways:
        if options.has(extension):
            effects = (*analysis.effects, Effect(extension, f"sizes {shown}"))
            yield replace(exact, sizing=sizing, effects=effects)


# ---- A few boxes ---


def _as_few_boxes(analysis: SimdAnalysis, arrays: Arrays, options: SimdOptions) -> Iterator[SimdAnalysis]:
    """Yield the ways to do a task as a few boxes, an instruction each."""
    if order_matters(analysis):
        return
    inner = replace(options, extensions=options.extensions - {Extension.BOXES})
    for boxes in few_boxes(analysis.compression.compressed, _MOST_BOXES):
        parts = tuple(_part(analysis, box, arrays, inner) for box in boxes)
        if any(part.strategy is not Strategy.NONE for part in parts):
            effect = Effect(Extension.BOXES, f"{len(parts)} boxes")
            sizes = next(part.sizes for part in parts if part.sizes is not None)
            yield replace(
                analysis,
                strategy=Strategy.EXACT,
                sizes=sizes,
                parts=parts,
                effects=(effect,),
                reason="",
                notes=(),
            )


def _part(analysis: SimdAnalysis, box: isl.Set, arrays: Arrays, options: SimdOptions) -> SimdAnalysis:
    instances = box.apply(isl.Map.from_multi_aff(analysis.compression.map)).coalesce()
    task = replace(analysis.task, instances=instances)
    return improve(analyse(task, arrays, options), arrays, options)


# ---- Reads outside of arrays ---


def _with_affine_hull(analysis: SimdAnalysis, arrays: Arrays) -> Iterator[SimdAnalysis]:
    """Yield the task with the paper's purely affine hull, where isl's has a floor: it lies elsewhere."""
    if analysis.hull is not None and analysis.hull.has_floor:
        order, instances = analysis.compression.map, analysis.compression.compressed
        affine = arrange(analysis.task, order, instances, arrays, purely_affine=True)
        yield replace(analysis, hull=affine.hull, extra=affine.extra)


def _padded_hull(analysis: SimdAnalysis, arrays: Arrays, options: SimdOptions) -> SimdAnalysis | None:
    """Use the box hull although its extra instances read outside of arrays, which are enlarged.

    Where extra instances would change proper elements, they must read a zero that changes nothing there: in
    the padding of an array that nothing is written to.
    """
    hull, extra = analysis.hull, analysis.extra
    if hull is None or extra is None:
        return None
    sizes = hull_sizes(analysis, hull)
    silent = tuple(_silent(analysis, arrays))
    harmless = _harmless(analysis, arrays, silent)
    zeroed = frozenset() if _harmless(analysis, arrays, ()) else frozenset(o.tensor for o in silent)
    effects = (*_padding_effects(analysis, arrays, zeroed), *floor_effect(hull))
    allowed = all(options.has(effect.extension) for effect in effects)
    if not harmless or not allowed or is_too_deep(analysis, arrays, options, sizes):
        return None
    effects = (*analysis.effects, *effects)
    found = replace(
        analysis, strategy=Strategy.HULL, sizes=sizes, reason="", notes=(), zeroed=zeroed, effects=effects
    )
    return found if _fits(found, arrays, options) else None


def _silent(analysis: SimdAnalysis, arrays: Arrays) -> Iterator[Operand]:
    """Yield the reads of the program's inputs where a zero changes nothing."""
    statement = analysis.task.statement
    if statement.reduction is Combine.CONCATENATE:
        return
    for operand in analysis.reads():
        if arrays[operand.tensor].given and zeros_may_be_dropped(statement, operand.position):
            yield operand


def _harmless(analysis: SimdAnalysis, arrays: Arrays, silent: Sequence[Operand]) -> bool:
    """Whether all extra instances that write proper elements read a zero around a silent operand.

    What else they read must be there: nothing times zero is nothing only for data.
    """
    assert analysis.extra is not None
    harmful = analysis.extra.instances.intersect(
        _that_access(analysis.write, protected_cells(analysis, arrays))
    )
    inside = harmful
    for operand in analysis.reads():
        array = arrays[operand.tensor]
        present = _that_access(operand, array.held().apply(isl.Map.from_multi_aff(array.map_before)))
        within = _that_access(operand, array.local_box())
        if operand in silent:
            inside = inside.intersect(within)
            present = present.union(harmful.subtract(within))
        if not harmful.is_subset(present):
            return False
    return bool(inside.is_empty())


def _that_access(operand: Operand, cells: isl.Set) -> isl.Set:
    """Return the points of the nest at which an operand is one of the cells (by ``map_before``)."""
    return cells.apply(isl.Map.from_multi_aff(operand.local).reverse())


def _padding_effects(analysis: SimdAnalysis, arrays: Arrays, zeroed: frozenset[str]) -> Iterator[Effect]:
    """Yield the effect of reads outside of arrays, which are then enlarged."""
    enlarged = enlarge(arrays, (replace(analysis, strategy=Strategy.HULL),))
    parts = []
    for operand in analysis.reads():
        before, after = arrays[operand.tensor].extent, enlarged[operand.tensor].extent
        if before != after:
            parts.append(f"{operand.array}{list(before)} is enlarged to {list(after)}")
    if parts:
        extension = Extension.ZERO_PADDING if zeroed else Extension.OUTSIDE_READS
        yield Effect(extension, "; ".join(dict.fromkeys(parts)))


def _fits(analysis: SimdAnalysis, arrays: Arrays, options: SimdOptions) -> bool:
    """Whether the enlarged arrays fit in memory, none of them many times as large as before."""
    enlarged = enlarge(arrays, (analysis,))
    if any(array.bytes > _MOST_GROWTH * arrays[name].bytes for name, array in enlarged.items()):
        return False
    return sum(array.bytes for array in enlarged.values()) <= options.machine.memory_bytes


# ---- A single instance ---


def _as_scalar_code(analysis: SimdAnalysis, arrays: Arrays, options: SimdOptions) -> SimdAnalysis:
    """Return the task without an instruction where that would have one element and cost more."""
    if analysis.sizes is None or analysis.parts or not options.has(Extension.SINGLE_INSTANCE):
        return analysis
    if options.mode is not SimdMode.AUTO or prod(high for _, high in integer_bounds(analysis.sizes)) > 1:
        return analysis
    scalar = single_instance_cycles(analysis, arrays, options.machine)
    instruction = run_cycles(analysis, arrays, options.machine)
    if scalar >= instruction:
        return analysis
    text = f"about {scalar} cycles instead of {instruction}"
    return replace(
        analysis,
        strategy=Strategy.NONE,
        sizes=None,
        zeroed=frozenset(),
        reason="there is one instance at most, and scalar code is cheaper",
        effects=(Effect(Extension.SINGLE_INSTANCE, text),),
    )
