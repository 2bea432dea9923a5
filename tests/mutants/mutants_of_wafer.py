"""Mutants of the wafer that ``wafer/test_wafer_mutants`` leaves open."""

from __future__ import annotations

from mutant import Mutant, Probe

MUTANTS = [
    Mutant(
        "wafer/simd/extended_strategies",
        "rounds = statement.expression.type.is_float and",
        "rounds = False and",
        Probe("wafer_probes.order_is_kept"),
    ),
]
