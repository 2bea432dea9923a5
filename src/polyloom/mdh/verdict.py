"""Whether a run is right: its outputs against the evaluator's.

Integers, and floats that hold integers small enough, must be equal. Where a program divides, takes roots or
calls functions, or where the inputs are real numbers, an element may be off by n * eps times the largest
element of its array, n a bound on the number of its operations. Where that is not enough, the program may
enlarge the errors of its inputs (a factorisation does): then eps times the largest element gives way to how
far results move when every input moves by about one unit in its last place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import PolyloomError, error
from polyloom.ir.compare import in_units
from polyloom.ir.expressions import EXACT_UNARY, Binary, BinaryOp, Convert, Expression, Unary, walk
from polyloom.ir.host import HostProgram, MdHom, Nest, walk_host
from polyloom.ir.host_evaluate import evaluate_host

NDArray = npt.NDArray[Any]

MOST_TERMS = 4096
"""The bound does not grow beyond so many operations: errors of long sums cancel in part."""

_ROUNDING_BINARY = frozenset({BinaryOp.DIVIDE, BinaryOp.POWER, BinaryOp.ATAN2, BinaryOp.HYPOT})


@dataclass(frozen=True)
class Verdict:
    """``max_error``: in units of n * eps * largest element. ``exact``: whether equality was asked for.

    ``mismatches``: a line for each array that is wrong.
    """

    passed: bool
    exact: bool
    max_error: float
    mismatches: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """Return ``{passed, exact, max_error}``; infinite errors as null."""
        error = self.max_error if np.isfinite(self.max_error) else None
        return {"passed": self.passed, "exact": self.exact, "max_error": error}


def wanted_results(
    program: HostProgram, parameters: Mapping[str, int], inputs: Mapping[str, NDArray]
) -> dict[str, NDArray]:
    """Return the evaluator's results, by name.

    Errors: ``access-outside`` where the program, with these inputs, accesses an element that no array has: a
    subscript computed from data, or an array that is smaller than the program takes it for.
    """
    try:
        return evaluate_host(program, parameters, inputs)
    except IndexError as fault:
        message = f"`{program.name}` accesses an element outside of an array: {fault}"
        note = "C gives such a program no meaning; it was not run"
        helps = ["give inputs, or sizes, for which every subscript stays inside of its array"]
        raise PolyloomError(error("access-outside", message, notes=[note], helps=helps)) from fault


def check_run(
    program: HostProgram,
    parameters: Mapping[str, int],
    inputs: Mapping[str, NDArray],
    wanted: Mapping[str, NDArray],
    found: Mapping[str, NDArray],
    steps: int,
    *,
    made_up: bool,
) -> Verdict:
    """Compare what a run left (``found``) with the evaluator's results (``wanted``).

    ``steps``: how many launches there were; ``made_up``: whether the inputs are small integers.
    """
    exact = made_up and not rounds(program) and all(_counts(array) for array in wanted.values())
    terms = min(MOST_TERMS, steps + max((n for a in wanted.values() for n in a.shape), default=1))
    units = {name: eps(array) * largest(array) for name, array in wanted.items()}
    verdict = _compared(found, wanted, units, terms, exact=exact)
    if verdict.passed or exact:
        return verdict
    moved = evaluate_host(program, parameters, {n: _nudged(a, k) for k, (n, a) in enumerate(inputs.items())})
    units = {name: max(unit, _distance(moved[name], wanted[name])) for name, unit in units.items()}
    return _compared(found, wanted, units, terms, exact=False)


def _compared(
    found: Mapping[str, NDArray],
    wanted: Mapping[str, NDArray],
    units: Mapping[str, float],
    terms: int,
    *,
    exact: bool,
) -> Verdict:
    worst, mismatches = 0.0, []
    for name, array in wanted.items():
        error = in_units(found[name], array, terms * units[name])
        worst = max(worst, float(error.max(initial=0.0)))
        wrong = error > (0 if exact else 1)
        if wrong.any():
            mismatches.append(_mismatch(name, found[name], array, wrong))
    return Verdict(not mismatches, exact, worst, tuple(mismatches))


def eps(array: NDArray) -> float:
    """Return the distance of 1 from the next number; 0 for integers."""
    return float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0.0


def largest(array: NDArray) -> float:
    """Return the size of the largest finite element; 1 where there is none."""
    with np.errstate(all="ignore"):
        sizes = np.abs(array.astype(np.float64))
    return float(sizes[np.isfinite(sizes)].max(initial=0.0)) if np.isfinite(sizes).any() else 1.0


def _nudged(array: NDArray, seed: int) -> NDArray:
    """Move every element of an array of floats by a unit in its last place, up or down."""
    if array.dtype.kind != "f":
        return array
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], array.shape)
    return (array.astype(np.float64) * (1 + signs * eps(array))).astype(array.dtype)


def _distance(a: NDArray, b: NDArray) -> float:
    with np.errstate(all="ignore"):
        return largest(a.astype(np.float64) - b.astype(np.float64)) if a.dtype.kind == "f" else 0.0


def rounds(program: HostProgram) -> bool:
    """Return whether a program has operations on floats that give no integers for integers."""
    return any(
        isinstance(part, Unary | Binary | Convert) and part.type.is_float and _inexact(part)
        for expression in _expressions(program)
        for part in walk(expression)
    )


def _inexact(part: Unary | Binary | Convert) -> bool:
    match part:
        case Unary(op=op):
            return op not in EXACT_UNARY
        case Binary(op=op):
            return op in _ROUNDING_BINARY
        case Convert():
            return False


def _expressions(program: HostProgram) -> Iterator[Expression]:
    for node in walk_host(program.body):
        match node:
            case MdHom():
                yield from (e for e in (*node.terms, *node.initial, *node.finish) if e is not None)
                combiners = (o.combiner for o in node.combine if o.combiner is not None)
                yield from (result for combiner in combiners for result in combiner.results)
            case Nest(assignments=assignments):
                yield from (a.value for a in assignments)
            case _:
                pass


def _counts(array: NDArray) -> bool:
    """Return whether all elements are integers that the type holds with room to spare."""
    if array.dtype.kind != "f":
        return True
    limit = 2.0 ** (np.finfo(array.dtype).nmant - 1)
    with np.errstate(invalid="ignore"):
        return bool(np.all((np.abs(array) < limit) & (array == np.rint(array))))


def _mismatch(name: str, found: NDArray, wanted: NDArray, wrong: npt.NDArray[np.bool_]) -> str:
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    element = name + "".join(f"[{k}]" for k in at)
    return f"{element} is {found[at]}, not {wanted[at]}; {int(wrong.sum())} of {wrong.size} are wrong"
