"""Positions that are data: embeddings, gathering, scattering, losses of labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np

from polyloom.frontends.graph.composites.losses import averaged, label_loss, probability_loss
from polyloom.frontends.graph.composites.normalisation import log_softmax
from polyloom.frontends.graph.core import (
    Combine,
    CompareOp,
    ElementType,
    Expression,
    From,
    Value,
    X,
    at,
    broadcast_shape,
    cast,
    counted_before,
    cumulative,
    elements_updated,
    expanded,
    filled,
    gathered,
    gathered_elements,
    iota,
    mapped,
    merged_positions,
    one_hot,
    only,
    op,
    refuse_if,
    reshaped,
    rows_combined,
    rows_updated,
    scalar,
    sliced,
    transposed,
    unsqueezed,
    value,
    wrapped,
)
from polyloom.frontends.torch.arguments import REDUCTION
from polyloom.frontends.torch.call import Call, operations
from polyloom.frontends.torch.operations.elementwise import floor_divided
from polyloom.frontends.torch.operations.scalars import scalars_as_rows
from polyloom.ir.reductions import neutral


def _at(c: Call, x: Value, at: int, positions: Value) -> Value:
    """Return the slices of an axis at positions: slices where these are known, else by comparisons."""
    refuse_if(
        positions.type is ElementType.BOOL or positions.type.is_float,
        "positions by truth values: how many there are is not known",
    )
    return gathered(c.b, x, wrapped(c.b, positions, x.shape[at]), at)


def _embedding(c: Call) -> Sequence[Value]:
    return only(_at(c, c.input("weight"), 0, c.input("indices")))


_BAG_MODES = (Combine.ADD, Combine.ADD, Combine.MAXIMUM)
"""Sum, mean and maximum, by their numbers."""


def _embedding_bag(c: Call) -> Sequence[Value]:
    """Rows of each bag combined: the bag of a word is how many bags begin up to it, less one.

    Its other results (what the gradient needs) are not given.
    """
    words, offsets, mode = c.input("indices"), c.input("offsets"), c.integer("mode", 0)
    refuse_if(
        words.rank != 1 or offsets.rank != 1 or not 0 <= mode < len(_BAG_MODES),
        f"words {list(words.shape)} in bags {list(offsets.shape)}, mode {mode}",
    )
    count = offsets.size - (1 if c.flag("include_last_offset") else 0)
    rows = _at(c, c.input("weight"), 0, words)
    if c.given("per_sample_weights"):
        factors = unsqueezed(c.input("per_sample_weights"), [1])
        rows = mapped(c.b, scalar.multiply, rows, factors, hint="weighed")
    starts = sliced(offsets, 0, 0, 1, count)
    before = counted_before(
        c.b, starts, iota(c.b, words.size, starts.type), ElementType.INT32, equal_too=True
    )
    skipped = c.integer("padding_idx", -1)

    def bag(n: Expression, word: Expression) -> Expression:
        return n - 1 if skipped < 0 else scalar.select(scalar.equal(word, skipped), -1, n - 1)

    bags = mapped(c.b, bag, before, words, hint="bags")
    found = rows_combined(c.b, rows, bags, count, _BAG_MODES[mode])
    if mode == 0:
        return only(found)
    ones = filled(c.b, bags.shape, 1, found.type)
    held = unsqueezed(rows_combined(c.b, ones, bags, count, Combine.ADD), [1])

    def finished(v: Expression, n: Expression) -> Expression:
        empty = scalar.compare(CompareOp.EQ, n, 0)
        whole = scalar.divide(v, scalar.maximum(n, 1)) if mode == 1 else v
        return scalar.select(empty, scalar.number(0, v.type), whole)

    return only(mapped(c.b, finished, found, held))


def _index_select(c: Call) -> Sequence[Value]:
    x, index = c.input(), c.input("index")
    return only(_at(c, x, c.axis("dim", x.rank), index if index.rank else unsqueezed(index, [0])))


def _index(c: Call) -> Sequence[Value]:
    """``x[i, :, j]``: what positions stand next to each other stays there, else it comes first."""
    x, given = c.input(), c.optional_tensors("indices")
    where = [k for k, v in enumerate(given) if v is not None]
    positions = [v for v in given if v is not None]
    if not positions:
        return only(x)
    if where != list(range(where[0], where[0] + len(where))):
        x = transposed(x, [*where, *(k for k in range(x.rank) if k not in where)])
        where = list(range(len(where)))
    if _is_grid(positions) and all(c.b.known(p) is not None for p in positions):
        for k, p in zip(where, positions, strict=True):
            x = _at(c, x, k, reshaped(c.b, p, [p.size]))
        return only(x)
    return only(_at(c, *_flattened(c, x, where, positions)))


def _is_grid(positions: Sequence[Value]) -> bool:
    """Tell whether the k-th positions vary along the k-th of as many axes: rows by columns."""
    count = len(positions)
    if max(p.rank for p in positions) != count:
        return False
    shapes = [(1,) * (count - p.rank) + p.shape for p in positions]
    return all(n == 1 for k, shape in enumerate(shapes) for a, n in enumerate(shape) if a != k)


def _flattened(
    c: Call, x: Value, where: Sequence[int], positions: Sequence[Value]
) -> tuple[Value, int, Value]:
    """Return data with the axes as one, the number of it, and the positions in it."""
    first, sizes = where[0], [x.shape[k] for k in where]
    if any(p.type is ElementType.BOOL for p in positions) or len(where) == 1:
        return x, first, positions[0]
    flat = reshaped(c.b, x, (*x.shape[:first], prod(sizes), *x.shape[where[-1] + 1 :]))
    if len({p.type for p in positions}) > 1:
        positions = [cast(c.b, p, ElementType.INT64) for p in positions]
    return flat, first, merged_positions(c.b, positions, sizes)


def _gather(c: Call) -> Sequence[Value]:
    x, index = c.input(), c.input("index")
    refuse_if(x.rank == 0 or index.rank != x.rank, f"positions of rank {index.rank} in data of rank {x.rank}")
    return only(gathered_elements(c.b, x, c.axis("dim", x.rank), index))


def _one_hot(c: Call) -> Sequence[Value]:
    x, size = c.input(), c.integer("num_classes", -1)
    refuse_if(size < 1, "the number of classes is not given")
    on, off = (c.b.constant(np.full((), n, c.type.dtype)) for n in (1, 0))
    return only(one_hot(c.b, x, size, x.rank, on, off))


# -- scattering


def _index_put(c: Call) -> Sequence[Value]:
    """``x[i, :, j] = values``, or ``+=``: the axes that have positions first, and as one."""
    x, given, values = c.input(), c.optional_tensors("indices"), c.input("values")
    where = [k for k, v in enumerate(given) if v is not None]
    positions = [v for v in given if v is not None]
    if any(p.type is ElementType.BOOL for p in positions):
        return only(_put_by_truth(c, x, where, positions, values))
    adjacent = where == list(range(where[0], where[-1] + 1))
    before = list(range(where[0])) if adjacent else []
    order = [*where, *(k for k in range(x.rank) if k not in where)]
    first = transposed(x, order)
    depth, count = len(where), max(p.rank for p in positions)
    flat, _, at = _flattened(c, first, list(range(depth)), positions)
    at = wrapped(c.b, at, flat.shape[0])
    shape = [x.shape[k] for k in before]
    rest = [x.shape[k] for k in order[depth:][len(before) :]]
    wide = expanded(values, (*shape, *at.shape, *rest))
    rows = transposed(
        wide,
        [
            *range(len(before), len(before) + count),
            *range(len(before)),
            *range(len(before) + count, wide.rank),
        ],
    )
    combine = Combine.ADD if c.flag("accumulate") else None
    found = reshaped(c.b, rows_updated(c.b, flat, at, rows, combine), first.shape)
    return only(transposed(found, [order.index(k) for k in range(x.rank)]))


def _places_of_truths(c: Call, mask: Value) -> tuple[Value, Value]:
    """Return truth values in a row as 1 and 0, and how many are true before each."""
    digits = reshaped(c.b, cast(c.b, mask, ElementType.INT32, "digits"), [mask.size])
    return digits, cumulative(c.b, digits, 0, strict=True, hint="places")


def _masked_scatter_gradient(c: Call) -> Sequence[Value]:
    """The gradient by the source: of its n-th element what is at the n-th truth of the mask, else 0."""
    dy, sizes = c.input("grad_output"), c.numbers("sizes")
    digits, before = _places_of_truths(c, expanded(c.input("mask"), dy.shape))
    places = mapped(c.b, lambda n, digit: scalar.select(scalar.equal(digit, 0), -1, n), before, digits)
    found = rows_combined(c.b, reshaped(c.b, dy, [dy.size]), places, prod(sizes), Combine.ADD)
    return only(reshaped(c.b, found, sizes))


def _put_by_truth(
    c: Call, x: Value, where: Sequence[int], positions: Sequence[Value], values: Value
) -> Value:
    """One number where a mask over the first axes is true; rows would go to places that are data."""
    mask = positions[0]
    refuse_if(
        where != [0] or len(positions) != 1 or values.size != 1,
        "positions by truth values: how many there are is not known",
    )
    wide = expanded(unsqueezed(mask, list(range(mask.rank, x.rank))), x.shape)
    one = reshaped(c.b, values, ())
    if not c.flag("accumulate"):
        return mapped(c.b, scalar.select, wide, one, x)
    return mapped(c.b, lambda m, v, old: scalar.select(m, old + v, old), wide, one, x)


def _embedding_gradient(c: Call) -> Sequence[Value]:
    dy, positions = c.input("grad_output"), c.input("indices")
    refuse_if(c.flag("scale_grad_by_freq"), "gradients by the number of times a word comes")
    skipped = c.integer("padding_idx", -1)
    if skipped >= 0:

        def kept(p: Expression, g: Expression) -> Expression:
            return scalar.select(scalar.compare(CompareOp.EQ, p, skipped), scalar.number(0, g.type), g)

        dy = mapped(c.b, kept, unsqueezed(positions, [positions.rank]), dy, hint="kept")
    return only(rows_combined(c.b, dy, positions, c.integer("num_weights"), Combine.ADD))


def _scatter(c: Call) -> Sequence[Value]:
    """A tensor, or one number, at positions along an axis."""
    x, index = c.input(), c.input("index")
    name = c.text("reduce", "replace")
    refuse_if(name not in _COMBINED, f"the reduction `{name}`")
    at, combine = c.axis("dim", x.rank), _COMBINED[name]
    if "value" not in c.arguments:
        return only(elements_updated(c.b, x, at, index, _part(c, index), combine))
    value = expanded(c.operand("value", x.type), index.shape)
    return only(elements_updated(c.b, x, at, index, value, combine))


_COMBINED = {"replace": None, "add": Combine.ADD, "multiply": Combine.MULTIPLY}
"""What ``scatter`` does with what is there, by its name."""


def _put(c: Call) -> Sequence[Value]:
    """``put``: numbers at positions in all elements, one after another."""
    x, index, source = c.input(), c.input("index"), c.input("source")
    places, flat = (reshaped(c.b, v, [v.size]) for v in (index, x))
    rows = reshaped(c.b, source, [source.size])
    combine = Combine.ADD if c.flag("accumulate") else None
    found = rows_updated(c.b, flat, wrapped(c.b, places, x.size), rows, combine)
    return only(reshaped(c.b, found, x.shape))


def _masked_scatter(c: Call) -> Sequence[Value]:
    """The elements of a source, one after another, where a mask is true: the n-th is at the n-th truth."""
    mask, source = c.input("mask"), c.input("source")
    shape = broadcast_shape([c.input().shape, mask.shape])
    x, mask = expanded(c.input(), shape), expanded(mask, shape)
    if x.size == 0 or source.size == 0:
        return only(x)
    _, places = _places_of_truths(c, mask)
    new = gathered(c.b, reshaped(c.b, source, [source.size]), places)
    return only(mapped(c.b, scalar.select, mask, reshaped(c.b, new, shape), x))


def _part(c: Call, index: Value) -> Value:
    """Return as much of the source as there are positions."""
    source = c.input("src")
    refuse_if(source.rank != index.rank, f"positions {list(index.shape)} of {list(source.shape)}")
    for k, size in enumerate(index.shape):
        source = sliced(source, k, 0, 1, size)
    return source


_NAMED = {"sum": Combine.ADD, "prod": Combine.MULTIPLY, "amax": Combine.MAXIMUM, "amin": Combine.MINIMUM}


Update = Callable[[Value, Value, Combine | None], Value]
"""Elements at positions combined with others, or replaced by them: of data and the others."""


def _scatter_reduce(c: Call) -> Sequence[Value]:
    """What a tensor has at positions along an axis, or not, combined with what comes there."""
    x, index = c.input(), c.input("index")
    at = c.axis("dim", x.rank)
    return only(
        _combined_there(c, _part(c, index), lambda v, new, by: elements_updated(c.b, v, at, index, new, by))
    )


def _index_reduce(c: Call) -> Sequence[Value]:
    """The same of slices along an axis."""
    x = c.input()
    at = c.axis("dim", x.rank)
    positions = wrapped(c.b, c.input("index"), x.shape[at])
    return only(
        _combined_there(c, c.input("source"), lambda v, new, by: _rows_along(c, v, at, positions, new, by))
    )


def _combined_there(c: Call, part: Value, update: Update) -> Value:
    """Return ``self`` combined with a part as ``reduce`` says; what it had there counts or not."""
    x, name = c.input(), c.text("reduce")
    refuse_if(name not in _NAMED and name != "mean", f"the reduction `{name}`")
    combine = _NAMED.get(name, Combine.ADD)

    def started(v: Value, number: float) -> Value:
        """Return what is there before, or a number where something comes."""
        return v if c.flag("include_self", True) else update(v, filled(c.b, part.shape, number, x.type), None)

    found = update(started(x, neutral(combine, x.type)), part, combine)
    if name != "mean":
        return found
    ones = filled(c.b, part.shape, 1, x.type)
    counts = update(started(filled(c.b, x.shape, 1, x.type), 0), ones, Combine.ADD)
    return mapped(c.b, scalar.divide if x.type.is_float else floor_divided, found, counts)


def _index_updated(c: Call, combine: Combine | None) -> Sequence[Value]:
    """index_copy, index_add: slices along an axis at positions."""
    x, index, source = c.input(), c.input("index"), c.input("source")
    at, factor = c.axis("dim", x.rank), c.attribute("alpha", 1)
    if factor != 1:
        source = mapped(c.b, scalar.multiply, source, factor, hint="scaled")
    return only(_rows_along(c, x, at, wrapped(c.b, index, x.shape[at]), source, combine))


def _rows_along(c: Call, x: Value, at: int, positions: Value, rows: Value, combine: Combine | None) -> Value:
    """Return ``x`` with slices at positions of an axis replaced, or combined with others."""
    order = [at, *(k for k in range(x.rank) if k != at)]
    refuse_if(rows.rank != x.rank, f"slices of shape {list(rows.shape)} for data of shape {list(x.shape)}")
    found = rows_updated(c.b, transposed(x, order), positions, transposed(rows, order), combine)
    return transposed(found, [order.index(k) for k in range(x.rank)])


def _slice_scatter(c: Call) -> Sequence[Value]:
    """``x[:, start:end:step] = source``."""
    x, source = c.input(), c.input("src")
    at, step = c.axis("dim", x.rank, 0), c.integer("step", 1)
    start, end = (c.integer(n) if c.given(n) else None for n in ("start", "end"))
    refuse_if(step < 1, f"the step {step}")
    positions = np.arange(*slice(start, end, step).indices(x.shape[at]))
    return only(_rows_along(c, x, at, c.b.constant(positions), source, None))


# -- losses of labels


def _cross_entropy(c: Call) -> Sequence[Value]:
    """Cross entropy of scores ``(n, classes, ...)`` and labels, or probabilities of classes."""
    x, target, smoothing = c.input(), c.input("target"), c.number("label_smoothing", 0)
    at = min(x.rank, 2) - 1
    logarithms = log_softmax(c.b, x, [at])
    if not target.type.is_float:
        return _label_loss(c, logarithms, smoothing)[:1]
    each = probability_loss(c.b, logarithms, target, at, c.optional("weight"), smoothing)
    return only(averaged(c.b, each, REDUCTION.read(c)))


def _label_loss(c: Call, scores: Value, smoothing: float = 0.0) -> Sequence[Value]:
    given = c.input("target"), c.optional("weight"), c.integer("ignore_index", -100), REDUCTION.read(c)
    at = min(scores.rank, 2) - 1
    return label_loss(c.b, scores, *given, axis=at, smoothing=smoothing)


OPERATIONS = operations(
    {
        "embedding": _embedding,
        "embedding_dense_backward": _embedding_gradient,
        **dict.fromkeys(("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"), _embedding_bag),
        "index_select": scalars_as_rows(_index_select),
        "index": _index,
        "_unsafe_index": _index,
        "gather": scalars_as_rows(_gather),
        "put": _put,
        "masked_scatter": _masked_scatter,
        "masked_scatter_backward": _masked_scatter_gradient,
        "one_hot": _one_hot,
        "index_put": _index_put,
        "_unsafe_index_put": _index_put,
        "scatter": scalars_as_rows(_scatter),
        "scatter_add": scalars_as_rows(
            op(
                elements_updated,
                X,
                at("dim"),
                value("index"),
                From(lambda c: _part(c, c.input("index"))),
                Combine.ADD,
            )
        ),
        "scatter_reduce": scalars_as_rows(_scatter_reduce),
        "index_reduce": scalars_as_rows(_index_reduce),
        "index_copy": scalars_as_rows(partial(_index_updated, combine=None)),
        "slice_scatter": _slice_scatter,
        "index_add": scalars_as_rows(partial(_index_updated, combine=Combine.ADD)),
        "cross_entropy_loss": _cross_entropy,
        **dict.fromkeys(
            ("nll_loss", "nll_loss_nd", "nll_loss_forward", "nll_loss2d_forward"),
            lambda c: _label_loss(c, c.input()),
        ),
    }
)
