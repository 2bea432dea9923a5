"""Deliberately wrong compilers: each is caught by a layer of the corpus, or by the strict simulator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import islpy as isl
import pytest
from corpus import inputs_of, layers, mistakes, together
from forgotten import forget_instructions
from test_wafer_corpus import strategies_of, wanted_strategies

from polyloom import pipeline
from polyloom.diagnostics import PolyloomError
from polyloom.ir.expressions import Binary, BinaryOp
from polyloom.polyhedra.loops.generate import Number
from polyloom.wafer.codegen import compute, segments, streams
from polyloom.wafer.dataflow import reductions, tasks
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.machine import descriptor_nests, instruction_selection
from polyloom.wafer.pe_program.tree import Block, If
from polyloom.wafer.program import precedence, role_program
from polyloom.wafer.routing import all_routes
from polyloom.wafer.simd import (
    domain,
    extended_strategies,
    instruction_options,
    paper_strategies,
)
from polyloom.wafer.simd.decision import SimdAnalysis, SimdMode
from polyloom.wafer.simulation.run import simulate_program

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    """A wrong compiler, a layer that shows it, and what is then found: a diagnostic, or wrong numbers."""

    break_compiler: Patch
    layer: str
    fault: str
    mode: SimdMode = SimdMode.AUTO
    invocations: int = 1
    density: float = 1.0


def fault_of(layer: str, mode: SimdMode, invocations: int, density: float) -> str:
    """Return the code of what the simulator refused, ``wrong`` for wrong numbers, nothing if all is right."""
    try:
        program = next(known for known in layers() if known.name == layer).compile(mode)
        tensors, mapping = program.analysis.program, program.analysis.mapping
        runs = inputs_of(tensors, mapping, density, invocations)
        result = simulate_program(program, together(mapping, runs), invocations=invocations)
    except PolyloomError as error:
        return error.diagnostics[0].code
    return "wrong" if mistakes(program, mapping, runs, result.outputs) else ""


def without_disjointness_check(patch: pytest.MonkeyPatch) -> None:
    """Sec. 5.3 without (41): extra instances may write what belongs to proper ones."""
    original = paper_strategies._try_hull

    def mutated(analysis: Any, arrays: Any, options: Any) -> Any:
        if analysis.extra is None:
            return original(analysis, arrays, options)
        writes, reads = (
            {name: isl.Set.empty(s.get_space()) for name, s in sets.items()}
            for sets in (analysis.extra.writes, analysis.extra.reads)
        )
        blind = replace(analysis, extra=replace(analysis.extra, writes=writes, reads=reads))
        return replace(original(blind, arrays, options), extra=analysis.extra)

    patch.setattr(paper_strategies, "_try_hull", mutated)


def without_check_of_reads(patch: pytest.MonkeyPatch) -> None:
    """Extra instances may read outside of local arrays, which what they read does not enlarge."""
    original = paper_strategies._try_hull

    def mutated(analysis: Any, arrays: Any, options: Any) -> Any:
        return original(_reading_nothing(analysis), arrays, options)

    patch.setattr(paper_strategies, "_try_hull", mutated)


def what_extra_instances_read_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Arrays are enlarged by what extra instances write alone."""
    original = paper_strategies.enlarge

    def mutated(arrays: Any, analyses: Any) -> Any:
        return original(arrays, tuple(_reading_nothing(analysis) for analysis in analyses))

    patch.setattr(pipeline, "enlarge", mutated)


def _reading_nothing(analysis: SimdAnalysis) -> SimdAnalysis:
    """The same with extra instances that read no memory."""
    if analysis.extra is None:
        return analysis
    nothing = {name: isl.Set.empty(s.get_space()) for name, s in analysis.extra.reads.items()}
    return replace(analysis, extra=replace(analysis.extra, reads=nothing))


def extra_instances_always_harmless(patch: pytest.MonkeyPatch) -> None:
    """Extra instances that change proper elements are taken, whatever they read."""
    patch.setattr(extended_strategies, "_harmless", lambda *_: True)


def arrays_not_enlarged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pipeline, "enlarge", lambda arrays, analyses: dict(arrays))


def arrays_not_shifted(patch: pytest.MonkeyPatch) -> None:
    """Enlarged, but the accesses stay as they were."""
    patch.setattr(LocalArray, "map", LocalArray.map_before)


def strides_of_the_smaller_array(patch: pytest.MonkeyPatch) -> None:
    def strides(self: LocalArray) -> tuple[int, ...]:
        inner = [*self.extent_before[1:], 1]
        return tuple(math.prod(inner[k:]) for k in range(len(self.extent)))

    patch.setattr(LocalArray, "strides", property(strides))


def hull_offset_off_by_one(patch: pytest.MonkeyPatch) -> None:
    original = SimdAnalysis.start.func

    def mutated(analysis: SimdAnalysis) -> isl.Set:
        point = original(analysis)
        moved = isl.MultiAff.identity(point.get_space().map_from_set())
        moved = moved.set_aff(0, moved.get_at(0).add_constant_val(isl.Val(1)))
        return point.apply(isl.Map.from_multi_aff(moved))

    patch.setattr(SimdAnalysis, "start", property(mutated))


def dense_without_looking(patch: pytest.MonkeyPatch) -> None:
    """Every set is said to fill its bounding box."""
    patch.setattr(domain, "is_dense_box", lambda *_: True)


def guard_dropped(patch: pytest.MonkeyPatch) -> None:
    """A PE acts on elements for which it has no instances."""
    original = compute.compute_code

    def mutated(*arguments: Any) -> Any:
        code = original(*arguments)
        return code[-1].body if isinstance(code[-1], If) else code

    patch.setattr(streams, "compute_code", mutated)


def first_configuration_always(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compute, "_size_number", lambda *_: Number(0))


def chain_parity_wrong(patch: pytest.MonkeyPatch) -> None:
    """The routers' colors alternate the other way round than those that the PEs send on."""
    original = all_routes.split_by_color
    patch.setattr(all_routes, "split_by_color", lambda chain: original(chain)[::-1])


def nothing_initialised(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tasks, "_initializations", lambda *_: iter(()))


def state_not_carried(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(role_program, "state_code", lambda *_: ())


def upstream_parts_left(patch: pytest.MonkeyPatch) -> None:
    """A PE of a chain sends its own part and does not add what comes."""
    original = reductions.Chain.positions

    def positions(self: reductions.Chain, part: reductions.Part) -> isl.Set:
        if part is reductions.Part.COMBINE:
            return original(self, part).subtract(original(self, part))
        combined = original(self, reductions.Part.COMBINE)
        return original(self, part).union(combined) if part is reductions.Part.OWN else original(self, part)

    patch.setattr(reductions.Chain, "positions", positions)


def order_of_a_nest_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(descriptor_nests, "_keeps_order", lambda *_: True)


def order_of_segments_not_checked(patch: pytest.MonkeyPatch) -> None:
    """What a PE owns, forwards and combines goes out one kind after the other, whatever the index says."""
    patch.setattr(segments, "_in_order", lambda found, split: found)


def unwritten_elements_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reductions, "_with_unwritten", lambda program, mapping, tensor, owners, resident: owners)


def ended_by_the_first_chunk(patch: pytest.MonkeyPatch) -> None:
    def mutated(builder: Any, here: Any, finished: Any) -> Any:
        for k in range(here.stream.index_rank - 1):
            builder.counter(f"{here.label}_index_{k}")
        return (Block(here.queue), *finished)

    patch.setattr(role_program, "end_of_chunk", mutated)


def nothing_waits(patch: pytest.MonkeyPatch) -> None:
    """Every part of an invocation starts at its beginning, whatever it needs."""
    original = role_program.needs_of

    def mutated(*given: Any) -> Any:
        return dict.fromkeys(original(*given), (precedence.BEGIN,))

    patch.setattr(role_program, "needs_of", mutated)


def nothing_needed(patch: pytest.MonkeyPatch) -> None:
    """No activity needs another one: what then may wait in a ring is seen before any code is made."""
    patch.setattr(precedence._Rule, "before", lambda *_: [])


def zeros_never_matter(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tasks, "zeros_may_be_dropped", lambda *_: True)


def differences_commute(patch: pytest.MonkeyPatch) -> None:
    original = instruction_selection._binary_bindings

    def mutated(pattern: Binary, work: Any) -> Iterator[dict[int, Any]]:
        if isinstance(work, Binary) and work.op is BinaryOp.SUBTRACT is pattern.op:
            work = Binary(work.op, work.right, work.left)
        yield from original(pattern, work)

    patch.setattr(instruction_selection, "_binary_bindings", mutated)


FF = "ff44 M=32 N=16"
MUTANTS = (
    Mutant(without_disjointness_check, "conv1d_same", "wrong"),
    Mutant(without_check_of_reads, "checkerboard", "simulation-out-of-bounds"),
    Mutant(what_extra_instances_read_forgotten, "checkerboard", "simulation-out-of-bounds"),
    Mutant(extra_instances_always_harmless, "conv1d_same", "wrong"),
    Mutant(arrays_not_enlarged, "conv1d", "simulation-out-of-bounds"),
    Mutant(arrays_not_shifted, "conv1d", "simulation-out-of-bounds"),
    Mutant(strides_of_the_smaller_array, "conv2d", "wrong"),
    Mutant(hull_offset_off_by_one, "conv8", "simulation-out-of-bounds"),
    Mutant(dense_without_looking, "checkerboard", "simulation-out-of-bounds"),
    Mutant(guard_dropped, "ff_every_column M=32 N=16", "simulation-out-of-bounds"),
    Mutant(first_configuration_always, "conv8", "wrong", SimdMode.ENUMERATE),
    Mutant(chain_parity_wrong, FF, "simulation-binding"),
    Mutant(nothing_initialised, FF, "simulation-poison"),
    Mutant(state_not_carried, "training", "wrong", invocations=3),
    Mutant(upstream_parts_left, FF, "simulation-unbound-color"),
    Mutant(order_of_a_nest_not_checked, "diagonals", "wrong"),
    Mutant(order_of_segments_not_checked, "pad_row", "wrong"),
    Mutant(unwritten_elements_forgotten, "pad_row", "simulation-deadlock"),
    Mutant(ended_by_the_first_chunk, "conv2d", "simulation-deadlock"),
    Mutant(nothing_waits, "gemv_bias M=32 N=16", "wrong"),
    Mutant(nothing_needed, "gemv_bias M=32 N=16", "wafer-deadlock"),
    Mutant(zeros_never_matter, "maxpool_sparse", "wrong", density=0.5),
    Mutant(differences_commute, "state N=16", "wrong"),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.break_compiler.__name__)
def test_a_wrong_compiler_is_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        mutant.break_compiler(patch)
        forget_instructions()
        broken = fault_of(mutant.layer, mutant.mode, mutant.invocations, mutant.density)
    forget_instructions()
    assert broken == mutant.fault
    assert fault_of(mutant.layer, mutant.mode, mutant.invocations, mutant.density) == ""


def test_a_lost_instruction_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = next(known for known in layers() if known.name == FF)
    monkeypatch.setattr(paper_strategies, "match_instruction", lambda *_: None)
    with monkeypatch.context() as patch:
        patch.setattr(instruction_options, "instructions", tuple)
        forget_instructions()
        found = strategies_of(layer.compile(SimdMode.AUTO))
    forget_instructions()
    assert found == "-" != wanted_strategies()[FF][SimdMode.AUTO]
