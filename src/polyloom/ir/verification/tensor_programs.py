"""The form of tensor programs, checked: statements that each define a tensor, within its bounds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from polyloom.ir.evaluation.boxes import is_inside
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement


def tensor_faults(program: Program) -> Iterator[str]:
    """Yield what a tensor program, whose nodes and buffers are right, has that no tensor program has."""
    outside = sorted([*program.inputs, *program.outputs])
    yield from (f"`{a}` is twice an input or output" for a, b in pairwise(outside) if a == b)
    yield from (f"unknown tensor `{n}`" for n in outside if n not in program.by_name)
    yield from (f"`{b.name}` has an extent below 1" for b in program.buffers if min(b.extents, default=1) < 1)
    for statement in program.body:
        yield from (f"{statement.name}: {fault}" for fault in _statement_faults(statement, program))
    yield from _definitions(program)
    if program != Program.of(program.name, program.buffers, program.inputs, program.outputs, program.body):
        yield "roles or first values are not those that inputs, outputs and statements give"


def _definitions(program: Program) -> Iterator[str]:
    defined = {*program.inputs}
    for statement in program.body:
        missing = sorted({r.buffer for r in statement.reads} - defined)
        yield from (f"{statement.name} reads `{n}` before it is defined" for n in missing)
        if statement.write.buffer in defined:
            yield f"`{statement.write.buffer}` is defined twice"
        defined.add(statement.write.buffer)
    yield from (f"output `{n}` is never written" for n in program.outputs if n not in defined)


def _statement_faults(statement: Statement, program: Program) -> Iterator[str]:
    if not statement.is_in_form:
        yield "has not the form of a statement"
    elif min(statement.domain, default=1) < 1:
        yield "an extent of the domain is below 1"
    elif not statement.conditions:
        box = tuple(map(range, statement.domain))
        for access in (*statement.reads, statement.write):
            if not is_inside(access, program.buffer(access.buffer).extents, box):
                yield f"an index of `{access.buffer}` is out of bounds"
