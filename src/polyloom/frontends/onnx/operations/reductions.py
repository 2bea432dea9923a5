"""Reductions, positions of extremes, softmax, cumulative sums, losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

from polyloom.frontends.graph.composites.losses import label_loss
from polyloom.frontends.graph.composites.normalisation import log_softmax, softmax
from polyloom.frontends.graph.core import (
    Combine,
    Context,
    ElementType,
    Expression,
    From,
    Function,
    Table,
    Value,
    X,
    arg_extreme,
    axes,
    axis,
    cast,
    cumulative,
    expanded,
    in_direction,
    iota,
    log_sum_exp,
    mapped,
    mean,
    only,
    op,
    ranked,
    reduced,
    reshaped,
    scalar,
    squeezed,
    unsqueezed,
)

_Reduce = tuple[Combine, Function, Function]
"""How to combine, what is combined, what is made of the result."""


def _same(x: Expression) -> Expression:
    return x


_REDUCTIONS: dict[str, _Reduce] = {
    "ReduceSum": (Combine.ADD, _same, _same),
    "ReduceMax": (Combine.MAXIMUM, _same, _same),
    "ReduceMin": (Combine.MINIMUM, _same, _same),
    "ReduceProd": (Combine.MULTIPLY, _same, _same),
    "ReduceL1": (Combine.ADD, scalar.absolute, _same),
    "ReduceL2": (Combine.ADD, scalar.square, scalar.sqrt),
    "ReduceLogSum": (Combine.ADD, _same, scalar.log),
    "ReduceSumSquare": (Combine.ADD, scalar.square, _same),
}


def _axes(c: Context) -> list[int] | None:
    """Return the axes that are reduced; None: nothing is."""
    x = c.input()
    by_input = 13 if c.node.op == "ReduceSum" else 18
    if c.version >= by_input:
        given = c.known_or(1, "its axes")
        found = [] if given is None else [int(n) for n in given.reshape(-1)]
    else:
        found = list(c.numbers("axes", ()))
    if not found:
        return None if c.integer("noop_with_empty_axes", 0) else list(range(x.rank))
    return axes(found, x.rank)


def _reduction(c: Context, combine: Combine, inner: Function, outer: Function) -> Sequence[Value]:
    b, x = c.b, c.input()
    over, keep = _axes(c), c.flag("keepdims", True)
    if c.node.op == "ReduceL2" and not x.type.is_float:
        found = reduced(b, combine, cast(b, x, ElementType.FLOAT64), over or [], inner, keep=keep, hint="sum")
        return only(mapped(b, lambda v: scalar.convert(scalar.sqrt(v), x.type), found))
    if over is None:
        return only(mapped(b, lambda v: outer(inner(v)), x))
    plain = outer is _same
    found = reduced(b, combine, x, over, inner, keep=keep, hint="" if plain else "sum")
    return only(found if plain else mapped(b, outer, found))


def _of_axes(c: Context, function: Callable[..., Value]) -> Sequence[Value]:
    """ReduceMean, ReduceLogSumExp: without axes the data as they are."""
    over = _axes(c)
    keep = c.flag("keepdims", True)
    return only(c.input() if over is None else function(c.b, c.input(), over, keep=keep))


def _arg(c: Context, *, largest: bool) -> Sequence[Value]:
    at, last = c.axis("axis", c.input().rank, 0), c.flag("select_last_index")
    found = arg_extreme(c.b, c.input(), at, largest=largest, last=last, kind=ElementType.INT64)
    return only(found if c.flag("keepdims", True) else squeezed(found, [at]))


def _softmax_axes(c: Context) -> list[int]:
    """Return the axes of a softmax: before opset 13 all from the given one on."""
    x = c.input()
    at = c.axis("axis", x.rank, -1 if c.version >= 13 else 1)
    return [at] if c.version >= 13 else list(range(at, x.rank))


def _hardmax(c: Context) -> Sequence[Value]:
    b, x = c.b, c.input()
    over = _softmax_axes(c)
    shape = x.shape
    if len(over) > 1:
        x = reshaped(b, x, (*x.shape[: over[0]], prod(x.shape[over[0] :])), "flat")
    at = over[0]
    place = arg_extreme(b, x, at, largest=True, last=False, kind=ElementType.INT32)
    numbers = unsqueezed(iota(b, x.shape[at], ElementType.INT32), [k for k in range(x.rank) if k != at])

    hot = lambda p, k: scalar.select(scalar.equal(p, k), scalar.number(1, x.type), 0)  # noqa: E731
    found = mapped(b, hot, expanded(place, x.shape), expanded(numbers, x.shape))
    return only(reshaped(b, found, shape))


def _cumulative(c: Context, combine: Combine) -> Sequence[Value]:
    """CumSum, CumProd: a contraction with a triangle of truth values."""
    at, strict = axis(c.whole(1, "its axis"), c.input().rank), c.flag("exclusive")
    function = partial(cumulative, combine=combine, strict=strict)
    return only(in_direction(c.b, c.input(), at, function, backwards=c.flag("reverse")))


def _label_loss(c: Context, log_p: Value) -> Value:
    given = c.input(1), c.optional(2), c.integer("ignore_index", -1), c.text("reduction", "mean")
    return label_loss(c.b, log_p, *given)[0]


def _cross_entropy(c: Context) -> Sequence[Value]:
    log_p = log_softmax(c.b, c.input(), [1])
    return _label_loss(c, log_p), log_p


def _top(c: Context) -> Sequence[Value]:
    """TopK: the number of elements is an attribute before opset 10."""
    x = c.input()
    count = c.whole(1, "its number") if c.version >= 10 else c.integer("k")
    at, largest = c.axis("axis", x.rank, -1), bool(c.integer("largest", 1))
    return ranked(c.b, x, at, count, largest=largest, kind=ElementType.INT64)


OPERATIONS: Table = {
    "TopK": _top,
    **{n: partial(_reduction, combine=c, inner=f, outer=g) for n, (c, f, g) in _REDUCTIONS.items()},
    "ReduceMean": partial(_of_axes, function=partial(mean, hint="")),
    "ReduceLogSumExp": partial(_of_axes, function=log_sum_exp),
    "ArgMax": partial(_arg, largest=True),
    "ArgMin": partial(_arg, largest=False),
    "Softmax": op(softmax, X, From(_softmax_axes)),
    "LogSoftmax": op(log_softmax, X, From(_softmax_axes)),
    "Hardmax": _hardmax,
    "CumSum": partial(_cumulative, combine=Combine.ADD),
    "CumProd": partial(_cumulative, combine=Combine.MULTIPLY),
    "NegativeLogLikelihoodLoss": lambda c: only(_label_loss(c, c.input())),
    "SoftmaxCrossEntropyLoss": _cross_entropy,
}
