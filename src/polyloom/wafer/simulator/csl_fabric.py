"""A simulated wafer that runs CSL programs: units on PEs, routes of colors, commands of a host.

Sides are those of ``fabric.SIDES``, and ``ramp`` and ``host``; x grows to the east, y to the south.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from polyloom.wafer.machine.model import Machine
from polyloom.wafer.simulator.csl_build import build_units
from polyloom.wafer.simulator.csl_library import GoalC, csl_machine, load_csl_library
from polyloom.wafer.simulator.fabric import GOES_ON, SLICE_SECONDS
from polyloom.wafer.simulator.held import LINKS, HeldFabric, check_rectangle
from polyloom.wafer.simulator.result import SimulationError

Direction = Literal["north", "south", "east", "west", "ramp"]
Port = Literal["north", "south", "east", "west", "host"]
PopMode = Literal["none", "always", "on-advance"]
PORTS = {"north": 0, "south": 1, "east": 2, "west": 3, "host": 5}
POP_MODES: dict[PopMode, int] = {"none": 0, "always": 1, "on-advance": 3}
DSRS = 16
"""Registers of each DSR file; estimate: the highest number in public messages is 12."""


class CslFailure(Exception):
    """A simulation that cannot go on: what happened, where and when."""

    def __init__(self, fault: SimulationError) -> None:
        super().__init__(str(fault))
        self.fault = fault


@dataclass(frozen=True)
class Filter:
    """What of a color reaches the PE.

    ``range``: wavelets whose index (high half) lies in ``low`` to ``high``. ``counter``: a counter goes from
    ``start`` up to ``limit`` and then from 0; wavelets pass while it is at most ``most``.
    """

    kind: Literal["range", "counter"]
    low: int = 0
    high: int = 0
    start: int = 0
    most: int = 0
    limit: int = 0
    counts_data: bool = True
    counts_control: bool = False


@dataclass(frozen=True)
class ColorRoute:
    """The configuration of a color in one router.

    ``positions``: for each position of the switch, at most four, the sides that wavelets come from and go to;
    the first are the routes themselves.
    """

    color: int
    positions: tuple[tuple[frozenset[Direction], frozenset[Direction]], ...]
    position: int = 0
    ring_mode: bool = False
    pop_mode: PopMode = "none"
    swap_x: bool = False
    swap_y: bool = False
    teardown: bool = False
    filter: Filter | None = None


@dataclass(frozen=True)
class CommandsDone:
    """All commands of a PE are complete: their functions, or what those started, unblocked the stream."""

    x: int
    y: int


@dataclass(frozen=True)
class Injected:
    """All words that were given for a color at a PE have left the host."""

    x: int
    y: int
    color: int
    port: Port = "host"


@dataclass(frozen=True)
class Collected:
    """So many words of a color have come from a PE that were not taken before."""

    x: int
    y: int
    color: int
    words: int
    port: Port = "host"


Goal = CommandsDone | Injected | Collected


@dataclass(frozen=True)
class Line:
    """What a program printed."""

    cycle: int
    x: int
    y: int
    text: str


Words = npt.NDArray[np.uint32]


class CslFabric(HeldFabric):
    """One simulation. Place programs and routes, then let commands and ``run`` take turns."""

    def __init__(
        self,
        units: Mapping[str, str],
        machine: Machine,
        width: int,
        height: int,
        *,
        max_cycles: int | None = None,
        loose: bool = False,
        backwards: bool = False,
        trace: bool = False,
        trace_only: Sequence[tuple[int, int]] | None = None,
        lines: bool = False,
    ) -> None:
        """Build ``units``, the C of each program by its name, for ``width`` x ``height`` PEs.

        ``max_cycles`` ends a simulation that goes on for longer, with an error. ``loose`` lets operations go
        beyond the variable that a DSD was made for, as the machine does. ``backwards`` visits the PEs
        of a cycle in the opposite order, which changes nothing (tests use it). ``trace`` records what
        happens when, for ``trace()``, on all PEs or on those of ``trace_only`` (x, y); with ``lines`` also
        the cycles of each line, on all PEs.
        Errors: ``ValueError`` for a rectangle that is empty or larger than the machine; those of
        ``build_units``.
        """
        check_rectangle(machine, width, height)
        library = load_csl_library(build_units(units, lines=lines))
        self._programs = {name: i for i, name in enumerate(sorted(units))}
        architecture = 3 if machine.name == "cs3" else 2
        limit = -1 if max_cycles is None else max_cycles
        description = csl_machine(library, machine)
        handle = library.csl_create(description, architecture, DSRS, width, height, int(trace), limit)
        super().__init__(
            *(library, handle, library.csl_destroy, (width, height)),
            trace_only=trace_only,
            backwards=backwards,
        )
        self._bytes: dict[tuple[int, int], int] = {}
        self._ports: dict[tuple[str, int, int, int, str], int] = {}
        if loose:
            library.csl_loose(handle)

    # ---- Layout

    def place(
        self,
        x: int,
        y: int,
        unit: str,
        image: bytes = b"",
        known: bytes = b"",
        seen: tuple[int, int] | None = None,
    ) -> None:
        """Put a program on a PE: once, before the first ``run``.

        ``image``: its memory from address 0 on; ``known``: a byte for each 16-bit word of it, 0 where nothing
        is initialised (empty: all is). ``seen``: the coordinates that the program reads (default: x, y).
        """
        self._check_pe(x, y)
        program = self._programs[unit]
        self._library.csl_place(self._handle, x, y, program, *(seen or (x, y)))
        self._bytes[x, y] = self._library.csl_program_bytes(program)
        if not image:
            return
        self._check_range(x, y, 0, len(image))
        if known and len(known) != (len(image) + 1) // 2:
            raise ValueError(f"{len(known)} flags for {len(image)} bytes")
        self._library.csl_write(self._handle, x, y, 0, len(image), image, known or None)

    def route(self, x: int, y: int, route: ColorRoute) -> None:
        """Configure a color in a router. Errors: ``ValueError`` for more than four positions."""
        self._check_pe(x, y)
        if not 1 <= len(route.positions) <= 4 or not 0 <= route.color < 24:
            raise ValueError(f"color {route.color} with {len(route.positions)} positions")
        rx = [_sides(rx) for rx, _ in route.positions] + [0] * (4 - len(route.positions))
        tx = [_sides(tx) for _, tx in route.positions] + [0] * (4 - len(route.positions))
        flags = (route.ring_mode, POP_MODES[route.pop_mode], route.swap_x, route.swap_y, route.teardown)
        values = np.array([route.position, *flags, *rx, *tx, *_filter(route.filter)], np.int32)
        self._library.csl_color(self._handle, x, y, route.color, values.ctypes.data)

    def functions(self, x: int, y: int, unit: str) -> tuple[str, ...]:
        """Return the names that ``call`` takes for a PE with this unit."""
        self._check_pe(x, y)
        program = self._programs[unit]
        names: list[str] = []
        while (name := self._library.csl_function_name(program, len(names))) is not None:
            names.append(name.decode())
        return tuple(names)

    # ---- Memory

    def read(self, x: int, y: int, address: int, nbytes: int) -> bytes:
        """Return bytes of a PE's memory, whether they are initialised or not."""
        return self.read_known(x, y, address, nbytes)[0]

    def read_known(self, x: int, y: int, address: int, nbytes: int) -> tuple[bytes, bytes]:
        """Return bytes of a PE's memory, and for each whether it is initialised."""
        self._check_range(x, y, address, nbytes)
        data, known = ctypes.create_string_buffer(nbytes), ctypes.create_string_buffer(nbytes)
        self._library.csl_read(self._handle, x, y, address, nbytes, data, known)
        return data.raw, known.raw

    def write(self, x: int, y: int, address: int, data: bytes) -> None:
        """Write into a PE's memory; what was written counts as initialised."""
        self._check_range(x, y, address, len(data))
        self._library.csl_write(self._handle, x, y, address, len(data), data, None)

    # ---- The host's ends

    def call(self, x: int, y: int, function: str, words: Sequence[int] = ()) -> None:
        """Append a command to the PE's stream: a function, with a word for each argument.

        It starts when the command before it has unblocked the stream, and ends when it does so itself.
        """
        self._check_program(x, y)
        arguments = np.array(words, np.uint32)
        name = function.encode()
        if not self._library.csl_call(self._handle, x, y, name, arguments.size, arguments.ctypes.data):
            raise ValueError(f"PE({x}, {y}) has no function `{function}`")

    def inject(
        self,
        x: int,
        y: int,
        color: int,
        words: npt.ArrayLike,
        *,
        control: npt.ArrayLike | None = None,
        port: Port = "host",
    ) -> None:
        """Append 32-bit words to what enters a PE on a color, one a cycle where there is room.

        ``port``: the host beside the ramp (the words go to the PE), or a side of the rectangle, where they
        enter its router. ``control``: which of them are control wavelets.
        """
        self._check_pe(x, y)
        given = np.ascontiguousarray(words, np.uint32).ravel()
        flags = None if control is None else np.ascontiguousarray(control, np.uint8).ravel()
        if flags is not None and flags.size != given.size:
            raise ValueError(f"{given.size} words and {flags.size} flags")
        pointer = None if flags is None else flags.ctypes.data
        place = (x, y, PORTS[port], color)
        index = self._library.csl_inject(self._handle, *place, given.size, given.ctypes.data, pointer)
        self._ports["in", x, y, color, port] = index

    def sink(self, x: int, y: int, color: int, port: Port = "host") -> None:
        """Take what a PE sends on a color: to the host beside the ramp, or out of the rectangle."""
        self._check_pe(x, y)
        index = self._library.csl_sink(self._handle, x, y, PORTS[port], color)
        self._ports["out", x, y, color, port] = index

    def collected(self, x: int, y: int, color: int, port: Port = "host") -> int:
        """Return how many words have come and were not taken."""
        return int(self._library.csl_sink_count(self._handle, self._ports["out", x, y, color, port]))

    def collect(self, x: int, y: int, color: int, count: int | None = None, port: Port = "host") -> Words:
        """Take the first ``count`` words (default: all) that have come, uint32."""
        return self.collect_timed(x, y, color, count, port)[0]

    def collect_timed(
        self, x: int, y: int, color: int, count: int | None = None, port: Port = "host"
    ) -> tuple[Words, npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Take words as ``collect`` does; return also which are control wavelets, and when each came."""
        there = self.collected(x, y, color, port)
        size = there if count is None else count
        if size > there:
            raise ValueError(f"{size} words of color {color} from PE({x}, {y}): {there} have come")
        words, control, cycles = np.zeros(size, np.uint32), np.zeros(size, np.uint8), np.zeros(size, np.int64)
        arrays = (words.ctypes.data, control.ctypes.data, cycles.ctypes.data)
        self._library.csl_take(self._handle, self._ports["out", x, y, color, port], size, *arrays)
        return words, control.astype(np.bool_), cycles

    # ---- Running

    def run(self, goals: Sequence[Goal] = ()) -> None:
        """Simulate until all goals are met, or, without any, until nothing happens any more.

        Errors: ``CslFailure``; ``deadlock`` among others, where nothing can happen and a goal is not met.
        """
        listed = (GoalC * len(goals))(*(self._goal(goal) for goal in goals))
        self._library.csl_goals(self._handle, len(goals), listed)
        while self._library.csl_run_for(self._handle, SLICE_SECONDS) == GOES_ON:
            pass
        self._raise_failure()

    def let_pass(self, cycles: int) -> None:
        """Simulate the next so many cycles, or until nothing happens. Errors: ``CslFailure``."""
        until = max(int(self._library.fabric_cycle(self._handle)), 0) + cycles
        while self._library.csl_let_pass(self._handle, until, SLICE_SECONDS) == GOES_ON:
            pass
        self._raise_failure()

    def finish(self) -> None:
        """Come to rest; nothing may be left. Errors: ``CslFailure`` (``data-left``, ``deadlock``)."""
        self.run()
        self._library.csl_finish(self._handle)
        self._raise_failure()

    def _goal(self, goal: Goal) -> GoalC:
        if isinstance(goal, CommandsDone):
            self._check_pe(goal.x, goal.y)
            return GoalC(0, goal.y * self.width + goal.x, 0)
        if isinstance(goal, Injected):
            return GoalC(1, self._ports["in", goal.x, goal.y, goal.color, goal.port], 0)
        return GoalC(2, self._ports["out", goal.x, goal.y, goal.color, goal.port], goal.words)

    @property
    def cycles(self) -> int:
        """Cycles from the start to the last thing that happened."""
        return int(self.counts().cycles)

    def log(self) -> tuple[Line, ...]:
        """Return the lines that programs have printed, in the order in which they came."""
        return tuple(self._line(i) for i in range(self._library.csl_line_count(self._handle)))

    def _line(self, i: int) -> Line:
        cycle, x, y = ctypes.c_int64(), ctypes.c_int32(), ctypes.c_int32()
        text = self._library.csl_line(self._handle, i, cycle, x, y)
        return Line(cycle.value, x.value, y.value, text.decode(errors="replace"))

    def _raise_failure(self) -> None:
        fault = self.error()
        if fault is not None:
            raise CslFailure(fault)

    # ---- Checks

    def _check_pe(self, x: int, y: int) -> None:
        if not (0 <= x < self.width and 0 <= y < self.height):
            raise ValueError(f"PE({x}, {y}) of {self.width} x {self.height}")

    def _check_program(self, x: int, y: int) -> None:
        if (x, y) not in self._bytes:
            raise ValueError(f"PE({x}, {y}) has no program")

    def _check_range(self, x: int, y: int, address: int, nbytes: int) -> None:
        self._check_program(x, y)
        if address < 0 or nbytes < 0 or address + nbytes > self._bytes[x, y]:
            raise ValueError(
                f"bytes {address} to {address + nbytes} lie outside of the memory of PE({x}, {y})"
            )


def _sides(directions: frozenset[Direction]) -> int:
    return sum(1 << LINKS.index(direction) for direction in directions)


def _filter(given: Filter | None) -> tuple[int, ...]:
    if given is None:
        return (0,) * 8
    kind = 1 if given.kind == "range" else 2
    counted = (given.counts_data, given.counts_control, given.start, given.most, given.limit)
    return (kind, *map(int, counted), given.low, given.high)
