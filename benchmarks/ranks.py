"""Spearman's rank correlation, for the benchmarks of cost models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def rank_correlation(expected: Sequence[float], measured: Sequence[float]) -> float:
    """Return Spearman's coefficient; ties have their mean rank. NaN where one side never changes."""
    ranks = np.stack([_ranks(np.array(side, np.float64)) for side in (expected, measured)])
    if len(expected) < 3 or (ranks.std(axis=1) == 0).any():
        return float("nan")
    return float(np.corrcoef(ranks)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    unique, inverse = np.unique(values, return_inverse=True)
    position = np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(np.float64)
    means = np.bincount(inverse, position) / np.bincount(inverse)
    assert len(unique) == len(means)
    return means[inverse]
