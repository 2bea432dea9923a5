"""Loops whose iterations data asks for: first which of 64 are asked for, then these, one after another.

    for i from 0 to n:                     for chunk from 0 to n step 64:
      if b[i] > 0:                           for i from chunk to min(n, chunk + 64): asked[i] = b[i] > 0
        a[k] = b[i]                    ->    for i that are asked for:
        k = k + 1                              a[k] = b[i]
                                               k = k + 1

A processor guesses each branch, and what it guessed wrong it does again: on data without a pattern that takes
longer than all else. The comparisons run in vectors, and one guess is left for 64 iterations. Where all of
them are asked for, they are the plain loop.

It is done where the C compiler has no vectors for the loop: where elements are found by what earlier
iterations counted. Nothing that an iteration stores may be what a later one is asked by.

Source: if-conversion with compaction, as vector databases filter rows (Polychroniou, Raghavan and Ross,
Rethinking SIMD vectorization for in-memory databases, 2015). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from polyloom.mdh.print.c_scope import Scope, coefficient
from polyloom.mdh.tree.nodes import Code, Compute, For, If, Kind, Load, Statement, Store, Subscript
from polyloom.mdh.tree.rewrite import loads_of, walk
from polyloom.mdh.tree.trips import trip_count
from polyloom.polyhedra.loops.tree import Number

CHUNK = 64
"""Iterations that are asked for at once: the bits of a word."""
LEAST = 2 * CHUNK
"""Iterations of which a loop has to have as many."""

NAMES = ("chunk", "chunk_end", "asked", "bits", "bits_of")
BITS = """\
static inline uint64_t bits_of(const uint8_t *asked) /* 64 truth values as bits */
{
    uint64_t bits = 0;
    for (int k = 0; k < 8; k++) {
        uint64_t eight;
        memcpy(&eight, asked + 8 * k, 8);
#if defined __BYTE_ORDER__ && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        eight = __builtin_bswap64(eight);
#endif
        bits |= eight * UINT64_C(0x0102040810204080) >> 56 << 8 * k;
    }
    return bits;
}
"""


def asked_lines(
    loop: For, scope: Scope, block: Callable[[Code, Scope], Iterator[str]]
) -> Iterator[str] | None:
    """Return the lines of such a loop; None where it is another one. ``block``: prints a block."""
    condition = _condition(loop, scope) if scope.dialect.finds_asked_iterations else None
    return None if condition is None else _lines(loop, condition, scope, block)


def _lines(
    loop: For, condition: Compute, scope: Scope, block: Callable[[Code, Scope], Iterator[str]]
) -> Iterator[str]:
    (asked,) = loop.body
    assert isinstance(asked, If)
    scope.needs.definitions[BITS] = None
    scope.needs.headers.add("string.h")
    name, start, end = scope.names[loop.iterator], scope.operand(loop.start), scope.operand(loop.end)
    body = [f"        {line}" for line in block(asked.body, scope)]
    yield f"for (int64_t chunk = {start}; chunk < {end}; chunk += {CHUNK}) {{"
    yield f"    uint8_t asked[{CHUNK}] = {{0}};"
    yield f"    const int64_t chunk_end = {end} - chunk < {CHUNK} ? {end} : chunk + {CHUNK};"
    yield f"    for (int64_t {name} = chunk; {name} < chunk_end; {name}++)"
    yield f"        asked[{name} - chunk] = {scope.condition(condition)};"
    yield "    uint64_t bits = bits_of(asked);"
    yield "    if (bits == UINT64_MAX) {"
    yield f"        for (int64_t {name} = chunk; {name} < chunk + {CHUNK}; {name}++) {{"
    yield from (f"    {line}" for line in body)
    yield "        }"
    yield "    }"
    yield "    else for (; bits; bits &= bits - 1) {"
    yield f"        const int64_t {name} = chunk + __builtin_ctzll(bits);"
    yield from body
    yield "    }"
    yield "}"


def _condition(loop: For, scope: Scope) -> Compute | None:
    """Return what asks for the iterations of a loop; None where the loop stays as it is."""
    match loop.body:
        case (If(condition=Compute() as condition, body=body, otherwise=()),) if condition.loads:
            if loop.kind is not Kind.SEQUENTIAL or loop.step != Number(1) or not _is_long(loop):
                return None
            if any(isinstance(s, For) for s in walk(body)) or not _finds_by_data(body):
                return None
            stores = [s for s in walk(body) if isinstance(s, Store)]
            loads = list(loads_of(If(condition, ())))
            is_kept = all(_is_kept(load, store, loop.iterator, scope) for load in loads for store in stores)
            return condition if is_kept else None
        case _:
            return None


def _is_long(loop: For) -> bool:
    try:
        count = trip_count(loop)
    except ValueError:
        return False
    return isinstance(count, Number) and count.value >= LEAST


def _finds_by_data(body: Code) -> bool:
    """Return whether elements are loaded or stored by what the body stores."""
    stored = {s.array for s in walk(body) if isinstance(s, Store)}
    return any(
        load.array in stored
        for statement in walk(body)
        for subscript in _subscripts(statement)
        if isinstance(subscript, Compute)
        for load in subscript.loads
    )


def _subscripts(statement: Statement) -> Iterator[Subscript]:
    if isinstance(statement, Store):
        yield from statement.subscripts
    for load in loads_of(statement):
        yield from load.subscripts


def _is_kept(load: Load, store: Store, iterator: str, scope: Scope) -> bool:
    """Return whether what an iteration stores is never loaded by a later one.

    They are other arrays, or the same element of one, another one in each iteration.
    """
    if load.array == store.array:
        same = load.subscripts == store.subscripts
        return same and any(_moves(s, iterator) for s in store.subscripts)
    first, second = scope.variable(load.array), scope.variable(store.array)
    if first.held or second.held:
        return True
    return "restrict" in second.qualifiers and (first.memory or first.text) != (second.memory or second.text)


def _moves(subscript: Subscript, iterator: str) -> bool:
    """Return whether a subscript is another number in each iteration."""
    if isinstance(subscript, Compute):
        return False
    factor = coefficient(subscript, iterator)
    return isinstance(factor, Number) and factor != Number(0)
