"""Steps of scalar functions as statements of the tree: variables are registers, loops go as data decide.

    y[i] = {                                    int32 k, float64 s in registers
      k = row[i];                               k = row[i]
      while (k < row[i + 1]) {                  s = 0
        s = s + a[k] * x[col[k]];        ->     while k < row[i + 1]:
        k = k + 1;                                s = s + a[k] * x[col[k]]
      } s }                                       k = k + 1
                                                y[i] = s

Source: md_poly, Sec. 3.2.2, Listing 2 (a scalar function made of statements).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Iterator as Yields
from dataclasses import dataclass, replace

from polyloom.ir.expressions import (
    Assign,
    Constant,
    Expression,
    Iterator,
    Local,
    Procedure,
    Read,
    Step,
    When,
    has_procedure,
    locals_of,
    walk,
)
from polyloom.ir.expressions import While as WhileStep
from polyloom.ir.procedures.variables import unset
from polyloom.ir.rebuild import read_positions, rebuilt, rebuilt_steps
from polyloom.mdh.tree.nodes import Array, Code, Compute, If, Load, Space, Statement, Store, While
from polyloom.polyhedra.loops.tree import IntExpression

Fresh = Callable[[str], str]
"""From what a variable is called to a name that nothing in the function has."""


_Key = tuple[tuple[Step, ...], tuple[Load, ...], tuple[IntExpression, ...]]


@dataclass(frozen=True)
class Done:
    """Steps that were carried out already, over what they load, with the registers of their variables."""

    registers: dict[_Key, Mapping[str, str]]

    def of(self, steps: tuple[Step, ...], value: Compute) -> Mapping[str, str] | None:
        """Return the registers of steps in a scalar function; None where they were not carried out."""
        return self.registers.get(_key(steps, value))

    def add(self, steps: tuple[Step, ...], value: Compute, registers: Mapping[str, str]) -> None:
        """Remember steps."""
        self.registers[_key(steps, value)] = registers

    def stored(self, array: str) -> None:
        """Forget steps that load from an array, which is another one now."""
        for key in [key for key in self.registers if array in _arrays_of(key[1])]:
            del self.registers[key]


def _key(steps: tuple[Step, ...], value: Compute) -> _Key:
    """Return steps with all that they load and count, whatever else the scalar function around them has."""
    loads: list[Load] = []
    integers: list[IntExpression] = []

    def leaf(part: Expression) -> Expression | None:
        match part:
            case Read(position=k, type=kind):
                loads.append(value.loads[k])
                return Read(len(loads) - 1, kind)
            case Iterator(dimension=k, type=kind):
                integers.append(value.iterators[k])
                return Iterator(len(integers) - 1, kind)
            case _:
                return None

    made = rebuilt_steps(steps, lambda e: rebuilt(e, leaf))
    return made, tuple(loads), tuple(integers)


def _arrays_of(loads: tuple[Load, ...]) -> set[str]:
    inner = (s for load in loads for s in load.subscripts if isinstance(s, Compute))
    return {load.array for load in loads}.union(*(_arrays_of(s.loads) for s in inner))


def with_steps_before(value: Compute, fresh: Fresh, done: Done | None = None) -> tuple[Code, Compute]:
    """Return the steps inside a scalar function as statements, and its value behind them.

    Those that were ``done`` before are left out; the others are added to them.

    A procedure that is an operand of ``and``, ``or`` or a selection is carried out in any case: front ends
    make none, and no pass puts one there (``scop/preparation/forward_substitution``).
    """
    if not has_procedure(value.expression):
        return (), value
    before: list[Statement] = []
    known = done or Done({})

    def result(part: Expression) -> Expression | None:
        if not isinstance(part, Procedure):
            return None
        registers = known.of(part.body, value)
        if registers is None:
            registers = {name: fresh(name) for name in locals_of(part.body)}
            known.add(part.body, value, registers)
            before.extend(_declared(part, value, registers))
            before.extend(_Steps(value, registers, fresh).code(part.body))
        loads.append(Load(registers[part.result.name]))
        return Read(len(loads) - 1, part.type)

    loads = list(value.loads)
    expression = rebuilt(value.expression, result)
    return tuple(before), _with_used_loads(Compute(expression, tuple(loads), value.iterators))


def _declared(procedure: Procedure, value: Compute, registers: Mapping[str, str]) -> Yields[Statement]:
    """Yield the registers; those that are not surely set before they are read begin with 0."""
    first = unset(procedure.body, [procedure.result], lambda e: _spoken(replace(value, expression=e)))
    for name, local in locals_of(procedure.body).items():
        register = registers[name]
        yield Array(name=register, type=local.type, shape=(), space=Space.REGISTER)
        if local in first:
            yield Store(register, (), Compute(Constant(0, local.type)))


def _spoken(value: Compute) -> set[Local]:
    """Return the variables of which a scalar function speaks, in subscripts too."""
    found: set[Local] = set()
    for part in walk(value.expression):
        if isinstance(part, Local):
            found.add(part)
        elif isinstance(part, Read):
            places = value.loads[part.position].subscripts
            found = found.union(*(_spoken(s) for s in places if isinstance(s, Compute)))
    return found


def _with_used_loads(value: Compute) -> Compute:
    """Return a scalar function without the loads that it does not use."""
    used = read_positions(value.expression)
    numbers = {position: k for k, position in enumerate(used)}
    expression = rebuilt(
        value.expression, lambda e: Read(numbers[e.position], e.type) if isinstance(e, Read) else None
    )
    return Compute(expression, tuple(value.loads[p] for p in used), value.iterators)


@dataclass(frozen=True)
class _Steps:
    """The steps of a procedure in ``value``; ``registers``: of its variables, by their names."""

    value: Compute
    registers: Mapping[str, str]
    fresh: Fresh

    def code(self, steps: tuple[Step, ...]) -> Code:
        return tuple(statement for step in steps for statement in self.step(step))

    def step(self, step: Step) -> Yields[Statement]:
        match step:
            case Assign(local=local, value=value):
                before, found = with_steps_before(self.compute(value), self.fresh)
                yield from before
                yield Store(self.registers[local.name], (), found)
            case When(condition=condition, body=body, otherwise=otherwise):
                before, asked = with_steps_before(self.compute(condition), self.fresh)
                yield from before
                yield If(asked, self.code(body), self.code(otherwise))
            case WhileStep(condition=condition, body=body):
                assert not has_procedure(condition), "a loop asks again what steps give"
                yield While(self.compute(condition), self.code(body))

    def compute(self, expression: Expression) -> Compute:
        """Return a value at this step: variables are loaded from their registers."""
        return self._over(Compute(expression, self.value.loads, self.value.iterators))

    def _over(self, value: Compute) -> Compute:
        loads = [
            self._load(load, value) if k in read_positions(value.expression) else load
            for k, load in enumerate(value.loads)
        ]

        def leaf(part: Expression) -> Expression | None:
            if not isinstance(part, Local) or part.name not in self.registers:
                return None
            load = Load(self.registers[part.name])
            if load not in loads:
                loads.append(load)
            return Read(loads.index(load), part.type)

        expression = rebuilt(value.expression, leaf)
        return _with_used_loads(Compute(expression, tuple(loads), value.iterators))

    def _load(self, load: Load, value: Compute) -> Load:
        places = (self._over(s) if isinstance(s, Compute) else s for s in load.subscripts)
        return Load(load.array, tuple(places))
