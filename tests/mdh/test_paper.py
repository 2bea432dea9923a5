"""The statements of the paper on md_poly, as tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from md_homs import Case, md_homs
from polyloom.ir.combining import Partial, combined
from polyloom.ir.expressions import Binary, BinaryOp, Constant, Expression, Iterator
from polyloom.ir.host import Index, MdHom, Order, View
from polyloom.ir.md_hom_evaluate import run_md_hom
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.verify_host import verify_host
from polyloom.polyhedra.loops_tree import Name, Number, replace_name, sum_of

MISSING = -(2**31) + 7
"""Stands in an output where no point contributed."""


def part(node: MdHom, dimension: int, start: int, length: int) -> MdHom:
    """The md_hom on the points ``start`` to ``start + length - 1`` of a dimension."""

    def moved(index: Any) -> Any:
        if not isinstance(index, Index):
            return index
        shift = sum_of([(1, index.offset), (1, Number(start * index.coefficients[dimension]))])
        return Index(index.coefficients, shift)

    def later(expression: Expression) -> Expression | None:
        if isinstance(expression, Iterator) and expression.dimension == dimension:
            return Binary(BinaryOp.ADD, expression, Constant(start, expression.type))
        return None

    name = node.iterators[dimension]
    extents = tuple(Number(length) if k == dimension else n for k, n in enumerate(node.extents))
    guard = node.guard
    if guard is not None:
        guard = replace_name(guard, name, sum_of([(1, Name(name)), (1, Number(start))]))
    return replace(
        node,
        extents=extents,
        inputs=tuple(View(v.buffer, tuple(moved(i) for i in v.indices)) for v in node.inputs),
        terms=tuple(rebuilt(t, later) for t in node.terms),
        guard=guard,
    )


def h(node: MdHom, inputs: dict[str, Any]) -> Partial:
    """The results of an md_hom, one axis per dimension, and where there are any."""
    kept = [k for k, o in enumerate(node.combine) if o.order is not Order.POINTWISE]
    sizes = [n.value for n in node.extents if isinstance(n, Number)]
    shape = tuple(sizes[k] if k in kept else 1 for k in range(len(sizes)))
    axes = tuple(
        Index(tuple(int(j == k and k in kept) for j in range(len(sizes)))) for k in range(len(sizes))
    )
    outputs = tuple(View(f"y{o}", axes) for o in range(len(node.outputs)))
    arrays = {**inputs, **{v.buffer: np.full(shape, MISSING, "int32") for v in outputs}}
    run_md_hom(replace(node, outputs=outputs), arrays, {})
    values = tuple(arrays[v.buffer] for v in outputs)
    return Partial(values, values[0] != MISSING)


def op(node: MdHom, dimension: int, a: Partial, b: Partial) -> Partial:
    """``a op_k b`` for the combine operator of a dimension."""
    operator = node.combine[dimension]
    if operator.order is Order.PREFIX:
        assert operator.combiner is not None
        last = a.take(slice(-1, None), dimension)
        b = combined(operator.combiner, last, b, {})
    if operator.order is Order.POINTWISE:
        assert operator.combiner is not None
        return combined(operator.combiner, a, b, {})
    values = tuple(np.concatenate(pair, dimension) for pair in zip(a.values, b.values, strict=True))
    return Partial(values, np.concatenate([a.present, b.present], dimension))


@settings(deadline=None, max_examples=150)
@given(md_homs(), st.integers(0, 2**32), st.data())
def test_definition_3_1(case: Case, seed: int, data: Any) -> None:
    """``h(a ++_k b) = h(a) op_k h(b)`` for every dimension k of every md_hom."""
    node = case.node
    dimension = data.draw(st.integers(0, len(node.extents) - 1))
    extent = node.extents[dimension]
    assert isinstance(extent, Number)
    assume(extent.value > 1)
    cut = data.draw(st.integers(1, extent.value - 1))
    event(str(node.combine[dimension]))
    verify_host(case.program)
    inputs = case.data(seed)
    whole = h(node, inputs)
    a, b = h(part(node, dimension, 0, cut), inputs), h(part(node, dimension, cut, extent.value - cut), inputs)
    both = op(node, dimension, a, b)
    assert np.array_equal(whole.present, both.present)
    for found, wanted in zip(both.values, whole.values, strict=True):
        assert np.array_equal(found[whole.present], wanted[whole.present])
