"""CSL programs over the fabric: streams, tasks, switches, filters, FIFOs, commands of the host."""

from __future__ import annotations

import numpy as np
import pytest
from tests.wafer.simulator.csl_programs import fabric, failure, floats, one_pe, route, shorts, unit, words

from polyloom.wafer.simulator.csl_fabric import (
    Collected,
    CommandsDone,
    CslFabric,
    CslFailure,
    Filter,
    Injected,
)

START = ".activated = (const uint8_t[]){CSL_ID(8), 0},"
GO = '{CSL_LOCAL_TASK, 8, "go", go},'
HEAD = "TASK(go) { (void)w; "

SENDER = unit(
    HEAD
    + """csl_run(CSL_mov32, ASYNC(.activate = CSL_ID(9)), OUT(2, 3, 4),
               MEM(0, 4)); }
      TASK(sent) { (void)w; csl_store(u16, 32, 1); }""",
    name="sender",
    tasks=GO + '{CSL_LOCAL_TASK, 9, "sent", sent},',
    queues="{1, 1, 2, 3},",
    more=START,
)
RECEIVER = unit(
    HEAD
    + """csl_run(CSL_fadds, ASYNC(.activate = CSL_ID(9)), MEM(0, 4),
               IN(2, 4), csl_of_f32(1)); }
      TASK(got) { (void)w; csl_store(u16, 32, 7); }""",
    name="receiver",
    tasks=GO + '{CSL_LOCAL_TASK, 9, "got", got},',
    queues="{1, 0, 2, 3},",
    more=START,
)
IMAGE = np.arange(1, 5, dtype=np.float32).tobytes().ljust(256, b"\0")


@pytest.mark.parametrize("machine", ["cs2", "cs3"])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_stream_to_two_neighbours(machine: str, backwards: bool) -> None:
    """Multicast: the second PE takes the wavelets and lets them pass to the third."""
    made = fabric(SENDER | RECEIVER, 3, 1, machine, backwards=backwards)
    made.place(0, 0, "sender", IMAGE)
    for x in (1, 2):
        made.place(x, 0, "receiver")
    made.route(0, 0, route(3, "ramp", "east"))
    made.route(1, 0, route(3, "west", "ramp east"))
    made.route(2, 0, route(3, "west", "ramp"))
    made.finish()
    for x in (1, 2):
        assert floats(made, 0, 4, x) == [2, 3, 4, 5]
        assert shorts(made, 32, 1, x) == [7]
    assert shorts(made, 32, 1) == [1]
    assert made.counts().hops == 8
    hop, ramp, wake, activation, launch = (1 if machine == "cs2" else 2), 2, 6, 14, 6
    arrival = activation + launch + 1 + ramp + 2 * hop + ramp
    assert made.cycles == arrival + wake + 4 + 1 + activation


def test_what_waits_for_what() -> None:
    made = fabric(RECEIVER, 1, 1)
    made.place(0, 0, "receiver")
    made.route(0, 0, route(3, "west", "ramp"))
    made.sink(0, 0, 4)
    fault = failure(made, Collected(0, 0, 4, 1))
    assert fault.kind == "deadlock"
    assert fault.details == (
        "PE(0, 0): CSL_fadds of microthread 2 waits for an element of input queue 2, color 3; "
        "4 elements to come "
        "(receiver.c:11)",
        "the host waits for 1 words of color 4 from PE(0, 0): 0 have come",
    )


def left_by(rx: str, tx: str, *, place: bool = True) -> tuple[str, ...]:
    made = fabric(SENDER | RECEIVER, 2, 1)
    made.place(0, 0, "sender", IMAGE)
    made.route(0, 0, route(3, "ramp", "east"))
    if place:
        made.place(1, 0, "receiver")
    if rx:
        made.route(1, 0, route(3, rx, tx))
    with pytest.raises(CslFailure) as caught:
        made.finish()
    return (caught.value.fault.kind, *caught.value.fault.details)


def test_a_wavelet_that_nobody_takes() -> None:
    kind, *lines = left_by("", "", place=False)
    assert kind == "data-left"
    assert lines == [
        "PE(1, 0): 4 wavelets of color 3 from WEST wait in the router: the color has no route there"
    ]
    _, _, *lines = left_by("east", "ramp")
    assert lines == [
        "PE(1, 0): 4 wavelets of color 3 from WEST wait in the router: its route takes nothing from there "
        "(switch position 0)"
    ]
    _, *lines = left_by("west", "ramp", place=False)
    assert lines[0].endswith("the PE binds no input queue or data task to the color")


def test_a_wavelet_that_leaves_the_rectangle() -> None:
    made = one_pe(SENDER, IMAGE)
    made.route(0, 0, route(3, "ramp", "east"))
    assert failure(made).kind == "no-sink"
    made = one_pe(SENDER, IMAGE)
    made.route(0, 0, route(3, "ramp", "east"))
    made.sink(0, 0, 3, "east")
    made.finish()
    assert made.collect(0, 0, 3, port="east").view(np.float32).tolist() == [1, 2, 3, 4]


def test_colors_that_merge() -> None:
    made = fabric(SENDER | RECEIVER, 3, 1)
    for x in (0, 2):
        made.place(x, 0, "sender", IMAGE)
    made.place(1, 0, "receiver")
    made.route(0, 0, route(3, "ramp", "east"))
    made.route(2, 0, route(3, "ramp", "west"))
    made.route(1, 0, route(3, "west east", "ramp"))
    fault = failure(made)
    assert (fault.kind, fault.pe) == ("merge", (1, 0))
    assert "color 3" in fault.message


def test_what_a_pe_sends_merges_with_what_passes() -> None:
    """One word at a time may come from either side; streams that meet are an error."""
    for count, merges in ((1, False), (40, True)):
        made = one_pe(SENDER, IMAGE)
        made.route(0, 0, route(3, "ramp west", "east"))
        made.sink(0, 0, 3, "east")
        made.inject(0, 0, 3, np.arange(count, dtype=np.uint32), port="west")
        if merges:
            assert failure(made).kind == "merge"
        else:
            made.finish()
            assert made.collected(0, 0, 3, "east") == 5


TWICE = """csl_run(CSL_mov32, ASYNC(), OUT(2, 3, 4), MEM(0, 4));
           csl_run(CSL_mov32, ASYNC(%s), OUT(%s, 3, 4), MEM(0, 4));"""


@pytest.mark.parametrize(
    ("more", "kind", "message"),
    [
        (("", "2"), "queue-in-use", "feeds output queue 2 already"),
        ((".ut = CSL_ID(2)", "3"), "microthread-in-use", "microthread 2 is at work already"),
    ],
)
def test_two_operations_on_one_resource(more: tuple[str, str], kind: str, message: str) -> None:
    made = one_pe(unit(HEAD + TWICE % more + "}", tasks=GO, more=START), IMAGE)
    made.route(0, 0, route(3, "ramp", "east"))
    fault = failure(made)
    assert fault.kind == kind and message in fault.message


def test_poison_may_not_leave() -> None:
    made = fabric(SENDER)
    made.place(0, 0, "sender")
    assert failure(made).kind == "poison"


# ---- Tasks

WORKER = unit(
    """TASK(add) { csl_store(u32, 0, csl_load(u32, 0) + w); }
       TASK(end) { csl_store(u32, 4, csl_load(u32, 0) * 100 + w); }
       CALL(stop) { PE_HERE("stop"); csl_block(a[0], &pe_here); csl_command_done(); }
       CALL(go_on) { PE_HERE("go"); csl_unblock(a[0], &pe_here); csl_command_done(); }""",
    tasks='{CSL_DATA_TASK, ID, "add", add}, {CSL_CONTROL_TASK, 40, "end", end},',
    queues="{1, 0, 2, 5},",
    functions='{"stop", stop}, {"go_on", go_on},',
)


def worker(machine: str) -> CslFabric:
    units = {"p": WORKER["p"].replace("ID", "5" if machine == "cs2" else "2")}
    return one_pe(units, bytes(256), machine=machine)


CONTROL_40 = 40 << 16 | 3
ADVANCE, NOCE = 1 << 22, 1 << 24


@pytest.mark.parametrize("machine", ["cs2", "cs3"])
def test_data_and_control_tasks(machine: str) -> None:
    made = worker(machine)
    made.inject(0, 0, 5, [10, 20, CONTROL_40], control=[0, 0, 1])
    made.run([Injected(0, 0, 5)])
    made.finish()
    assert words(made, 0, 2) == [30, 3003]


@pytest.mark.parametrize(("machine", "gate"), [("cs2", 5), ("cs3", 2)])
def test_a_blocked_id_holds_wavelets_back(machine: str, gate: int) -> None:
    """The id is that of the color on wse2, that of the queue on wse3."""
    made = worker(machine)
    made.call(0, 0, "stop", [gate])
    made.run([CommandsDone(0, 0)])
    made.inject(0, 0, 5, np.ones(40, np.uint32))
    made.run()
    assert words(made, 0, 1) == [0]
    assert failure_text(made) == "its id is blocked"
    made = worker(machine)
    made.call(0, 0, "stop", [gate])
    made.run([CommandsDone(0, 0)])
    made.inject(0, 0, 5, np.ones(40, np.uint32))
    made.call(0, 0, "go_on", [gate])
    made.finish()
    assert words(made, 0, 1) == [40]


def failure_text(made: CslFabric) -> str:
    with pytest.raises(CslFailure) as caught:
        made.finish()
    found = [line for line in caught.value.fault.details if "input queue 2" in line]
    return found[0].rsplit(": ", 1)[1]


def test_a_control_wavelet_without_its_task() -> None:
    made = worker("cs2")
    made.inject(0, 0, 5, [41 << 16], control=[1])
    assert failure(made).kind == "no-control-task"
    made = worker("cs2")
    made.inject(0, 0, 5, [41 << 16 | NOCE], control=[1])
    made.finish()  # it never reaches the PE


def test_local_tasks_in_rotation_and_what_is_blocked() -> None:
    """The next id runs next; a blocked one waits for @unblock, which an operation may give at its end."""
    note = """static void note(int v) {
        csl_store(u16, 2 * csl_load(u16, 0), v);
        csl_store(u16, 0, csl_load(u16, 0) + 1); }"""
    code = (
        note
        + HEAD
        + """PE_HERE("go"); csl_activate(12, &pe_here);
             csl_activate(11, &pe_here); csl_activate(10, &pe_here);
             csl_block(10, &pe_here);
             csl_run(CSL_mov32, ASYNC(.unblock = CSL_ID(10)), OUT(2, 3, 1), csl_of_u32(5)); }
           TASK(a) { (void)w; note(10); } TASK(b) { (void)w; note(11); }
           TASK(c) { (void)w; note(12); }"""
    )
    tasks = GO + '{CSL_LOCAL_TASK, 10, "a", a}, {CSL_LOCAL_TASK, 11, "b", b}, {CSL_LOCAL_TASK, 12, "c", c},'
    made = one_pe(unit(code, tasks=tasks, more=START), np.array([1], np.uint16).tobytes().ljust(256, b"\0"))
    made.sink(0, 0, 3)
    made.finish()
    assert shorts(made, 0, 4) == [4, 11, 12, 10]
    assert made.collect(0, 0, 3).tolist() == [5]


POLLER = unit(
    """TASK(poll) { PE_HERE("poll"); cost(.branches = 1);
         if (csl_load(u32, 0) < 3) csl_activate(8, &pe_here); else csl_store(u32, 4, 1); }
       TASK(add) { csl_store(u32, 0, csl_load(u32, 0) + w); }""",
    tasks='{CSL_LOCAL_TASK, 8, "poll", poll}, {CSL_DATA_TASK, 5, "add", add},',
    queues="{1, 0, 2, 5},",
    more=START,
)


def test_a_task_that_polls_lets_others_run() -> None:
    made = one_pe(POLLER, bytes(256))
    made.inject(0, 0, 5, [1, 1, 1])
    made.finish()
    assert words(made, 0, 2) == [3, 1]
    made = one_pe(POLLER, bytes(256), max_cycles=1000)
    fault = failure(made)
    assert fault.kind == "cycle-limit"


# ---- Switches


def payload(*opcodes: int, entry: int = 31) -> int:
    """A control wavelet of commands that the PE does not see."""
    at, noce = (22, 25, 28, 1, 4, 7, 10, 13), (24, 27, 0, 3, 6, 9, 12, 15)
    given = (*opcodes, *[0] * (8 - len(opcodes)))
    return entry << 16 | sum(o << at[i] | 1 << noce[i] for i, o in enumerate(given))


def switched(**more: object) -> list[list[int]]:
    """Words 1 to 5, an advance after each, through a switch north, west, east; what leaves where."""
    made = fabric(SENDER, 1, 1)
    made.route(0, 0, route(3, "south", "north", ("south", "west"), ("south", "east"), **more))
    for port in ("north", "west", "east"):
        made.sink(0, 0, 3, port)
    given = [v for k in range(1, 6) for v in (k, payload(1))]
    made.inject(0, 0, 3, given, control=[0, 1] * 5, port="south")
    made.finish()
    return [
        [v for v in made.collect(0, 0, 3, port=port).tolist() if v < 100]
        for port in ("north", "west", "east")
    ]


def test_switches() -> None:
    assert switched() == [[1], [2], [3, 4, 5]]
    assert switched(ring_mode=True) == [[1, 4], [2, 5], [3]]
    assert switched(position=1) == [[], [1], [2, 3, 4, 5]]


def test_a_switch_that_is_reset() -> None:
    made = fabric(SENDER, 1, 1)
    made.route(0, 0, route(3, "south", "north", ("south", "west")))
    for port in ("north", "west"):
        made.sink(0, 0, 3, port)
    made.inject(0, 0, 3, [payload(1), 7, payload(2), 8], control=[1, 0, 1, 0], port="south")
    made.finish()
    assert made.collect(0, 0, 3, port="north").tolist()[1:] == [8]
    assert made.collect(0, 0, 3, port="west").tolist()[0] == 7


@pytest.mark.parametrize(
    ("pop_mode", "commands", "left", "north"),
    [
        ("none", (0, 1, 1), (0, 1, 1), [0, 0, 0]),
        ("always", (0, 1, 0), (), [0, 1, 0]),
        ("on-advance", (1, 1, 1), (), [1, 0, 0]),
        ("on-advance", (0, 1, 1), (0, 1, 1), [0, 0, 0]),
    ],
)
def test_pop_modes(pop_mode: str, commands: tuple[int, ...], left: tuple[int, ...], north: list[int]) -> None:
    """Commands through three routers; then a word shows which switches have moved.

    Without popping every router sees the first command, with it each the next one; the third mode pops only
    where a switch has moved.
    """
    made = fabric(SENDER, 3, 1)
    for x in range(3):
        made.route(x, 0, route(3, "west", "east", ("west", "north"), pop_mode=pop_mode))
        made.sink(x, 0, 3, "north")
    made.sink(2, 0, 3, "east")
    made.inject(0, 0, 3, [payload(*commands)], control=[1], port="west")
    made.run()
    assert made.collect(2, 0, 3, port="east").tolist() == [payload(*left)]
    made.inject(0, 0, 3, [9], port="west")
    made.run()
    assert [made.collected(x, 0, 3, "north") for x in range(3)] == north


def test_color_swap() -> None:
    """A color whose lowest bit turns whenever it comes from the west: the PEs of a row take it in turn."""
    code = """TASK(red) { csl_store(u32, 0, csl_load(u32, 0) + w); }
              TASK(blue) { csl_store(u32, 4, csl_load(u32, 4) + w); }"""
    units = unit(code, tasks='{CSL_DATA_TASK, 0, "red", red}, {CSL_DATA_TASK, 1, "blue", blue},')
    made = fabric(units, 4, 1)
    for x in range(4):
        made.place(x, 0, "p", bytes(256))
        for color in (0, 1):
            made.route(x, 0, route(color, "west", "ramp east" if x < 3 else "ramp", swap_x=True))
    made.inject(0, 0, 1, [5, 6], port="west")
    made.finish()
    assert [words(made, 0, 2, x) for x in range(4)] == [[0, 11], [11, 0], [0, 11], [11, 0]]


def filtered(given: Filter, count: int) -> list[int]:
    made = worker("cs2")
    made.route(0, 0, route(5, "west", "ramp", filter=given))
    made.inject(0, 0, 5, [(k << 16) | 1 << k for k in range(count)], port="west")
    made.finish()
    passed = words(made, 0, 1)[0] & 0xFFFF
    return [k for k in range(count) if passed >> k & 1]


def test_filters() -> None:
    assert filtered(Filter("range", low=3, high=5), 8) == [3, 4, 5]
    assert filtered(Filter("counter", start=0, most=1, limit=4), 8) == [0, 1, 5, 6]
    assert filtered(Filter("counter", start=3, most=1, limit=4), 8) == [2, 3, 7]


# ---- FIFOs, packed wavelets, control wavelets in a stream

FIFO = unit(
    HEAD
    + """csl_run(CSL_fadds, ASYNC(), csl_of_fifo(0), IN(2, 20), csl_of_f32(10));
         csl_run(CSL_fnegs, ASYNC(), OUT(3, 6, 20), csl_of_fifo(0)); }
       static const struct csl_fifo fifos[] = {{0, 16, 4, 0, 0}, {0}};""",
    tasks=GO,
    queues="{1, 0, 2, 5}, {1, 1, 3, 6},",
    more=START + ".fifos = fifos,",
)


def test_a_fifo_of_four() -> None:
    made = one_pe(FIFO)
    made.sink(0, 0, 6)
    made.inject(0, 0, 5, np.arange(20, dtype=np.float32).view(np.uint32))
    made.run([Collected(0, 0, 6, 20)])
    assert made.collect(0, 0, 6).view(np.float32).tolist() == [-(k + 10) for k in range(20)]
    made.finish()


def test_a_full_fifo_holds_the_stream_back() -> None:
    """Without its reader a FIFO of four takes four elements; the queue keeps some more, the host the rest."""
    text = FIFO["p"].split("csl_run(CSL_fnegs")[0] + "}" + FIFO["p"].split("csl_of_fifo(0)); }")[1]
    made = one_pe({"p": text})
    made.inject(0, 0, 5, np.arange(20, dtype=np.float32).view(np.uint32))
    made.run()
    assert floats(made, 0, 4) == [10, 11, 12, 13]
    with pytest.raises(CslFailure) as caught:
        made.finish()
    assert "waits for room in FIFO 0; 16 elements to come" in caught.value.fault.details[0]


PACKED = unit(
    HEAD
    + """csl_dsd in = csl_fabin(2, 5), out = csl_fabout(3, 6, 5); in.pack = 2; out.pack = PACK;
         csl_run(CSL_add16, SYNC, MEM16(0, 5), csl_of_dsd(in), csl_of_u16(1));
         csl_run(CSL_mov16, SYNC, csl_of_dsd(out), MEM16(0, 5)); }""",
    tasks=GO,
    queues="{1, 0, 2, 5}, {1, 1, 3, 6},",
    more=START,
)


@pytest.mark.parametrize(("pack", "expected"), [(1, [2, 3, 4, 5, 6]), (2, [2 | 3 << 16, 4 | 5 << 16, 6])])
def test_packed_wavelets(pack: int, expected: list[int]) -> None:
    made = one_pe({"p": PACKED["p"].replace("PACK", str(pack))})
    made.sink(0, 0, 6)
    made.inject(0, 0, 5, [1 | 2 << 16, 3 | 4 << 16, 5])
    made.finish()
    assert made.collect(0, 0, 6).tolist() == expected
    assert made.cycles == {1: 37, 2: 35}[pack]


STREAM_WITH_END = unit(
    HEAD
    + """csl_run(CSL_mov32, ASYNC(.activate = CSL_ID(9)%s), MEM(0, 10),
               IN(2, 10)); }
       TASK(done) { (void)w; csl_store(u16, 60, 1); }""",
    tasks=GO + '{CSL_LOCAL_TASK, 9, "done", done},',
    queues="{1, 0, 2, 5},",
    more=START,
)


def test_a_control_wavelet_ends_a_stream() -> None:
    text = STREAM_WITH_END["p"]
    made = one_pe({"p": text.replace("%s", ", .on_control = CSL_CONTROL_TERMINATE")}, bytes(256))
    made.inject(0, 0, 5, [4, 5, 0], control=[0, 0, 1])
    made.finish()
    assert words(made, 0, 3) == [4, 5, 0]
    assert shorts(made, 60, 1) == [1]
    made = one_pe({"p": text.replace("%s", "")}, bytes(256))
    made.inject(0, 0, 5, [4, 5, 0], control=[0, 0, 1])
    assert failure(made).kind == "control-wavelet"


# ---- Teardown, registers, queue flush

TEARDOWN = unit(
    """static void torn(void) { csl_store(u16, 0, csl_load(u16, 0) + 1); }
       CALL(again) {
         uint16_t old = csl_load(u16, 0xfe46);
         csl_store(u16, 0xfe46, (old & ~0x3ff) | 0x20 | 0x8); /* from west, to north */
         if (csl_teardown_pending(3)) csl_teardown_exit(3);
         csl_store(u16, 2, (uint16_t)a[0]); csl_command_done(); }
       static const struct csl_handler handlers[] = {{CSL_OF_TEARDOWN, 3, torn}, {0}};""",
    functions='{"again", again},',
    more=".handlers = handlers,",
)


def test_teardown_and_registers() -> None:
    """TEARDOWN stops the color; new routes by its register, and exit, let the rest go another way."""
    made = one_pe(TEARDOWN, bytes(256))
    made.route(0, 0, route(3, "west", "east"))
    for port in ("east", "north"):
        made.sink(0, 0, 3, port)
    made.inject(0, 0, 3, [1, payload(3), 2, 3], control=[0, 1, 0, 0], port="west")
    made.run()
    assert made.collect(0, 0, 3, port="east").tolist() == [1, payload(3)]
    assert shorts(made, 0, 1) == [1]
    made.call(0, 0, "again", [77])
    made.run([CommandsDone(0, 0)])
    made.finish()
    assert shorts(made, 2, 1) == [77]
    assert made.collect(0, 0, 3, port="north").tolist() == [2, 3]


def test_registers_of_routes_and_switches() -> None:
    """What a program reads is what was configured; what it writes holds."""
    code = """CALL(get) { csl_store(u16, 0, csl_load(u16, 0xfe40 + 2 * a[0])); csl_command_done();
                csl_store(u16, 2, csl_load(u16, 0xfe80 + 2 * a[0])); }
              CALL(set) { csl_store(u16, 0xfe40 + 2 * a[0], a[1]); csl_store(u16, 0xfe80 + 2 * a[0], a[2]);
                csl_command_done(); }"""
    made = one_pe(unit(code, functions='{"get", get}, {"set", set},'), bytes(256))
    made.route(0, 0, route(3, "west", "east ramp", ("ramp", "east ramp"), ring_mode=True, pop_mode="always"))
    made.call(0, 0, "get", [3])
    made.run()
    west, east, ramp, invalid = 1, 2, 16, 5
    configured = west << 5 | east | ramp | 1 << 12
    assert shorts(made, 0, 2) == [configured, 4 | 8 | invalid << 4 | invalid << 8 | 1 << 12]
    changed = 8 << 5 | 4 | 1 << 14  # north to south, in teardown
    made.call(0, 0, "set", [3, changed, 1 | invalid << 4 | invalid << 8 | 1 << 13])
    made.call(0, 0, "get", [3])
    made.run()
    assert shorts(made, 0, 2) == [changed, 1 | invalid << 4 | invalid << 8 | 1 << 13]


FLUSH = unit(
    HEAD
    + """PE_HERE("go"); csl_run(CSL_mov32, SYNC, OUT(2, 3, 6), csl_of_u32(1));
         csl_queue_flush(true, 2, &pe_here); }
       static void empty(void) { PE_HERE("empty"); csl_set_output_queue_color(2, 4, &pe_here);
         csl_queue_flush_exit(true, 2);
         csl_activate(9, &pe_here); }
       TASK(second) { (void)w;
         csl_run(CSL_mov32, SYNC, OUT(2, CSL_QUEUE_COLOR, 2), csl_of_u32(2)); }
       static const struct csl_handler handlers[] = {{CSL_OF_OUTPUT_QUEUE, 2, empty}, {0}};""",
    tasks=GO + '{CSL_LOCAL_TASK, 9, "second", second},',
    queues="{1, 1, 2, 3},",
    more=START + ".handlers = handlers,",
)


def test_a_queue_is_flushed_and_given_another_color() -> None:
    made = one_pe(FLUSH, machine="cs3")
    for color in (3, 4):
        made.sink(0, 0, color)
    made.finish()
    assert made.collect(0, 0, 3).tolist() == [1] * 6
    assert made.collect(0, 0, 4).tolist() == [2] * 2
    assert failure(one_pe(FLUSH, machine="cs2")).message == "wse2 has no @queue_flush"


# ---- The host

SERVICE = unit(
    """TASK(later) { (void)w;
         csl_print("sum %u at %d,%d\\n", csl_load(u32, 0), csl_x(), csl_y());
         csl_command_done(); }
       CALL(add) { PE_HERE("add"); csl_store(u32, 0, csl_load(u32, 0) + a[0] * a[1]);
         csl_activate(9, &pe_here); }
       CALL(never) { (void)a; }""",
    tasks='{CSL_LOCAL_TASK, 9, "later", later},',
    functions='{"add", add}, {"never", never},',
)


def test_commands_wait_for_each_other() -> None:
    made = fabric(SERVICE, 3, 2)
    pes = [(x, y) for y in range(2) for x in range(3)]
    for x, y in pes:
        made.place(x, y, "p", bytes(256), seen=(x + 10, y))
    assert made.functions(0, 0, "p") == ("add", "never")
    for x, y in pes:
        made.call(x, y, "add", [x, 3])
        made.call(x, y, "add", [y, 5])
    made.run([CommandsDone(x, y) for x, y in pes])
    assert [words(made, 0, 1, x, y)[0] for x, y in pes] == [3 * x + 5 * y for x, y in pes]
    before = made.cycles
    made.write(2, 1, 0, np.array([100], np.uint32).tobytes())
    made.call(2, 1, "add", [1, 1])
    made.run([CommandsDone(2, 1)])
    assert made.cycles > before
    assert [line.text for line in made.log() if line.x == 12 and line.y == 1] == [
        "sum 6 at 12,1",
        "sum 11 at 12,1",
        "sum 101 at 12,1",
    ]
    with pytest.raises(ValueError, match="no function `sub`"):
        made.call(0, 0, "sub")


def test_a_command_that_does_not_end() -> None:
    made = one_pe(SERVICE, bytes(256))
    made.call(0, 0, "never")
    fault = failure(made, CommandsDone(0, 0))
    assert fault.kind == "deadlock"
    assert fault.details == ("PE(0, 0): the command never has not called unblock_cmd_stream",)


def test_a_command_waits_for_the_one_before() -> None:
    made = one_pe(SERVICE, bytes(256))
    made.call(0, 0, "never")
    made.call(0, 0, "add", [1, 1])
    made.run()
    assert words(made, 0, 1) == [0]


def test_the_host_waits_in_vain() -> None:
    made = one_pe(SERVICE, bytes(256))
    made.sink(0, 0, 4)
    fault = failure(made, Collected(0, 0, 4, 2))
    assert fault.details == ("the host waits for 2 words of color 4 from PE(0, 0): 0 have come",)
    made = one_pe(SERVICE, bytes(256))
    made.inject(0, 0, 4, [1] * 10)
    fault = failure(made, Injected(0, 0, 4))
    assert fault.details[0] == "the host has 6 words left for color 4 of PE(0, 0)"
