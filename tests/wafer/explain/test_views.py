"""What reports show of a layer: grids, samples of instance sets, the task graph."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from corpus import Layer, layers

from polyloom.wafer.explain.grids import (
    NO_ROLE,
    WATCH_ALL,
    memory_grid,
    role_grid,
    route_grids,
    watched_pes,
)
from polyloom.wafer.explain.instances import MOST_ARRIVALS, MOST_PES, InstanceSample, instance_samples
from polyloom.wafer.explain.task_links import TaskLinks, task_links
from polyloom.wafer.program.wafer_program import WaferProgram
from polyloom.wafer.simd.decision import SimdMode, Strategy

CHOSEN = ("conv1d", "ff44", "ff55_one_port", "training", "matmul", "maxpool", "state", "transpose", "rowsum")


def compiled(name: str) -> WaferProgram:
    return next(layer for layer in layers() if layer.map == name).compile(SimdMode.AUTO)


@pytest.fixture(scope="module", params=CHOSEN)
def program(request: pytest.FixtureRequest) -> WaferProgram:
    return compiled(request.param)


def test_every_pe_has_the_role_whose_set_holds_it(program: WaferProgram) -> None:
    roles, memory = role_grid(program), memory_grid(program)
    for number, role in enumerate(program.roles):
        here = roles == number
        assert here.any() and (memory[here] == role.memory_bytes).all()
        assert all(f"PE[{x}, {y}]" in points_of(str(role.pes), here) for y, x in np.argwhere(here))
    assert (memory[roles == NO_ROLE] == 0).all()


def points_of(pes: str, here: np.ndarray) -> set[str]:
    import islpy as isl

    found: set[str] = set()
    isl.Set(pes).foreach_point(
        lambda p: found.add("PE[{}, {}]".format(*(p.get_coordinate_val(isl.dim_type.set, k) for k in (0, 1))))
    )
    assert len(found) == int(here.sum())
    return found


def test_a_router_takes_a_color_from_one_side(program: WaferProgram) -> None:
    taken: dict[int, np.ndarray] = {}
    for route in route_grids(program):
        before = taken.setdefault(route.color, np.zeros(route.on.shape, np.bool_))
        assert not (before & route.on).any()
        before |= route.on


def test_every_pe_of_a_small_rectangle_is_watched(program: WaferProgram) -> None:
    grid = program.analysis.border.given.grid
    assert len(watched_pes(program)) == grid.width * grid.height <= WATCH_ALL


def test_few_pes_of_a_large_rectangle_are_watched() -> None:
    layer = Layer("large", "ff", ("M=80", "N=200"))
    text = (
        "size: { PE[50, 20] }\ncompute_map: { ff[i, j] -> PE[j//4, i//4] }\n"
        "iport_map: { x[j=0:199] -> [PE[j//4, -1] -> index[j mod 4]] }\nsparse: x\n"
    )
    watched = watched_pes(compiled_with(layer, text), more=[(7, 3), (50, 0)])
    assert {(0, 0), (49, 0), (0, 19), (49, 19), (25, 10), (7, 3)} <= set(watched)
    assert len(watched) <= 20 and (50, 0) not in watched


def compiled_with(layer: Layer, text: str) -> WaferProgram:
    from polyloom.diagnostics import Source
    from polyloom.pipeline import analyse_layer
    from polyloom.wafer.machine.model import load_machine
    from polyloom.wafer.mapping.reader import read_mapping
    from polyloom.wafer.program.wafer_program import compile_program
    from polyloom.wafer.simd.decision import SimdOptions

    program = layer.program()
    mapping = read_mapping(Source("large.map", text), program)
    return compile_program(analyse_layer(program, mapping, SimdOptions()), load_machine("cs2"))


def in_box(point: tuple[int, ...], box: tuple[tuple[int, ...], tuple[int, ...]]) -> bool:
    return all(low <= p < low + size for p, low, size in zip(point, *box, strict=True))


def rows(points: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(row) for row in points.tolist()]


def test_samples_are_instances_that_their_element_starts(program: WaferProgram) -> None:
    samples = instance_samples(program.analysis)
    assert {s.analysis.task.name for s in samples} == {simd.task.name for simd in program.analysis.simd}
    for sample in samples:
        check_sample(sample)


def check_sample(sample: InstanceSample) -> None:
    placed = set(rows(sample.placed))
    for arrival in sample.arrivals:
        instances = rows(arrival.instances)
        assert len(set(instances)) == len(instances) == len(arrival.points)
        assert set(instances) <= placed
        if arrival.box is None:
            continue
        assert all(in_box(point, arrival.box) for point in rows(arrival.points) + rows(arrival.extra_points))
        if sample.analysis.strategy is Strategy.EXACT:
            assert not len(arrival.extra_points)
    if sample.complete:
        seen = {i for arrival in sample.arrivals for i in rows(arrival.instances)}
        assert seen == placed


def test_samples_of_the_papers_convolution() -> None:
    """Example 5.9: an arrival starts up to three instances w + rw = index; the hull has three everywhere."""
    samples = instance_samples(compiled("conv1d").analysis)
    assert [s.pe for s in samples] == [(0, 0), (0, 1)]
    for sample, k in zip(samples, (0, 1), strict=True):
        assert len(sample.placed) == 14 * 3 and sample.complete and len(sample.arrivals) == 16
        for arrival in sample.arrivals:
            (index,) = arrival.index
            expected = {(k, index - rw, rw) for rw in range(3) if 0 <= index - rw < 14}
            assert set(rows(arrival.instances)) == expected
            everything = expected | set(rows(arrival.extra_instances))
            assert everything == {(k, index - rw, rw) for rw in range(3)}
            assert arrival.box is not None and arrival.box[1] == (3,)


def test_large_sets_have_a_window() -> None:
    """The picture of a layer of any size costs the same."""
    large = Layer("large", "ff", ("M=4000", "N=4000"))
    text = (
        "size: { PE[2, 2] }\ncompute_map: { ff[i, j] -> PE[j//2000, i//2000] }\n"
        "iport_map: { x[j=0:3999] -> [PE[j//2000, -1] -> index[j mod 2000]] }\nsparse: x\n"
    )
    from polyloom.diagnostics import Source
    from polyloom.pipeline import analyse_layer
    from polyloom.wafer.mapping.reader import read_mapping
    from polyloom.wafer.simd.decision import SimdOptions

    program = large.program()
    analysis = analyse_layer(program, read_mapping(Source("large.map", text), program), SimdOptions())
    samples = instance_samples(analysis)
    assert 1 <= len(samples) <= MOST_PES
    for sample in samples:
        assert not sample.complete and len(sample.arrivals) <= MOST_ARRIVALS
        assert len(sample.placed) <= 512 and sum(len(a.points) for a in sample.arrivals) <= 1500


def test_the_task_graph_leads_from_inputs_to_outputs(program: WaferProgram) -> None:
    links = task_links(program.analysis)
    names = {node.name for node in links.nodes}
    assert all({arrow.origin, arrow.target} <= names for arrow in links.arrows)
    for task in program.analysis.graph.compute:
        assert f"compute_{task.name}" in names
    for tensor in program.analysis.program.inputs:
        assert {f"in_{tensor}", f"resident_{tensor}"} & names
    reached = reachable(links)
    for tensor in program.analysis.program.outputs:
        assert f"out_{tensor}" in reached


def reachable(links: TaskLinks) -> set[str]:
    """The nodes that something leads to from an input."""
    reached = {n.name for n in links.nodes if n.name.startswith(("in_", "resident_", "initialize_"))}
    for _ in links.nodes:
        reached |= {a.target for a in links.arrows if a.origin in reached}
    return reached


def test_training_in_the_task_graph() -> None:
    arrows = {(a.origin, a.target) for a in task_links(compiled("training").analysis).arrows}
    assert ("spread_dy_west", "compute_fg") in arrows and ("store_x_north", "compute_fg") in arrows
    assert ("compute_fg", "compute_update") in arrows
    assert not {(a, b) for a, b in itertools.product(["compute_ff"], ["compute_fd"])} & arrows
