"""The cost model of automatic mapping against the simulator: estimated and simulated cycles.

Usage: python benchmarks/placement_model.py [--machine M] [--cases N] [--random N] [--seed S] [LAYER ...]

For cases of benchmarks/automatic_map.py (--cases 20: some of them, at even distances): its hand-written maps
and random ones, dense data, one invocation. Printed: the smallest and largest ratio estimated / simulated,
Spearman's rank correlation within the case, and by how much the map with the smallest estimate is slower than
the fastest one. The last line has the ratios of all maps, the mean correlation, the mean and worst loss of
the cases. Nothing in the model is fitted to these layers: all its numbers are the machine's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import click
import numpy as np
from automatic_map import EFFORT, Case, cases
from corpus import inputs_of, together
from random_maps import random_map
from ranks import rank_correlation
from rich.console import Console
from rich.table import Table

from polyloom.diagnostics import PolyloomError, Source
from polyloom.pipeline import analyse_layer
from polyloom.polyhedra.effort import TooHardError, at_most
from polyloom.wafer.machine.model import Machine, load_machine
from polyloom.wafer.mapping.mapping import Mapping
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.placement.cost.model import estimated_cycles
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdOptions
from polyloom.wafer.simulation.run import simulate_program


@dataclass(frozen=True)
class Point:
    """One map: what the model says, and what the simulator says."""

    estimated: float
    simulated: int

    @property
    def ratio(self) -> float:
        return self.estimated / self.simulated


def points_of(case: Case, machine: Machine, random_maps: int, seed: int) -> list[Point]:
    """Return the points of a case's maps."""
    mappings = [layer.mapping(case.program) for layer in case.hand]
    return [p for m in (*mappings, *_drawn(case, random_maps, seed)) if (p := _point(case, m, machine))]


def _drawn(case: Case, count: int, seed: int) -> Iterator[Mapping]:
    random = Random(seed)
    for _ in range(count):
        try:
            with at_most(EFFORT):
                mapping = read_mapping(
                    Source("<random map>", random_map(random, case.program, case.like)), case.program
                )
        except (PolyloomError, TooHardError):
            continue
        yield mapping


def _point(case: Case, mapping: Mapping, machine: Machine) -> Point | None:
    """Return a map's point; None where a check refuses it."""
    try:
        with at_most(EFFORT):
            analysis = analyse_layer(case.program, mapping, SimdOptions(machine=machine))
            program = compile_program(analysis, machine)
            estimated = estimated_cycles(program)
            data = together(mapping, inputs_of(case.program, mapping, 1.0, 1))
            return Point(estimated, simulate_program(program, data).cycles)
    except (PolyloomError, TooHardError):
        return None


def correlation(points: Sequence[Point]) -> float:
    """Return Spearman's coefficient of estimated and simulated cycles."""
    return rank_correlation([p.estimated for p in points], [p.simulated for p in points])


def loss(points: Sequence[Point]) -> float:
    """Return how much slower the map with the smallest estimate is than the fastest."""
    chosen = min(points, key=lambda p: p.estimated)
    return chosen.simulated / min(p.simulated for p in points)


@click.command()
@click.option("--machine", type=click.Choice(["cs1", "cs2", "cs3"]), default="cs2", show_default=True)
@click.option("--cases", "count", metavar="N", default=0, show_default=True, help="0: all.")
@click.option("--random", "random_maps", metavar="N", default=8, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.argument("chosen", nargs=-1)
def main(machine: str, count: int, random_maps: int, seed: int, chosen: tuple[str, ...]) -> None:
    """Print a table of the cases."""
    model = load_machine(machine)
    found: dict[str, list[Point]] = {}
    for case in spread(list(cases(chosen)), count):
        points = points_of(case, model, random_maps, seed)
        if len(points) > 1:
            found[case.name] = points
            click.echo(f"{case.name:<45} {'  '.join(_columns(points))}", err=True)
    table = Table("layer", "maps", "least ratio", "largest ratio", "rank correlation", "loss", box=None)
    for name, points in found.items():
        table.add_row(name, *_columns(points))
    if found:
        table.add_row("all", *_summary(list(found.values())))
    Console(width=120).print(table)


def spread(found: Sequence[Case], count: int) -> list[Case]:
    """Return so many cases at even distances; all for 0."""
    if not 0 < count < len(found):
        return list(found)
    return [found[n * len(found) // count] for n in range(count)]


def _columns(points: Sequence[Point]) -> list[str]:
    ratios = [p.ratio for p in points]
    figures = [min(ratios), max(ratios), correlation(points), loss(points)]
    return [str(len(points)), *(f"{f:.2f}" for f in figures)]


def _summary(found: Sequence[Sequence[Point]]) -> list[str]:
    ratios = [p.ratio for points in found for p in points]
    losses = [loss(points) for points in found]
    mean = np.nanmean([correlation(points) for points in found])
    worst = f"{np.mean(losses):.2f} (at most {max(losses):.2f})"
    return [str(len(ratios)), f"{min(ratios):.2f}", f"{max(ratios):.2f}", f"{mean:.2f}", worst]


if __name__ == "__main__":
    main()
