"""Arrays of the page: exact where they fit, rounded where they do not; time lines joined and bounded."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from polyloom.report.html.packing import Packed, pack_numbers, pack_truths
from polyloom.report.html.timeline import timelines
from polyloom.wafer.simulator.library import TRACE_EVENT
from polyloom.wafer.simulator.result import Trace, TraceKind

TYPES = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "bits": np.uint8}


def raw(packed: Packed) -> npt.NDArray[Any]:
    data = zlib.decompress(base64.b64decode(packed["data"]))
    return np.frombuffer(data, np.dtype(TYPES[packed["type"]]).newbyteorder("<"))


def unpacked_json(packed: Packed) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(packed["data"])))


def unpacked(packed: Packed) -> npt.NDArray[np.float64]:
    return packed["offset"] + packed["scale"] * raw(packed).astype(np.float64)


@given(arrays.arrays(np.int64, st.integers(1, 40), elements=st.integers(-5, 2**32 - 6)))
def test_numbers_come_back_as_they_were(values: npt.NDArray[np.int64]) -> None:
    packed = pack_numbers(values)
    assert packed["exact"] and (unpacked(packed) == values).all()


@given(st.integers(0, 2**32 - 1), st.integers(1000, 100_000))
def test_numbers_that_do_not_fit_are_rounded(seed: int, spread: int) -> None:
    values = np.random.default_rng(seed).integers(7, 7 + spread, 5000)
    packed = pack_numbers(values, most=4000)
    assert not packed["exact"] and packed["type"] == "u8"
    assert np.abs(unpacked(packed) - values).max() <= (values.max() - values.min()) / 255 / 2 + 1e-6


@given(arrays.arrays(np.bool_, st.integers(0, 70)))
def test_truths_are_bits(values: npt.NDArray[np.bool_]) -> None:
    bits = np.unpackbits(raw(pack_truths(values)), bitorder="little")[: len(values)]
    assert (bits.astype(np.bool_) == values).all()


def trace_of(*events: tuple[int, int, int, TraceKind, int, int]) -> Trace:
    """Events: start, duration, PE, kind, lane, name."""
    rows = np.zeros(len(events), TRACE_EVENT)
    for row, event in zip(rows, events, strict=True):
        for field, value in zip(("start", "duration", "pe", "kind", "lane", "name"), event, strict=True):
            row[field] = value
    return Trace(3, rows[np.argsort(rows["start"], kind="stable")], ("f", "color 1", "color 2"))


def rows_of(line: dict[str, Any]) -> list[tuple[int, ...]]:
    flat = line["events"]
    return [tuple(flat[k : k + 6]) for k in range(0, len(flat), 7)]


def test_wavelets_in_consecutive_cycles_are_one_row() -> None:
    link, task = TraceKind.LINK, TraceKind.TASK
    trace = trace_of(
        (0, 5, 4, task, 0, 0), (5, 5, 4, task, 0, 0),
        (1, 1, 4, link, 2, 1), (2, 1, 4, link, 2, 1), (3, 1, 4, link, 2, 2), (5, 1, 4, link, 2, 2),
        (2, 1, 4, link, 0, 1),
    )  # fmt: skip
    (line,) = timelines(trace)["pes"]
    assert (line["x"], line["y"], line["total"]) == (1, 1, 6)
    assert rows_of(line) == [
        (0, 5, task, 0, 0, 1),
        (1, 2, link, 2, 1, 2),
        (2, 1, link, 0, 1, 1),
        (3, 1, link, 2, 2, 1),
        (5, 5, task, 0, 0, 1),
        (5, 1, link, 2, 2, 1),
    ]


@pytest.mark.parametrize("pes", [1, 9])
def test_a_page_has_a_bounded_number_of_events(pes: int) -> None:
    trace = trace_of(*((2 * k, 1, pe, TraceKind.TASK, 0, 0) for pe in range(pes) for k in range(1000)))
    lines = timelines(trace, most=3000)["pes"]
    shown = [len(rows_of(line)) for line in lines]
    assert sum(shown) <= 3000 and [line["total"] for line in lines] == [1000] * pes
    assert all(rows_of(line)[0][0] == 0 for line in lines)


def test_what_pes_with_few_events_leave_is_for_others() -> None:
    counts = (100, 2000, 2000)
    trace = trace_of(*((2 * k, 1, pe, TraceKind.TASK, 0, 0) for pe in range(3) for k in range(counts[pe])))
    shown = [len(rows_of(line)) for line in timelines(trace, most=2103)["pes"]]
    assert shown == [100, 1001, 1001]


def test_the_largest_rectangle_has_a_bounded_page() -> None:
    """Random amounts on 600 x 595 PEs cannot be compressed, and are rounded to a byte each."""
    values = np.random.default_rng(0).integers(0, 2**20, 600 * 595)
    assert len(pack_numbers(values)["data"]) < 480_000
    regular = np.tile(np.arange(595)[:, None] * 7, (1, 600))
    assert len(pack_numbers(regular)["data"]) < 20_000 and pack_numbers(regular)["exact"]
