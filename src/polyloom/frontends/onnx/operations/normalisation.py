"""Normalisations of ONNX: over batches, layers, groups, instances."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from polyloom.frontends.graph.core import (
    Combine,
    Context,
    Expression,
    Refused,
    Table,
    Value,
    affine,
    axes,
    batch_norm,
    cast,
    centred,
    local_response,
    mapped,
    normalised,
    only,
    reduced,
    refuse_if,
    reshaped,
    scalar,
    scaled,
    split,
    unsqueezed,
    variance,
)
from polyloom.frontends.onnx.operations.elementwise import type_of


def _batch_norm(c: Context) -> Sequence[Value]:
    b, x = c.b, c.input()
    parameters = [cast(b, c.input(k), x.type, "converted") for k in range(1, 5)]
    epsilon = c.number("epsilon", 1e-5)
    refuse_if(c.version < 9 and not c.integer("spatial", 1), "statistics of each element (spatial = 0)")
    training = c.integer("training_mode", 0) or (c.version < 7 and not c.integer("is_test", 0))
    if not training:
        return only(batch_norm(b, x, parameters, epsilon))
    return _batch_norm_training(c, x, parameters, epsilon)


def _batch_norm_training(
    c: Context, x: Value, parameters: Sequence[Value], epsilon: float
) -> Sequence[Value]:
    """BatchNormalization with the statistics of this batch; the running ones are results."""
    b, momentum = c.b, c.number("momentum", 0.9)
    over = [k for k in range(x.rank) if k != 1]
    unit, middle, spread = normalised(b, x, over, epsilon)
    scale, shift, *running = parameters
    y = affine(b, unit, unsqueezed(scale, over), unsqueezed(shift, over))

    def blend(old: Expression, new: Expression) -> Expression:
        return scalar.add(scalar.multiply(old, momentum), scalar.multiply(new, 1 - momentum))

    found = [
        mapped(b, blend, old, reshaped(b, new, old.shape), hint="running")
        for old, new in zip(running, (middle, spread), strict=True)
    ]
    return (y, *found)


def _instance_norm(c: Context) -> Sequence[Value]:
    b, x = c.b, c.input()
    unit, _, _ = normalised(b, x, range(2, x.rank), c.number("epsilon", 1e-5))
    others = [0, *range(2, x.rank)]
    return only(affine(b, unit, unsqueezed(c.input(1), others), unsqueezed(c.input(2), others)))


def _layer_norm(c: Context) -> Sequence[Value]:
    b, x = c.b, c.input()
    over = list(range(c.axis("axis", x.rank, -1), x.rank))
    stash = type_of(c.integer("stash_type", 1))
    wide = cast(b, x, stash, "wide")
    middle, without = centred(b, wide, over)
    spread = variance(b, without, over)
    epsilon = c.number("epsilon", 1e-5)
    inverse = mapped(b, lambda s: scalar.rsqrt(scalar.add(s, epsilon)), spread, hint="inverse")
    unit = mapped(b, scalar.multiply, without, inverse, hint="normalised")
    narrow = cast(b, unit, x.type, "narrow")
    y = affine(b, narrow, c.input(1), c.optional(2))
    return (y, middle, inverse)[: max(1, len(c.node.outputs))]


def _rms_norm(c: Context) -> Sequence[Value]:
    b, x = c.b, c.input()
    over = list(range(c.axis("axis", x.rank, -1), x.rank))
    wide = cast(b, x, type_of(c.integer("stash_type", 1)), "wide")
    squares = reduced(b, Combine.ADD, wide, over, scalar.square, hint="squares")
    count = prod(x.shape[k] for k in over)
    spread = mapped(b, lambda s: scalar.divide(s, count), squares, hint="mean")
    unit = cast(b, scaled(b, wide, spread, c.number("epsilon", 1e-5), "normalised"), x.type, "narrow")
    return only(affine(b, unit, c.input(1), None))


def _group_norm(c: Context) -> Sequence[Value]:
    b, x = c.b, c.input()
    groups = c.integer("num_groups")
    refuse_if(
        x.rank < 2 or groups < 1 or x.shape[1] % groups, f"{groups} groups of the shape {list(x.shape)}"
    )
    parts = split(x, 1, (groups, x.shape[1] // groups))
    wide = cast(b, parts, type_of(c.integer("stash_type", 1)), "wide") if c.version >= 21 else parts
    unit, _, _ = normalised(b, wide, range(2, wide.rank), c.number("epsilon", 1e-5))
    unit = cast(b, unit, x.type, "narrow")
    if c.input(1).size == groups and c.version < 21:
        others = [k for k in range(parts.rank) if k != 1]
        scale, shift = (unsqueezed(c.input(k), others) for k in (1, 2))
        return only(reshaped(b, affine(b, unit, scale, shift), x.shape))
    sizes = (groups, x.shape[1] // groups)
    others = [0, *range(3, parts.rank)]
    scale, shift = (unsqueezed(split(c.input(k), 0, sizes), others) for k in (1, 2))
    return only(reshaped(b, affine(b, unit, scale, shift), x.shape))


def _lrn(c: Context) -> Sequence[Value]:
    size = c.integer("size")
    alpha, beta, bias = c.number("alpha", 1e-4), c.number("beta", 0.75), c.number("bias", 1.0)
    if c.input().rank < 2 or size < 1:
        raise Refused(f"{size} channels of data of rank {c.input().rank}")
    around = ((size - 1) // 2, size - 1 - (size - 1) // 2)
    return only(local_response(c.b, c.input(), around, alpha / size, beta, bias))


def _lp_norm(c: Context) -> Sequence[Value]:
    b, x = c.b, c.input()
    at, p = c.axis("axis", x.rank, -1), c.integer("p", 2)
    total = reduced(b, Combine.ADD, x, [at], scalar.absolute if p == 1 else scalar.square, hint="sum")

    def function(v: Expression, s: Expression) -> Expression:
        norm = s if p == 1 else scalar.sqrt(s)
        from polyloom.ir.expressions import CompareOp

        none = scalar.compare(CompareOp.EQ, norm, 0)
        return scalar.select(none, scalar.number(0, v.type), scalar.divide(v, norm))

    return only(mapped(b, function, x, total))


def _mean_variance(c: Context) -> Sequence[Value]:
    b, x = c.b, c.input()
    over = axes(c.numbers("axes", (0, 2, 3)), x.rank)
    _, without = centred(b, x, over)
    spread = variance(b, without, over)
    return only(mapped(b, lambda v, s: scalar.divide(v, scalar.add(scalar.sqrt(s), 1e-09)), without, spread))


OPERATIONS: Table = {
    "BatchNormalization": _batch_norm,
    "InstanceNormalization": _instance_norm,
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "SimplifiedLayerNormalization": _rms_norm,
    "GroupNormalization": _group_norm,
    "LRN": _lrn,
    "LpNormalization": _lp_norm,
    "MeanVarianceNormalization": _mean_variance,
}
