"""What of the IR's scalar functions the machine can compute, checked before anything is placed."""

from __future__ import annotations

from collections.abc import Iterator

from polyloom.diagnostics import Diagnostic, Unsupported, error
from polyloom.ir.expressions import Binary, Expression, ParameterValue, Unary, walk
from polyloom.ir.expressions import Iterator as IteratorValue
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType
from polyloom.wafer.machine.scalar_c import C_TYPES


def check_expressible(program: Program) -> None:
    """Raise ``Unsupported`` (``wafer-type``, ``wafer-function``) naming all that PEs cannot compute."""
    faults = [*_type_faults(program), *(f for s in program.statements for f in _statement_faults(s))]
    if faults:
        raise Unsupported(*dict.fromkeys(faults))


def _type_faults(program: Program) -> Iterator[Diagnostic]:
    for tensor in program.tensors:
        if tensor.type not in C_TYPES:
            yield error(
                "wafer-type",
                f"the machine has no {tensor.type.value}, the type of `{tensor.name}`",
                tensor.span,
                helps=[f"it has {', '.join(kind.value for kind in C_TYPES)}"],
            )


def _statement_faults(statement: Statement) -> Iterator[Diagnostic]:
    for part in walk(statement.expression):
        what = _missing(part)
        if what is not None:
            message = f"the machine does not compute {what}, which `{statement.name}` uses"
            yield error("wafer-function", message, statement.span, helps=[_HELP])


_HELP = "it has those of LAIR, which `polyloom docs interface` lists, and `exp2`, `log2`, `log10`, `cbrt`"


def _missing(part: Expression) -> str | None:
    match part:
        case IteratorValue():
            return "with the value of an iterator"
        case ParameterValue(name=name):
            return f"with the parameter `{name}`"
        case Unary(op=op) | Binary(op=op) if op.wafer is None:
            return f"`{op.name}`"
        case _ if part.type not in C_TYPES and part.type is not ElementType.BOOL:
            return f"in {part.type.value}"
        case _:
            return None
