"""Attention, rotary embeddings, and the recurrences that take its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import sqrt

import numpy as np

from polyloom.frontends.graph.composites.normalisation import safe_softmax, softmax
from polyloom.frontends.graph.core import (
    BinaryOp,
    Builder,
    Context,
    ElementType,
    Expression,
    Function,
    Graph,
    Refused,
    Table,
    Value,
    Window,
    cast,
    chosen,
    concatenated,
    convolution,
    einsum,
    filled,
    iota,
    mapped,
    only,
    refuse_if,
    reshaped,
    scalar,
    selected,
    silu,
    sliced,
    split,
    stacked,
    transposed,
    unsqueezed,
    with_bias,
)
from polyloom.frontends.onnx.operations.elementwise import type_of


def heads(x: Value, count: int) -> Value:
    """Return ``[batch][step][head * size]`` as ``[batch][head][step][size]``, a view."""
    if x.rank == 4:
        return x
    refuse_if(x.rank != 3 or count < 1 or x.shape[2] % count, f"{count} heads of the shape {list(x.shape)}")
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
    b = c.b
    q = heads(c.input(0), _heads_stated(c, c.input(0), "q_num_heads"))
    k, v = (heads(c.input(n), _heads_stated(c, c.input(n), "kv_num_heads")) for n in (1, 2))
    past_k, past_v = c.optional(4), c.optional(5)
    if (past_k is None) != (past_v is None):
        raise Refused("past keys without past values, or the other way round")
    past = 0 if past_k is None else past_k.shape[2]
    if past_k is not None and past_v is not None:
        k, v = concatenated(b, [past_k, k], 2), concatenated(b, [past_v, v], 2)
    refuse_if(q.shape[1] % k.shape[1], f"{q.shape[1]} heads on {k.shape[1]} keys")
    return _Operands(_grouped(q, k.shape[1]), k, v, past)


def _heads_stated(c: Context, x: Value, name: str) -> int:
    """Return how many heads an operand has: its shape says it, or an attribute. Raises ``Refused``."""
    count = c.integer(name, x.shape[1] if x.rank == 4 else 0)
    refuse_if(
        x.rank == 4 and count != x.shape[1],
        f"`{name}` says {count} heads, the shape {list(x.shape)} has {x.shape[1]}",
    )
    return count


def _attention(c: Context) -> Sequence[Value]:
    """Attention: ``softmax(softcap(q k * scale) + bias) v``; heads share keys in groups.

    A row whose bias is minus infinity everywhere has no key to attend to: its weights are 0. Halves are
    computed in float32 and rounded once.
    """
    b, o = c.b, _operands(c)
    kind, mode = o.q.type, c.integer("qk_matmul_output_mode", 0)
    refuse_if(not 0 <= mode <= 3, f"`qk_matmul_output_mode` {mode}")
    scores = _scores(b, o, c.number("scale", 1 / sqrt(o.q.shape[-1])))
    shown = [scores]
    cap = c.number("softcap", 0.0)
    refuse_if(cap < 0, f"`softcap` {cap}")
    if cap:
        scores = mapped(b, lambda x: scalar.tanh(x / cap) * cap, scores, hint="capped")
    shown.append(scores)
    bias = _bias(c, scores, o)
    if bias is not None:
        scores = mapped(b, scalar.add, scores, bias, hint="masked")
    shown.append(scores)
    precision = c.attribute("softmax_precision")
    wide = scores if precision is None else cast(b, scores, type_of(precision), "wide")
    weights = (softmax if bias is None else safe_softmax)(b, wide, [scores.rank - 1])
    weights = weights if precision is None else cast(b, weights, kind, "weights")
    shown.append(weights)
    found = einsum(
        b, ["bgrst", "bgtd"], "bgrsd", [weights, o.v], _product, "" if weights.type is kind else "wide"
    )
    y = _joined(b, cast(b, found, kind), flat=c.input(0).rank == 3)
    if len(c.node.outputs) < 4:
        return [y, o.k, o.v][: len(c.node.outputs)]
    return [y, o.k, o.v, _four(b, cast(b, shown[mode], kind, "shown"))]


def _product(w: Expression, v: Expression) -> Expression:
    return w * scalar.convert(v, w.type)


def _scores(b: Builder, o: _Operands, scale: float) -> Value:
    kind = ElementType.FLOAT32 if o.q.type is ElementType.FLOAT16 else o.q.type
    rooted: Function = lambda v: scalar.convert(v, kind) * sqrt(scale)  # noqa: E731
    product: Function = lambda x, y: rooted(x) * rooted(y)  # noqa: E731
    return einsum(b, ["bgrsd", "bgtd"], "bgrst", [o.q, o.k], product, "scores")


def _four(b: Builder, x: Value) -> Value:
    """Return ``[b][g][r][s][t]`` as ``[b][head][s][t]``."""
    return reshaped(b, x, (x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:]), "joined")


def _joined(b: Builder, x: Value, *, flat: bool) -> Value:
    batch, groups, repeats, steps, size = x.shape
    if not flat:
        return reshaped(b, x, (batch, groups * repeats, steps, size), "joined")
    return reshaped(b, transposed(x, (0, 3, 1, 2, 4)), (batch, steps, groups * repeats * size), "joined")


def _bias(c: Context, scores: Value, o: _Operands) -> Value | None:
    """Return what is added to ``scores[b][g][r][s][t]``, as it broadcasts: 0, minus infinity, a mask."""
    parts = [p for p in (_of_mask(c, scores), _of_places(c, scores, o)) if p is not None]
    if len(parts) < 2:
        return parts[0] if parts else None
    return mapped(c.b, scalar.add, *parts, hint="bias")


def _of_mask(c: Context, scores: Value) -> Value | None:
    """Return the mask; what it lacks at the end is masked. Heads are as groups and repeats."""
    b, mask, total, kind = c.b, c.optional(3), scores.shape[-1], scores.type
    if mask is None:
        return None
    refuse_if(not 1 <= mask.rank <= 4, f"a mask of rank {mask.rank}")
    truth = mask.type is ElementType.BOOL
    missing = total - mask.shape[-1]
    if missing > 0:
        end = filled(b, (*mask.shape[:-1], missing), False if truth else -np.inf, mask.type)
        mask = concatenated(b, [mask, end], mask.rank - 1)
    four = unsqueezed(mask, range(4 - mask.rank)) if mask.rank < 4 else mask
    count, groups = four.shape[1], scores.shape[1]
    five = unsqueezed(four, [1]) if count == 1 else split(four, 1, (groups, count // groups))
    return (
        mapped(b, lambda m: _zero_where(m, kind), five, hint="mask") if truth else cast(b, five, kind, "mask")
    )


def _zero_where(allowed: Expression, kind: ElementType) -> Expression:
    return scalar.select(allowed, scalar.number(0, kind), -np.inf)


Rule = Callable[[Expression, Expression, Expression | None], Expression]
"""Tells by a step, a key's place and the end of a sequence whether the step attends to the key."""


def _of_places(c: Context, scores: Value, o: _Operands) -> Value | None:
    """Return what excludes keys by their places: after the step, outside its window, behind the end."""
    b, lengths = c.b, c.optional(6)
    steps, total = scores.shape[-2:]
    if lengths is not None and c.optional(4) is not None:
        raise Refused("both past keys and the lengths of sequences")
    rules = _rules(c, steps, o.past, ends=lengths is not None)
    if not rules:
        return None
    number = ElementType.INT64
    row, column = unsqueezed(iota(b, steps, number), [1]), unsqueezed(iota(b, total, number), [0])
    ends = [] if lengths is None else [unsqueezed(cast(b, lengths, number), [1, 2, 3, 4])]

    def function(i: Expression, j: Expression, *end: Expression) -> Expression:
        parts = [rule(i, j, end[0] if end else None) for rule in rules]
        return _zero_where(reduce(lambda x, y: scalar.logical(BinaryOp.AND, x, y), parts), scores.type)

    return mapped(b, function, row, column, *ends, hint="places")


def _rules(c: Context, steps: int, past: int, *, ends: bool) -> list[Rule]:
    """Return the rules ``p - left <= j <= p + right`` for the step's place ``p``, and ``j < end``."""

    def distance(i: Expression, j: Expression, end: Expression | None) -> Expression:
        return j - (i + past if end is None else i + end - steps)

    left, right = c.integer("left_window_size", -1), c.integer("right_window_size", -1)
    refuse_if(min(left, right) < -1, f"windows of {left} keys to the left and {right} to the right")
    rules: list[tuple[bool, Rule]] = [
        (c.flag("is_causal"), lambda i, j, end: distance(i, j, end) <= 0),
        (right >= 0, lambda i, j, end: distance(i, j, end) <= right),
        (left >= 0, lambda i, j, end: distance(i, j, end) >= -left),
        (ends, lambda _, j, end: j < (end or 0)),
    ]
    return [rule for applies, rule in rules if applies]


def _flex_attention(c: Context) -> Sequence[Value]:
    """FlexAttention: bodies change scores and weights."""
    b, o = c.b, _operands_of_three(c)
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
    refuse_if(
        q.rank != 4 or k.rank != 4 or v.rank != 4 or q.shape[1] % k.shape[1],
        "operands that are no four-dimensional heads",
    )
    return _Operands(_grouped(q, k.shape[1]), k, v, 0)


def _modified(c: Context, name: str, value: Value) -> Value:
    body = c.attribute(name)
    if body is None:
        return value
    if not isinstance(body, Graph) or len(body.inputs) != 1:
        raise Refused(f"a `{name}` of other than one operand")
    return c.lowered(body, {body.inputs[0].name: value})[0]


def _rotary(c: Context) -> Sequence[Value]:
    """RotaryEmbedding: pairs of elements rotated by angles that caches give."""
    b, x = c.b, c.input(0)
    shape = x.shape
    if x.rank == 4:
        wide = transposed(x, (0, 2, 1, 3))
    else:
        count = c.integer("num_heads", 0)
        if count < 1 or shape[2] % count:
            raise Refused(f"{count} heads of the shape {list(shape)}")
        wide = split(x, 2, (count, shape[2] // count))
    rotated = _rotated(c, wide)
    if len(shape) == 4:
        return only(transposed(rotated, (0, 2, 1, 3)))
    return only(reshaped(b, rotated, shape))


def _rotated(c: Context, wide: Value) -> Value:
    """Rotate ``[batch][step][head][size]``; elements behind the rotary dimensions stay."""
    b = c.b
    size = c.integer("rotary_embedding_dim", 0) or wide.shape[3]
    pairs = bool(c.integer("interleaved", 0))
    half = size // 2
    first = sliced(wide, 3, 0, 2 if pairs else 1, half)
    second = sliced(wide, 3, 1 if pairs else half, 2 if pairs else 1, half)
    angles = [_angles(c, c.input(k)) for k in (1, 2)]
    re = mapped(b, lambda x, y, p, q: p * x - q * y, first, second, *angles, hint="real")
    im = mapped(b, lambda x, y, p, q: q * x + p * y, first, second, *angles, hint="imaginary")
    if pairs:
        rotated = reshaped(b, stacked(b, [re, im], 4), (*wide.shape[:3], size), "rotated")
    else:
        rotated = concatenated(b, [re, im], 3)
    if size == wide.shape[3]:
        return rotated
    return concatenated(b, [rotated, sliced(wide, 3, size, 1, wide.shape[3] - size)], 3)


def _angles(c: Context, cache: Value) -> Value:
    """Return a cache as ``[batch][step][1][half]``, chosen by position where positions are given."""
    positions = c.optional(3)
    found = cache if positions is None else chosen(c.b, cache, 0, positions, "angles")
    refuse_if(found.rank != 3, f"a cache of rank {found.rank}")
    return unsqueezed(found, [2])


def _linear_attention(c: Context) -> Sequence[Value]:
    """LinearAttention: a state of keys times values, unrolled over the steps."""
    b = c.b
    query, keys = c.integer("q_num_heads"), c.integer("kv_num_heads")
    rule = c.text("update_rule", "gated_delta")
    wide = ElementType.FLOAT32
    q, k, v = (cast(b, heads(c.input(n), m), wide, "wide") for n, m in ((0, query), (1, keys), (2, keys)))
    refuse_if(
        query % keys or rule not in ("linear", "gated", "delta", "gated_delta"),
        f"{query} heads on {keys} keys, rule `{rule}`",
    )
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
    given = cast(c.b, c.input(position), ElementType.FLOAT32, "wide")
    count = 1 if given.shape[2] == 1 else keys
    return heads(given, count)


def _heads_of(q: Value, keys: int) -> Value:
    return split(q, 1, (keys, q.shape[1] // keys))


def _updated(b: Builder, state: Value, k: Value, v: Value, decay: Value | None, rate: Value | None) -> Value:
    """Return ``exp(decay) * state + k v``, of ``v`` first taken off what the state recalls."""
    if decay is not None:
        fade = unsqueezed(decay, [3])
        state = mapped(b, lambda s, d: s * scalar.exp(d), state, fade, hint="faded")
    if rate is not None:
        recalled = einsum(b, ["bhdm", "bhd"], "bhm", [state, k], hint="recalled")

        v = mapped(b, lambda r, x, y: r * (x - y), rate, v, recalled, hint="correction")
    outer = unsqueezed(k, [3]), unsqueezed(v, [2])
    return mapped(b, lambda s, x, y: s + x * y, state, *outer, hint="state")


def _read(b: Builder, q: Value, state: Value, scale: float) -> Value:
    """Return ``[batch][group][repeat][size]``."""
    found = einsum(b, ["bgrd", "bgdm"], "bgrm", [q, state], hint="read")
    return mapped(b, scalar.multiply, found, scale, hint="scaled")


def _causal_conv(c: Context) -> Sequence[Value]:
    """CausalConvWithState: a depthwise convolution that looks back, over the state and the data."""
    b, x, w = c.b, c.input(0), c.input(1)
    refuse_if(x.rank != 3 or w.rank != 3, f"data of rank {x.rank} and filters of rank {w.rank}")
    behind = w.shape[2] - 1
    past = c.optional(3)
    start = filled(b, (*x.shape[:2], behind), 0, x.type) if past is None else past
    whole = concatenated(b, [start, x], 2) if behind else x
    window = Window((w.shape[2],), (1,), (1,), (0,), (0,))
    found = with_bias(b, convolution(b, whole, w, window, x.shape[1], hint="sum"), c.optional(2))
    activation = c.text("activation", "none")
    refuse_if(activation not in ("none", "silu", "swish"), f"the activation `{activation}`")
    y = found if activation == "none" else mapped(b, _silu, found)
    state = sliced(whole, 2, whole.shape[2] - behind, 1, behind)
    return (y, state)[: len(c.node.outputs)]


def _silu(x: Expression) -> Expression:
    return scalar.convert(silu(scalar.convert(x, ElementType.FLOAT32)), x.type)


OPERATIONS: Table = {
    "Attention": _attention,
    "RotaryEmbedding": _rotary,
    "LinearAttention": _linear_attention,
    "CausalConvWithState": _causal_conv,
}
PREVIEW: Table = {"FlexAttention": _flex_attention}
