"""Parallel loops that differ in names alone: the first is printed, the others call what it became.

    parallel for i: y[i] = max(x[i], 0)             step_1(.., x, y)
    parallel for j: z[j] = max(y[j], 0)      ->     step_1(.., y, z)

Models have equal layers. Loops are compared before they are written out, which makes them long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from polyloom.mdh.tree.nodes import (
    Array,
    Compute,
    For,
    Form,
    Function,
    If,
    Kind,
    Let,
    LetInteger,
    Load,
    Mark,
    Parameter,
    Statement,
    Store,
    While,
)
from polyloom.mdh.tree.registers import final
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation

Key = tuple[object, ...]


def final_with_forms(function: Function) -> Function:
    """Return a function as it is printed; but loops stay as they are that have the form of one before.

    Keeps true: loops at the top with the same ``form.number`` are the same but for ``form.names``, and the
    first of each number is as ``final`` returns it.
    """
    numbers, forms, aside = dict[Key, int](), dict[int, Form](), dict[int, For]()
    given = _given(function)
    body: list[Statement] = []
    for at, statement in enumerate(function.body):
        if isinstance(statement, For) and statement.kind is Kind.GROUP and not statement.by_work:
            names = _Names()
            key = names.loop(replace(statement, nowait=False))
            key = (key, *_met(names.numbers, given))
            form = Form(numbers.setdefault(key, len(numbers)), tuple(names.numbers))
            if form.number in forms:
                aside[at] = replace(statement, form=form)
                body.append(Mark(at, _ASIDE))
                continue
            forms[form.number] = form
            statement = replace(statement, form=form)
        if isinstance(statement, Array):
            given[statement.name] = replace(statement, name="")
        body.append(statement)
    found = final(replace(function, body=tuple(body)))
    return replace(function, body=tuple(_back(statement, aside) for statement in found.body))


_ASIDE = "a loop that is printed already"


def _back(statement: Statement, aside: Mapping[int, For]) -> Statement:
    if isinstance(statement, Mark) and statement.node is _ASIDE:
        return aside[statement.number]
    return statement


def _given(function: Function) -> dict[str, object]:
    """Return what is known of the arrays that a function is given, but for their names."""
    known: dict[str, Parameter] = {p.name: replace(p, name="", scratch=False) for p in function.parameters}
    views = {r.name: (r.shape, known[r.parameter], r.parameter) for r in function.reshaped}
    return {**{name: (p.shape, p, name) for name, p in known.items()}, **views}


def _met(numbers: Mapping[str, int], given: Mapping[str, object]) -> list[object]:
    """Return what is known of outer arrays, in the order in which a loop speaks of them."""
    memory = dict[str, int]()
    found: list[object] = []
    for name in numbers:
        known = given.get(name)
        if isinstance(known, tuple):
            *form, parameter = known
            known = (*form, memory.setdefault(parameter, len(memory)))
        found.append(known)
    return found


@dataclass
class _Names:
    """Reads loops with numbers in place of names, in the order in which they are met."""

    numbers: dict[str, int] = field(default_factory=dict)

    def of(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))

    def loop(self, s: For) -> Key:
        head = self.of(s.iterator), *map(self.integer, (s.start, s.condition, s.step))
        return For, *head, s.kind, s.by_work, s.nowait, *map(self.statement, s.body)

    def statement(self, s: Statement) -> object:
        match s:
            case For():
                return self.loop(s)
            case If(condition=condition, body=body, otherwise=otherwise):
                blocks = (tuple(map(self.statement, block)) for block in (body, otherwise))
                return If, self.subscript(condition), *blocks
            case While(condition=asked, body=body):
                return While, self.compute(asked), tuple(map(self.statement, body))
            case Let(name=name, value=value):
                return Let, self.of(name), self.compute(value)
            case LetInteger(name=name, value=number):
                return LetInteger, self.of(name), self.integer(number)
            case Array(name=name, shape=shape):
                return self.of(name), *map(self.integer, shape), replace(s, name="", shape=())
            case Store(array=array, subscripts=subscripts, value=value):
                return Store, self.of(array), *map(self.subscript, subscripts), self.compute(value)
            case _:
                return s

    def compute(self, value: Compute) -> Key:
        loads = tuple(map(self.load, value.loads))
        return value.expression, loads, *map(self.integer, value.iterators)

    def load(self, load: Load) -> Key:
        return self.of(load.array), *map(self.subscript, load.subscripts)

    def subscript(self, subscript: IntExpression | Compute) -> object:
        return self.compute(subscript) if isinstance(subscript, Compute) else self.integer(subscript)

    def integer(self, expression: IntExpression) -> object:
        match expression:
            case Name(name=name):
                return Name, self.of(name)
            case Operation(operator=operator, operands=operands):
                return operator, *map(self.integer, operands)
            case Number(value=value):
                return value
