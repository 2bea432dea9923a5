"""Bytes between statements held in 16 bits, for a machine that has none of 8, where no value changes.

    mask[i] = x[i] <= 0 ? uint8(1) : uint8(0)       mask[i] = x[i] <= 0 ? int16(1) : int16(0)
    y[i] = mask[i] != 0 ? 0 : g[i]                  y[i] = mask[i] != 0 ? 0 : g[i]

Truth values of models are such bytes. What is chosen, compared, converted, or the larger or smaller of two
is the same in both types, as is the largest or least of some; sums may wrap around, and where nothing is
reduced a result is its type's least or greatest value, so that bytes that meet in these stay bytes. Inputs
and outputs keep their types, unless their arrays are converted where they come in and go out (``ends``,
``taken``, ``given_back``). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.expressions import Binary, BinaryOp, Constant, Expression, Read, Select, walk
from polyloom.ir.host import Index
from polyloom.ir.program import Program
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.reductions import Combine
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType

Arrays = Mapping[str, npt.NDArray[Any]]

_BYTE, _SHORT = ElementType.UINT8, ElementType.INT16
_CLOSED = (BinaryOp.MAXIMUM, BinaryOp.MINIMUM, BinaryOp.BIT_AND, BinaryOp.BIT_OR, BinaryOp.BIT_XOR)


def bytes_as_shorts(program: Program, *, ends: bool = False) -> Program:
    """Return the program with its bytes as 16-bit integers, where every element keeps its value.

    ``ends``: those of inputs and outputs too.
    """
    held = _held(program, {*program.inputs, *program.results} if ends else {*program.internal})
    if not held:
        return program
    buffers = tuple(replace(b, type=_SHORT) if b.name in held else b for b in program.buffers)
    body = tuple(_changed(s) if held & _buffers(s) else s for s in program.statements)
    return replace(program, buffers=buffers, body=body)


def taken(read: Program, held: Program, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Return arrays of a program ``read`` as it takes them when ``held`` in 16 bits."""
    return _converted(read, held, arrays, _BYTE, np.int16)


def given_back(read: Program, held: Program, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Return what a program ``held`` in 16 bits computes, in the types of the program that was ``read``."""
    return _converted(read, held, arrays, _SHORT, np.uint8)


def _converted(
    read: Program, held: Program, arrays: Arrays, kind: ElementType, wanted: npt.DTypeLike
) -> dict[str, npt.NDArray[Any]]:
    known = {t.name for t in read.tensors}
    changed = {t.name for t in held.tensors if t.name in known and t.type is not read.buffer(t.name).type}
    plain = {n: np.asarray(a) for n, a in arrays.items()}
    return {n: a.astype(wanted) if n in changed and a.dtype == kind.dtype else a for n, a in plain.items()}


def _held(program: Program, names: AbstractSet[str]) -> frozenset[str]:
    """Return the bytes all of whose statements compute the same in 16 bits: the largest such set."""
    held = frozenset(n for n in names if program.buffer(n).type is _BYTE)
    while True:
        kept = held.difference(*(_buffers(s) for s in program.statements if not _is_same(s, program, held)))
        if kept == held:
            return held
        held = kept


def _buffers(statement: Statement) -> frozenset[str]:
    return frozenset(view.buffer for view in (*statement.reads, statement.write))


def _is_same(statement: Statement, program: Program, held: AbstractSet[str]) -> bool:
    """Whether a statement gives the same if all its bytes are 16-bit integers."""
    if statement.expression.type is _BYTE and not (
        statement.write.buffer in held and _combines_same(statement, program)
    ):
        return False
    names = [view.buffer for view in statement.reads]
    return all(_stays(part, names, held) for part in walk(statement.expression) if part.type is _BYTE)


def _combines_same(statement: Statement, program: Program) -> bool:
    """Whether points combine to the same: kept apart, or the largest or least of one or more."""
    if statement.reduction is Combine.CONCATENATE:
        return True
    if statement.reduction not in (Combine.MAXIMUM, Combine.MINIMUM) or 0 in statement.domain:
        return False
    indices, rank = statement.write.affine, len(statement.domain)
    iterators = [next((k for k in range(rank) if index == Index.unit(k, rank)), None) for index in indices]
    extents = [statement.domain[k] for k in iterators if k is not None]
    return len(set(iterators)) == len(indices) and extents == [
        *program.buffer(statement.write.buffer).extents
    ]


def _stays(part: Expression, names: list[str], held: AbstractSet[str]) -> bool:
    match part:
        case Read(position=k):
            return names[k] in held
        case Constant(value=value):
            return value in range(256)
        case Binary(op=op):
            return op in _CLOSED
        case _:
            return isinstance(part, Select)


def _changed(statement: Statement) -> Statement:
    return statement.changed(expression=rebuilt(statement.expression, _short))


def _short(part: Expression) -> Expression | None:
    return replace(part, type=_SHORT) if isinstance(part, Read | Constant) and part.type is _BYTE else None
