"""The rules of scalar functions, checked: types of operands; reads, dimensions and names that there are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from polyloom.ir.expressions import (
    Assign,
    Binary,
    BinaryOp,
    Compare,
    Constant,
    Convert,
    Expression,
    Local,
    ParameterValue,
    Procedure,
    Read,
    Select,
    Unary,
    UnaryOp,
    all_steps,
    children,
    locals_of,
    values_of_steps,
    walk,
)
from polyloom.ir.expressions import Iterator as IteratorValue
from polyloom.ir.types import ElementType


def type_faults(part: Expression) -> Iterator[str]:
    """Yield what is wrong with the types of an operation's operands."""
    match part:
        case Binary(left=a, right=b) | Compare(left=a, right=b) | Select(then=a, otherwise=b):
            if a.type is not b.type:
                yield f"operands of types {a.type.value} and {b.type.value}"
        case _:
            pass
    if isinstance(part, Unary | Binary) and not is_logical(part):
        kind = part.type
        if kind is not ElementType.BOOL and not part.op.takes(kind):
            yield f"{part.op.name} of type {kind.value}"
    yield from _truth_values(part)


def _truth_values(part: Expression) -> Iterator[str]:
    if isinstance(part, Constant | Convert) and part.type is ElementType.BOOL:
        yield "a value of type bool"
    if isinstance(part, Select) and part.condition.type is not ElementType.BOOL:
        yield "a condition that is no comparison"
    if isinstance(part, Procedure):
        yield from _step_faults(part)
        return
    if is_logical(part):
        yield from ("a value used as a truth value" for v in children(part) if v.type is not ElementType.BOOL)
        return
    values = children(part)[1:] if isinstance(part, Select) else children(part)
    yield from ("a comparison used as a value" for v in values if v.type is ElementType.BOOL)


def _step_faults(procedure: Procedure) -> Iterator[str]:
    """Yield what is wrong with the types of a procedure's variables and conditions."""
    known = locals_of(procedure.body)
    if known.get(procedure.result.name) != procedure.result:
        yield "a procedure without its result"
    for step in all_steps(procedure.body):
        if isinstance(step, Assign):
            if step.value.type is not step.local.type or known[step.local.name] != step.local:
                yield f"the variable `{step.local.name}` gets a value of another type"
        elif step.condition.type is not ElementType.BOOL:
            yield "a step on a value that is no comparison"
    for value in values_of_steps(procedure.body):
        for part in walk(value):
            if isinstance(part, Local) and known.get(part.name) != part:
                yield f"a procedure speaks of `{part.name}`, which it never sets"


def is_logical(part: Expression) -> bool:
    """Tell whether an operation combines truth values: ``and``, ``or``, ``not``."""
    return isinstance(part, Binary | Unary) and part.op in (BinaryOp.AND, BinaryOp.OR, UnaryOp.NOT)


def expression_faults(
    expression: Expression, reads: Sequence[ElementType | None], dimensions: int, names: Collection[str]
) -> Iterator[str]:
    """Yield what is wrong with a scalar function.

    ``reads``: the type of each read, None where it is not known; ``names``: parameters and host iterators.
    """
    for part in walk(expression):
        match part:
            case Read(position=k, type=kind):
                if not 0 <= k < len(reads):
                    yield f"there is no read number {k}"
                elif reads[k] is not None and reads[k] is not kind:
                    yield f"read number {k} has another type than its buffer"
            case IteratorValue(dimension=k):
                if not 0 <= k < dimensions:
                    yield f"there is no dimension {k}"
            case ParameterValue(name=name):
                if name not in names:
                    yield f"a function speaks of `{name}`, which is not known there"
            case _:
                pass
        yield from type_faults(part)
