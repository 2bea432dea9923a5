"""The tables and figures of the page that need no script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyloom.diagnostics import Unsupported, render
from polyloom.frontends.lair import from_program
from polyloom.ir.text.programs import print_program
from polyloom.ir.verification.comparison import Verdict
from polyloom.polyhedra.text.documents import placement_text
from polyloom.polyhedra.text.paper_notation import notation, notation_in_prose
from polyloom.report.verdict_view import reals_text, verdict_text
from polyloom.report.wafer.explain_task_view import Row, task_rows, task_title
from polyloom.wafer.explain.tasks import simd_sizes
from polyloom.wafer.host.transfers import pes_of_role
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.program.resources import Amount
from polyloom.wafer.simd.decision import SimdAnalysis, Strategy
from polyloom.wafer.simulation.result import SimulationResult
from polyloom.wafer.simulator.result import Counts


@dataclass(frozen=True)
class Card:
    """A figure of the summary: what it is, its value, and what to compare it with."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Decision:
    """A line of the table of SIMD decisions; ``extensions``: those of the paper that
    are used; ``rows``: every set behind it.
    """

    title: str
    strategy: str
    instruction: str
    sizes: str
    extensions: tuple[str, ...]
    reason: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class RoleRow:
    """What a role of PE takes: one amount for each of ``RoleTable.columns``."""

    name: str
    pes: str
    count: int
    amounts: tuple[Amount, ...]
    configurations: int


@dataclass(frozen=True)
class RoleTable:
    """``columns``: what there is of the machine and how much of it, as in every row."""

    columns: tuple[tuple[str, int], ...]
    rows: tuple[RoleRow, ...]


def cards(result: SimulationResult) -> tuple[Card, ...]:
    """Return the figures of the summary."""
    s = result.simulation
    machine = result.program.machine
    first, *others = count_cards(s, s.pe_count, (s.memory_bytes, machine.memory_bytes), machine)
    return (first, Card("limit", f"{s.limit.cycles:,}", f"set by {s.limit.by}"), *others)


def count_cards(counts: Counts, pes: int, data: tuple[int, int], machine: Machine) -> tuple[Card, ...]:
    """Return the figures of what a simulation counts, cycles first.

    ``pes``: those that have a program; ``data``: the most bytes on a PE, and what there is room for.
    """
    busy = counts.busy[counts.busy > 0]
    mean = float(busy.mean()) / counts.cycles if busy.size and counts.cycles else 0.0
    most = int(busy.max()) / counts.cycles if busy.size and counts.cycles else 0.0
    duration = f"{counts.cycles / machine.clock_ghz / 1000:,.3g} µs at {machine.clock_ghz:g} GHz"
    simd = f"in {counts.simd_instructions:,} instructions"
    links = f"{counts.hops:,} hops; the busiest link {counts.max_link_use:.0%} in use"
    return (
        Card("cycles", f"{counts.cycles:,}", duration),
        Card("PEs with a program", f"{pes:,}", f"of {counts.busy.size:,} in the rectangle"),
        Card("PEs busy", f"{mean:.0%}", f"of the run on average, the busiest {most:.0%}"),
        Card("data on a PE", f"{data[0]:,} B", f"at most, of {data[1]:,} B"),
        Card("SIMD operations", f"{counts.simd_operations:,}", simd),
        Card("scalar operations", f"{counts.scalar_operations:,}", ""),
        Card("wavelets", f"{counts.wavelets:,}", links),
    )


def verdict(result: SimulationResult) -> tuple[str, str]:
    """Return what the check said, as a class of the page and as text."""
    return checked(result.check)


def checked(check: Verdict | None) -> tuple[str, str]:
    """Return what a check said, as a class of the page and as text."""
    if check is None:
        return "none", "not checked: run with --check to compare with the evaluator"
    if not check.passed:
        return "failed", "check FAILED: " + "; ".join(check.mismatches)
    reals = "" if check.reals is None else f"; {reals_text(check.reals)}"
    return "passed", f"check {verdict_text(check)}{reals}"


def decisions(result: SimulationResult) -> tuple[Decision, ...]:
    """Return one line for each computation task."""
    analysis = result.program.analysis
    return tuple(
        _decision(simd, tuple(task_rows(simd, analysis.arrays, analysis.options, ascii_only=False)))
        for simd in analysis.simd
    )


def _decision(simd: SimdAnalysis, rows: tuple[Row, ...]) -> Decision:
    used = simd.strategy is not Strategy.NONE
    instruction = ", ".join(simd.instructions) if used else "loops"
    return Decision(
        task_title(simd),
        "whole stream" if simd.whole is not None else simd.strategy.value,
        instruction,
        _sizes(simd),
        tuple(dict.fromkeys(effect.extension.value for effect in simd.effects)),
        notation_in_prose(simd.reason),
        rows,
    )


def _sizes(simd: SimdAnalysis) -> str:
    sizes = simd_sizes(simd)
    if sizes is None:
        return ""
    if isinstance(sizes, str):
        return notation(sizes)
    return " or ".join(" × ".join(map(str, size)) or "1" for size in sizes)


def role_table(result: SimulationResult) -> RoleTable:
    """Return what each role takes of its PEs."""
    program = result.program
    rows = tuple(
        RoleRow(
            taken.role,
            notation(str(taken.pes.coalesce())),
            len(pes_of_role(program, role)[0]),
            taken.amounts,
            taken.configurations,
        )
        for role, taken in zip(program.roles, program.resources, strict=True)
    )
    columns = tuple((amount.what, amount.limit) for amount in rows[0].amounts) if rows else ()
    return RoleTable(columns, rows)


def program_text(result: SimulationResult) -> str:
    """Return the program as LAIR; what LAIR has not, as the IR prints it."""
    program = result.program.analysis.program
    try:
        return from_program(program)
    except Unsupported:
        return print_program(program)


def map_text(result: SimulationResult) -> str:
    """Return the map as the user wrote it; where it was chosen, as relations."""
    given = result.program.analysis.border.given
    span = next(iter(given.spans.values()), None)
    if span is not None:
        return span.source.text.strip() + "\n"
    lines = [f"size: {{ PE[{given.grid.width}, {given.grid.height}] }}"]
    for key, relations in (
        ("compute_map", given.placement),
        ("iport_map", given.inputs),
        ("oport_map", given.outputs),
    ):
        if relations:
            lines.append(f"{key}:")
            lines += [f"  {placement_text(relation)}" for relation in relations.values()]
    return "\n".join(lines) + "\n"


def remarks(result: SimulationResult) -> Iterator[str]:
    """Yield missed optimisations as text."""
    yield from (render(diagnostic) for diagnostic in result.remarks)
