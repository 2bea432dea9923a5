"""Sums of which data select one term, as elements at a place that data say.

    y[i][j] = sum over k of (p[i] == number[k] ? w[k][j] : 0)      ->      y[i][j] = w[p[i]][j]

``number`` holds 0, 1, 2, ...: tensor programs have affine places alone, so that front ends say by such sums
what embeddings and gathers are. Positions outside give 0, as they do there, and nothing is read.
Not in the papers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Iterator,
    Read,
    Select,
    walk,
)
from polyloom.ir.host import HostNode, HostProgram, Index, MdHom, Order, View
from polyloom.ir.rebuild import read_positions, with_reads
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import Branch, Loop, Number


def numbers_in(constants: Mapping[str, npt.NDArray[Any]]) -> frozenset[str]:
    """Return the names of the arrays that hold 0, 1, 2, ..."""
    flat = ((name, a) for name, a in constants.items() if a.ndim == 1 and a.size)
    return frozenset(name for name, a in flat if np.array_equal(a, np.arange(a.size)))


def with_gathers(program: HostProgram, numbers: Collection[str]) -> HostProgram:
    """Return a program without sums of which data select one term. ``numbers``: buffers of 0, 1, 2, ...

    Keeps true: each result, but that a term of -0.0 stays one.
    """

    def changed(node: HostNode) -> HostNode:
        match node:
            case MdHom():
                return _gathered(node, program, numbers) or node
            case Loop(body=body):
                return replace(node, body=tuple(map(changed, body)))
            case Branch(condition=condition, body=body, otherwise=otherwise):
                return Branch(condition, tuple(map(changed, body)), tuple(map(changed, otherwise)))
            case _:
                return node

    return replace(program, body=tuple(map(changed, program.body)))


def _gathered(node: MdHom, program: HostProgram, numbers: Collection[str]) -> MdHom | None:
    """Return an md_hom without the dimension of such a sum; None where it is none."""
    if len(node.terms) != 1 or node.guard is not None or node.written is not None:
        return None
    match node.terms[0]:
        case Select(
            condition=Compare(op=CompareOp.EQ, left=a, right=b), then=term, otherwise=Constant(value=0)
        ):
            pass
        case _:
            return None
    for position, number in ((a, b), (b, a)):
        k = _dimension(number, node, program, numbers)
        if k is not None and _may_go(node, k) and not _depends(position, k, node):
            assert isinstance(number, Read)
            return _without(node, k, number.position, position, term)
    return None


def _dimension(number: Expression, node: MdHom, program: HostProgram, numbers: Collection[str]) -> int | None:
    """Return the dimension of which a value is the iterator, from its first point to its last."""
    if not isinstance(number, Read):
        return None
    view = node.inputs[number.position]
    index = view.indices[0] if len(view.indices) == 1 else None
    if view.buffer not in numbers or not isinstance(index, Index) or index.offset != Number(0):
        return None
    match index.used:
        case ((k, 1),) if node.extents[k] == program.buffer(view.buffer).shape[0]:
            return k
        case _:
            return None


def _may_go(node: MdHom, k: int) -> bool:
    """Whether a dimension only adds up, and moves what it moves as a whole index."""
    operator = node.combine[k]
    if operator.order is not Order.POINTWISE or operator.combiner is None:
        return False
    match operator.combiner.results:
        case (Binary(op=BinaryOp.ADD, left=Read(), right=Read()),):
            pass
        case _:
            return False
    if any(o.order not in (Order.CONCATENATE, Order.POINTWISE) for o in node.combine):
        return False
    views = [(view, index) for view in (*node.inputs, *node.outputs) for index in view.indices]
    plain = [index for _, index in views if isinstance(index, Index)]
    alone = Index.unit(k, len(node.iterators))
    values = [e for e in (*node.terms, *node.initial, *node.finish) if e is not None]
    return (
        len(plain) == len(views)
        and all(index == alone for index in plain if index.coefficients[k])
        and not any(isinstance(p, Iterator) for e in values for p in walk(e))
    )


def _depends(value: Expression, k: int, node: MdHom) -> bool:
    indices = [i for p in read_positions(value) for i in node.inputs[p].indices]
    return any(not isinstance(i, Index) or bool(i.coefficients[k]) for i in indices)


def _without(node: MdHom, k: int, dropped: int, position: Expression, term: Expression) -> MdHom:
    """Return an md_hom without dimension ``k``, and without the input of its numbers."""
    size = node.extents[k]
    assert isinstance(size, Number)

    def moved(e: Expression) -> Expression:
        return with_reads(e, lambda p: p - (p > dropped))

    place = moved(position)
    inside = _clamped(place, size.value - 1)
    at = inside if inside.type is ElementType.INT64 else Convert(ElementType.INT64, inside)

    def view(found: View) -> View:
        return replace(found, indices=tuple(_index(i, k, at) for i in found.indices))

    def without(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*values[:k], *values[k + 1 :])

    zero = Constant(0, term.type)

    def change(e: Expression | None) -> Expression | None:
        return None if e is None else moved(e)

    return replace(
        node,
        iterators=without(node.iterators),
        extents=without(node.extents),
        inputs=tuple(view(v) for n, v in enumerate(node.inputs) if n != dropped),
        outputs=tuple(map(view, node.outputs)),
        terms=(Select(Compare(CompareOp.EQ, place, inside), moved(term), zero),),
        combine=without(node.combine),
        initial=tuple(map(change, node.initial)),
        finish=tuple(map(change, node.finish)),
    )


def _clamped(value: Expression, last: int) -> Expression:
    low = Binary(BinaryOp.MAXIMUM, value, Constant(0, value.type))
    return Binary(BinaryOp.MINIMUM, low, Constant(last, value.type))


def _index(index: Index | Expression, k: int, at: Expression) -> Index | Expression:
    assert isinstance(index, Index)
    if index.coefficients[k]:
        return at
    return Index((*index.coefficients[:k], *index.coefficients[k + 1 :]), index.offset)
