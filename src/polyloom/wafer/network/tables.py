"""What exchanges do with the elements that pass: tables of runs, which the host loads before the start.

A tensor travels as one sequence of elements (the bus). An exchange in front of a port keeps what that port
needs, in the order of the bus, and gives it on in the order of the port. Elements are enumerated here, with
NumPy, as in ``wafer/host``: tables are data. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import islpy as isl
import numpy as np
import numpy.typing as npt

from polyloom.polyhedra.vectorized import Integers, evaluate_function
from polyloom.wafer.host.transfers import PortOrder

LONGEST = 32767
"""What one entry of a table can count, in 16 bits."""
FARTHEST = 127
"""The largest stride of an operand of one dimension that is set while the program runs (8 bits)."""
GAPS = (1 << 30, 4096, 512, 64, 1)
"""Gaps of the sequence that are stored as well, so that there are fewer runs: as large ones as memory allows."""

Table = npt.NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class Selection:
    """What one exchange in front of a port does in each invocation.

    ``keeps``: int16[n, 4]: so many times: drop so many, keep so many, from this address on. ``gives``:
    int16[n, 5]: from this address on, so many times with this step: so many elements with this stride.
    ``cells``: elements of memory.
    """

    keeps: Table
    gives: Table
    cells: int


def bus_positions(orders: Sequence[PortOrder], shape: tuple[int, ...]) -> tuple[Integers, tuple[int, ...]]:
    """Return where each element of a tensor is in the sequence, int64[shape], and how many each port gives.

    The sequence has port after port, each in its order. An element that leaves twice is taken where it leaves first.
    """
    positions = np.full(shape, -1, dtype=np.int64)
    start = sum(len(order.element) for order in orders)
    for order in reversed(orders):
        start -= len(order.element)
        positions[tuple(order.element.T)] = start + np.arange(len(order.element))
    return positions, tuple(len(order.element) for order in orders)


def row_major(shape: tuple[int, ...]) -> Integers:
    """Return the positions of a sequence in which the host sends a tensor, int64[shape]."""
    return np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64).reshape(shape)


def positions_of(elements: Integers, relation: isl.Map, positions: Integers) -> Integers:
    """Return where elements of an input (int64[n, rank]) are in the sequence of the tensor that it is, int64[n].

    ``relation``: ``{ input[i] -> tensor[j] }``.
    """
    rank = relation.dim(isl.dim_type.in_)
    if rank == 0:
        return np.broadcast_to(positions.reshape(-1)[:1], (max(len(elements), 1),))
    columns = [np.ascontiguousarray(elements[:, k]) for k in range(rank)]
    found, _ = evaluate_function(relation.as_pw_multi_aff(), columns, {})
    return positions[tuple(found)]


def selections(wanted: Sequence[Integers], length: int, most_cells: int) -> tuple[Selection, ...]:
    """Return what each exchange of a line does. ``wanted``: for each port, positions in the order of the port.

    ``length``: of the sequence. Larger gaps are stored where ``most_cells`` allows it.
    """
    for gap in GAPS:
        found = tuple(_selection(each, length, gap) for each in wanted)
        if max((s.cells for s in found), default=0) <= most_cells:
            return found
    return found


def _selection(wanted: Integers, length: int, gap: int) -> Selection:
    needed = np.unique(wanted)
    breaks = np.flatnonzero(np.diff(needed) > gap) + 1
    firsts = needed[np.concatenate([[0], breaks]).astype(np.int64)]
    lasts = needed[np.concatenate([breaks - 1, [len(needed) - 1]]).astype(np.int64)]
    sizes = lasts - firsts + 1
    bases = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    run = np.searchsorted(firsts, wanted, side="right") - 1
    addresses = bases[run] + wanted - firsts[run]
    return Selection(_keeps(firsts, sizes, length), _gives(addresses), int(sizes.sum()))


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


def _gives(addresses: Integers) -> Table:
    rows: list[list[int]] = []
    for start, count, stride in _runs(addresses.tolist()):
        last = rows[-1] if rows else None
        if last is not None and last[3:] == [count, stride] and last[1] < LONGEST:
            step = start - (last[0] + (last[1] - 1) * last[2])
            if (last[1] == 1 or step == last[2]) and abs(step) <= LONGEST:
                last[1:3] = [last[1] + 1, step]
                continue
        rows.append([start, 1, 0, count, stride])
    return np.array(rows, dtype=np.int16).reshape(-1, 5)


def _runs(addresses: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (start, count, stride) of the longest arithmetic sequences, one behind the other."""
    k = 0
    while k < len(addresses):
        end = k + 1
        stride = addresses[end] - addresses[k] if end < len(addresses) else 1
        if abs(stride) > FARTHEST:
            yield addresses[k], 1, 1
            k += 1
            continue
        while end < len(addresses) and addresses[end] - addresses[end - 1] == stride and end - k < LONGEST:
            end += 1
        yield addresses[k], end - k, stride
        k = end
