"""How far two correct runs of a program may differ, element by element.

The program is evaluated with errors (``rules``): an md_hom combines its points in any order
(``md_homs``), a nest keeps the order of the source (``nests``). Local arrays and outputs start as
the evaluator's garbage, which is no number: where a program reads it, a comparison shows.

Not in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.programs import Leaf, carried_out, initial_arrays
from polyloom.ir.host import Copy, HostProgram, MdHom, Nest, expressions_of
from polyloom.ir.integers import integer
from polyloom.ir.procedures.variables import goes_by_points
from polyloom.ir.program import Program
from polyloom.ir.rounding.md_homs import Errors, run_with_errors
from polyloom.ir.rounding.nests import run_nest_with_errors
from polyloom.ir.scalar_functions.approximate import Floats

NDArray = npt.NDArray[Any]

MOST_POINTS = 1 << 27
"""Points of md_homs up to which a program is evaluated with errors, some 30 seconds."""

POINTS_OF_A_PART = 400
"""Points of an md_hom that take as long as one part of the expression in a step of a nest."""

PARTS_OF_A_LAUNCH = 10
"""As many parts take as long as the launch of an md_hom."""


@dataclass(frozen=True, eq=False)
class Bounded:
    """What the evaluator leaves in outputs and updated buffers, and a bound on the error of each element.

    A bound is infinite where nothing is known.
    """

    arrays: dict[str, NDArray]
    bounds: dict[str, Floats]


class _TooLargeError(Exception):
    """The program has more points than may be evaluated, or loops of which data decide how often they go."""


def error_bound(
    program: Program, inputs: Mapping[str, NDArray], errors: Mapping[str, Floats] | None = None
) -> dict[str, Floats]:
    """Return a bound on the error of each element of every tensor that a statement writes.

    An element that combines n terms in any order may be off by ``n - 1`` roundings of the sum of their sizes,
    beside the errors of the terms themselves (``rules``): for ``y += W * x``, whose terms round once, that is
    ``n * eps * sum(|terms|)``, eps the distance of 1 from the next number of its type. Integers do not round.

    ``errors``: how far inputs may be from the right values (a state that an earlier invocation computed);
    those that it does not name are exact. Each array has the shape of its input. Infinite: nothing is known.

    Errors: those of ``evaluate``. Not in the papers.
    """
    return _bounded(program, {}, inputs, errors or {}, _Budget(inf)).bounds


def host_error_bound(
    program: HostProgram,
    parameters: Mapping[str, int],
    inputs: Mapping[str, NDArray],
    most: int = MOST_POINTS,
) -> Bounded | None:
    """Return results and their bounds; None where the program has more than ``most`` points.

    The arguments and errors are those of ``evaluate_host``.
    """
    try:
        return _bounded(program, parameters, inputs, {}, _Budget(most))
    except _TooLargeError:
        return None


def _bounded(
    program: HostProgram,
    parameters: Mapping[str, int],
    inputs: Mapping[str, NDArray],
    errors: Mapping[str, Floats],
    budget: _Budget,
) -> Bounded:
    arrays = initial_arrays(program, parameters, inputs)
    run = _Run(arrays, {**dict.fromkeys(arrays), **errors}, budget, program.strict)
    with np.errstate(all="ignore"):
        carried_out(program.body, dict(parameters), run.leaf)
    bounds = {name: run.errors[name] for name in program.results}
    found = {name: np.zeros(arrays[name].shape) if b is None else b for name, b in bounds.items()}
    return Bounded({name: arrays[name] for name in program.results}, found)


class _Budget:
    def __init__(self, most: float) -> None:
        self.left = most

    def spend(self, points: int, parts: int = PARTS_OF_A_LAUNCH) -> None:
        self.left -= points + POINTS_OF_A_PART * parts
        if self.left < 0:
            raise _TooLargeError


@dataclass(frozen=True, eq=False)
class _Run:
    arrays: dict[str, NDArray]
    errors: Errors
    budget: _Budget
    strict: bool

    def leaf(self, node: Leaf, names: Mapping[str, int]) -> None:
        match node:
            case MdHom() | Nest() if goes_by_points(*expressions_of(node)):
                raise _TooLargeError
            case MdHom(extents=extents):
                self.budget.spend(prod(max(0, integer(e, names)) for e in extents))
                run_with_errors(node, self.arrays, self.errors, names)
            case Nest():
                run_nest_with_errors(
                    node, self.arrays, self.errors, names, self.budget.spend, strict=self.strict
                )
            case Copy(source=source, target=target):
                self.arrays[target][...] = self.arrays[source]
                error = self.errors[source]
                self.errors[target] = None if error is None else error.copy()
