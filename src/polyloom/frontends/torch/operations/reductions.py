"""Sums, means, extremes, positions of extremes, norms, losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from polyloom.frontends.graph.composites import losses
from polyloom.frontends.graph.composites.normalisation import centred
from polyloom.frontends.graph.core import (
    Builder,
    Combine,
    ElementType,
    Expression,
    From,
    Function,
    Value,
    arg_extreme,
    broadcast,
    cast,
    check_constant,
    cumulative,
    cumulative_extreme,
    cumulative_log_sum,
    flag,
    log_sum_exp,
    mapped,
    mean,
    norm,
    number,
    only,
    op,
    reduced,
    reshaped,
    scalar,
    squeezed,
    taken,
    unsqueezed,
    variance,
)
from polyloom.frontends.torch.arguments import AXES, KEEP, REDUCTION, SELF, operand
from polyloom.frontends.torch.call import Call, Lowering, operations
from polyloom.frontends.torch.operations.elementwise import LARGER, SMALLER
from polyloom.frontends.torch.operations.scalars import itself, scalars_stay


def _same(x: Expression) -> Expression:
    return x


def _end(combine: Combine) -> Lowering:
    """Return ``amax`` or ``amin``, of truth values too."""

    def lowered(c: Call) -> Sequence[Value]:
        kind = c.input().type
        x = cast(c.b, c.input(), ElementType.UINT8, "digits") if kind is ElementType.BOOL else c.input()
        found = reduced(c.b, combine, x, c.axes("dim", x.rank), keep=c.flag("keepdim"))
        return only(cast(c.b, found, kind))

    return lowered


def _reduction(combine: Combine, function: Function = _same) -> Lowering:
    """Return a reduction in the type of the result along ``dim``, or along all axes."""
    return op(reduced, combine, SELF, AXES, function, keep=flag("keepdim"))


def _extreme(c: Call, *, largest: bool) -> Sequence[Value]:
    """``max`` or ``min``: of all, along an axis (with positions), or of two tensors."""
    if c.is_tensor("other"):
        return (LARGER if largest else SMALLER)(c)
    combine, kind = Combine.MAXIMUM if largest else Combine.MINIMUM, c.input().type
    x = cast(c.b, c.input(), ElementType.UINT8, "digits") if kind is ElementType.BOOL else c.input()
    if not c.given("dim"):
        return only(cast(c.b, reduced(c.b, combine, x, range(x.rank), keep=False), kind))
    if x.rank == 0:
        return itself(c)
    at = c.axis("dim", x.rank)
    found = reduced(c.b, combine, x, [at], keep=c.flag("keepdim"), hint="values")
    place = arg_extreme(c.b, x, at, largest=largest, last=False, kind=ElementType.INT64)
    return cast(c.b, found, kind), place if c.flag("keepdim") else squeezed(place, [at])


def _position(c: Call, *, largest: bool) -> Sequence[Value]:
    x = c.input()
    flat = x if c.given("dim") and x.rank else reshaped(c.b, x, [x.size])
    at = c.axis("dim", flat.rank, 0)
    place = arg_extreme(c.b, flat, at, largest=largest, last=False, kind=c.type)
    if not c.flag("keepdim"):
        return only(squeezed(place, [at]))
    return only(place if flat is x else unsqueezed(squeezed(place, [0]), range(x.rank)))


def _amount(c: Call, combine: Combine) -> Sequence[Value]:
    """``any`` (the largest of 0 and 1) or ``all`` (the smallest)."""
    digits = cast(c.b, c.operand("self", ElementType.BOOL), ElementType.INT32)
    found = reduced(c.b, combine, digits, c.axes("dim", digits.rank), keep=c.flag("keepdim"), hint="digits")
    if digits.size == 0:  # the largest or smallest of none is a type's end
        found = mapped(c.b, lambda digit: scalar.minimum(scalar.maximum(digit, 0), 1), found)
    return only(cast(c.b, found, c.type))


def _spread(c: Call, *, root: bool, with_mean: bool = False) -> Sequence[Value]:
    """The variance or its root; ``correction`` (or ``unbiased``) tells what it is divided by."""
    x = c.input()
    x = cast(c.b, x, ElementType.FLOAT32, "wide") if x.type is ElementType.FLOAT16 else x
    at = c.axes("dim", x.rank)
    correction = c.attribute("correction", 1) if "unbiased" not in c.arguments else int(c.flag("unbiased"))
    middle, without = centred(c.b, x, at)
    found = variance(c.b, without, at, correction)
    found = mapped(c.b, scalar.sqrt, found) if root else found
    kept = [cast(c.b, v if c.flag("keepdim") else squeezed(v, at), c.type) for v in (found, middle)]
    return kept if with_mean else kept[:1]


def _order(c: Call) -> float:
    return c.number("ord" if "ord" in c.arguments else "p", 2)


def _cumulative(c: Call, function: Callable[[Builder, Value, int], Value]) -> Sequence[Value]:
    x = c.operand("self", c.type)
    return only(x if x.rank == 0 else function(c.b, x, c.axis("dim", x.rank)))


def _cumulative_extreme(*, largest: bool) -> Lowering:
    def lowered(c: Call) -> Sequence[Value]:
        x = c.input()
        digits = cast(c.b, x, ElementType.UINT8, "digits") if x.type is ElementType.BOOL else x
        found, place = cumulative_extreme(
            c.b, digits, c.axis("dim", x.rank), ElementType.INT64, largest=largest
        )
        return cast(c.b, found, x.type), place

    return scalars_stay(lowered)


def _loss(function: Function, *more: From) -> Lowering:
    """Return a loss of ``self``, ``target`` and more."""
    weight = From(lambda c: c.operand("weight", c.type) if c.given("weight") else None)
    return op(losses.element_loss, function, REDUCTION, weight, SELF, operand("target"), *more)


def _both_extremes(c: Call) -> Sequence[Value]:
    x = c.input()
    at = c.axes("dim", x.rank)
    extremes = (Combine.MINIMUM, Combine.MAXIMUM)
    return [reduced(c.b, combine, x, at, keep=c.flag("keepdim")) for combine in extremes]


def _count(c: Call) -> Sequence[Value]:
    """How many elements are not 0."""
    digits = cast(c.b, c.operand("self", ElementType.BOOL), c.type)
    return only(reduced(c.b, Combine.ADD, digits, c.axes("dim", digits.rank), keep=False))


def _distances(c: Call) -> Sequence[Value]:
    """``cdist``: the norm of the difference of each row of one and each row of the other."""
    left, right = c.input("x1"), c.input("x2")
    wide = broadcast([unsqueezed(left, [left.rank - 1]), unsqueezed(right, [right.rank - 2])])
    return only(norm(c.b, wide, [left.rank], c.number("p", 2), scalar.subtract, keep=False))


def _distance(c: Call) -> Sequence[Value]:
    """``dist``: the norm of the difference of two tensors."""
    wide = broadcast([c.operand(name, c.type) for name in ("self", "other")])
    return only(norm(c.b, wide, range(wide[0].rank), c.number("p", 2), scalar.subtract, keep=False))


def _pair_distances(c: Call) -> Sequence[Value]:
    """``pdist``: the norm of the difference of each row and each row behind it."""
    x = c.input()
    check_constant((x.shape[0], x.shape[0]), 8)
    pairs = [taken(c.b, x, 0, places.tolist()) for places in np.triu_indices(x.shape[0], 1)]
    return only(norm(c.b, pairs, [1], c.number("p", 2), scalar.subtract, keep=False))


OPERATIONS = operations(
    {
        "sum": _reduction(Combine.ADD),
        "prod": _reduction(Combine.MULTIPLY),
        "amax": _end(Combine.MAXIMUM),
        "amin": _end(Combine.MINIMUM),
        "max": partial(_extreme, largest=True),
        "min": partial(_extreme, largest=False),
        "argmax": partial(_position, largest=True),
        "argmin": partial(_position, largest=False),
        "any": partial(_amount, combine=Combine.MAXIMUM),
        "all": partial(_amount, combine=Combine.MINIMUM),
        "mean": op(mean, SELF, AXES, keep=flag("keepdim")),
        "var": partial(_spread, root=False),
        "std": partial(_spread, root=True),
        "var_mean": partial(_spread, root=False, with_mean=True),
        **dict.fromkeys(("linalg_vector_norm", "norm"), op(norm, SELF, AXES, From(_order), keep=KEEP)),
        "logsumexp": op(log_sum_exp, SELF, AXES, keep=KEEP),
        "cumsum": partial(_cumulative, function=cumulative),
        "cumprod": partial(_cumulative, function=partial(cumulative, combine=Combine.MULTIPLY)),
        "logcumsumexp": partial(_cumulative, function=cumulative_log_sum),
        "cummax": _cumulative_extreme(largest=True),
        "cummin": _cumulative_extreme(largest=False),
        "aminmax": _both_extremes,
        "count_nonzero": _count,
        "std_mean": partial(_spread, root=True, with_mean=True),
        **dict.fromkeys(("cdist", "_cdist_forward"), _distances),
        "dist": _distance,
        **dict.fromkeys(("pdist", "_pdist_forward"), _pair_distances),
        "mse_loss": _loss(losses.squared),
        "l1_loss": _loss(losses.distance),
        "smooth_l1_loss": _loss(losses.smooth_distance, number("beta", 1)),
        "huber_loss": _loss(losses.huber, number("delta", 1)),
        "binary_cross_entropy": _loss(losses.binary_cross_entropy),
        "binary_cross_entropy_with_logits": _loss(
            losses.binary_cross_entropy_of_logits,
            From(lambda c: c.operand("pos_weight", c.type) if c.given("pos_weight") else None),
        ),
    }
)
