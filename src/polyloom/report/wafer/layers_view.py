"""The layers of a program on the wafer as two tables: what each needs, and how its tasks are done."""

from __future__ import annotations

from itertools import takewhile

from rich.console import Console
from rich.table import Table
from rich.text import Text

from polyloom.report.terminal import WIDE, console
from polyloom.wafer.explain.layers import LayerRun, ModelRun, TaskShape
from polyloom.wafer.simulation.result import SimulationResult

COLUMNS = ("cycles", "limit", "PEs", "bytes/PE", "wavelets", "SIMD", "other maps")


def print_layers(run: ModelRun) -> None:
    """Print a row for each layer and their sum; then a row for each task, with why it is done by loops."""
    out = console(piped=WIDE)
    out.print(_figures(run))
    if run.of_the_host:
        out.print(_host(run))
    if run.results:
        out.print()
        _print_tasks(run, out)


def _host(run: ModelRun) -> str:
    """Return which layers are left to the host, in one line."""
    names = [layer.layer.name for layer in run.of_the_host]
    shown = ", ".join(names[:_NAMED]) + (" and others" if len(names) > _NAMED else "")
    types = {t.type.value for layer in run.of_the_host for t in layer.layer.program.tensors}
    count = f"{len(names)} layer{'s are' if len(names) > 1 else ' is'} left to the host ({shown})"
    return f"{count}: no other has their tensors, and the machine has no {' or '.join(sorted(types))}"


_NAMED = 3
"""Layers that a line names."""


def _figures(run: ModelRun) -> Table:
    table = Table(box=None, pad_edge=False, show_footer=True)
    total = run.json()["total"]
    table.add_column("layer", footer=f"{total['simulated']} of {total['layers']} layers", overflow="fold")
    names = ("cycles", "limit", "most_pes", "most_memory_bytes", "wavelets")
    footers = [f"{'≤ ' if name.startswith('most') else ''}{total[name]:,}" for name in names]
    for name, footer in zip(COLUMNS, [*footers, "", ""], strict=True):
        table.add_column(name, justify="right", footer=footer, no_wrap=True)
    table.add_column("check", no_wrap=True)
    left = run.of_the_host
    for layer in run.layers:
        table.add_row(*_cells(layer, "the host's" if layer in left else "refused"))
    return table


def _cells(run: LayerRun, otherwise: str) -> list[str | Text]:
    """Return a row; ``otherwise``: what is said of a layer that was not simulated."""
    if run.result is None:
        return [run.layer.name, *("" for _ in COLUMNS), Text(otherwise, style="yellow")]
    s = run.result.simulation
    grid = run.result.program.analysis.border.given.grid
    pes = f"{s.pe_count:,} of {grid.width} x {grid.height}"
    figures = [f"{s.cycles:,}", f"{s.limit.cycles:,}", pes, f"{s.memory_bytes:,}", f"{s.wavelets:,}"]
    used = f"{sum(bool(shape.instruction) for shape in run.shapes)} of {len(run.shapes)}"
    return [run.layer.name, *figures, used, _others(run), _verdict(run.result)]


def _others(run: LayerRun) -> str:
    """Return how many mappings were compared, and what the estimate of the next best one is."""
    candidates = () if run.choice is None else run.choice.candidates
    if len(candidates) < 2:
        return ""
    return f"{len(candidates) - 1}, from {candidates[1].cycles:,.0f}"


def _verdict(result: SimulationResult) -> Text:
    if result.check is None:
        return Text("")
    return Text("passed", style="green") if result.check.passed else Text("FAILED", style="red")


def _print_tasks(run: ModelRun, out: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("layer", "task", "SIMD", "instruction", "box", "why not"):
        table.add_column(name, overflow="fold")
    for layer in run.layers:
        shared = _shared([shape.task for shape in layer.shapes])
        for number, shape in enumerate(layer.shapes):
            table.add_row(layer.layer.name if not number else "", *_task_cells(shape, shared))
    out.print(table)


def _shared(tasks: list[str]) -> str:
    """Return the words with which the names of all tasks begin: all of it where there is one task."""
    words = zip(*(task.split("_") for task in tasks), strict=False)
    common = takewhile(lambda column: len(set(column)) == 1, words)
    return "".join(f"{column[0]}_" for column in common) if len(tasks) > 1 else "".join(tasks)


def _task_cells(shape: TaskShape, shared: str) -> list[str]:
    return [shape.task.removeprefix(shared), shape.strategy, shape.instruction, _sizes(shape), shape.reason]


def _sizes(shape: TaskShape) -> str:
    """Return ``4 x 3``; where sizes differ from PE to PE or from arrival to arrival ``2-4 x 3``."""
    return " x ".join(str(low) if low == high else f"{low}-{high}" for low, high in shape.bounds)
