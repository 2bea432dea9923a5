"""Attention, rotary embeddings, and the recurrences that take its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from polyloom.frontends.graph import scalar
from polyloom.frontends.graph.builder import Builder
from polyloom.frontends.graph.context import Context, Table, only
from polyloom.frontends.graph.model import Graph
from polyloom.frontends.graph.operations.contraction import einsum
from polyloom.frontends.graph.operations.convolution import Window, convolution, with_bias
from polyloom.frontends.graph.operations.elementwise import cast, filled, mapped
from polyloom.frontends.graph.operations.indexing import chosen, triangle
from polyloom.frontends.graph.operations.movement import concatenated, reshaped, stacked
from polyloom.frontends.graph.operations.normalisation import softmax
from polyloom.frontends.graph.operations.reductions import iota
from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.graph.values import (
    Value,
    expanded,
    selected,
    sliced,
    split,
    transposed,
    unsqueezed,
)
from polyloom.frontends.onnx.operations.elementwise import type_of
from polyloom.ir.expressions import CompareOp, Expression
from polyloom.ir.types import ElementType


def heads(x: Value, count: int) -> Value:
    """Return ``[batch][step][head * size]`` as ``[batch][head][step][size]``, a view."""
    if x.rank == 4:
        return x
    if x.rank != 3 or count < 1 or x.shape[2] % count:
        raise Refused(f"{count} heads of the shape {list(x.shape)}")
    return transposed(split(x, 2, (count, x.shape[2] // count)), (0, 2, 1, 3))


def _grouped(x: Value, groups: int) -> Value:
    """Return ``[batch][head][step][size]`` with the heads that share a key as ``[group][repeat]``."""
    return split(x, 1, (groups, x.shape[1] // groups))


@dataclass(frozen=True, eq=False)
class _Operands:
    """``q[b][g][r][s][d]``, ``k[b][g][t][d]``, ``v[b][g][t][d]``; ``past``: steps before this call."""

    q: Value
    k: Value
    v: Value
    past: int


def _operands(c: Context) -> _Operands:
    b = c.builder
    q = heads(c.input(0), c.integer("q_num_heads", c.input(0).shape[1]))
    k, v = (heads(c.input(n), c.integer("kv_num_heads", c.input(n).shape[1])) for n in (1, 2))
    past_k, past_v = c.optional(4), c.optional(5)
    past = 0 if past_k is None else past_k.shape[2]
    if past_k is not None and past_v is not None:
        k, v = concatenated(b, [past_k, k], 2), concatenated(b, [past_v, v], 2)
    if q.shape[1] % k.shape[1]:
        raise Refused(f"{q.shape[1]} heads on {k.shape[1]} keys")
    return _Operands(_grouped(q, k.shape[1]), k, v, past)


def _attention(c: Context) -> Sequence[Value]:
    """Attention: ``softmax(softcap(q k * scale) + mask) v``; heads share keys in groups."""
    b, o = c.builder, _operands(c)
    kind = o.q.type
    scale = c.number("scale", 1 / sqrt(o.q.shape[-1]))
    scores = _scores(b, o, scale)
    shown = [scores]
    cap = c.number("softcap", 0.0)
    if cap:
        scores = mapped(b, lambda x: _capped(x, cap), scores, hint="capped")
    shown.append(scores)
    scores = _masked(c, scores, o)
    shown.append(scores)
    precision = c.attribute("softmax_precision")
    wide = scores if precision is None else cast(b, scores, type_of(precision), "wide")
    weights = softmax(b, wide, [scores.rank - 1])
    weights = cast(b, weights, kind, "weights") if weights.type is not kind else weights
    shown.append(weights)
    found = einsum(b, ["bgrst", "bgtd"], "bgrsd", [weights, o.v])
    y = _joined(b, found, flat=c.input(0).rank == 3)
    results = [y, o.k, o.v, _four(b, shown[c.integer("qk_matmul_output_mode", 0)])]
    return results[: len(c.node.outputs)]


def _scores(b: Builder, o: _Operands, scale: float) -> Value:
    root = sqrt(scale)

    def product(x: Expression, y: Expression) -> Expression:
        return scalar.multiply(scalar.multiply(x, root), scalar.multiply(y, root))

    return einsum(b, ["bgrsd", "bgtd"], "bgrst", [o.q, o.k], product, "scores")


def _capped(x: Expression, cap: float) -> Expression:
    return scalar.multiply(scalar.tanh(scalar.divide(x, cap)), cap)


def _four(b: Builder, x: Value) -> Value:
    """Return ``[b][g][r][s][t]`` as ``[b][head][s][t]``."""
    return reshaped(b, x, (x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:]), "joined")


def _joined(b: Builder, x: Value, *, flat: bool) -> Value:
    batch, groups, repeats, steps, size = x.shape
    if not flat:
        return reshaped(b, x, (batch, groups * repeats, steps, size), "joined")
    return reshaped(b, transposed(x, (0, 3, 1, 2, 4)), (batch, steps, groups * repeats * size), "joined")


def _masked(c: Context, scores: Value, o: _Operands) -> Value:
    """Add the mask, minus infinity above the diagonal, and minus infinity behind the sequences' ends."""
    b, mask, lengths = c.builder, c.optional(3), c.optional(6)
    steps, total = scores.shape[-2:]
    if mask is not None:
        wide = _five(b, mask, scores, total)
        scores = mapped(b, _with_mask, scores, wide, hint="masked")
    if c.integer("is_causal", 0):
        allowed = triangle(b, steps, total, o.past, upper=False)
        scores = mapped(b, _allowed, expanded(allowed, scores.shape), scores, hint="causal")
    if lengths is not None:
        ends = expanded(unsqueezed(lengths, [1, 2, 3, 4]), scores.shape)
        numbers = expanded(iota(b, total, lengths.type), scores.shape)
        scores = mapped(b, _before_end, numbers, ends, scores, hint="ended")
    return scores


def _five(b: Builder, mask: Value, scores: Value, total: int) -> Value:
    """Return a mask as it broadcasts over ``[b][g][r][s][t]``; what it lacks at the end is masked."""
    missing = total - mask.shape[-1]
    if missing > 0:
        none = False if mask.type is ElementType.BOOL else -np.inf
        end = filled(b, (*mask.shape[:-1], missing), none, mask.type)
        mask = concatenated(b, [mask, end], mask.rank - 1)
    four = unsqueezed(mask, range(4 - mask.rank)) if mask.rank < 4 else mask
    groups = scores.shape[1]
    if four.shape[1] == 1:
        return expanded(unsqueezed(four, [1]), scores.shape)
    return expanded(split(four, 1, (groups, four.shape[1] // groups)), scores.shape)


def _with_mask(x: Expression, m: Expression) -> Expression:
    return _allowed(m, x) if m.type is ElementType.BOOL else scalar.add(x, scalar.convert(m, x.type))


def _allowed(m: Expression, x: Expression) -> Expression:
    return scalar.select(m, x, -np.inf)


def _before_end(k: Expression, end: Expression, x: Expression) -> Expression:
    return _allowed(scalar.compare(CompareOp.LT, k, end), x)


def _flex_attention(c: Context) -> Sequence[Value]:
    """FlexAttention: bodies change scores and weights."""
    b, o = c.builder, _operands_of_three(c)
    scale = c.number("scale", 1 / sqrt(o.q.shape[-1]))
    kind = o.q.type
    wide = type_of(c.integer("softmax_precision", 1 if kind is not ElementType.FLOAT64 else 11))
    scores = cast(b, _four(b, _scores(b, o, scale)), wide, "wide")
    scores = _modified(c, "score_mod", scores)
    weights = _modified(c, "prob_mod", softmax(b, scores, [3]))
    parts = _grouped(weights, o.k.shape[1])
    found = einsum(b, ["bgrst", "bgtd"], "bgrsd", [parts, cast(b, o.v, wide, "wide")])
    return only(cast(b, _joined(b, found, flat=False), kind))


def _operands_of_three(c: Context) -> _Operands:
    q, k, v = (c.input(n) for n in range(3))
    if q.rank != 4 or k.rank != 4 or v.rank != 4 or q.shape[1] % k.shape[1]:
        raise Refused("operands that are no four-dimensional heads")
    return _Operands(_grouped(q, k.shape[1]), k, v, 0)


def _modified(c: Context, name: str, value: Value) -> Value:
    body = c.attribute(name)
    if body is None:
        return value
    if not isinstance(body, Graph) or len(body.inputs) != 1:
        raise Refused(f"a `{name}` of other than one operand")
    return c.tensors(body, {body.inputs[0].name: value})[0]


def _rotary(c: Context) -> Sequence[Value]:
    """RotaryEmbedding: pairs of elements turned by angles that caches give."""
    b, x = c.builder, c.input(0)
    shape = x.shape
    if x.rank == 4:
        wide = transposed(x, (0, 2, 1, 3))
    else:
        count = c.integer("num_heads", 0)
        if count < 1 or shape[2] % count:
            raise Refused(f"{count} heads of the shape {list(shape)}")
        wide = split(x, 2, (count, shape[2] // count))
    turned = _rotated(c, wide)
    if len(shape) == 4:
        return only(transposed(turned, (0, 2, 1, 3)))
    return only(reshaped(b, turned, shape))


def _rotated(c: Context, wide: Value) -> Value:
    """Turn ``[batch][step][head][size]``; elements behind the rotary dimensions stay."""
    b = c.builder
    size = c.integer("rotary_embedding_dim", 0) or wide.shape[3]
    pairs = bool(c.integer("interleaved", 0))
    half = size // 2
    first = sliced(wide, 3, 0, 2 if pairs else 1, half)
    second = sliced(wide, 3, 1 if pairs else half, 2 if pairs else 1, half)
    angles = [_angles(c, c.input(k)) for k in (1, 2)]

    def real(x: Expression, y: Expression, p: Expression, q: Expression) -> Expression:
        return scalar.subtract(scalar.multiply(p, x), scalar.multiply(q, y))

    def imaginary(x: Expression, y: Expression, p: Expression, q: Expression) -> Expression:
        return scalar.add(scalar.multiply(q, x), scalar.multiply(p, y))

    re = mapped(b, real, first, second, *angles, hint="real")
    im = mapped(b, imaginary, first, second, *angles, hint="imaginary")
    if pairs:
        turned = reshaped(b, stacked(b, [re, im], 4), (*wide.shape[:3], size), "turned")
    else:
        turned = concatenated(b, [re, im], 3)
    if size == wide.shape[3]:
        return turned
    return concatenated(b, [turned, sliced(wide, 3, size, 1, wide.shape[3] - size)], 3)


def _angles(c: Context, cache: Value) -> Value:
    """Return a cache as ``[batch][step][1][half]``, chosen by position where positions are given."""
    positions = c.optional(3)
    found = cache if positions is None else chosen(c.builder, cache, 0, positions, "angles")
    if found.rank != 3:
        raise Refused(f"a cache of rank {found.rank}")
    return unsqueezed(found, [2])


def _linear_attention(c: Context) -> Sequence[Value]:
    """LinearAttention: a state of keys times values, unrolled over the steps."""
    b = c.builder
    query, keys = c.integer("q_num_heads"), c.integer("kv_num_heads")
    rule = c.text("update_rule", "gated_delta")
    wide = ElementType.FLOAT32
    q, k, v = (cast(b, heads(c.input(n), m), wide, "wide") for n, m in ((0, query), (1, keys), (2, keys)))
    if query % keys or rule not in ("linear", "gated", "delta", "gated_delta"):
        raise Refused(f"{query} heads on {keys} keys, rule `{rule}`")
    start = c.optional(3)
    shape = (q.shape[0], keys, k.shape[3], v.shape[3])
    state = filled(b, shape, 0, wide) if start is None else cast(b, start, wide, "state")
    decay = _by_step(c, 4, keys) if rule.startswith("gated") else None
    rate = _by_step(c, 5, keys) if rule.endswith("delta") else None
    scale = c.number("scale", 0.0) or 1 / sqrt(k.shape[3])
    outputs = []
    for t in range(q.shape[2]):
        at = [None if x is None else selected(x, 2, t) for x in (decay, rate)]
        state = _updated(b, state, selected(k, 2, t), selected(v, 2, t), at[0], at[1])
        outputs.append(_read(b, _heads_of(selected(q, 2, t), keys), state, scale))
    y = stacked(b, outputs, 1)
    flat = reshaped(b, y, (*y.shape[:2], query * v.shape[3]), "joined")
    kind = c.input(0).type if start is None else start.type
    return cast(b, flat, c.input(0).type), cast(b, state, kind)


def _by_step(c: Context, position: int, keys: int) -> Value:
    """Return decay or rate as ``[batch][head][step][size]``; per head the size is 1."""
    given = cast(c.builder, c.input(position), ElementType.FLOAT32, "wide")
    count = 1 if given.shape[2] == 1 else keys
    return heads(given, count)


def _heads_of(q: Value, keys: int) -> Value:
    return split(q, 1, (keys, q.shape[1] // keys))


def _updated(b: Builder, state: Value, k: Value, v: Value, decay: Value | None, rate: Value | None) -> Value:
    """Return ``exp(decay) * state + k v``, of ``v`` first taken off what the state recalls."""
    if decay is not None:
        fade = unsqueezed(decay, [3])
        state = mapped(b, lambda s, d: scalar.multiply(s, scalar.exp(d)), state, fade, hint="faded")
    if rate is not None:
        recalled = einsum(b, ["bhdm", "bhd"], "bhm", [state, k], hint="recalled")

        def correction(r: Expression, x: Expression, y: Expression) -> Expression:
            return scalar.multiply(r, scalar.subtract(x, y))

        v = mapped(b, correction, rate, v, recalled, hint="correction")

    def added(s: Expression, x: Expression, y: Expression) -> Expression:
        return scalar.add(s, scalar.multiply(x, y))

    return mapped(b, added, state, unsqueezed(k, [3]), unsqueezed(v, [2]), hint="state")


def _read(b: Builder, q: Value, state: Value, scale: float) -> Value:
    """Return ``[batch][group][repeat][size]``."""
    found = einsum(b, ["bgrd", "bgdm"], "bgrm", [q, state], hint="read")
    return mapped(b, lambda x: scalar.multiply(x, scale), found, hint="scaled")


def _causal_conv(c: Context) -> Sequence[Value]:
    """CausalConvWithState: a depthwise convolution that looks back, over the state and the data."""
    b, x, w = c.builder, c.input(0), c.input(1)
    if x.rank != 3 or w.rank != 3:
        raise Refused(f"data of rank {x.rank} and filters of rank {w.rank}")
    behind = w.shape[2] - 1
    past = c.optional(3)
    start = filled(b, (*x.shape[:2], behind), 0, x.type) if past is None else past
    whole = concatenated(b, [start, x], 2) if behind else x
    window = Window((w.shape[2],), (1,), (1,), (0,), (0,))
    found = with_bias(b, convolution(b, whole, w, window, x.shape[1], hint="sum"), c.optional(2))
    activation = c.text("activation", "none")
    if activation not in ("none", "silu", "swish"):
        raise Refused(f"the activation `{activation}`")
    y = found if activation == "none" else mapped(b, _silu, found)
    state = sliced(whole, 2, whole.shape[2] - behind, 1, behind)
    return (y, state)[: len(c.node.outputs)]


def _silu(x: Expression) -> Expression:
    wide = scalar.convert(x, ElementType.FLOAT32)
    return scalar.convert(scalar.multiply(wide, scalar.sigmoid(wide)), x.type)


OPERATIONS: Table = {
    "Attention": _attention,
    "RotaryEmbedding": _rotary,
    "LinearAttention": _linear_attention,
    "CausalConvWithState": _causal_conv,
}
PREVIEW: Table = {"FlexAttention": _flex_attention}
