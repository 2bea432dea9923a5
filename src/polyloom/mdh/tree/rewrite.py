"""Walks over kernel trees, and trees with parts of them replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import is_

from polyloom.mdh.tree.nodes import (
    Array,
    Barrier,
    Code,
    Compute,
    Condition,
    For,
    Function,
    If,
    Let,
    LetInteger,
    Load,
    Mark,
    Statement,
    Store,
    Subscript,
    While,
)
from polyloom.polyhedra.loops.tree import Instance, IntExpression, names_in, replace_name, replace_names

Integers = Callable[[IntExpression], IntExpression]


def walk(code: Code) -> Iterator[Statement]:
    """Yield all statements, outer ones first, in their order."""
    for statement in code:
        yield statement
        yield from (inner for block in blocks(statement) for inner in walk(block))


def blocks(statement: Statement) -> tuple[Code, ...]:
    """Return the blocks inside a statement."""
    match statement:
        case For(body=body):
            return (body,)
        case If(body=body, otherwise=otherwise):
            return body, otherwise
        case While(body=body):
            return (body,)
        case _:
            return ()


def with_blocks(statement: Statement, change: Callable[[Code], Code]) -> Statement:
    """Return a statement with ``change`` of each block inside it."""
    match statement:
        case For(body=body):
            new = change(body)
            return statement if same(new, body) else replace(statement, body=new)
        case If(condition=condition, body=body, otherwise=otherwise):
            then, other = change(body), change(otherwise)
            is_same = same(then, body) and same(other, otherwise)
            return statement if is_same else If(condition, then, other)
        case While(condition=asked, body=body):
            new = change(body)
            return statement if same(new, body) else While(asked, new)
        case _:
            return statement


def same(new: Sequence[object], old: Sequence[object]) -> bool:
    """Return whether two sequences hold the very same objects."""
    return new is old or (len(new) == len(old) and all(map(is_, new, old)))


def rewritten(code: Code, change: Callable[[Statement], Sequence[Statement]]) -> Code:
    """Return the code with ``change`` of each statement, whose blocks have been rewritten before."""
    return tuple(
        new
        for statement in code
        for new in change(with_blocks(statement, lambda block: rewritten(block, change)))
    )


def values_of(statement: Statement) -> tuple[Compute, ...]:
    """Return the scalar functions that a statement itself computes, those in subscripts after them."""
    found: list[Compute] = []
    match statement:
        case Let(value=value):
            found.append(value)
        case Store(subscripts=subscripts, value=value):
            found += [value, *(s for s in subscripts if isinstance(s, Compute))]
        case If(condition=Compute() as condition) | While(condition=condition):
            found.append(condition)
        case _:
            pass
    for value in found:  # grows while it is walked: data in subscripts of data
        found += [s for load in value.loads for s in load.subscripts if isinstance(s, Compute)]
    return tuple(found)


def loads_of(statement: Statement) -> tuple[Load, ...]:
    """Return everything that a statement itself loads, named values too."""
    return tuple(load for value in values_of(statement) for load in value.loads)


def with_integers(statement: Statement, change: Integers) -> Statement:
    """Return a statement with ``change`` of each integer expression, inside its blocks too."""

    def block(code: Code) -> Code:
        return tuple(with_integers(s, change) for s in code)

    match statement:
        case For(start=start, condition=condition, step=step):
            before = start, condition, step, *statement.body
            start, condition, step, body = (
                change(start),
                change(condition),
                change(step),
                block(statement.body),
            )
            if same((start, condition, step, *body), before):
                return statement
            return replace(statement, start=start, condition=condition, step=step, body=body)
        case If(condition=condition, body=body, otherwise=otherwise):
            return If(_condition(condition, change), block(body), block(otherwise))
        case While(condition=asked, body=body):
            return While(_compute(asked, change), block(body))
        case Let(name=name, value=value):
            return Let(name, _compute(value, change))
        case LetInteger(name=name, value=number):
            return LetInteger(name, change(number))
        case Array(shape=shape):
            return replace(statement, shape=tuple(map(change, shape)))
        case Store(array=array, subscripts=subscripts, value=value, instance=instance):
            places = tuple(_subscript(s, change) for s in subscripts)
            return Store(array, places, _compute(value, change), _instance(instance, change))
        case Barrier() | Mark():
            return statement


def _compute(value: Compute, change: Integers) -> Compute:
    def changed(load: Load) -> Load:
        places = tuple(_subscript(s, change) for s in load.subscripts)
        return load if same(places, load.subscripts) else Load(load.array, places)

    loads, iterators = tuple(map(changed, value.loads)), tuple(map(change, value.iterators))
    is_same = same(loads, value.loads) and same(iterators, value.iterators)
    return value if is_same else Compute(value.expression, loads, iterators)


def _subscript(subscript: Subscript, change: Integers) -> Subscript:
    return _compute(subscript, change) if isinstance(subscript, Compute) else change(subscript)


def _condition(condition: Condition, change: Integers) -> Condition:
    return _compute(condition, change) if isinstance(condition, Compute) else change(condition)


def _instance(instance: Instance | None, change: Integers) -> Instance | None:
    return instance and Instance(instance.statement, tuple(map(change, instance.arguments)))


def substituted(code: Code, name: str, value: IntExpression) -> Code:
    """Return the code with a value in place of an integer; no inner loop has its name."""
    return tuple(with_integers(s, lambda e: replace_name(e, name, value)) for s in code)


def substituted_in(statement: Statement, values: Mapping[str, IntExpression]) -> Statement:
    """Return a statement with values in place of integers; its blocks stay as they are."""
    inner = blocks(statement)
    bare = with_blocks(statement, lambda block: ()) if inner else statement
    changed = with_integers(bare, lambda e: replace_names(e, values))
    if changed is bare:
        return statement
    given = iter(inner)
    return with_blocks(changed, lambda _: next(given)) if inner else changed


def with_loads(value: Compute, change: Callable[[Load], Load]) -> Compute:
    """Return a scalar function with other loads, inner ones of subscripts first."""

    def place(subscript: Subscript) -> Subscript:
        return with_loads(subscript, change) if isinstance(subscript, Compute) else subscript

    def changed(load: Load) -> Load:
        places = tuple(map(place, load.subscripts))
        return change(load if same(places, load.subscripts) else Load(load.array, places))

    loads = tuple(map(changed, value.loads))
    return value if same(loads, value.loads) else Compute(value.expression, loads, value.iterators)


def integers_of(statement: Statement) -> tuple[IntExpression, ...]:
    """Return the integer expressions that a statement itself speaks of; bounds and conditions, not blocks."""
    found: list[IntExpression] = []

    def note(expression: IntExpression) -> IntExpression:
        found.append(expression)
        return expression

    with_integers(with_blocks(statement, lambda block: ()), note)
    return tuple(found)


def integers_used(code: Code) -> frozenset[str]:
    """Return the integers that code speaks of and does not itself name."""
    found: set[str] = set()
    bound: set[str] = set()
    for statement in code:
        own = {name for expression in integers_of(statement) for name in names_in(expression)}
        inner = {name for block in blocks(statement) for name in integers_used(block)}
        if isinstance(statement, For):
            own, inner = (
                (own - {statement.iterator}) | names_in(statement.start),
                inner - {statement.iterator},
            )
        found |= (own | inner) - bound
        if isinstance(statement, LetInteger):
            bound.add(statement.name)
    return frozenset(found)


def declared_in(code: Code) -> Iterator[str]:
    """Yield the names that code declares: iterators, values, integers, arrays."""
    for statement in walk(code):
        match statement:
            case For(iterator=name) | Let(name=name) | LetInteger(name=name) | Array(name=name):
                yield name
            case _:
                pass


def arrays_used(code: Code) -> frozenset[str]:
    """Return the arrays and values that code speaks of."""
    found: set[str] = set()
    for statement in walk(code):
        found |= {load.array for load in loads_of(statement)}
        if isinstance(statement, Store):
            found.add(statement.array)
    return frozenset(found)


def parameters_used(function: Function) -> frozenset[str]:
    """Return the parameters whose elements a function loads or stores, under whatever name."""
    used = arrays_used(function.body)
    return used | {reshaped.parameter for reshaped in function.reshaped if reshaped.name in used}


def with_places(code: Code, change: Callable[[Load], Load]) -> Code:
    """Return code that loads and stores elsewhere: ``change`` of each element that it loads or stores.

    Not of arrays and values that a block inside declares itself.
    """

    def inside(block: Code) -> Code:
        own = {s.name for s in block if isinstance(s, Array | Let)}
        return with_places(block, lambda load: load if load.array in own else change(load))

    return tuple(with_own_places(with_blocks(statement, inside), change) for statement in code)


def with_own_places(statement: Statement, change: Callable[[Load], Load]) -> Statement:
    """Return a statement with ``change`` of what it loads and stores itself; its blocks stay as they are."""

    def subscript(s: Subscript) -> Subscript:
        return with_loads(s, change) if isinstance(s, Compute) else s

    match statement:
        case Store(array=array, subscripts=subscripts, value=value, instance=instance):
            target = change(Load(array, tuple(map(subscript, subscripts))))
            new = with_loads(value, change)
            if new is value and target.array == array and same(target.subscripts, subscripts):
                return statement
            return Store(target.array, target.subscripts, new, instance)
        case Let(name=name, value=value):
            new = with_loads(value, change)
            return statement if new is value else Let(name, new)
        case If(condition=Compute() as condition) | While(condition=condition):
            return replace(statement, condition=with_loads(condition, change))
        case _:
            return statement


def renamed_array(code: Code, name: str, new: Load) -> Code:
    """Return code with another array for ``name``: its subscripts follow those of ``new``."""

    def change(load: Load) -> Load:
        return Load(new.array, (*new.subscripts, *load.subscripts)) if load.array == name else load

    return with_places(code, change)
