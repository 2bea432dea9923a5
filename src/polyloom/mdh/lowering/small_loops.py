"""Parallel loops that are too small for a team of threads: one thread does them before others hear of them.

    for k from 1 to 300:                          for k from 1 to 300:
      parallel for i from 0 to k: ...      ->       for i from 0 to k: ...

How much is inside is counted with every loop around at the middle of its range. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from polyloom.ir.integers import integer
from polyloom.mdh.lowering.tiles.groups import LEAST_SHARED
from polyloom.mdh.tree.nodes import Code, For, Function, If, Kind, Let, LetInteger, Statement, Store
from polyloom.mdh.tree.rewrite import with_blocks
from polyloom.polyhedra.loops.tree import Name, Operation

Middles = Mapping[str, int]
"""What integers are taken for: iterators are in the middle of their loops."""


def without_small_loops(function: Function, least: int = LEAST_SHARED) -> Function:
    """Make group loops sequential in which less than ``least`` values are computed, by all loops inside.

    Keeps true: everything, since all kinds of loops mean the same as sequential ones. Loops whose bounds are
    not known before the program runs stay as they are.
    """
    return replace(function, body=_code(function.body, {}, least))


def _code(code: Code, middles: Middles, least: int) -> Code:
    found = []
    for statement in code:
        middles = _named(statement, middles)
        found.append(_statement(statement, middles, least))
    return tuple(found)


def _named(statement: Statement, middles: Middles) -> Middles:
    """Return what integers are taken for behind a statement."""
    if isinstance(statement, LetInteger):
        with suppress(KeyError, ZeroDivisionError):
            return {**middles, statement.name: integer(statement.value, middles)}
    return middles


def _statement(statement: Statement, middles: Middles, least: int) -> Statement:
    if not isinstance(statement, For):
        return with_blocks(statement, lambda block: _code(block, middles, least))
    if statement.kind is Kind.GROUP:
        try:
            small = values_inside((statement,), middles) < least
        except (KeyError, ValueError, ZeroDivisionError):
            return statement
        return _alone(statement) if small else statement
    with suppress(KeyError, ValueError, ZeroDivisionError):
        middles = {**middles, statement.iterator: _middle(statement, middles)[0]}
    return replace(statement, body=_code(statement.body, middles, least))


def _alone(loop: For) -> For:
    def alone(inner: Statement) -> Statement:
        here = with_blocks(inner, lambda block: tuple(map(alone, block)))
        return (
            replace(here, kind=Kind.SEQUENTIAL) if isinstance(here, For) and here.kind is Kind.GROUP else here
        )

    found = alone(loop)
    assert isinstance(found, For)
    return found


def values_inside(code: Code, middles: Middles) -> int:
    """Return about how many values code computes. Errors: KeyError where an integer is not known."""
    count = 0
    for statement in code:
        middles = _named(statement, middles)
        count += _values(statement, middles)
    return count


def _values(statement: Statement, middles: Middles) -> int:
    match statement:
        case For():
            middle, trips = _middle(statement, middles)
            return (
                trips * values_inside(statement.body, {**middles, statement.iterator: middle}) if trips else 0
            )
        case If(body=body, otherwise=otherwise):
            return max(values_inside(body, middles), values_inside(otherwise, middles))
        case Store() | Let():
            return 1
        case _:
            return 0


def _middle(loop: For, middles: Middles) -> tuple[int, int]:
    """Return an iterator's middle value, and how many it has. Errors: KeyError; ValueError."""
    start, step = integer(loop.start, middles), integer(loop.step, middles)
    match loop.condition:
        case Operation(operator="<" | "<=" as operator, operands=(Name(name=name), last)) if (
            name == loop.iterator and step > 0
        ):
            trips = max(0, -((start - integer(last, middles) - (operator == "<=")) // step))
            return start + step * (trips // 2), trips
    raise ValueError(f"the loop over {loop.iterator} has no such end")
