"""The SIMD shapes of 117 layer statements, as brute force over their instances found them.

The expectations are those of the layer zoo (tests/data/zoo_shapes.json, programs in zoo.json); where this
compiler differs is listed in docs/zoo.md, and here in DIFFERENCES. The tensor that arrives comes from the
north with its own indices as the index, all of it in every column, so that a map without adapters exists.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import islpy as isl
import numpy as np
import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir.host import View
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement
from polyloom.polyhedra.bounds import is_independent_of
from polyloom.polyhedra.vectorized import evaluate_function
from polyloom.wafer.dataflow.local_arrays import LocalArray, allocate
from polyloom.wafer.dataflow.reductions import written_by
from polyloom.wafer.dataflow.sparsity import zeros_may_be_dropped
from polyloom.wafer.dataflow.tasks import build_tasks, trigger_position
from polyloom.wafer.machine.options import ALL_EXTENSIONS, without
from polyloom.wafer.mapping.mapping import Mapping
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.simd.decision import SimdAnalysis, SimdMode, SimdOptions, Strategy
from polyloom.wafer.simd.paper_strategies import analyse, choose_strategy

_DIM = isl.dim_type
DATA = Path(__file__).parents[1] / "data"
PROGRAMS = {entry["name"]: entry["lair"] for entry in json.loads((DATA / "zoo.json").read_text())}
EXPECTED = {entry["name"]: entry for entry in json.loads((DATA / "zoo_shapes.json").read_text())}
DIFFERENCES = {"g_flat": "hullq"}
"""The class that this compiler finds where the zoo has another one (docs/zoo.md)."""

ONE_TO_ONE = ("maxp_d",)
"""Where the zoo sees several instances at one element, and there are none (docs/zoo.md)."""

FITTING = [name for name, entry in EXPECTED.items() if len(entry["basis"]) <= 4]


@dataclass(frozen=True, eq=False)
class Case:
    """A zoo entry, placed and analysed; ``live``: the compressed dimensions whose size is not always 1."""

    expected: dict[str, Any]
    program: Program
    mapping: Mapping
    arrays: dict[str, LocalArray]
    analysis: SimdAnalysis
    sizes: list[tuple[int, ...]]
    live: list[int]

    @property
    def statement(self) -> Statement:
        return self.program.statements[0]

    def chosen(self, mode: SimdMode, *, purely_affine: bool = False) -> Strategy:
        extensions = without("floor-offset") if purely_affine else ALL_EXTENSIONS
        options = SimdOptions(mode, max_configurations=9, extensions=extensions)
        analysis = analyse(self.analysis.task, self.arrays, options)
        return choose_strategy(analysis, self.arrays, options).strategy


def map_text(entry: dict[str, Any], program: Program) -> str:
    (statement,) = program.statements
    width, height = entry["pes"]
    lines = [
        f"size: {{ PE[{width}, {height}] }}",
        f"compute_map: {{ {statement.name}[{', '.join(statement.iterators)}] -> {entry['place']} }}",
    ]
    tensor = entry["arrive"]
    if tensor is not None:
        index = ", ".join(f"i{k}" for k in range(len(program.buffer(tensor).extents)))
        ports = f"{tensor}[{index}] -> [PE[p, -1] -> index[{index}]] : 0 <= p < {width}"
        lines.append(f"iport_map: {{ {ports} }}")
        if zeros_may_be_dropped(statement, trigger_position(statement, tensor)):
            lines.append(f"sparse: {tensor}")
    return "\n".join(lines)


@cache
def case(name: str) -> Case:
    program = lower(parse(Source("zoo.lair", PROGRAMS[name])), None, {})
    mapping = read_mapping(Source("zoo.map", map_text(EXPECTED[name], program)), program)
    graph = build_tasks(program, mapping, written_by(program, mapping))
    (task,) = graph.compute
    arrays = allocate(graph)
    analysis = analyse(task, arrays, SimdOptions())
    sizes = points_of(analysis.box.size)
    live = [k for k in range(len(sizes[0])) if any(size[k] != 1 for size in sizes)]
    return Case(EXPECTED[name], program, mapping, arrays, analysis, sizes, live)


def points_of(points: isl.Set) -> list[tuple[int, ...]]:
    flat = points.project_out(_DIM.param, 0, points.dim(_DIM.param))
    found: list[tuple[int, ...]] = []

    def visit(point: isl.Point) -> None:
        values = (point.get_coordinate_val(_DIM.set, k).to_python() for k in range(flat.dim(_DIM.set)))
        found.append(tuple(values))

    flat.foreach_point(visit)
    return found


def column(function: isl.MultiAff, k: int) -> list[int]:
    """The coefficients of the domain's variable k in every result."""
    affs = (function.get_at(d) for d in range(function.dim(_DIM.out)))
    return [int(aff.get_coefficient_val(_DIM.in_, k).to_python()) for aff in affs]


def count(points: isl.Set) -> int:
    """The number of points, over all values of the parameters."""
    parameters = points.dim(_DIM.param)
    return int(points.move_dims(_DIM.set, 0, _DIM.param, 0, parameters).count_val().to_python())


def class_of(found: Case) -> str:
    if not found.live:
        return "scalar"
    if is_independent_of(found.analysis.box.size, found.analysis.task.index_names):
        return "exact"
    if found.chosen(SimdMode.HULL, purely_affine=True) is Strategy.HULL:
        return "hull"
    return "hullq" if found.chosen(SimdMode.HULL) is Strategy.HULL else "enum"


@pytest.mark.parametrize("name", EXPECTED)
def test_sizes_directions_and_strides(name: str) -> None:
    found = case(name)
    sizes = sorted({tuple(size[k] for k in found.live) for size in found.sizes})
    assert sizes == sorted(tuple(size) for size in found.expected["sizes"])
    compression = found.analysis.compression.map
    assert [column(compression, k) for k in found.live] == found.expected["basis"]
    strides = {o.tensor: [column(o.compressed, k) for k in found.live] for o in found.analysis.operands}
    assert strides == found.expected["strides"]


@pytest.mark.parametrize("name", EXPECTED)
def test_class(name: str) -> None:
    assert class_of(case(name)) == DIFFERENCES.get(name, EXPECTED[name]["cls"])


@pytest.mark.parametrize("name", EXPECTED)
def test_the_hull_has_the_size_and_the_extra_instances(name: str) -> None:
    found = case(name)
    hull, extra = found.analysis.hull, found.analysis.extra
    if EXPECTED[name]["cls"] == "enum":
        assert found.chosen(SimdMode.HULL) is Strategy.NONE
        return
    assert hull is not None and extra is not None
    assert [hull.size[k] for k in found.live] == EXPECTED[name]["size"][0]
    assert all(hull.size[k] == 1 for k in range(len(hull.size)) if k not in found.live)
    assert count(extra.instances) == EXPECTED[name]["extra"]


@pytest.mark.parametrize("name", FITTING)
def test_the_order_of_the_paper_takes_the_hull_first(name: str) -> None:
    found = case(name)
    expected = Strategy.ENUMERATED if found.expected["cls"] == "enum" else Strategy.HULL
    assert found.chosen(SimdMode.AUTO) is expected


def test_five_dimensions_are_one_too_many() -> None:
    assert [name for name in EXPECTED if name not in FITTING] == ["c3g"]
    assert case("c3g").chosen(SimdMode.AUTO) is Strategy.NONE


@pytest.mark.parametrize("name", EXPECTED)
def test_several_instances_of_one_instruction_add_to_one_element(name: str) -> None:
    """``alias`` in the zoo: the write is not one-to-one on the instances of one arrival."""
    found = case(name)
    expected = found.expected["alias"] and name not in ONE_TO_ONE
    write = isl.Map.from_multi_aff(found.analysis.write.compressed)
    write = write.intersect_domain(found.analysis.compression.compressed)
    assert (not write.is_injective()) == expected


@pytest.mark.parametrize("name", EXPECTED)
def test_instances_are_those_of_brute_force(name: str) -> None:
    """All instances, enumerated, fall into groups (PE, arriving element) of the very sizes found."""
    found = case(name)
    groups = brute_force_groups(found)
    assert sum(groups.values()) == found.expected["macs"]
    assert count(found.analysis.compression.compressed) == sum(groups.values())
    assert count(found.analysis.task.known.from_params()) == len(groups)
    if found.analysis.box.dense:
        assert set(groups.values()) == {prod(size) for size in found.sizes}


def brute_force_groups(found: Case) -> Counter[tuple[int, ...]]:
    statement = found.statement
    points = list(product(*(range(n) for n in statement.domain)))
    columns = [np.array(values, dtype=np.int64) for values in zip(*points, strict=True)]
    placement = found.mapping.placement[statement.name].as_pw_multi_aff()
    pes, _ = evaluate_function(placement, columns, {})
    keys = list(pes)
    if found.expected["arrive"] is not None:
        access = statement.reads[trigger_position(statement, found.expected["arrive"])]
        keys += element_columns(access, columns)
    return Counter(zip(*(key.tolist() for key in keys), strict=True))


def element_columns(access: View, columns: list[Any]) -> list[Any]:
    return [
        sum((c * v for c, v in zip(index.coefficients, columns, strict=True)), 0 * columns[0])
        + index.constant
        for index in access.affine
    ]
