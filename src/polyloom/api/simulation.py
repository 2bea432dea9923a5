"""The simulated wafer from Python: one layer, or the layers of a program one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy.typing as npt

from polyloom.api.alike_layers import LayerTask, alike, run_like
from polyloom.api.attempts import attempt
from polyloom.api.evaluation import trace_tensors
from polyloom.api.mapping import layer_mapping, mapping_of
from polyloom.api.reading import MACHINE, Path, in_shorts, load_for_wafer, load_tensor_program
from polyloom.api.wafer import compile_wafer
from polyloom.diagnostics import InternalFault, PolyloomError, error
from polyloom.ir.conversion.bytes_as_shorts import taken
from polyloom.ir.conversion.split_layers import layers_of
from polyloom.ir.evaluation.random_inputs import Scale, random_inputs
from polyloom.ir.program import Program
from polyloom.ir.verification.comparison import Reals
from polyloom.ir.verification.references import Reference
from polyloom.models import model_inputs, model_reals
from polyloom.polyhedra.effort import limited
from polyloom.sources import Given
from polyloom.wafer.explain.grids import watched_pes
from polyloom.wafer.explain.layers import LayerRun, ModelRun
from polyloom.wafer.mapping.mapping import Mapping as LairMap
from polyloom.wafer.placement.choose import Choice
from polyloom.wafer.program.wafer_program import WaferProgram
from polyloom.wafer.simulation.check import (
    MadeUpReals,
    check_outputs,
    checked_batch,
    made_up,
    made_up_reals,
)
from polyloom.wafer.simulation.result import SimulationResult
from polyloom.wafer.simulation.run import simulate_program
from polyloom.workers.local import crew_of

Progress = Callable[[int, int], None]


@limited("the code of the PEs")
def simulate(
    program: Program | Given,
    mapping: LairMap | Choice | Path,
    inputs: Mapping[str, npt.NDArray[Any]] | None = None,
    *,
    simd: str = "auto",
    simd_without: Sequence[str] = (),
    reduction: str = "auto",
    machine: str = MACHINE,
    invocations: int = 1,
    density: float = 1.0,
    memory: int | None = None,
    check: bool = False,
    reference: Reference | None = None,
    reals: Callable[[Scale, int], dict[str, npt.NDArray[Any]] | None] | None = None,
    trace: bool = False,
    watch: Sequence[tuple[int, int]] | None = None,
    progress: Progress | None = None,
) -> SimulationResult:
    """Compile a layer and run its code on the simulated machine.

    ``inputs``: an array of the tensor's shape and type for every input; with ``invocations`` N > 1, streamed
    tensors have a leading axis N. None: small integers from a fixed seed, of which a fraction ``density`` is
    not 0 in sparse tensors. ``check`` compares with ``reference`` (``read_reference`` of a C file), else with
    the NumPy evaluator: made-up inputs exactly where the order of sums does not decide the bits, others
    within each element's error bound; made-up reals of mixed scale (``reals``: of a model,
    whose ``inputs`` were made up) are simulated and compared besides.
    ``trace`` records what happens when on all PEs; ``watch`` on all of a small rectangle, else on those that
    it names by (x, y) and a few others. ``progress`` is called with events and cycle about every 0.2 s.

    Errors: those of ``compile_wafer``, ``input-...``, and ``simulation-...`` for what the simulator refuses.
    Not in the papers: their simulator is not public.
    """
    _check_numbers(invocations, density)
    loaded = load_for_wafer(program)
    program = loaded.program
    mapping = mapping_of(mapping, program, machine, memory)
    reference = reference or loaded.reference
    if loaded.model is not None:
        if inputs is None and invocations == 1:
            reals = partial(model_reals, loaded.model)
        inputs = model_inputs(loaded.model, inputs)
    exactly = inputs is None
    compiled = compile_wafer(
        program, mapping, simd, machine, memory, simd_without=simd_without, reduction=reduction
    )
    if inputs is None:
        arrays = made_up(program, mapping, invocations, density)
    else:
        arrays = checked_batch(program, mapping, inputs, invocations)
    code = compiled.program
    watched = None if watch is None else watched_pes(code, watch)
    run = simulate_program(
        code,
        arrays,
        invocations=invocations,
        trace=trace or watch is not None,
        trace_only=None if trace else watched,
        progress=progress,
    )
    verdict = None
    if check:
        verdict = check_outputs(
            program,
            mapping,
            arrays,
            run.outputs,
            invocations,
            exactly=exactly,
            reference=reference,
            approximate=code.analysis.approximate,
        )
        if exactly or reals is not None:
            drawn = made_up_reals(program, mapping, invocations, density, reals)
            verdict = verdict.with_reals(_check_reals(program, mapping, code, invocations, drawn, reference))
    return SimulationResult(
        simulation=run, machine=machine, simd=simd, check=verdict, program=code, remarks=compiled.remarks
    )


def _check_reals(
    program: Program,
    mapping: LairMap,
    code: WaferProgram,
    invocations: int,
    made: MadeUpReals | None,
    reference: Reference | None,
) -> Reals | None:
    """Simulate once more with made-up reals, and check; None where there are none."""
    if made is None:
        return None
    outputs = simulate_program(code, made.arrays, invocations=invocations).outputs
    verdict = check_outputs(
        program, mapping, made.arrays, outputs, invocations, exactly=False, reference=reference
    )
    return Reals(verdict, made.decades, made.seed)


@limited("the code of the layers")
def simulate_layers(
    program: Program | Given,
    inputs: Mapping[str, npt.NDArray[Any]] | None = None,
    maps: Mapping[str, Path] | None = None,
    *,
    machine: str = MACHINE,
    memory: int | None = None,
    check: bool = False,
    progress: Callable[[str], None] | None = None,
    jobs: int | None = None,
    cluster: Any = None,
    **options: Any,
) -> ModelRun:
    """Simulate each layer that a program's source names by itself, on a rectangle of its own.

    A layer gets what the evaluator computes for the layers before it from ``inputs`` (None: small integers
    from a fixed seed). ``maps``: a map for a layer, by its name; what that leaves open is chosen, and
    everything for a layer that has none. ``check`` compares each layer with the evaluator, within the error
    bound. ``progress`` is called with a layer's name before it. ``jobs``: how many layers at a time, in
    processes of their own (None: in this one); ``cluster``: the address of a dask scheduler, or a
    ``distributed.Client``, whose workers do them, on each one at a time. ``options``: as of ``simulate``.

    A layer that is refused, in which Polyloom itself fails, or of which two processes died, has the reason in
    its ``refusal``; the others run all the same.
    Errors: ``input-...``, ``cluster-...``. Not in the papers.
    """
    loaded = load_tensor_program(program)
    read, program = loaded.program, in_shorts(loaded, ends=True).program
    if loaded.model is not None:
        arrays = model_inputs(loaded.model, inputs)
    else:
        arrays = random_inputs(read) if inputs is None else dict(inputs)
    tensors = trace_tensors(program, taken(read, program, arrays))
    given = maps or {}
    layers = layers_of(program)
    common = {"machine": machine, "memory": memory, "check": check, **options}
    tasks = [
        LayerTask(layer, given.get(layer.name), {n: tensors[n] for n in layer.program.inputs}, common)
        for layer in layers
    ]
    groups = alike(tasks)

    def begun(at: int) -> None:
        for task in groups[at]:
            if progress is not None:
                progress(task.layer.name)

    with crew_of(jobs, cluster, apart=len(groups) > 1) as crew:
        found = crew.each(_simulated_layers, groups, begun, _lost_layers)
    order = {id(task): k for k, task in enumerate(tasks)}
    places = [order[id(task)] for task in chain.from_iterable(groups)]
    runs = dict(zip(places, chain.from_iterable(found), strict=True))
    return ModelRun(program.name, machine, tuple(runs[k] for k in range(len(tasks))))


def _simulated_layers(tasks: Sequence[LayerTask]) -> list[LayerRun]:
    """Simulate layers that are alike: the first one is compiled, and the others run its code."""
    first, *others = tasks
    run = _simulated_layer(first)
    return [run, *(run_like(run, task) or _simulated_layer(task) for task in others)]


def _lost_layers(tasks: Sequence[LayerTask], fault: PolyloomError) -> list[LayerRun]:
    """Return that layers that are alike have no result, as nobody survives them."""
    return [LayerRun(layer=task.layer, choice=None, result=None, refusal=fault) for task in tasks]


def _simulated_layer(task: LayerTask) -> LayerRun:
    layer, options = task.layer, task.options
    machine, memory = options["machine"], options["memory"]
    choice = attempt(lambda: layer_mapping(layer.program, task.source, machine=machine, memory=memory))
    if isinstance(choice, PolyloomError | InternalFault):
        return LayerRun(layer=layer, choice=None, result=None, refusal=choice)
    result = attempt(lambda: simulate(layer.program, choice.mapping, task.arrays, **options))
    if isinstance(result, PolyloomError | InternalFault):
        return LayerRun(layer=layer, choice=choice, result=None, refusal=result)
    return LayerRun(layer=layer, choice=choice, result=result, refusal=None)


def _check_numbers(invocations: int, density: float) -> None:
    if invocations < 1:
        raise PolyloomError(
            error("invocations", f"{invocations} invocations", helps=["at least one is needed"])
        )
    if not 0 <= density <= 1:
        raise PolyloomError(
            error("density", f"a density of {density}", helps=["it is a fraction, from 0 to 1"])
        )
