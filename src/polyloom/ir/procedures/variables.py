"""What steps of procedures need of before, and what they are needed for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from polyloom.ir.expressions import (
    Assign,
    Expression,
    Local,
    Procedure,
    Step,
    When,
    While,
    children,
    values_of_steps,
    walk,
)


def assignments(steps: Sequence[Step]) -> Iterator[Assign]:
    """Yield steps that all are assignments. Errors: NotImplementedError where there are others."""
    for step in steps:
        if not isinstance(step, Assign):
            raise NotImplementedError("branches and loops of steps go point by point (goes_by_points)")
        yield step


def goes_by_points(*expressions: Expression) -> bool:
    """Whether steps are more than assignments, or choose elements: points do not go through them together."""
    procedures = [part for e in expressions for part in walk(e) if isinstance(part, Procedure)]
    if not procedures:
        return False
    steps = (step for procedure in procedures for step in procedure.body)
    in_subscripts = any(isinstance(part, Local) for e in expressions for part in _outside(e))
    return in_subscripts or not all(isinstance(step, Assign) for step in steps)


def _outside(expression: Expression) -> Iterator[Expression]:
    """Yield the parts of an expression that are in no procedure."""
    yield expression
    if not isinstance(expression, Procedure):
        for part in children(expression):
            yield from _outside(part)


Spoken = Callable[[Expression], set[Local]]
"""The variables of which an expression speaks, those in the subscripts of what it reads too."""


def unset(steps: Sequence[Step], results: Collection[Local], spoken: Spoken) -> set[Local]:
    """Return the variables whose value before the steps may matter, for the steps or for ``results``."""
    needed: set[Local] = set()
    sure = _surely_set(steps, frozenset(), needed, spoken)
    return needed | {local for local in results if local not in sure}


def _surely_set(
    steps: Sequence[Step], sure: frozenset[Local], needed: set[Local], spoken: Spoken
) -> frozenset[Local]:
    """Add to ``needed`` what is read before it is surely set; return what is set behind the steps."""
    for step in steps:
        match step:
            case Assign(local=local, value=found):
                needed |= spoken(found) - sure
                sure |= {local}
            case When(condition=condition, body=body, otherwise=otherwise):
                needed |= spoken(condition) - sure
                sure = _surely_set(body, sure, needed, spoken) & _surely_set(otherwise, sure, needed, spoken)
            case While(condition=condition, body=body):
                needed |= spoken(condition) - sure
                _surely_set(body, sure, needed, spoken)
    return sure


def locals_read(steps: tuple[Step, ...], spoken: Spoken) -> set[Local]:
    """Return the variables that steps read."""
    return {local for expression in values_of_steps(steps) for local in spoken(expression)}


def useful(steps: tuple[Step, ...], result: Local, spoken: Spoken) -> tuple[Step, ...]:
    """Return the steps on which a result hangs, those that decide how often others are carried out too."""
    wanted = {result}
    while True:
        kept = tuple(_kept(steps, wanted))
        found = wanted | locals_read(kept, spoken)
        if found == wanted:
            return kept
        wanted = found


def _kept(steps: tuple[Step, ...], wanted: Collection[Local]) -> Iterator[Step]:
    for step in steps:
        match step:
            case Assign(local=local):
                if local in wanted:
                    yield step
            case When(condition=condition, body=body, otherwise=otherwise):
                inside = tuple(tuple(_kept(block, wanted)) for block in (body, otherwise))
                if any(inside):
                    yield When(condition, *inside)
            case While(condition=condition, body=body):
                inner = tuple(_kept(body, wanted))
                if inner:
                    yield While(condition, inner)
