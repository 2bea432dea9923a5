"""The rules of the IR, checked: what a front end or a pass must never break."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from polyloom.ir.host import Index, View
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType
from polyloom.ir.verification.expressions import expression_faults


class InvalidProgram(Exception):
    """A program breaks the IR's rules: a fault of Polyloom, never of its user."""


def verify(program: Program) -> None:
    """Raise ``InvalidProgram`` naming every broken rule; otherwise do nothing."""
    faults = [*_tensors(program), *_definitions(program)]
    if not faults:
        faults = [
            f"{s.name}: has not the form of a statement" for s in program.statements if not s.is_in_form
        ]
    if not faults:
        faults = [f"{s.name}: {fault}" for s in program.statements for fault in _statement(s, program)]
    if faults:
        raise InvalidProgram(f"program {program.name}: " + "; ".join(faults))


def _tensors(program: Program) -> Iterator[str]:
    names = [t.name for t in program.tensors]
    yield from (f"two tensors `{n}`" for n in _repeated(names))
    statements = [s.name for s in program.statements]
    yield from (f"two statements `{n}`" for n in _repeated(statements))
    outside = [*program.inputs, *program.outputs]
    yield from (f"`{n}` is twice an input or output" for n in _repeated(outside))
    used = {a.buffer for s in program.statements for a in (*s.reads, s.write)}
    yield from (f"unknown tensor `{n}`" for n in sorted({*outside, *used} - {*names}))
    yield from (f"`{t.name}` has an extent below 1" for t in program.tensors if min(t.extents, default=1) < 1)
    yield from (f"`{t.name}` has type bool" for t in program.tensors if t.type is ElementType.BOOL)


def _repeated(names: list[str]) -> list[str]:
    return [a for a, b in pairwise(sorted(names)) if a == b]


def _definitions(program: Program) -> Iterator[str]:
    defined = {*program.inputs}
    for statement in program.statements:
        missing = sorted({r.buffer for r in statement.reads} - defined)
        yield from (f"{statement.name} reads `{n}` before it is defined" for n in missing)
        if statement.write.buffer in defined:
            yield f"`{statement.write.buffer}` is defined twice"
        defined.add(statement.write.buffer)
    yield from (f"output `{n}` is never written" for n in program.outputs if n not in defined)


def _statement(statement: Statement, program: Program) -> Iterator[str]:
    if len(statement.iterators) != len(statement.domain):
        yield f"{len(statement.iterators)} iterators for {len(statement.domain)} extents"
        return
    yield from (f"two iterators `{n}`" for n in _repeated([*statement.iterators]))
    if min(statement.domain, default=1) < 1:
        yield "an extent of the domain is below 1"
    for access in (*statement.reads, statement.write):
        yield from _access(access, statement, program)
    yield from _expression(statement, program)


def _access(access: View, statement: Statement, program: Program) -> Iterator[str]:
    shape = program.tensor(access.buffer).extents
    if len(access.affine) != len(shape):
        yield f"{len(access.affine)} indices for `{access.buffer}` of rank {len(shape)}"
        return
    for index, size in zip(access.affine, shape, strict=True):
        if len(index.coefficients) != len(statement.domain):
            yield f"{len(index.coefficients)} coefficients for {len(statement.domain)} iterators"
        elif not statement.conditions and not inside(index, statement.domain, size):
            yield f"an index of `{access.buffer}` is out of bounds"


def inside(index: Index, domain: tuple[int, ...], size: int) -> bool:
    """Tell whether an index stays below ``size`` and not below 0 all over a domain."""
    ends = [c * (n - 1) for c, n in zip(index.coefficients, domain, strict=True)]
    low = index.constant + sum(min(e, 0) for e in ends)
    high = index.constant + sum(max(e, 0) for e in ends)
    return low >= 0 and high < size


def _expression(statement: Statement, program: Program) -> Iterator[str]:
    target = program.tensor(statement.write.buffer)
    if statement.expression.type is not target.type:
        yield f"the expression is {statement.expression.type.value}, `{target.name}` {target.type.value}"
    reads = [program.tensor(access.buffer).type for access in statement.reads]
    yield from expression_faults(statement.expression, reads, len(statement.domain), ())
