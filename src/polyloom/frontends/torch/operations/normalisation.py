"""Softmax, normalisations, attention, and gradients that autograd leaves whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np

from polyloom.frontends.graph.core import (
    Builder,
    Combine,
    CompareOp,
    ElementType,
    Expression,
    Refused,
    Value,
    affine,
    axis,
    batch_norm,
    cast,
    log_softmax,
    mapped,
    matrix_product,
    normalised,
    only,
    reduced,
    refuse_if,
    reshaped,
    scalar,
    softmax,
    squeezed,
    taken,
    transposed,
    triangle,
    unsqueezed,
)
from polyloom.frontends.torch.call import Call, Lowering, operations


def _soft(function: Callable[[Builder, Value, Collection[int]], Value]) -> Lowering:
    def lowering(c: Call) -> Sequence[Value]:
        x = c.operand("self", c.type)
        if x.rank == 0:
            x = unsqueezed(x, [0])
            return only(squeezed(function(c.b, x, [0]), [0]))
        return only(function(c.b, x, [c.axis("dim", x.rank)]))

    return lowering


def _safe_softmax(b: Builder, x: Value, axes: Collection[int]) -> Value:
    """Return the softmax, and 0 where all elements are minus infinity: nothing to look at."""
    infinite = float("-inf")

    def power(v: Expression, m: Expression) -> Expression:
        nothing = scalar.compare(CompareOp.EQ, m, infinite)
        return scalar.select(nothing, scalar.number(0, v.type), scalar.exp(scalar.subtract(v, m)))

    def quotient(v: Expression, s: Expression) -> Expression:
        nothing = scalar.compare(CompareOp.EQ, s, 0)
        return scalar.select(nothing, scalar.number(0, v.type), scalar.divide(v, s))

    largest = reduced(b, Combine.MAXIMUM, x, axes, hint="max")
    powers = mapped(b, power, x, largest, hint="exp")
    return mapped(b, quotient, powers, reduced(b, Combine.ADD, powers, axes, hint="sum"))


def _softmax_gradient(c: Call) -> Sequence[Value]:
    """``y * (dy - sum(dy * y))``."""
    dy, y = c.input("grad_output"), c.input("output")
    at = [c.axis("dim", y.rank)]
    total = reduced(c.b, Combine.ADD, [dy, y], at, scalar.multiply, hint="sum")
    back = lambda g, v, s: scalar.multiply(v, scalar.subtract(g, s))  # noqa: E731
    return only(mapped(c.b, back, dy, y, total))


def _log_softmax_gradient(c: Call) -> Sequence[Value]:
    """``dy - exp(y) * sum(dy)``."""
    dy, y = c.input("grad_output"), c.input("output")
    total = reduced(c.b, Combine.ADD, dy, [c.axis("dim", y.rank)], hint="sum")
    back = lambda g, v, s: scalar.subtract(g, scalar.multiply(scalar.exp(v), s))  # noqa: E731
    return only(mapped(c.b, back, dy, y, total))


# -- normalisations


def _inverse_root(c: Call, spread: Value, epsilon: float) -> Value:
    return mapped(c.b, lambda v: scalar.rsqrt(scalar.add(v, epsilon)), spread, hint="rsqrt")


def _layer_norm(c: Call) -> Sequence[Value]:
    """Layer norm; its core form returns the mean and the inverse root of the variance too."""
    x = c.input("input")
    axes = list(range(x.rank - len(c.numbers("normalized_shape")), x.rank))
    epsilon = c.number("eps", 1e-5)
    unit, middle, spread = normalised(c.b, x, axes, epsilon)
    y = affine(c.b, unit, c.optional("weight"), c.optional("bias"))
    return only(y) if c.results == 1 else (y, middle, _inverse_root(c, spread, epsilon))


def _rms_norm(c: Call) -> Sequence[Value]:
    x = c.input("input")
    axes = list(range(x.rank - len(c.numbers("normalized_shape")), x.rank))
    epsilon = c.number("eps", float(np.finfo(x.type.value).eps))
    count = math.prod(x.shape[k] for k in axes)
    total = reduced(c.b, Combine.ADD, x, axes, scalar.square, hint="squares")

    def function(v: Expression, s: Expression) -> Expression:
        return scalar.multiply(v, scalar.rsqrt(scalar.add(scalar.divide(s, count), epsilon)))

    return only(affine(c.b, mapped(c.b, function, x, total, hint="unit"), c.optional("weight"), None))


def _per_channel(value: Value | None, rank: int) -> Value | None:
    return None if value is None else unsqueezed(value, [0, *range(2, rank)])


def _group_norm(c: Call) -> Sequence[Value]:
    """Group norm: channels as groups and members, normalised over the members and space."""
    x = c.input("input")
    core = "num_groups" not in c.arguments
    groups = c.integer("group" if core else "num_groups")
    refuse_if(x.rank < 2 or groups < 1 or x.shape[1] % groups, f"{groups} groups of data {list(x.shape)}")
    parts = reshaped(c.b, x, (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]), hint="groups")
    epsilon = c.number("eps", 1e-5)
    axes = list(range(2, parts.rank))
    unit, middle, spread = normalised(c.b, parts, axes, epsilon)
    scale, shift = (_per_channel(c.optional(name), x.rank) for name in ("weight", "bias"))
    y = affine(c.b, reshaped(c.b, unit, x.shape, hint="whole"), scale, shift)
    if c.results == 1:
        return only(y)
    return y, squeezed(middle, axes), squeezed(_inverse_root(c, spread, epsilon), axes)


def _instance_norm(c: Call) -> Sequence[Value]:
    x = c.input("input")
    epsilon = c.number("eps", 1e-5)
    scale, shift = c.optional("weight"), c.optional("bias")
    if not c.flag("use_input_stats", True):
        return only(_with_statistics(c, x, epsilon))
    refuse_if(c.given("running_mean"), "it changes buffers: export with `run_decompositions()`")
    unit, _, _ = normalised(c.b, x, list(range(2, x.rank)), epsilon)
    return only(affine(c.b, unit, _per_channel(scale, x.rank), _per_channel(shift, x.rank)))


def _with_statistics(c: Call, x: Value, epsilon: float) -> Value:
    """Return batch norm with the means and variances that the module keeps."""
    middle, spread = c.input("running_mean"), c.input("running_var")
    scale, shift = c.optional("weight"), c.optional("bias")
    one, none = (c.b.constant(np.full(middle.shape, n, x.type.dtype)) for n in (1, 0))
    parameters = (one if scale is None else scale, none if shift is None else shift, middle, spread)
    return batch_norm(c.b, x, parameters, epsilon)


def _batch_norm(c: Call) -> Sequence[Value]:
    x, epsilon = c.input("input"), c.number("eps", 1e-5)
    if not c.flag("training"):
        return only(_with_statistics(c, x, epsilon))
    refuse_if(c.given("running_mean"), "it changes buffers: export with `run_decompositions()`")
    return only(_of_batch(c, x, epsilon)[0])


def _of_batch(c: Call, x: Value, epsilon: float) -> tuple[Value, Value, Value]:
    """Return batch norm with the batch's own mean and variance, and these, one for each channel."""
    axes = [k for k in range(x.rank) if k != 1]
    unit, middle, spread = normalised(c.b, x, axes, epsilon)
    scale, shift = (_per_channel(c.optional(name), x.rank) for name in ("weight", "bias"))
    return affine(c.b, unit, scale, shift), squeezed(middle, axes), squeezed(spread, axes)


def _batch_norm_inference(c: Call) -> Sequence[Value]:
    """``_native_batch_norm_legit_no_training``: the statistics that it saves are empty."""
    x = c.input("input")
    empty = c.b.constant(np.zeros(0, x.type.dtype))
    return _with_statistics(c, x, c.number("eps")), empty, empty


def _batch_norm_functional(c: Call) -> Sequence[Value]:
    """``_native_batch_norm_legit_functional``: y, mean, inverse root, and the new running statistics."""
    x, epsilon, momentum = c.input("input"), c.number("eps"), c.number("momentum")
    old = c.input("running_mean"), c.input("running_var")
    if not c.flag("training", True):
        empty = c.b.constant(np.zeros(0, x.type.dtype))
        return _with_statistics(c, x, epsilon), empty, empty, *old
    y, middle, spread = _of_batch(c, x, epsilon)
    count = x.size // x.shape[1]
    refuse_if(count < 2, "one element for each channel has no variance")

    def mixed(a: Expression, v: Expression, factor: float) -> Expression:
        return scalar.add(scalar.multiply(a, 1 - momentum), scalar.multiply(v, momentum * factor))

    mean = mapped(c.b, lambda a, v: mixed(a, v, 1.0), old[0], middle, hint="running_mean")
    share = count / (count - 1)
    variance = mapped(c.b, lambda a, v: mixed(a, v, share), old[1], spread, hint="running_var")
    return y, middle, _inverse_root(c, spread, epsilon), mean, variance


def _batch_norm_alone(c: Call) -> Sequence[Value]:
    """``_native_batch_norm_legit`` without running statistics: y, mean, inverse root."""
    refuse_if(c.given("running_mean"), "it changes buffers: export with `run_decompositions()`")
    epsilon = c.number("eps")
    y, middle, spread = _of_batch(c, c.input("input"), epsilon)
    return y, middle, _inverse_root(c, spread, epsilon)


# -- attention


def _attention(c: Call) -> Sequence[Value]:
    """``softmax(scale * q k^T + mask) v``; a mask of truth values says where to look."""
    q, k, v = (c.input(name) for name in ("query", "key", "value"))
    refuse_if(c.number("dropout_p", 0) != 0, "random numbers: export the module in `eval()` mode")
    refuse_if(min(q.rank, k.rank, v.rank) < 2 or q.shape[-1] == 0, f"queries of rank {q.rank}")
    if c.flag("enable_gqa") and q.rank > 2:
        k, v = (_repeated(c, t, q.shape[-3]) for t in (k, v))
    scale = c.number("scale", 1 / math.sqrt(q.shape[-1]))
    scores = matrix_product(c.b, q, _matrix_turned(k), hint="scores")
    scores = mapped(c.b, lambda s: scalar.multiply(s, scale), scores, hint="scaled")
    mask = c.optional("attn_mask")
    if c.flag("is_causal"):
        mask = triangle(c.b, scores.shape[-2], scores.shape[-1], 0, upper=False)
    if mask is not None:
        scores = _masked(c, scores, mask)
    weighted = softmax if mask is None else _safe_softmax
    weights = weighted(c.b, scores, [scores.rank - 1])
    return only(matrix_product(c.b, weights, v))


def _matrix_turned(x: Value) -> Value:
    return transposed(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])


def _repeated(c: Call, t: Value, heads: int) -> Value:
    """Return keys or values with each head as often as queries need it."""
    at = axis(-3, t.rank)
    refuse_if(heads % t.shape[at], f"{heads} heads of queries and {t.shape[at]} of keys")
    times = heads // t.shape[at]
    return taken(c.b, t, at, [k // times for k in range(heads)])


def _masked(c: Call, scores: Value, mask: Value) -> Value:
    if mask.type is not ElementType.BOOL:
        return mapped(c.b, scalar.add, scores, cast(c.b, mask, scores.type), hint="masked")
    lowest = float("-inf")
    return mapped(
        c.b, lambda s, m: scalar.select(m, s, scalar.number(lowest, s.type)), scores, mask, hint="masked"
    )


def _attention_gradient(c: Call) -> Sequence[Value]:
    """Export decomposes the forward and not the backward, which then gets weights for its logarithms."""
    raise Refused("export under `torch.nn.attention.sdpa_kernel(SDPBackend.MATH)`, whose gradient is plain")


OPERATIONS = operations(
    {
        "softmax": _soft(softmax),
        "_softmax": _soft(softmax),
        "_safe_softmax": _soft(_safe_softmax),
        "log_softmax": _soft(log_softmax),
        "_log_softmax": _soft(log_softmax),
        "_softmax_backward_data": _softmax_gradient,
        "_log_softmax_backward_data": _log_softmax_gradient,
        "layer_norm": _layer_norm,
        "native_layer_norm": _layer_norm,
        "rms_norm": _rms_norm,
        "group_norm": _group_norm,
        "native_group_norm": _group_norm,
        "instance_norm": _instance_norm,
        "batch_norm": _batch_norm,
        "_native_batch_norm_legit_no_training": _batch_norm_inference,
        "_native_batch_norm_legit_functional": _batch_norm_functional,
        "_native_batch_norm_legit": _batch_norm_alone,
        "scaled_dot_product_attention": _attention,
        "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_gradient,
    }
)
