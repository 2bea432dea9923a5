"""SIMD beyond the paper: other ways to do a task, where the paper's order finds none or a costly one.

The paper's order decides first. Where it ends with several configurations, or with loops, the ways of this
module compete with what it found, by the cycles of the costliest run.

Not in the papers: dtg_codegen names these as future work (Sec. 3, 5.2, 5.3). See docs/simd.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

import islpy as isl

from polyloom.ir.program import Combine
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.functions import is_linear
from polyloom.wafer.arrangement import Operand, arrange
from polyloom.wafer.call_cost import run_cycles, single_instance_cycles
from polyloom.wafer.extensions import Effect, Extension
from polyloom.wafer.memory import LocalArray
from polyloom.wafer.simd import (
    SimdAnalysis,
    SimdMode,
    SimdOptions,
    Strategy,
    choose_strategy,
    enlarge,
    floor_effect,
    hull_sizes,
    is_too_deep,
    protected_cells,
)
from polyloom.wafer.zeros import zeros_may_be_dropped

_DIM = isl.dim_type
Arrays = Mapping[str, LocalArray]


def improve(analysis: SimdAnalysis, arrays: Arrays, options: SimdOptions) -> SimdAnalysis:
    """Return the cheapest way to do a task; what the paper's order found where nothing is cheaper."""
    if not _is_open(analysis, options):
        return analysis
    ways = [analysis, *_ways(analysis, arrays, options)]
    best = min(ways, key=lambda way: run_cycles(way, arrays, options.machine))
    return _as_scalar_code(best, arrays, options)


def _is_open(analysis: SimdAnalysis, options: SimdOptions) -> bool:
    """Whether there is an instruction for the task and something to vectorise."""
    if options.mode is SimdMode.OFF or analysis.whole is not None or analysis.match is None:
        return False
    if analysis.compression.compressed.dim(_DIM.set) == 0:
        return False
    return all(is_linear(o.local) for o in analysis.operands)


def _ways(analysis: SimdAnalysis, arrays: Arrays, options: SimdOptions) -> Iterator[SimdAnalysis]:
    """Yield the other ways, where the paper's order gave several configurations or loops."""
    if analysis.strategy not in (Strategy.NONE, Strategy.ENUMERATED):
        return
    if options.mode in (SimdMode.AUTO, SimdMode.HULL):
        hull_only = replace(options, mode=SimdMode.HULL)
        affine = (choose_strategy(a, arrays, hull_only) for a in _with_affine_hull(analysis, arrays))
        yield from (way for way in affine if way.strategy is Strategy.HULL)
        padded = _padded_hull(analysis, arrays, options)
        if padded is not None:
            yield padded


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
    """Whether all extra instances that write proper elements read from the padding of a silent operand."""
    assert analysis.extra is not None
    write = isl.Map.from_multi_aff(analysis.write.local)
    harmful = analysis.extra.instances.intersect(protected_cells(analysis, arrays).apply(write.reverse()))
    for operand in silent:
        box = arrays[operand.tensor].local_box()
        inside = box.apply(isl.Map.from_multi_aff(operand.local).reverse())
        harmful = harmful.intersect(inside)
    return bool(harmful.is_empty())


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
    enlarged = enlarge(arrays, (analysis,))
    return sum(array.bytes for array in enlarged.values()) <= options.machine.memory_bytes


# ---- A single instance ---


def _as_scalar_code(analysis: SimdAnalysis, arrays: Arrays, options: SimdOptions) -> SimdAnalysis:
    """Return the task without an instruction where that would have one element and cost more."""
    if analysis.sizes is None or not options.has(Extension.SINGLE_INSTANCE):
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
