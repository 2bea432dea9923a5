"""Losses of labels, of probabilities, and of elements, with what is made of their elements in the end."""

from __future__ import annotations

from polyloom.frontends.graph.basis import (
    BinaryOp,
    Builder,
    Combine,
    CompareOp,
    Expression,
    Function,
    Value,
    expanded,
    refuse_if,
    scalar,
    unsqueezed,
)
from polyloom.frontends.graph.composites.normalisation import log_softmax, per_channel
from polyloom.frontends.graph.functions import softplus
from polyloom.frontends.graph.operations.elementwise import filled, mapped
from polyloom.frontends.graph.operations.reductions import iota, mean, reduced

REDUCTIONS = ("none", "mean", "sum")
"""What is made of the losses of all elements; PyTorch has them by number."""


def averaged(b: Builder, each: Value, reduction: str) -> Value:
    """Return the losses as they are, their mean, or their sum."""
    every = range(each.rank)
    if reduction == "mean":
        return mean(b, each, every, keep=False)
    return each if reduction == "none" else reduced(b, Combine.ADD, each, every, keep=False)


def element_loss(
    b: Builder, function: Function, reduction: str, weight: Value | None, *operands: Value | float | None
) -> Value:
    """Return the loss ``weight * function(operands)`` of elements; without a weight it is 1."""
    hint = "" if reduction == "none" else "each"
    if weight is None:
        return averaged(b, mapped(b, function, *operands, hint=hint), reduction)
    each = mapped(b, lambda w, *of: function(*of) * w, weight, *operands, hint=hint)
    return averaged(b, each, reduction)


def label_loss(
    b: Builder,
    log_p: Value,
    target: Value,
    weight: Value | None,
    ignored: int,
    reduction: str,
    *,
    axis: int = 1,
    smoothing: float = 0.0,
) -> tuple[Value, Value]:
    """Return the loss of log-probabilities ``[n][class][d...]`` for labels ``[n][d...]``, and its weight.

    The sum over classes of ``label == class ? -log_p * weight : 0``; a mean divides by the sum of weights.
    The label ``ignored`` counts nothing. ``smoothing``: the part that all classes have alike.
    """
    classes = log_p.shape[axis]
    numbers = unsqueezed(iota(b, classes, target.type), [k for k in range(log_p.rank) if k != axis])
    wide = [expanded(v, log_p.shape) for v in (unsqueezed(target, [axis]), numbers)]
    given = per_channel(weight, log_p.rank, axis)
    one = filled(b, (), 1, log_p.type)
    weights = expanded(one if given is None else given, log_p.shape)
    share = smoothing / classes

    def counts(t: Expression) -> Expression:
        return scalar.compare(CompareOp.NE, t, ignored)

    def is_class(t: Expression, k: Expression) -> Expression:
        same = scalar.equal(t, k)
        return scalar.logical(BinaryOp.AND, same, counts(t)) if 0 <= ignored < classes else same

    def term(lp: Expression, t: Expression, k: Expression, *w: Expression) -> Expression:
        loss = -lp * w[0] if w else -lp
        if not smoothing:
            return scalar.select(is_class(t, k), loss, 0)
        part = scalar.select(scalar.equal(t, k), scalar.number(1 - smoothing + share, lp.type), share)
        return scalar.select(counts(t), loss * part, 0)

    over = [axis] if reduction == "none" else list(range(log_p.rank))
    extra = [] if given is None else [weights]
    total = reduced(b, Combine.ADD, [log_p, *wide, *extra], over, term, keep=False, hint="loss")
    counted = lambda t, k, w: scalar.select(is_class(t, k), w, 0)  # noqa: E731
    every = range(log_p.rank)
    divisor = reduced(b, Combine.ADD, [*wide, weights], every, counted, keep=False, hint="weight")
    return (mapped(b, scalar.divide, total, divisor) if reduction == "mean" else total), divisor


def probability_loss(
    b: Builder, log_p: Value, target: Value, axis: int, weight: Value | None = None, smoothing: float = 0.0
) -> Value:
    """Return the sum over classes of ``-log_p * target * weight`` for probabilities of classes."""
    share = smoothing / max(1, log_p.shape[axis])

    def part(t: Expression, v: Expression, *w: Expression) -> Expression:
        found = (t * (1 - smoothing) + share if smoothing else t) * v
        return -(found * w[0] if w else found)

    given = per_channel(weight, log_p.rank, axis)
    operands = [target, log_p, *([] if given is None else [expanded(given, log_p.shape)])]
    return reduced(b, Combine.ADD, operands, [axis], part, keep=False, hint="loss")


def rows_with_gradient(b: Builder, x: Value, labels: Value) -> tuple[Value, Value]:
    """Return the cross entropy of each row of scores, and its gradient ``softmax(x) - labels``.

    ``labels``: probabilities, or positions, which are compared with 0, 1, 2, ... Raises ``Refused``.
    """
    refuse_if(
        x.rank != 2 or not 1 <= labels.rank <= 2, f"data of rank {x.rank} and labels of rank {labels.rank}"
    )
    if labels.rank == 1:
        numbers = unsqueezed(iota(b, x.shape[1], labels.type), [0])
        hot = lambda t, k: scalar.select(scalar.equal(t, k), scalar.number(1, x.type), 0)  # noqa: E731
        labels = mapped(b, hot, unsqueezed(labels, [1]), numbers, hint="labels")
    wide, logarithms = expanded(labels, x.shape), log_softmax(b, x, [1])
    loss = probability_loss(b, logarithms, wide, 1)
    return loss, mapped(b, lambda v, t: scalar.exp(v) - t, logarithms, wide, hint="backprop")


# -- of elements: a result ``x`` and what is wanted


def squared(x: Expression, y: Expression) -> Expression:
    """Return ``(x - y)^2``."""
    return scalar.square(x - y)


def distance(x: Expression, y: Expression) -> Expression:
    """Return ``|x - y|``."""
    return scalar.absolute(x - y)


def smooth_distance(x: Expression, y: Expression, bound: float) -> Expression:
    """Return ``d^2 / (2 bound)`` where ``d = |x - y|`` is below the bound, else ``d - bound / 2``."""
    d = distance(x, y)
    if bound == 0:
        return d
    return scalar.select(d < bound, scalar.square(d) * (0.5 / bound), d - 0.5 * bound)


def huber(x: Expression, y: Expression, bound: float) -> Expression:
    """Return ``d^2 / 2`` where ``d = |x - y|`` is below the bound, else ``bound * (d - bound / 2)``."""
    d = distance(x, y)
    return scalar.select(d < bound, scalar.square(d) * 0.5, (d - 0.5 * bound) * bound)


def binary_cross_entropy(x: Expression, t: Expression) -> Expression:
    """Return ``-(t log(x) + (1 - t) log(1 - x))``; logarithms are at least -100."""
    yes, no = (scalar.maximum(scalar.log(v), -100) for v in (x, 1 - x))
    return (t - 1) * no - t * yes


def binary_cross_entropy_of_logits(x: Expression, t: Expression, p: Expression | None) -> Expression:
    """Return ``log(1 + exp(x)) - x t``; with ``p`` ``(1 - t) x + (1 + (p - 1) t) log(1 + exp(-x))``."""
    if p is None:
        return softplus(x) - x * t
    return (1 - t) * x + ((p - 1) * t + 1) * softplus(-x)
