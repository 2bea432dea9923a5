"""What a host asks of a program, in its order, against a machine that only notes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from polyloom.csl.compiled import Compiled, Exported, Symbol, Unit
from polyloom.csl.host.debug import records
from polyloom.csl.host.session import Session
from polyloom.csl.host.tensors import Region, fill, from_bytes, to_bytes, words_of
from polyloom.csl.host.utils import calculate_cycles, input_array_to_u32, memcpy_view
from polyloom.diagnostics import PolyloomError
from polyloom.wafer.simulator.csl_fabric import Collected, CommandsDone, Goal, Injected

UNIT = Unit("u", "", b"", b"", {"a": Symbol(0, 2, "f32", is_pointer=True)}, functions=("f",))
SILENT = Unit("v", "", b"", b"", UNIT.symbols)
PROGRAM = Compiled(
    "wse2",
    3,
    2,
    (UNIT, SILENT),
    {(x, y): y for x in range(3) for y in range(2)},
    {},
    (Exported("a", "f32", mutable=True), Exported("c", "f32"), Exported("f", None, parameters=("i16",))),
)
"""3 x 2 PEs, each with a pointer `a` to address 100; those of the first row have the function `f`."""


@dataclass
class Machine:
    """Memory of 200 bytes a PE; notes what it is asked for."""

    cycles: int = 0
    notes: list[object] = field(default_factory=list)
    memory: dict[tuple[int, int], bytearray] = field(default_factory=dict)

    def of(self, x: int, y: int) -> bytearray:
        return self.memory.setdefault((x, y), bytearray((100).to_bytes(2, "little") + bytes(198)))

    def read(self, x: int, y: int, address: int, size: int) -> bytes:
        return bytes(self.of(x, y)[address : address + size])

    def write(self, x: int, y: int, address: int, data: bytes) -> None:
        self.of(x, y)[address : address + len(data)] = data
        self.notes.append(("write", x, y))

    def call(self, x: int, y: int, function: str, words: Sequence[int]) -> None:
        self.notes.append(("call", x, y, function, *words))

    def inject(self, x: int, y: int, color: int, words: Sequence[int]) -> None:
        self.notes.append(("inject", x, y, color, *words))

    def let_pass(self, cycles: int) -> None:
        pass

    def collect(self, x: int, y: int, color: int, words: int) -> list[int]:
        return [10 * x + i for i in range(words)]

    def run(self, goals: Sequence[Goal]) -> None:
        self.notes.append(tuple(goals))

    def finish(self) -> None:
        self.notes.append("finish")

    def log(self) -> list[str]:
        return []


@pytest.fixture
def session() -> Session:
    return Session(PROGRAM, Machine())


def notes(session: Session) -> list[object]:
    assert isinstance(session.machine, Machine)
    return session.machine.notes


def test_a_launch_reaches_the_pes_that_have_the_function(session: Session) -> None:
    session.submit(session.launch("f", [7]), blocking=True)
    assert notes(session) == [("call", x, 0, "f", 7) for x in range(3)]


def test_a_copy_waits_for_commands_and_a_later_launch_for_the_copy(session: Session) -> None:
    region = Region(0, 0, 1, 1, 2)
    session.submit(session.launch("f", [1]), blocking=False)
    session.submit(session.copy_in("a", region, np.zeros((1, 1, 2), np.uint32), 32), blocking=False)
    session.submit(session.launch("f", [2]), blocking=False)
    assert len(notes(session)) == 3
    session.finish()
    assert notes(session)[3:5] == [(CommandsDone(0, 0),), ("write", 0, 0)]
    assert notes(session)[5:] == [("call", x, 0, "f", 2) for x in range(3)] + ["finish"]


def test_a_stream_is_begun_at_once_and_ends_when_it_is_waited_for(session: Session) -> None:
    request = session.submit(
        session.stream_in(5, Region(1, 0, 1, 1, 2), np.array([[[3, 4]]], np.uint32)), blocking=False
    )
    assert notes(session) == [("inject", 1, 0, 5, 3, 4)] and not request.ended
    session.wait(request)
    assert notes(session)[1:] == [(Injected(1, 0, 5),)] and request.ended


def test_what_comes_back_lies_as_rows_columns_elements(session: Session) -> None:
    seen: list[object] = []
    session.submit(
        session.stream_out(6, Region(1, 0, 2, 1, 2), lambda w: seen.append(w.tolist())), blocking=True
    )
    assert notes(session) == [(Collected(1, 0, 6, 2), Collected(2, 0, 6, 2))]
    assert seen == [[[[10, 11], [20, 21]]]]


def test_copies_go_through_the_pointer(session: Session) -> None:
    region = Region(2, 1, 1, 1, 2)
    session.submit(session.copy_in("a", region, np.array([[[1, 0x10002]]], np.uint32), 16), blocking=True)
    assert session.machine.read(2, 1, 100, 4) == bytes([1, 0, 2, 0])
    seen: list[object] = []
    session.submit(session.copy_out("a", region, lambda w: seen.append(w.tolist()), 16), blocking=True)
    assert seen == [[[[1, 2]]]]


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda s: s.launch("g", []), "csl-host-name"),
        (lambda s: s.launch("a", []), "csl-host-name"),
        (
            lambda s: s.copy_in("c", Region(0, 0, 1, 1, 1), np.zeros((1, 1, 1), np.uint32), 32),
            "csl-host-mutable",
        ),
        (lambda s: s.copy_out("f", Region(0, 0, 1, 1, 1), print, 32), "csl-host-name"),
        (lambda s: s.copy_out("a", Region(2, 1, 2, 1, 1), print, 32), "csl-host-region"),
        (
            lambda s: s.submit(s.copy_out("c", Region(0, 0, 1, 1, 1), print, 32), blocking=True),
            "csl-host-name",
        ),
    ],
)
def test_what_does_not_fit_is_refused(session: Session, ask: object, code: str) -> None:
    assert callable(ask)
    with pytest.raises(PolyloomError) as fault:
        ask(session)
    assert [d.code for d in fault.value.diagnostics] == [code]


def test_orders_of_arrays() -> None:
    region = Region(0, 0, 3, 2, 4)
    rows = np.arange(24, dtype=np.uint32)
    words = words_of(rows, region, by_column=False)
    assert words[1, 2, 3] == 23 and words[0, 1, 0] == 4
    columns = words_of(rows, region, by_column=True)
    assert (
        columns[1, 2, 3] == 23 and columns[1, 0, 0] == 1 and columns[0, 1, 0] == 2 and columns[0, 0, 1] == 6
    )
    for by_column in (False, True):
        back = np.zeros(24, np.float32)
        fill(back, words_of(rows, region, by_column=by_column), region, by_column=by_column)
        assert np.array_equal(back.view(np.uint32), rows)


@pytest.mark.parametrize("array", [[1], np.zeros(3, np.float32), np.zeros(4, np.float64)])
def test_arrays_that_do_not_fit_are_refused(array: object) -> None:
    with pytest.raises(PolyloomError) as fault:
        words_of(array, Region(0, 0, 1, 1, 4), by_column=False)
    assert fault.value.diagnostics[0].code == "csl-host-array"


def test_elements_of_16_bits() -> None:
    assert to_bytes(np.array([1, 0x70002], np.uint32), 16) == bytes([1, 0, 2, 0])
    assert from_bytes(bytes([1, 0, 2, 0]), 16).tolist() == [1, 2]
    halves = np.array([1.5, -2, 3, 4], np.float16)
    assert input_array_to_u32(halves, None, 1).tolist() == halves.view(np.uint16).tolist()
    assert (input_array_to_u32(halves, 1, 2) >> 16).tolist() == [0, 1, 0, 1]
    assert np.array_equal(memcpy_view(input_array_to_u32(halves, 1, 2), np.float16), halves)


def test_cycles_between_two_timestamps() -> None:
    stamps = np.array([0xFFFF, 0, 0, 5, 1, 0], np.uint16).view(np.float32)
    assert calculate_cycles(stamps) == 6


def test_records_of_debug() -> None:
    words = [1, 3, ord("a") | ord("b") << 8, ord("c"), 2, 1, 2, 0, 6, 1, 1, 5, 0xFFFF, 3, 1]
    assert records(np.array(words, np.uint16)) == ["abc", 0x20001, 0x10001, -1, True]
