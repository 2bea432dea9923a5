"""Vectors whose elements lie apart, in a loop whose iterations read neighbours: blocks, turned in registers.

    for c from 0 to 8:                                 turned_float32x8(&a[i][j], n, turned0);
      vector for l from 0 to 8:                  ->    store_float32x8(&b[j + 0][i], turned0[0]);
        b[j + c, i + l] = a[i + l, j + c]              ... store_float32x8(&b[j + 7][i], turned0[7]);

All of a block is loaded before any of its results is stored. That is the same where nothing that the loop
stores is in an array that it loads so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyloom.ir.types import ElementType
from polyloom.mdh.device.costs import NEAR, PIECE
from polyloom.mdh.print.c_scope import Scope
from polyloom.mdh.print.dialect import TURNED
from polyloom.mdh.print.vectors.c_vectors import VectorLoop, is_vector_width
from polyloom.mdh.tree.nodes import ONE, ZERO, Code, Compute, For, Kind, Load, Store
from polyloom.mdh.tree.ranges import plus
from polyloom.mdh.tree.rewrite import loads_of, substituted
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, names_in


@dataclass(frozen=True, kw_only=True)
class _Block:
    """A loop of ``count`` iterations over vectors of ``width``; ``loads``: what is turned, by its names."""

    loop: For
    vectors: For
    count: int
    width: int
    loads: dict[Load, str]


def turned_blocks(loop: For, scope: Scope) -> list[str] | None:
    """Return the lines of a loop in blocks of as many iterations as vectors have elements.

    None where the loop has no such form.
    """
    block = _block(loop, scope)
    if block is None:
        return None
    if block.count == block.width:
        return ["{", *(f"    {line}" for line in _lines(block, scope, ZERO)), "}"]
    name = scope.names[loop.iterator]
    head = f"for ({scope.dialect.index} {name} = 0; {name} < {block.count}; {name} += {block.width}) {{"
    inside = scope.with_multiple(loop.iterator, Number(block.width))
    return [head, *(f"    {line}" for line in _lines(block, inside, Name(loop.iterator))), "}"]


def _block(loop: For, scope: Scope) -> _Block | None:
    match loop:
        case For(
            kind=Kind.SEQUENTIAL | Kind.UNROLLED,
            start=Number(value=0),
            step=Number(value=1),
            body=(For(kind=Kind.VECTOR) as vectors,),
        ):
            pass
        case _:
            return None
    count, width = _end(loop), _end(vectors)
    straight = all(isinstance(s, Store) for s in vectors.body)
    if not scope.dialect.turns_blocks or not straight or not is_vector_width(width, scope.dialect):
        return None
    if not count or count % width:
        return None
    found = [load for load in _loads(vectors.body) if _is_turned(load, loop, vectors, width, scope)]
    stores = [s for s in vectors.body if isinstance(s, Store)]
    if not found or any(may_meet(load, s, scope) for load in found for s in stores):
        return None
    names = {load: f"{TURNED}{k}" for k, load in enumerate(found)}
    return _Block(loop=loop, vectors=vectors, count=count, width=width, loads=names)


def _end(loop: For) -> int:
    """Return a number that a loop ends before, 0 where there is none."""
    try:
        end = loop.end
    except ValueError:
        return 0
    return end.value if isinstance(end, Number) else 0


def _is_turned(load: Load, loop: For, vectors: For, width: int, scope: Scope) -> bool:
    """Return whether neighbours along the loop are neighbours in memory, and those of vectors lie apart."""
    variable = scope.variables[load.array]
    kind = variable.type
    is_plain = not (variable.lanes or variable.held) and kind not in (ElementType.FLOAT16, ElementType.BOOL)
    if not is_plain or width * kind.size < PIECE or any(isinstance(s, Compute) for s in load.subscripts):
        return False
    beside = VectorLoop(loop.iterator, width, scope).distance(load)
    apart = VectorLoop(vectors.iterator, width, scope).distance(load)
    if beside != ONE or apart is None or loop.iterator in names_in(apart):
        return False
    return not isinstance(apart, Number) or abs(apart.value) > max(NEAR)


def may_meet(load: Load, store: Store, scope: Scope) -> bool:
    """Return whether a store may change what a load of another iteration finds."""
    one, other = scope.variables[load.array], scope.variables[store.array]
    is_same = (one.memory or one.text) == (other.memory or other.text)
    return is_same or "restrict" not in one.qualifiers | other.qualifiers


def _lines(block: _Block, scope: Scope, first: IntExpression) -> Iterator[str]:
    """Yield the lines of the block that begins at an iteration."""
    name, vectors = block.loop.iterator, block.vectors
    whole = substituted(vectors.body, name, first)
    printer = VectorLoop(vectors.iterator, block.width, scope)
    for load, turned in zip(_loads(whole), _loads(vectors.body), strict=True):
        if turned in block.loads:
            kind, array = scope.variables[load.array].type, block.loads[turned]
            helper, step = scope.dialect.helper(TURNED, kind, block.width), printer.distance(load)
            assert step is not None
            yield f"{scope.dialect.type(kind, block.width)} {array}[{block.width}];"
            yield f"{helper}({printer.address(load)}, {scope.integer(step)}, {array});"
    for k in range(block.width):
        body = substituted(vectors.body, name, plus(first, k))
        pairs = zip(_loads(body), _loads(vectors.body), strict=True)
        known = {here: f"{block.loads[load]}[{k}]" for here, load in pairs if load in block.loads}
        yield from VectorLoop(vectors.iterator, block.width, scope, turned=known).lines(body)


def _loads(body: Code) -> list[Load]:
    """Return the loads of statements, each once."""
    return list(dict.fromkeys(load for s in body for load in loads_of(s)))
