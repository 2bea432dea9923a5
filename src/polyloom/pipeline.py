"""The pipelines: one function per target, every stage once, one line each, in order."""

from __future__ import annotations

from collections import abc
from dataclasses import replace
from functools import partial
from math import inf
from weakref import WeakKeyDictionary

from polyloom.diagnostics import PolyloomError, Source
from polyloom.ir.program import Program
from polyloom.polyhedra.effort import TooHardError, keeping_answers, naming
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.array_layout.fabric_use import fabric_uses
from polyloom.wafer.array_layout.order import lay_out, layout_remarks
from polyloom.wafer.border.peeling import peel_border
from polyloom.wafer.codegen.turns import with_turns
from polyloom.wafer.collectives import ReductionShape, plan_reductions
from polyloom.wafer.dataflow.broadcasts import with_broadcasts
from polyloom.wafer.dataflow.local_arrays import allocate
from polyloom.wafer.dataflow.tasks import build_tasks
from polyloom.wafer.decisions import decision, first_decision
from polyloom.wafer.drivers import choose_drivers
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.machine.options import Extension
from polyloom.wafer.mapping.mapping import Mapping
from polyloom.wafer.mapping.supported import check_expressible
from polyloom.wafer.placement.candidates import (
    Candidate,
    GivenUp,
    Price,
    Pricers,
    SearchOptions,
    Wanted,
    priced,
)
from polyloom.wafer.placement.choose import Choice, complete
from polyloom.wafer.placement.cost.model import TooSlow, Watch, estimated_cycles
from polyloom.wafer.program.queue_bound import check_least_queues
from polyloom.wafer.program.wafer_program import WaferProgram, compile_program
from polyloom.wafer.simd.decide import in_better_order
from polyloom.wafer.simd.decision import (
    SimdAnalysis,
    SimdMode,
    SimdOptions,
    Strategy,
    extension_remarks,
    missed_remark,
)
from polyloom.wafer.simd.paper_strategies import enlarge
from polyloom.workers.crew import ALONE, Crew

CHECK_SECONDS = 60.0
"""How long a C program may run with which tuned results are compared."""


def analyse_layer(
    program: Program,
    mapping: Mapping,
    options: SimdOptions,
    reduction: ReductionShape = ReductionShape.AUTO,
) -> LayerAnalysis:
    """Run the wafer back end up to SIMD detection. Source: dtg_codegen, Sec. 4 and 5.

    What drives statements is chosen by the cost of what comes out, where the map leaves it open.
    """
    check_expressible(program)
    analysis, compared = choose_drivers(
        program,
        mapping,
        lambda changed: _analysed(program, changed, options, reduction),
        lambda changed: _cycles(changed, inf).cycles,
    )
    drivers = tuple(estimate for estimate, _ in compared)
    return replace(analysis, drivers=drivers, compared=tuple(other for _, other in compared))


def _analysed(
    program: Program,
    mapping: Mapping,
    options: SimdOptions,
    reduction: ReductionShape = ReductionShape.AUTO,
    limit: float = inf,
    *,
    fitting: bool = False,
) -> LayerAnalysis:
    """Run the same stages under a map as it stands: the last stream drives where it does not say.

    Instructions are chosen for arrays as they are and for arrays in the order that suits them, if that is
    another choice, and the cheaper layer is taken. Above ``limit`` cycles it does not matter which.
    ``fitting``: a layer that takes too many queues is refused as soon as that is known.
    """
    border = peel_border(program, mapping)
    with naming("which tasks there are, and their order"):
        tasks = build_tasks(program, border.compute, border.written)
    with naming("what routers copy along lines"):
        simple = with_broadcasts(tasks, options.machine, len(border.adapters))
    if fitting:
        check_least_queues(simple, border, options.machine)
    grid = border.compute.grid
    with_simd = options.mode is not SimdMode.OFF
    with naming("the order of the reductions"):
        graph, reductions = plan_reductions(simple, border, options.machine, reduction, simd=with_simd)
    with naming("what PEs keep, and which instructions may work on it"):
        arrays = allocate(graph)
        found = tuple(first_decision(task, arrays, options, graph) for task in graph.compute)

    def decided(transposable: bool) -> tuple[SimdAnalysis, ...]:
        return tuple(decision(each, arrays, options, transposable=transposable) for each in found)

    def analysis(simd: tuple[SimdAnalysis, ...]) -> LayerAnalysis:
        with naming("how arrays lie in the PEs' memory"):
            fabric = tuple(fabric_uses(graph, arrays, options, grid.width * grid.height))
            laid_out = lay_out(enlarge(arrays, simd), simd, border.compute.state, options, fabric)
        wanted = simd if options.mode is not SimdMode.OFF else ()
        missed = [r for a in wanted if (r := missed_remark(a)) is not None]
        with naming("in which turn tasks send"):
            in_turn = with_turns(graph, laid_out, border, options)
        used = (*(r for a in simd for r in extension_remarks(a)), *layout_remarks(program, laid_out))
        return LayerAnalysis(
            program=program,
            mapping=border.compute,
            border=border,
            options=options,
            graph=in_turn,
            reductions=reductions,
            arrays_before=arrays,
            arrays=laid_out,
            simd=simd,
            remarks=(*graph.remarks, *missed),
            extension_remarks=used,
        )

    plain = decided(transposable=False)
    with naming("whether arrays in another order suit the instructions"):
        searched = any(
            a.steps or a.strategy is Strategy.NONE or in_better_order(a, arrays, options) is not a
            for a in plain
        )
    if not searched or options.mode is not SimdMode.AUTO or not options.has(Extension.TRANSPOSED_ARRAYS):
        return analysis(plain)
    other = decided(transposable=True)
    if all(a.done_like(b) for a, b in zip(plain, other, strict=True)):
        return analysis(plain)
    return _cheaper(analysis(plain), lambda: analysis(other), limit)


def _cheaper(
    analysis: LayerAnalysis, make_other: abc.Callable[[], LayerAnalysis], limit: float
) -> LayerAnalysis:
    """Return the first of two analyses of a layer, or the other one where that takes fewer cycles.

    The other one is not compiled further once it takes more than the first.
    """
    first = _price(analysis, limit)
    other = make_other()
    return other if _price(other, min(first, limit)) < first else analysis


def _price(analysis: LayerAnalysis, limit: float) -> float:
    """Return the estimated cycles of an invocation; infinite where the layer is refused."""
    try:
        return _cycles(analysis, limit).cycles
    except PolyloomError:
        return inf


def _cycles(analysis: LayerAnalysis, limit: float) -> Price:
    """Return the estimated cycles; callers ask again for what ``_analysed`` has compared.

    A layer is not compiled further once its roles so far take more than ``limit``.
    """
    known = _PRICES.get(analysis)
    if known is None or (known.at_least and known.cycles <= limit):
        known = _PRICES[analysis] = _compiled_cycles(analysis, limit)
    return known


_PRICES: WeakKeyDictionary[LayerAnalysis, Price] = WeakKeyDictionary()
"""What analyses that are still in use cost."""


def _compiled_cycles(analysis: LayerAnalysis, limit: float) -> Price:
    machine = analysis.options.machine
    watch = Watch(analysis, machine, limit)
    try:
        return Price(estimated_cycles(compile_program(analysis, machine, files=False, onlooker=watch)))
    except TooSlow as found:
        return Price(found.cycles, at_least=True)
    except TooHardError as fault:
        raise GivenUp(str(fault), watch.cycles) from fault


def complete_mapping(
    source: Source | None,
    program: Program,
    machine: Machine,
    size: tuple[int, int] | None = None,
    options: SearchOptions | None = None,
    crew: Crew = ALONE,
) -> Choice:
    """Return a map's mapping, with what it leaves open chosen; ``size`` is taken in place of the map's.

    ``crew``: who compiles maps that are compared.

    Source: dtg_codegen, Sec. 4.1.2 (a direction, and its future work).
    """
    check_expressible(program)

    def price(program: Program, wanted: abc.Sequence[Wanted]) -> abc.Sequence[Candidate]:
        return crew.each(_candidate, [(program, machine, each) for each in wanted])

    return complete(source, program, machine, Pricers(crew.size, price), size, options)


def _candidate(task: tuple[Program, Machine, Wanted]) -> Candidate:
    program, machine, wanted = task
    return priced(program, wanted, partial(_estimated, machine=machine))


def _estimated(program: Program, mapping: Mapping, limit: float, machine: Machine) -> Price:
    with keeping_answers():
        options = SimdOptions(machine=machine)
        return _cycles(_analysed(program, mapping, options, limit=limit, fitting=True), limit)


def compile_layer(analysis: LayerAnalysis, machine: Machine) -> WaferProgram:
    """Run the rest of the wafer back end: routes, the programs of the roles, the emitted files."""
    return compile_program(analysis, machine)
