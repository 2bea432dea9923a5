"""The meaning of a program: what each statement writes, in NumPy. The oracle of all tests.

An element is the neutral element of the statement's reduction, combined with the terms of the instances
that write it, one after another in lexicographic order; every operation is rounded to the element type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.inputs import checked_inputs
from polyloom.ir.evaluation.md_homs import run_md_hom
from polyloom.ir.program import Program
from polyloom.ir.reductions import neutral
from polyloom.ir.statements import Statement

NDArray = npt.NDArray[Any]


def evaluate(program: Program, inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Return every tensor that a statement writes, by name.

    ``inputs``: one array per input, of its shape and element type. Memory beyond the tensors
    themselves is bounded; a statement of 10**7 points takes about a second.

    Errors: ``input-missing``, ``input-unknown``, ``input-shape``, ``input-type``.
    Source: dtg_codegen, Sec. 4.1.1 (initializing reductions). Rounding and order: not in the papers.
    """
    arrays = dict(checked_inputs(program, inputs))
    with np.errstate(all="ignore"):
        for statement in program.statements:
            arrays[statement.write.buffer] = blank(program, statement)
            run_md_hom(statement, arrays, {})
    return {s.write.buffer: arrays[s.write.buffer] for s in program.statements}


def blank(program: Program, statement: Statement) -> NDArray:
    """Return the output of a statement before it starts: the neutral element everywhere."""
    target = program.tensor(statement.write.buffer)
    return np.full(target.extents, neutral(statement.reduction, target.type), target.type.dtype)
