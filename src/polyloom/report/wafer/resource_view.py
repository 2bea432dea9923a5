"""``explain`` for a person: how lines are reduced, and what each role of PE takes of the machine."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from polyloom.polyhedra.text.paper_notation import set_notation
from polyloom.report.wafer.explain_task_view import Row
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.collectives import Reduction
from polyloom.wafer.program.resources import MEMORY, MOST_OPERANDS, Amount, RoleResources
from polyloom.wafer.program.wafer_program import Survey


def reduction_rows(analysis: LayerAnalysis) -> Iterator[Row]:
    """Yield a row for each reduction along lines: its shape, and what the model says of each shape."""
    for reduction in analysis.reductions:
        yield Row(reduction.name, _reduction(reduction))


def _reduction(reduction: Reduction) -> str:
    chosen = reduction.chosen
    groups = " x ".join(str(size) for size in chosen.groups)
    estimates = ", ".join(f"{e.shape.value} {e.cycles}" for e in reduction.estimates)
    line = f"{reduction.pes} PEs, {reduction.elements} elements each"
    reason = f"; {reduction.reason}" if reduction.reason else ""
    return f"{chosen.shape.value}, groups of {groups}: {line}; cycles by the model: {estimates}{reason}"


_HEADINGS = ("memory", "colors", "in", "out", "tasks", "threads", "dest", "src", "others")
"""Short names of the amounts, in their order."""


def resource_table(found: Survey) -> Table:
    """Return a table with a row for each role, and the machine's limits below."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("role", no_wrap=True)
    for heading in (*_HEADINGS, "SIMD", "loaded"):
        table.add_column(heading, justify="right", no_wrap=True)
    for role in found.resources:
        used = (_used(amount) for amount in role.amounts)
        table.add_row(role.role, *used, str(role.configurations), str(len(role.loaded)))
    if found.resources:
        limits = (f"{amount.limit:,}" for amount in found.resources[0].amounts)
        table.add_row("limit", *limits, str(MOST_OPERANDS), "", style="dim")
    return table


def _used(amount: Amount) -> str:
    return f"{amount.used:,}" if amount.fits else f"{amount.used:,} !"


def resource_rows(found: Survey, *, ascii_only: bool) -> Iterator[Row]:
    """Yield where each role is and what fills its memory; what each color carries; what chains wait for."""
    for role in found.resources:
        place = set_notation(role.pes, ascii_only=ascii_only)
        yield Row(role.role, f"{place}; {_memory(role)}")
    for color, what in found.routing.colors:
        yield Row(f"color {color}", what)
    yield Row(
        "dest, src, others", "descriptors of destinations, first and other sources, of configured operands"
    )
    yield Row("SIMD, loaded", "configured operands, and those of them that are loaded again for each use")
    yield Row("chains start", _POLICY[found.policy.value])


_POLICY = {
    "eager": "when the streams that feed them have ended: nothing can wait in a ring",
    "careful": "when all streams before them have ended: earlier, PEs might wait in a ring",
}


def _memory(role: RoleResources) -> str:
    names = role.amount(MEMORY).names
    return f"bytes: {', '.join(names)}" if names else "no data"
