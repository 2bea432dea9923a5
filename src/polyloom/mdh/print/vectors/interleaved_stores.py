"""Vectors whose elements take turns in memory, stored as whole lines.

    vector for l from 0 to 16:
      c[2 * (i + l)] = re[l]              ->     store2_float32x16(&c[2 * i], re, im);
      c[2 * (i + l) + 1] = im[l]

Parts of complex numbers, colours of a pixel and fields of a record lie like this. Stored one by one each
vector is taken apart, element by element; shuffled into each other they are as many vectors of neighbours.
Values that are not in registers yet stay as they are: what one of them reads, another might have stored.
"""

from __future__ import annotations

from itertools import pairwise

from polyloom.mdh.device.costs import NEAR
from polyloom.mdh.print.c_scope import Scope, coefficient, row_by_row
from polyloom.mdh.tree.nodes import Code, Compute, Statement, Store
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, sum_of


def interleaved_stores(body: Code, lane: str, width: int, scope: Scope) -> tuple[Store, ...]:
    """Return the first stores of a vector loop's body in the order of their elements, if these take turns.

    Empty where they leave gaps, or other elements lie between theirs.
    """
    begin, first = body[0], _place(body[0], lane, scope)
    step = None if first is None else coefficient(first, lane)
    if (
        first is None
        or not isinstance(begin, Store)
        or not isinstance(step, Number)
        or step.value not in NEAR
        or width < step.value
    ):
        return ()
    found: dict[int, Store] = {}
    for statement in body[: step.value]:
        place = _place(statement, lane, scope)
        if place is None or not isinstance(statement, Store) or statement.array != begin.array:
            return ()
        match sum_of([(1, place), (-1, first)]):
            case Number(value=distance):
                found[distance] = statement
            case _:
                return ()
    places = sorted(found)
    is_whole = len(places) == step.value and all(b == a + 1 for a, b in pairwise(places))
    return tuple(found[place] for place in places) if is_whole else ()


def _place(statement: Statement, lane: str, scope: Scope) -> IntExpression | None:
    """Return which element of an array in memory, row by row, is stored from a register; None: none is."""
    if not isinstance(statement, Store) or not _is_in_register(statement.value, lane, scope):
        return None
    variable = scope.variables.get(statement.array)
    if variable is None or variable.lanes or variable.held or variable.is_half or variable.streams:
        return None
    return row_by_row(statement.subscripts, variable)


def _is_in_register(value: Compute, lane: str, scope: Scope) -> bool:
    """Return whether a value is made of vectors in registers alone."""
    variables = [scope.variables.get(load.array) for load in value.loads]
    return bool(variables) and all(
        variable is not None
        and variable.held
        and variable.lanes
        and load.subscripts[-1:] in ((), (Name(lane),))
        for variable, load in zip(variables, value.loads, strict=True)
    )
