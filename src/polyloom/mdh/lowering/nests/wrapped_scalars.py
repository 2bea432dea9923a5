"""Scalars that hold what the iteration before read: the first one apart, all others read it where it lies.

    y = b[n - 1]                                y = b[n - 1]
    for i from 0 to n:                          a[0] = b[0] + y; y = b[0]
      a[i] = b[i] + y             ->            for i from 1 to n:
      y = b[i]                                    a[i] = b[i] + b[i - 1]
                                                  y = b[i]

A scalar that is a copy of another one (``x = y``) follows once that one is such a copy itself. What takes a
few operations (``y = b[i] * c[i]``) is computed again. Then no iteration waits for the one before, and a C
compiler makes vectors of the loop.

Source: Padua and Wolfe, Advanced compiler optimizations for supercomputers, 1986 (wrap-around variables).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count

from polyloom.ir.expressions import Binary, Read, Unary
from polyloom.ir.expressions import Iterator as IteratorValue
from polyloom.ir.expressions import walk as expressions_in
from polyloom.ir.integers import holds, integer
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    For,
    Function,
    If,
    Kind,
    Let,
    Load,
    Space,
    Statement,
    Store,
    Subscript,
)
from polyloom.mdh.tree.rewrite import (
    arrays_used,
    declared_in,
    loads_of,
    substituted,
    walk,
    with_blocks,
    with_own_places,
)
from polyloom.polyhedra.loops.tree import (
    IntExpression,
    Name,
    Number,
    Operation,
    names_in,
    replace_name,
    sum_of,
)

MOST_PEELED = 2
"""First iterations that are done apart; each is one more copy of the loop's body."""
MOST_AGAIN = 4
"""Instructions that are carried out again in place of a value that waits for them."""
LARGEST = 2**31 - 1
"""What an iterator may be that is copied into 32 bits."""


def wrapped_scalars(function: Function) -> Function:
    """Return a program in which loops do not carry what they could read again.

    Keeps true: the same values. Loops are those of one thread, over scalars that it alone has.
    """
    scalars = (s for s in function.body if isinstance(s, Array) and s.space is Space.REGISTER)
    own = [s.name for s in scalars if not s.shape]
    if not own or not all(p.alone for p in function.parameters):
        return function
    memory = {p.name: p.name for p in function.parameters} | {r.name: r.parameter for r in function.reshaped}
    body = (_statement(statement, own, memory) for statement in function.body)
    return replace(function, body=tuple(chain.from_iterable(body)))


def _statement(statement: Statement, own: Sequence[str], memory: Mapping[str, str]) -> Code:
    if isinstance(statement, For) and statement.kind is Kind.SEQUENTIAL and statement.step == Number(1):
        return _peeled(statement, own, memory, MOST_PEELED)
    return (statement,)


def _peeled(loop: For, own: Sequence[str], memory: Mapping[str, str], most: int) -> Code:
    """Return a loop, or the first of at most so many iterations before it. ``memory``: where arrays lie."""
    stores = ((s, _only_store(loop, s)) for s in own) if most else ()
    found = next((s for s, store in stores if store is not None and _may_follow(loop, store, memory)), None)
    if found is None:
        return (loop,)
    first = substituted(loop.body, loop.iterator, loop.start)
    both = (*first, *_peeled(_rest(loop, found), own, memory, most - 1))
    condition = replace_name(loop.condition, loop.iterator, loop.start)
    runs = isinstance(loop.start, Number) and isinstance(_last(loop), Number) and holds(condition, {})
    return both if runs else (If(condition, both),)


def _only_store(loop: For, scalar: str) -> Store | None:
    """Return the one store to a scalar, right in a loop's body; None where there is another, or no load."""
    stores = [s for s in walk(loop.body) if isinstance(s, Store) and s.array == scalar]
    loads = [load for s in walk(loop.body) for load in loads_of(s) if load.array == scalar]
    return stores[0] if loads and len(stores) == 1 and any(s is stores[0] for s in loop.body) else None


def _may_follow(loop: For, store: Store, memory: Mapping[str, str]) -> bool:
    """Whether the next iteration can read again what is stored, and nothing behind reads it in this one."""
    at = next(k for k, statement in enumerate(loop.body) if statement is store)
    if store.array in arrays_used(loop.body[at + 1 :]) | {load.array for load in loads_of(store)}:
        return False
    if any(isinstance(s, For) for s in walk(loop.body)):
        return False
    if _copied(store.value) is not None or _is_computed_again(store.value):
        integers = [n for load in store.value.loads for n in _names_of(load.subscripts)]
        integers += [n for number in store.value.iterators for n in names_in(number)]
        if set(integers) & set(declared_in(loop.body)):
            return False
        changed = {memory.get(s.array) for s in walk(loop.body) if isinstance(s, Store)}
        arrays = {load.array for load in store.value.loads}
        return all(array in memory and memory[array] not in changed for array in arrays)
    return _number(loop, store.value) is not None and _is_integer_alone(loop, store.array)


def _names_of(subscripts: Sequence[Subscript]) -> set[str]:
    """Return the names that subscripts speak of, which are integers."""
    return {name for s in subscripts if not isinstance(s, Compute) for name in names_in(s)}


def _copied(value: Compute) -> Load | None:
    """Return the element that a value is, at a place that no data choose; None where it is computed."""
    is_element = isinstance(value.expression, Read) and len(value.loads) == 1
    plain = is_element and not any(isinstance(s, Compute) for s in value.loads[0].subscripts)
    return value.loads[0] if plain else None


def _is_computed_again(value: Compute) -> bool:
    """Return whether a value takes a few operations on elements at places that no data choose."""
    plain = not any(isinstance(s, Compute) for load in value.loads for s in load.subscripts)
    operations = [
        e.op.instructions for e in expressions_in(value.expression) if isinstance(e, Unary | Binary)
    ]
    return plain and bool(value.loads) and bool(operations) and sum(operations) <= MOST_AGAIN


def _number(loop: For, value: Compute) -> IntExpression | None:
    """Return the integer that a value is, without change in its type; None where it is none."""
    if not isinstance(value.expression, IteratorValue) or value.loads:
        return None
    number, last = value.iterators[value.expression.dimension], _last(loop)
    if (
        names_in(number) != {loop.iterator}
        or not isinstance(last, Number)
        or not isinstance(loop.start, Number)
    ):
        return None
    ends = (integer(number, {loop.iterator: end.value}) for end in (loop.start, last))
    return number if _is_linear(number) and all(-LARGEST <= end <= LARGEST for end in ends) else None


def _is_linear(number: IntExpression) -> bool:
    """Whether an integer is a sum of names and numbers, which is largest or least at the ends of a loop."""
    match number:
        case Name() | Number():
            return True
        case Operation(operator="+" | "-", operands=operands):
            return all(map(_is_linear, operands))
    return False


def _last(loop: For) -> IntExpression:
    """Return what an iterator stays below; the iterator itself where the condition says more than that."""
    try:
        return loop.end
    except ValueError:
        return Name(loop.iterator)


def _is_integer_alone(loop: For, scalar: str) -> bool:
    """Whether a scalar is loaded where an integer can stand: as a subscript, or as all of what is stored."""
    inside = list(walk(loop.body))
    loads = [load for s in inside for load in loads_of(s)]
    places = [sub for load in loads for sub in load.subscripts]
    places += [sub for s in inside if isinstance(s, Store) for sub in s.subscripts]
    places += [s.value for s in inside if isinstance(s, Store)]
    return sum(load.array == scalar for load in loads) == sum(_is_whole(place, scalar) for place in places)


def _is_whole(subscript: Subscript, scalar: str) -> bool:
    """Whether a subscript is a scalar as it is."""
    return (
        isinstance(subscript, Compute)
        and isinstance(subscript.expression, Read)
        and subscript.loads == (Load(scalar),)
    )


def _rest(loop: For, scalar: str) -> For:
    """Return the other iterations, which read again what a scalar holds."""
    store = _only_store(loop, scalar)
    assert store is not None
    before = sum_of([(1, Name(loop.iterator)), (-1, Number(1))])
    load, number = _copied(store.value), _number(loop, store.value)
    again = () if load or not _is_computed_again(store.value) else (_let(loop, store, before),)

    def change(found: Load) -> Load:
        if load is not None and found.array == scalar:
            return Load(load.array, tuple(_at(s, loop.iterator, before) for s in load.subscripts))
        if again and found.array == scalar:
            return Load(again[0].name)
        return Load(found.array, tuple(map(subscript, found.subscripts)))

    def subscript(found: Subscript) -> Subscript:
        whole = number is not None and _is_whole(found, scalar)
        return _at(number, loop.iterator, before) if number is not None and whole else found

    def changed(code: Code) -> Code:
        return tuple(_one(with_blocks(s, changed)) for s in code)

    def _one(statement: Statement) -> Statement:
        if statement == store:
            return statement
        if number is not None and isinstance(statement, Store) and _is_whole(statement.value, scalar):
            now = _at(number, loop.iterator, before)
            value = Compute(IteratorValue(0, statement.value.type), iterators=(now,))
            return Store(
                statement.array, tuple(map(subscript, statement.subscripts)), value, statement.instance
            )
        return with_own_places(statement, change)

    start = sum_of([(1, loop.start), (1, Number(1))])
    return replace(loop, start=start, body=(*again, *changed(loop.body)))


def _let(loop: For, store: Store, before: IntExpression) -> Let:
    """Return what the iteration before stored, under a name of its own."""
    taken = {*arrays_used(loop.body), *declared_in(loop.body)}
    name = next(n for k in count() if (n := f"{store.array}_before{k or ''}") not in taken)
    at = partial(_at, name=loop.iterator, value=before)
    loads = tuple(Load(e.array, tuple(map(at, e.subscripts))) for e in store.value.loads)
    iterators = tuple(replace_name(number, loop.iterator, before) for number in store.value.iterators)
    return Let(name, replace(store.value, loads=loads, iterators=iterators))


def _at(subscript: Subscript, name: str, value: IntExpression) -> IntExpression:
    assert not isinstance(subscript, Compute)
    return replace_name(subscript, name, value)
