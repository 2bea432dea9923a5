"""``explain`` of a CSL program for a person: programs, tasks, colors, memory, exports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table

from polyloom.csl.survey import ProgramRow, RouteRow, Survey
from polyloom.report.terminal import console

MOST_VARIABLES = 6


def print_survey(found: Survey, memory: int) -> None:
    """Print what a layout comes to; ``memory``: bytes that a PE has."""
    out = console()
    count = len(found.programs)
    out.print(
        f"{found.width} x {found.height} PEs of {found.arch}, {count} program{'' if count == 1 else 's'}\n"
    )
    for program in found.programs:
        _print_program(program, memory)
    if found.routes:
        out.print("colors", style="bold")
        out.print(_routes(found.routes))
        out.print()
    if found.exports:
        out.print("exported to the host", style="bold")
        out.print(_table(("", ""), found.exports))


def _print_program(row: ProgramRow, memory: int) -> None:
    out = console()
    pes = f"{row.count:,} PE{'' if row.count == 1 else 's'}"
    out.print(f"program {row.name}: {row.file}, {pes}", style="bold")
    lines = [("PEs", row.pes)]
    lines += [("parameters", ", ".join(f"{name} = {value}" for name, value in row.parameters))]
    lines += [("memory", f"{row.bytes:,} of {memory:,} bytes: {_variables(row)}")]
    lines += [("queues", ", ".join(_queue_texts(row)))]
    lines += [("launched", ", ".join(row.functions))]
    lines += [
        ("tasks" if k == 0 else "", f"{task.name}, {task.kind} {task.id}: {started(task.started_by)}")
        for k, task in enumerate(row.tasks)
    ]
    out.print(_table(("", ""), [line for line in lines if line[1]]))
    out.print()


def started(by: Iterable[str]) -> str:
    """Return in words what starts a task."""
    return "; ".join(by) or "nothing that is seen here starts it"


def _queue_texts(row: ProgramRow) -> list[str]:
    return [f"{q.kind} {q.id}" + ("" if q.color is None else f" (color {q.color})") for q in row.queues]


def _variables(row: ProgramRow) -> str:
    shown = [f"{name} {size:,}" for name, _, size in row.memory[:MOST_VARIABLES]]
    more = len(row.memory) - len(shown)
    return ", ".join([*shown, *([f"{more} more"] if more else [])]) or "nothing"


def _routes(rows: Sequence[RouteRow]) -> Table:
    cells = (
        (str(row.color), ", ".join(row.names), row.route, row.switches, f"{row.count:,}", row.pes)
        for row in rows
    )
    return _table(("color", "name", "route", "more", "PEs", "where"), cells)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    headed = any(headings)
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0), show_header=headed)
    for heading in headings:
        right = heading in ("color", "PEs")
        table.add_column(heading, justify="right" if right else "left", no_wrap=right)
    for row in rows:
        table.add_row(*(["  " + row[0], *row[1:]] if not headed else row))
    return table
