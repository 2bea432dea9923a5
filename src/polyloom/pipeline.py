"""The pipelines: one function per target, every stage once, one line each, in order."""

from __future__ import annotations

from polyloom.ir.program import Program
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.expressible import check_expressible
from polyloom.wafer.mapping import Mapping
from polyloom.wafer.memory import allocate
from polyloom.wafer.program import WaferProgram, compile_program
from polyloom.wafer.simd import SimdMode, SimdOptions, analyse, enlarge, missed_remark
from polyloom.wafer.simulator.machine import Machine
from polyloom.wafer.tasks import build_tasks
from polyloom.wafer.whole_stream import whole_stream


def analyse_layer(program: Program, mapping: Mapping, options: SimdOptions) -> LayerAnalysis:
    """Run the wafer back end up to SIMD detection. Source: dtg_codegen, Sec. 4 and 5."""
    check_expressible(program)
    graph = build_tasks(program, mapping)
    arrays = allocate(graph)
    simd = tuple(analyse(task, arrays, options, whole_stream(task, graph)) for task in graph.compute)
    enlarged = enlarge(arrays, simd)
    wanted = simd if options.mode is not SimdMode.OFF else ()
    missed = [r for a in wanted if (r := missed_remark(a)) is not None]
    return LayerAnalysis(program, mapping, options, graph, arrays, enlarged, simd, (*graph.remarks, *missed))


def compile_layer(analysis: LayerAnalysis, machine: Machine) -> WaferProgram:
    """Run the rest of the wafer back end: routes, the programs of the roles, the emitted files."""
    return compile_program(analysis, machine)
