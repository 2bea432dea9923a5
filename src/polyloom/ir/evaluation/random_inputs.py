"""Made-up inputs: small integers, all orders of summation give the same bits; reals, so that they differ.

Sums of integers are exact in float16 up to 2048. The range of the values shrinks with the number of
terms; where even -1 and 1 could add up to more, signs at random keep the sums small in all likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Iterator as Iterator_
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.expressions import (
    Binary,
    Compare,
    Constant,
    Convert,
    Expression,
    Iterator,
    ParameterValue,
    Read,
    Select,
    Unary,
    children,
    walk,
)
from polyloom.ir.host import Buffer
from polyloom.ir.program import Program
from polyloom.ir.reductions import Combine
from polyloom.ir.scalar_functions.sizes import power
from polyloom.ir.statements import Statement, loops_of

NDArray = npt.NDArray[Any]

EXACT = 2048
"""Integers below this are exact in float16."""


@dataclass(frozen=True)
class Scale:
    """Real numbers from ``10**-decades`` to ``10**decades`` (a half of the decades for float16).

    ``dominant``: square matrices have a diagonal that outweighs their rows, which factorisations need.
    """

    decades: float
    dominant: bool = False


SCALES = (Scale(3), Scale(1), Scale(1, dominant=True))
"""From what shows most to what keeps the results of most programs finite."""


def of_scale(signed: NDArray, scale: Scale, seed: Sequence[int]) -> NDArray:
    """Return real numbers of a scale with the signs of an array; zeros stay."""
    generator = np.random.default_rng(seed)
    decades = scale.decades / 2 if signed.dtype == np.float16 else scale.decades
    values = np.sign(signed) * 10 ** generator.uniform(-decades, decades, signed.shape)
    if scale.dominant and values.ndim == 2 and values.shape[0] == values.shape[1]:
        np.fill_diagonal(values, 2 * np.abs(values).sum(axis=1))
    return np.asarray(values).astype(signed.dtype)


def random_reals(
    program: Program, scale: Scale, seed: int = 0, density: Mapping[str, float] | float = 1.0
) -> dict[str, NDArray] | None:
    """Return inputs whose floats are reals of mixed scale; None where no input has floats."""
    arrays = random_inputs(program, seed, density)
    return with_reals(arrays, arrays.keys(), scale, seed)


def with_reals(
    arrays: Mapping[str, NDArray], names: Collection[str], scale: Scale, seed: int
) -> dict[str, NDArray] | None:
    """Return arrays, those of floats among ``names`` as reals of a scale; None where none is."""
    reals = [name for name, array in arrays.items() if array.dtype.kind == "f" and name in names]
    drawn = {name: of_scale(arrays[name], scale, [seed, *name.encode()]) for name in reals}
    return {**arrays, **drawn} if reals else None


def random_inputs(
    program: Program, seed: int = 0, density: Mapping[str, float] | float = 1.0
) -> dict[str, NDArray]:
    """Return one array per input: integers of -2..2 or -1..1, never 0 but where ``density`` asks for it.

    ``density``: the fraction of nonzero elements, of all inputs or by name (default 1). Inputs under a
    root or logarithm are positive. The same seed gives the same arrays.
    """
    largest = 2 if _largest_result(program, 2) < EXACT else 1
    positive = _positive(program)
    arrays = {}
    for number, name in enumerate(program.inputs):
        generator = np.random.default_rng([seed, number])
        kept = density if isinstance(density, int | float) else density.get(name, 1.0)
        arrays[name] = _values(program.tensor(name), largest, name in positive, kept, generator)
    return arrays


def _values(
    tensor: Buffer, largest: int, positive: bool, density: float, generator: np.random.Generator
) -> NDArray:
    count = math.prod(tensor.extents)
    values = integers(generator, (count,), largest, signed=not positive)
    values[generator.permutation(count)[round(density * count) :]] = 0
    return values.reshape(tensor.extents).astype(tensor.type.dtype)


def integers(
    generator: np.random.Generator, shape: tuple[int, ...], largest: int, *, signed: bool
) -> NDArray:
    """Return integers from 1 to ``largest``, ``signed``: half of them negative."""
    values = generator.integers(1, largest, shape, endpoint=True)
    return values * generator.choice([-1, 1], shape) if signed else values


def under_roots(expression: Expression) -> Iterator_[int]:
    """Yield the positions that are read inside of a root or logarithm."""
    for part in walk(expression):
        if isinstance(part, Unary) and part.op.of_positive:
            yield from (p.position for p in walk(part.operand) if isinstance(p, Read))


def _positive(program: Program) -> set[str]:
    """Return the tensors that are read inside a root or logarithm, and those that they are made from."""
    found: set[str] = set()
    for statement in reversed(program.statements):
        if statement.write.buffer in found:
            found |= {access.buffer for access in statement.reads}
        found |= {statement.reads[k].buffer for k in under_roots(statement.expression)}
    return found


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
        case ParameterValue():
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
