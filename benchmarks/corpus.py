"""The layers of examples/layers.txt: compiled, with made-up inputs, and what they ought to give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Source
from polyloom.frontends.lair.lower import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import Program, evaluate, random_inputs
from polyloom.pipeline import analyse_layer
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.machine.options import ALL_EXTENSIONS, Extension
from polyloom.wafer.mapping.mapping import Mapping as LairMap
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.program.wafer_program import WaferProgram, compile_program
from polyloom.wafer.simd.decision import SimdMode, SimdOptions
from polyloom.wafer.simulation.check import check_outputs

EXAMPLES = Path(__file__).parents[1] / "examples"
Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Layer:
    """A LAIR file and a map, without their endings, and ``NAME=VALUE`` for sizes and types."""

    map: str
    source: str
    defines: tuple[str, ...]

    @property
    def name(self) -> str:
        return " ".join([self.map, *self.defines])

    def program(self) -> Program:
        return _program(self.source, self.defines)

    def mapping(self, program: Program) -> LairMap:
        return read_mapping(_source(f"{self.map}.map"), program)

    def compile(
        self, mode: SimdMode, machine: str = "cs2", extensions: frozenset[Extension] = ALL_EXTENSIONS
    ) -> WaferProgram:
        model = load_machine(machine)
        return compile_program(self.analyse(SimdOptions(mode, extensions=extensions, machine=model)), model)

    def analyse(self, options: SimdOptions) -> LayerAnalysis:
        """Return what is decided before code is generated."""
        program = self.program()
        return analyse_layer(program, self.mapping(program), options)


@cache
def _program(source: str, defines: tuple[str, ...]) -> Program:
    return lower(parse(_source(f"{source}.lair")), None, dict(define.split("=") for define in defines))


def layers() -> tuple[Layer, ...]:
    """Return the layers, in the order of the file."""
    lines = (line.split() for line in (EXAMPLES / "layers.txt").read_text().splitlines())
    return tuple(Layer(w[0], w[1], tuple(w[2:])) for w in lines if w and w[0] != "#")


@cache
def compiled(layer: Layer, mode: SimdMode, machine: str) -> WaferProgram:
    """Return what ``compile`` gives, made once; not for whoever changes the compiler in between."""
    return compile_program(analysed(layer, mode, machine), load_machine(machine))


@cache
def analysed(layer: Layer, mode: SimdMode, machine: str) -> LayerAnalysis:
    """Return the analysis of what ``compiled`` returns, made once."""
    return layer.analyse(SimdOptions(mode, machine=load_machine(machine)))


def _source(name: str) -> Source:
    return Source(name, (EXAMPLES / name).read_text())


def inputs_of(program: Program, mapping: LairMap, density: float, invocations: int) -> list[Arrays]:
    """Return the inputs of each invocation; residents are the same in all of them."""
    sparse = dict.fromkeys(mapping.sparse, density)
    runs = [random_inputs(program, seed, sparse) for seed in range(invocations)]
    resident = {k: v for k, v in runs[0].items() if k not in mapping.inputs}
    return [{**run, **resident} for run in runs]


def together(mapping: LairMap, runs: list[Arrays]) -> Arrays:
    """Return the arrays that the simulator takes: streams of several invocations have an axis for them."""
    if len(runs) == 1:
        return runs[0]
    return {k: np.stack([run[k] for run in runs]) if k in mapping.inputs else runs[0][k] for k in runs[0]}


def expected(program: Program, mapping: LairMap, runs: list[Arrays]) -> Arrays:
    """Return what must come out by the evaluator, one invocation after the other."""
    results: list[Arrays] = []
    state: Arrays = {}
    for run in runs:
        results.append(evaluate(program, {**run, **state}))
        state = {old: results[-1][new] for old, new in mapping.state}
    if len(runs) == 1:
        return {name: results[0][name] for name in program.outputs}
    return {name: _of_all(mapping, name, results) for name in program.outputs}


def _of_all(mapping: LairMap, name: str, results: list[Arrays]) -> npt.NDArray[Any]:
    """Return what left through ports from all invocations, what stays from the last one."""
    return np.stack([r[name] for r in results]) if name in mapping.outputs else results[-1][name]


def mistakes(
    compiled: WaferProgram, mapping: LairMap, runs: list[Arrays], found: Mapping[str, npt.NDArray[Any]]
) -> list[str]:
    """Return what is wrong with results: bits that differ, or too large errors.

    Of what hangs on the order of a sum, as small integers do not, or on an approximate function.
    """
    program, approximate = compiled.analysis.program, compiled.analysis.approximate
    if not differences(found, expected(program, mapping, runs)):
        return []
    given = together(mapping, runs)
    verdict = check_outputs(program, mapping, given, found, len(runs), exactly=True, approximate=approximate)
    return list(verdict.mismatches)


def differences(found: Mapping[str, npt.NDArray[Any]], wanted: Arrays) -> list[str]:
    """Return what is not equal, one line a tensor; empty where all is right."""
    lines = []
    for name, want in wanted.items():
        have = np.asarray(found[name])
        if (have.shape, have.dtype) != (want.shape, want.dtype):
            lines.append(f"{name} is {have.dtype}{have.shape}, not {want.dtype}{want.shape}")
        elif not np.array_equal(have, want):
            at = tuple(int(k) for k in np.argwhere(have != want)[0])
            lines.append(f"{name}{list(at)} is {have[at]}, not {want[at]}")
    return lines
