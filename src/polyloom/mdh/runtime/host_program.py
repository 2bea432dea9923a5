"""Host programs on a device: loops and branches in Python, md_homs, nests and copies on the device.

``prepare`` emits and builds everything once for given parameters; ``Prepared.run`` then only sets the
arguments that change and enqueues. Kernels of one run are in order, so nothing waits before the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.host import Copy, HostNode, HostProgram, MdHom, Nest
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.types import ElementType
from polyloom.ir.verification.passes import after_pass, at_the_end
from polyloom.mdh.device.devices import DeviceModel, OpenDevice
from polyloom.mdh.lowering.host_expressions import Environment, IntFunction, int_function
from polyloom.mdh.lowering.invariant_fills import hoisted_fills
from polyloom.mdh.lowering.launch import (
    Argument,
    BufferArgument,
    IntegerArgument,
    Kernel,
    Launch,
    LocalArgument,
    TemporaryArgument,
    uncontracted,
)
from polyloom.mdh.lowering.loop_fusion import with_fused_loops
from polyloom.mdh.print.kernel_source import kernel_language
from polyloom.mdh.runtime.driver import BuiltKernel, Driver, Memory
from polyloom.mdh.runtime.driver import Event as DeviceEvent
from polyloom.mdh.runtime.opencl import driver_of
from polyloom.polyhedra.loops.tree import Branch, IntExpression, Loop, Name, Number

Emitter = Callable[[MdHom | Nest, HostProgram, DeviceModel], Launch]
"""Makes the kernels of a node of a host program for a device."""

FLUSH_EVERY = 256
"""Launches between two calls that make the driver start: it keeps what is enqueued in memory."""


def prepare(
    program: HostProgram,
    parameters: Mapping[str, int],
    device: OpenDevice | Driver,
    emit: Emitter,
    *,
    fuse: bool = True,
) -> Prepared:
    """Emit and build the kernels of a program for given values of all its parameters.

    ``fuse``: host loops over tiny launches become one kernel each.

    Errors: ``device-build``, and what ``emit`` raises.
    """
    special = after_pass("specialisation", specialise(program, parameters))
    special = with_fused_loops(special, device.model) if fuse else special
    at_the_end("joining launches", special)
    driver = driver_of(device)
    run = _Run(driver=driver)
    fills = hoisted_fills(special) if not program.parameters else frozenset()
    steps = _Steps(program=special, emit=emit, run=run, invariant=fills)
    step = steps.all_of(special.body)
    made = driver.build([each.kernel for each in steps.launched])
    for launched, kernel in zip(steps.launched, made, strict=True):
        launched.built = kernel
    return Prepared(program=special, driver=driver, step=step, state=run, parameters=dict(parameters))


@dataclass
class Event:
    """One launch that was timed: which node, and its seconds on the device."""

    node: str
    event: DeviceEvent
    runs: int = 1

    @property
    def seconds(self) -> float:
        """The time between start and end on the device."""
        return self.event.seconds


@dataclass(kw_only=True)
class _Run:
    """What changes during a run: the buffers, and what was launched."""

    driver: Driver
    buffers: dict[str, Memory] = field(default_factory=dict)
    launches: int = 0
    events: list[Event] | None = None
    generation: int = 0
    """Counts how often ``buffers`` was filled, so that kernels know when to look again."""


Step = Callable[[dict[str, int]], None]
"""Carries out a node; the dictionary holds parameters and host iterators."""


@dataclass(kw_only=True)
class Prepared:
    """A program with its kernels, ready to run on buffers of the device."""

    program: HostProgram
    driver: Driver
    step: Step
    state: _Run
    parameters: Mapping[str, int]

    def run(self, buffers: Mapping[str, Memory], *, timed: bool = False) -> list[Event]:
        """Run on device buffers (one for every buffer of the program) and wait for the end.

        ``timed``: return an event for every launch. Errors: ``device-resources``, ``device-failure``.
        """
        state = self.state
        if any(state.buffers.get(name) is not buffer for name, buffer in buffers.items()):
            state.buffers = dict(buffers)
            state.generation += 1
        state.launches = 0
        state.events = [] if timed else None
        with self.driver.errors():
            self.step(dict(self.parameters))
            self.driver.wait()
        return state.events or []

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the extents of a buffer."""
        return shape_of(self.program.buffer(name), {})

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The bytes of every buffer."""
        return {b.name: prod(self.shape(b.name)) * b.type.size for b in self.program.buffers}


@dataclass(frozen=True, kw_only=True)
class _Steps:
    """Makes a Python function of each host node."""

    program: HostProgram
    emit: Emitter
    run: _Run
    launched: list[_PreparedKernel] = field(default_factory=list)
    """All kernels of the steps that were made. They are built when all are there."""
    invariant: frozenset[MdHom] = frozenset()
    """Fills that a run needs only where their buffer is another than in the run before."""

    def all_of(self, nodes: Sequence[HostNode]) -> Step:
        steps = [self._step(node) for node in nodes]
        if len(steps) == 1:
            return steps[0]

        def in_order(names: dict[str, int]) -> None:
            for step in steps:
                step(names)

        return in_order

    def _step(self, node: HostNode) -> Step:
        match node:
            case Loop():
                return self._loop(node)
            case Branch():
                return self._branch(node)
            case Copy():
                return self._copy(node)
            case MdHom() | Nest():
                made = self.emit(node, self.program, self.run.driver.model)
                launch = self._launch(
                    node.name,
                    uncontracted(made, kernel_language(self.run.driver.model))
                    if self.program.strict
                    else made,
                )
                if isinstance(node, MdHom) and node in self.invariant:
                    return self._once(node.outputs[0].buffer, launch)
                return launch

    def _loop(self, node: Loop[HostNode]) -> Step:
        start, condition, step = (int_function(e) for e in (node.start, node.condition, node.step))
        body, iterator = self.all_of(node.body), node.iterator

        def loop(names: dict[str, int]) -> None:
            inner = dict(names)
            inner[iterator] = start(names)
            while condition(inner):
                body(inner)
                inner[iterator] += step(inner)

        return loop

    def _branch(self, node: Branch[HostNode]) -> Step:
        condition = int_function(node.condition)
        body, otherwise = self.all_of(node.body), self.all_of(node.otherwise)

        def branch(names: dict[str, int]) -> None:
            (body if condition(names) else otherwise)(names)

        return branch

    def _once(self, buffer: str, launch: Step) -> Step:
        """Return a step that happens once for a buffer's memory."""
        run = self.run
        done: list[Memory] = []

        def start(names: dict[str, int]) -> None:
            memory = run.buffers[buffer]
            if not done or done[0] is not memory:
                launch(names)
                done[:] = [memory]

        return start

    def _copy(self, node: Copy) -> Step:
        run = self.run
        count = int(np.prod(shape_of(self.program.buffer(node.source), {}), dtype=np.int64))
        size = count * self.program.buffer(node.source).type.size

        def copy(names: dict[str, int]) -> None:
            if size:
                source, target = run.buffers[node.source], run.buffers[node.target]
                event = run.driver.copy(source, target, size, timed=run.events is not None)
                _count(run, f"copy of {node.source}", event)

        return copy

    def _launch(self, node: str, launch: Launch) -> Step:
        sizes = {t.name: (int_function(t.count), t.type.size) for t in launch.temporaries}
        temporaries = _Temporaries(self.run.driver, sizes)
        prepared = [_PreparedKernel(kernel, node, self.run, temporaries) for kernel in launch.kernels]
        self.launched.extend(prepared)

        def start(names: dict[str, int]) -> None:
            for kernel in prepared:
                kernel.enqueue(names)

        return start


def _count(run: _Run, node: str, event: DeviceEvent | None) -> None:
    run.launches += 1
    if run.events is not None and event is not None:
        run.events.append(Event(node, event))
    if run.launches % FLUSH_EVERY == 0:
        run.driver.wait()


@dataclass(frozen=True, eq=False)
class _Temporaries:
    """Memory that kernels of one launch hand to each other; ``sizes``: elements, and bytes of each."""

    driver: Driver
    sizes: Mapping[str, tuple[IntFunction, int]]
    memory: dict[str, Memory] = field(default_factory=dict)

    def buffer(self, name: str, names: Environment) -> Memory:
        """Return memory that is large enough; what an earlier launch had is used again."""
        count, bytes_ = self.sizes[name]
        size = max(1, count(names)) * bytes_
        if name not in self.memory or self.memory[name].size < size:
            self.memory[name] = self.driver.allocate(size)
        return self.memory[name]


class _PreparedKernel:
    """A kernel whose arguments are set when they change."""

    built: BuiltKernel
    """Set before the first launch."""

    def __init__(self, kernel: Kernel, node: str, run: _Run, temporaries: _Temporaries) -> None:
        self.kernel, self.node, self.run = kernel, node, run
        self.temporaries = temporaries
        self.global_size = tuple(int_function(e) for e in kernel.global_size)
        local = kernel.local_size
        self.local_size = None if local is None else tuple(int_function(e) for e in local)
        self.generation = -1
        sizes = [a.bytes for a in kernel.arguments if isinstance(a, LocalArgument)]
        self.varying = bool(temporaries.sizes) or any(not isinstance(size, Number) for size in sizes)
        self.integers = [
            (p, f, np.iinfo(k.value), k.dtype.type, t) for p, f, k, t in _integers(kernel.arguments)
        ]
        self.last: dict[int, int] = {}

    def enqueue(self, names: Environment) -> None:
        """Launch once, unless there is nothing to do."""
        size = tuple(function(names) for function in self.global_size)
        if any(n <= 0 for n in size):
            return
        if self.generation != self.run.generation or self.varying:
            self._set_memory(names)
            self.generation = self.run.generation
        for position, function, limits, kind, text in self.integers:
            value = function(names)
            if self.last.get(position) != value:
                if not limits.min <= value <= limits.max:
                    raise PolyloomError(_too_large(text, value))
                self.built.set_integer(position, kind(value))
                self.last[position] = value
        local = None if self.local_size is None else tuple(function(names) for function in self.local_size)
        run = self.run
        event = run.driver.launch(self.built, size, local, timed=run.events is not None)
        _count(run, self.node, event)

    def _set_memory(self, names: Environment) -> None:
        for position, argument in enumerate(self.kernel.arguments):
            match argument:
                case BufferArgument(buffer=name):
                    self.built.set_memory(position, self.run.buffers[name])
                case TemporaryArgument(temporary=name):
                    self.built.set_memory(position, self.temporaries.buffer(name, names))
                case LocalArgument(bytes=count):
                    self.built.set_local(position, max(1, int_function(count)(names)))
                case IntegerArgument():
                    pass


def _integers(arguments: Sequence[Argument]) -> Iterator[tuple[int, IntFunction, ElementType, str]]:
    for position, argument in enumerate(arguments):
        if isinstance(argument, IntegerArgument):
            yield position, int_function(argument.value), argument.type, _text(argument.value)


def _text(expression: IntExpression) -> str:
    return expression.name if isinstance(expression, Name) else "a size"


def _too_large(what: str, value: int) -> Diagnostic:
    message = f"{what} is {value}, too large for this kernel"
    return error("device-integer", message, helps=["smaller sizes are needed"])
