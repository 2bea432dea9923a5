"""The layers of a program on the wafer as a table."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from polyloom.report.terminal import console
from polyloom.wafer.per_layer import LayerRun, ModelRun, TaskShape
from polyloom.wafer.simulation_result import SimulationResult

COLUMNS = ("cycles", "limit", "PEs", "bytes/PE", "wavelets", "other maps")


def print_layers(run: ModelRun) -> None:
    """Print a row for each layer, their sum, and what was refused."""
    table = Table(box=None, pad_edge=False, show_footer=True)
    total = run.json()["total"]
    table.add_column("layer", footer=f"{total['simulated']} of {total['layers']} layers", overflow="fold")
    sums = (total["cycles"], total["limit"], total["most_pes"], total["most_memory_bytes"], total["wavelets"])
    for name, value in zip(COLUMNS[:-1], sums, strict=True):
        prefix = "≤ " if name in ("PEs", "bytes/PE") else ""
        table.add_column(name, justify="right", footer=f"{prefix}{value:,}", no_wrap=True)
    table.add_column("SIMD", overflow="fold")
    table.add_column(COLUMNS[-1], justify="right", no_wrap=True)
    table.add_column("check", no_wrap=True)
    for layer in run.layers:
        table.add_row(*_cells(layer))
    console().print(table)


def _cells(run: LayerRun) -> list[str | Text]:
    if run.result is None:
        reasons = "" if run.refusal is None else "; ".join(d.message for d in run.refusal.diagnostics)
        refused = Text(f"refused: {reasons}", style="yellow")
        return [run.layer.name, "", "", "", "", "", refused, "", ""]
    s = run.result.simulation
    grid = run.result.program.analysis.border.given.grid
    pes = f"{s.pe_count:,} of {grid.width} x {grid.height}"
    figures = [f"{s.cycles:,}", f"{s.limit.cycles:,}", pes, f"{s.memory_bytes:,}", f"{s.wavelets:,}"]
    return [run.layer.name, *figures, _simd(run.shapes), _others(run), _verdict(run.result)]


def _simd(shapes: tuple[TaskShape, ...]) -> str:
    """Return a line for each task: ``hull fmach 4 x 3``; after its name where there are several."""
    lines = []
    for shape in shapes:
        name = f"{shape.task}: " if len(shapes) > 1 else ""
        lines.append(
            name + " ".join(part for part in (shape.strategy, shape.instruction, _sizes(shape)) if part)
        )
    return "\n".join(lines)


def _sizes(shape: TaskShape) -> str:
    """Return ``4 x 3``; where sizes differ from PE to PE or from arrival to arrival ``2-4 x 3``."""
    return " x ".join(str(low) if low == high else f"{low}-{high}" for low, high in shape.bounds)


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
