"""Reductions along a row of PEs: what the model says and what the simulator counts, for each shape.

    benchmarks/reductions.py [PES ...] [--elements E ...] [--machine cs2]

A row sums float32 vectors into the memory of its last PE. Cycles are those of the whole layer; the
model's are shifted by what the chain's run takes beyond its model, so that shapes can be compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import random_inputs
from polyloom.pipeline import analyse_layer, compile_layer
from polyloom.wafer.collectives import Estimate, ReductionShape
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.simd.decision import SimdOptions
from polyloom.wafer.simulation.run import simulate_program

LAIR = "lair red(): float32 x[{P}][{B}] -> float32 y[{B}]\n{{ all (p, i) in ({P}, {B}) y[i] += x[p][i] }}\n"
MAP = "size: {{ PE[{P}, 1] }}\ncompute_map: {{ red[p, i] -> PE[p, 0] }}\n"


@dataclass(frozen=True)
class Measured:
    """One shape: what was chosen, and the cycles that the simulator counted."""

    chosen: Estimate
    cycles: int


def measure(pes: int, elements: int, shape: ReductionShape, machine: str) -> Measured:
    """Reduce a row of ``pes`` vectors in a shape."""
    program = lower(parse(Source("red.lair", LAIR.format(P=pes, B=elements))), None, {})
    mapping = read_mapping(Source("red.map", MAP.format(P=pes)), program)
    model = load_machine(machine)
    analysis = analyse_layer(program, mapping, SimdOptions(machine=model), shape)
    run = simulate_program(compile_layer(analysis, model), random_inputs(program, 1, 1.0))
    return Measured(analysis.reductions[0].chosen, run.cycles)


def row(pes: int, elements: int, machine: str) -> str:
    """Return a line of the table."""
    found = {shape: measure(pes, elements, shape, machine) for shape in ReductionShape}
    chain = found[ReductionShape.CHAIN]
    beyond = chain.cycles - chain.chosen.cycles
    texts = [f"{pes:5} {elements:9}"]
    for shape in (ReductionShape.CHAIN, ReductionShape.TWO_PHASE, ReductionShape.TREE):
        one = found[shape]
        texts.append(f"{one.chosen.cycles + beyond:7} {one.cycles:7}")
    auto, best = found[ReductionShape.AUTO], min(one.cycles for one in found.values())
    groups = "x".join(map(str, auto.chosen.groups))
    return "  ".join([*texts, f"{auto.cycles:7} {auto.cycles / best:5.2f}  {groups}"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pes", nargs="*", type=int, default=[4, 8, 16, 32, 64, 128, 256, 512])
    parser.add_argument("--elements", nargs="*", type=int, default=[1, 4, 16, 64, 256, 1024])
    parser.add_argument("--machine", default="cs2")
    given = parser.parse_args(arguments)
    print("  PEs  elements    chain: model, run   two-phase         tree              auto, / best, groups")
    for pes in given.pes:
        for elements in given.elements:
            print(row(pes, elements, given.machine), flush=True)


if __name__ == "__main__":
    main()
