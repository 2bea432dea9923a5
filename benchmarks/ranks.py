"""How well expected times rank measured ones, for the benchmarks of cost models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def rank_correlation(expected: Sequence[float], measured: Sequence[float]) -> float:
    """Return Spearman's coefficient; ties have their mean rank. NaN where one side never changes."""
    ranks = np.stack([_ranks(np.array(side, np.float64)) for side in (expected, measured)])
    if len(expected) < 3 or (ranks.std(axis=1) == 0).any():
        return float("nan")
    return float(np.corrcoef(ranks)[0, 1])


def pairs_apart(
    expected: Sequence[float], measured: Sequence[float], factor: float
) -> list[tuple[float, float]]:
    """Return the pairs whose measured times differ by more than ``factor``; others are as good as each other.

    Of each: the time of the slower one over that of the faster one, as expected and as measured.
    """
    sides = list(zip(expected, measured, strict=True))
    return [(a[0] / b[0], a[1] / b[1]) for a in sides for b in sides if a[1] > factor * b[1]]


def ordered_right(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the part of pairs that are expected in the order in which they are; equal ones count half."""
    return sum(1.0 if e > 1 else 0.5 if e == 1 else 0.0 for e, _ in pairs) / len(pairs)


def _ranks(values: np.ndarray) -> np.ndarray:
    unique, inverse = np.unique(values, return_inverse=True)
    position = np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(np.float64)
    means = np.bincount(inverse, position) / np.bincount(inverse)
    assert len(unique) == len(means)
    return means[inverse]
