"""Random layers under random maps: what is simulated is what the evaluator says, bit for bit.

A failure prints the seed, the layer and its map. ``random_layer(seed)`` makes it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import islpy as isl
import pytest
from layers import random_layer
from outcomes import MODES, REFUSED, outcome

from polyloom.diagnostics import Source
from polyloom.ir.relations import instance_set
from polyloom.pipeline import analyse_layer
from polyloom.polyhedra.binding import bind, project_out_parameters
from polyloom.polyhedra.bounds import box_between
from polyloom.polyhedra.effort import at_most
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdAnalysis, SimdOptions, Strategy
from polyloom.wafer.simulator import build
from samples import LATER


@pytest.mark.parametrize(
    ("start", "count"), [(0, 8), *(pytest.param(start, 16, marks=LATER) for start in range(0, 96, 32))]
)
@pytest.mark.slow
@pytest.mark.ci
def test_some_layers(start: int, count: int) -> None:
    outcomes = Counter(
        outcome(random_layer(seed), (MODES[0], MODES[1 + seed % 4]), _check_sets)
        for seed in range(start, start + count)
    )
    assert outcomes["right"] >= 5 * count // 8, outcomes
    assert set(outcomes) <= {"right", *REFUSED}, outcomes


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("seed", [378996319], ids=["a point that isl finds no minimum of"])
def test_layers_that_failed_once(seed: int) -> None:
    assert outcome(random_layer(seed), MODES[:1]) == "right"


def test_ends_of_chunks_do_not_multiply_the_work_of_making_loops() -> None:
    """The extents of these chunks are known under conditions of their own, which loops need not test."""
    layer = random_layer(275)
    mapping = read_mapping(Source("random.map", layer.map_text), layer.program)
    analysis = analyse_layer(layer.program, mapping, SimdOptions())
    with at_most(10_000_000):
        compile_program(analysis, load_machine("cs2"))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 3000, 50))
def test_many_layers(start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "cache_folder", lambda: tmp_path)
    outcomes = Counter(outcome(random_layer(seed), MODES, _check_sets) for seed in range(start, start + 50))
    assert outcomes["right"] >= 30, outcomes
    assert set(outcomes) <= {"right", *REFUSED}, outcomes


def _check_sets(analysis: LayerAnalysis, where: str) -> None:
    """Every instance runs once, on one PE, in one task; an instruction visits what it says it does."""
    for statement in analysis.program.statements:
        runs = instance_set(statement).subtract(instance_set(statement))
        for task in analysis.graph.compute:
            if task.statement is statement:
                events = _parameters_as_dims(task.instances)
                assert events.is_single_valued(), f"{task.name} runs an instance twice in {where}"
                assert runs.is_disjoint(events.domain()), f"two tasks run one instance in {where}"
                runs = runs.union(events.domain())
        assert runs.is_equal(instance_set(statement)), f"{statement.name} in {where}"
    for simd in analysis.simd:
        for enumerated, asked in _enumerated(simd):
            assert enumerated.is_equal(asked), f"{simd.task.name} ({simd.strategy.value}) in {where}"


def _parameters_as_dims(points: isl.Set) -> isl.Map:
    """Return ``{ S[i] -> [PE_X, PE_Y, index...] }`` of ``[PE_X, PE_Y, index] -> { S[i] }``."""
    count = points.dim(isl.dim_type.param)
    relation = isl.Map.from_range(points)
    return relation.move_dims(isl.dim_type.in_, 0, isl.dim_type.param, 0, count).reverse()


def _enumerated(simd: SimdAnalysis) -> Iterator[tuple[isl.Set, isl.Set]]:
    """Yield the points that the nest of an instruction visits, and those that it should visit."""
    if simd.parts:
        parts = [part.task.instances for part in simd.parts]
        assert all(a.is_disjoint(b) for k, a in enumerate(parts) for b in parts[:k])
        yield reduce(isl.Set.union, parts), simd.task.instances
        for part in simd.parts:
            yield from _enumerated(part)
        return
    if simd.nested is not None:
        inner = simd.nested.inner
        yield project_out_parameters(inner.task.instances, simd.nested.names), simd.task.instances
        yield bind(simd.nested.points, simd.nested.names), inner.task.instances.params()
        yield from _enumerated(inner)
        return
    compressed = simd.compression.compressed
    yield compressed.apply(isl.Map.from_multi_aff(simd.compression.map)), simd.task.instances
    if simd.strategy is Strategy.HULL:
        assert simd.hull is not None and simd.extra is not None
        assert simd.extra.instances.is_disjoint(compressed)
        yield simd.hull.as_set().intersect_params(simd.task.known), compressed.union(simd.extra.instances)
    elif simd.strategy is not Strategy.NONE and simd.whole is None:
        yield box_between(simd.box.minimum, simd.box.maximum), compressed
