"""What exchanges do with the elements that pass: tables of runs, which the host loads before the start.

A tensor travels as one sequence of elements (the bus). An exchange in front of a port keeps what that port
needs, in the order of the bus, and gives it on in the order of the port. Elements are enumerated here, with
NumPy, as in ``wafer/host``: tables are data. Not in the papers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import islpy as isl
import numpy as np
import numpy.typing as npt

from polyloom.polyhedra.functions import function_of
from polyloom.polyhedra.vectorized import Integers, evaluate_function
from polyloom.wafer.host.transfers import PortOrder

LONGEST = 32767
"""What one entry of a table can count, in 16 bits."""
FARTHEST = 127
"""The largest stride of an operand of one dimension that is set while the program runs (8 bits)."""
GAPS = (1 << 30, 4096, 512, 64, 1)
"""Gaps that are stored as well, so that there are fewer runs: as large ones as memory allows."""

MOST_DIMENSIONS = 4
"""Of a nest that one instruction runs through."""
MOST_SHAPES = 6
"""Nests that the exchanges of a line configure beforehand."""

Table = npt.NDArray[np.int16]
Shape = tuple[tuple[int, int], ...]
"""(count, step) of each loop of a nest, the outermost first."""
Nest = tuple[int, Shape]
"""Where a nest starts, and its loops."""


@dataclass(frozen=True, eq=False)
class Selection:
    """What one exchange in front of a port does in each invocation.

    ``keeps``: int16[n, 4]: so many times: drop so many, keep so many, from this address on. ``gives``: the
    addresses in the order of the port. ``cells``: elements of memory; where they are more than ``LONGEST``,
    there are no tables.
    """

    keeps: Table
    gives: tuple[Nest, ...]
    cells: int


def bus_positions(orders: Sequence[PortOrder], shape: tuple[int, ...]) -> tuple[Integers, tuple[int, ...]]:
    """Return where each element of a tensor is in the sequence, int64[shape], and how many each port gives.

    The sequence has port after port, each in its order. What leaves twice is taken where it leaves first.
    """
    positions = np.full(shape, -1, dtype=np.int64)
    start = sum(len(order.element) for order in orders)
    for order in reversed(orders):
        start -= len(order.element)
        own = start + np.arange(len(order.element))
        positions[tuple(order.element.T)] = own if shape else own[0]
    return positions, tuple(len(order.element) for order in orders)


def row_major(shape: tuple[int, ...]) -> Integers:
    """Return the positions of a sequence in which the host sends a tensor, int64[shape]."""
    return np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64).reshape(shape)


def positions_of(elements: Integers, relation: isl.Map, positions: Integers) -> Integers:
    """Return where elements of an input, int64[n, rank], are in the sequence of its tensor, int64[n].

    ``relation``: ``{ input[i] -> tensor[j] }``.
    """
    rank = relation.dim(isl.dim_type.in_)
    if rank == 0:
        return np.broadcast_to(positions.reshape(-1)[:1], (max(len(elements), 1),))
    columns = [np.ascontiguousarray(elements[:, k]) for k in range(rank)]
    found, _ = evaluate_function(function_of(relation), columns, {})
    return positions[tuple(found)]


def selections(wanted: Sequence[Integers], length: int, most_cells: int) -> tuple[Selection, ...]:
    """Return what each exchange of a line does.

    ``wanted``: for each port, positions in the order of the port; ``length``: of the sequence. Larger gaps
    are stored where ``most_cells`` (at most ``LONGEST``) allows it.
    """
    for gap in GAPS:
        runs = [_kept_runs(each, gap) for each in wanted]
        if max((int(sizes.sum()) for _, sizes in runs), default=0) <= most_cells:
            break
    return tuple(_selection(each, length, *run) for each, run in zip(wanted, runs, strict=True))


def _kept_runs(wanted: Integers, gap: int) -> tuple[Integers, Integers]:
    """Return where the runs that are kept begin in the sequence, and how long they are."""
    needed = np.unique(wanted)
    breaks = np.flatnonzero(np.diff(needed) > gap) + 1
    firsts = needed[np.concatenate([[0], breaks]).astype(np.int64)]
    lasts = needed[np.concatenate([breaks - 1, [len(needed) - 1]]).astype(np.int64)]
    return firsts, lasts - firsts + 1


def _selection(wanted: Integers, length: int, firsts: Integers, sizes: Integers) -> Selection:
    cells = int(sizes.sum())
    if cells > LONGEST:
        return Selection(np.zeros((0, 4), np.int16), (), cells)
    bases = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    run = np.searchsorted(firsts, wanted, side="right") - 1
    addresses = bases[run] + wanted - firsts[run]
    return Selection(_keeps(firsts, sizes, length), tuple(nests_of(addresses.tolist())), cells)


def _keeps(firsts: Integers, sizes: Integers, length: int) -> Table:
    rows: list[tuple[int, int, int, int]] = []
    end = base = 0
    for first, size in zip(firsts.tolist(), sizes.tolist(), strict=True):
        drop = first - end
        while drop > LONGEST:
            rows.append((1, LONGEST, 0, base))
            drop -= LONGEST
        if rows and rows[-1][1:3] == (drop, size) and rows[-1][0] < LONGEST:
            rows[-1] = (rows[-1][0] + 1, *rows[-1][1:])
        else:
            rows.append((1, drop, size, base))
        base += size
        end = first + size
    while end < length:
        rows.append((1, min(length - end, LONGEST), 0, base))
        end += LONGEST
    return np.array(rows, dtype=np.int16).reshape(-1, 4)


def nests_of(addresses: Sequence[int]) -> list[Nest]:
    """Return nests of loops that visit addresses in their order: greedily, the innermost loop first.

    0 1 2 10 11 12 5 6: ``(0, ((2, 10), (3, 1)))`` and ``(5, ((2, 1),))``.
    """
    nests: list[Nest] = [(address, ()) for address in addresses]
    for _ in range(MOST_DIMENSIONS + 1):
        found = _looped(nests)
        if len(found) == len(nests):
            break
        nests = found
    return nests


def _looped(nests: list[Nest]) -> list[Nest]:
    """Join nests of one shape, one behind the other, whose starts differ by the same step."""
    result: list[Nest] = []
    k = 0
    while k < len(nests):
        start, dims = nests[k]
        end = k + 1
        if end < len(nests) and nests[end][1] == dims and len(dims) <= MOST_DIMENSIONS:
            step = nests[end][0] - start
            while (
                end < len(nests)
                and nests[end][1] == dims
                and nests[end][0] - nests[end - 1][0] == step
                and end - k < LONGEST
                and abs(step) <= LONGEST
            ):
                end += 1
            if end - k > 1:
                dims = ((end - k, step), *dims)
        result.append((start, dims))
        k = end
    return result


def give_tables(nests: Sequence[Sequence[Nest]]) -> tuple[tuple[Shape, ...], tuple[Table, ...]]:
    """Return the shapes of nests that are configured once, and each exchange's rows.

    int16[n, 6]: shape (0: none of them), start, times, step; without a shape also elements and stride.
    """
    counts: Counter[Shape] = Counter()
    for each in nests:
        for _, dims in each:
            counts[dims[-MOST_DIMENSIONS:]] += 1
    common = [shape for shape, _ in counts.most_common() if len(shape) > 1 or counts[shape] > 1]
    shapes = tuple(common[:MOST_SHAPES])
    numbers = {shape: k + 1 for k, shape in enumerate(shapes)}
    tables = []
    for each in nests:
        rows = [row for nest in each for row in _give_rows(nest, numbers)]
        tables.append(np.array(rows, dtype=np.int16).reshape(-1, 6))
    return shapes, tuple(tables)


def flat_keeps(table: Table) -> Table:
    """Return ``keeps`` without loops: int16[n, 2], elements and their address, -1 where they are dropped."""
    rows: list[tuple[int, int]] = []
    for times, drop, keep, address in table.tolist():
        for time in range(times):
            rows += [(drop, -1)] * (drop > 0) + [(keep, address + time * keep)] * (keep > 0)
    return np.array(rows, dtype=np.int16).reshape(-1, 2)


def flat_gives(table: Table) -> Table:
    """Return rows of ``give_tables`` without loops: int16[n, 4]: shape, start, elements, stride."""
    rows: list[tuple[int, int, int, int]] = []
    for shape, start, times, step, count, stride in table.tolist():
        rows += [(shape, start + time * step, count, stride) for time in range(times)]
    return np.array(rows, dtype=np.int16).reshape(-1, 4)


def _give_rows(nest: Nest, numbers: dict[Shape, int]) -> Iterator[tuple[int, ...]]:
    start, dims = nest
    outer, shape = dims[:-MOST_DIMENSIONS], dims[-MOST_DIMENSIONS:]
    ((times, step),) = outer or ((1, 0),)
    if shape in numbers:
        yield numbers[shape], start, times, step, 0, 0
        return
    whole = (*outer, *shape)
    if not whole or abs(whole[-1][1]) > FARTHEST:
        inner, rest = (1, 1), whole
    else:
        inner, rest = whole[-1], whole[:-1]
    starts = _starts(start, rest[:-1])
    times, step = rest[-1] if rest else (1, 0)
    yield from ((0, first, times, step, *inner) for first in starts)


def _starts(start: int, dims: Shape) -> Iterator[int]:
    if not dims:
        yield start
        return
    (count, step), inner = dims[0], dims[1:]
    for k in range(count):
        yield from _starts(start + k * step, inner)
