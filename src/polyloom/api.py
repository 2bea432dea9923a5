"""Polyloom from Python: the verbs of the command line, on NumPy arrays.

program = read_program("conv1d.lair")
mapping = read_mapping("conv1d.map", program)
print(explain(program, mapping).json()["tasks"][0]["simd"])
print(simulate(program, mapping, check=True).outputs["y"])
"""

from __future__ import annotations

import math
import os
import pathlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, PolyloomError, Unsupported, error
from polyloom.frontends.graph.imported import Imported
from polyloom.ir.conversion.split_layers import Layer, layers_of
from polyloom.ir.evaluation.programs import evaluate as evaluated
from polyloom.ir.evaluation.random_inputs import Scale
from polyloom.ir.evaluation.random_inputs import random_inputs as made_up_integers
from polyloom.ir.program import Program
from polyloom.ir.verification.references import Reference
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.device.devices import DeviceModel, choose_device, find_devices
from polyloom.mdh.dropin.folder import DropIn
from polyloom.mdh.running import RunResult, check_mismatch, run_program
from polyloom.mdh.runtime.arguments import known_parameters
from polyloom.mdh.runtime.arrays import DeviceArray
from polyloom.mdh.tuning.database import Database, default_path
from polyloom.mdh.tuning.tune import Progress as TuneProgress
from polyloom.mdh.tuning.tune import Tuned, TuneOptions
from polyloom.models import model_inputs, model_reals
from polyloom.pipeline import (
    analyse_layer,
    check_tuned,
    compile_layer,
    compile_opencl,
    complete_mapping,
    load_opencl,
    tune_opencl,
)
from polyloom.polyhedra.effort import limited
from polyloom.scop.model import Scop
from polyloom.scop.transform import ReductionMode, Transformation, host_program
from polyloom.sources import (
    Given,
    Loaded,
    Reading,
    is_path,
    is_text,
    load_host_programs,
    load_model,
    load_scops,
    load_tensors,
    text_of,
)
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.collectives import ReductionShape
from polyloom.wafer.explain.document import explanation, resources_document
from polyloom.wafer.explain.grids import watched_pes
from polyloom.wafer.explain.layers import LayerRun, ModelRun
from polyloom.wafer.host.folder import write_folder
from polyloom.wafer.host.manifest import manifest
from polyloom.wafer.machine.model import Machine, load_machine
from polyloom.wafer.machine.options import Extension, without
from polyloom.wafer.mapping.mapping import Mapping as LairMap
from polyloom.wafer.placement.choose import Choice
from polyloom.wafer.program.wafer_program import Survey, WaferProgram, survey
from polyloom.wafer.simd.decision import SimdMode, SimdOptions
from polyloom.wafer.simulation.check import (
    MadeUpReals,
    Reals,
    check_outputs,
    checked_batch,
    made_up,
    made_up_reals,
)
from polyloom.wafer.simulation.result import SimulationResult
from polyloom.wafer.simulation.run import simulate_program

__all__ = [
    "Choice",
    "CompiledLayer",
    "CompiledProgram",
    "DeviceArray",
    "DeviceModel",
    "Explanation",
    "LoopExplanation",
    "RunResult",
    "choose_mapping",
    "compile",
    "compile_wafer",
    "devices",
    "drop_in",
    "evaluate",
    "explain",
    "from_tensorflow",
    "from_torch",
    "random_inputs",
    "read_mapping",
    "read_model",
    "read_program",
    "read_reference",
    "run",
    "simulate",
    "simulate_layers",
    "trace_tensors",
    "tune",
]

Path = str | os.PathLike[str]
Progress = Callable[[int, int], None]
MACHINE = "cs2"
"""The machine model that is used where none is named."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Every stage of the analysis of a layer, as values (``analysis``) and as a document (``json``)."""

    analysis: LayerAnalysis

    def __repr__(self) -> str:
        return f"<Explanation of {self.analysis.program.name}: {len(self.analysis.simd)} tasks; print it>"

    def __str__(self) -> str:
        """Return what ``polyloom explain`` prints."""
        from polyloom.report.terminal import text_of
        from polyloom.report.wafer.explain_view import print_explanation

        return text_of(lambda out: print_explanation(self.analysis, self.survey, out))

    @property
    def remarks(self) -> tuple[Diagnostic, ...]:
        """Missed optimisations, with their reasons."""
        return self.analysis.remarks

    @cached_property
    @limited("the roles of the PEs")
    def survey(self) -> Survey | Diagnostic:
        """What each role of PE takes of the machine; or why no routes or order were found."""
        try:
            return survey(self.analysis, self.analysis.options.machine)
        except Unsupported as refused:
            return refused.diagnostics[0]

    @limited("the sets of the stages")
    def json(self) -> dict[str, Any]:
        """Return the document of ``explain --json``; isl objects are strings. Source: docs/interface.md."""
        found = self.survey
        if isinstance(found, Diagnostic):
            return explanation(self.analysis) | {"resources": {"refused": found.message}}
        resources = resources_document(found, self.analysis.options.machine)
        return explanation(self.analysis) | {"resources": resources}


@dataclass(frozen=True, eq=False)
class LoopExplanation:
    """What each loop of a file of C is, and why: one entry for each static control part."""

    parts: tuple[tuple[Scop, Transformation], ...]

    def __repr__(self) -> str:
        return f"<LoopExplanation of {', '.join(scop.name for scop, _ in self.parts)}; print it>"

    def __str__(self) -> str:
        """Return what ``polyloom explain`` prints."""
        from polyloom.report.loops_view import text

        return "\n".join(text(scop, found) for scop, found in self.parts)

    def json(self) -> dict[str, Any] | list[dict[str, Any]]:
        """Return the document of ``explain --json``: one object, or a list of several."""
        from polyloom.report.loops_view import document

        found = [document(scop, transformation) for scop, transformation in self.parts]
        return found[0] if len(found) == 1 else found


@dataclass(frozen=True, eq=False)
class CompiledLayer:
    """The code for every role of PE, and what a host program must know."""

    program: WaferProgram

    def __repr__(self) -> str:
        return f"<CompiledLayer {self.program.analysis.program.name}: {', '.join(self.files)}>"

    def write(self, folder: Path) -> tuple[str, ...]:
        """Write everything that a C compiler and a host program need into a folder. Return the names.

        Errors: ``folder-occupied``, ``file-unwritable``.
        """
        return write_folder(self.program, pathlib.Path(folder))

    @property
    def files(self) -> dict[str, str]:
        """File name to text: C for each role, the layout, shared headers."""
        return self.program.files

    @property
    @limited("the manifest")
    def manifest(self) -> dict[str, Any]:
        """Which bytes lie where before the start, and what each port is fed and gives."""
        return manifest(self.program)

    @property
    def remarks(self) -> tuple[Diagnostic, ...]:
        """Missed optimisations, with their reasons."""
        return self.program.analysis.remarks


@limited("the program")
def read_program(
    source: Given,
    node: str | None = None,
    defines: Mapping[str, object] | None = None,
    *,
    function: str | None = None,
    parameters: Mapping[str, int] | None = None,
) -> Program:
    """Read a LAIR file, or LAIR text (a ``str`` with a brace), and specialize one node or graph of it.

    ``node``: its name; None for the last graph, else the only node. ``defines``: size and type parameters,
    ``{"M": 32, "T": "float32"}``. A C file is read as well, if its function is a tensor program: ``function``
    names it, ``defines`` are macros, ``parameters`` the values of its integer arguments.

    Errors: ``PolyloomError`` with everything that is wrong; ``Unsupported`` for kinds of source that are not
    read yet, and for C that is no tensor program. Source: dtg_codegen, Sec. 4.1.1.
    """
    values = {name: str(value) for name, value in (defines or {}).items()}
    return load_tensors(source, Reading(node, function, values, parameters=parameters or {})).program


def read_reference(
    source: Given,
    defines: Mapping[str, object] | None = None,
    *,
    function: str | None = None,
    parameters: Mapping[str, int] | None = None,
) -> Reference | None:
    """Return what the results of a C file's tensor program (``read_program``) are compared with.

    It runs the C program, built by the C compiler that there is. None for what is no C file.

    Errors: those of ``read_program``.
    """
    values = {name: str(value) for name, value in (defines or {}).items()}
    return load_tensors(source, Reading(None, function, values, parameters=parameters or {})).reference


def read_model(source: Given, sizes: Mapping[str, object] | None = None) -> Imported:
    """Read a model of a machine-learning framework: an ONNX file, a GraphDef, a SavedModel's folder.

    ``sizes``: of dimensions that it leaves open, ``{"batch": 1}``, or of whole inputs,
    ``{"image": "1x3x224x224"}``.
    The program, its weights, and what became of each node: ``Imported``.

    Errors: ``PolyloomError`` where the file is broken; ``Unsupported`` naming every node that has no affine
    form.
    """
    return load_model(source, {name: str(value) for name, value in (sizes or {}).items()})


def from_tensorflow(function: Any, sizes: Mapping[str, Sequence[int]] | None = None) -> Imported:
    """Return a TensorFlow function as a tensor program, with the values of what it has captured.

    ``function``: a ``ConcreteFunction``, as ``tf.function(f).get_concrete_function(...)`` gives it.
    ``sizes``: the shapes of inputs that it leaves open. Variables that it assigns to are results, as
    ``NAME_new``.

    Errors: ``PolyloomError`` for open shapes; ``Unsupported`` naming every node that has no affine form.
    """
    from polyloom.frontends.tensorflow import import_function

    model = import_function(function, sizes)
    model.check_sizes(sizes or {})
    return model


def from_torch(
    program: Any,
    arguments: Sequence[Any] = (),
    keywords: Mapping[str, Any] | None = None,
    sizes: Mapping[str, Sequence[int]] | None = None,
) -> Imported:
    """Return a PyTorch module, or an ``ExportedProgram``, as a tensor program with its parameters' values.

    ``arguments``, ``keywords``: tensors with which a module is exported; only their shapes and types matter.
    ``sizes``: of dimensions that were exported as dynamic. Inputs have the names of ``forward``'s arguments,
    parameters those of the module; a buffer that changes is a result (``bn.running_mean_new``).

    Errors: ``PolyloomError`` where PyTorch is not there or cannot export; ``Unsupported`` naming every node
    that has no affine form.
    """
    from polyloom.frontends.torch import import_program

    model = import_program(program, arguments, keywords, sizes)
    model.check_sizes(sizes or {})
    return model


@limited("the mapping")
def read_mapping(source: Path, program: Program | Given, machine: str = MACHINE) -> LairMap:
    """Read a LAIR map (a file, or text with a brace) for a program, and check it.

    What the map leaves open is chosen as ``choose_mapping`` does.

    Errors: ``PolyloomError`` where the map is wrong; ``Unsupported`` where nothing was found that fits.
    Source: dtg_codegen, Sec. 4.1.2.
    """
    return choose_mapping(program, source, machine=machine).mapping


@limited("a mapping")
def choose_mapping(
    program: Program | Given,
    source: Path | None = None,
    *,
    size: tuple[int, int] | None = None,
    machine: str = MACHINE,
    memory: int | None = None,
) -> Choice:
    """Choose what a map leaves open, or all of it where there is none: placement, ports, size.

    ``source``: the map (a file, or text with a brace); ``size``: columns and rows, in place of the map's. The
    result's ``text`` is a map file. A map that leaves nothing open comes back as it is.

    Errors: ``PolyloomError`` where the map is wrong; ``Unsupported`` where nothing was found that fits.
    Source: docs/mapping.md.
    """
    if source is not None and not (is_path(source) or is_text(source)):
        raise PolyloomError(_no_map(source))
    given = None if source is None else text_of(source, "<map>")
    return complete_mapping(given, _loaded(program).program, machine_model(machine, memory), size)


@limited("the program")
def _loaded(program: Program | Given) -> Loaded:
    """Return a program that was read, or read it: paths, texts, models are taken for programs."""
    return load_tensors(program, Reading())


def _mapping(given: Path | LairMap | Choice, program: Program, machine: str, memory: int | None) -> LairMap:
    """Return a map that was read, or read it."""
    if isinstance(given, LairMap | Choice):
        return given if isinstance(given, LairMap) else given.mapping
    return choose_mapping(program, given, machine=machine, memory=memory).mapping


def _no_map(given: object) -> Diagnostic:
    message = f"a map is meant, and this is a value of type `{type(given).__name__}`"
    helps = ["give a path, the text of a map, or what `polyloom.read_mapping` gives"]
    return error("map-kind", message, helps=helps)


@limited("the loops of the program")
def explain_loops(source: Given, reading: Reading) -> LoopExplanation:
    """Say of each loop of a file of C what it is: parallel, a reduction or serial, and why.

    Errors: ``file-...``, ``c-...``. Source: md_poly, Sec. 3.2.
    """
    mode, strict = ReductionMode(reading.reductions), reading.fp == "strict"
    scops = load_scops(source, reading)
    return LoopExplanation(tuple((scop, host_program(scop, mode, strict=strict)) for scop in scops))


@limited("the stages of the layer")
def explain(
    program: Program | Given,
    mapping: LairMap | Choice | Path,
    simd: str = "auto",
    machine: str = MACHINE,
    *,
    simd_without: Sequence[str] = (),
    reduction: str = "auto",
    memory: int | None = None,
) -> Explanation:
    """Run every stage up to SIMD detection and keep what it found.

    ``simd``: ``auto``, ``off``, ``hull``, ``exact`` or ``enumerate``; ``simd_without``: the names of steps
    beyond the paper that are switched off (docs/simd.md); ``machine``: whose costs choose among them;
    ``reduction``: ``auto``, ``chain``, ``two-phase`` or ``tree``, the shape of reductions along lines of PEs;
    ``memory``: as in ``compile_wafer``, for arrays that would be enlarged and temporaries.

    Errors: ``PolyloomError`` and ``Unsupported`` where the map does not work.
    Source: dtg_codegen, Sec. 4 and 5.
    """
    model = machine_model(machine, memory)
    options = SimdOptions(_mode(simd), extensions=_extensions(simd_without), machine=model)
    read = _loaded(program).program
    placed = _mapping(mapping, read, machine, memory)
    return Explanation(analyse_layer(read, placed, options, _shape(reduction)))


@limited("the code of the PEs")
def compile_wafer(
    program: Program | Given,
    mapping: LairMap | Choice | Path,
    simd: str = "auto",
    machine: str = MACHINE,
    memory: int | None = None,
    *,
    simd_without: Sequence[str] = (),
    reduction: str = "auto",
) -> CompiledLayer:
    """Make the C code of every PE.

    ``machine``: ``cs1``, ``cs2`` or ``cs3``; ``memory``: bytes that the data of a PE may fill,
    in place of the machine's (48 KiB less what is kept for code).

    Errors: ``PolyloomError`` and ``Unsupported`` where the map does not work or the layer does not fit.
    Source: dtg_codegen, Sec. 4 and 5, and its slides.
    """
    found = explain(
        program, mapping, simd, machine, simd_without=simd_without, reduction=reduction, memory=memory
    )
    return CompiledLayer(compile_layer(found.analysis, machine_model(machine, memory)))


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
    loaded = _loaded(program)
    program = loaded.program
    mapping = _mapping(mapping, program, machine, memory)
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
            program, mapping, arrays, run.outputs, invocations, exactly=exactly, reference=reference
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
    check = check_outputs(
        program, mapping, made.arrays, outputs, invocations, exactly=False, reference=reference
    )
    return Reals(check, made.decades, made.seed)


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
    **options: Any,
) -> ModelRun:
    """Simulate each layer that a program's source names by itself, on a rectangle of its own.

    A layer gets what the evaluator computes for the layers before it from ``inputs`` (None: small integers
    from a fixed seed). ``maps``: a map for a layer, by its name; what that leaves open is chosen, and
    everything for a layer that has none. ``check`` compares each layer with the evaluator, within the error
    bound. ``progress`` is called with a layer's name before it. ``options``: as of ``simulate``.

    A layer that is refused has the reason in its ``refusal``; the others run all the same.
    Errors: ``input-...``. Not in the papers.
    """
    loaded = _loaded(program)
    program = loaded.program
    arrays = inputs if loaded.model is None else model_inputs(loaded.model, inputs)
    tensors = trace_tensors(program, arrays)
    given = maps or {}

    def run(layer: Layer) -> LayerRun:
        if progress is not None:
            progress(layer.name)
        choice = None
        arrays = {name: tensors[name] for name in layer.program.inputs}
        try:
            choice = choose_mapping(layer.program, given.get(layer.name), machine=machine, memory=memory)
            placed = (layer.program, choice.mapping, arrays)
            result = simulate(*placed, machine=machine, memory=memory, check=check, **options)
        except PolyloomError as fault:
            return LayerRun(layer, choice, None, fault)
        return LayerRun(layer, choice, result, None)

    return ModelRun(program.name, machine, tuple(run(layer) for layer in layers_of(program)))


def evaluate(program: Program | Given, inputs: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Return every tensor that a statement writes, by name, as NumPy computes it.

    ``inputs``: one array per input, of its shape and element type; of a model, its weights need not be given.

    Errors: ``input-missing``, ``input-unknown``, ``input-shape``, ``input-type``.
    """
    loaded = _loaded(program)
    return evaluated(loaded.program, inputs if loaded.model is None else model_inputs(loaded.model, inputs))


def random_inputs(
    program: Program | Given, seed: int = 0, density: Mapping[str, float] | float = 1.0
) -> dict[str, npt.NDArray[Any]]:
    """Return one array per input: small integers, never 0 but where ``density`` asks for it.

    ``density``: the fraction of nonzero elements, of all inputs or by name. Inputs under a root or logarithm
    are positive. The same seed gives the same arrays.
    """
    return made_up_integers(_loaded(program).program, seed, density)


def trace_tensors(
    program: Program | Given, inputs: Mapping[str, npt.NDArray[Any]] | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Return every tensor of a program by name: its inputs, then all that statements write, in their order.

    ``inputs``: an array of the tensor's shape and type for every input; None: small integers from a fixed
    seed. Results have the shapes and types of the tensors.

    Errors: ``input-missing``, ``input-unknown``, ``input-shape``, ``input-type``. Not in the papers.
    """
    loaded = _loaded(program)
    program = loaded.program
    if loaded.model is not None:
        inputs = model_inputs(loaded.model, inputs)
    given = random_inputs(program) if inputs is None else inputs
    written = evaluated(program, given)
    return {**{name: given[name] for name in program.inputs}, **written}


def devices() -> tuple[DeviceModel, ...]:
    """Return the OpenCL devices that there are, in the order of ``polyloom devices``."""
    return find_devices()


@limited("the loops of the program")
def compile(
    source: Given,
    *,
    device: str | None = None,
    node: str | None = None,
    function: str | None = None,
    defines: Mapping[str, object] | None = None,
    include: Sequence[Path] = (),
    reductions: str = "detect",
    fp: str = "reassociate",
    database: Path | None = None,
    check: bool = False,
    driver_patch: bool = True,
) -> CompiledProgram:
    """Make a Python function of a C function, a layer or a model, which runs on an OpenCL device.

    gemm = polyloom.compile("gemm.c")
    gemm(n, m, k, alpha, beta, C, A, B)

    ``polyloom.load`` gives one that also knows its inputs and outputs, and can be simulated. The weights of a
    model need not be given; its inputs have their names in the program here.

    ``device``: as ``--device``; ``defines``: C macros or LAIR parameters; ``database``: tuned schedules, None
    for the user's own. What the arguments are, and how arrays stay on the device: ``CompiledProgram``.
    ``check``: the first call for each set of sizes is compared with the C program, built by the C compiler
    (a layer with the evaluator); it raises ``check-mismatch`` where an element is wrong.

    ``driver_patch``: whether PoCL's memory may be changed where it does not know the processor
    (docs/opencl_devices.md).

    Errors: those of the front ends, ``device-...``, ``function-several``, ``reductions``.
    """
    reading = reading_of(node, function, defines, include, reductions, fp)
    results = None if database is None else pathlib.Path(database)
    return load_opencl(
        source, reading, choose_device(device, driver_patch=driver_patch), results, check=check
    )


@limited("the loops of the program")
def drop_in(
    source: Given,
    values: Mapping[str, int] | None = None,
    *,
    device: str | None = None,
    node: str | None = None,
    function: str | None = None,
    defines: Mapping[str, object] | None = None,
    include: Sequence[Path] = (),
    reductions: str = "detect",
    fp: str = "reassociate",
    database: Path | None = None,
) -> DropIn:
    """Make a C program whose loops run on OpenCL of a C file, or a C function of a LAIR layer.

    polyloom.drop_in("gemm.c", {"n": 1024}).write("out")

    ``values``: of parameters for which there are kernels of their own; the others as for ``compile``.

    Errors: those of the front ends, ``device-...``, ``parameter-unknown``; ``Unsupported`` with
    ``drop-in-...``. Source: docs/drop_in.md.
    """
    reading = reading_of(node, function, defines, include, reductions, fp)
    results = None if database is None else pathlib.Path(database)
    loaded = load_host_programs(source, reading)
    return compile_opencl(source, loaded, reading, choose_device(device), values or {}, results)


def reading_of(
    node: str | None,
    function: str | None,
    defines: Mapping[str, object] | None,
    include: Sequence[Path],
    reductions: str,
    fp: str,
    examples: Sequence[object] = (),
) -> Reading:
    """Return how a source is to be read. Errors: ``reductions``, ``fp``."""
    if reductions not in ("detect", "stated", "ignore"):
        helps = ["there are detect, stated, ignore"]
        raise PolyloomError(error("reductions", f"there is no mode `{reductions}`", helps=helps))
    if fp not in ("reassociate", "strict"):
        helps = ["there are reassociate, strict"]
        raise PolyloomError(error("fp", f"there is no mode `{fp}` of floating point", helps=helps))
    values = {name: str(value) for name, value in (defines or {}).items()}
    folders = tuple(pathlib.Path(folder) for folder in include)
    return Reading(node, function, values, folders, None, reductions, fp, examples=examples)


def run(
    program: CompiledProgram | Given,
    inputs: Mapping[str, npt.ArrayLike] | None = None,
    *,
    check: bool = False,
) -> RunResult:
    """Run a compiled program once, with its inputs by name, and tell how long it took.

    ``inputs``: parameters, scalars and arrays; None, or only scalars: the arrays are small integers from a
    fixed seed. The given arrays stay as they are. ``check`` compares with the NumPy evaluator: equal where
    the inputs were made up and the program only adds, multiplies and compares, else within a bound.

    Errors: ``argument-...``, ``parameter-...``, ``input-...``, ``device-...``.
    """
    return run_program(_compiled(program), dict(inputs or {}), check=check)


def _compiled(program: CompiledProgram | Given) -> CompiledProgram:
    """Return a compiled program, or make one of a source for the first device."""
    return program if isinstance(program, CompiledProgram) else compile(program)


def tune(
    program: CompiledProgram | Given,
    inputs: Mapping[str, npt.ArrayLike] | None = None,
    *,
    budget: float = 60.0,
    evaluations: int | None = None,
    seed: int = 0,
    database: Path | None = None,
    progress: Callable[[TuneProgress], None] | None = None,
) -> tuple[Tuned, ...]:
    """Search for the fastest schedules of a program's md_homs; its next call uses them.

    ``inputs``: its integer parameters, or arrays whose shapes they follow from; what the arrays hold does not
    matter. ``budget``: seconds; ``evaluations``: schedules for each md_hom at most. ``database``: where the
    results are kept; None: the user's own. ``progress`` is called after each schedule. In the end a program
    of C is compared with the C program, on made-up inputs; Python warns where that is not possible.

    Errors: ``check-mismatch``, ``parameter-...``, ``device-...``, ``tuning-...``, ``database-...``.
    Source: docs/tuning.md.
    """
    if not 0 < budget < math.inf or (evaluations is not None and evaluations < 1):
        helps = ["a budget is a positive number of seconds; at least one evaluation is needed"]
        raise PolyloomError(error("tuning-budget", "there is nothing to spend on tuning", helps=helps))
    program = _compiled(program)
    given = {**program.constants, **(inputs or {})}
    options = TuneOptions(budget=budget, evaluations=evaluations, seed=seed)
    path = default_path() if database is None else pathlib.Path(database)
    with Database(path) as results:
        found = tune_opencl([program.program], given, program.device, results, options, progress)
    program.refresh()
    if found and not any(each.interrupted for each in found):
        _check_tuned(program, known_parameters(program.program, given))
    return found


def _check_tuned(program: CompiledProgram, parameters: Mapping[str, int]) -> None:
    try:
        result = check_tuned(program, parameters)
    except PolyloomError as fault:
        reason = fault.diagnostics[0].message
        warnings.warn(f"`{program.program.name}` was not checked: {reason}", stacklevel=3)
        return
    if result is not None and result.expected is not None and not result.passed:
        raise check_mismatch(result.expected, result.mismatches)


def _check_numbers(invocations: int, density: float) -> None:
    if invocations < 1:
        raise PolyloomError(
            error("invocations", f"{invocations} invocations", helps=["at least one is needed"])
        )
    if not 0 <= density <= 1:
        raise PolyloomError(
            error("density", f"a density of {density}", helps=["it is a fraction, from 0 to 1"])
        )


def _shape(name: str) -> ReductionShape:
    known = [shape.value for shape in ReductionShape]
    if name not in known:
        helps = [f"known are {', '.join(known)}"]
        raise PolyloomError(error("reduction-unknown", f"there is no reduction `{name}`", helps=helps))
    return ReductionShape(name)


def machine_model(name: str, memory: int | None = None) -> Machine:
    """Return a machine model, with ``memory`` bytes for data where they are given."""
    model = load_machine(name)
    return model if memory is None else replace(model, sram_bytes=memory, reserved_bytes=0)


def _extensions(names: Sequence[str]) -> frozenset[Extension]:
    try:
        return without(*names)
    except ValueError as unknown:
        known = ", ".join(extension.value for extension in Extension)
        raise PolyloomError(
            error("simd-extension", f"there is no such step: {unknown}", helps=[f"there are {known}"])
        ) from None


def _mode(name: str) -> SimdMode:
    try:
        return SimdMode(name)
    except ValueError:
        known = ", ".join(mode.value for mode in SimdMode)
        raise PolyloomError(
            error("simd-mode", f"there is no mode `{name}`", helps=[f"there are {known}"])
        ) from None
