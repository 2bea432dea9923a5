"""A row of the table of scalar functions: all that any part of the compiler knows of one.

No field has a default: a function that leaves one out is a type error, and fails when it is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

import numpy as np

from polyloom.ir.scalar_functions import error_rules, evaluation, known_values
from polyloom.ir.scalar_functions.rounding import Rounding
from polyloom.ir.scalar_functions.sizes import OfOne as SizeOfOne
from polyloom.ir.scalar_functions.sizes import OfTwo as SizeOfTwo
from polyloom.ir.scalar_functions.spelling import Defined, Infix, Prefix, Spelling
from polyloom.ir.types import ElementType


class Notation(Enum):
    """How LAIR writes a function, from the loosest operator to a call."""

    OR = "a or b"
    AND = "a and b"
    NOT = "not a"
    BITS = "a sign b, operands of bit operations"
    SUM = "a sign b, binding as a sum"
    PRODUCT = "a sign b, binding as a product"
    SIGN = "sign a"
    CALL = "name(a, ...)"


@dataclass(frozen=True, kw_only=True)
class OnWafer:
    """A function on a processing element: its C, and how many simple operations it takes there.

    The numbers of operations are estimates, there is no public figure. Multiplications are counted for
    themselves.
    """

    spelling: Defined | Infix | Prefix
    operations: int


Evaluate = TypeVar("Evaluate")
Carry = TypeVar("Carry")


@dataclass(frozen=True, kw_only=True, eq=False)
class Form(Generic[Evaluate, Carry]):
    """A function of operands of one kind: floats, integers or truth values.

    ``numpy``: what it does to arrays, rounded to their type; ``error``: how it carries errors of its
    operands; ``opencl``: how it is written in a kernel.
    """

    numpy: Evaluate
    error: Carry
    opencl: Spelling


UnaryForm = Form[evaluation.OfOne, error_rules.OfOne]
BinaryForm = Form[evaluation.OfTwo, error_rules.OfTwo]
AnyForm = TypeVar("AnyForm", UnaryForm, BinaryForm)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ScalarFunction(Generic[AnyForm]):
    """What functions of one and of two arguments have in common.

    ``name``: in LAIR and in messages; the sign of an operator. ``in_lair``: whether LAIR programs may call it
    by its name. ``c_names``: functions of ``math.h`` with this meaning; a final ``f`` makes them ``float``.
    ``floats``, ``integers``, ``truths``: the form for operands of each kind, None where they have none.
    ``instructions``: about how many it takes on a CPU, for the cost model; an estimate. ``wafer``: None where
    processing elements do not compute it.
    """

    name: str
    notation: Notation
    in_lair: bool
    c_names: tuple[str, ...]
    floats: AnyForm | None
    integers: AnyForm | None
    truths: AnyForm | None
    rounding: Rounding
    instructions: float
    wafer: OnWafer | None

    def takes(self, kind: ElementType) -> bool:
        """Tell whether operands of a type have this function."""
        return self._form(kind) is not None

    def form(self, kind: ElementType) -> AnyForm:
        """Return the form for operands of a type. Errors: ValueError where there is none."""
        found = self._form(kind)
        if found is None:
            raise ValueError(f"{self.name} of {kind.value}")
        return found

    def _form(self, kind: ElementType) -> AnyForm | None:
        if kind is ElementType.BOOL:
            return self.truths
        return self.floats if kind.is_float else self.integers

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class UnaryFunction(ScalarFunction[UnaryForm]):
    """A function of one argument.

    ``known``: its result for a constant, as far as it is exact; ``size``: a bound on its result from that of
    its operand; ``of_positive``: whether made-up data must be positive for it.
    """

    known: known_values.OfOne
    size: SizeOfOne
    of_positive: bool

    def __reduce__(self) -> tuple[object, ...]:
        return _unary_named, (self.name,)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BinaryFunction(ScalarFunction[BinaryForm]):
    """A function of two arguments of one type; ``known`` and ``size`` as of ``UnaryFunction``."""

    known: known_values.OfTwo
    size: SizeOfTwo

    def __reduce__(self) -> tuple[object, ...]:
        return _binary_named, (self.name,)

    @property
    def ufunc(self) -> np.ufunc | None:
        """NumPy's universal function that this one is for operands of every kind, if there is one."""
        forms = [f.numpy for f in (self.floats, self.integers, self.truths) if f is not None]
        one = forms[0]
        return one if isinstance(one, np.ufunc) and all(f is one for f in forms) else None


UNARY: dict[str, UnaryFunction] = {}
"""The functions of one argument that there are, by name: those of ``table``, and what a program adds."""

BINARY: dict[str, BinaryFunction] = {}
"""The functions of two arguments that there are, by name."""


def add_function(function: UnaryFunction | BinaryFunction) -> None:
    """Make a function known by its name. Errors: ValueError where there is one of that name."""
    if function.name in (UNARY if isinstance(function, UnaryFunction) else BINARY):
        raise ValueError(f"there is a function `{function.name}`")
    if isinstance(function, UnaryFunction):
        UNARY[function.name] = function
    else:
        BINARY[function.name] = function


def _unary_named(name: str) -> UnaryFunction:
    """Return a function that was pickled by its name: each exists once in a process."""
    return UNARY[name]


def _binary_named(name: str) -> BinaryFunction:
    return BINARY[name]
