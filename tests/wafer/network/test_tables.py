"""Tables of exchanges: what their rows say is what was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from polyloom.wafer.network.tables import (
    LONGEST,
    Nest,
    Shape,
    flat_gives,
    flat_keeps,
    give_tables,
    nests_of,
    selections,
)


def visited(nest: Nest) -> Iterator[int]:
    start, dims = nest
    if not dims:
        yield start
        return
    (count, step), inner = dims[0], dims[1:]
    for k in range(count):
        yield from visited((start + k * step, inner))


def given_out(shapes: Sequence[Shape], table: np.ndarray) -> list[int]:
    found: list[int] = []
    for shape, start, times, step, count, stride in table.tolist():
        dims = shapes[shape - 1] if shape else ((count, stride),)
        for k in range(times):
            found += visited((start + k * step, dims))
    return found


ADDRESSES = st.lists(st.integers(0, 300), min_size=1, max_size=60)


@given(ADDRESSES)
def test_nests_visit_addresses_in_their_order(addresses: list[int]) -> None:
    assert [a for nest in nests_of(addresses) for a in visited(nest)] == addresses


@given(st.lists(ADDRESSES, min_size=1, max_size=3))
def test_rows_of_gives_visit_them_too(ports: list[list[int]]) -> None:
    shapes, tables = give_tables([nests_of(addresses) for addresses in ports])
    assert [given_out(shapes, table) for table in tables] == ports


@given(st.permutations(range(24)), st.integers(1, 24), st.sampled_from([1 << 20, 8]))
def test_what_is_kept_is_what_is_given(order: list[int], wanted: int, room: int) -> None:
    sequence = np.arange(1000, 1024)
    port = np.array(order[:wanted])
    (found,) = selections([port], 24, room)
    memory = np.full(found.cells, -1)
    at = 0
    for times, drop, keep, address in found.keeps.tolist():
        for k in range(times):
            at += drop
            memory[address + k * keep : address + (k + 1) * keep] = sequence[at : at + keep]
            at += keep
    assert at == 24
    shapes, (table,) = give_tables([found.gives])
    assert memory[given_out(shapes, table)].tolist() == sequence[port].tolist()


def test_a_transposed_tensor_is_one_nest_that_is_configured() -> None:
    addresses = np.arange(6 * 5 * 4).reshape(6, 5, 4).transpose(2, 1, 0).ravel().tolist()
    assert nests_of(addresses) == [(0, ((4, 1), (5, 4), (6, 20)))]
    shapes, (table,) = give_tables([nests_of(addresses)])
    assert shapes == (((4, 1), (5, 4), (6, 20)),)
    assert table.tolist() == [[1, 0, 1, 0, 0, 0]]


def test_long_gaps_are_dropped_in_pieces() -> None:
    (found,) = selections([np.array([0, 100_000])], 100_001, 8)
    assert sum(t * (d + k) for t, d, k, _ in found.keeps.tolist()) == 100_001
    assert found.keeps[:, 1].max() <= LONGEST
    assert found.cells == 2


@given(ADDRESSES)
def test_rows_without_loops_give_the_same(addresses: list[int]) -> None:
    shapes, (table,) = give_tables([nests_of(addresses)])
    found: list[int] = []
    for shape, start, count, stride in flat_gives(table).tolist():
        found += visited((start, shapes[shape - 1] if shape else ((count, stride),)))
    assert found == addresses


def test_rows_without_loops_keep_the_same() -> None:
    table = np.array([(2, 3, 2, 0), (1, 0, 4, 4), (1, 9, 0, 8)], dtype=np.int16)
    kept = [(3, -1), (2, 0), (3, -1), (2, 2), (4, 4), (9, -1)]
    assert flat_keeps(table).tolist() == [list(row) for row in kept]
