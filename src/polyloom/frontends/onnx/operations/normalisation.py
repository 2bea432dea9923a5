"""Normalisations of ONNX: over batches, layers, groups, instances."""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.frontends.graph.composites.normalisation import (
    batch_norm,
    centred,
    group_norm,
    layer_norm,
    local_response,
    normalised,
    per_channel,
    rms_norm,
)
from polyloom.frontends.graph.composites.optimizers import blended
from polyloom.frontends.graph.core import (
    Builder,
    Combine,
    Context,
    From,
    Table,
    Value,
    X,
    axes,
    cast,
    integer,
    mapped,
    number,
    only,
    op,
    optional,
    reduced,
    refuse_if,
    reshaped,
    scalar,
    unless_zero,
    value,
    variance,
)
from polyloom.frontends.onnx.operations.elementwise import type_of


def _batch_norm(c: Context) -> Sequence[Value]:
    """BatchNormalization; with the statistics of this batch the running ones are results."""
    b, x = c.b, c.input()
    parameters = [cast(b, c.input(k), x.type, "converted") for k in range(1, 5)]
    epsilon = c.number("epsilon", 1e-5)
    refuse_if(c.version < 9 and not c.integer("spatial", 1), "statistics of each element (spatial = 0)")
    if not (c.integer("training_mode", 0) or (c.version < 7 and not c.integer("is_test", 0))):
        return only(batch_norm(b, x, parameters, epsilon))
    momentum = c.number("momentum", 0.9)
    over = [k for k in range(x.rank) if k != 1]
    given = (per_channel(p, x.rank) for p in parameters[:2])
    y, *found = normalised(b, x, over, epsilon, *given)
    pairs = zip(parameters[2:], found, strict=True)
    return (y, *(blended(b, old, reshaped(b, new, old.shape), momentum) for old, new in pairs))


def _instance_norm(c: Context) -> Sequence[Value]:
    x = c.input()
    given = (per_channel(c.input(k), x.rank) for k in (1, 2))
    return only(normalised(c.b, x, range(2, x.rank), c.number("epsilon", 1e-5), *given)[0])


_EPSILON = number("epsilon", 1e-5)
_LAST_AXES = From(lambda c: range(c.axis("axis", c.input().rank, -1), c.input().rank))
_WIDE = From(lambda c: type_of(c.integer("stash_type", 1)))


def _local_response(b: Builder, x: Value, size: int, alpha: float, beta: float, bias: float) -> Value:
    refuse_if(x.rank < 2 or size < 1, f"{size} channels of data of rank {x.rank}")
    around = ((size - 1) // 2, size - 1 - (size - 1) // 2)
    return local_response(b, x, around, alpha / size, beta, bias)


def _lp_norm(b: Builder, x: Value, at: int, p: int) -> Value:
    total = reduced(b, Combine.ADD, x, [at], scalar.absolute if p == 1 else scalar.square, hint="sum")
    norm = (lambda s: s) if p == 1 else scalar.sqrt
    return mapped(b, lambda v, s: unless_zero(norm(s), v / norm(s)), x, total)


def _mean_variance(b: Builder, x: Value, over: Sequence[int]) -> Value:
    _, without = centred(b, x, over)
    spread = variance(b, without, over)
    return mapped(b, lambda v, s: v / (scalar.sqrt(s) + 1e-09), without, spread)


_RMS_NORM = op(rms_norm, X, _LAST_AXES, _EPSILON, value(1), _WIDE)

OPERATIONS: Table = {
    "BatchNormalization": _batch_norm,
    "InstanceNormalization": _instance_norm,
    "LayerNormalization": op(layer_norm, X, _LAST_AXES, _EPSILON, value(1), optional(2), _WIDE),
    **dict.fromkeys(("RMSNormalization", "SimplifiedLayerNormalization"), _RMS_NORM),
    "GroupNormalization": op(
        group_norm,
        X,
        integer("num_groups"),
        _EPSILON,
        value(1),
        value(2),
        From(lambda c: type_of(c.integer("stash_type", 1)) if c.version >= 21 else None),
    ),
    "LRN": op(
        _local_response,
        X,
        integer("size"),
        number("alpha", 1e-4),
        number("beta", 0.75),
        number("bias", 1.0),
    ),
    "LpNormalization": op(_lp_norm, X, From(lambda c: c.axis("axis", c.input().rank, -1)), integer("p", 2)),
    "MeanVarianceNormalization": op(
        _mean_variance, X, From(lambda c: axes(c.numbers("axes", (0, 2, 3)), c.input().rank))
    ),
}
