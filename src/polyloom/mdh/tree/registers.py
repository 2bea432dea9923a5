"""What is left to do before a tree is printed: points written out, arrays in registers taken apart.

float32 total[2, 8] in registers           float32 total_0_0[8] in registers, lanes last
unrolled for i_at from 0 to 2:       ->    float32 total_1_0[8] in registers, lanes last
  vector for lane from 0 to 8:             vector for lane from 0 to 8: total_0_0[lane] = 0.0
    total[i_at, lane] = 0.0                vector for lane from 0 to 8: total_1_0[lane] = 0.0
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from polyloom.ir.naming import Names
from polyloom.mdh.tree.distinct import distinct
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    Element,
    For,
    Function,
    Kind,
    Let,
    Load,
    Space,
    Statement,
    Store,
)
from polyloom.mdh.tree.ranges import plus
from polyloom.mdh.tree.rewrite import (
    blocks,
    declared_in,
    with_blocks,
    with_own_places,
)
from polyloom.mdh.tree.unroll import places, unrolled
from polyloom.polyhedra.loops.tree import Number, linear_terms, names_in


def final(function: Function) -> Function:
    """Return a kernel as it is printed: no unrolled loops; registers are single values and vectors."""
    names = Names({*function.arrays, *function.integers, *declared_in(function.body)})
    return replace(function, body=registers(names, distinct(names, unrolled(names, function.body))))


def registers(names: Names, code: Code) -> Code:
    """Take arrays in registers apart: an element, or a vector of them, becomes an array of its own.

    Keeps true: the same values. Elements that some vector has are its lanes everywhere; an array some of
    whose subscripts are no numbers, or whose vectors overlap, lies on the stack.
    """
    return _taken_apart(names, code, {})


@dataclass(frozen=True)
class _Piece:
    """An array of its own for an element, or for ``lanes`` neighbours from it on; 0: a scalar."""

    first: tuple[int, ...]
    lanes: int


Places = Mapping[tuple[int, ...], tuple[str, int | None]]
"""What holds an element: an array, and the lane in it; None: a scalar."""


def _taken_apart(names: Names, code: Code, known: Mapping[str, Places]) -> Code:
    found: list[Statement] = []
    own = {s.name for s in code if isinstance(s, Array | Let)}
    known = {name: places for name, places in known.items() if name not in own}
    for at, statement in enumerate(code):
        if isinstance(statement, Array) and statement.space is Space.REGISTER and statement.shape:
            pieces = _pieces(statement.name, code[at + 1 :])
            if pieces is None:
                found.append(replace(statement, space=Space.PRIVATE, align=64))
                continue
            arrays, places = _arrays(names, statement, pieces)
            known = {**known, statement.name: places}
            found += arrays
        else:
            inside = partial(_taken_apart, names, known=known)
            found.append(with_own_places(with_blocks(statement, inside), partial(_placed, known)))
    return tuple(found)


def _pieces(name: str, code: Code) -> tuple[_Piece, ...] | None:
    """Return the pieces that an array falls into; None where it is to stay one."""
    vectors, single, stored = set[_Piece](), set[tuple[int, ...]](), set[_Piece]()
    for load, vector, is_stored in _accesses(name, code, None):
        first = _first(load)
        if first is None:
            return None
        if isinstance(load.subscripts[-1], Number):
            single.add(first)
        elif vector is None or vector.iterator not in _names(load):
            return None
        else:
            assert isinstance(vector.end, Number)
            piece = _Piece(first, vector.end.value)
            vectors.add(piece)
            stored |= {piece} if is_stored else set()
    vectors -= _parts_of_others(vectors, stored)
    covered = [element for piece in vectors for element in _elements(piece)]
    if len(covered) != len(set(covered)):
        return None
    scalars = (_Piece(first, 0) for first in single - set(covered))
    return tuple(sorted((*vectors, *scalars), key=lambda piece: piece.first))


def _parts_of_others(vectors: Collection[_Piece], stored: Collection[_Piece]) -> set[_Piece]:
    """Return the vectors that lie in larger ones and are never stored: parts of these are loaded."""
    loaded = (piece for piece in vectors if piece not in stored)
    return {piece for piece in loaded if any(_is_in(piece, other) for other in vectors)}


def _is_in(piece: _Piece, other: _Piece) -> bool:
    *outer, first = piece.first
    *around, begin = other.first
    inside = begin <= first and first + piece.lanes <= begin + other.lanes
    return outer == around and inside and piece.lanes < other.lanes


def _elements(piece: _Piece) -> list[tuple[int, ...]]:
    *outer, last = piece.first
    return [(*outer, last + lane) for lane in range(max(piece.lanes, 1))]


def _accesses(name: str, code: Code, vector: For | None) -> Iterator[tuple[Load, For | None, bool]]:
    """Yield what is loaded and stored of an array, its loop over lanes, whether it is stored."""
    for statement in code:
        target = Load(statement.array, statement.subscripts) if isinstance(statement, Store) else None
        yield from ((place, vector, place == target) for place in places(statement) if place.array == name)
        inner = vector
        if isinstance(statement, For) and statement.kind is Kind.VECTOR:
            inner = statement
        for block in blocks(statement):
            yield from _accesses(name, block, inner)


def _names(load: Load) -> frozenset[str]:
    return frozenset().union(*(names_in(s) for s in load.subscripts if not isinstance(s, Compute)))


def _first(load: Load) -> tuple[int, ...] | None:
    """Return the first element of an access in numbers: in vectors, with lane 0; None where it has none."""
    found = []
    for place, subscript in enumerate(load.subscripts):
        if isinstance(subscript, Compute):
            return None
        terms, constant = linear_terms([(1, subscript)])
        is_lane = place == len(load.subscripts) - 1 and [c for c, _ in terms] == [1]
        if terms and not is_lane:
            return None
        found.append(constant)
    return tuple(found)


def _arrays(names: Names, array: Array, pieces: tuple[_Piece, ...]) -> tuple[list[Array], Places]:
    found, places, elements = [], {}, _grid(array.name, pieces)
    for piece in pieces:
        name = names.of((object(),), "_".join(map(str, (array.name, *piece.first))))
        shape = (Number(piece.lanes),) if piece.lanes else ()
        own = replace(array, name=name, shape=shape, lanes=bool(piece.lanes), element=elements.get(piece))
        found.append(own)
        for lane, place in enumerate(_elements(piece)):
            places[place] = name, lane if piece.lanes else None
    return found, places


def _grid(name: str, pieces: tuple[_Piece, ...]) -> dict[_Piece, Element]:
    """Return what pieces are in an array of them; nothing where some differ in kind, or are missing."""
    every = [sorted(set(values)) for values in zip(*(piece.first for piece in pieces), strict=True)]
    rows = [(k, values) for k, values in enumerate(every) if len(values) > 1]
    shape = tuple(len(values) for _, values in rows)
    if not shape or len({piece.lanes for piece in pieces}) != 1 or prod(shape) != len(pieces):
        return {}
    places = {p: tuple(values.index(p.first[k]) for k, values in rows) for p in pieces}
    return {piece: Element(name, place, shape) for piece, place in places.items()}


def _placed(known: Mapping[str, Places], load: Load) -> Load:
    """Return where an element of an array that was taken apart is."""
    if load.array not in known:
        return load
    first = _first(load)
    assert first is not None
    name, lane = known[load.array][first]
    if lane is None:
        return Load(name)
    last = load.subscripts[-1]
    assert not isinstance(last, Compute)
    return Load(name, (plus(last, lane - first[-1]),))
