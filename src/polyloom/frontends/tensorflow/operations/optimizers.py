"""Assignments to variables and the steps of optimizers: each gives the new values of what it changes."""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.frontends.graph.composites import optimizers
from polyloom.frontends.graph.core import (
    Context,
    Table,
    Value,
    X,
    flag,
    maps,
    only,
    op,
    refuse_if,
    scalar,
    value,
)


def _assign(c: Context) -> Sequence[Value]:
    old, new = c.first(2)
    refuse_if(new.shape != old.shape, f"a variable of shape {list(old.shape)} gets {list(new.shape)}")
    return only(new)


_NESTEROV = flag("use_nesterov")
_GRADIENT_DESCENT = maps(lambda w, rate, g: w - rate * g, *map(value, range(3)))
_MOMENTUM = op(optimizers.momentum, *map(value, (0, 1, 3, 2, 4)), nesterov=_NESTEROV)
_ADAM = op(
    optimizers.adam,
    *map(value, (0, 1, 2, 9, 6, 7, 8)),
    lambda rate, p1, p2: rate * scalar.sqrt(1 - p2) / (1 - p1),
    *map(value, (5, 3, 4)),
    nesterov=_NESTEROV,
)

OPERATIONS: Table = {
    **dict.fromkeys(("AssignVariableOp", "Assign"), _assign),
    **dict.fromkeys(("AssignAddVariableOp", "AssignAdd"), maps(scalar.add, X, value(1))),
    **dict.fromkeys(("AssignSubVariableOp", "AssignSub"), maps(scalar.subtract, X, value(1))),
    **dict.fromkeys(("ResourceApplyGradientDescent", "ApplyGradientDescent"), _GRADIENT_DESCENT),
    **dict.fromkeys(("ResourceApplyMomentum", "ApplyMomentum"), _MOMENTUM),
    "ResourceApplyKerasMomentum": op(
        optimizers.keras_momentum, *map(value, (0, 1, 3, 2, 4)), nesterov=_NESTEROV
    ),
    **dict.fromkeys(("ResourceApplyAdam", "ApplyAdam"), _ADAM),
    "ResourceApplyAdagradV2": op(
        optimizers.adagrad, *map(value, (0, 1, 4, 2, 3)), update=flag("update_slots", True)
    ),
    "ResourceApplyRMSProp": op(optimizers.rms_prop, *map(value, (0, 1, 2, 7, 3, 4, 5, 6))),
}
