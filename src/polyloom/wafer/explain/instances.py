"""Samples of instance sets: the points of a task on one PE for some arrivals, and the box drawn over them.

Source: dtg_codegen, Sec. 5.1-5.4, and the pictures of its slides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl
import numpy as np
import numpy.typing as npt

from polyloom.polyhedra.binding import PE_PARAMETERS, project_out_parameters, unbind_domain
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.vectorized import contains, evaluate_aff
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.mapping.grid import pes_of
from polyloom.wafer.simd.decision import SimdAnalysis, Strategy

_DIM = isl.dim_type
Integers = npt.NDArray[np.int64]
Points = Integers
"""int64[n, rank]."""

MOST_PES = 3
MOST_ARRIVALS = 24
MOST_POINTS = 1500
"""Of one task on one PE; windows keep to it."""

_WINDOW = 512


@dataclass(frozen=True, eq=False, kw_only=True)
class Arrival:
    """What one element starts: ``index`` of the element, int per index name; the proper instances and the
    extra ones that the box adds, both before (``instances``, ``extra_instances``) and after compression
    (``points``, ``extra_points``), int64[n, rank] each; ``box``: low corner and size after compression, None
    where there is no box of fixed size (or it is larger than the window).
    """

    index: tuple[int, ...]
    points: Points
    instances: Points
    extra_points: Points
    extra_instances: Points
    box: tuple[tuple[int, ...], tuple[int, ...]] | None


@dataclass(frozen=True, eq=False, kw_only=True)
class InstanceSample:
    """A task on one PE (of the compute rectangle): ``placed``: all its instances there, int64[n, rank];
    ``complete``: whether the windows held everything.
    """

    analysis: SimdAnalysis
    pe: tuple[int, int]
    placed: Points
    arrivals: tuple[Arrival, ...]
    complete: bool


def instance_samples(analysis: LayerAnalysis) -> tuple[InstanceSample, ...]:
    """Return samples of every computation task, on the first, a middle and the last PE that has it.

    Where loops go around an instruction, their iterators count as part of the index.
    """
    return tuple(
        _sample(simd, pe)
        for simd in (outer.innermost for outer in analysis.simd)
        for pe in _some_pes(simd.task.instances)
    )


def _some_pes(instances: isl.Set) -> tuple[tuple[int, int], ...]:
    pes = pes_of(instances)
    found = [_coordinates(pes.lexmin()), _coordinates(pes.lexmax())]
    (x0, x1), (y0, y1) = integer_bounds(pes)
    middle = isl.Set(f"{{ PE[x, y] : x >= {(x0 + x1) // 2} and y >= {(y0 + y1) // 2} }}").intersect(pes)
    if not middle.is_empty():
        found.insert(1, _coordinates(middle.lexmin()))
    return tuple(dict.fromkeys(found))[:MOST_PES]


def _coordinates(points: isl.Set) -> tuple[int, int]:
    point = points.sample_point()
    x, y = (int(point.get_coordinate_val(_DIM.set, k).to_python()) for k in range(2))
    return x, y


def _on(points: isl.Set, pe: tuple[int, int]) -> isl.Set:
    """Fix PE_X and PE_Y, which disappear."""
    for name, value in zip(PE_PARAMETERS, pe, strict=True):
        position = points.find_dim_by_name(_DIM.param, name)
        if position >= 0:
            points = points.fix_val(_DIM.param, position, isl.Val(value))
    return project_out_parameters(points, PE_PARAMETERS)


def _sample(simd: SimdAnalysis, pe: tuple[int, int]) -> InstanceSample:
    task, here = simd.task, _on(simd.compression.compressed, pe)
    index, all_indices = _index_values(here, task.index_names)
    parameters = dict(zip(task.index_names, index.T, strict=True))
    low, shape, whole = _window(_between(here, parameters))
    placed, all_placed = _placed(_on(task.placed, pe))
    arrivals = tuple(_arrivals(simd, pe, here, index, (low, shape)))
    complete = all_indices and whole and all_placed and len(arrivals) == len(index)
    return InstanceSample(analysis=simd, pe=pe, placed=placed, arrivals=arrivals, complete=complete)


def _index_values(points: isl.Set, names: Sequence[str]) -> tuple[Points, bool]:
    """Return the first index tuples at which there are instances, and whether these are all."""
    if not names:
        return np.zeros((1, 0), dtype=np.int64), True
    nothing = points.params().from_params()
    values = unbind_domain(nothing, "index", names).domain()
    low, shape, whole = _window(values, 8 * MOST_ARRIVALS)
    grid = _grid(low, shape)
    chosen = grid[contains(values, list(grid.T), {})]
    return chosen[:MOST_ARRIVALS], whole and len(chosen) <= MOST_ARRIVALS


def _between(points: isl.Set, parameters: Mapping[str, Integers]) -> isl.Set:
    """Return the union of a parametric set over the box around some values of its parameters."""
    for name, values in parameters.items():
        position = points.find_dim_by_name(_DIM.param, name)
        if position >= 0:
            points = points.lower_bound_val(_DIM.param, position, isl.Val(int(values.min())))
            points = points.upper_bound_val(_DIM.param, position, isl.Val(int(values.max())))
    return project_out_parameters(points, parameters)


def _window(points: isl.Set, most: int = _WINDOW) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """Return the lowest corner and the extents of a box around a set, the largest extents cut until it has
    at most ``most`` points; and whether nothing was cut.
    """
    bounds = integer_bounds(points)
    shape = [high - low + 1 for low, high in bounds]
    whole = math.prod(shape) <= most
    while math.prod(shape) > most:
        largest = shape.index(max(shape))
        others = math.prod(shape) // shape[largest]
        shape[largest] = max(min(most // others, shape[largest] - 1), shape[largest] // 2, 1)
    return tuple(low for low, _ in bounds), tuple(shape), whole


def _grid(low: Sequence[int], shape: Sequence[int]) -> Points:
    """Return the points of a box in lexicographic order."""
    rows = np.indices(tuple(shape), dtype=np.int64).reshape(len(shape), math.prod(shape)).T
    return rows + np.array(low, dtype=np.int64)


def _placed(points: isl.Set) -> tuple[Points, bool]:
    low, shape, whole = _window(points)
    grid = _grid(low, shape)
    return grid[_holds(points, grid, {})], whole


def _holds(points: isl.Set, grid: Points, parameters: Mapping[str, int]) -> npt.NDArray[np.bool_]:
    values = {name: np.asarray(value, dtype=np.int64) for name, value in parameters.items()}
    inside = contains(points, list(grid.T), values)
    return np.asarray(np.broadcast_to(inside, (len(grid),)))


def _arrivals(
    simd: SimdAnalysis,
    pe: tuple[int, int],
    here: isl.Set,
    index: Points,
    window: tuple[tuple[int, ...], tuple[int, ...]],
) -> Iterator[Arrival]:
    grid, drawn = _grid(*window), 0
    for values in index:
        parameters = dict(zip(simd.task.index_names, (int(v) for v in values), strict=True))
        points = grid[_holds(here, grid, parameters)]
        everywhere = {**parameters, **dict(zip(PE_PARAMETERS, pe, strict=True))}
        box = _box(simd, points, everywhere)
        extra = np.zeros((0, grid.shape[1]), dtype=np.int64)
        if box is not None:
            inside = _grid(*box)
            extra = inside[~_holds(here, inside, parameters)]
        drawn += len(points) + len(extra)
        if drawn > MOST_POINTS:
            return
        yield Arrival(
            index=tuple(parameters.values()),
            points=points,
            instances=_before_compression(simd, points, everywhere),
            extra_points=extra,
            extra_instances=_before_compression(simd, extra, everywhere),
            box=box,
        )


def _box(
    simd: SimdAnalysis, points: Points, parameters: Mapping[str, int]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the box hull where it is used, else the smallest box around the points."""
    if simd.strategy is not Strategy.HULL:
        if not len(points):
            return None
        low, high = points.min(axis=0), points.max(axis=0)
        return tuple(int(v) for v in low), tuple(int(v) for v in high - low + 1)
    if simd.hull is None or math.prod(simd.hull.size) > _WINDOW:
        return None
    values = {name: np.asarray(value, dtype=np.int64) for name, value in parameters.items()}
    offset = (int(evaluate_aff(aff, [], values)) for aff in _affs(simd.hull.offset))
    return tuple(offset), simd.hull.size


def _before_compression(simd: SimdAnalysis, points: Points, parameters: Mapping[str, int]) -> Points:
    values = {name: np.asarray(value, dtype=np.int64) for name, value in parameters.items()}
    columns = [evaluate_aff(aff, list(points.T), values) for aff in _affs(simd.compression.map)]
    filled = [np.broadcast_to(column, (len(points),)) for column in columns]
    return np.stack(filled, axis=1) if filled else np.zeros((len(points), 0), dtype=np.int64)


def _affs(function: isl.MultiAff) -> list[isl.Aff]:
    return [function.get_at(k) for k in range(function.dim(_DIM.out))]
