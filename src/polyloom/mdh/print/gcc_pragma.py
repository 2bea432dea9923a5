"""What gcc is told of a file: what its version 12 does wrong or badly is left undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeGuard

from polyloom.ir.expressions import Binary, BinaryOp, Compare, CompareOp, Constant, Expression, Read, Select
from polyloom.ir.expressions import walk as parts_of
from polyloom.mdh.tree.nodes import Array, Code, Compute, For, If, Kind, Let, Load, Store
from polyloom.mdh.tree.rewrite import loads_of, values_of, walk
from polyloom.polyhedra.loops.tree import Name, linear_terms

MANY = 8
"""Half of the least number of vector registers."""


def gcc_options(
    *,
    strict: bool,
    keeps: bool = True,
    holds: bool = True,
    splits: bool = False,
    chooses: bool = False,
    orders: bool = False,
    squares: bool = False,
    ties: bool = False,
) -> tuple[str, ...]:
    """Return what gcc is told of functions, by lines: what its version 12 does wrong or badly is left undone.

    Vectors of statements side by side lose conversions (``(double)(float)x`` is ``x``) and have elements from
    wrong places; vectors of loops add ``s += x[i + 1]; s += x[i];`` in the order of the subscripts.
    Registers are shared out loop by loop (``ira-region=all``): else what a loop outside holds stays in some,
    and the vectors of an innermost loop are on the stack. So they are where sums become one variable with
    what they begin as (coalescing), in files that hold vectors from statement to statement; in others that
    saves a copy, on which the next iteration would wait.
    Vectors that it ``keeps`` for the next iteration (predictive commoning) are more than registers hold.
    A loop with a guard on its iterator (``if (k >= 1)``) is not split: each half has all that is inside. One
    that ``splits`` ends where nothing changes any more: what a branch on data asks, that branch alone sets.
    One that ``chooses`` what it adds, ``s += a ? x[i] : 0; s += b ? x[i + 1] : 0; ..``, stays as it is: of
    the vectors of floats that such a chain becomes, all but the first are lost.
    One that ``squares`` an integer again and again has no vectors of iterations: where C's signed product is
    one of unsigned numbers, ``x = (int)((unsigned)x * (unsigned)x)`` was taken for a product of many factors.
    Where floats may be ``ties``, ``a > b || (a == b && i > k)``, no ranges are propagated: where ``i > k`` is
    known, both comparisons became one, which is true of NaN.
    One that ``orders`` what it adds, as a tile in registers does, keeps that order under ``-ffast-math`` too:
    with others more is alive than registers hold. So does a file with exponentials of vectors: where sums may
    have any order, x + 2^23 - 2^23 is x, and no longer an integer.
    """
    told = [] if keeps else ['"no-predictive-commoning"']
    told += [] if splits else ['"no-split-loops"']
    told += ['"no-tree-slp-vectorize", "ira-region=all"']
    told += ['"no-tree-coalesce-vars"'] if holds else []
    told += ['"no-tree-loop-if-convert"'] if chooses else []
    told += ['"no-associative-math"'] if orders else []
    told += ['"no-tree-vrp"'] if ties else []
    told += ['"fp-contract=off"'] if strict else []
    told += ['"no-tree-loop-vectorize"'] if strict or squares else []
    return tuple(told)


def gcc_pragma(told: Sequence[str]) -> str:
    """Return options as lines of a file, for the functions behind them."""
    return "\n".join(f"#pragma GCC optimize({each})" for each in told)


def holds_vectors(code: Code) -> bool:
    """Return whether vectors stay in registers from statement to statement, as totals of tiles do."""
    return any(isinstance(s, Array) and s.lanes for s in walk(code))


def may_stay_as_it_is(code: Code) -> bool:
    """Return whether a loop changes scalars under one branch on them, as an escape-time iteration does.

    Not where a branch asks for an integer: loops with such guards would be split too.
    """
    inside = list(walk(code))
    branches = [s for s in inside if isinstance(s, If)]
    if any(not isinstance(branch.condition, Compute) for branch in branches):
        return False
    loops = (s for s in inside if isinstance(s, For) and s.kind is Kind.SEQUENTIAL)
    scalars = {s.name for s in inside if isinstance(s, Array) and not s.shape}
    return any(
        isinstance(last, If) and {load.array for load in loads_of(replace(last, body=()))} <= scalars
        for loop in loops
        for last in loop.body[-1:]
    )


def sums_choices(code: Code) -> bool:
    """Return whether a loop adds floats more than once to one element, and not always what it has."""
    return any(
        is_guarded or _chooses(store.value.expression)
        for loop in _loops(code)
        for store, is_guarded in _sums(loop, vectors=False)
        if not _moves(store, loop)
    )


def _moves(store: Store, loop: For) -> bool:
    """Return whether each iteration of a loop stores to another element."""
    places = linear_terms([(1, s) for s in store.subscripts if not isinstance(s, Compute)][-1:])[0]
    return any(term == Name(loop.iterator) for _, term in places)


def squares_what_it_carries(code: Code) -> bool:
    """Return whether integers are multiplied that both come from the element that the product goes to."""
    given = [s for s in walk(code) if isinstance(s, Store | Let)]
    products = [(part, s) for s in given for part in parts_of(s.value.expression) if _is_whole_product(part)]
    if not products:
        return False
    places = {Load(_target(s), s.subscripts if isinstance(s, Store) else ()) for s in given}
    sources: dict[str, set[str]] = {}
    for statement in given:
        sources.setdefault(_target(statement), set()).update(load.array for load in statement.value.loads)
    for name in sources:  # Warshall: what each is computed from, over any number of statements
        for of_it in sources.values():
            if name in of_it:
                of_it |= sources[name]

    def carried(side: Expression, statement: Store | Let) -> bool:
        loads = [statement.value.loads[e.position] for e in parts_of(side) if isinstance(e, Read)]
        name = _target(statement)
        return any(x in places and (x.array == name or name in sources[x.array]) for x in loads)

    return any(carried(part.left, s) and carried(part.right, s) for part, s in products)


def _is_whole_product(part: Expression) -> TypeGuard[Binary]:
    return isinstance(part, Binary) and part.op is BinaryOp.MULTIPLY and not part.type.is_float


def asks_for_ties(code: Code) -> bool:
    """Return whether two floats are asked to be equal, of which neither is a number."""
    return any(
        part.left.type.is_float and part.left != part.right
        for value in chain.from_iterable(map(values_of, walk(code)))
        for part in parts_of(value.expression)
        if isinstance(part, Compare) and part.op in (CompareOp.EQ, CompareOp.NE)
        if not any(isinstance(side, Constant) for side in (part.left, part.right))
    )


def _target(statement: Store | Let) -> str:
    return statement.array if isinstance(statement, Store) else statement.name


def fills_registers(code: Code) -> bool:
    """Return whether a loop adds floats more than once to each of many elements, as a tile in registers."""
    return any(
        len({(store.array, store.subscripts) for store, _ in _sums(loop, vectors=True)}) >= MANY
        for loop in _loops(code)
    )


def _loops(code: Code) -> Iterator[For]:
    return (loop for loop in walk(code) if isinstance(loop, For) and loop.kind is not Kind.VECTOR)


def _sums(loop: For, *, vectors: bool) -> Iterator[tuple[Store, bool]]:
    """Yield what is added to floats more than once, and whether under a condition."""
    sums = list(_terms(loop.body, times=1, is_guarded=False, vectors=vectors))
    counts = Counter[Any]()
    for store, times, _ in sums:
        counts[store.array, store.subscripts] += times
    return ((store, guarded) for store, _, guarded in sums if counts[store.array, store.subscripts] > 1)


def _terms(code: Code, times: int, is_guarded: bool, vectors: bool) -> Iterator[tuple[Store, int, bool]]:
    """Yield what is added to floats, how often it is written out, and whether under a condition."""
    for part in code:
        match part:
            case Store() if part.value.expression.type.is_float and _adds(part):
                yield part, times, is_guarded
            case For(kind=kind) if vectors or kind is not Kind.VECTOR:
                yield from _terms(part.body, times + (kind is Kind.UNROLLED), is_guarded, vectors)
            case If():
                yield from _terms((*part.body, *part.otherwise), times, is_guarded=True, vectors=vectors)
            case _:
                pass


def _adds(store: Store) -> bool:
    return any((x.array, x.subscripts) == (store.array, store.subscripts) for x in loads_of(store))


def _chooses(expression: Expression) -> bool:
    return any(isinstance(part, Select) for part in parts_of(expression))


def carries_values(code: Code) -> bool:
    """Return whether a loop loads, in scalars, what its iterations before stored: registers may keep it."""
    return any(
        store.array in {load.array for load in loads_of(store) if load.subscripts != store.subscripts}
        for loop in walk(code)
        if isinstance(loop, For) and loop.kind is Kind.SEQUENTIAL
        for store in loop.body
        if isinstance(store, Store)
    )
