"""Innermost sums and products of floats, whose order is free, as loops of which C compilers make vectors.

    for i from 0 to n - l:                            reducing for i from 0 to n - l:
      total = total + s[i] * s[i + l]        ->         total = total + s[i] * s[i + l]

A C compiler keeps the order of floats, so that each sum waits for the one before it. Where results are in
vectors, those that no vector holds any more are such sums. Loops that go on behind vectors, and those of so
many points as a number says, are left: few or no vectors would be in them. Loads are of neighbours.

Not for ``--fp strict``. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from polyloom.ir.expressions import Binary, BinaryOp, Read
from polyloom.ir.rebuild import read_positions
from polyloom.mdh.lowering.nests.linear_recurrences import has_end
from polyloom.mdh.tree.nodes import Array, Code, Compute, For, Function, Kind, Load, Space, Statement, Store
from polyloom.mdh.tree.rewrite import with_blocks
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, linear_terms, names_in

_IN_ANY_ORDER = (BinaryOp.ADD, BinaryOp.MULTIPLY)


def reducing_loops(function: Function) -> Function:
    """Return a function in which loops that add up or multiply floats say that their order is free.

    Keeps true: what is combined into which total. Functions that are not to be ``contracted`` stay.
    """
    if not function.contracted:
        return function
    return replace(function, body=_marked(function.body, frozenset()))


def _marked(code: Code, totals: frozenset[str]) -> Code:
    """Mark the loops of a block; ``totals``: registers around it that are one total each."""
    found: list[Statement] = []
    for statement in code:
        if isinstance(statement, Array):
            totals = totals | {statement.name} if _is_total(statement) else totals - {statement.name}
        if isinstance(statement, For) and _is_sum(statement, totals):
            found.append(replace(statement, kind=Kind.REDUCING))
        else:
            found.append(with_blocks(statement, partial(_marked, totals=totals)))
    return tuple(found)


def _is_total(array: Array) -> bool:
    return bool(array.totals) and array.space is Space.REGISTER and not array.shape and not array.lanes


def _is_sum(loop: For, totals: Collection[str]) -> bool:
    """Whether all that a loop does is to combine floats that it loads in rows into a total."""
    if loop.kind is not Kind.SEQUENTIAL or loop.step != Number(1) or loop.start != Number(0):
        return False
    if len(loop.body) != 1 or not has_end(loop) or isinstance(loop.end, Number):
        return False
    (store,) = loop.body
    if not isinstance(store, Store) or store.array not in totals or not store.value.type.is_float:
        return False
    match store.value.expression:
        case Binary(op=op, left=Read(position=position), right=term) if op in _IN_ANY_ORDER:
            loads = store.value.loads
            others = [loads[k] for k in read_positions(term)]
            is_own = loads[position].array == store.array
            is_near = all(_is_near(load, loop.iterator) for load in others)
            is_long = any(loop.iterator in names_in(s) for load in others for s in _integers(load))
            return is_own and is_near and is_long and all(load.array != store.array for load in others)
        case _:
            return False


def _integers(load: Load) -> list[IntExpression]:
    return [s for s in load.subscripts if not isinstance(s, Compute)]


def _is_near(load: Load, iterator: str) -> bool:
    """Whether neighbours in a loop load one element, or neighbours in memory."""
    if any(isinstance(s, Compute) for s in load.subscripts):
        return False
    *outer, last = _integers(load) or (Number(0),)
    if any(iterator in names_in(s) for s in outer):
        return False
    terms, _ = linear_terms([(1, last)])
    steps = [(step, term) for step, term in terms if iterator in names_in(term)]
    return not steps or steps == [(1, Name(iterator))]
