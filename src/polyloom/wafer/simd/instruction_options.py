"""Which instructions can compute a node of an expression, and with which operands: whatever the nest.

Finding them takes much longer than pricing them for a nest, and many nests ask for the same nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from polyloom.ir.expressions import Binary, BinaryOp, Constant, Expression, Read, walk
from polyloom.wafer.machine.instruction_selection import (
    ACCUMULATOR,
    bindings,
    is_memory,
    is_scalar,
    spellings,
)
from polyloom.wafer.machine.instructions import Instruction, instructions

_INVERSE_ULPS = 1.5
"""Of a quotient as a product with the divisor's inverse: both round, and the first by up to an ulp."""


@dataclass(frozen=True, kw_only=True)
class InstructionOption:
    """An instruction for a node. ``kept``: the operands that are computed before, into temporaries.

    ``tied``: whether one of these reads the old value of the written element, which is right only where each
    point writes an element of its own; ``error``: of what is not exact.
    """

    instruction: Instruction
    operands: tuple[Expression, ...]
    kept: tuple[Expression, ...]
    tied: bool
    error: str


def instruction_options(
    node: Expression, scalars: frozenset[int], *, approximate: bool
) -> tuple[InstructionOption, ...]:
    """Return all instructions that compute a node; ``scalars``, ``approximate``: as of ``select``."""
    return _options(node, literals(node), scalars, approximate)


def literals(expression: Expression) -> tuple[str, ...]:
    """Return the constants as text: equal ones may have other bits, as 0.0 and -0.0 have."""
    return tuple(repr(part.value) for part in walk(expression) if isinstance(part, Constant))


def reads_old_value(expression: Expression) -> bool:
    """Whether an expression reads the written element."""
    return any(isinstance(part, Read) and part.position == ACCUMULATOR for part in walk(expression))


@lru_cache(maxsize=4096)
def _options(
    node: Expression, _: tuple[str, ...], scalars: frozenset[int], approximate: bool
) -> tuple[InstructionOption, ...]:
    """``_``: its literals, by which nodes differ that are equal."""
    return tuple(_found(node, scalars, approximate))


def _found(node: Expression, scalars: frozenset[int], approximate: bool) -> Iterator[InstructionOption]:
    for spelled, error in _spellings(node, scalars, approximate):
        for entry in instructions():
            if entry.destination is not spelled.type:
                continue
            for found in bindings(entry.body, spelled):
                operands = tuple(found[k] for k in range(len(entry.sources)))
                itself = node in operands and not is_memory(node, scalars)
                if not itself and _legal(entry, operands, scalars):
                    yield _option(entry, operands, scalars, error)


def _option(
    entry: Instruction, operands: tuple[Expression, ...], scalars: frozenset[int], error: str
) -> InstructionOption:
    inside = [o for o in operands if not is_memory(o, scalars)]
    kept = tuple(o for o in inside if not is_scalar(o, scalars))
    tied = any(map(reads_old_value, inside))
    return InstructionOption(instruction=entry, operands=operands, kept=kept, tied=tied, error=error)


def _spellings(
    node: Expression, scalars: frozenset[int], approximate: bool
) -> Iterator[tuple[Expression, str]]:
    """Yield other forms of a node, with their errors where bits differ: those of a scalar divisor."""
    yield from ((spelled, "") for spelled in spellings(node))
    match node:
        case Binary(op=BinaryOp.DIVIDE, left=a, right=b) if approximate and node.type.is_float:
            if is_scalar(b, scalars) and not is_scalar(a, scalars):
                error = f"/ by a product with the inverse: {_INVERSE_ULPS} ulps of {node.type.value}"
                yield Binary(BinaryOp.MULTIPLY, a, _inverse(b)), error


def _inverse(divisor: Expression) -> Expression:
    """Return 1 / divisor; of a number, the number."""
    kind = divisor.type
    if isinstance(divisor, Constant) and (value := float(kind.dtype.type(divisor.value))):
        return Constant(1 / value, kind)
    return Binary(BinaryOp.DIVIDE, Constant(1.0, kind), divisor)


def _legal(entry: Instruction, operands: tuple[Expression, ...], scalars: frozenset[int]) -> bool:
    """Whether scalars stand where they may, and not everywhere."""
    if all(is_scalar(operand, scalars) for operand in operands) and len(operands) > 1:
        return False
    return all(k not in entry.scalar_only or is_scalar(o, scalars) for k, o in enumerate(operands))
