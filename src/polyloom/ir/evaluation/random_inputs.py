"""Made-up inputs: small integers, all orders of summation give the same bits; reals, so that they differ.

Sums of integers are exact in float16 up to 2048. The range of the values of a tensor program shrinks with the
number of terms; where even -1 and 1 could add up to more, signs at random keep the sums small in all
likelihood. What is used as a subscript lies inside of the array that it selects from; what stands under a
root or logarithm is positive.
"""

from __future__ import annotations

import math
from collections.abc import Iterator as Iterator_
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.inputs import NO_PARAMETERS, shape_of
from polyloom.ir.evaluation.loop_ends import loop_ends
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    Constant,
    Convert,
    Expression,
    Iterator,
    Local,
    ParameterValue,
    Procedure,
    Read,
    Select,
    Unary,
    children,
    walk,
)
from polyloom.ir.host import Buffer, HostNode, HostProgram, Index, MdHom, Nest, Role, View, uses
from polyloom.ir.program import Program
from polyloom.ir.reductions import Combine
from polyloom.ir.scalar_functions.sizes import power
from polyloom.ir.statements import Statement, loops_of
from polyloom.polyhedra.loops.tree import leaves_in

NDArray = npt.NDArray[Any]

EXACT = 2048
"""Integers below this are exact in float16."""

VARIED = 100
"""The largest value where nothing adds up: so many, that a maximum of too few elements is another one."""

_GROWING = frozenset({BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MULTIPLY, BinaryOp.POWER})


@dataclass(frozen=True)
class Scale:
    """Real numbers from ``10**-decades`` to ``10**decades`` (a half of the decades for float16).

    ``dominant``: square matrices have a diagonal that outweighs their rows, which factorisations need.
    """

    decades: float
    dominant: bool = False


SCALES = (Scale(3), Scale(1), Scale(1, dominant=True))
"""From what shows most to what keeps the results of most programs finite."""


def random_inputs(
    program: HostProgram,
    seed: int = 0,
    density: Mapping[str, float] | float = 1.0,
    *,
    parameters: Mapping[str, int] = NO_PARAMETERS,
    largest: int | None = None,
) -> dict[str, NDArray]:
    """Return one array per input and updated buffer: integers of -2..2, or as ``largest`` says, never 0.

    ``density``: the fraction of nonzero elements, of all inputs or by name (default 1). ``largest``: None is
    2, or 1 where results of a tensor program could be too large. The same seed gives the same arrays. Truth
    values are 0 or 1.
    """
    shapes = {b.name: shape_of(b, parameters) for b in program.buffers}
    draw = _Draw(
        largest=_largest(program) if largest is None else largest,
        shapes=shapes,
        positive=_positive(program),
        safe=_subscripts(program, parameters),
        ends=loop_ends(program, shapes),
    )
    arrays = {}
    for number, buffer in enumerate(program.given):
        kept = density if isinstance(density, int | float) else density.get(buffer.name, 1.0)
        arrays[buffer.name] = draw.values(buffer, kept, np.random.default_rng([seed, number]))
    return arrays


def random_reals(
    program: HostProgram,
    scale: Scale,
    seed: int = 0,
    density: Mapping[str, float] | float = 1.0,
    *,
    parameters: Mapping[str, int] = NO_PARAMETERS,
) -> dict[str, NDArray] | None:
    """Return inputs whose floats are reals of mixed scale; None where no input has floats.

    Integers, subscripts and what must be positive are as ``random_inputs`` has them.
    """
    arrays = random_inputs(program, seed, density, parameters=parameters)
    kept = _subscripts(program, parameters)
    reals = [name for name, array in arrays.items() if array.dtype.kind == "f" and name not in kept]
    drawn = {name: _of_scale(arrays[name], scale, [seed, *name.encode()]) for name in reals}
    return {**arrays, **drawn} if reals else None


def _of_scale(signed: NDArray, scale: Scale, seed: Sequence[int]) -> NDArray:
    """Return real numbers of a scale with the signs of an array; zeros stay."""
    generator = np.random.default_rng(seed)
    decades = scale.decades / 2 if signed.dtype == np.float16 else scale.decades
    values = np.sign(signed) * 10 ** generator.uniform(-decades, decades, signed.shape)
    if scale.dominant and values.ndim == 2 and values.shape[0] == values.shape[1]:
        np.fill_diagonal(values, 2 * np.abs(values).sum(axis=1))
    return np.asarray(values).astype(signed.dtype)


def trial_arrays(hom: MdHom, buffers: Sequence[Buffer], seed: int = 0) -> dict[str, NDArray]:
    """Return an array for every buffer, outputs too. The same seed gives the same arrays."""
    given = tuple(replace(buffer, role=Role.UPDATED) for buffer in buffers)
    program = HostProgram(name=hom.name, parameters=(), buffers=given, body=(hom,))
    return random_inputs(program, seed, largest=None if _grows(hom) else VARIED)


def _grows(hom: MdHom) -> bool:
    combined = [r for operator in hom.combine if operator.combiner for r in operator.combiner.results]
    return any(isinstance(p, Binary) and p.op in _GROWING for e in combined for p in walk(e))


@dataclass(frozen=True, kw_only=True)
class _Draw:
    """How values are drawn: ``safe``: of what selects elements, how many values it may have.

    ``ends``: of what says where loops begin and end, the largest.
    """

    largest: int
    shapes: Mapping[str, tuple[int, ...]]
    positive: set[str]
    safe: Mapping[str, int]
    ends: Mapping[str, int]

    def values(self, buffer: Buffer, density: float, generator: np.random.Generator) -> NDArray:
        name, shape = buffer.name, self.shapes[buffer.name]
        low, high = (0, 1) if buffer.truths else (1, self.largest)
        values = generator.integers(low, high, shape, endpoint=True)
        if name not in self.positive and name not in self.safe and buffer.type.dtype.kind in "fi":
            values = values * generator.choice([-1, 1], shape)
        if name in self.safe:
            values = generator.integers(0, max(1, self.safe[name]), shape)
        if name in self.ends:
            drawn = generator.integers(0, self.ends[name] + 1, shape)
            return np.sort(drawn, axis=None).reshape(shape).astype(buffer.type.dtype)
        values = np.asarray(values).reshape(-1)
        values[generator.permutation(values.size)[round(density * values.size) :]] = 0
        return values.reshape(shape).astype(buffer.type.dtype)


def _expressions(node: HostNode) -> Iterator_[tuple[Expression, Sequence[View]]]:
    """Yield the scalar functions of a node, each with the views that its reads index."""
    match node:
        case MdHom(inputs=inputs):
            values = (*node.terms, *node.initial, *node.finish)
            yield from ((e, inputs) for e in values if e is not None)
        case Nest(assignments=assignments):
            for a in assignments:
                yield from ((e, a.reads) for e in (a.value, a.condition) if e is not None)


def _views(node: HostNode) -> Iterator_[tuple[View, Sequence[View]]]:
    """Yield the views of a node, each with those that a computed index reads."""
    match node:
        case MdHom(inputs=inputs, outputs=outputs):
            yield from ((view, inputs) for view in (*inputs, *outputs))
        case Nest(assignments=assignments):
            for a in assignments:
                yield from ((view, a.reads) for view in (a.target, *a.reads))


def _under_roots(node: HostNode) -> Iterator_[str]:
    """Yield the buffers that are read inside of a root or logarithm."""
    for expression, views in _expressions(node):
        for part in walk(expression):
            if isinstance(part, Unary) and part.op.of_positive:
                yield from _read(part.operand, views)


def _positive(program: HostProgram) -> set[str]:
    """Return the buffers that are read inside a root or logarithm, and those that they are made from."""
    found: set[str] = set()
    for node in reversed(list(leaves_in(program.body))):
        if isinstance(node, MdHom | Nest):
            touched = uses([node])
            found |= touched.read if touched.written & found else set()
            found.update(_under_roots(node))
    return found


def _subscripts(program: HostProgram, parameters: Mapping[str, int]) -> dict[str, int]:
    """Return the buffers whose elements select others, with how many values are safe for all of them.

    Where a subscript is computed from an element, and not the element itself, only 0 is.
    """
    safe: dict[str, int] = {}
    shapes = {b.name: shape_of(b, parameters) for b in program.buffers}
    for view, views in (found for node in leaves_in(program.body) for found in _views(node)):
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


def _read(expression: Expression, views: Sequence[View]) -> Iterator_[str]:
    positions = (part.position for part in walk(expression) if isinstance(part, Read))
    return (views[k].buffer for k in positions if k < len(views))


def _largest(program: HostProgram) -> int:
    too_large = isinstance(program, Program) and _largest_result(program, 2) >= EXACT
    return 1 if too_large else 2


def _largest_result(program: Program, largest: int) -> float:
    """Return a bound on every result if no input is larger than ``largest``."""
    sizes: dict[str, float] = dict.fromkeys(program.inputs, float(largest))
    for statement in program.statements:
        sizes[statement.write.buffer] = _result(statement, sizes)
    return max(sizes.values(), default=0.0)


def terms_per_element(statement: Statement) -> int:
    """Return a bound on the number of instances that write one element; exact for a plain reduction."""
    return math.prod(statement.domain[loop.dimension] for loop in loops_of(statement))


def _result(statement: Statement, sizes: Mapping[str, float]) -> float:
    term = size_of(statement.expression, statement, sizes)
    match statement.reduction:
        case Combine.ADD:
            return terms_per_element(statement) * term
        case Combine.MULTIPLY:
            return power(max(term, 1.0), terms_per_element(statement))
        case _:
            return term


def size_of(expression: Expression, statement: Statement, sizes: Mapping[str, float]) -> float:
    """Return a bound on the absolute value of an expression; divisors count as 1 or more."""
    inner = [size_of(child, statement, sizes) for child in children(expression)]
    match expression:
        case Read(position=k):
            return sizes[statement.reads[k].buffer]
        case Constant(value=x):
            return abs(float(x))
        case Iterator(dimension=k):
            return float(statement.domain[k])
        case ParameterValue() | Local() | Procedure():
            return math.inf
        case Unary(op=op):
            return op.size(*inner)
        case Binary(op=op):
            return op.size(*inner)
        case Select():
            return max(inner[1:])
        case Compare():
            return 1.0
        case Convert():
            return inner[0]
