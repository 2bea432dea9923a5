"""How far two correct evaluations of a program may differ, element by element.

An element that combines n terms in any order may be off by ``n - 1`` roundings of the sum of their sizes,
beside the errors of the terms themselves (``rules``): for ``y += W * x``, whose terms round once, that
is ``n * eps * sum(|terms|)``, eps the distance of 1 from the next number of its type. Integers do not round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.inputs import checked_inputs
from polyloom.ir.evaluation.programs import blank
from polyloom.ir.program import Program
from polyloom.ir.rounding.md_homs import Errors, run_with_errors
from polyloom.ir.scalar_functions.approximate import Floats

NDArray = npt.NDArray[Any]


def error_bound(
    program: Program, inputs: Mapping[str, NDArray], errors: Mapping[str, Floats] | None = None
) -> dict[str, Floats]:
    """Return a bound on the error of each element of every tensor that a statement writes.

    ``errors``: how far inputs may be from the right values (a state that an earlier invocation computed);
    those that it does not name are exact. Each array has the shape of its input. Infinite: nothing is known.

    Errors: those of ``evaluate``. Not in the papers.
    """
    arrays = dict(checked_inputs(program, inputs))
    known: Errors = {**dict.fromkeys(t.name for t in program.tensors), **(errors or {})}
    with np.errstate(all="ignore"):
        for statement in program.statements:
            arrays[statement.write.buffer] = blank(program, statement)
            run_with_errors(statement, arrays, known, {})
    written = {s.write.buffer: known[s.write.buffer] for s in program.statements}
    return {n: np.zeros(arrays[n].shape) if bound is None else bound for n, bound in written.items()}
