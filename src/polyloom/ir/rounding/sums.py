"""Errors of terms that are combined in any order: what is gathered of them, and the bound that it gives.

A family of operators keeps a few numbers for each element, *channels*, such as the count of the terms and the
sum of their sizes. Channels combine like the terms themselves: along an axis, prefix after prefix, at the
elements of a histogram.

Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from polyloom.ir.expressions import BinaryOp
from polyloom.ir.rounding.rules import epsilon
from polyloom.ir.scalar_functions.approximate import Approximate, Floats, magnitude, size
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.ir.types import ElementType

Channels = tuple[Floats, ...]


@dataclass(frozen=True)
class Family:
    """``terms``: the channels of single terms; ``bound``: the error of what they combine to.

    ``functions``: by which each channel combines; ``starts``: its value without any term.
    """

    functions: tuple[np.ufunc, ...]
    starts: tuple[float, ...]
    terms: Callable[[Approximate], Channels]
    bound: Callable[[Channels, ElementType], Floats]

    def present(self, term: Approximate, where: npt.NDArray[np.bool_] | None) -> Channels:
        """Return the channels of terms, all of the shape of ``where``; nothing where it does not hold."""
        channels = self.terms(term)
        if where is None:
            return channels
        pairs = zip(channels, self.starts, strict=True)
        return tuple(np.where(where, channel, start) for channel, start in pairs)


def family(op: BinaryFunction) -> Family:
    """Return the family of an associative operator."""
    match op:
        case BinaryOp.ADD:
            return _SUM
        case BinaryOp.MULTIPLY:
            return _PRODUCT
        case BinaryOp.MAXIMUM | BinaryOp.MINIMUM | BinaryOp.FMAX | BinaryOp.FMIN:
            return _EXTREME
        case _:
            return _EXACT


def _error(term: Approximate) -> Floats:
    return np.zeros(np.shape(term.value)) if term.error is None else term.error


def _sum_terms(term: Approximate) -> Channels:
    return np.ones(np.shape(term.value)), magnitude(term), _error(term)


def _sum_bound(channels: Channels, kind: ElementType) -> Floats:
    """Return ``(n - 1) * eps * sum(|t|) + sum(error)``; where a partial sum may overflow nothing is known."""
    count, total, error = channels
    if not kind.is_float:
        return error
    bound = np.maximum(count - 1, 0) * epsilon(kind) * np.where(count > 1, total, 0.0) + error
    overflows = (count > 1) & (total > float(np.finfo(kind.value).max)) & np.isfinite(total)
    certain = np.isfinite(error) & ~np.isfinite(total)
    return np.where(certain, 0.0, np.where(overflows | np.isnan(bound), inf, bound))


def _product_terms(term: Approximate) -> Channels:
    sizes, most = size(term.value), magnitude(term)
    ones = np.ones(np.shape(sizes))
    return ones, sizes, most, np.maximum(most, 1.0), np.minimum(sizes, 1.0), _error(term)


def _product_bound(channels: Channels, kind: ElementType) -> Floats:
    """Return ``(1 + eps)**(n - 1) * product(|t| + error) - product(|t|)``.

    Unknown where a partial product may overflow, or may underflow although no term is zero.
    """
    count, sizes, most, largest, least, error = channels
    if not kind.is_float:
        return np.where(error == 0, 0.0, inf)
    limits = np.finfo(kind.value)
    growth = np.expm1(np.maximum(count - 1, 0) * np.log1p(epsilon(kind)))
    bound = most * growth + (most - sizes)
    leaves = (largest > float(limits.max)) | ((least < float(limits.smallest_normal)) & (sizes > 0))
    bound = np.where((sizes == 0) & (error == 0) & (largest < inf), 0.0, bound)
    return np.where(count <= 1, error, np.where(leaves | ~np.isfinite(bound), inf, bound))


def _extreme_terms(term: Approximate) -> Channels:
    return (_error(term),)


def _extreme_bound(channels: Channels, kind: ElementType) -> Floats:
    return channels[0]


def _exact_bound(channels: Channels, kind: ElementType) -> Floats:
    return np.where(channels[0] == 0, 0.0, inf)


_SUM = Family((np.add, np.add, np.add), (0.0, 0.0, 0.0), _sum_terms, _sum_bound)
_PRODUCT = Family(
    (np.add, np.multiply, np.multiply, np.multiply, np.multiply, np.maximum),
    (0.0, 1.0, 1.0, 1.0, 1.0, 0.0),
    _product_terms,
    _product_bound,
)
_EXTREME = Family((np.maximum,), (0.0,), _extreme_terms, _extreme_bound)
_EXACT = Family((np.maximum,), (0.0,), _extreme_terms, _exact_bound)
"""Operators of integers: exact terms give exact results."""
