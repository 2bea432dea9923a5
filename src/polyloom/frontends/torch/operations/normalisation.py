"""Softmax, normalisations, attention, and gradients that autograd leaves whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from polyloom.frontends.graph.composites.normalisation import (
    batch_norm,
    group_norm,
    inverse_root,
    log_softmax,
    log_softmax_gradient,
    normalised,
    per_channel,
    rms_norm,
    safe_softmax,
    softmax,
    softmax_gradient,
)
from polyloom.frontends.graph.composites.optimizers import blended
from polyloom.frontends.graph.core import (
    ElementType,
    From,
    Refused,
    Value,
    axis,
    cast,
    mapped,
    matrix_product,
    matrix_turned,
    only,
    op,
    optional,
    refuse_if,
    scalar,
    squeezed,
    taken,
    triangle,
    value,
)
from polyloom.frontends.torch.arguments import DY, SELF
from polyloom.frontends.torch.call import Call, operations

_ALONG = From(lambda c: [c.axis("dim", c.input().rank)] if c.is_tensor("self") and c.input().rank else [])
_OF_RESULT = (DY, value("output"), From(lambda c: [c.axis("dim", c.input("output").rank)]))

# -- normalisations


def _last_axes(c: Call) -> range:
    rank = c.input("input").rank
    return range(rank - len(c.numbers("normalized_shape")), rank)


def _saved(c: Call, found: tuple[Value, Value, Value], axes: Sequence[int] = ()) -> Sequence[Value]:
    """Return a result, and where they are asked for the mean and the inverse root of the variance."""
    y = found[0]
    if c.results == 1:
        return only(y)
    middle, spread = (squeezed(v, axes) for v in found[1:])
    return y, middle, inverse_root(c.b, spread, c.number("eps", 1e-5), "rsqrt")


def _layer_norm(c: Call) -> Sequence[Value]:
    parameters = (c.number("eps", 1e-5), c.optional("weight"), c.optional("bias"))
    return _saved(c, normalised(c.b, c.input("input"), _last_axes(c), *parameters))


def _group_norm(c: Call) -> Sequence[Value]:
    groups = c.integer("num_groups" if "num_groups" in c.arguments else "group")
    parameters = (c.number("eps", 1e-5), c.optional("weight"), c.optional("bias"))
    found = group_norm(c.b, c.input("input"), groups, *parameters)
    return _saved(c, found, range(2, found[1].rank))


def _with_statistics(c: Call) -> Value:
    """Return batch norm with the means and variances that the module keeps."""
    x, middle, spread = (c.input(name) for name in ("input", "running_mean", "running_var"))
    one, none = (c.b.constant(np.full(middle.shape, n, x.type.dtype)) for n in (1, 0))
    parameters = (c.optional("weight") or one, c.optional("bias") or none, middle, spread)
    return batch_norm(c.b, x, parameters, c.number("eps", 1e-5))


def _batch_norm(
    c: Call, of_batch: str = "training", default: bool = True, kept: int = 0, functional: bool = False
) -> Sequence[Value]:
    """Batch norm and instance norm, whose first ``kept`` axes have statistics of their own.

    ``of_batch``: the argument that asks for the statistics of these data. With others the statistics that it
    saves are empty. ``functional``: it returns the new running statistics, too.
    """
    x, old = c.input("input"), [c.optional(name) for name in ("running_mean", "running_var")]
    running = [v for v in old if v is not None]
    if not c.flag(of_batch, default):
        empty = c.b.constant(np.zeros(0, x.type.dtype))
        return [_with_statistics(c), empty, empty, *running][: c.results]
    refuse_if(running and not functional, "it changes buffers: export with `run_decompositions()`")
    axes = [k for k in range(x.rank) if k != 1 and k >= kept]
    scale, shift = (per_channel(c.optional(name), x.rank) for name in ("weight", "bias"))
    found = normalised(c.b, x, axes, c.number("eps", 1e-5), scale, shift)
    results = _saved(c, found, axes)
    if not functional:
        return results
    count, momentum = x.size // x.shape[1], c.number("momentum")
    refuse_if(count < 2, "one element for each channel has no variance")
    factors = (momentum, momentum * (count / (count - 1)))
    batch = (squeezed(v, axes) for v in found[1:])
    return [
        *results,
        *(blended(c.b, o, v, 1 - momentum, added=f) for o, v, f in zip(running, batch, factors, strict=True)),
    ]


# -- attention


def _attention(c: Call) -> Sequence[Value]:
    """``softmax(scale * q k^T + mask) v``; a mask of truth values says where to look."""
    q, k, v = (c.input(name) for name in ("query", "key", "value"))
    refuse_if(c.number("dropout_p", 0) != 0, "random numbers: export the module in `eval()` mode")
    refuse_if(min(q.rank, k.rank, v.rank) < 2 or q.shape[-1] == 0, f"queries of rank {q.rank}")
    if c.flag("enable_gqa") and q.rank > 2:
        k, v = (_repeated(c, t, q.shape[-3]) for t in (k, v))
    scale = c.number("scale", 1 / math.sqrt(q.shape[-1]))
    scores = matrix_product(c.b, q, matrix_turned(k), hint="scores")
    scores = mapped(c.b, scalar.multiply, scores, scale, hint="scaled")
    mask = c.optional("attn_mask")
    if c.flag("is_causal"):
        mask = triangle(c.b, scores.shape[-2], scores.shape[-1], 0, upper=False)
    if mask is not None:
        scores = _masked(c, scores, mask)
    weighted = softmax if mask is None else safe_softmax
    weights = weighted(c.b, scores, [scores.rank - 1])
    return only(matrix_product(c.b, weights, v))


def _repeated(c: Call, t: Value, heads: int) -> Value:
    """Return keys or values with each head as often as queries need it."""
    at = axis(-3, t.rank)
    refuse_if(heads % t.shape[at], f"{heads} heads of queries and {t.shape[at]} of keys")
    times = heads // t.shape[at]
    return taken(c.b, t, at, [k // times for k in range(heads)])


def _masked(c: Call, scores: Value, mask: Value) -> Value:
    if mask.type is not ElementType.BOOL:
        return mapped(c.b, scalar.add, scores, cast(c.b, mask, scores.type), hint="masked")
    return mapped(c.b, lambda s, m: scalar.select(m, s, -math.inf), scores, mask, hint="masked")


def _attention_gradient(c: Call) -> Sequence[Value]:
    """Export decomposes the forward and not the backward, which then gets weights for its logarithms."""
    raise Refused("export under `torch.nn.attention.sdpa_kernel(SDPBackend.MATH)`, whose gradient is plain")


OPERATIONS = operations(
    {
        **dict.fromkeys(("softmax", "_softmax"), op(softmax, SELF, _ALONG)),
        "_safe_softmax": op(safe_softmax, SELF, _ALONG),
        **dict.fromkeys(("log_softmax", "_log_softmax"), op(log_softmax, SELF, _ALONG)),
        "_softmax_backward_data": op(softmax_gradient, *_OF_RESULT),
        "_log_softmax_backward_data": op(log_softmax_gradient, *_OF_RESULT),
        **dict.fromkeys(("layer_norm", "native_layer_norm"), _layer_norm),
        "rms_norm": op(
            rms_norm,
            value("input"),
            From(_last_axes),
            From(lambda c: c.number("eps", float(np.finfo(c.input("input").type.value).eps))),
            optional("weight"),
        ),
        **dict.fromkeys(("group_norm", "native_group_norm"), _group_norm),
        "instance_norm": partial(_batch_norm, of_batch="use_input_stats", kept=2),
        "batch_norm": partial(_batch_norm, default=False),
        "_native_batch_norm_legit_no_training": partial(_batch_norm, default=False),
        "_native_batch_norm_legit_functional": partial(_batch_norm, functional=True),
        "_native_batch_norm_legit": _batch_norm,
        "scaled_dot_product_attention": _attention,
        "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_gradient,
    }
)
