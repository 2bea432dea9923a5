"""A specialized program of the IR as LAIR text: ``show --as lair``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

from polyloom.diagnostics import Diagnostic, Unsupported, error
from polyloom.frontends.lair.lowering.names import TYPES, is_reserved
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Constant,
    Expression,
    ParameterValue,
    Unary,
    UnaryOp,
    children,
    walk,
)
from polyloom.ir.expressions import Iterator as IteratorValue
from polyloom.ir.host import Buffer
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement
from polyloom.ir.text.expressions import assignment_text
from polyloom.ir.text.host_programs import buffer_text

_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_DEEPEST = 150
_ARITHMETIC = (UnaryOp.NEGATE, BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MULTIPLY, BinaryOp.DIVIDE)


def from_program(program: Program) -> str:
    """Return LAIR text that lowers to an equal program (if its tensors are in the order of ``lower``).

    One node where the statements' names allow it (NODE, or NODE_OUTPUT each); else a node for each
    statement and a graph that calls them.

    Errors: ``Unsupported`` with ``lair-inexpressible`` for each thing that LAIR has not.
    """
    faults = list(dict.fromkeys(_faults(program)))
    if faults:
        raise Unsupported(*faults)
    return _one_node(program) if _fits_one_node(program) else _graph(program)


def _fits_one_node(program: Program) -> bool:
    names = [s.name for s in program.statements]
    if len(names) == 1:
        return names == [program.name]
    return names == [f"{program.name}_{s.write.buffer}" for s in program.statements]


def _one_node(program: Program) -> str:
    internal = [f"  {buffer_text(program.buffer(name))}" for name in program.internal]
    body = [*internal, *(line for s in program.statements for line in _statement(s))]
    header = _header("lair", f"{program.name}()", *_interface(program))
    return "\n".join([*header, "{", *body, "}", ""])


def _interface(program: Program) -> tuple[list[Buffer], list[Buffer]]:
    return [program.buffer(n) for n in program.inputs], [program.buffer(n) for n in program.outputs]


def _header(keyword: str, name: str, inputs: Iterable[Buffer], outputs: Iterable[Buffer]) -> list[str]:
    sides = ", ".join(map(buffer_text, inputs)), ", ".join(map(buffer_text, outputs))
    return [f"{keyword} {name}:", f"  {sides[0]} -> {sides[1]}"]


def _statement(statement: Statement) -> list[str]:
    if not statement.iterators:
        return [f"  {assignment_text(statement)}"]
    extents = ", ".join(map(str, statement.domain))
    domain = f"  all ({', '.join(statement.iterators)}) in ({extents})"
    return [domain, f"    {assignment_text(statement)}"]


def _graph(program: Program) -> str:
    nodes = [line for s in program.statements for line in [*_node(s, program), ""]]
    calls = [f"  {s.write.buffer} = {s.name}({', '.join(_reads(s))})" for s in program.statements]
    header = _header("graph", program.name, *_interface(program))
    return "\n".join([*nodes, *header, "{", *calls, "}", ""])


def _reads(statement: Statement) -> list[str]:
    return list(dict.fromkeys(read.buffer for read in statement.reads))


def _node(statement: Statement, program: Program) -> list[str]:
    inputs = [program.buffer(name) for name in _reads(statement)]
    output = program.buffer(statement.write.buffer)
    return [*_header("lair", f"{statement.name}()", inputs, [output]), "{", *_statement(statement), "}"]


def _faults(program: Program) -> Iterator[Diagnostic]:
    for tensor in program.tensors:
        if tensor.type.value not in TYPES:
            yield _fault(f"`{tensor.name}` has type {tensor.type.value}", "convert it to float32 or int32")
    if not program.statements or not program.outputs:
        yield _fault(f"`{program.name}` has no statement or no output", "compute something")
    if not _fits_one_node(program) and any(s.name == program.name for s in program.statements):
        yield _fault(f"one of several statements has the program's name `{program.name}`", "rename it")
    for name in {program.name, *(t.name for t in program.tensors), *(s.name for s in program.statements)}:
        yield from _name_faults(name)
    for statement in program.statements:
        yield from _statement_faults(statement, program)


def _name_faults(name: str) -> Iterator[Diagnostic]:
    if not _NAME.fullmatch(name) or is_reserved(name):
        yield _fault(f"`{name}` cannot be a name in LAIR", "rename it")


def _statement_faults(statement: Statement, program: Program) -> Iterator[Diagnostic]:
    if statement.conditions:
        yield _fault(f"`{statement.name}` has a guard: its instances are no rectangle", "show the IR")
    accesses: dict[str, object] = {}
    for read in statement.reads:
        if accesses.setdefault(read.buffer, read.affine) != read.affine:
            yield _fault(f"`{statement.name}` reads `{read.buffer}` in two ways", "copy the tensor first")
    for name in statement.iterators:
        yield from _name_faults(name)
        if name in {t.name for t in program.tensors}:
            yield _fault(f"`{name}` is both an iterator and a tensor", "rename one")
    if _depth(statement.expression) > _DEEPEST:
        yield _fault(f"the expression of `{statement.name}` is nested too deep", "split it")
    yield from (f for part in walk(statement.expression) for f in _expression_faults(part, statement))


def _expression_faults(part: Expression, statement: Statement) -> Iterator[Diagnostic]:
    if isinstance(part, IteratorValue):
        yield _fault(f"`{statement.name}` uses an iterator as a value", "read the number from a tensor")
    elif isinstance(part, ParameterValue):
        yield _fault(f"`{statement.name}` uses the parameter `{part.name}`", "read it from a tensor")
    elif part.type.value not in (*TYPES, "bool"):
        yield _fault(f"`{statement.name}` computes in {part.type.value}", "convert to float32 or int32")
    if isinstance(part, Unary | Binary) and not (part.op.in_lair or part.op in _ARITHMETIC):
        yield _fault(
            f"`{statement.name}` uses the operator `{part.op.name}`", "write it with LAIR's functions"
        )
    if isinstance(part, Constant) and not math.isfinite(part.value):
        yield _fault(f"`{statement.name}` uses the constant {part.value}", "use a finite number")


def _depth(expression: Expression) -> int:
    level, depth = [expression], 0
    while level:
        level, depth = [c for e in level for c in children(e)], depth + 1
    return depth


def _fault(what: str, help_: str) -> Diagnostic:
    return error("lair-inexpressible", f"LAIR cannot express this: {what}", helps=[help_])
