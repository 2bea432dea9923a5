"""A SCoP, run one instance after the other in the order of its schedule: what the front end understood.

Expressions are evaluated as C does, only as far as they are needed; every element that is touched must be
in the
access relation and in the array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import islpy as isl
import numpy as np
import numpy.typing as npt

from polyloom.ir import arithmetic
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    Constant,
    Convert,
    Expression,
    Iterator,
    ParameterValue,
    Read,
    Select,
    Unary,
)
from polyloom.polyhedra.loops_tree import IntExpression, Name, Number, Operation
from polyloom.polyhedra.points import all_points
from polyloom.scop.model import Scop, ScopAccess, ScopArray, ScopStatement

NDArray = npt.NDArray[Any]
_DIM = isl.dim_type


def extent(expression: IntExpression, parameters: Mapping[str, int]) -> int:
    """Return the value of an array's extent."""
    match expression:
        case Number(value=value):
            return value
        case Name(name=name):
            return parameters[name]
        case Operation(operator=operator, operands=operands):
            values = [extent(o, parameters) for o in operands]
            match operator:
                case "+":
                    return sum(values)
                case "*":
                    return int(np.prod(values))
                case "-":
                    return values[0] - values[1] if len(values) > 1 else -values[0]
                case "floor":
                    return values[0] // values[1]
                case "max":
                    return max(values)
                case "min":
                    return min(values)
    raise AssertionError(expression)


def run(scop: Scop, parameters: Mapping[str, int], arrays: dict[str, NDArray]) -> None:
    """Run a SCoP; ``arrays`` holds all of its arrays by name and is changed."""
    instances = []
    for statement in scop.statements:
        fixed = _fix_set(statement.domain, parameters)
        times = _fix_map(_schedule_of(scop, statement), parameters)
        for point in all_points(fixed):
            instances.append((_image(times, point), statement, point))
    for name in {a.name for a in scop.arrays} - set(arrays):
        raise AssertionError(f"no array {name}")
    order = [time for time, _, _ in instances]
    assert len(set(order)) == len(order), "two instances at one time"
    for _, statement, point in sorted(instances, key=lambda i: i[0]):
        _Instance(scop, statement, point, parameters, arrays).execute()


def _schedule_of(scop: Scop, statement: ScopStatement) -> isl.Map:
    return isl.Map.from_union_map(scop.schedule.intersect_domain(isl.UnionSet.from_set(statement.domain)))


def _fix_set(points: isl.Set, parameters: Mapping[str, int]) -> isl.Set:
    for name, value in parameters.items():
        at = points.find_dim_by_name(_DIM.param, name)
        points = points.fix_val(_DIM.param, at, isl.Val(value)) if at >= 0 else points
    return points.project_out(_DIM.param, 0, points.dim(_DIM.param))


def _fix_map(relation: isl.Map, parameters: Mapping[str, int]) -> isl.Map:
    for name, value in parameters.items():
        at = relation.find_dim_by_name(_DIM.param, name)
        relation = relation.fix_val(_DIM.param, at, isl.Val(value)) if at >= 0 else relation
    return relation.project_out(_DIM.param, 0, relation.dim(_DIM.param))


def _image(relation: isl.Map, point: tuple[int, ...]) -> tuple[int, ...]:
    for k, value in enumerate(point):
        relation = relation.fix_val(_DIM.in_, k, isl.Val(value))
    (only,) = all_points(relation.range())
    return only


@dataclass
class _Instance:
    scop: Scop
    statement: ScopStatement
    point: tuple[int, ...]
    parameters: Mapping[str, int]
    arrays: dict[str, NDArray]

    def execute(self) -> None:
        condition = self.statement.condition
        if condition is not None and not bool(self.value(condition)):
            return
        result = self.value(self.statement.value)
        array = self.arrays[self.statement.target.array]
        array[self.element(self.statement.target)] = result

    def element(self, access: ScopAccess) -> tuple[int, ...]:
        index = tuple(int(self.value(i)) for i in access.indices)
        array = self.arrays[access.array]
        assert len(index) == array.ndim
        inside = all(0 <= i < n for i, n in zip(index, array.shape, strict=True))
        where = f"{self.statement.name}{list(self.point)}: {access.array}{list(index)}"
        assert inside, f"{where} outside {array.shape}"
        assert self._related(access, index), f"{where} not in {access.relation}"
        return index

    def _related(self, access: ScopAccess, index: tuple[int, ...]) -> bool:
        relation = _fix_map(access.relation, self.parameters)
        for k, value in enumerate(self.point):
            relation = relation.fix_val(_DIM.in_, k, isl.Val(value))
        for k, value in enumerate(index):
            relation = relation.fix_val(_DIM.out, k, isl.Val(value))
        return not relation.is_empty()

    def value(self, expression: Expression) -> NDArray:
        match expression:
            case Read(position=k, type=kind):
                access = self.statement.reads[k]
                found = np.asarray(self.arrays[access.array][self.element(access)])
                assert found.dtype == kind.dtype
                return found
            case Constant(value=x, type=kind):
                return arithmetic.constant(x, kind)
            case Iterator(dimension=k, type=kind):
                return np.asarray(self.point[k]).astype(kind.dtype)
            case ParameterValue(name=name, type=kind):
                return np.asarray(self.parameters[name]).astype(kind.dtype)
            case Select(condition=c, then=a, otherwise=b):
                assert a.type is b.type
                return self.value(a) if bool(self.value(c)) else self.value(b)
            case Binary(op=BinaryOp.AND, left=a, right=b):
                return self.value(b) if bool(self.value(a)) else np.asarray(False)
            case Binary(op=BinaryOp.OR, left=a, right=b):
                return np.asarray(True) if bool(self.value(a)) else self.value(b)
            case Unary(op=op, operand=a):
                return np.asarray(arithmetic.unary(op, self.value(a), a.type))
            case Binary(op=op, left=a, right=b):
                assert a.type is b.type, expression
                return np.asarray(arithmetic.binary(op, self.value(a), self.value(b), a.type))
            case Compare(op=compare, left=a, right=b):
                assert a.type is b.type, expression
                return np.asarray(arithmetic.COMPARISONS[compare](self.value(a), self.value(b)))
            case Convert(type=kind, operand=a):
                return np.asarray(arithmetic.convert(self.value(a), kind))


def shape_of(array: ScopArray, parameters: Mapping[str, int], given: Mapping[str, int]) -> tuple[int, ...]:
    """Return an array's extents; the first one is given where C does not say it."""
    return tuple(given[array.name] if size is None else extent(size, parameters) for size in array.shape)
