"""The part of the ``explain`` document on one computation task: everything that Section 5 computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import islpy as isl

from polyloom.polyhedra.bounds import constant_point
from polyloom.polyhedra.functions import compose
from polyloom.polyhedra.text.documents import (
    function_text,
    functions_text,
    offset_text,
    point_text,
    relation_text,
)
from polyloom.polyhedra.text.points import all_points
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.explain.instruction_costs import instruction_costs
from polyloom.wafer.simd.decision import SimdAnalysis, SimdOptions, Strategy
from polyloom.wafer.simd.domain import Box, Extra, Operand

Document = dict[str, Any]


def compute_entry(analysis: SimdAnalysis, arrays: Mapping[str, LocalArray], options: SimdOptions) -> Document:
    """Return what ``explain`` says of a computation task. ``arrays``: after any enlargement."""
    task, paper = analysis.task, analysis.plain or analysis
    return {
        "name": task.name,
        "kind": task.kind.value,
        "statement": task.statement.name,
        "trigger": None if task.stream is None else task.stream.tensor,
        "index": list(task.index_names),
        "placed": relation_text(task.placed),  # (11)
        "instances": relation_text(task.instances),  # (12) (17) (27) (32)
        "known": relation_text(task.known),  # (15)
        "uncompressed": _box(analysis.uncompressed),  # (13) (14) (16)
        "compression": function_text(paper.compression.map),  # (18) (22) (28) (33)
        "compressed": relation_text(paper.compression.compressed),  # (19) (23) (29) (34)
        **_box(paper.box),  # (20) (21) (24)
        "hull": _hull(paper),  # (35)
        **_extra(paper.extra),  # (36) (38) (40) (41)
        **_accesses(analysis, arrays),  # (25) (26) (37) (39)
        "enumeration": _enumeration(paper),  # (42) (43)
        "simd": {**_simd(analysis), "costs": cost_entries(analysis, arrays, options)},
    }


def simd_sizes(analysis: SimdAnalysis) -> list[list[int]] | str | None:
    """Return the sizes of the SIMD instruction; None where there is none.

    A list of sizes where they are the same on all PEs: one, or one for each configuration; else the size
    as an isl function of the PE's coordinates (and the index).
    """
    analysis = analysis.innermost
    if analysis.sizes is None:
        return None
    fixed = constant_point(analysis.sizes)
    if fixed is not None:
        return [list(fixed)]
    enumeration = analysis.enumeration
    if analysis.strategy is Strategy.ENUMERATED and enumeration is not None:
        anywhere = enumeration.sizes.project_out(
            isl.dim_type.param, 0, enumeration.sizes.dim(isl.dim_type.param)
        )
        if anywhere.intersect_params(enumeration.sizes.params()).is_equal(enumeration.sizes):
            return [list(point) for point in all_points(anywhere)]
    return point_text(analysis.sizes)


def emitted_access(
    analysis: SimdAnalysis, operand: Operand, arrays: Mapping[str, LocalArray]
) -> isl.MultiAff:
    """Return the access to the enlarged array, as a function of what the emitted instruction runs through."""
    inside = arrays[operand.tensor].map
    if analysis.whole is None:
        return compose(operand.compressed, inside)
    instance = compose(analysis.whole.nest.order, analysis.whole.instance_at)
    return compose(compose(instance, operand.access), inside)


def _box(box: Box) -> Document:
    parts = {"minimum": box.minimum, "maximum": box.maximum, "size": box.size}
    return {name: point_text(point) for name, point in parts.items()}


def _hull(analysis: SimdAnalysis) -> Document | None:
    hull = analysis.hull
    return None if hull is None else {"offset": offset_text(hull.offset), "size": list(hull.size)}


def _extra(extra: Extra | None) -> Document:
    if extra is None:
        return {"extra": None, "extra_reads": {}, "extra_writes": {}, "proper_writes": {}}
    return {
        "extra": relation_text(extra.instances),  # (36)
        "extra_reads": _sets(extra.reads),  # (38)
        "extra_writes": _sets(extra.writes),  # (41)
        "proper_writes": _sets(extra.proper_writes),  # (40)
    }


def _sets(named: Mapping[str, isl.Set]) -> dict[str, str]:
    return {name: relation_text(points) for name, points in named.items()}


def _accesses(analysis: SimdAnalysis, arrays: Mapping[str, LocalArray]) -> Document:
    def by(
        name: Callable[[Operand], str],
        function: Callable[[Operand], isl.MultiAff],
        operands: tuple[Operand, ...] = (analysis.plain or analysis).operands,
    ) -> dict[str, str]:
        found: dict[str, list[isl.MultiAff]] = {}
        for operand in operands:
            found.setdefault(name(operand), []).append(function(operand))
        return {key: functions_text(functions) for key, functions in found.items()}

    return {
        "accesses": by(lambda o: o.tensor, lambda o: o.access),  # (25)
        "compressed_accesses": by(lambda o: o.tensor, lambda o: o.compressed),  # (26)
        "local_accesses": by(lambda o: o.array, lambda o: o.local),  # (37) (39)
        "emitted_accesses": by(
            lambda o: o.array, lambda o: emitted_access(analysis, o, arrays), analysis.operands
        ),
    }


def _enumeration(analysis: SimdAnalysis) -> Document | None:
    found = analysis.enumeration
    if found is None:
        return None
    return {
        "sizes": relation_text(found.sizes),  # (42)
        "offset": offset_text(found.hull.offset),
        "identifiers": relation_text(found.identifiers),  # (43)
    }


def _coordinates(analysis: SimdAnalysis) -> Document | None:
    """What the instruction runs through, where that is not the compressed set."""
    if analysis.plain is None:
        return None
    compression = analysis.compression
    return {"map": function_text(compression.map), "instances": relation_text(compression.compressed)}


def cost_entries(
    analysis: SimdAnalysis, arrays: Mapping[str, LocalArray], options: SimdOptions
) -> list[Document]:
    """Return what each instruction of a task takes."""
    costs = instruction_costs(analysis, arrays, options)
    return [{**vars(cost), "operands": [vars(operand) for operand in cost.operands]} for cost in costs]


def _simd(analysis: SimdAnalysis) -> Document:
    return {
        "strategy": analysis.strategy.value,
        "instruction": ", ".join(analysis.instructions) or None,
        "steps": [step.text for step in analysis.steps] or list(analysis.instructions),
        "loops": None if analysis.nested is None else relation_text(analysis.nested.points),
        "sizes": simd_sizes(analysis),
        "sizes_set": analysis.sizing.value,
        "coordinates": _coordinates(analysis),
        "boxes": [simd_sizes(part) for part in analysis.parts],
        "reason": analysis.reason,
        "whole_stream": analysis.whole is not None,
        "extensions": [effect.extension.value for effect in analysis.effects],
    }
