"""The emitted C of each role with what the simulator counted for its lines, and the tasks they belong to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from polyloom.wafer.host.transfers import pes_of_role
from polyloom.wafer.pe_program.c_names import with_c_names
from polyloom.wafer.pe_program.tree import RoleCode
from polyloom.wafer.simd.decision import SimdAnalysis
from polyloom.wafer.simulation.result import SimulationResult
from polyloom.wafer.simulator.profile import LineUse
from polyloom.wafer.simulator.result import Trace

_FUNCTION = re.compile(r"^static void (\w+)\(.*\) \{$")


@dataclass(frozen=True)
class Function:
    """Lines ``first`` to ``last`` of a file, counted from 1; ``task``: whose instances it computes, or ""."""

    name: str
    first: int
    last: int
    task: str


@dataclass(frozen=True, eq=False)
class Listing:
    """The emitted C of one role, which ``pes`` PEs run.

    ``uses``: for each line that was counted, its number, how often it was entered, and cycles of all PEs
    together: at work, waiting, of microthreads beside. ``tasks``: of lines, the computation task where it is
    known. ``names``: what the trace calls a task, and the line where its function begins.
    """

    role: int
    name: str
    pes: int
    text: str
    uses: tuple[tuple[int, int, int, int, int], ...]
    functions: tuple[Function, ...]
    tasks: dict[int, str]
    names: dict[str, int]

    @property
    def cycles(self) -> int:
        """Cycles in which its PEs worked, all together."""
        return sum(use[2] + use[4] for use in self.uses)

    def json(self) -> dict[str, Any]:
        """Return what the page's scripts read (docs/report.md)."""
        return {
            "roles": [self.role],
            "name": self.name,
            "pes": self.pes,
            "cycles": self.cycles,
            "text": self.text,
            "uses": [number for use in self.uses for number in use],
            "tasks": [[line, task] for line, task in sorted(self.tasks.items())],
            "names": self.names,
        }


@dataclass(frozen=True, eq=False)
class Program:
    """A program of PEs as it is listed: its C, how many PEs run it, the tasks that it may compute."""

    code: RoleCode
    text: str
    pes: int
    simd: tuple[SimdAnalysis, ...]


def listings(result: SimulationResult) -> tuple[Listing, ...]:
    """Return the files of all roles in the program's order; nothing where no lines were counted."""
    program = result.program
    found = (
        Program(
            role.code,
            program.files[f"{role.code.name}.c"],
            len(pes_of_role(program, role)[0]),
            tuple(program.analysis.simd),
        )
        for role in program.roles
    )
    return listings_of(result.trace, found)


def listings_of(trace: Trace | None, programs: Iterable[Program]) -> tuple[Listing, ...]:
    """Return the programs with what was counted of them; nothing where no lines were."""
    if trace is None or trace.profile is None:
        return ()
    counted: dict[str, list[LineUse]] = {}
    for use in trace.profile.lines:
        counted.setdefault(use.role, []).append(use)
    return tuple(
        _listing(number, program, counted.get(program.code.name, []))
        for number, program in enumerate(programs)
    )


def cycles_of_functions(found: tuple[Listing, ...]) -> dict[str, int]:
    """Return the cycles at work of each function, over all roles, the longest first."""
    sums: dict[str, int] = {}
    for listing in found:
        for line, _, worked, _, beside in listing.uses:
            name = next((f.name for f in listing.functions if f.first <= line <= f.last), "")
            sums[name] = sums.get(name, 0) + worked + beside
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


def _listing(number: int, program: Program, uses: list[LineUse]) -> Listing:
    code, lines = with_c_names(program.code), program.text.splitlines()
    functions = tuple(_functions(lines, program.simd))
    names = _traced_names(code, {f.name: f.first for f in functions})
    return Listing(
        number,
        program.code.name,
        program.pes,
        program.text,
        tuple(_by_line(uses, names)),
        functions,
        _tasks(lines, functions, program.simd, code),
        names,
    )


def _by_line(uses: list[LineUse], names: dict[str, int]) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield what was counted by line; what a task takes before its first statement is of its head."""
    for use in uses:
        line = use.line or names[use.task]
        yield line, use.times, use.worked, use.waited, use.beside


def _traced_names(code: RoleCode, heads: dict[str, int]) -> dict[str, int]:
    ends = {f"end of {task.name}": heads[task.end_name] for task in code.data_tasks if task.end_name in heads}
    return {**heads, **ends}


def _functions(lines: list[str], simd: tuple[SimdAnalysis, ...]) -> Iterator[Function]:
    for number, line in enumerate(lines, 1):
        head = _FUNCTION.match(line)
        if head is not None:
            last = next(k for k in range(number, len(lines) + 1) if lines[k - 1] == "}")
            yield Function(head[1], number, last, _task_of(head[1], simd))


def _task_of(function: str, simd: tuple[SimdAnalysis, ...]) -> str:
    """Return the only task that the function can be of by its name; "" where there is none, or several."""
    tasks = {each.task.name: each.task for each in simd}
    found = [
        name
        for name, task in tasks.items()
        if function == f"compute_{name}"
        or (task.stream is not None and function == f"handle_{task.stream.tensor}")
    ]
    return found[0] if len(found) == 1 else ""


def _tasks(
    lines: list[str], functions: tuple[Function, ...], simd: tuple[SimdAnalysis, ...], code: RoleCode
) -> dict[int, str]:
    """Return the tasks of lines: by the operands that stand there, else by the function."""
    tasks = sorted({each.task.name for each in simd}, key=len, reverse=True)
    of_operand = {
        operand.name: task
        for operand in code.operands
        if (task := next((t for t in tasks if operand.name.startswith(f"{t}_")), None)) is not None
    }
    found: dict[int, str] = {}
    for function in functions:
        for number in range(function.first, function.last + 1):
            words = re.findall(r"\w+", lines[number - 1])
            task = next((of_operand[word] for word in words if word in of_operand), function.task)
            if task:
                found[number] = task
    return found
