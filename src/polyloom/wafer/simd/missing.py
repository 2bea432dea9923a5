"""Why a statement's work is no SIMD instruction: the operations that no instruction does, and what helps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from polyloom.ir.expressions import Binary, Compare, Convert, Expression, Select, Unary
from polyloom.ir.types import ElementType
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.simd.instruction_options import literals
from polyloom.wafer.simd.parts import Part, Parts


def why_no_instruction(
    work: Expression, scalars: frozenset[int], machine: Machine, *, approximate: bool
) -> tuple[str, tuple[str, ...]]:
    """Return the reason, and notes on what to change; arguments as of ``instruction_sequences.select``.

    ``Read(-1) + Read(0) % Read(1)``: no SIMD instruction does `%` of float32.
    """
    return _why(work, literals(work), scalars, machine, approximate)


@lru_cache(maxsize=256)
def _why(
    work: Expression, _: tuple[str, ...], scalars: frozenset[int], machine: Machine, approximate: bool
) -> tuple[str, tuple[str, ...]]:
    """``_``: its literals, which may have other bits where they are equal."""
    missing = tuple(dict.fromkeys(_without_options(Parts(scalars, machine, approximate).of(work))))
    if not missing:
        reason = "no one SIMD instruction does the operation of the statement, and several save too little"
        return reason, ("fewer PEs give each more instances, for which several instructions may pay",)
    names = ", ".join(f"{_name(node)} of {_operand_type(node).value}" for node in missing)
    return f"no SIMD instruction does {names}", tuple(dict.fromkeys(_advice(missing, scalars, machine)))


def _without_options(part: Part) -> Iterator[Expression]:
    """Yield the operations of a part, itself among them, that neither an instruction nor a sequence does."""
    if part.is_memory or part.is_scalar:
        return
    if not part.options:
        yield part.expression
    for child in part.children:
        yield from _without_options(child)


def _advice(missing: tuple[Expression, ...], scalars: frozenset[int], machine: Machine) -> Iterator[str]:
    for node in missing:
        if any(True for _ in Parts(scalars, machine, True).functions(node)):
            yield "`--simd-without vector-functions` leaves functions to loops"
        elif not _operand_type(node).is_float:
            yield "most instructions are of float16 and float32 (`polyloom docs instructions`)"
        else:
            yield "`polyloom docs instructions` lists what there is; `max` may do what a choice does"


def _name(node: Expression) -> str:
    match node:
        case Unary(op=op) | Binary(op=op):
            return f"`{op.name}`"
        case Compare(op=compared):
            return f"`{compared.value}`"
        case Select():
            return "a choice"
        case Convert(type=kind):
            return f"a conversion to {kind.value}"
        case _:
            return type(node).__name__


def _operand_type(node: Expression) -> ElementType:
    match node:
        case Compare(left=operand) | Convert(operand=operand):
            return operand.type
        case _:
            return node.type
