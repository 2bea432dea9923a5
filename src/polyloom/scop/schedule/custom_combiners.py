"""Combine operators that are functions of the source, named by ``#pragma mdh parallel(++, better: best[i])``.

Before: ``best[i] = better(best[i], x[i][j])``, inlined. After: operator ``better``, term ``x[i][j]``. That a
function is associative is tried on small numbers; operands keep their order, so it need not be commutative.

Source: md_poly, Sec. 3.1 (point-wise operators with any function). Unlike the paper, what is stated is tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, error
from polyloom.ir.evaluation.arithmetic import value
from polyloom.ir.expressions import Expression, Read, children, walk
from polyloom.ir.host import Combiner
from polyloom.scop.dependence.reductions import Update, same_element
from polyloom.scop.model import Scop, ScopStatement, StatedParallel
from polyloom.scop.schedule.loop_verdicts import loops_inside

NDArray = npt.NDArray[Any]
SAMPLES = (-3, -1, 0, 1, 2, 5)


def ordered_updates(scop: Scop) -> dict[str, Update]:
    """Return the statements that combine by a function of the source which a pragma names."""
    result: dict[str, Update] = {}
    for stated in scop.stated:
        names = loops_inside(scop, stated.loop)
        for operator, function in functions_of(stated).items():
            for statement in scop.statements:
                update = update_by(statement, operator, function) if statement.name in names else None
                if update is not None:
                    result[statement.name] = update
    return result


def functions_of(stated: StatedParallel) -> dict[str, Expression]:
    """Return the stated operators that are functions of the source, by name."""
    pairs = zip(stated.operators, stated.functions, strict=False)
    return {name: function for name, function in pairs if function is not None}


def update_by(statement: ScopStatement, name: str, function: Expression) -> Update | None:
    """Return ``target = function(target, term)``; None where the statement is something else."""
    if statement.condition is not None:
        return None
    own = frozenset(k for k, read in enumerate(statement.reads) if same_element(statement, read))
    found: dict[int, Expression] = {}
    if not own or not _matches(function, statement.value, own, found) or 1 not in found:
        return None
    term = found[1]
    if any(isinstance(part, Read) and part.position in own for part in walk(term)):
        return None
    combiner = Combiner(name=name, results=(function,), neutral=(None,), commutative=False)
    return Update(name, combiner, term, own)


def _matches(
    pattern: Expression, found: Expression, own: frozenset[int], bound: dict[int, Expression]
) -> bool:
    """Whether an expression is the function's value at ``(target, bound[1])``."""
    if isinstance(pattern, Read):
        if pattern.position == 0:
            return isinstance(found, Read) and found.position in own
        known = bound.setdefault(pattern.position, found)
        return known == found
    if type(pattern) is not type(found) or _head(pattern) != _head(found):
        return False
    pairs = zip(children(pattern), children(found), strict=True)
    return all(_matches(a, b, own, bound) for a, b in pairs)


def _head(expression: Expression) -> tuple[object, ...]:
    """Return what an expression is without its operands."""
    fields = ("op", "type", "value", "name", "dimension")
    return tuple(getattr(expression, name, None) for name in fields)


def function_errors(scop: Scop) -> Iterator[Diagnostic]:
    """Yield an error for each stated function that is not associative, with three numbers that show it."""
    for stated in scop.stated:
        for name, function in functions_of(stated).items():
            triple = counterexample(function)
            if triple is not None:
                a, b, c = triple
                notes = [f"{name}({name}({a}, {b}), {c}) is not {name}({a}, {name}({b}, {c}))"]
                message = f"`{name}` is not associative"
                yield error("mdh-associative", message, stated.span, notes=notes)


def counterexample(function: Expression) -> tuple[int, int, int] | None:
    """Return small numbers for which the order of evaluation matters; None where none were found."""
    dtype = function.type.dtype
    low = 0 if dtype.kind == "u" else min(SAMPLES)
    triples = np.array([t for t in product(SAMPLES, repeat=3) if min(t) >= low])
    a, b, c = (triples[:, k].astype(dtype) for k in range(3))
    with np.errstate(all="ignore"):
        left = _call(function, _call(function, a, b), c)
        right = _call(function, a, _call(function, b, c))
    wrong = np.flatnonzero(~np.isclose(left.astype(float), right.astype(float), rtol=1e-3, equal_nan=True))
    if not wrong.size:
        return None
    first = triples[int(wrong[0])]
    return int(first[0]), int(first[1]), int(first[2])


def _call(function: Expression, a: NDArray, b: NDArray) -> NDArray:
    return np.broadcast_to(value(function, [a, b], lambda _: a), a.shape)
