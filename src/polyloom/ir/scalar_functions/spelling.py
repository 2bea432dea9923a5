"""How a scalar function is written in C: what a printer must know of it beside its operands' texts.

Printers (of OpenCL: ``mdh/print/values``, of a PE's C: ``wafer/machine/scalar_c``) are written
over these few kinds and name no function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Call:
    """``function(a, b)``. ``rounded``: whether a half that is held as a float is rounded afterwards."""

    function: str
    rounded: bool


@dataclass(frozen=True)
class Helper:
    """A call of a small function that is defined beside the kernel, one for each type: ``nan_max_float4``."""

    family: str


@dataclass(frozen=True)
class Formula:
    """A helper whose body is one expression of its argument ``a``: ``{one} / ({one} + {exp}(-a))``.

    ``{one}`` is 1 in the type of ``a``; other names in braces are functions of the library.
    """

    family: str
    body: str


@dataclass(frozen=True)
class Defined:
    """A call of a function that a processing element's header defines for each type: ``exp_h``, ``exp_s``.

    ``floats``, ``integers``: its result in C from ``arguments``, which is converted to their type; None where
    it has none. What is computed in double is rounded once.
    """

    function: str
    arguments: tuple[str, ...]
    floats: str | None
    integers: str | None


@dataclass(frozen=True)
class Infix:
    """``a sign b``."""

    sign: str


@dataclass(frozen=True)
class Prefix:
    """``sign a``."""

    sign: str


@dataclass(frozen=True)
class Bits:
    """``(a) sign (b)`` of integers, bit by bit."""

    sign: str


@dataclass(frozen=True)
class Logical:
    """``a sign b`` of truth values, which are masks where they are vectors."""

    sign: str


@dataclass(frozen=True)
class Wrapping:
    """``a sign b`` where C's unsigned numbers wrap by themselves, else a call of a helper that wraps."""

    sign: str
    family: str


@dataclass(frozen=True)
class Guarded:
    """``a sign b`` where b is a constant with which C has no trouble, else a call of a helper.

    ``harmless``: tells so of a constant and the number of bits of the type.
    """

    sign: str
    family: str
    harmless: Callable[[int, int], bool]


def positive(value: int, bits: int) -> bool:
    """Tell whether a divisor is neither 0 nor negative in any type of that many bits."""
    return 0 < value < 1 << (bits - 1)


def within_the_bits(value: int, bits: int) -> bool:
    """Tell whether a shift leaves a bit."""
    return 0 <= value < bits


def never(value: int, bits: int) -> bool:
    """Return that no constant is harmless."""
    return False


@dataclass(frozen=True)
class Same:
    """The operand itself."""


@dataclass(frozen=True)
class Magnitude:
    """The absolute value of an integer, whose result C has in the unsigned type."""


Spelling = Call | Helper | Formula | Infix | Prefix | Bits | Logical | Wrapping | Guarded | Same | Magnitude
