"""Control flow as statements: loops unrolled, branches taken, or both computed and one chosen."""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.frontends.graph.basis import Builder, ElementType, Refused, Value, refuse_if, reindexed, scalar
from polyloom.frontends.graph.operations.elementwise import mapped

MOST_STEPS = 2_000
"""Passes of a loop that is unrolled at most: a loop is never cut, one with more is refused."""


def check_steps(count: int) -> None:
    """Raise ``Refused`` for more passes than are unrolled."""
    refuse_if(
        count > MOST_STEPS,
        f"it makes more than {MOST_STEPS} passes, or never ends: loops are unrolled at import",
    )


def known_condition(b: Builder, value: Value) -> bool | None:
    """Return a truth value that is known at import, else None. Raises ``Refused`` for several."""
    refuse_if(value.size != 1, f"its condition has {value.size} elements, not one")
    found = b.known(value)
    return None if found is None else bool(found.reshape(()))


def either(b: Builder, condition: Value, then: Sequence[Value], otherwise: Sequence[Value]) -> list[Value]:
    """Return the results of two branches, chosen by a condition that is data: ``y[i] = c ? a[i] : b[i]``.

    Both branches are computed. Raises ``Refused`` where their results differ in type or shape.
    """
    refuse_if(len(then) != len(otherwise), f"branches with {len(then)} and {len(otherwise)} results")
    refuse_if(condition.size != 1, f"its condition has {condition.size} elements, not one")
    one = reindexed(condition, (), [0] * condition.rank)
    return [_chosen(b, one, left, right) for left, right in zip(then, otherwise, strict=True)]


def _chosen(b: Builder, condition: Value, left: Value, right: Value) -> Value:
    if (left.type, left.shape) != (right.type, right.shape):
        described = " and ".join(f"{v.type.value} {list(v.shape)}" for v in (left, right))
        raise Refused(f"its condition is computed when the model runs, and the branches give {described}")
    if left == right:
        return left
    return mapped(
        b, lambda c, x, y: scalar.select(scalar.convert(c, ElementType.BOOL), x, y), condition, left, right
    )
