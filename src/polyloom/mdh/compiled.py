"""A C function or a LAIR layer as a Python function on NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.ir.host import HostProgram, Role
from polyloom.ir.verification.references import Reference, evaluated
from polyloom.mdh.device.devices import DeviceModel, OpenDevice
from polyloom.mdh.native.device import NativeDevice
from polyloom.mdh.native.execution import NativeExecutable, is_written, plain
from polyloom.mdh.native.repeated import Again, Done, Repeating
from polyloom.mdh.runtime.arguments import Bound, Signature, bind
from polyloom.mdh.runtime.arrays import DeviceArray
from polyloom.mdh.runtime.driver import Driver
from polyloom.mdh.runtime.execution import Executable, Execution
from polyloom.mdh.runtime.host_program import Emitter
from polyloom.mdh.split.execution import SplitExecutable
from polyloom.mdh.split.places import Place
from polyloom.mdh.split.plan import Plan
from polyloom.mdh.tree.nodes import Function
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter

NDArray = npt.NDArray[Any]
Array = NDArray | DeviceArray


class CompiledProgram(Repeating):
    """A program on a device: call it with arrays, positional in the order of the C arguments, or by name.

    Arrays that the program writes are changed in place, as C does, and returned: one array, or a tuple in the
    order of the arguments. Outputs of a layer that are not given are made. Integers of C that follow
    from the shapes of arrays may be left out where arguments are given by name.

    Kernels are made at the first call for each set of sizes, and kept.
    """

    def __init__(
        self,
        program: HostProgram,
        device: OpenDevice | Driver | NativeDevice | NativeExecutable | SplitExecutable,
        emit: Emitter,
        signature: Signature | None = None,
        remarks: Sequence[Diagnostic] = (),
        reference: Reference | None = None,
        constants: Mapping[str, Any] | None = None,
    ) -> None:
        """``device``: a device, or on the processor what runs there already.

        ``reference``: what its results are compared with; None: the evaluator's of ``program``.

        ``constants``: what arguments are where they are not given: a model's weights, sizes of C. Arrays of
        them are copied to the device once.
        """
        self.constants = dict(constants or {})
        self.signature = signature or Signature(program, _arguments(program))
        self.remarks = tuple(remarks)
        self.emitter = emit
        self.reference = reference or evaluated(program)
        arrays = [n for n, a in self.constants.items() if isinstance(a, np.ndarray)]
        self.executable = _executable(program, device, emit, arrays)
        self._last: tuple[dict[str, Any], Bound] | None = None

    @property
    def program(self) -> HostProgram:
        """The host program."""
        return self.signature.program

    @property
    def device(self) -> DeviceModel:
        """Where it runs."""
        return self.executable.device.model

    def _checked_call(self, *arrays: Any, **named: Any) -> tuple[Any, ...]:
        return tuple(self._checked_results(arrays, named).values())

    def results(self, *positional: Any, **named: Any) -> dict[str, Array]:
        """Run once and return what a call returns, by name. Errors: those of a call."""
        found = self._as_before(positional, named)
        if found is None:
            return self._checked_results(positional, named)
        return dict(zip(self.order, found, strict=True))

    def _checked_results(self, positional: Sequence[Any], named: dict[str, Any]) -> dict[str, Array]:
        """Run once, and keep what calls of the same kind need."""
        arrays, done = self.done(positional, named)
        again = None
        if done is not None:
            given, known = self.signature.named(positional, named), self.signature.names
            places = {name: (name if name in known else None, value) for name, value in given.items()}
            again = self.with_number(done.again(places, self.signature.arguments, self.order))
        self._remember(again)
        return self.given_back(arrays)

    def given_back(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return what a call returns of the arrays that were written; a C function returns a number."""
        found = {name: arrays[name] for name in self.order}
        returned = self.signature.returned
        if returned is not None and isinstance(array := found[returned], np.ndarray):
            found[returned] = array[()]
        return found

    def with_number(self, again: Again | None) -> Again | None:
        """Return calls that are short, with what a C function returns as a number."""
        returned = self.signature.returned
        if again is None or returned is None:
            return again
        place = self.order.index(returned)

        def call(*positional: Any, **named: Any) -> Any:
            found = again(*positional, **named)
            return (
                found if found is NotImplemented else (*found[:place], found[place][()], *found[place + 1 :])
            )

        return call

    def done(
        self, positional: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[dict[str, Array], Done | None]:
        """Run once; return every array that was written, by name, and what calls like this one need."""
        bound = self._bound(self._used(positional, named))
        found = self.execute(bound).arrays
        executable, again = self.executable, not self.signature.defaults and not bound.beside
        return found, Done(executable, bound) if again and isinstance(executable, NativeExecutable) else None

    def run(self, *positional: Any, timed: bool = False, **named: Any) -> Execution:
        """Run once and return every array that was written, by name, and where the time went.

        ``timed``: also measure every launch on the device.
        """
        return self.execute(self._bound(self._used(positional, named)), timed=timed)

    def _used(self, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the program uses of the arguments and constants, by name."""
        given = self.signature.named(positional, named)
        used = {name: value for name, value in given.items() if name in self.signature.names}
        return {**self._held, **used} if self.constants else used

    def execute(self, bound: Bound, *, timed: bool = False) -> Execution:
        """Run once on arguments that were checked."""
        return self.executable.run(bound, timed=timed)

    @cached_property
    def _held(self) -> dict[str, Any]:
        arrays = {n: self.to_device(a) for n, a in self.constants.items() if isinstance(a, np.ndarray)}
        return {**self.constants, **arrays}

    def _bound(self, used: dict[str, Any]) -> Bound:
        """Check arguments; arrays on the device, which keep their shapes, only when they are others."""
        if self._last is not None:
            before, bound = self._last
            if before.keys() == used.keys() and all(used[name] is before[name] for name in used):
                return bound
        bound = bind(self.signature, used)
        stays = not self.signature.defaults and all(isinstance(v, DeviceArray) for v in used.values())
        self._last = (used, bound) if stays else None
        return bound

    def to_device(self, array: NDArray) -> Array:
        """Copy an array to the device, where it stays; calls take it in place of the NumPy array."""
        return self.executable.resident(np.asarray(array))

    def tree(self, parameters: Mapping[str, int]) -> Function:
        """Return the loops of the whole program on the processor. Errors: ``explain-device`` elsewhere."""
        if not isinstance(self.executable, NativeExecutable):
            helps = ["`--device native`", "`polyloom compile --target opencl` writes kernels"]
            message = f"the loops of a program on `{self.device.name}` are its kernels'"
            raise PolyloomError(error("explain-device", message, helps=helps))
        return self.executable.tree(parameters)

    def with_reference(self, reference: Reference) -> CompiledProgram:
        """Return the same program, compared with another reference."""
        device, emitter = self.executable.device, self.emitter
        rest = self.signature, self.remarks, reference, self.constants
        return CompiledProgram(self.program, device, emitter, *rest)

    def over(self, places: Sequence[Place]) -> CompiledProgram:
        """Return the same program with its rows in several places at a time (docs/tuning.md)."""
        arrays = [n for n, a in self.constants.items() if isinstance(a, np.ndarray)]
        split = SplitExecutable(self.program, self.executable.device, places, arrays)
        return CompiledProgram(
            self.program, split, self.emitter, self.signature, self.remarks, self.reference, self.constants
        )

    @property
    def plan(self) -> Plan | None:
        """How the rows of the last run lay in several places; None where it runs in one."""
        return self.executable.plan if isinstance(self.executable, SplitExecutable) else None

    def refresh(self) -> None:
        """Make kernels anew at the next call: schedules may have been tuned since."""
        self._remember(None)
        self.executable.forget()
        if isinstance(self.emitter, TunedEmitter):
            self.emitter.forget()

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The names of what a call returns."""
        written = [b.name for b in self.program.buffers if is_written(b)]
        first = [name for name in self.signature.arguments if name in written]
        hidden = {*first, *self.signature.hidden}
        return (*first, *(name for name in written if name not in hidden))

    def __repr__(self) -> str:
        return f"<{self.program.name}({', '.join(self.signature.arguments)}) on {self.device.name}>"


def _executable(
    program: HostProgram,
    device: OpenDevice | Driver | NativeDevice | NativeExecutable | SplitExecutable,
    emit: Emitter,
    constants: Sequence[str],
) -> Executable | NativeExecutable | SplitExecutable:
    if isinstance(device, NativeExecutable | SplitExecutable):
        return device
    if isinstance(device, NativeDevice):
        schedules = emit.schedule if isinstance(emit, TunedEmitter) else plain
        return NativeExecutable(program, device, schedules, constants)
    return Executable(program, device, emit)


def _arguments(program: HostProgram) -> tuple[str, ...]:
    """Return parameters, inputs and what is updated, in order; outputs are made or given by name."""
    given = (b.name for b in program.buffers if b.role in (Role.INPUT, Role.UPDATED))
    return (*(p.name for p in program.parameters), *given)
