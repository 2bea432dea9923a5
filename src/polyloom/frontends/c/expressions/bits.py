"""GNU's functions of bits as arithmetic: ``__builtin_popcount``, ``parity``, ``ctz``, ``bswap32``.

Source: Warren, Hacker's Delight, 2nd edition, 2012, Fig. 5-2 (bits counted in pairs, fours, eights, then by a
product). C compilers know it, and have an instruction in its place.
"""

from __future__ import annotations

from collections.abc import Callable

from polyloom.frontends.c.scope.conversions import converted
from polyloom.ir.expressions import Binary, BinaryOp, Constant, Expression, Unary, UnaryOp
from polyloom.ir.types import ElementType

_WIDE = {"": ElementType.UINT32, "l": ElementType.UINT64, "ll": ElementType.UINT64}
_SWAPPED = {
    "bswap16": ElementType.UINT16,
    "bswap32": ElementType.UINT32,
    "bswap64": ElementType.UINT64,
}


def function_of_bits(name: str) -> Callable[[Expression], Expression] | None:
    """Return what a function does, by its name behind ``__builtin_``; None for what is none of these."""
    if name in _SWAPPED:
        return lambda x: _swapped(converted(x, _SWAPPED[name]))
    for family, function in _FAMILIES.items():
        if name.startswith(family) and (kind := _WIDE.get(name.removeprefix(family))) is not None:
            return lambda x: converted(function(converted(x, kind)), ElementType.INT32)
    return None


def _count(x: Expression) -> Expression:
    kind = x.type
    every = (1 << 8 * kind.size) - 1

    def mask(byte: int) -> Constant:
        return Constant(every // 255 * byte, kind)

    pairs = x - _and(_right(x, 1), mask(0x55))
    fours = _and(pairs, mask(0x33)) + _and(_right(pairs, 2), mask(0x33))
    eights = _and(fours + _right(fours, 4), mask(0x0F))
    return _right(eights * mask(0x01), 8 * kind.size - 8)


def _parity(x: Expression) -> Expression:
    return _and(_count(x), Constant(1, x.type))


def _behind_the_last(x: Expression) -> Expression:
    """Return how many zeros are behind the last one; of 0 C says nothing."""
    last = _and(x, Unary(UnaryOp.NEGATE, x))
    return _count(last - 1)


def _swapped(x: Expression) -> Expression:
    """Return a number with its bytes in the other order."""
    size, found = x.type.size, None
    for k in range(size):
        byte = _and(_right(x, 8 * k), Constant(255, x.type)) if k else _and(x, Constant(255, x.type))
        moved = (
            Binary(BinaryOp.SHIFT_LEFT, byte, Constant(8 * (size - 1 - k), x.type)) if k < size - 1 else byte
        )
        found = moved if found is None else Binary(BinaryOp.BIT_OR, found, moved)
    assert found is not None
    return found


_FAMILIES: dict[str, Callable[[Expression], Expression]] = {
    "popcount": _count,
    "parity": _parity,
    "ctz": _behind_the_last,
}


def _right(x: Expression, bits: int) -> Expression:
    return Binary(BinaryOp.SHIFT_RIGHT, x, Constant(bits, x.type))


def _and(a: Expression, b: Expression) -> Expression:
    return Binary(BinaryOp.BIT_AND, a, b)
