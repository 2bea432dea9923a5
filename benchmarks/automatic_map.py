"""Automatic maps against the hand-written ones of examples/, and against random maps.

Usage: python benchmarks/automatic_map.py [--random N] [--seed S] [--least N] [--jobs J] [LAYER ...]

Every map of a layer on the same rectangle, with the same tensors streamed, sent and sparse, counts as the
same case; the automatic map gets that rectangle and those tensors and nothing else. All are simulated on the
same data, dense, one invocation, and checked. Random maps: the best of N legal ones, for layers with at most
MOST_INSTANCES instances. A ratio above GOAL is a miss and marked.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import prod
from random import Random

import click
from corpus import Layer, inputs_of, layers, mistakes, together
from random_maps import random_map
from rich.console import Console
from rich.table import Table

from polyloom.diagnostics import PolyloomError, Source, Unsupported
from polyloom.ir import Program
from polyloom.pipeline import analyse_layer, complete_mapping
from polyloom.polyhedra.effort import TooHardError, at_most
from polyloom.wafer.machine.model import Machine, load_machine
from polyloom.wafer.mapping.mapping import Mapping
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.placement.choose import Choice
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdOptions
from polyloom.wafer.simulation.run import simulate_program

GOAL = 1.3
MOST_INSTANCES = 300
"""Of a layer that is compared with random maps."""

EFFORT = 3_000_000
"""Operations of isl for a random map: a few take hours, and are drawn again."""


@dataclass(frozen=True)
class Case:
    """Maps of one layer that differ in placement and ports only: ``hand``: their names."""

    program: Program
    like: Mapping
    hand: tuple[Layer, ...]

    @property
    def name(self) -> str:
        return self.hand[0].name


@dataclass(frozen=True)
class Row:
    """Cycles of the best hand-written, the automatic and the best random map."""

    hand: int | None
    automatic: int
    estimated: float
    random: int | None
    seconds: float

    @property
    def ratios(self) -> tuple[float | None, float | None]:
        best = (self.hand, self.random)
        by_hand, by_random = (None if b is None else self.automatic / b for b in best)
        return by_hand, by_random


def cases(chosen: tuple[str, ...] = ()) -> Iterator[Case]:
    """Yield the cases of examples/layers.txt, or of those layers whose names hold one of ``chosen``."""
    by_source: dict[tuple[str, tuple[str, ...]], list[Layer]] = {}
    for layer in layers():
        if not chosen or any(c in layer.name for c in chosen):
            by_source.setdefault((layer.source, layer.defines), []).append(layer)
    for group in by_source.values():
        yield from _cases_of(group[0].program(), group)


def _cases_of(program: Program, group: list[Layer]) -> Iterator[Case]:
    found: dict[object, list[tuple[Layer, Mapping]]] = {}
    for layer in group:
        mapping = layer.mapping(program)
        moving = (frozenset(names) for names in (mapping.inputs, mapping.outputs, mapping.sparse))
        found.setdefault((mapping.grid, *moving, mapping.state), []).append((layer, mapping))
    for same in found.values():
        yield Case(program, same[0][1], tuple(layer for layer, _ in same))


def what_is_given(like: Mapping) -> str:
    """Return the map that automatic mapping gets: rectangle, streams, sparse tensors, state."""
    lines = [f"size: {{ PE[{like.grid.width}, {like.grid.height}] }}"]
    for key, ports in (("iport_map", like.inputs), ("oport_map", like.outputs)):
        lines.append(f"{key}: auto {', '.join(ports)}" if ports else f"{key}: {{ }}")
    if like.sparse:
        lines.append(f"sparse: {', '.join(like.sparse)}")
    if like.state:
        lines.append(f"state: {', '.join(f'{a} = {b}' for a, b in like.state)}")
    return "\n".join(lines) + "\n"


def automatic(case: Case, machine: Machine) -> Choice:
    """Return the automatic mapping of a case."""
    return complete_mapping(Source("<what is given>", what_is_given(case.like)), case.program, machine)


def cycles_of(program: Program, mapping: Mapping, machine: Machine) -> int:
    """Compile, simulate and check a layer."""
    analysis = analyse_layer(program, mapping, SimdOptions(machine=machine))
    runs = inputs_of(program, mapping, 1.0, 1)
    compiled = compile_program(analysis, machine)
    result = simulate_program(compiled, together(mapping, runs))
    wrong = mistakes(compiled, mapping, runs, result.outputs)
    if wrong:
        raise SystemExit(f"wrong result: {wrong}")
    return result.cycles


def best_random(case: Case, machine: Machine, count: int, seed: int) -> int | None:
    """Return the fewest cycles of so many legal random maps; None where ten times as many gave none."""
    random, best, legal = Random(seed), None, 0
    for _ in range(10 * count):
        if legal == count:
            break
        try:
            with at_most(EFFORT):
                text = random_map(random, case.program, case.like)
                mapping = read_mapping(Source("<random map>", text), case.program)
                found = cycles_of(case.program, mapping, machine)
        except (PolyloomError, TooHardError):
            continue
        legal += 1
        best = found if best is None else min(best, found)
    return best


def instances(program: Program) -> int:
    return sum(prod(statement.domain) for statement in program.statements)


def _hand(case: Case, layer: Layer, machine: Machine) -> int | None:
    """Return the cycles of a hand-written map; None where it does not fit on the machine."""
    try:
        return cycles_of(case.program, layer.mapping(case.program), machine)
    except Unsupported as refused:
        click.echo(f"{layer.name}: {refused}", err=True)
        return None


def measure(case: Case, machine: Machine, random_maps: int, seed: int) -> Row:
    """Measure a case."""
    hand = min(filter(None, (_hand(case, layer, machine) for layer in case.hand)), default=None)
    began = time.perf_counter()
    choice = automatic(case, machine)
    seconds = time.perf_counter() - began
    found = cycles_of(case.program, choice.mapping, machine)
    small = random_maps and instances(case.program) <= MOST_INSTANCES
    drawn = best_random(case, machine, random_maps, seed) if small else None
    return Row(hand, found, choice.candidates[0].cycles, drawn, seconds)


@click.command()
@click.option("--machine", type=click.Choice(["cs1", "cs2", "cs3"]), default="cs2", show_default=True)
@click.option("--random", "random_maps", metavar="N", default=200, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--least", default=1, show_default=True, help="Only cases of at least so many instances.")
@click.option("--jobs", default=1, show_default=True, help="Cases measured at once; cycles stay the same.")
@click.option("--markdown", is_flag=True)
@click.argument("chosen", nargs=-1)
def main(
    machine: str, random_maps: int, seed: int, least: int, jobs: int, markdown: bool, chosen: tuple[str, ...]
) -> None:
    """Print a table of all cases, the smallest first."""
    model = load_machine(machine)
    large = (case for case in cases(chosen) if instances(case.program) >= least)
    found = sorted(large, key=lambda case: instances(case.program))
    rows: dict[str, Row] = {}
    with ProcessPoolExecutor(jobs) as pool:
        measured = pool.map(partial(measure, machine=model, random_maps=random_maps, seed=seed), found)
        for case, row in zip(found, measured, strict=True):
            rows[case.name] = row
            click.echo(f"{case.name:<40} {row}", err=True)
    _print(rows, markdown=markdown)


def _print(rows: dict[str, Row], *, markdown: bool) -> None:
    header = ["layer", "hand", "automatic", "/ hand", "random", "/ random", "estimated", "s", ""]
    lines = [_line(name, row) for name, row in rows.items()]
    if markdown:
        click.echo(
            "\n".join("| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *lines])
        )
    else:
        table = Table(*header, box=None)
        for line in lines:
            table.add_row(*line)
        Console(width=130).print(table)
    over = [name for name, row in rows.items() if any(r is not None and r > GOAL for r in row.ratios)]
    click.echo(f"{len(rows)} cases, {len(over)} above {GOAL}: {', '.join(over) or 'none'}")


def _line(name: str, row: Row) -> list[str]:
    by_hand, by_random = row.ratios
    miss = any(r is not None and r > GOAL for r in row.ratios)
    drawn = ["", ""] if by_random is None else [str(row.random), f"{by_random:.2f}"]
    by_hand_text = "" if by_hand is None else f"{by_hand:.2f}"
    numbers = [str(row.hand or ""), str(row.automatic), by_hand_text, *drawn]
    return [name, *numbers, f"{row.estimated:.0f}", f"{row.seconds:.1f}", "miss" if miss else ""]


if __name__ == "__main__":
    main()
