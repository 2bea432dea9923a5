"""SIMD detection: whether the instances of a task are a rectangular nest of one instruction.

The four conditions: a single operation with SIMD support; a dense rectangular domain of fixed size; at
least one dimension (and at most four); accesses that are linear but for their constant terms.
Source: dtg_codegen, Sec. 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import prod

import islpy as isl

from polyloom.polyhedra.bounds import (
    box_between,
    integer_bounds,
    is_independent_of,
)
from polyloom.polyhedra.box_hull import BoxHull
from polyloom.polyhedra.compression import variable_compression
from polyloom.polyhedra.functions import is_linear
from polyloom.polyhedra.loops.generate import Name, Number
from polyloom.polyhedra.text.documents import offset_text
from polyloom.polyhedra.text.paper_notation import notation, set_notation
from polyloom.polyhedra.text.points import sample_of
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.dataflow.tasks import ComputeTask
from polyloom.wafer.machine.descriptor_nests import MAX_DIMENSIONS, jointly_coalesced
from polyloom.wafer.machine.instruction_selection import match_instruction, work_at_point
from polyloom.wafer.machine.options import Effect, Extension
from polyloom.wafer.simd.decision import SimdAnalysis, SimdMode, SimdOptions, Strategy, scalar_reads
from polyloom.wafer.simd.domain import arrange, box_of
from polyloom.wafer.simd.missing import why_no_instruction
from polyloom.wafer.simd.whole_stream import WholeStream


def analyse(
    task: ComputeTask,
    arrays: Mapping[str, LocalArray],
    options: SimdOptions,
    whole: WholeStream | None = None,
) -> SimdAnalysis:
    """Examine one task and choose how it is done: hull, then exact bounds, then enumeration.

    ``whole``: how one instruction could work on the whole dense stream that drives the task, if it can;
    that comes before one instruction for each element.

    Source: dtg_codegen, Sec. 5.1-5.4; slide 26 (the order).
    """
    compression = variable_compression(task.instances)
    here = arrange(task, compression.map, compression.compressed, arrays, purely_affine=options.affine_only)
    match = match_instruction(task.statement, scalar_reads(task))
    analysis = SimdAnalysis(
        task=task,
        match=match,
        uncompressed=box_of(task.instances),
        compression=compression,
        box=here.box,
        operands=here.operands,
        hull=here.hull,
        extra=here.extra,
        enumeration=here.enumeration,
        strategy=Strategy.NONE,
        sizes=None,
        reason="",
    )
    if whole is not None and options.mode is not SimdMode.OFF and options.has(Extension.WHOLE_STREAM):
        effect = Effect(Extension.WHOLE_STREAM, f"one {whole.match.instruction.name} takes all elements")
        return replace(
            analysis,
            match=whole.match,
            strategy=Strategy.EXACT,
            sizes=whole.nest.size,
            whole=whole,
            effects=(effect,),
        )
    return _decide(analysis, arrays, options)


def enlarge(arrays: Mapping[str, LocalArray], analyses: tuple[SimdAnalysis, ...]) -> dict[str, LocalArray]:
    """Extend the arrays that extra instances write outside of (Sec. 5.3, Example 5.9), or read."""
    result = dict(arrays)
    for analysis in (a.innermost for a in _with_parts(analyses)):
        if analysis.strategy is Strategy.HULL and analysis.extra is not None:
            for operand in analysis.operands:
                touched = (analysis.extra.writes | analysis.extra.reads)[operand.array]
                result[operand.tensor] = result[operand.tensor].enlarged(touched)
        for tensor in analysis.zeroed:
            result[tensor] = replace(result[tensor], zero_padding=True)
    return result


def _with_parts(analyses: tuple[SimdAnalysis, ...]) -> Iterator[SimdAnalysis]:
    for analysis in analyses:
        yield from _with_parts(analysis.parts) if analysis.parts else (analysis,)


_Attempt = Callable[[SimdAnalysis, Mapping[str, LocalArray], SimdOptions], SimdAnalysis]


def _decide(analysis: SimdAnalysis, arrays: Mapping[str, LocalArray], options: SimdOptions) -> SimdAnalysis:
    obstacle, notes = _obstacle(analysis, options)
    if obstacle:
        return replace(analysis, reason=obstacle, notes=notes)
    return choose_strategy(analysis, arrays, options)


def choose_strategy(
    analysis: SimdAnalysis, arrays: Mapping[str, LocalArray], options: SimdOptions
) -> SimdAnalysis:
    """Try hull, exact bounds and enumeration in this order, or the one that is forced: condition 2.

    The operation does not matter here, so the shape of a task can be asked for without an instruction.
    """
    attempts: dict[SimdMode, _Attempt] = {
        SimdMode.HULL: _try_hull,
        SimdMode.EXACT: _try_exact,
        SimdMode.ENUMERATE: _try_enumeration,
    }
    chosen = list(attempts) if options.mode is SimdMode.AUTO else [options.mode]
    reasons: list[str] = []
    notes: list[str] = []
    for mode in chosen:
        outcome = attempts[mode](analysis, arrays, options)
        if outcome.strategy is not Strategy.NONE:
            return outcome
        reasons.append(f"{mode.value}: {outcome.reason}")
        notes += outcome.notes
    return replace(analysis, reason="; ".join(reasons), notes=tuple(notes))


def _obstacle(analysis: SimdAnalysis, options: SimdOptions) -> tuple[str, tuple[str, ...]]:
    """Return why no strategy can work, with notes: conditions 1, 3 and 4; empty where one may."""
    if options.mode is SimdMode.OFF:
        return "SIMD is switched off", ()
    if analysis.match is None:
        work, scalars = work_at_point(analysis.task.statement), scalar_reads(analysis.task)
        approximate = options.has(Extension.VECTOR_FUNCTIONS)
        return why_no_instruction(work, scalars, options.machine, approximate=approximate)
    dimensions = analysis.compression.compressed.dim(isl.dim_type.set)
    if dimensions == 0:
        return "there is a single instance, so there is nothing to vectorise", ()
    curved = [o.array for o in analysis.operands if not is_linear(o.local)]
    if curved:
        return f"the access to {curved[0]} is not linear", ()
    return "", ()


def _fail(analysis: SimdAnalysis, reason: str, *notes: str) -> SimdAnalysis:
    return replace(analysis, reason=reason, notes=notes)


def is_too_deep(
    analysis: SimdAnalysis, arrays: Mapping[str, LocalArray], options: SimdOptions, sizes: isl.Set
) -> bool:
    """Whether more than four dimensions have a size other than 1, joined ones counted once."""
    return _depth(analysis, arrays, options, sizes) > MAX_DIMENSIONS


def _depth(
    analysis: SimdAnalysis, arrays: Mapping[str, LocalArray], options: SimdOptions, sizes: isl.Set
) -> int:
    bounds = integer_bounds(sizes)
    fixed = [Number(high) if low == high else Name("size") for low, high in bounds]
    if not options.has(Extension.COALESCING):
        return sum(size != Number(1) for size in fixed)
    strides = [arrays[o.tensor].strides_along(o.columns) for o in analysis.operands]
    return len(jointly_coalesced(fixed, strides)[0])


def _coalescing(sizes: isl.Set) -> Iterator[Effect]:
    """Yield the effect of joining dimensions, where without it the nest would be too deep."""
    live = sum(bounds != (1, 1) for bounds in integer_bounds(sizes))
    if live > MAX_DIMENSIONS:
        yield Effect(Extension.COALESCING, f"the nest has {live} dimensions")


def _try_hull(analysis: SimdAnalysis, arrays: Mapping[str, LocalArray], options: SimdOptions) -> SimdAnalysis:
    """Use the box hull if its extra instances do no harm (Sec. 5.3)."""
    hull, extra = analysis.hull, analysis.extra
    if hull is None or extra is None:
        return _fail(analysis, "the instances have no box hull of fixed size")
    sizes = hull_sizes(analysis, hull)
    if is_too_deep(analysis, arrays, options, sizes):
        return _fail(analysis, f"the box hull has more than {MAX_DIMENSIONS} dimensions")
    clash = extra.writes[analysis.write.array].intersect(protected_cells(analysis, arrays))
    if not clash.is_empty():
        return _fail(
            analysis,
            "extra instances would write elements that belong to proper ones",
            f"for example {sample_of(clash)}",
            f"extra instances  {set_notation(extra.instances, ascii_only=True)}",
        )
    by_name = {array.name: array for array in arrays.values()}
    for name, touched in extra.reads.items():
        outside = touched.subtract(by_name[name].local_box())
        if not outside.is_empty():
            return _fail(
                analysis,
                f"extra instances would read outside {name}",
                f"for example {sample_of(outside)}",
            )
    effects = (*analysis.effects, *floor_effect(hull), *_coalescing(sizes))
    found = replace(analysis, strategy=Strategy.HULL, sizes=sizes, effects=effects)
    needed, memory = _enlarged_bytes(found, arrays), options.machine.memory_bytes
    if needed > memory:
        return _fail(analysis, f"arrays with room for extra instances take {needed} bytes, a PE has {memory}")
    return found


def _enlarged_bytes(analysis: SimdAnalysis, arrays: Mapping[str, LocalArray]) -> int:
    """Return the bytes of a task's arrays on its PE once they are enlarged."""
    enlarged = enlarge(arrays, (analysis,))
    return sum(enlarged[tensor].bytes for tensor in {o.tensor for o in analysis.operands})


def protected_cells(analysis: SimdAnalysis, arrays: Mapping[str, LocalArray]) -> isl.Set:
    """Return the cells, by ``map_before``, of the written tensor's elements that the PE holds."""
    held = arrays[analysis.task.statement.write.buffer]
    return held.held().apply(isl.Map.from_multi_aff(held.map_before))


def hull_sizes(analysis: SimdAnalysis, hull: BoxHull) -> isl.Set:
    """Return the size of the box hull as a parametric point."""
    sizes = _constant(analysis.compression.compressed.get_space(), hull.size)
    return sizes.intersect_params(analysis.task.known)


def floor_effect(hull: BoxHull) -> Iterator[Effect]:
    """Yield the effect of a floor division in the hull's offset."""
    if hull.has_floor:
        yield Effect(
            Extension.FLOOR_OFFSET,
            f"the box hull starts at {notation(offset_text(hull.offset), ascii_only=True)}",
        )


def _constant(space: isl.Space, values: tuple[int, ...]) -> isl.Set:
    point = isl.Set.universe(space)
    for k, value in enumerate(values):
        point = point.fix_val(isl.dim_type.set, k, isl.Val(value))
    return point


def _not_a_box(
    analysis: SimdAnalysis, arrays: Mapping[str, LocalArray], options: SimdOptions
) -> SimdAnalysis | None:
    if not analysis.box.dense:
        missing = _missing_point(analysis)
        return _fail(analysis, "the instances do not fill a box", f"the bounding box also contains {missing}")
    if is_too_deep(analysis, arrays, options, analysis.box.size):
        return _fail(analysis, f"the box has more than {MAX_DIMENSIONS} dimensions")
    return None


def _missing_point(analysis: SimdAnalysis) -> str:
    box = box_between(analysis.box.minimum, analysis.box.maximum)
    return sample_of(box.subtract(analysis.compression.compressed))


def _try_exact(
    analysis: SimdAnalysis, arrays: Mapping[str, LocalArray], options: SimdOptions
) -> SimdAnalysis:
    """Use the exact bounds if they do not depend on the index (Sec. 5.1, 5.2)."""
    failure = _not_a_box(analysis, arrays, options)
    if failure is not None:
        return failure
    if not is_independent_of(analysis.box.size, analysis.task.index_names):
        shown = set_notation(analysis.box.size, analysis.task.known, ascii_only=True)
        return _fail(analysis, f"the size depends on the index: {shown}")
    effects = (*analysis.effects, *_coalescing(analysis.box.size))
    return replace(analysis, strategy=Strategy.EXACT, sizes=analysis.box.size, effects=effects)


def _try_enumeration(
    analysis: SimdAnalysis, arrays: Mapping[str, LocalArray], options: SimdOptions
) -> SimdAnalysis:
    """Set up one configuration for each size (Sec. 5.4)."""
    failure = _not_a_box(analysis, arrays, options)
    if failure is not None:
        return failure
    enumeration = analysis.enumeration
    if enumeration is None:
        return _fail(analysis, "the sizes have no box hull of fixed size")
    count = prod(enumeration.extents)
    if count > options.max_configurations:
        limit = options.max_configurations
        return _fail(analysis, f"there are {count} sizes, more than the {limit} configurations allowed")
    effects = (*analysis.effects, *_coalescing(analysis.box.size))
    return replace(analysis, strategy=Strategy.ENUMERATED, sizes=analysis.box.size, effects=effects)
