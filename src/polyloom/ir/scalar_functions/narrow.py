"""Rounding to a format that no tensor has: a float stays what it is, with fewer bits."""

from __future__ import annotations

from polyloom.ir.scalar_functions import error_rules, evaluation, known_values, sizes
from polyloom.ir.scalar_functions.function import Notation, UnaryForm, UnaryFunction
from polyloom.ir.scalar_functions.rounding import library
from polyloom.ir.scalar_functions.spelling import Helper

BFLOAT16 = UnaryFunction(
    name="bfloat16",
    notation=Notation.CALL,
    in_lair=False,
    c_names=(),
    floats=UnaryForm(numpy=evaluation.to_bfloat16, error=error_rules.monotone, opencl=Helper("to_bfloat16")),
    integers=None,
    truths=None,
    rounding=library(2.0**16),
    known=known_values.never,
    size=sizes.same,
    of_positive=False,
    instructions=4.0,
    wafer=None,
)
