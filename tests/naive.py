"""The slow and obvious evaluator: nested loops over single elements. It shares no code with the real one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from polyloom.ir.expressions import Binary, Compare, Constant, Convert, Iterator, Read, Select, Unary
from polyloom.ir.host import Index
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement

Scalar = Any


def naive(program: Program, inputs: Mapping[str, Any]) -> dict[str, Any]:
    arrays = dict(inputs)
    with np.errstate(all="ignore"):
        for statement in program.statements:
            target = program.buffer(statement.write.buffer)
            arrays[target.name] = _run(statement, target.extents, target.type.value, arrays)
    return {s.write.buffer: arrays[s.write.buffer] for s in program.statements}


def _run(statement: Statement, shape: tuple[int, ...], kind: str, arrays: Mapping[str, Any]) -> Any:
    out = np.empty(shape, kind)
    out[...] = _start(statement.reduction.value, kind)
    for point in itertools.product(*map(range, statement.domain)):
        if all(_at(g, point) >= 0 for g in statement.conditions):
            reads = [arrays[a.buffer][tuple(_at(i, point) for i in a.affine)] for a in statement.reads]
            term = _value(statement.expression, reads, point)
            place = tuple(_at(i, point) for i in statement.write.affine)
            if statement.reduction.value == "++":
                out[place] = term
            else:
                out[place] = _binary(statement.reduction.value, out[place], term, kind)
    return out


def _start(reduction: str, kind: str) -> float | int:
    if reduction in ("max", "min") and kind.startswith("int"):
        limits = np.iinfo(kind)
        return int(limits.min if reduction == "max" else limits.max)
    return {"++": 0, "+": 0, "*": 1, "max": -math.inf, "min": math.inf}[reduction]


def _at(affine: Index, point: tuple[int, ...]) -> int:
    return affine.constant + sum(c * p for c, p in zip(affine.coefficients, point, strict=True))


def _cast(number: Any, kind: str) -> Scalar:
    if kind.startswith("int"):
        if isinstance(number, np.floating) and not abs(float(number)) < 2**63:
            raise OverflowError("no integer stands for this float")
        bits = int(kind[3:])
        wrapped = int(number) % 2**bits
        return np.dtype(kind).type(wrapped - 2**bits if wrapped >= 2 ** (bits - 1) else wrapped)
    return np.dtype(kind).type(float(number) if not isinstance(number, np.generic) else number)


def _value(e: Any, reads: list[Scalar], point: tuple[int, ...]) -> Scalar:
    match e:
        case Read(position=k):
            return reads[k]
        case Constant(value=v):
            return _cast(v, e.type.value)
        case Iterator(dimension=k):
            return _cast(point[k], e.type.value)
        case Convert(operand=a):
            return _cast(_value(a, reads, point), e.type.value)
        case Unary(op=op, operand=a):
            return _unary(op.name, _value(a, reads, point), a.type.value)
        case Binary(op=op, left=a, right=b):
            return _binary(op.name, _value(a, reads, point), _value(b, reads, point), a.type.value)
        case Compare(op=op, left=a, right=b):
            return _compare(op.value, _value(a, reads, point), _value(b, reads, point))
        case Select(condition=c, then=a, otherwise=b):
            return _value(a if _value(c, reads, point) else b, reads, point)
    raise TypeError(e)


def _compare(op: str, a: Scalar, b: Scalar) -> bool:
    return bool({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[op])


def _unary(op: str, a: Scalar, kind: str) -> Scalar:
    if kind.startswith("int"):
        n = int(a)
        return _cast({"-": -n, "abs": abs(n), "floor": n, "ceil": n, "round": n}[op], kind)
    if op in ("-", "abs", "sqrt"):
        return {"-": lambda: -a, "abs": lambda: abs(a), "sqrt": lambda: np.sqrt(a)}[op]()
    return _cast(_float_function(op, float(a)), kind)


def _float_function(op: str, x: float) -> float:
    functions = {
        "exp": math.exp,
        "log": math.log,
        "rsqrt": lambda v: 1 / math.sqrt(v),
        "tanh": math.tanh,
        "sigmoid": lambda v: 1 / (1 + math.exp(-v)),
        "erf": math.erf,
        "floor": lambda v: _integral(math.floor, v),
        "ceil": lambda v: _integral(math.ceil, v),
        "round": lambda v: _integral(round, v),
    }
    return functions[op](x)


def _integral(function: Any, x: float) -> float:
    return math.copysign(function(x), x) if math.isfinite(x) else x


def _binary(op: str, a: Scalar, b: Scalar, kind: str) -> Scalar:
    if op in ("max", "min"):
        return _extreme(op, a, b)
    if kind.startswith("int"):
        return _cast(_integers(op, int(a), int(b)), kind)
    if op == "pow":
        return _cast(float(a) ** float(b), kind)
    result = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b}[op]()
    assert result.dtype == kind
    return result


def _extreme(op: str, a: Scalar, b: Scalar) -> Scalar:
    if a != a or b != b:
        return a if a != a else b
    return (max(b, a)) if op == "max" else (min(b, a))


def _integers(op: str, a: int, b: int) -> int:
    if op == "/":
        return 0 if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
    if op == "pow":
        if b >= 0:
            return a**b
        return {1: 1, -1: 1 if b % 2 == 0 else -1}.get(a, 0)
    return {"+": a + b, "-": a - b, "*": a * b}[op]
