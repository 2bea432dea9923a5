"""Python functions of affine loops over arrays: read from their syntax tree into a static control part.

function -> source (its text and tree) -> walk (affine, values) -> read (domains, accesses, schedule) -> Scop
"""

from __future__ import annotations

from polyloom.frontends.python.read import ArrayType, Calls, Found, NumberType, TruthType, read_python
from polyloom.frontends.python.source import FunctionText, text_of_function

__all__ = [
    "ArrayType",
    "Calls",
    "Found",
    "FunctionText",
    "NumberType",
    "TruthType",
    "read_python",
    "text_of_function",
]
