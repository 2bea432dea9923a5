"""What programs are compiled for: one table of targets. To add one: a value here (see CONTRIBUTING.md)."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.sources import Given, Reading, load_host_programs, load_tensors

if TYPE_CHECKING:
    from polyloom.wafer.machine.model import Machine
    from polyloom.wafer.placement.choose import Choice
    from polyloom.wafer.program.wafer_program import WaferProgram


@dataclass(frozen=True)
class Option:
    """An option of one target: ``--name`` on the command line. ``choices``: all values, if they are few."""

    name: str
    help: str
    choices: tuple[str, ...] = ()
    default: str | None = None


@dataclass(frozen=True, eq=False)
class Job:
    """A source that is to be compiled.

    ``options``: values by name, of the target's own and of those that the command line has for all:
    ``map_file``, ``size``, ``machine``, ``simd``, ``simd_without``, ``reduction``, ``device``,
    ``parameters``, ``database``, ``jobs``, ``cluster``; of a network ``one_wafer``, ``pes``, ``state``,
    ``maps``. ``say`` is told of warnings, and of the map that was chosen, before code is made.
    """

    source: Given
    reading: Reading
    options: Mapping[str, Any]
    say: Callable[[Sequence[Diagnostic] | Choice], None] = lambda _: None

    def option(self, name: str, default: Any = None) -> Any:
        """Return the value of an option, the default where it is not given."""
        value = self.options.get(name)
        return default if value is None else value


@dataclass(frozen=True, eq=False)
class Compiled:
    """``write``: put all files into a folder, whole or not at all, and return their names."""

    write: Callable[[pathlib.Path], tuple[str, ...]]
    remarks: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, eq=False)
class Target:
    """``meaning``: what it is, in a few words. ``compile`` raises ``PolyloomError`` and ``Unsupported``."""

    name: str
    meaning: str
    compile: Callable[[Job], Compiled]
    options: tuple[Option, ...] = field(default=())


def _wafer(job: Job) -> Compiled:
    from polyloom.api.reading import MACHINE
    from polyloom.wafer.host.folder import write_folder

    program, chosen, remarks = _placed(job, job.option("machine", MACHINE))
    return Compiled(partial(write_folder, program, chosen_map=chosen), remarks)


def _csl(job: Job) -> Compiled:
    from polyloom.folders import write_folder
    from polyloom.wafer.csl_output.limits import machine_for, single_elements
    from polyloom.wafer.csl_output.project import project_files

    arch = job.option("arch", "wse2")
    if job.option("one_wafer", False):
        return _csl_network(job, arch)
    program, chosen, remarks = _placed(job, machine_for(arch))
    texts = {**project_files(program, arch), **({} if chosen is None else {"chosen.map": chosen})}
    remarks = (*remarks, *single_elements(program.analysis, arch))
    return Compiled(partial(write_folder, texts, {"target": "csl", "arch": arch}), remarks)


def _csl_network(job: Job, arch: str) -> Compiled:
    from polyloom.api.network import compile_one_wafer
    from polyloom.folders import write_folder
    from polyloom.wafer.csl_output.limits import machine_for
    from polyloom.wafer.network.csl_output.project import network_files
    from polyloom.workers.local import crew_of

    loaded = load_tensors(job.source, job.reading)
    job.say(loaded.warnings)
    pes, maps, state = (job.option(name) for name in ("pes", "maps", "state"))
    machine = machine_for(arch)
    with crew_of(job.option("jobs"), job.option("cluster")) as crew:
        network = compile_one_wafer(loaded, machine=machine, pes=pes, maps=maps, state=state, crew=crew)
    weights = None if loaded.model is None else loaded.model.constants
    chosen = {
        f"{place.block.placed.stage.name}.map": place.block.placed.choice.text
        for place in network.plan.places
        if place.block.placed.stage.name not in (maps or {})
    }
    texts = {**network_files(network, arch, weights), **chosen}
    return Compiled(partial(write_folder, texts, {"target": "csl", "arch": arch}))


def _placed(job: Job, machine: str | Machine) -> tuple[WaferProgram, str | None, tuple[Diagnostic, ...]]:
    """Return a layer's program for a machine, the map where it was chosen, and remarks."""
    from polyloom.api.mapping import choose_mapping
    from polyloom.api.wafer import compile_wafer
    from polyloom.workers.local import crew_of

    loaded = load_tensors(job.source, job.reading)
    job.say(loaded.warnings)
    size = job.option("size")
    with crew_of(job.option("jobs"), job.option("cluster")) as crew:
        choice = choose_mapping(loaded, job.option("map_file"), size=size, machine=machine, crew=crew)
    job.say(choice)
    without, shape = job.option("simd_without", ()), job.option("reduction", "auto")
    simd = job.option("simd", "auto")
    found = compile_wafer(loaded, choice.mapping, simd, machine, simd_without=without, reduction=shape)
    chosen = choice.text if choice.candidates or size else None
    return found.program, chosen, found.remarks


def _drop_in(target: str, job: Job) -> Compiled:
    from polyloom.device_pipeline import drop_in, reading_for

    reading = reading_for(target, job.source, job.reading)
    loaded = load_host_programs(job.source, reading)
    values, database = job.option("parameters", {}), job.option("database")
    made = drop_in(job.source, loaded, reading, target, job.option("device"), values, database)
    return Compiled(made.write, (*(said for part in loaded for said in part.remarks), *made.remarks))


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("wafer", "C for every processing element of a wafer", _wafer),
        Target(
            "csl",
            "CSL for the vendor's SDK, with a host program",
            _csl,
            (Option("arch", "Of CSL: the machine that the program is for.", ("wse2", "wse3"), "wse2"),),
        ),
        Target("c", "a C program whose loops are functions of one more C file", partial(_drop_in, "c")),
        Target("opencl", "a C program whose loops run on OpenCL", partial(_drop_in, "opencl")),
        Target("cuda", "a C program whose loops run on CUDA", partial(_drop_in, "cuda")),
    )
}
"""All targets, by name, as the command line lists them."""


def find_target(name: str) -> Target:
    """Return the target with this name. Errors: ``target-unknown``."""
    if name not in TARGETS:
        helps = [f"there are {', '.join(f'{t.name} ({t.meaning})' for t in TARGETS.values())}"]
        raise PolyloomError(error("target-unknown", f"there is no target `{name}`", helps=helps))
    return TARGETS[name]
