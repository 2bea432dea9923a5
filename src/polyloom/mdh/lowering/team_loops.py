"""Parallel loops that suit a team of threads: not too small, and shared by work where iterations differ.

    for k from 1 to 300:                          for k from 1 to 300:
      parallel for i from 0 to k: ...      ->       for i from 0 to k: ...

    parallel for i from 0 to n:                   parallel by work for i from 0 to n:
      for j from 0 to i: C[i, j] = ...     ->       for j from 0 to i: C[i, j] = ...

How much is inside is counted with every loop around at the middle of its range, those inside at some places.
Of two threads that get as many rows of a triangle, the last would have three quarters of it.

Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace

from polyloom.ir.expressions import Binary, Expression, Unary
from polyloom.ir.expressions import walk as walk_expression
from polyloom.ir.integers import integer
from polyloom.mdh.lowering.tiles.groups import LEAST_SHARED
from polyloom.mdh.tree.nodes import (
    Code,
    Compute,
    For,
    Function,
    If,
    Kind,
    Let,
    LetInteger,
    Statement,
    Store,
    While,
)
from polyloom.mdh.tree.rewrite import walk, with_blocks
from polyloom.mdh.tree.trips import ITERATIONS, SAMPLES, Way, nested_groups, trip_count
from polyloom.polyhedra.loops.tree import Name, Operation, linear_terms, names_in

Middles = Mapping[str, int]
"""What integers are taken for: iterators are in the middle of their loops."""

Shared = Callable[[For, Middles], For]
"""What becomes of a group loop that is in no other one. Errors: KeyError, ValueError where not known."""


UNEVEN = 1.25
"""How many times as much one iteration has to do as another one where threads share by work. Estimate."""


def for_a_team(function: Function, least: int = LEAST_SHARED) -> Function:
    """Make group loops sequential in which less than ``least`` values are computed, by all loops inside.

    Of others those are marked whose iterations differ in work. Keeps true: everything, since all kinds of
    loops mean the same as sequential ones. Loops whose bounds are not known before the program runs become
    sequential where they are small however large its integers are, and else stay as they are.
    """

    def shared(loop: For, middles: Middles) -> For:
        if values_inside((loop,), middles) < least:
            return _alone(loop)
        return replace(loop, by_work=_is_uneven(nested_groups(loop), middles))

    body = _code(function.body, {}, shared)
    small = _always_small(body, function.integers, least)
    return replace(
        function, body=_code(body, {}, lambda loop, _: _alone(loop) if id(loop) in small else loop)
    )


LEAST_TOGETHER = 1 << 16
"""Instructions of a call in which threads work together, those for a vector counted once: 12 to 25 us of one
thread. Fourteen loops over 32,000 elements in caches took one thread of a Zen 4 3 to 24 us; two took 0.6 to
1.1 times as long in the best runs, and 2 to 5 times in others: the second was not awake, or had no core."""


LANES, GUESSED = 8, 8
"""Points of a vector that the C compiler makes; instructions for which a branch on data counts, which is
guessed wrong now and then. Estimates."""


def alone_if_quick(function: Function, least: int = LEAST_TOGETHER) -> Function:
    """Make all group loops sequential where one thread is through with a call before others are awake.

    Keeps true: everything, as above. Where it is not known how much there is to do, all stays.
    """
    try:
        work = sum(_work(function.body, {}, Way(k)) for k in range(SAMPLES)) // SAMPLES
    except (KeyError, ValueError, ZeroDivisionError):
        return function
    if work >= least:
        return function
    return replace(function, body=_code(function.body, {}, lambda loop, _: _alone(loop)))


def _work(code: Code, middles: Middles, way: Way) -> int:
    """Return about how many instructions code takes. Errors: KeyError, ValueError where that is not known."""
    count = 0
    for statement in code:
        middles = _named(statement, middles)
        match statement:
            case For(kind=Kind.VECTOR, iterator=iterator, body=body):
                count += _work(body, {**middles, iterator: 0}, way)
            case For(iterator=iterator, body=body):
                start, step, trips = _range(statement, middles)
                if trips:
                    at = start + step * way.place(trips)
                    work = trips * _work(body, {**middles, iterator: at}, way.further)
                    count += work // LANES if _is_in_rows(statement) else work
            case If(condition=condition, body=body, otherwise=otherwise):
                guessed = GUESSED if isinstance(condition, Compute) else 0
                count += guessed + max(_work(body, middles, way), _work(otherwise, middles, way))
            case While(condition=asked, body=body):
                times = round(_instructions(asked.expression)) + GUESSED
                count += ITERATIONS * (times + _work(body, middles, way))
            case Store(value=value) | Let(value=value):
                count += 1 + round(_instructions(value.expression))
            case _:
                pass
    return count


def _is_in_rows(loop: For) -> bool:
    """Whether the C compiler makes vectors of a loop: its points are independent, and stored in rows."""
    stored = [s.subscripts for s in walk(loop.body) if isinstance(s, Store)]
    return loop.kind is Kind.INDEPENDENT and all(
        subscripts
        and not isinstance(subscripts[-1], Compute)
        and (1, Name(loop.iterator)) in linear_terms([(1, subscripts[-1])])[0]
        for subscripts in stored
    )


def _instructions(expression: Expression) -> float:
    operations = (part.op for part in walk_expression(expression) if isinstance(part, Unary | Binary))
    return sum(op.instructions for op in operations)


MANY, MOST = 1 << 16, 1 << 40
"""What integers are taken for where it is asked whether a loop is small whatever they are: each of them in
turn is larger than a product of two others."""


def _always_small(body: Code, integers: Sequence[str], least: int) -> AbstractSet[int]:
    """Return the group loops, by ``id``, that compute less than ``least`` values whatever integers are."""
    found = []
    for largest in integers:
        small = set[int]()

        def kept(loop: For, middles: Middles, small: set[int] = small) -> For:
            if values_inside((loop,), middles) < least:
                small.add(id(loop))
            return loop

        _code(body, {n: MOST if n == largest else MANY for n in integers}, kept)
        found.append(small)
    return set[int].intersection(*found) if found else set()


def _code(code: Code, middles: Middles, shared: Shared) -> Code:
    found = []
    for statement in code:
        middles = _named(statement, middles)
        found.append(_statement(statement, middles, shared))
    return tuple(found)


def _named(statement: Statement, middles: Middles) -> Middles:
    """Return what integers are taken for behind a statement."""
    if isinstance(statement, LetInteger):
        with suppress(KeyError, ZeroDivisionError):
            return {**middles, statement.name: integer(statement.value, middles)}
    return middles


def _statement(statement: Statement, middles: Middles, shared: Shared) -> Statement:
    if not isinstance(statement, For):
        return with_blocks(statement, lambda block: _code(block, middles, shared))
    if statement.kind is Kind.GROUP:
        try:
            return shared(statement, middles)
        except (KeyError, ValueError, ZeroDivisionError):
            return statement
    with suppress(KeyError, ValueError, ZeroDivisionError):
        middles = {**middles, statement.iterator: _middle(statement, middles)[0]}
    return replace(statement, body=_code(statement.body, middles, shared))


def _alone(loop: For) -> For:
    def alone(inner: Statement) -> Statement:
        here = with_blocks(inner, lambda block: tuple(map(alone, block)))
        return (
            replace(here, kind=Kind.SEQUENTIAL) if isinstance(here, For) and here.kind is Kind.GROUP else here
        )

    found = alone(loop)
    assert isinstance(found, For)
    return found


def _is_uneven(loops: Sequence[For], middles: Middles) -> bool:
    """Return whether work differs along one of the loops, the others in the middle.

    Errors: KeyError, ValueError where work is not known.
    """
    inside = loops[-1].body
    for loop in (*loops, *(s for s in walk(inside) if isinstance(s, For))):
        trip_count(loop)  # ValueError: threads cannot count it
    half = {**middles, **{loop.iterator: _middle(loop, middles)[0] for loop in loops}}
    for loop in loops:
        counts = [values_inside(inside, {**half, loop.iterator: at}) for at in _places(loop, middles)]
        if max(counts) > UNEVEN * min(counts):
            return True
    return False


def _places(loop: For, middles: Middles) -> Iterator[int]:
    """Yield an iterator's values at an eighth, a half and seven eighths of its loop."""
    start, step, trips = _range(loop, middles)
    yield from (start + step * (trips * eighths // 8) for eighths in (1, 4, 7))


WORD, INSTRUCTIONS = 4, 8
"""Bytes, and instructions, from which on a value counts as one. Estimates."""


def values_inside(code: Code, middles: Middles) -> int:
    """Return about how many values code computes: the mean of ``SAMPLES`` ways through its loops.

    Of bytes and halves that are quickly computed several count as one, for as many more are in a vector.
    Errors: KeyError where an integer is not known.
    """
    return int(sum(_inside(code, middles, Way(k)) for k in range(SAMPLES)) / SAMPLES)


def _inside(code: Code, middles: Middles, way: Way) -> float:
    count = 0.0
    for statement in code:
        middles = _named(statement, middles)
        count += _values(statement, middles, way)
    return count


def _values(statement: Statement, middles: Middles, way: Way) -> float:
    match statement:
        case For(iterator=iterator, body=body):
            start, step, trips = _range(statement, middles)
            if not trips:
                return 0
            at = start + step * way.place(trips)
            return trips * _inside(body, {**middles, iterator: at}, way.further)
        case If(condition=condition, body=body, otherwise=otherwise):
            if not isinstance(condition, Compute) and names_in(condition) <= middles.keys():
                return _inside(body if integer(condition, middles) else otherwise, middles, way)
            return max(_inside(body, middles, way), _inside(otherwise, middles, way))
        case While(body=body):
            return ITERATIONS * (1 + _inside(body, middles, way))
        case Store(value=value) | Let(value=value):
            slow = _instructions(value.expression) / INSTRUCTIONS
            return min(1.0, max(value.type.size / WORD, slow))
        case _:
            return 0


def _middle(loop: For, middles: Middles) -> tuple[int, int]:
    """Return an iterator's middle value, and how many it has. Errors: KeyError; ValueError."""
    start, step, trips = _range(loop, middles)
    return start + step * (trips // 2), trips


def _range(loop: For, middles: Middles) -> tuple[int, int, int]:
    """Return an iterator's first value, its step, and how many it has. Errors: KeyError; ValueError."""
    start, step = integer(loop.start, middles), integer(loop.step, middles)
    match loop.condition:
        case Operation(operator="<" | "<=" as operator, operands=(Name(name=name), last)) if (
            name == loop.iterator and step > 0
        ):
            trips = max(0, -((start - integer(last, middles) - (operator == "<=")) // step))
            return start, step, trips
    raise ValueError(f"the loop over {loop.iterator} has no such end")
