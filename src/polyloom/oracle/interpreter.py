"""A static control part, run one instance after the other in the order of its source.

What the front end understood, without dependences, plans or loops: points of domains, sorted by their time.
Expressions are evaluated as C does, only as far as they are needed. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import islpy as isl
import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import PolyloomError, error
from polyloom.ir.evaluation import arithmetic
from polyloom.ir.expressions import (
    Assign,
    Binary,
    BinaryOp,
    Compare,
    Constant,
    Convert,
    Expression,
    Iterator,
    Local,
    ParameterValue,
    Procedure,
    Read,
    Select,
    Step,
    Unary,
    When,
    While,
    locals_of,
    walk,
)
from polyloom.ir.verification.references import access_outside
from polyloom.polyhedra.functions import isl_integer
from polyloom.scop.model import Scop, ScopAccess, ScopStatement

NDArray = npt.NDArray[Any]
Compute = Callable[[int], NDArray]
"""From the number of an instance to a value there."""

Points = TypeVar("Points", isl.Set, isl.Map)
_DIM = isl.dim_type

MOST_INSTANCES = 400_000
"""What takes about ten seconds."""


def run_in_order(
    scop: Scop,
    parameters: Mapping[str, int],
    arrays: Mapping[str, NDArray],
    steps_of: type[Steps] | None = None,
) -> None:
    """Run a part on ``arrays``, which holds all of its arrays by name and is changed.

    ``steps_of``: what carries out the instances of a statement, ``Steps`` if it is not given.

    Errors: ``access-outside``; ``reference-size`` where there are too many instances.
    """
    make = steps_of or Steps
    steps = [make(scop, statement, parameters, arrays) for statement in _counted(scop, parameters)]
    order = _order([step.times for step in steps])
    with np.errstate(all="ignore"):
        for number, instance in order:
            steps[number].execute(instance)


def _counted(scop: Scop, parameters: Mapping[str, int]) -> tuple[ScopStatement, ...]:
    """Return the statements, if there are not too many instances. Errors: ``reference-size``."""
    counts = [_fixed(s.domain, parameters).count_val().to_python() for s in scop.statements]
    if sum(counts) > MOST_INSTANCES:
        message = f"`{scop.name}` has {sum(counts):,} instances of statements: too many to run one by one"
        helps = ["install a C compiler (gcc, clang, or `pip install ziglang`)", "or give smaller sizes"]
        raise PolyloomError(error("reference-size", message, helps=helps))
    return scop.statements


def _fixed(points: Points, parameters: Mapping[str, int]) -> Points:
    """Return a set or relation at the values of its parameters, which are gone."""
    for name, value in parameters.items():
        at = points.find_dim_by_name(_DIM.param, name)
        points = points.fix_val(_DIM.param, at, isl_integer(value)) if at >= 0 else points
    return points.project_out(_DIM.param, 0, points.dim(_DIM.param))


def _order(times: Sequence[NDArray]) -> list[tuple[int, int]]:
    """Return every instance as the number of its statement and its own, sorted by time."""
    numbers = np.concatenate([np.full(len(t), k) for k, t in enumerate(times)] or [np.zeros(0, np.int64)])
    instances = np.concatenate([np.arange(len(t)) for t in times] or [np.zeros(0, np.int64)])
    if not numbers.size:
        return []
    whole = np.concatenate([t for t in times if len(t)])
    first = np.lexsort(whole.T[::-1])
    return list(zip(numbers[first].tolist(), instances[first].tolist(), strict=True))


def _points(points: isl.Set) -> NDArray:
    """Return the points of a bounded set without parameters, one a row."""
    count = points.dim(_DIM.set)
    found: list[list[int]] = []

    def add(point: isl.Point) -> None:
        found.append([point.get_coordinate_val(_DIM.set, k).to_python() for k in range(count)])

    points.foreach_point(add)
    return np.array(found, np.int64).reshape(len(found), count)


class Steps:
    """The instances of a statement: their points, their times, and what each of them does."""

    def __init__(
        self,
        scop: Scop,
        statement: ScopStatement,
        parameters: Mapping[str, int],
        arrays: Mapping[str, NDArray],
    ) -> None:
        self.name, self.statement, self.parameters, self.arrays = scop.name, statement, parameters, arrays
        relation = scop.schedule.intersect_domain(isl.UnionSet.from_set(statement.domain))
        both = isl.Map.from_union_map(relation) if not statement.domain.is_empty() else None
        found = np.zeros((0, 0), np.int64) if both is None else _points(_fixed(both, parameters).wrap())
        depth = statement.domain.dim(_DIM.set)
        self.here: dict[str, NDArray] = {}
        """What variables of the procedure hold that is being carried out."""
        self.points, self.times = found[:, :depth], found[:, depth:]
        self._value = self._compiled(statement.value)
        self._condition = None if statement.condition is None else self._compiled(statement.condition)
        self._target = self.place(statement.target)

    def execute(self, instance: int) -> None:
        """Carry out one instance."""
        if self._condition is None or bool(self._condition(instance)):
            value = self._value(instance)
            self.arrays[self.statement.target.array][self._target(instance)] = value

    def place(self, access: ScopAccess) -> Callable[[int], tuple[int, ...]]:
        """Return a function from an instance to the element that it accesses. Errors: ``access-outside``."""
        shape = self.arrays[access.array].shape
        indices = [self._index(index) for index in access.indices]

        def place(instance: int) -> tuple[int, ...]:
            found = tuple(index(instance) for index in indices)
            if len(found) != len(shape) or not all(0 <= i < n for i, n in zip(found, shape, strict=True)):
                where = "".join(f"[{i}]" for i in found)
                raise access_outside(self.name, f"`{access.array}{where}`", access.span)
            return found

        return place

    def _index(self, index: Expression) -> Callable[[int], int]:
        """Return a subscript's value at an instance; those that read nothing are computed for all at once."""
        if any(isinstance(part, Read | Local | Procedure) for part in walk(index)):
            compute = self._compiled(index)
            return lambda instance: int(compute(instance))
        columns = self.points.T
        values = arithmetic.value(index, (), columns.__getitem__, self.parameters)
        known: list[int] = np.broadcast_to(values, len(self.points)).tolist()
        return known.__getitem__

    def _compiled(self, expression: Expression) -> Compute:
        """Return a function that evaluates an expression at an instance."""
        match expression:
            case Read(position=k):
                access = self.statement.reads[k]
                array, place = self.arrays[access.array], self.place(access)
                return lambda instance: np.asarray(array[place(instance)])
            case Constant(value=x, type=kind):
                return _always(arithmetic.constant(x, kind))
            case ParameterValue(name=name, type=kind):
                return _always(np.asarray(self.parameters[name]).astype(kind.dtype))
            case Iterator(dimension=k, type=kind):
                return self.points[:, k].astype(kind.dtype).__getitem__
            case Local(name=name):
                return lambda _: self.here[name]
            case Procedure(body=body, result=result):
                return self._procedure(body, result)
            case _:
                return self._operation(expression)

    def _procedure(self, body: Sequence[Step], result: Local) -> Compute:
        first = {name: arithmetic.constant(0, local.type) for name, local in locals_of(tuple(body)).items()}
        steps = self._steps(body)

        def compute(at: int) -> NDArray:
            around, self.here = self.here, dict(first)
            steps(at)
            found, self.here = self.here[result.name], around
            return found

        return compute

    def _steps(self, steps: Sequence[Step]) -> Callable[[int], None]:
        found = [self._step(step) for step in steps]

        def run(at: int) -> None:
            for step in found:
                step(at)

        return run

    def _step(self, step: Step) -> Callable[[int], None]:
        match step:
            case Assign(local=local, value=value):
                name, compute = local.name, self._compiled(value)
                return lambda at: self.here.__setitem__(name, compute(at))
            case When(condition=condition, body=body, otherwise=otherwise):
                asked, then, other = self._compiled(condition), self._steps(body), self._steps(otherwise)
                return lambda at: then(at) if bool(asked(at)) else other(at)
            case While(condition=condition, body=body):
                asked, inside = self._compiled(condition), self._steps(body)

                def repeat(at: int) -> None:
                    while bool(asked(at)):
                        inside(at)

                return repeat

    def _operation(self, expression: Expression) -> Compute:
        match expression:
            case Select(condition=c, then=a, otherwise=b):
                condition, then, otherwise = self._compiled(c), self._compiled(a), self._compiled(b)
                return lambda at: then(at) if bool(condition(at)) else otherwise(at)
            case Binary(op=BinaryOp.AND, left=a, right=b):
                left, right = self._compiled(a), self._compiled(b)
                return lambda at: np.asarray(bool(left(at)) and bool(right(at)))
            case Binary(op=BinaryOp.OR, left=a, right=b):
                left, right = self._compiled(a), self._compiled(b)
                return lambda at: np.asarray(bool(left(at)) or bool(right(at)))
            case Unary(op=op, operand=a):
                apply, inner, kind = op, self._compiled(a), a.type
                return lambda at: np.asarray(arithmetic.unary(apply, inner(at), kind))
            case Binary(op=combine, left=a, right=b):
                left, right, kind = self._compiled(a), self._compiled(b), a.type
                return lambda at: np.asarray(arithmetic.binary(combine, left(at), right(at), kind))
            case Compare(op=compare, left=a, right=b):
                left, right, holds = self._compiled(a), self._compiled(b), arithmetic.COMPARISONS[compare]
                return lambda at: np.asarray(holds(left(at), right(at)))
            case Convert(type=kind, operand=a):
                inner = self._compiled(a)
                return lambda at: np.asarray(arithmetic.convert(inner(at), kind))
        raise AssertionError(expression)


def _always(value: NDArray) -> Compute:
    return lambda _: value
