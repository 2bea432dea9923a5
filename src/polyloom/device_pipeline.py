"""The pipelines to the processor and to GPUs: one function per target, every stage once, in order."""

from __future__ import annotations

from collections import abc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyloom.diagnostics import PolyloomError, error
from polyloom.frontends.graph.imported import Imported
from polyloom.ir.conversion.to_host_program import host_program
from polyloom.ir.host import HostProgram, MdHom, Role
from polyloom.ir.transform.channels_last import with_channels_last
from polyloom.ir.transform.fuse_epilogues import with_finishing_maps
from polyloom.ir.transform.selections.gathers import numbers_in, with_gathers
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.passes import at_the_end
from polyloom.ir.verification.references import Reference, evaluated
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.cuda.targets import target_device
from polyloom.mdh.device.devices import DeviceModel, choose_device
from polyloom.mdh.device.drivers import pip_library
from polyloom.mdh.dropin.cuda import cuda_side
from polyloom.mdh.dropin.folder import DropIn, Maker, Side, check_values
from polyloom.mdh.dropin.loops import c_side
from polyloom.mdh.dropin.opencl import opencl_side
from polyloom.mdh.dropin.source import Place
from polyloom.mdh.dropin.variables import Variable, layout
from polyloom.mdh.native.device import NATIVE, choose, opened
from polyloom.mdh.native.rows import suited
from polyloom.mdh.running import CheckedProgram, RunResult, run_program
from polyloom.mdh.runtime.arguments import Signature, known_parameters
from polyloom.mdh.split.places import OneDevice, Workers
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter
from polyloom.polyhedra.loops.tree import Number
from polyloom.scop.model import Origin, Scop, ScopArray
from polyloom.sources import (
    Given,
    Loaded,
    LoadedHost,
    Reading,
    Structures,
    host_of,
    is_loops,
    load_program,
    loops,
)
from polyloom.workers.crew import ALONE, Crew

if TYPE_CHECKING:
    from polyloom.mdh.tuning.database import Database
    from polyloom.mdh.tuning.tune import Observer, Tuned, TuneOptions
    from polyloom.workers.cluster import Cluster

CHECK_SECONDS = 60.0
"""How long a C program may run with which tuned results are compared."""


def drop_in(
    source: Given,
    loaded: Sequence[LoadedHost],
    reading: Reading,
    target: str,
    device: str | None,
    values: abc.Mapping[str, int],
    database: Path | None = None,
) -> DropIn:
    """Make a drop-in of a C file, or a C function of a layer; ``loaded``: what was read of it.

    ``target``: ``c``, ``opencl`` or ``cuda``; ``device``: as ``--device``; ``values``: of parameters with
    code of their own; ``database``: of tuned schedules, None: the user's own.

    Errors: ``target-unknown``, ``parameter-unknown``, ``drop-in-device``, those of the choice of a device;
    ``Unsupported`` with ``drop-in-...``.
    """
    if target not in _SIDES:
        helps = [f"there are {', '.join(_SIDES)}"]
        raise PolyloomError(error("target-unknown", f"no drop-in is for `{target}`", helps=helps))
    strict = any(part.program.strict for part in loaded)
    if target == "c":
        model = choose(device or NATIVE)
        loaded = [replace(part, program=suited(part.program, model)) for part in loaded]
    side = _SIDES[target](device, TunedEmitter(database), strict)
    check_values(values, [part.program for part in loaded])
    maker = Maker(side, values)
    if not is_loops(source):
        return maker.of_program(loaded[0].program)
    from polyloom.frontends.c.syntax.macros import OPENMP

    front = loops(source)
    text = front.source(source)
    parts = [(_place(part), part.program) for part in loaded]
    options = [f"-D{name}={value}" for name, value in reading.defines.items() if name != OPENMP]
    options += [f"-I{folder.resolve()}" for folder in reading.include]
    return maker.of_source(text, parts, options, front.conditions(text, reading))


def reading_for(target: str, source: Given, reading: Reading) -> Reading:
    """Return how a source is read for a drop-in: of C all loops that can be computed.

    One for ``c`` is built with ``-fopenmp``, which defines a macro.
    """
    if not is_loops(source):
        return reading
    from polyloom.frontends.c.syntax.macros import OPENMP
    from polyloom.frontends.c.syntax.preprocess import compilers_macros

    several = target == "c"  # what a device gets is copied there and back, each array as a whole
    structures = Structures.NUMBERS_OF_TYPES if several else Structures.NUMBERS
    defined = compilers_macros("-fopenmp").get(OPENMP) if target == "c" else None
    defines = {**reading.defines, OPENMP: defined} if defined else reading.defines
    return replace(reading, unmarked=True, structures=structures, defines=defines)


def _c_side(device: str | None, emitter: TunedEmitter, strict: bool) -> Side:
    model = choose(device or NATIVE)
    if model.platform != NATIVE:
        helps = ["leave `--device` out, or name a compiler: `--device native:gcc`"]
        raise PolyloomError(
            error("drop-in-device", f"`{model.name}` runs no C, which is for the processor", helps=helps)
        )
    return c_side(model, emitter.schedule)


def _opencl_side(device: str | None, emitter: TunedEmitter, strict: bool) -> Side:
    return opencl_side(choose_device(device), emitter, pip_library())


def _cuda_side(device: str | None, emitter: TunedEmitter, strict: bool) -> Side:
    return cuda_side(target_device(device), emitter, strict=strict)


_SIDES = {"c": _c_side, "opencl": _opencl_side, "cuda": _cuda_side}


def load_opencl(
    source: Given,
    reading: Reading,
    device: DeviceModel,
    database: Path | None = None,
    *,
    check: bool = False,
) -> CompiledProgram:
    """Make a callable program of a C function, a layer or a model; kernels are made when sizes are known.

    ``database``: of tuned schedules; None for the user's own. ``check``: whether the first call for each set
    of sizes is compared with the program's reference.

    Errors: those of the front ends; ``function-several``; ``Unsupported`` with ``function-parts``.
    """
    return open_loaded(load_program(source, reading), device, database, check=check)


def open_loaded(
    loaded: Loaded | LoadedHost,
    device: DeviceModel,
    database: Path | None = None,
    *,
    check: bool = False,
    constants: abc.Mapping[str, Any] | None = None,
) -> CompiledProgram:
    """Make a callable program of one that was read; ``constants``: arguments of C that are known already."""
    if isinstance(loaded, Loaded) and loaded.model is not None:
        return open_model(loaded.model, device, database, loaded.reference, check=check)
    host = host_of(loaded) if isinstance(loaded, Loaded) else loaded
    return open_program(host, device, database, check=check, constants=constants)


def open_split(
    loaded: Loaded | LoadedHost, devices: Sequence[DeviceModel], crew: Crew, database: Path | None = None
) -> CompiledProgram:
    """Make a callable program whose rows run on several devices, and on the workers of a crew, at a time.

    Errors: those of ``open_loaded``; of calls, Unsupported with ``split-rows``.
    """
    device = devices[0] if devices else choose(None)
    places: list[OneDevice | Workers] = [OneDevice(each, database) for each in devices]
    places += [] if crew is ALONE else [Workers(crew)]
    return open_loaded(loaded, device, database).over(places)


def open_program(
    loaded: LoadedHost,
    device: DeviceModel,
    database: Path | None = None,
    *,
    check: bool = False,
    constants: abc.Mapping[str, Any] | None = None,
) -> CompiledProgram:
    """Make a callable program of a host program; the arguments are those of ``open_loaded``."""
    program = suited(loaded.program, device)
    signature = None if loaded.scop is None else signature_of(program, loaded.scop, constants or ())
    make = CheckedProgram if check else CompiledProgram
    rest = signature, loaded.remarks, loaded.reference, constants
    return make(program, opened(device), TunedEmitter(database), *rest)


def _laid_out(program: HostProgram) -> HostProgram:
    """Return a program with channels last, maps joined to what they finish then; as it is without windows."""
    before, program = program, with_channels_last(program)
    while program is not before and program.body != before.body:
        before, program = program, with_finishing_maps(program)
    return program


def open_model(
    model: Imported,
    device: DeviceModel,
    database: Path | None = None,
    reference: Reference | None = None,
    *,
    check: bool = False,
) -> CompiledProgram:
    """Make a callable program of an imported model; its weights need not be given.

    ``reference``: what its results are compared with; None: the evaluator's.
    """
    program = host_program(model.program)
    reference = reference or evaluated(program)
    program = at_the_end("gathers", with_gathers(program, numbers_in(model.constants)))
    if device.platform == NATIVE:
        program = at_the_end("layouts", _laid_out(program))
    looped = not all(isinstance(node, MdHom) for node in program.body)
    emitter = TunedEmitter(database, shares_kernels=not looped)
    make = CheckedProgram if check else CompiledProgram
    signature = Signature(program, tuple(model.arguments))
    return make(program, opened(device), emitter, signature, (), reference, model.constants)


def tune_opencl(
    programs: Sequence[HostProgram],
    given: abc.Mapping[str, Any],
    device: DeviceModel,
    database: Database,
    options: TuneOptions,
    observer: Observer | None = None,
    cluster: Cluster | None = None,
) -> tuple[Tuned, ...]:
    """Tune the md_homs of programs for the parameters in ``given``, here or on the workers of a cluster.

    Errors: ``parameter-...``, those of the tuner.
    """
    from polyloom.mdh.tuning.tune_program import tune_programs

    programs = [suited(program, device) for program in programs]
    special = [specialise(program, known_parameters(program, given)) for program in programs]
    return tune_programs(special, device, database, options, observer, cluster)


def check_tuned(program: CompiledProgram, given: abc.Mapping[str, Any]) -> RunResult | None:
    """Run a C program once with the schedules that are known, and compare with the C compiler's; else None.

    ``given``: values of parameters and scalars, among others; arrays are made up. Errors: those of
    ``run_program``; a C program that takes more than ``CHECK_SECONDS`` is given up.
    """
    from polyloom.oracle.c_reference import CReference

    if not isinstance(program.reference, CReference):
        return None
    known = {name: value for name, value in given.items() if name in program.signature.names}
    limited = replace(program.reference, seconds=CHECK_SECONDS)
    return run_program(program.with_reference(limited), known, check=True)


def signature_of(program: HostProgram, scop: Scop, known_already: abc.Iterable[str] = ()) -> Signature:
    """Return a C function's arguments in order, then whatever else its part reads.

    Without those that are ``known_already``.
    """
    outer = [a for a in scop.arrays if a.origin is Origin.OUTER and (a.undefined or a.initial is not None)]
    made = {b.name for b in program.buffers if b.name == scop.returned and b.role is Role.OUTPUT}
    known = {b.name for b in program.buffers if b.role is not Role.LOCAL} - made
    defaults = {a.name: a.initial or 0 for a in outer if a.name in known}
    others = [*(p.name for p in program.parameters), *sorted(known - defaults.keys())]
    names = (*scop.arguments, *(name for name in others if name not in scop.arguments))
    open_ended = frozenset(a.name for a in scop.arrays if a.shape and a.shape[0] is None)
    arguments = tuple(n for n in names if n not in known_already)
    return Signature(program, arguments, open_ended=open_ended, defaults=defaults, returned=scop.returned)


def _place(part: LoadedHost) -> Place:
    """Return where a host program stood in its C file; a drop-in counts characters, a SCoP bytes."""
    scop = part.scop
    assert scop is not None
    data = scop.source.text.encode()
    start, end = (len(data[:position].decode()) for position in scop.extent)
    return Place(
        name=scop.name,
        source=scop.source,
        extent=(start, end),
        parameters={parameter.name: parameter.text for parameter in scop.parameters},
        variables={array.name: _variable(array) for array in scop.arrays},
        escaping=scop.escaping,
        returned=scop.returned,
        marked=scop.marked,
        static=scop.static,
        present=scop.present,
        reached=scop.reached,
        stepped=scop.stepped,
        repeated=scop.repeated,
    )


def _variable(array: ScopArray) -> Variable:
    path = array.record or (array.variable or array.name,)
    levels = array.levels or (len(array.shape),)
    variable = Variable(path, levels, array.span, array.hidden, register=array.register)
    if not array.views:
        return variable
    members = tuple((Variable(view.path, view.levels), view.first) for view in array.views)
    size = array.shape[-1]
    assert isinstance(size, Number)
    return replace(variable, layout=layout(members, size.value * array.type.size))
