"""A program as a function on arrays: called, timed, explained, tuned, placed, simulated, saved."""

from __future__ import annotations

import atexit
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from polyloom.api.reading import MACHINE, Path
from polyloom.device_pipeline import open_split, signature_of
from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.frontends.graph.imported import Ends, Imported
from polyloom.function.arguments import UNUSED, Argument, Taken, named, taken
from polyloom.function.batches import in_batches
from polyloom.function.pages import Times, function_page, measured
from polyloom.function.saving import Saved, save, variant_of
from polyloom.ir.host import Buffer, Role
from polyloom.ir.integers import integer
from polyloom.ir.program import Program
from polyloom.ir.scalar_functions.narrow_formats import FORMATS
from polyloom.ir.text.integers import integer_text
from polyloom.ir.types import ElementType
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.native.device import choose
from polyloom.mdh.native.repeated import Again, Done, Repeating
from polyloom.mdh.running import RunResult, run_program
from polyloom.mdh.split.plan import Plan
from polyloom.models import model_inputs, model_reals
from polyloom.polyhedra.effort import limited
from polyloom.polyhedra.loops.tree import names_in
from polyloom.sources import Given, Loaded, LoadedHost, Reading, tensors_of
from polyloom.workers.local import crew_of

if TYPE_CHECKING:
    from polyloom.api.layers import LayersExplanation
    from polyloom.api.loops import LoopExplanation
    from polyloom.api.processor import NativeExplanation
    from polyloom.api.wafer import Explanation
    from polyloom.mdh.tuning.tune import Tuned
    from polyloom.wafer.placement.choose import Choice
    from polyloom.wafer.simulation.result import SimulationResult

NDArray = npt.NDArray[Any]


class Function(Repeating):
    """A program as a function: call it with arrays, positional in the order of ``inputs``, or by name.

    Results come as one array, or a tuple in the order of ``outputs``. The arrays that a function of C updates
    are changed in place, as C does; the weights of a model are bound, others may be given by name.
    Whatever can be read as an array of the right type will do: NumPy arrays, lists, and arrays of other
    libraries by DLPack or ``__array_interface__``, which are not copied. Where such arrays are given, results
    are arrays of the same library.
    """

    loaded: Loaded | LoadedHost

    _keeper: Callable[[Function, float], None] | None = None

    def __init__(
        self,
        source: Given,
        reading: Reading,
        loaded: Loaded | LoadedHost,
        values: Mapping[str, Any],
        opened: Callable[[Loaded | LoadedHost], CompiledProgram],
        keeper: Callable[[Function, float], None] | None = None,
    ) -> None:
        """``loaded``: what was read; ``values``: of arguments of C that are known.

        ``keeper``: called with it and the seconds of its first call, to keep it for other processes.
        """
        self.loaded = loaded
        self._keeper = keeper
        self._source, self._reading, self._values, self._opened = source, reading, values, opened
        self.__name__ = loaded.program.name

    def _repr_html_(self) -> str:
        return function_page(self.__name__, self.inputs, self.outputs, "a function of Polyloom")

    def __repr__(self) -> str:
        takes = ", ".join(f"{a.name}: {a!r}" for a in self.inputs.values())
        gives = ", ".join(f"{a.name}: {a!r}" for a in self.outputs.values())
        return f"<{self.__name__}({_cut(takes)}) -> {_cut(gives)}>"

    @cached_property
    def inputs(self) -> dict[str, Argument]:
        """What it takes, by name, in order: names, types and shapes. Weights are not among them."""
        model = self.model
        if model is not None:
            shapes = {name: model.program.buffer(name).extents for name in model.arguments}
            found = [(model.names.get(n, n), kind, shapes[n]) for n, kind in model.arguments.items()]
            return {name: Argument(name, model.type_name(name, kind), shape) for name, kind, shape in found}
        if isinstance(self.loaded, Loaded):
            tensors = map(self.loaded.program.buffer, self.loaded.program.inputs)
            return {t.name: Argument(t.name, t.type.value, t.extents) for t in tensors}
        return self._arguments(self._signature.arguments)

    @cached_property
    def outputs(self) -> dict[str, Argument]:
        """What it gives, by name, in order."""
        model = self.model
        if model is not None:
            return {n: Argument(n, model.type_name(n, v.type), v.shape) for n, v in model.results.items()}
        if isinstance(self.loaded, Loaded):
            tensors = map(self.loaded.program.buffer, self.loaded.program.outputs)
            return {t.name: Argument(t.name, t.type.value, t.extents) for t in tensors}
        signature = self._signature
        written = [b.name for b in signature.program.buffers if b.role in (Role.OUTPUT, Role.UPDATED)]
        named = [n for n in signature.arguments if n in written]
        return self._arguments(named or [n for n in written if n not in signature.hidden])

    @property
    def remarks(self) -> tuple[Diagnostic, ...]:
        """What there is to remark: on loops that stay sequential, on names that nothing uses."""
        return self.loaded.warnings if isinstance(self.loaded, Loaded) else self.loaded.remarks

    @property
    def model(self) -> Imported | None:
        """The model that it was, with its weights and what became of each node; else None."""
        return self.loaded.model if isinstance(self.loaded, Loaded) else None

    @cached_property
    @limited("the program")
    def tensors(self) -> Loaded:
        """The tensor program, which the wafer takes; a function of C needs the values of all sizes for it.

        Errors: ``parameter-missing``; ``Unsupported`` with ``tensor-...`` for C that is none.
        """
        if isinstance(self.loaded, Loaded):
            return self.loaded
        return tensors_of(self.loaded, self._sizes)

    @property
    def _sizes(self) -> dict[str, int]:
        """The values of parameters that are known, without those of other numbers."""
        if isinstance(self.loaded, Loaded):
            return {}
        names = {p.name for p in self.loaded.program.parameters}
        return {name: int(value) for name, value in self._values.items() if name in names}

    @property
    def program(self) -> Program:
        """The tensor program of ``tensors``."""
        return self.tensors.program

    @cached_property
    def compiled(self) -> CompiledProgram:
        """The program on its device, which is opened now. Errors: ``device-...``."""
        return self._opened(self.loaded)

    @property
    def _whole(self) -> CompiledProgram:
        """The program with all that is known of it, for checks and searches."""
        return self.compiled

    @property
    def _ends(self) -> Ends | None:
        """Of a model: what callers give and get, and where that is in its program."""
        return None if self.model is None else self.model.ends

    def _checked_call(self, *arrays: Any, **named: Any) -> tuple[Any, ...]:
        return tuple(self.results(*arrays, **named).values())

    def results(self, *arrays: Any, **named: Any) -> dict[str, Any]:
        """Run once and return what a call returns, by name. Errors: those of a call."""
        used = taken(self._given(arrays, named))
        found = self._results(used)
        return dict(zip(found, self._given_back(used, found), strict=True))

    def _given_back(self, used: Taken, found: Mapping[str, Any]) -> list[Any]:
        """Return results as arrays of the library that the arguments are of."""
        return used.given_back(found, {n: a.type for n, a in self.outputs.items() if a.type in FORMATS})

    def _results(self, used: Taken) -> dict[str, Any]:
        """Run once; return what a call gives, by name. Calls like it are short where all is of NumPy."""
        ends = self._ends
        order = self.compiled.order if ends is None else tuple(ends.results)
        found = self._as_before((), used.arrays)
        if found is not None:
            return dict(zip(order, found, strict=True))
        begin = time.perf_counter()
        given = self._inner(used.arrays, ends)
        if used.foreign:
            left, done = self.compiled.results(**given), None
        else:
            left, done = self.compiled.done((), given)
        self._remember(None if done is None else self._repeated(done, used.arrays, ends))
        if self._keeper is not None:
            keep, self._keeper = self._keeper, None
            keep(self, time.perf_counter() - begin)
        if ends is None:
            return left if used.foreign else self.compiled.given_back(left)
        return ends.outputs({n: np.asarray(a) for n, a in left.items()})

    def _inner(self, arrays: Mapping[str, Any], ends: Ends | None) -> dict[str, Any]:
        """Return arguments by the names of the program."""
        if ends is None:
            return dict(arrays)
        return dict(ends.inputs({name: self._array(name, value) for name, value in arrays.items()}))

    def _repeated(self, done: Done, given: Mapping[str, Any], ends: Ends | None) -> Again | None:
        """Return a function for calls like one that was done; None where each has to be checked."""
        if ends is None:
            names, results = {n: n for n in self.compiled.signature.names}, self.compiled.order
        elif ends.narrow or any(kind is ElementType.BOOL or 0 in n for _, kind, n in ends.results.values()):
            return None
        else:
            names = {ends.names.get(inner, inner): inner for inner in ends.program_inputs}
            results = tuple(tensor for tensor, _, _ in ends.results.values())
        again = done.again({n: (names.get(n), a) for n, a in given.items()}, tuple(self.inputs), results)
        return self.compiled.with_number(again)

    def batches(self, *arrays: Any, size: int | None = None, **named: Any) -> Any:
        """Run over arrays of more rows than it takes, part after part along the first axis of each.

        The rows of a part are what the function takes; where that is open, ``size`` (None: all at once). What
        the last part of a fixed size lacks is filled and cut off again, which is right where no row of a
        result depends on other rows of the inputs.

        Errors: ``batch-rows``, ``batch-size``; those of a call.
        """
        used = taken(self._given(arrays, named))
        found = in_batches(lambda part: self._results(Taken(dict(part), {})), self.inputs, used.arrays, size)
        results = self._given_back(used, found)
        return results[0] if len(results) == 1 else tuple(results)

    def over(self, *devices: str, jobs: int | None = None, cluster: Any = None) -> Function:
        """Return the same function with its rows in several places at a time; ``plan`` says which where.

        Rows are the batch of a model, or the outermost parallel loop of C. ``devices``: as in ``load``;
        ``jobs``: so many processes besides; ``cluster``: the address of a dask scheduler, or a
        ``distributed.Client``, each of whose workers takes a part. What each place gets follows from times
        that the first call measures (docs/tuning.md).

        Errors: ``device-...``, ``cluster-...``; of calls, Unsupported with ``split-rows``.
        """
        crew = self._stack.enter_context(crew_of(jobs, cluster))
        models = [choose(name) for name in devices]
        found = Function(
            self._source,
            self._reading,
            self.loaded,
            self._values,
            lambda loaded: open_split(loaded, models, crew),
        )
        found._stack = self._stack
        return found

    @property
    def plan(self) -> Plan | None:
        """How the rows of the last call lay in several places; None without ``over``."""
        return self.compiled.plan

    @cached_property
    def _stack(self) -> ExitStack:
        """What is closed when the process ends."""
        stack = ExitStack()
        atexit.register(stack.close)
        return stack

    def times(self, *arrays: Any, runs: int = 10, **named: Any) -> Times:
        """Measure a call, and each of its kernels by a clock between them. Without arrays, some are made up.

        A kernel's time is that of the fastest of ``runs``. Errors: those of ``run``.
        """
        return measured(self.__name__, lambda: self.run(*arrays, **named), runs)

    def save(self, path: Path, *sizes: Mapping[str, int], source: bool = True) -> None:
        """Write it as one file, with its weights and the code that was built; ``load(path)`` takes it back.

        It is built for the sizes of earlier calls, and for ``sizes`` (values of parameters of C). Loaded, it
        runs for these without choosing schedules and without a compiler. ``source``: whether what it was read
        from goes in as well, for other sizes, ``explain`` and the like. Only on the processor, and only for
        processors that can all that this one can.

        Errors: ``save-device``, ``save-sizes``, ``file-unwritable``.
        """
        save(pathlib.Path(path), self._saved(sizes), source=source)

    def _saved(self, sizes: Sequence[Mapping[str, int]]) -> Saved:
        return Saved(
            self.__name__,
            self._source,
            self._reading,
            self._values,
            [variant_of(self.compiled, sizes, self._ends, self.inputs, self.outputs)],
        )

    def run(self, *arrays: Any, check: bool = False, **named: Any) -> RunResult:
        """Run once and tell how long it took; the given arrays stay as they are.

        Without arrays, small integers are made up. ``check`` compares with the C program, the model's
        framework or the evaluator. The results are by name in ``outputs``.

        Errors: those of a call.
        """
        given = taken(self._given(arrays, named)).arrays
        model = self.model
        if model is None:
            return run_program(self._whole, given, check=check)
        reals = None if given else lambda scale, seed: model_reals(model, scale, seed)
        inputs = model_inputs(model, given or None)
        return run_program(self._whole, inputs, check=check, reals=reals)

    def explain(
        self,
        map: Path | Choice | None = None,
        *,
        size: tuple[int, int] | None = None,
        native: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Explanation | LayersExplanation | LoopExplanation | NativeExplanation:
        """Say what becomes of it and why; print the result, or ask for its ``json()``.

        ``native``: parameters, ``{}`` where there are none: how it runs as C on the processor.
        Of C without a map or a size: what each loop is; of a model: each of its layers under a map of its
        own. Else every stage of the wafer back end, where ``map`` (chosen where there is none) places it on
        ``size`` columns and rows; ``options``: as of ``polyloom.explain``.
        """
        from polyloom.api.layers import explain_layers
        from polyloom.api.loops import explain_loops
        from polyloom.api.processor import explain_native
        from polyloom.api.wafer import explain

        if native is not None:
            return explain_native(self._whole, native)
        if isinstance(self.loaded, LoadedHost) and map is None and size is None:
            return explain_loops(self._source, self._reading)
        if self.model is not None and map is None and size is None:
            return explain_layers(self.program, **options)
        choice = self.place(map, size=size, **_of_place(options))
        return explain(self.program, choice.mapping, **options)

    def place(
        self,
        map: Path | Choice | None = None,
        *,
        size: tuple[int, int] | None = None,
        machine: str = MACHINE,
        memory: int | None = None,
    ) -> Choice:
        """Place it on a wafer; what a map leaves open is chosen. Errors: ``map-...``, ``placement-...``."""
        from polyloom.api.mapping import choose_mapping
        from polyloom.wafer.placement.choose import Choice

        if isinstance(map, Choice):
            return map
        return choose_mapping(self.program, map, size=size, machine=machine, memory=memory)

    def simulate(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        map: Path | Choice | None = None,
        size: tuple[int, int] | None = None,
        **options: Any,
    ) -> SimulationResult:
        """Run it on a simulated wafer. ``inputs``: arrays by name; None: small integers.

        ``map``: placement and ports; what it leaves open is chosen. ``options``: as of ``polyloom.simulate``
        (``machine``, ``check``, ``invocations``, ...).
        """
        from polyloom.api.simulation import simulate

        choice = self.place(map, size=size, **_of_place(options))
        return simulate(self.tensors, choice.mapping, self._tensors_of(inputs), **options)

    def report(
        self,
        path: Path,
        inputs: Mapping[str, Any] | None = None,
        *,
        map: Path | Choice | None = None,
        size: tuple[int, int] | None = None,
        **options: Any,
    ) -> SimulationResult:
        """Simulate it and write everything as one HTML page. Arguments: those of ``simulate``.

        Errors: those of ``simulate``; ``file-unwritable``.
        """
        from polyloom.api.simulation import simulate
        from polyloom.report.html import write_report

        choice = self.place(map, size=size, **_of_place(options))
        given = self._tensors_of(inputs)
        result = simulate(self.tensors, choice.mapping, given, **{"watch": (), **options})
        write_report(pathlib.Path(path), result, choice.candidates)
        return result

    def write(self, folder: Path, target: str, *, map: Path | None = None, **options: Any) -> tuple[str, ...]:
        """Compile it for a target, as ``polyloom compile --target``, into a folder. Return the files' names.

        ``options``: those of the command line by their names (``machine``, ``size``, ``device``).

        Errors: ``target-unknown``, those of the target; ``folder-occupied``, ``file-unwritable``.
        """
        from polyloom.targets import Job, find_target

        given = {"map_file": map, "parameters": self._sizes, **options}
        job = Job(self._source, replace(self._reading, parameters=self._sizes), given)
        return find_target(target).compile(job).write(pathlib.Path(folder))

    def tune(
        self, budget: float = 60.0, inputs: Mapping[str, Any] | None = None, **options: Any
    ) -> tuple[Tuned, ...]:
        """Search ``budget`` seconds for faster schedules on its device; later calls use them.

        ``inputs``: sizes of C, or arrays from which they follow. ``options``: as of ``polyloom.tune``.
        """
        from polyloom.api.tuning import tune

        return tune(self._whole, inputs, budget=budget, **options)

    def _tensors_of(self, inputs: Mapping[str, Any] | None) -> dict[str, NDArray] | None:
        """Return arrays by the names of tensors; of C, one that is updated is two tensors."""
        if inputs is None:
            return None
        names: dict[str, str] = {}
        if isinstance(self.loaded, LoadedHost):
            from polyloom.ir.conversion.to_tensor_program import input_tensors

            names = {buffer: tensor for tensor, buffer in input_tensors(self.loaded.program).items()}
        return {names.get(name, name): self._array(name, value) for name, value in inputs.items()}

    @cached_property
    def _signature(self) -> Any:
        assert isinstance(self.loaded, LoadedHost) and self.loaded.scop is not None
        return signature_of(self.loaded.program, self.loaded.scop, self._values)

    def _arguments(self, names: Sequence[str]) -> dict[str, Argument]:
        program = self._signature.program
        types = {p.name: Argument(p.name, p.type.value, ()) for p in program.parameters}
        types |= {b.name: self._argument(b) for b in program.buffers}
        return {name: types.get(name, Argument(name, UNUSED, ())) for name in names}

    def _argument(self, buffer: Buffer) -> Argument:
        shape = [
            integer(e, self._values) if names_in(e) <= self._values.keys() else integer_text(e)
            for e in buffer.shape
        ]
        return Argument(buffer.name, buffer.type.value, tuple(shape))

    def _given(self, arrays: Sequence[Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments by name. Errors: ``argument-count``, ``argument-twice``, ``input-missing``."""
        ends = self._ends
        found = named(list(self.inputs), arrays, given, self, () if ends is None else ends.order)
        for name, value in found.items():
            if value is None and name in self.inputs and self.inputs[name].type != UNUSED:
                helps = [f"give an array {self.inputs[name]!r}"]
                raise PolyloomError(error("input-missing", f"the input `{name}` is None", helps=helps))
        return found

    def _array(self, name: str, value: Any) -> NDArray:
        """Return an array; lists and numbers get the type that is wanted."""
        known = self.inputs.get(name)
        wanted = known.type if known and known.type not in FORMATS else None
        return np.asarray(value, wanted if isinstance(value, list | int | float) else None)


def _of_place(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("machine", "memory") if name in options}


def _cut(text: str, most: int = 140) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
