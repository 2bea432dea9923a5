"""Made-up data to time and check an md_hom with: small integers, so that every order of summation agrees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.expressions import BinaryOp, Convert, Expression, Read, Unary, UnaryOp, walk
from polyloom.ir.host import Buffer, Index, MdHom, View
from polyloom.ir.host_inputs import shape_of

NDArray = npt.NDArray[Any]

_OF_POSITIVE = frozenset({UnaryOp.LOG, UnaryOp.SQRT, UnaryOp.RSQRT})
_GROWING = frozenset({BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MULTIPLY, BinaryOp.POWER})


def trial_arrays(hom: MdHom, buffers: Sequence[Buffer], seed: int = 0) -> dict[str, NDArray]:
    """Return an array for every buffer: integers that are not 0, of one sign under roots and logarithms.

    What is used as a subscript lies inside of the buffer that it selects from.
    """
    largest = 2 if _grows(hom) else 100
    positive = any(isinstance(p, Unary) and p.op in _OF_POSITIVE for e in _expressions(hom) for p in walk(e))
    limits = dict(_limits(hom, {b.name: shape_of(b, {}) for b in buffers}))
    arrays = {}
    for number, buffer in enumerate(buffers):
        generator = np.random.default_rng([seed, number])
        shape = shape_of(buffer, {})
        if buffer.name in limits:
            values = generator.integers(0, max(1, limits[buffer.name]), shape)
        else:
            values = generator.integers(1, largest, shape, endpoint=True)
            signed = buffer.type.is_float or np.issubdtype(buffer.type.dtype, np.signedinteger)
            if signed and not positive:
                values *= generator.choice([-1, 1], shape)
        arrays[buffer.name] = np.asarray(values).astype(buffer.type.dtype)
    return arrays


def _grows(hom: MdHom) -> bool:
    """Whether values are added or multiplied; else they may be large, so that few are equal."""
    combined = [r for operator in hom.combine if operator.combiner for r in operator.combiner.results]
    return any(getattr(p, "op", None) in _GROWING for e in combined for p in walk(e))


def _expressions(hom: MdHom) -> Iterator[Expression]:
    yield from hom.terms
    yield from (e for e in (*hom.initial, *hom.finish) if e is not None)


def _limits(hom: MdHom, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, int]]:
    """Yield the buffers whose elements are subscripts, with how many values are safe.

    A subscript that is computed from an element, not the element itself, gets 0 alone.
    """
    found: dict[str, int] = {}
    for view in (*hom.inputs, *hom.outputs):
        for index, extent in zip(view.indices, shapes[view.buffer], strict=True):
            for buffer, plain in _selecting(index, hom.inputs):
                found[buffer] = min(found.get(buffer, extent), extent if plain else 1)
    yield from found.items()


def _selecting(index: Index | Expression, inputs: Sequence[View]) -> Iterator[tuple[str, bool]]:
    if isinstance(index, Index):
        return
    inner: Expression = index
    while isinstance(inner, Convert):
        inner = inner.operand
    for part in walk(inner):
        if isinstance(part, Read):
            yield inputs[part.position].buffer, inner is part
