"""Static control parts written down by hand, in isl's notation and the IR's expressions."""

from __future__ import annotations

import re
from collections.abc import Sequence

import islpy as isl

from polyloom.diagnostics import Source
from polyloom.ir.expressions import Binary, BinaryOp, Expression, Read
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops_tree import IntExpression, Name, Number
from polyloom.scop.model import Origin, Scop, ScopAccess, ScopArray, ScopParameter, ScopStatement

F = ElementType.FLOAT64


def read(position: int) -> Read:
    return Read(position, F)


def plus(a: Expression, b: Expression) -> Binary:
    return Binary(BinaryOp.ADD, a, b)


def times(a: Expression, b: Expression) -> Binary:
    return Binary(BinaryOp.MULTIPLY, a, b)


def statement(
    parameters: str, domain: str, target: str, reads: Sequence[str], value: Expression
) -> ScopStatement:
    """Make a statement: ``domain`` is ``S[i, j] : 0 <= i < n``, accesses are ``A[i, j + 1]``."""
    head = domain.partition(" : ")[0]
    name, _, dims = head.rstrip("]").partition("[")
    iterators = tuple(d.strip() for d in dims.split(",") if d.strip())
    lead = f"[{parameters}] -> "

    def access(text: str) -> ScopAccess:
        return ScopAccess(text.partition("[")[0], isl.Map(f"{lead}{{ {head} -> {text} }}"))

    return ScopStatement(
        name,
        isl.Set(f"{lead}{{ {domain} }}"),
        iterators,
        (None,) * len(iterators),
        access(target),
        tuple(access(r) for r in reads),
        value,
    )


def scop(
    parameters: str,
    statements: Sequence[ScopStatement],
    schedule: str,
    arrays: dict[str, Sequence[str]],
    local: Sequence[str] = (),
) -> Scop:
    """Make a part; ``arrays``: extents, which are names or numbers; ``local``: those declared inside."""
    names = [p for p in re.split(r"[, ]+", parameters) if p]
    return Scop(
        "part",
        Source("part.c", ""),
        tuple(ScopParameter(name, ElementType.INT32) for name in names),
        isl.Set(f"[{parameters}] -> {{ : }}"),
        tuple(statements),
        isl.UnionMap(f"[{parameters}] -> {{ {schedule} }}"),
        tuple(
            ScopArray(
                name,
                F,
                tuple(_extent(e) for e in extents),
                Origin.INNER if name in local else Origin.ARGUMENT,
            )
            for name, extents in arrays.items()
        ),
    )


def _extent(text: str) -> IntExpression:
    return Number(int(text)) if text.isdigit() else Name(text)
