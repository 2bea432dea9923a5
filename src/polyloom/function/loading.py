"""``polyloom.load``: any program as a function, read by the table of front ends (``sources/table``)."""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from polyloom.api.reading import Path, reading_of
from polyloom.device_pipeline import open_loaded
from polyloom.diagnostics import PolyloomError, error
from polyloom.files import noting_reads
from polyloom.frontends.graph.refusal import OpenShapes
from polyloom.function.container import is_container
from polyloom.function.functions import Function
from polyloom.function.jitted import JIT
from polyloom.function.kept import Keeper, Place, place_of
from polyloom.function.open_sizes import OpenFunction, argument_of
from polyloom.function.saved import SavedFunction, source_of, with_shapes
from polyloom.function.saved_jits import SavedJitted
from polyloom.function.saving import arguments_of, opened, variants_of
from polyloom.function.saving import reading_of as saved_reading
from polyloom.ir.host import Role
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.native.device import NATIVE, choose, restored_device
from polyloom.polyhedra.effort import limited
from polyloom.sources import Given, Loaded, LoadedHost, Reading, front_end, is_path, load_program
from polyloom.sources.front_end import path_of


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
    """Read a program and return it as a function on NumPy arrays::

        model = polyloom.load("model.onnx", batch=2)
        y = model(x)

    ``source``: a path or the text of LAIR or C; the path or bytes of an ONNX model, of a GraphDef, of a
    program of PyTorch (``.pt2``); the folder of a SavedModel; in memory an ``onnx.ModelProto``, a module of
    PyTorch or a function of TensorFlow, with ``examples`` of its arguments. ``sizes``: what LAIR and models
    leave open; of C, values of arguments, which the function then no longer takes. A model of which sizes
    stay open takes them from the arrays of each call. A file that ``Function.save`` wrote is taken back.

    ``node``: of LAIR; ``function``: of C, or a signature of a SavedModel; ``defines``: macros of C, or sizes
    whose names are no names of Python; ``include``: folders of C headers; ``reductions``, ``fp``: docs/c.md.
    ``device``, ``database``, ``check``, ``driver_patch``, ``threads``: as of ``compile``, for calls.

    Errors: ``source-unknown``, ``option-unknown``, ``size-unknown``; those of the front end;
    ``saved-broken``, ``saved-version``, ``saved-processor`` for a file that was saved.
    """

    def compiled(program: Loaded | LoadedHost, constants: Mapping[str, Any]) -> CompiledProgram:
        results = None if database is None else pathlib.Path(database)
        chosen = choose(device, driver_patch=driver_patch, threads=threads)
        return open_loaded(program, chosen, results, check=check, constants=constants)

    if is_path(source) and is_container(path_of(source)):
        # A function of Python that was saved is a `Jitted`, as its caller knows, who saved it
        return cast(Function, _restored(path_of(source), compiled, device, threads))
    front = front_end(source)
    values = sizes if "parameters" in front.options else {}
    stated = {**(defines or {}), **({} if values else sizes)}
    reading = reading_of(node, function, stated, include, reductions, fp, tuple(examples))
    unknown = [name for name, given in _options(reading).items() if given and name not in front.options]
    if unknown:
        helps = [f"its options: {', '.join(sorted(front.options - {'parameters'})) or 'none'}"]
        message = f"{front.name} has no {' and no '.join(f'`{name}`' for name in unknown)}"
        raise PolyloomError(error("option-unknown", message, helps=helps))
    place = None
    if not check and not values:
        results = None if database is None else pathlib.Path(database)
        place = partial(place_of, source, front, device=device, threads=threads, database=results)
    return _read(source, reading, dict(values), compiled, place)


Places = Callable[[Reading], tuple[Place, bytes] | None]
Opener = Callable[[Loaded | LoadedHost, Mapping[str, Any]], CompiledProgram]


def _read(
    source: Given,
    reading: Reading,
    values: Mapping[str, Any],
    compiled: Opener,
    place: Places | None = None,
) -> Function:
    """Read a program; of a model that leaves sizes open, return what makes one for each of them.

    ``place``: where functions are kept, by how their source is read; None: nowhere.
    """

    def made(reading: Reading) -> Function:
        def opener(program: Loaded | LoadedHost) -> CompiledProgram:
            return compiled(program, values)

        where, content = (None if place is None else place(reading)) or (None, b"")
        known = None if where is None else where.function(content, opener)
        if known is not None:
            return known
        del content
        begin = time.perf_counter()
        with noting_reads() as paths:
            loaded = load_program(source, reading)
        if isinstance(loaded, LoadedHost):
            _check_values(loaded, values)
        keeper = Keeper(where, tuple(paths), time.perf_counter() - begin) if where is not None else None
        return Function(source, reading, loaded, values, opener, keeper)

    try:
        return made(reading)
    except OpenShapes as fault:
        ends = [{t.name: argument_of(t) for t in tensors} for tensors in (fault.inputs, fault.outputs)]

        def sized(shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, object]) -> Function:
            stated = {**reading.defines, **{name: str(size) for name, size in sizes.items()}}
            narrowed = replace(with_shapes(reading, shapes), defines=stated)
            return made(narrowed)

        return OpenFunction(source, reading, fault.name, ends[0], ends[1], fault, sized)


def _restored(
    path: pathlib.Path, compiled: Opener, device: str | None, threads: int | None
) -> Function | SavedJitted:
    """Return what ``Function.save`` wrote.

    Errors: ``saved-...``; ``native-threads``; ``save-device`` where another device is named.
    """
    if device is not None and not device.startswith(NATIVE):
        helps = ["leave `device` out", "or load the source that it was saved from"]
        raise PolyloomError(error("save-device", f"`{path}` holds code for the processor", helps=helps))
    container = opened(path)
    manifest, native = container.manifest, restored_device(threads)
    if JIT in manifest:
        return SavedJitted(container, variants_of(container), native, threads)
    values = manifest["values"]
    found = [
        SavedFunction(container, variant, native, lambda program: compiled(program, values), variant.shapes)
        for variant in variants_of(container)
    ]
    inputs, outputs = (arguments_of(manifest[part]) for part in ("open_inputs", "open_outputs"))
    if inputs is None:
        return found[0]
    reading = saved_reading(manifest["source"]["reading"])

    def sized(shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, object]) -> Function:
        other = _read(source_of(container), reading, values, compiled)
        assert isinstance(other, OpenFunction)
        return other.sized(shapes, sizes)

    helps = ["`at(...)` gives the function for sizes"]
    fault = PolyloomError(error("model-shape", f"`{path}` holds a model of open sizes", helps=helps))
    function = OpenFunction(None, reading, manifest["name"], inputs, outputs or {}, fault, sized)
    for variant in found:
        function.add(variant._variant.shapes, variant)
    return function


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
