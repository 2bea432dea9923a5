"""Cycles of every layer of examples/layers.txt, with and without SIMD, without zeros and at 50 %.

A second table gives the gain of each extension of the paper: the cycles of the layers in which it takes part,
with all of them and without this one.

Usage: python benchmarks/wafer_cycles.py [--machine cs1|cs2|cs3] [--markdown] [--update]
`--update` writes benchmarks/wafer_cycles.json, which a test compares (for cs2).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from corpus import Layer, compiled, inputs_of, layers, mistakes, together
from rich.console import Console
from rich.progress import track
from rich.table import Table

from polyloom.polyhedra.bounds import integer_bounds
from polyloom.wafer.machine.options import ALL_EXTENSIONS, Extension
from polyloom.wafer.program.wafer_program import WaferProgram
from polyloom.wafer.simd.decision import SimdAnalysis, SimdMode, Strategy
from polyloom.wafer.simulation.run import Simulation, simulate_program

GOLDEN = Path(__file__).with_suffix(".json")
DENSITIES = (1.0, 0.5)
MACHINES = ("cs1", "cs2", "cs3")
WIDTH = 190
"""Characters of a line of the table where the terminal is narrower, or there is none."""


@dataclass(frozen=True)
class Cycles:
    """Cycles of one invocation with ``--simd off`` and ``auto``, and what no code can beat."""

    off: int
    auto: int
    limit: int


@dataclass(frozen=True)
class Row:
    """One layer. ``tasks``: strategy, instruction, sizes of each; ``half``: None if nothing is sparse.

    ``without``: for each extension that takes part, the cycles at full density if it is switched off.
    """

    tasks: tuple[str, ...]
    full: Cycles
    half: Cycles | None
    without: dict[str, int]


def measure(layer: Layer, machine: str, *, gains: bool = True) -> Row:
    """Compile and simulate a layer; what comes out is checked as well.

    ``gains``: also without each extension that takes part.
    """
    auto = compiled(layer, SimdMode.AUTO, machine)
    off = compiled(layer, SimdMode.OFF, machine)
    full, half = (_cycles(off, auto, density) for density in DENSITIES)
    tasks = tuple(_task(analysis) for analysis in auto.analysis.simd)
    without = _without(layer, machine, auto) if gains else {}
    return Row(tasks, full, half if _has_zeros(auto) else None, without)


def _without(layer: Layer, machine: str, auto: WaferProgram) -> dict[str, int]:
    used = {effect.extension for analysis in auto.analysis.simd for effect in analysis.effects}
    found: dict[str, int] = {}
    for extension in (e for e in Extension if e in used):
        program = layer.compile(SimdMode.AUTO, machine, ALL_EXTENSIONS - {extension})
        found[extension.value] = _simulated(program, DENSITIES[0]).cycles
    return found


def as_json(row: Row) -> dict[str, Any]:
    """Return a row as the golden file has it."""
    return json.loads(json.dumps(asdict(row)))


def read_golden() -> dict[str, Any]:
    """Return the rows of the golden file, by the layer's name."""
    rows: dict[str, Any] = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    return rows


def write_golden(rows: dict[str, Any]) -> None:
    """Write the golden file, a line for each layer, in the order of the layers."""
    names = [layer.name for layer in layers() if layer.name in rows]
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(rows[name])}" for name in names)
    GOLDEN.write_text(f"{{\n{lines}\n}}\n")


def _cycles(off: WaferProgram, auto: WaferProgram, density: float) -> Cycles:
    without, best = (_simulated(program, density) for program in (off, auto))
    return Cycles(without.cycles, best.cycles, best.limit.cycles)


def _simulated(program: WaferProgram, density: float) -> Simulation:
    tensors, mapping = program.analysis.program, program.analysis.mapping
    runs = inputs_of(tensors, mapping, density, invocations=1)
    result = simulate_program(program, together(mapping, runs))
    wrong = mistakes(program, mapping, runs, result.outputs)
    if wrong:
        raise SystemExit(f"wrong result: {wrong}")
    return result


def _has_zeros(program: WaferProgram) -> bool:
    mapping = program.analysis.mapping
    return any(name in mapping.inputs for name in mapping.sparse)


def _task(analysis: SimdAnalysis) -> str:
    if analysis.strategy is Strategy.NONE or analysis.match is None:
        return "none"
    return f"{analysis.strategy.value} {analysis.match.instruction.name} {_sizes(analysis)}"


def _sizes(analysis: SimdAnalysis) -> str:
    """Return the sizes over all PEs and indices, as ``3 x 1..3``."""
    assert analysis.sizes is not None
    bounds = integer_bounds(analysis.sizes)
    return " x ".join(str(low) if low == high else f"{low}..{high}" for low, high in bounds)


def _cells(row: Row) -> Iterator[str]:
    yield "; ".join(dict.fromkeys(row.tasks))
    for cycles in (row.full, row.half):
        yield from ("", "", "", "", "") if cycles is None else _columns(row, cycles)


def _columns(row: Row, cycles: Cycles) -> Iterator[str]:
    yield str(cycles.off)
    yield str(cycles.auto)
    yield f"{cycles.off / cycles.auto:.2f}"
    yield str(cycles.limit)
    found = any(task != "none" for task in row.tasks)
    yield f"{cycles.auto / cycles.limit:.1f}" if found else ""


HEADINGS = ("layer", "strategy, instruction, sizes", *2 * ("off", "auto", "speed-up", "limit", "auto/limit"))


def _markdown(rows: dict[str, Row]) -> Iterator[str]:
    groups = [*HEADINGS[:2], *HEADINGS[2:7], *(f"{heading}, half zero" for heading in HEADINGS[7:])]
    yield f"| {' | '.join(groups)} |"
    yield f"|---|---|{'---:|' * 10}"
    for name, row in rows.items():
        yield f"| {' | '.join([f'`{name}`', *_cells(row)])} |"


def _table(rows: dict[str, Row], machine: str) -> Table:
    table = Table(title=f"Cycles of one invocation on {machine}; right half: half of the elements are zero")
    for number, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if number < 2 else "right", no_wrap=True)
    for name, row in rows.items():
        table.add_row(name, *_cells(row))
    return table


def _gains(rows: dict[str, Row]) -> Iterator[tuple[str, ...]]:
    """Yield extension, layer, cycles without and with it, and their ratio, where they differ."""
    for extension in Extension:
        for name, row in rows.items():
            off, on = row.without.get(extension.value), row.full.auto
            if off is not None and off != on:
                yield extension.value, name, str(off), str(on), f"{off / on:.2f}"


GAINS = ("extension", "layer", "off", "on", "speed-up")


def _gains_markdown(rows: dict[str, Row]) -> Iterator[str]:
    yield f"| {' | '.join(GAINS)} |"
    yield "|---|---|---:|---:|---:|"
    for cells in _gains(rows):
        yield f"| {' | '.join(cells)} |"


def _gains_table(rows: dict[str, Row], machine: str) -> Table:
    table = Table(title=f"The gain of each extension of the paper: cycles of one invocation on {machine}")
    for number, heading in enumerate(GAINS):
        table.add_column(heading, justify="left" if number < 2 else "right", no_wrap=True)
    for cells in _gains(rows):
        table.add_row(*cells)
    return table


@click.command(help=__doc__)
@click.option("--machine", type=click.Choice(MACHINES), default="cs2", show_default=True)
@click.option("--markdown", is_flag=True, help="Print the README's table.")
@click.option("--update", is_flag=True, help="Rewrite the golden file (cs2).")
def main(machine: str, markdown: bool, update: bool) -> None:
    progress = Console(stderr=True)
    rows = {layer.name: measure(layer, machine) for layer in track(layers(), "Simulating", console=progress)}
    if update and machine == "cs2":
        write_golden({name: as_json(row) for name, row in rows.items()})
    if markdown:
        print("\n".join([*_markdown(rows), "", *_gains_markdown(rows)]))
    else:
        out = Console(width=max(Console().width, WIDTH))
        out.print(_table(rows, machine))
        out.print(_gains_table(rows, machine))


if __name__ == "__main__":
    main()
