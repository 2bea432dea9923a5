"""What became of the nodes of a model: a table, and the document of ``show --json``."""

from __future__ import annotations

from math import prod
from typing import Any

from rich.table import Table

from polyloom.diagnostics import visible_name
from polyloom.frontends.graph.imported import Imported
from polyloom.report.program_view import document as program_document
from polyloom.report.terminal import console


def document(model: Imported, form: str | None) -> dict[str, Any]:
    """Return the document of ``show --json`` for a model. Source: docs/interface.md.

    As that of a layer, and the nodes, the weights, and the names in the model of what is called otherwise;
    ``lair`` only where LAIR is asked for.
    """
    found = program_document(model.program, form or "lair", with_text=form == "lair")
    nodes = [
        {
            "node": row.node,
            "op": row.op,
            "statements": list(row.statements),
            "instances": row.instances,
            "became": row.became,
        }
        for row in model.rows
    ]
    renamed = {name: original for name, original in model.names.items() if name != original}
    return {**found, "nodes": nodes, "constants": sorted(model.constants), "names": renamed}


def print_model(model: Imported) -> None:
    """Print a line for each node, and what there is in total."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("node", "operation"):
        table.add_column(heading, overflow="fold")
    for heading in ("statements", "instances"):
        table.add_column(heading, justify="right")
    table.add_column("became", overflow="fold")
    for row in model.rows:
        if row.op != "Constant":
            count = str(len(row.statements) or "-")
            instances = f"{row.instances:,}" if row.instances else "-"
            names = (visible_name(row.node), visible_name(row.op))
            table.add_row(*names, count, instances, visible_name(row.became))
    console().print(table)
    console().print(_totals(model))


def _totals(model: Imported) -> str:
    statements = model.program.statements
    points = sum(prod(s.domain) for s in statements)
    weights = sum(a.size for a in model.constants.values())
    return f"{len(statements)} statements, {points:,} instances, {weights:,} weights"
