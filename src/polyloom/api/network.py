"""A network on one simulated wafer, from Python.

network_of      program -> layers that are placed, tensors that pass between them
with_copies     -> what the host sends and takes passes a layer that holds it
with_delays     -> where branches join, the shorter one holds samples
with_state      -> weights that each sample changes have a layer that holds them
place_stages    -> each layer with a map, on a rectangle by its work
block_of        -> with the exchanges in front of its ports
plan            -> where blocks lie and streams run
compile_network -> exchanges, colors, emitted files
simulate        samples -> results, cycles
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy.typing as npt

from polyloom.api.mapping import machine_model
from polyloom.api.reading import MACHINE, Path, in_shorts, load_tensor_program
from polyloom.diagnostics import PolyloomError, Source, error
from polyloom.ir.conversion.bytes_as_shorts import given_back, taken
from polyloom.ir.program import Program
from polyloom.ir.verification.comparison import Reals
from polyloom.models import model_inputs, model_reals
from polyloom.pipeline import analyse_layer, compile_layer, complete_mapping
from polyloom.polyhedra.effort import limited
from polyloom.sources import Given, Loaded, text_of
from polyloom.wafer.explain.network_floor import watched_on_mesh
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.network.areas import place_stages
from polyloom.wafer.network.blocks import Placed, block_of
from polyloom.wafer.network.delays import with_copies, with_delays
from polyloom.wafer.network.floor_plan import plan
from polyloom.wafer.network.graph import Stage, network_of
from polyloom.wafer.network.program import NetworkProgram, compile_network
from polyloom.wafer.network.result import NetworkResult
from polyloom.wafer.network.run import Progress, moving_tensors, simulate_network
from polyloom.wafer.network.state import with_state
from polyloom.wafer.placement.candidates import QUICK, SearchOptions
from polyloom.wafer.placement.cost.model import estimated_cycles
from polyloom.wafer.placement.known_maps import chosen
from polyloom.wafer.simd.decision import SimdOptions
from polyloom.wafer.simulation.check import check_outputs, checked_batch, made_up, made_up_reals
from polyloom.workers.crew import ALONE, Crew

Arrays = Mapping[str, npt.NDArray[Any]]


@limited("the floor plan of the network")
def compile_one_wafer(
    program: Program | Given,
    *,
    machine: str | Machine = MACHINE,
    memory: int | None = None,
    pes: int | None = None,
    maps: Mapping[str, Path] | None = None,
    state: Mapping[str, str] | None = None,
    progress: Callable[[str], None] | None = None,
    crew: Crew = ALONE,
) -> NetworkProgram:
    """Place all layers of a program on one mesh, with streams between them, and make the code of every PE.

    ``pes``: for all layers together (None: half of the mesh); ``maps``: a map for a layer, by its name;
    others are chosen. ``state``: inputs, each with the output that is its value for the next sample; all
    others stream then. ``progress`` is called with what is placed next, a layer's name;
    ``crew``: who compiles the maps that are compared.

    Errors: ``Unsupported`` with ``network-...``; those of maps. Not in the papers.
    """
    loaded = in_shorts(load_tensor_program(program), ends=True)
    # exchanges have single elements, and take nothing that turns switches; layers have no filters
    model = replace(machine_model(machine, memory), wavelet_elements=1, switched_colors=0, filters=0)
    given = loaded.program.inputs if loaded.model is None else (*loaded.model.arguments, *(state or ()))
    samples = None if loaded.model is None and not state else given
    network = with_copies(network_of(loaded.program, samples, state), samples)
    # with a state, a sample waits for the one before, whatever branches hold
    network = with_state(network, state) if state else with_delays(network)
    quickly, thoroughly = (partial(_placed, model, maps or {}, crew, effort) for effort in (QUICK, None))
    stages = place_stages(
        network, model, pes, quickly, progress, fixed=tuple(maps or ()), thoroughly=thoroughly
    )
    if progress is not None:
        progress("the streams between layers")
    floor = plan(network, tuple(map(block_of, stages)), model)
    return compile_network(floor, model)


def _placed(
    machine: Machine,
    maps: Mapping[str, Path],
    crew: Crew,
    effort: SearchOptions | None,
    stage: Stage,
    size: tuple[int, int],
) -> Placed:
    given = maps.get(stage.name)
    if given is not None:
        choice = complete_mapping(text_of(given, "<map>"), stage.program, machine, crew=crew)
    else:
        source = Source("<network>", f"iport_map: auto {', '.join(stage.streams)}\n")
        choice = chosen(
            source, stage.program, machine, size, partial(complete_mapping, crew=crew), options=effort
        )
    analysis = analyse_layer(stage.program, choice.mapping, SimdOptions(machine=machine))
    compiled = compile_layer(analysis, machine)
    return Placed(stage, choice, compiled, estimated_cycles(compiled))


def simulate_one_wafer(
    program: Program | Given,
    inputs: Arrays | None = None,
    *,
    samples: int = 4,
    machine: str | Machine = MACHINE,
    memory: int | None = None,
    pes: int | None = None,
    maps: Mapping[str, Path] | None = None,
    state: Mapping[str, str] | None = None,
    check: bool = False,
    watch: Sequence[tuple[int, int]] | None = None,
    progress: Callable[[str], None] | None = None,
    simulating: Progress | None = None,
    crew: Crew = ALONE,
) -> NetworkResult:
    """Simulate a network whose layers all lie on one mesh, samples following each other in a pipeline.

    ``inputs``: an array for every input, with a leading axis of samples for those that stream where there are
    several; of a model, weights need not be given. None: small integers from a fixed seed. ``check`` compares
    each sample with the NumPy evaluator, as ``simulate`` does. ``watch`` records what happens when: on all
    PEs of a small mesh, else on the first of each program, and on those that it names by (x, y). The rest: as
    of ``compile_one_wafer``.

    Errors: those of ``compile_one_wafer``, ``input-...``, ``simulation-...``. Not in the papers.
    """
    if samples < 1:
        raise PolyloomError(error("invocations", f"{samples} samples", helps=["at least one is needed"]))
    loaded = load_tensor_program(program)
    compiled = compile_one_wafer(
        loaded,
        machine=machine,
        memory=memory,
        pes=pes,
        maps=maps,
        state=state,
        progress=progress,
        crew=crew,
    )
    watched = None if watch is None else watched_on_mesh(compiled, watch)
    return _simulated(loaded, compiled, inputs, samples, simulating, check=check, watched=watched)


@limited("the samples of the network")
def _simulated(
    loaded: Loaded,
    compiled: NetworkProgram,
    inputs: Arrays | None,
    samples: int,
    simulating: Progress | None,
    *,
    check: bool,
    watched: Sequence[tuple[int, int]] | None,
) -> NetworkResult:
    read, program = loaded.program, in_shorts(loaded, ends=True).program
    moving = moving_tensors(compiled.plan)
    exactly = inputs is None
    arrays = made_up(read, moving, samples, 1.0) if inputs is None else dict(inputs)
    if loaded.model is not None:
        given = {n: a for n, a in arrays.items() if inputs is not None or n in loaded.model.arguments}
        arrays = model_inputs(loaded.model, given)
    arrays = taken(read, program, checked_batch(read, moving, arrays, samples))
    run = simulate_network(compiled, arrays, samples, trace_only=watched, progress=simulating)
    computed = NetworkResult(compiled, run, samples, None).outputs
    run = replace(run, outputs=given_back(read, program, run.outputs))
    if not check:
        return NetworkResult(compiled, run, samples, None)
    verdict = check_outputs(program, moving, arrays, computed, samples, exactly=exactly)
    if exactly:
        reals = None if loaded.model is None else partial(model_reals, loaded.model)
        made = made_up_reals(read, moving, samples, 1.0, reals)
        if made is not None:
            arrays = taken(read, program, made.arrays)
            again = simulate_network(compiled, arrays, samples, progress=simulating)
            outputs = NetworkResult(compiled, again, samples, None).outputs
            second = check_outputs(program, moving, arrays, outputs, samples, exactly=False)
            verdict = verdict.with_reals(Reals(second, made.decades, made.seed))
    return NetworkResult(compiled, run, samples, verdict)
