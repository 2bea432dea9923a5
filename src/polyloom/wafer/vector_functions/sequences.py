"""Sequences of SIMD instructions that compute a function of whole arrays, and what they give in NumPy.

``t = fmuls(x, x); y = fadds(t, 1)``: each instruction makes a new value, or writes one 16-bit word of each
element of a value that another one made, which is how exponents are taken apart and put together: the engine
adds and moves 16-bit integers only. Words are numbered from the lowest.

Not in the papers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation import arithmetic
from polyloom.ir.expressions import Constant
from polyloom.ir.types import ElementType
from polyloom.wafer.machine.instructions import instruction

NDArray = npt.NDArray[Any]


@dataclass(frozen=True)
class Value:
    """An argument, or what an instruction made; ``word``: this 16-bit word of each element, an int16."""

    number: int
    type: ElementType
    word: int | None = None

    def words(self, word: int) -> Value:
        """Return a 16-bit word of each element."""
        return Value(self.number, self.type, word)


@dataclass(frozen=True)
class Operation:
    """``target = instruction(operands)``."""

    instruction: str
    target: Value
    operands: tuple[Value | Constant, ...]


@dataclass(frozen=True)
class VectorFunction:
    """``arguments``: the values that are given; the result is what the last operation makes as a whole."""

    arguments: tuple[Value, ...]
    operations: tuple[Operation, ...]

    @property
    def result(self) -> Value:
        """What the last operation makes."""
        return self.operations[-1].target


@dataclass(eq=False)
class Writer:
    """Collects operations: ``y = write.do("fadds", x, 1.0)``; a number takes the type that is asked for."""

    operations: list[Operation] = field(default_factory=list)
    values: int = 0

    def argument(self, kind: ElementType) -> Value:
        """Return the next argument."""
        self.values += 1
        return Value(self.values - 1, kind)

    def do(self, name: str, *operands: Value | float) -> Value:
        """Add an instruction that makes a value."""
        target = self.argument(instruction(name).destination)
        self.set(target, name, *operands)
        return target

    def set(self, target: Value, name: str, *operands: Value | float) -> None:
        """Add an instruction that writes a value, or a word of each of its elements."""
        types = instruction(name).sources
        given = (o if isinstance(o, Value) else Constant(o, t) for o, t in zip(operands, types, strict=True))
        self.operations.append(Operation(name, target, tuple(given)))

    def function(self, *arguments: Value) -> VectorFunction:
        """Return what was written as a function of the arguments."""
        return VectorFunction(arguments, tuple(self.operations))


def evaluate(function: VectorFunction, *arguments: NDArray) -> NDArray:
    """Return what a function gives for arrays of one shape, bit by bit as the engine does."""
    shape = arguments[0].shape
    values = {v.number: a.copy() for v, a in zip(function.arguments, arguments, strict=True)}
    for operation in function.operations:
        for value in (operation.target, *operation.operands):
            if isinstance(value, Value) and value.number not in values:
                values[value.number] = np.zeros(shape, value.type.dtype)
        reads = [_operand(operand, values) for operand in operation.operands]
        with np.errstate(all="ignore"):
            made = arithmetic.value(instruction(operation.instruction).body, reads, _none)
        _array(operation.target, values)[...] = made
    return values[function.result.number]


def _operand(operand: Value | Constant, values: dict[int, NDArray]) -> NDArray:
    if isinstance(operand, Value):
        return _array(operand, values)
    return np.asarray(operand.value, operand.type.dtype)


def _array(value: Value, values: dict[int, NDArray]) -> NDArray:
    whole = values[value.number]
    if value.word is None:
        return whole
    return whole.reshape(*whole.shape, 1).view(np.dtype("<i2"))[..., value.word]


def _none(dimension: int) -> NDArray:
    raise NotImplementedError
