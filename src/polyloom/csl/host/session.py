"""A program that runs: what the host asks for, in its order, and what comes back.

Copies and launches are commands: a PE serves the next one when the function launched before has unblocked
its command stream. Streams go beside them. What does not block is begun at once if all before it has begun,
and ends when something later needs it, or the program stops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from polyloom.csl.compiled import Compiled, Exported, Symbol
from polyloom.csl.host.machine import Machine
from polyloom.csl.host.tensors import Region, Words, from_bytes, to_bytes
from polyloom.diagnostics import PolyloomError, error, near
from polyloom.wafer.simulator.csl_fabric import Collected, CommandsDone, Goal, Injected

COPY_CYCLES = 10_000
"""How long a copy takes to reach the PEs: what a program still does after it let the host go on is seen by
the copy. Estimate: some microseconds."""


@dataclass(eq=False)
class Request:
    """Something that the host asked for: when it can begin and end, and what it does then."""

    start_when: Sequence[Goal]
    start: Callable[[], None]
    end_when: Sequence[Goal]
    end: Callable[[], None]
    started: bool = False
    ended: bool = False


def _nothing() -> None:
    """Do nothing."""


@dataclass(eq=False)
class Session:
    """A program on a machine, and the requests that have not ended."""

    program: Compiled
    machine: Machine
    pending: list[Request] = field(default_factory=list)

    def launch(self, name: str, words: Sequence[int]) -> Request:
        """Launch an exported function on all PEs. Errors: `csl-host-name`."""
        self.function(name)
        pes = [(x, y) for y in range(self.program.height) for x in range(self.program.width)]
        callable_there = [pe for pe in pes if name in self.program.functions(*pe)]

        def start() -> None:
            for x, y in callable_there:
                self.machine.call(x, y, name, words)

        return Request((), start, (), _nothing)

    def copy_in(self, name: str, region: Region, words: Words, bits: int) -> Request:
        """Copy [row][column][element] to what an exported pointer points to.

        Errors: `csl-host-name`, `csl-host-mutable`.
        """
        self._region(region)
        exported = self.pointer(name)
        if not exported.mutable:
            raise PolyloomError(
                error(
                    "csl-host-mutable",
                    f"`{name}` is exported as constant, and cannot be copied to",
                    helps=["the third argument of its `@export_name` says whether the host may write"],
                )
            )

        def start() -> None:
            for x, y in region.pes():
                part = to_bytes(words[y - region.y, x - region.x], bits)
                self.machine.write(x, y, self._pointee(x, y, name), part)

        return Request(self._commands_done(region), start, (), _nothing)

    def copy_out(self, name: str, region: Region, deliver: Callable[[Words], None], bits: int) -> Request:
        """Copy from what an exported pointer points to, as [row][column][element].

        Errors: `csl-host-name`.
        """
        self._region(region)
        self.pointer(name)

        def start() -> None:
            self.machine.let_pass(COPY_CYCLES)
            words = np.empty((region.height, region.width, region.elements), np.uint32)
            for x, y in region.pes():
                data = self.machine.read(x, y, self._pointee(x, y, name), region.elements * bits // 8)
                words[y - region.y, x - region.x] = from_bytes(data, bits)
            deliver(words)

        return Request(self._commands_done(region), start, (), _nothing)

    def stream_in(self, color: int, region: Region, words: Words) -> Request:
        """Send each PE its elements on a color."""
        self._region(region)

        def start() -> None:
            for x, y in region.pes():
                self.machine.inject(x, y, color, [int(w) for w in words[y - region.y, x - region.x]])

        return Request((), start, [Injected(x, y, color) for x, y in region.pes()], _nothing)

    def stream_out(self, color: int, region: Region, deliver: Callable[[Words], None]) -> Request:
        """Receive the same number of elements from each PE on a color."""
        self._region(region)

        def end() -> None:
            words = np.empty((region.height, region.width, region.elements), np.uint32)
            for x, y in region.pes():
                words[y - region.y, x - region.x] = self.machine.collect(x, y, color, region.elements)
            deliver(words)

        goals = [Collected(x, y, color, region.elements) for x, y in region.pes()]
        return Request((), _nothing, goals, end)

    def submit(self, request: Request, *, blocking: bool) -> Request:
        """Enter a request; return when it has ended, if it blocks."""
        self.pending.append(request)
        if blocking:
            self.wait(request)
        else:
            self._start_what_can()
        return request

    def wait(self, request: Request) -> None:
        """Return when a request has ended. Errors: a diagnostic where it never does."""
        if request.ended:
            return
        for earlier in self.pending:
            self._start(earlier)
            if earlier is request:
                break
        self._end(request)

    def finish(self) -> None:
        """End everything, then let the program come to rest."""
        for request in list(self.pending):
            self.wait(request)
        self.machine.finish()

    def read(self, x: int, y: int, symbol: Symbol) -> bytes:
        """Return a global's memory."""
        return self.machine.read(x, y, symbol.address, symbol.size)

    def pointer(self, name: str) -> Exported:
        """Return the exported pointer of that name. Errors: `csl-host-name`."""
        return self._exported(name, functions=False)

    def function(self, name: str) -> Exported:
        """Return the exported function of that name. Errors: `csl-host-name`."""
        return self._exported(name, functions=True)

    def _exported(self, name: str, *, functions: bool) -> Exported:
        known = {e.name: e for e in self.program.exports}
        found = known.get(name)
        kind = "function" if functions else "pointer"
        if found is not None and found.is_function == functions:
            return found
        if found is not None:
            raise PolyloomError(error("csl-host-name", f"the layout exports `{name}`, but not as a {kind}"))
        notes = ["it exports " + (", ".join(f"`{n}`" for n in known) or "nothing")]
        meant = near(name, known)
        helps = [f"`{meant}` is exported"] if meant else ["`@export_name` in the layout exports a name"]
        raise PolyloomError(
            error("csl-host-name", f"the layout exports no {kind} `{name}`", notes=notes, helps=helps)
        )

    def _region(self, region: Region) -> None:
        region.check_inside(self.program.width, self.program.height)

    def _pointee(self, x: int, y: int, name: str) -> int:
        """Return the byte address that an exported pointer holds now."""
        symbol = self.program.symbol(x, y, name)
        if symbol is None:
            raise PolyloomError(
                error(
                    "csl-host-name",
                    f"the program of PE ({x}, {y}) exports no `{name}`",
                    helps=["`@export_symbol` in the program of each PE that is copied to or from exports it"],
                )
            )
        if not symbol.is_pointer:
            return symbol.address
        return int.from_bytes(self.machine.read(x, y, symbol.address, 2), "little")

    def _commands_done(self, region: Region) -> list[Goal]:
        return [CommandsDone(x, y) for x, y in region.pes()]

    def _start_what_can(self) -> None:
        """Start the requests that wait for nothing, up to the first that does."""
        for request in self.pending:
            if not request.started and request.start_when:
                return
            self._start(request)

    def _start(self, request: Request) -> None:
        if not request.started:
            if request.start_when:
                self.machine.run(request.start_when)
            request.started = True
            request.start()
            if not request.end_when:
                self._end(request)

    def _end(self, request: Request) -> None:
        if not request.ended:
            if request.end_when:
                self.machine.run(request.end_when)
            request.ended = True
            request.end()
            self.pending = [other for other in self.pending if other is not request]
