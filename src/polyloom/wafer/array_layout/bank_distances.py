"""How far apart, in 16-bit words modulo 4, two operands of an instruction begin, over its runs and its rows.

Loops around an instruction and indices that arrive move its operands; what counts is how large a part of the
rows has each distance. Looked at on one PE: the choice of banks is one of cost, any is right.
Not in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import islpy as isl

from polyloom.ir.expressions import Read
from polyloom.polyhedra.binding import PE_PARAMETERS
from polyloom.polyhedra.bounds import greatest_coordinate, least_coordinate
from polyloom.polyhedra.functions import coefficients, function_of
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.machine.instruction_cost import Shape
from polyloom.wafer.machine.temporaries import is_temporary
from polyloom.wafer.simd.decision import SimdAnalysis

_DIM = isl.dim_type

BANKS = 4
"""Banks that a moving source is told apart by."""


@dataclass(frozen=True, eq=False)
class Walk:
    """The runs of a task on one PE: the values of what is around its instructions, taken for a box.

    ``counts``: how many values each variable has; ``steps``: by how much the nest's first point moves, in the
    tensors' dimensions, when it goes on by one, by the position of the operand; ``first``: the parameters of
    the first run.
    """

    first: isl.Set
    counts: tuple[int, ...]
    steps: tuple[Mapping[int, tuple[int, ...]], ...]

    def value_at_start(self, function: isl.PwAff) -> int | None:
        """Return a function of the parameters at the first run; None where it has no value there."""
        return _only_value(function, self.first)


@lru_cache(maxsize=256)
def walk_of(analysis: SimdAnalysis) -> Walk | None:
    """Return the runs of a task; None where a first one, or what moves its operands, is not found."""
    known = analysis.task.known
    names = [known.get_dim_name(_DIM.param, p) for p in range(known.dim(_DIM.param))]
    here = _at_sample(known, [p for p, name in enumerate(names) if name in PE_PARAMETERS])
    varying = [p for p, name in enumerate(names) if name not in PE_PARAMETERS]
    bounds = {p: _bounds_of(here, p) for p in varying}
    first = here
    for p, (low, _) in bounds.items():
        first = first.fix_val(_DIM.param, p, isl.Val(low))
    starts = {o.position: _start_of(analysis, o.compressed) for o in analysis.operands}
    counts: list[int] = []
    steps: list[Mapping[int, tuple[int, ...]]] = []
    for p, (low, high) in bounds.items():
        if low == high:
            continue
        second = here
        for q, (other, _) in bounds.items():
            second = second.fix_val(_DIM.param, q, isl.Val(other + (p == q)))
        moved = {k: _difference(functions, first, second) for k, functions in starts.items()}
        if any(move is None for move in moved.values()):
            return None
        counts.append(high - low + 1)
        steps.append({k: move for k, move in moved.items() if move is not None})
    return None if first.is_empty() else Walk(first, tuple(counts), tuple(steps))


def words_of_loop(
    analysis: SimdAnalysis,
    read: Read,
    steps: Mapping[int, tuple[int, ...]],
    arrays: Mapping[str, LocalArray],
) -> int:
    """Return by how many words an operand moves when a loop goes on."""
    if is_temporary(read.position):
        return 0
    operand = next(o for o in analysis.operands if o.position == read.position)
    array = arrays[operand.tensor]
    cells = sum(m * stride for m, stride in zip(steps[read.position], array.signed_strides, strict=True))
    return cells * (read.type.size // 2)


def spread(distances: Sequence[float], size: int, step: int) -> list[float]:
    """Return the distances after a dimension in which they grow by ``step`` from one value to the next."""
    result = [0.0] * BANKS
    for k in range(BANKS):
        times = len(range(k, size, BANKS))
        for distance, part in enumerate(distances):
            result[(distance + k * step) % BANKS] += part * times / size
    return result


def over_rows(distances: Sequence[float], shape: Shape, first: Read, second: Read) -> list[float]:
    """Return the distances at the starts of all rows of a nest; ``distances``: of its first one."""
    rows = zip(shape.sizes, shape.of(first.position), shape.of(second.position), strict=True)
    live = [row for row in rows if row[0] > 1]
    result = list(distances)
    for size, a, b in live[:-1]:
        result = spread(result, size, a * first.type.size // 2 - b * second.type.size // 2)
    return result


def least_meeting(
    analysis: SimdAnalysis, shape: Shape, first: Read, second: Read, arrays: Mapping[str, LocalArray]
) -> float:
    """Return the part of the rows in which two operands meet at best, one of them being free to move."""
    walk = walk_of(analysis)
    if walk is None:
        return 1 / BANKS
    distances = [1.0, 0.0, 0.0, 0.0]
    for count, steps in zip(walk.counts, walk.steps, strict=True):
        step = words_of_loop(analysis, first, steps, arrays) - words_of_loop(analysis, second, steps, arrays)
        distances = spread(distances, count, step)
    return min(over_rows(distances, shape, first, second))


def _at_sample(known: isl.Set, parameters: Sequence[int]) -> isl.Set:
    point = known.sample_point()
    for p in parameters:
        known = known.fix_val(_DIM.param, p, point.get_coordinate_val(_DIM.param, p))
    return known


def _bounds_of(known: isl.Set, p: int) -> tuple[int, int]:
    line = isl.Set.from_params(known).insert_dims(_DIM.set, 0, 1)
    line = line.equate(_DIM.set, 0, _DIM.param, p).project_out(_DIM.param, 0, known.dim(_DIM.param))
    return int(least_coordinate(line, 0).to_python()), int(greatest_coordinate(line, 0).to_python())


def _start_of(analysis: SimdAnalysis, access: isl.MultiAff) -> tuple[isl.PwAff, ...]:
    """Return the tensor's coordinates at the nest's first point, as functions of the parameters."""
    function = isl.PwMultiAff.from_multi_aff(access).pullback_pw_multi_aff(function_of(analysis.start))
    return tuple(function.get_pw_aff(k) for k in range(len(coefficients(access))))


def _difference(functions: Sequence[isl.PwAff], first: isl.Set, second: isl.Set) -> tuple[int, ...] | None:
    found: list[int] = []
    for function in functions:
        values = _only_value(function, first), _only_value(function, second)
        if values[0] is None or values[1] is None:
            return None
        found.append(values[1] - values[0])
    return tuple(found)


def _only_value(function: isl.PwAff, parameters: isl.Set) -> int | None:
    here = isl.Set.from_pw_aff(function.intersect_params(parameters))
    if here.is_empty():
        return None
    return int(least_coordinate(here, 0).to_python())
