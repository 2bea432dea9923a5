"""Made-up inputs of a host program, and data to time and check an md_hom with.

Small integers that are not 0, so that every order of summation agrees; and real numbers of mixed scale, for
which order and rounding show. What is used as a subscript lies inside of the array that it selects from; what
stands under a root or logarithm is positive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.host_inputs import input_buffers, shape_of
from polyloom.ir.evaluation.random_inputs import Scale, integers, under_roots, with_reals
from polyloom.ir.expressions import Binary, BinaryOp, Constant, Convert, Expression, Read, Select, walk
from polyloom.ir.host import Buffer, HostNode, HostProgram, Index, MdHom, Nest, Role, View, walk_host

NDArray = npt.NDArray[Any]

LARGEST = 2

VARIED = 100
"""The largest value where nothing adds up: so many, that a maximum of too few elements is another one."""

_GROWING = frozenset({BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MULTIPLY, BinaryOp.POWER})


def made_up_inputs(
    program: HostProgram, parameters: Mapping[str, int], seed: int = 0, largest: int = LARGEST
) -> dict[str, NDArray]:
    """Return an array for every input and updated buffer, of integers up to ``largest``.

    The same seed gives the same arrays.
    """
    shapes = {b.name: shape_of(b, parameters) for b in program.buffers}
    nodes = list(walk_host(program.body))
    safe = _subscripts(nodes, shapes)
    positive = {name for node in nodes for name in _positive(node)}
    arrays = {}
    for number, buffer in enumerate(input_buffers(program)):
        generator = np.random.default_rng([seed, number])
        shape = shapes[buffer.name]
        signed = buffer.name not in positive and buffer.name not in safe and buffer.type.dtype.kind in "fi"
        values = integers(generator, shape, largest, signed=signed)
        if buffer.name in safe:
            values = generator.integers(0, max(1, safe[buffer.name]), shape)
        arrays[buffer.name] = np.asarray(values).astype(buffer.type.dtype)
    return arrays


def mixed_inputs(
    program: HostProgram, parameters: Mapping[str, int], scale: Scale, seed: int
) -> dict[str, NDArray] | None:
    """Return inputs whose floats are reals of mixed scale; None where no floats are given.

    Integers, subscripts and what must be positive are as ``made_up_inputs`` has them.
    """
    arrays = made_up_inputs(program, parameters, seed)
    nodes = list(walk_host(program.body))
    kept = _subscripts(nodes, {b.name: shape_of(b, parameters) for b in program.buffers})
    return with_reals(arrays, arrays.keys() - kept.keys(), scale, seed)


def trial_arrays(hom: MdHom, buffers: Sequence[Buffer], seed: int = 0) -> dict[str, NDArray]:
    """Return an array for every buffer, outputs too. The same seed gives the same arrays."""
    given = tuple(replace(buffer, role=Role.UPDATED) for buffer in buffers)
    program = HostProgram(name=hom.name, parameters=(), buffers=given, body=(hom,))
    return made_up_inputs(program, {}, seed, LARGEST if _grows(hom) else VARIED)


def _grows(hom: MdHom) -> bool:
    combined = [r for operator in hom.combine if operator.combiner for r in operator.combiner.results]
    return any(isinstance(p, Binary) and p.op in _GROWING for e in combined for p in walk(e))


def _expressions(node: HostNode) -> Iterator[tuple[Expression, Sequence[View]]]:
    """Yield the scalar functions of a node, each with the views that its reads index."""
    match node:
        case MdHom(inputs=inputs):
            values = (*node.terms, *node.initial, *node.finish)
            yield from ((e, inputs) for e in values if e is not None)
        case Nest(assignments=assignments):
            for a in assignments:
                yield from ((e, a.reads) for e in (a.value, a.condition) if e is not None)


def _views(node: HostNode) -> Iterator[tuple[View, Sequence[View]]]:
    """Yield the views of a node, each with those that a computed index reads."""
    match node:
        case MdHom(inputs=inputs, outputs=outputs):
            yield from ((view, inputs) for view in (*inputs, *outputs))
        case Nest(assignments=assignments):
            for a in assignments:
                yield from ((view, a.reads) for view in (a.target, *a.reads))


def _positive(node: HostNode) -> Iterator[str]:
    """Yield the buffers that are read inside of a root or logarithm."""
    for expression, views in _expressions(node):
        yield from (views[k].buffer for k in under_roots(expression) if k < len(views))


def _subscripts(nodes: Sequence[HostNode], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the buffers whose elements select others, with how many values are safe for all of them.

    Where a subscript is computed from an element, and not the element itself, only 0 is.
    """
    safe: dict[str, int] = {}
    for view, views in (found for node in nodes for found in _views(node)):
        for index, extent in zip(view.indices, shapes.get(view.buffer, ()), strict=False):
            if not isinstance(index, Index):
                inner = _unconverted(index)
                for name in _read(inner, views):
                    most = extent if isinstance(inner, Read) else 1
                    safe[name] = min(safe.get(name, most), most)
    return safe


def _unconverted(expression: Expression) -> Expression:
    """Return an index without conversions, and without the condition under which it counts."""
    match expression:
        case Convert(operand=inner) | Select(then=inner, otherwise=Constant()):
            return _unconverted(inner)
        case _:
            return expression


def _read(expression: Expression, views: Sequence[View]) -> Iterator[str]:
    positions = (part.position for part in walk(expression) if isinstance(part, Read))
    return (views[k].buffer for k in positions if k < len(views))
