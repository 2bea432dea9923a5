"""``polyloom.load``: a program of any kind as a Python function, which can be explained and simulated, too.

Paths, texts, bytes and objects in memory are read by the table of front ends (``sources/table``).
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.api.loops import LoopExplanation, explain_loops
from polyloom.api.mapping import MACHINE, choose_mapping
from polyloom.api.processor import NativeExplanation, explain_native
from polyloom.api.reading import Path, reading_of
from polyloom.api.simulation import simulate
from polyloom.api.tuning import tune
from polyloom.api.wafer import Explanation, explain
from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.frontends.graph.imported import Imported
from polyloom.ir.conversion.to_tensor_program import input_tensors
from polyloom.ir.host import Buffer, Role
from polyloom.ir.integers import integer
from polyloom.ir.program import Program
from polyloom.ir.text.integers import integer_text
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.native.device import choose
from polyloom.mdh.running import RunResult, run_program
from polyloom.mdh.tuning.tune import Tuned
from polyloom.models import model_inputs, model_reals
from polyloom.pipeline import open_loaded, signature_of
from polyloom.polyhedra.effort import limited
from polyloom.polyhedra.loops.tree import names_in
from polyloom.sources import (
    Given,
    Loaded,
    LoadedHost,
    Reading,
    front_end,
    load_program,
    tensors_of,
)
from polyloom.targets import Job, find_target
from polyloom.wafer.placement.choose import Choice
from polyloom.wafer.simulation.result import SimulationResult

NDArray = npt.NDArray[Any]


@dataclass(frozen=True)
class Argument:
    """A tensor or number that a function takes or gives.

    ``shape``: its extents; of C, where they follow from arguments, as text (``n + 1``).
    """

    name: str
    type: str
    shape: tuple[int | str, ...]

    def __repr__(self) -> str:
        return self.type + "".join(f"[{extent}]" for extent in self.shape)


@limited("the program")
def load(
    source: Given,
    *examples: Any,
    node: str | None = None,
    function: str | None = None,
    defines: Mapping[str, object] | None = None,
    include: Sequence[Path] = (),
    reductions: str = "detect",
    fp: str = "reassociate",
    device: str | None = None,
    database: Path | None = None,
    check: bool = False,
    driver_patch: bool = True,
    threads: int | None = None,
    **sizes: Any,
) -> Function:
    """Read a program and return it as a function on NumPy arrays.

    model = polyloom.load("model.onnx", batch=2)
    y = model(x)

    ``source``: a path or the text of LAIR or C; the path or bytes of an ONNX model, of a GraphDef, of a
    program of PyTorch (``.pt2``); the folder of a SavedModel; in memory an ``onnx.ModelProto``, a module of
    PyTorch or a function of TensorFlow, with ``examples`` of its arguments. ``sizes``: what LAIR and models
    leave open; of C, values of arguments, which the function then no longer takes.

    ``node``: of LAIR; ``function``: of C, or a signature of a SavedModel; ``defines``: macros of C, or sizes
    whose names are no names of Python; ``include``: folders of C headers; ``reductions``, ``fp``: docs/c.md.
    ``device``, ``database``, ``check``, ``driver_patch``, ``threads``: as of ``compile``, for calls.

    Errors: ``source-unknown``, ``option-unknown``, ``size-unknown``; those of the front end.
    """
    front = front_end(source)
    values = sizes if "parameters" in front.options else {}
    stated = {**(defines or {}), **({} if values else sizes)}
    reading = reading_of(node, function, stated, include, reductions, fp, tuple(examples))
    unknown = [name for name, given in _options(reading).items() if given and name not in front.options]
    if unknown:
        helps = [f"its options: {', '.join(sorted(front.options - {'parameters'})) or 'none'}"]
        message = f"{front.name} has no {' and no '.join(f'`{name}`' for name in unknown)}"
        raise PolyloomError(error("option-unknown", message, helps=helps))
    loaded = load_program(source, reading)
    if isinstance(loaded, LoadedHost):
        _check_values(loaded, values)

    def opened() -> CompiledProgram:
        results = None if database is None else pathlib.Path(database)
        chosen = choose(device, driver_patch=driver_patch, threads=threads)
        return open_loaded(loaded, chosen, results, check=check, constants=values)

    return Function(source, reading, loaded, dict(values), opened)


def _options(reading: Reading) -> dict[str, object]:
    """Return the options that only some front ends know, with what was given."""
    plain = Reading()
    names = ("node", "function", "defines", "include", "reductions", "fp", "examples")
    return {n: getattr(reading, n) for n in names if getattr(reading, n) != getattr(plain, n)}


def _check_values(loaded: LoadedHost, values: Mapping[str, Any]) -> None:
    """Refuse values of what is no number that the function takes. Errors: ``size-unknown``."""
    program = loaded.program
    known = [p.name for p in program.parameters]
    known += [b.name for b in program.buffers if not b.shape and b.role is Role.INPUT]
    unknown = [name for name in values if name not in known]
    if unknown:
        helps = [f"its numbers: {', '.join(known) or 'none'}", "a macro is given so: `defines={'N': 100}`"]
        message = f"`{program.name}` takes no number {', '.join(f'`{name}`' for name in unknown)}"
        raise PolyloomError(error("size-unknown", message, helps=helps))


class Function:
    """A program as a function: call it with arrays, positional in the order of ``inputs``, or by name.

    Results come as one array, or a tuple in the order of ``outputs``. The arrays that a function of C updates
    are changed in place, as C does; the weights of a model are bound, others may be given by name.
    Whatever can be read as an array of the right type will do: NumPy arrays, lists, tensors of PyTorch.
    """

    def __init__(
        self,
        source: Given,
        reading: Reading,
        loaded: Loaded | LoadedHost,
        values: Mapping[str, Any],
        opened: Callable[[], CompiledProgram],
    ) -> None:
        """``loaded``: what was read; ``values``: of arguments of C that are known."""
        self.loaded = loaded
        self._source, self._reading, self._values, self._opened = source, reading, values, opened
        self.__name__ = loaded.program.name

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
            return {name: Argument(name, kind.value, shape) for name, kind, shape in found}
        if isinstance(self.loaded, Loaded):
            tensors = map(self.loaded.program.buffer, self.loaded.program.inputs)
            return {t.name: Argument(t.name, t.type.value, t.extents) for t in tensors}
        return self._arguments(self._signature.arguments)

    @cached_property
    def outputs(self) -> dict[str, Argument]:
        """What it gives, by name, in order."""
        model = self.model
        if model is not None:
            return {n: Argument(n, v.type.value, v.shape) for n, v in model.results.items()}
        if isinstance(self.loaded, Loaded):
            tensors = map(self.loaded.program.buffer, self.loaded.program.outputs)
            return {t.name: Argument(t.name, t.type.value, t.extents) for t in tensors}
        signature = self._signature
        written = [b.name for b in signature.program.buffers if b.role in (Role.OUTPUT, Role.UPDATED)]
        named = [n for n in signature.arguments if n in written]
        return self._arguments(named or [n for n in written if n not in signature.defaults])

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
        return self._opened()

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Run once. Errors: ``argument-...``, ``input-...``, ``parameter-...``, ``device-...``."""
        given = self._given(arrays, named)
        model = self.model
        if model is None:
            return self.compiled(**given)
        found = self.compiled.results(**self._weights_beside(model, given))
        results = tuple(model.outputs({n: np.asarray(a) for n, a in found.items()}).values())
        return results[0] if len(results) == 1 else results

    def run(self, *arrays: Any, check: bool = False, **named: Any) -> RunResult:
        """Run once and tell how long it took; the given arrays stay as they are.

        Without arrays, small integers are made up. ``check`` compares with the C program, the model's
        framework or the evaluator. The results are by name in ``outputs``.

        Errors: those of a call.
        """
        given = self._given(arrays, named)
        model = self.model
        if model is None:
            return run_program(self.compiled, given, check=check)
        reals = None if given else lambda scale, seed: model_reals(model, scale, seed)
        inputs = model_inputs(model, given or None)
        return run_program(self.compiled, inputs, check=check, reals=reals)

    def explain(
        self,
        map: Path | Choice | None = None,
        *,
        size: tuple[int, int] | None = None,
        native: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Explanation | LoopExplanation | NativeExplanation:
        """Say what becomes of it and why; print the result, or ask for its ``json()``.

        ``native``: parameters, ``{}`` where there are none: how it runs as C on the processor.
        Of C without a map or a size: what each loop is. Else every stage of the wafer back end, where ``map``
        (chosen where there is none) places it on ``size`` columns and rows; ``options``: as of
        ``polyloom.explain``.
        """
        if native is not None:
            return explain_native(self.compiled, native)
        if isinstance(self.loaded, LoadedHost) and map is None and size is None:
            return explain_loops(self._source, self._reading)
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
        given = {"map_file": map, "parameters": self._sizes, **options}
        job = Job(self._source, replace(self._reading, parameters=self._sizes), given)
        return find_target(target).compile(job).write(pathlib.Path(folder))

    def tune(
        self, budget: float = 60.0, inputs: Mapping[str, Any] | None = None, **options: Any
    ) -> tuple[Tuned, ...]:
        """Search ``budget`` seconds for faster schedules on its device; later calls use them.

        ``inputs``: sizes of C, or arrays from which they follow. ``options``: as of ``polyloom.tune``.
        """
        return tune(self.compiled, inputs, budget=budget, **options)

    def _tensors_of(self, inputs: Mapping[str, Any] | None) -> dict[str, NDArray] | None:
        """Return arrays by the names of tensors; of C, one that is updated is two tensors."""
        if inputs is None:
            return None
        names: dict[str, str] = {}
        if isinstance(self.loaded, LoadedHost):
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
        return {name: types.get(name, Argument(name, "unused", ())) for name in names}

    def _argument(self, buffer: Buffer) -> Argument:
        shape = [
            integer(e, self._values) if names_in(e) <= self._values.keys() else integer_text(e)
            for e in buffer.shape
        ]
        return Argument(buffer.name, buffer.type.value, tuple(shape))

    def _given(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments by name. Errors: ``argument-count``, ``argument-twice``."""
        names = list(self.inputs)
        helps = [f"`{self!r}`"]
        if len(arrays) > len(names):
            message = f"{len(arrays)} arguments for {len(names)}"
            raise PolyloomError(error("argument-count", message, helps=helps))
        found = dict(zip(names, arrays, strict=False))
        twice = [name for name in named if name in found]
        if twice:
            raise PolyloomError(error("argument-twice", f"`{twice[0]}` is given twice", helps=helps))
        return {**found, **named}

    def _array(self, name: str, value: Any) -> NDArray:
        """Return an array; lists and numbers get the type that is wanted."""
        known = self.inputs.get(name)
        return np.asarray(value, known.type if known and isinstance(value, list | int | float) else None)

    def _weights_beside(self, model: Imported, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is given under the program's names; the device holds the weights already."""
        found = model.inputs({name: self._array(name, value) for name, value in given.items()})
        return {n: a for n, a in found.items() if a is not model.constants.get(n)}


def _of_place(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("machine", "memory") if name in options}


def _cut(text: str, most: int = 140) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
