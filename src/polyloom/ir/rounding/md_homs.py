"""One md_hom with errors: what its points write, and how far another correct evaluation may be from it.

Points of a reduced or prefix dimension may be combined in any order. An operator that is one associative
function for each output has a bound for that (``sums``). Of the others, those that only select have the
errors of what they select; sums of products (affine maps, complex numbers) that of the same operator on
absolute values; of the rest nothing is known where terms have errors or the operator rounds.

Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.arithmetic import constant
from polyloom.ir.evaluation.boxes import Box, iterator_values
from polyloom.ir.evaluation.combining import (
    Mask,
    Partial,
    no_iterators,
    nothing,
    reduced,
    scanned,
    some_present,
    with_neutral,
)
from polyloom.ir.evaluation.launches import Launch, Reads, assign, store, written_places
from polyloom.ir.evaluation.md_homs import (
    boxes_in_order,
    chunks,
    combined_at,
    kept_boxes,
    line,
    run_md_hom,
    scatters,
    shape_of,
    start_of,
)
from polyloom.ir.evaluation.scatter import groups, in_place, scatter, write_steps
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Constant,
    Expression,
    Read,
    Unary,
    UnaryOp,
    children,
    walk,
)
from polyloom.ir.host import Combiner, Index, MdHom, Order, View, expressions_of
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.rounding.rules import approximate, epsilon, rounds
from polyloom.ir.rounding.sums import Family, family
from polyloom.ir.scalar_functions.approximate import Approximate, Error, Floats, magnitude, size
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]
Errors = MutableMapping[str, Error]
"""By buffer; None where all elements are exact."""


def run_with_errors(
    node: MdHom,
    arrays: Mapping[str, NDArray],
    errors: Errors,
    names: Mapping[str, int],
    box: Box | None = None,
) -> None:
    """Carry out an md_hom: its output buffers change, and their errors.

    ``box``: some of its kept points, with all points of the dimensions that are not ``++``.
    """
    touched = [view.buffer for view in (*node.inputs, *node.outputs)]
    if all(errors.get(name) is None for name in touched) and not any(map(has_rounding, expressions_of(node))):
        run_md_hom(node, arrays, names, box)
        return
    launch = Launch(node, arrays, names)
    for whole in boxes_in_order(launch, box):
        if not scatters(launch):
            _run_box(launch, errors, whole)
        elif all(whole):
            _scatter(launch, errors, whole)


def has_rounding(expression: Expression) -> bool:
    """Return whether any operation of an expression may round."""
    return any(rounds(part) for part in walk(expression))


def put_error(errors: Errors, buffer: str, array: NDArray, places: tuple[NDArray, ...], error: Error) -> None:
    """Write errors to elements; exact values take errors away."""
    if errors.get(buffer) is None:
        if error is None or not error.any():
            return
        errors[buffer] = np.zeros(array.shape)
    target = errors[buffer]
    assert target is not None
    count = places[0].size if places else 1
    assign(target, places, np.zeros(count) if error is None else error)


class ApproximateReads(Sequence[Approximate]):
    """What the views of an md_hom read on a box, with errors, and results of the md_hom behind them."""

    def __init__(self, reads: Reads, errors: Errors, results: Sequence[Approximate] = ()) -> None:
        self.reads = reads
        self.errors = errors
        self.results = results
        self.found: dict[int, Approximate] = {}

    def __len__(self) -> int:
        return len(self.reads.launch.node.inputs) + len(self.results)

    @overload
    def __getitem__(self, position: int) -> Approximate: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Approximate]: ...
    def __getitem__(self, position: int | slice) -> Approximate | Sequence[Approximate]:
        if isinstance(position, slice):
            return [self[k] for k in range(*position.indices(len(self)))]
        inputs = self.reads.launch.node.inputs
        if position >= len(inputs):
            return self.results[position - len(inputs)]
        if position not in self.found:
            self.found[position] = Approximate(self.reads[position], self._error(inputs[position]))
        return self.found[position]

    def value(self, expression: Expression) -> Approximate:
        """Return the values of a scalar function on the whole box."""
        box, launch = self.reads.box, self.reads.launch
        found = approximate(expression, self, lambda k: iterator_values(k, box), launch.names)
        shape = tuple(map(len, box))
        error = None if found.error is None else np.broadcast_to(found.error, shape)
        return Approximate(np.broadcast_to(found.value, shape), error)

    def _error(self, view: View) -> Error:
        launch, error = self.reads.launch, self.errors.get(view.buffer)
        found = None
        if error is not None:
            found = Launch(launch.node, {view.buffer: error}, launch.names).read(view, self.reads)
        uncertain = self.uncertain(view)
        if uncertain is None:
            return found
        return np.where(uncertain, inf, 0.0 if found is None else found)

    def uncertain(self, view: View) -> Mask | None:
        """Return where errors may make a view access another element; None for nowhere."""
        computed = [self.value(i).error for i in view.indices if not isinstance(i, Index)]
        masks = [e > 0 for e in computed if e is not None]
        return np.logical_or.reduce(masks) if masks else None


def _run_box(launch: Launch, errors: Errors, whole: Box) -> None:
    """Carry out the points of a box, whose serial dimensions have one value; stores come last."""
    node = launch.node
    stores = [(box, *_results(launch, errors, box)) for box in kept_boxes(launch, whole)]
    for box, found, where in stores:
        for view, (values, error) in zip(node.outputs, found, strict=True):
            array = launch.arrays[view.buffer]
            places = written_places(launch, view, Reads(launch, box), where)
            assign(array, places, values[where])
            put_error(errors, view.buffer, array, places, None if error is None else error[where])


def _results(launch: Launch, errors: Errors, kept: Box) -> tuple[list[Approximate], Mask]:
    """Return the finished values of a box of kept points, and which of them are stored."""
    node = launch.node
    combined = combined_at(launch, kept)
    bounds = _reduction_errors(launch, errors, kept)
    results = [Approximate(v, e) for v, e in zip(combined.values, bounds, strict=True)]
    reads = ApproximateReads(Reads(launch, kept, combined.values), errors, results)
    found = [r if f is None else reads.value(f) for f, r in zip(node.finish, results, strict=True)]
    return found, combined.present & launch.holds(node.written, kept)


def _reduction_errors(launch: Launch, errors: Errors, kept: Box) -> list[Error]:
    """Return the errors of what the points above a box of kept points combine to."""
    combiners = {o.combiner for o in launch.node.combine if o.combiner is not None}
    if not combiners:
        return [term.error for term in _terms(launch, errors, kept)[0]]
    families = [families_of(combiner) for combiner in combiners]
    if len(combiners) == 1 and families[0] is not None:
        return [*_gathered(launch, errors, kept, families[0])]
    return _in_steps(launch, errors, kept)


def families_of(combiner: Combiner) -> tuple[Family, ...] | None:
    """Return the families of an operator that combines each output on its own; None for others."""
    count, found = len(combiner.results), []
    for o, result in enumerate(combiner.results):
        match result:
            case Binary(op=op, left=Read(position=a), right=Read(position=b)) if {a, b} == {o, count + o}:
                found.append(family(op))
            case _:
                return None
    return tuple(found)


def _terms(launch: Launch, errors: Errors, box: Box) -> tuple[list[Approximate], Mask]:
    """Return the scalar functions on a box, and where the guard holds."""
    reads = ApproximateReads(Reads(launch, box), errors)
    return [reads.value(t) for t in launch.node.terms], launch.holds(launch.node.guard, box)


def _start(launch: Launch, errors: Errors, kept: Box) -> list[Approximate] | None:
    """Return what a reduction starts from where that is no neutral element; None where it starts from one."""
    if all(e is None for e in launch.node.initial):
        return None
    reads = ApproximateReads(Reads(launch, kept), errors)
    start = start_of(launch, kept)
    assert start is not None, launch.node.name
    pairs = zip(launch.node.initial, start.values, strict=True)
    return [Approximate(v, None) if e is None else reads.value(e) for e, v in pairs]


def _gathered(launch: Launch, errors: Errors, kept: Box, families: Sequence[Family]) -> Iterator[Floats]:
    """Yield the errors of each output of an operator whose channels combine in any order."""
    reduced_axes, scans = launch.dimensions(Order.POINTWISE), launch.dimensions(Order.PREFIX)
    totals: list[list[NDArray]] = [list(f.starts) for f in families]  # type: ignore[arg-type]
    width = max(1, prod(map(len, kept)))
    for chunk in chunks([launch.extents[k] for k in reduced_axes], width):
        at = dict(zip(reduced_axes, chunk, strict=True))
        terms, present = _terms(launch, errors, tuple(at.get(k, r) for k, r in enumerate(kept)))
        where = None if present.all() else present
        for total, own, term in zip(totals, families, terms, strict=True):
            for c, (function, channel) in enumerate(
                zip(own.functions, own.present(term, where), strict=True)
            ):
                total[c] = function(total[c], function.reduce(channel, axis=reduced_axes, keepdims=True))
    start = _start(launch, errors, kept)
    shape = tuple(map(len, kept))
    for o, (own, total) in enumerate(zip(families, totals, strict=True)):
        channels = [np.broadcast_to(c, shape) for c in total]
        for k in scans:
            channels = [f.accumulate(c, axis=k) for f, c in zip(own.functions, channels, strict=True)]
        if start is not None:
            first = own.present(start[o], _counts(launch, o, start[o]))
            channels = [f(c, value) for f, c, value in zip(own.functions, channels, first, strict=True)]
        yield own.bound(tuple(channels), launch.node.terms[o].type)


def _counts(launch: Launch, output: int, start: Approximate) -> Mask:
    """Return where a start is a term: the neutral element itself rounds nothing."""
    combiner = launch.outermost
    neutral = None if combiner is None else combiner.neutral[output]
    if neutral is None:
        return np.ones(np.shape(start.value), np.bool_)
    differs: Mask = start.value != constant(neutral, launch.node.terms[output].type)
    return differs if start.error is None else differs | (start.error > 0)


@dataclass(frozen=True, eq=False)
class _Points:
    """Values with errors, one per output, where ``present`` holds; all arrays have one shape."""

    terms: tuple[Approximate, ...]
    present: Mask

    @property
    def partial(self) -> Partial:
        """The values alone."""
        return Partial(tuple(t.value for t in self.terms), self.present)

    def mapped(self, function: Callable[[NDArray], NDArray]) -> _Points:
        """Return the same with all arrays changed."""
        terms = [Approximate(function(v), None if e is None else function(e)) for v, e in self.terms]
        return _Points(tuple(terms), function(self.present))


def _in_steps(launch: Launch, errors: Errors, kept: Box) -> list[Error]:
    """Return errors dimension after dimension; those that one operator reduces count as one."""
    reduced_axes, scans = launch.dimensions(Order.POINTWISE), launch.dimensions(Order.PREFIX)
    combiners = {o.combiner for o in launch.node.combine if o.combiner is not None}
    whole = tuple(range(launch.extents[k]) if k in reduced_axes else r for k, r in enumerate(kept))
    terms, present = _terms(launch, errors, whole)
    points = _Points(tuple(terms), present)
    outermost = launch.outermost
    assert outermost is not None, launch.node.name
    if len(combiners) == 1:
        points = points.mapped(lambda array: line(array, reduced_axes))
        points = _folded(outermost, points, 0, launch.names).mapped(
            lambda array: array.reshape(shape_of(kept))
        )
        for k in scans:
            points = _folded(outermost, points, k, launch.names, scan=True)
    else:
        for k in reversed(range(len(kept))):
            operator = launch.node.combine[k]
            if operator.combiner is not None:
                scan = operator.order is Order.PREFIX
                points = _folded(operator.combiner, points, k, launch.names, scan=scan)
    start = _start(launch, errors, kept)
    if start is not None:
        first = _Points(tuple(start), np.ones(shape_of(kept), np.bool_))
        points = _folded(outermost, _stacked(first, points), 0, launch.names).mapped(lambda array: array[0])
    return [term.error for term in points.terms]


def _stacked(first: _Points, second: _Points) -> _Points:
    """Return both along a new first axis."""
    terms = [
        Approximate(np.stack([a.value, b.value]), _along_both(np.stack, a, b))
        for a, b in zip(first.terms, second.terms, strict=True)
    ]
    return _Points(tuple(terms), np.stack([first.present, second.present]))


def _along_both(function: Callable[[list[NDArray]], NDArray], a: Approximate, b: Approximate) -> Error:
    if a.error is None and b.error is None:
        return None
    return function([np.zeros(np.shape(x.value)) if x.error is None else x.error for x in (a, b)])


def _folded(
    combiner: Combiner, points: _Points, axis: int, names: Mapping[str, int], *, scan: bool = False
) -> _Points:
    """Combine the points along an axis, which stays with length 1; all prefixes of them for a scan."""
    if points.present.shape[axis] == 0 and not scan:
        shape = tuple(1 if k == axis else n for k, n in enumerate(points.present.shape))
        empty = with_neutral(combiner, nothing(combiner, shape))
        return _Points(tuple(Approximate(v, None) for v in empty.values), empty.present)
    fold = scanned if scan else reduced
    result = fold(combiner, points.partial, axis, names)
    errors = _fold_errors(combiner, points, axis, names, scan=scan)
    return _Points(
        tuple(Approximate(v, e) for v, e in zip(result.values, errors, strict=True)), result.present
    )


def _fold_errors(
    combiner: Combiner, points: _Points, axis: int, names: Mapping[str, int], *, scan: bool
) -> Sequence[Error]:
    families = families_of(combiner)
    if families is not None:
        return [
            _channel_errors(own, term, points.present, axis, result.type, scan=scan)
            for own, term, result in zip(families, points.terms, combiner.results, strict=True)
        ]
    inexact = any(map(has_rounding, combiner.results))
    if not inexact and all(term.error is None for term in points.terms):
        return [None] * len(points.terms)
    if all(map(_is_polynomial, combiner.results)):
        return _majorant_errors(combiner, points, axis, names, scan=scan)
    if not inexact:
        return _selection_errors(combiner, points, axis, names, scan=scan)
    shape = list(points.present.shape)
    shape[axis] = shape[axis] if scan else 1
    return [np.full(shape, inf)] * len(points.terms)


def _channel_errors(
    own: Family, term: Approximate, present: Mask, axis: int, kind: ElementType, *, scan: bool
) -> Error:
    pairs = zip(own.functions, own.present(term, present), strict=True)
    if scan:
        return own.bound(tuple(f.accumulate(c, axis=axis) for f, c in pairs), kind)
    return own.bound(tuple(f.reduce(c, axis=axis, keepdims=True) for f, c in pairs), kind)


_POLYNOMIAL = frozenset(
    {BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MULTIPLY, BinaryOp.MAXIMUM, BinaryOp.MINIMUM}
)


def _is_polynomial(expression: Expression) -> bool:
    """Return whether an expression has sums, differences, products and extremes only."""
    return all(
        isinstance(part, Read | Constant)
        or (isinstance(part, Unary) and part.op is UnaryOp.NEGATE)
        or (isinstance(part, Binary) and part.op in _POLYNOMIAL)
        for part in walk(expression)
    )


def _majorant_errors(
    combiner: Combiner, points: _Points, axis: int, names: Mapping[str, int], *, scan: bool
) -> list[Error]:
    """Return the errors of sums of products: those of the operator on absolute values.

    A term goes through at most ``depth`` roundings of each of the n - 1 operators.
    """
    positive = _on_sizes(combiner)
    fold = scanned if scan else reduced
    sizes = fold(positive, Partial(tuple(size(t.value) for t in points.terms), points.present), axis, names)
    most = fold(positive, Partial(tuple(map(magnitude, points.terms)), points.present), axis, names)
    counted = points.present.astype(np.float64)
    count = np.add.accumulate(counted, axis=axis) if scan else counted.sum(axis=axis, keepdims=True)
    steps = np.maximum(count - 1, 0) * max(map(_depth, combiner.results))
    found: list[Error] = []
    for small, large, result in zip(sizes.values, most.values, combiner.results, strict=True):
        growth = np.expm1(steps * np.log1p(epsilon(result.type)))
        bound = growth * large + (large - small)
        found.append(np.where(np.isnan(bound), inf, bound))
    return found


def _on_sizes(combiner: Combiner) -> Combiner:
    """Return an operator for absolute values: differences become sums, the smaller of two the larger."""

    def positive(part: Expression) -> Expression | None:
        match part:
            case Constant(value=value):
                return Constant(abs(value), ElementType.FLOAT64)
            case Unary(operand=a):
                return rebuilt(a, positive)
            case Binary(op=BinaryOp.SUBTRACT, left=a, right=b):
                return Binary(BinaryOp.ADD, rebuilt(a, positive), rebuilt(b, positive))
            case Binary(op=BinaryOp.MINIMUM, left=a, right=b):
                return Binary(BinaryOp.MAXIMUM, rebuilt(a, positive), rebuilt(b, positive))
            case _:
                return None

    neutral = tuple(None if n is None or abs(n) == inf else abs(n) for n in combiner.neutral)
    results = tuple(rebuilt(result, positive) for result in combiner.results)
    return replace(combiner, name=f"{combiner.name} of sizes", results=results, neutral=neutral)


def _depth(expression: Expression) -> int:
    """Return how many roundings a value goes through at most."""
    return int(rounds(expression)) + max(map(_depth, children(expression)), default=0)


def _selection_errors(
    combiner: Combiner, points: _Points, axis: int, names: Mapping[str, int], *, scan: bool
) -> list[Error]:
    """Return the errors of what an operator without rounding selects, in pairs or prefix after prefix."""
    length = points.present.shape[axis]
    if scan:
        steps = [_part(points, slice(0, 1), axis)]
        for k in range(1, length):
            steps.append(_selected_of(combiner, steps[-1], _part(points, slice(k, k + 1), axis), names))
        found = steps[0]
        for step in steps[1:]:
            found = _appended(found, step, axis)
        return [term.error for term in found.terms]
    while length > 1:
        even = length // 2 * 2
        left, right = _part(points, slice(0, even, 2), axis), _part(points, slice(1, even, 2), axis)
        rest = _part(points, slice(even, length), axis)
        pairs = _selected_of(combiner, left, right, names)
        points = _appended(pairs, rest, axis) if even < length else pairs
        length = points.present.shape[axis]
    return [term.error for term in points.terms]


def _part(points: _Points, part: slice, axis: int) -> _Points:
    where = (*(slice(None),) * axis, part)
    return points.mapped(lambda array: array[where])


def _appended(first: _Points, second: _Points, axis: int) -> _Points:
    def joined(arrays: list[NDArray]) -> NDArray:
        return np.concatenate(arrays, axis=axis)

    terms = [
        Approximate(joined([a.value, b.value]), _along_both(joined, a, b))
        for a, b in zip(first.terms, second.terms, strict=True)
    ]
    return _Points(tuple(terms), joined([first.present, second.present]))


def _selected_of(combiner: Combiner, left: _Points, right: _Points, names: Mapping[str, int]) -> _Points:
    both = left.present & right.present
    reads = [*left.terms, *right.terms]
    found = []
    for result, a, b in zip(combiner.results, left.terms, right.terms, strict=True):
        one = approximate(result, reads, no_iterators, names)
        zero = np.zeros(both.shape)
        joint, left_error, right_error = (zero if x.error is None else x.error for x in (one, a, b))
        alone = np.where(left.present, a.value, b.value), np.where(left.present, left_error, right_error)
        found.append(Approximate(np.where(both, one.value, alone[0]), np.where(both, joint, alone[1])))
    return _Points(tuple(found), left.present | right.present)


def _scatter(launch: Launch, errors: Errors, box: Box) -> None:
    """Carry out points that meet in an element; an element in doubt makes all of its buffer unknown."""
    access = in_place(launch)
    if access is not None:
        bound = _in_place_errors(launch, errors, access, box)
        scatter(launch, box)
        errors[access.buffer] = bound if bound.any() else None
        return
    node = launch.node
    terms, present = _terms(launch, errors, box)
    where = present & launch.holds(node.written, box)
    reads = ApproximateReads(Reads(launch, box), errors)
    places = [written_places(launch, view, reads.reads, where) for view in node.outputs]
    uncertain_places = [reads.uncertain(view) for view in node.outputs]
    found: list[Error] = [None] * len(terms)
    first = np.zeros(0, np.int64)
    if where.any():
        first, group = groups(places[0], launch.arrays[node.outputs[0].buffer].shape)
        found = _meeting(launch, errors, [_only(t, where) for t in terms], box, where, first, group)
    scatter(launch, box)
    for view, place, uncertain, error in zip(node.outputs, places, uncertain_places, found, strict=True):
        array = launch.arrays[view.buffer]
        if uncertain is not None and (uncertain & where).any():
            errors[view.buffer] = np.full(array.shape, inf)
        else:
            put_error(errors, view.buffer, array, tuple(p[first] for p in place), error)


def _in_place_errors(launch: Launch, errors: Errors, access: View, whole: Box) -> Floats:
    """Return the error of each element of an output into which points are combined, before they are."""
    combiner, array = launch.outermost, launch.arrays[access.buffer]
    families = None if combiner is None else families_of(combiner)
    assert families is not None, launch.node.name
    (own,) = families
    start = Approximate(array, errors.get(access.buffer))
    channels = [np.array(c) for c in own.present(start, _counts(launch, 0, start))]
    for step in write_steps(access, whole):
        (term,), present = _terms(launch, errors, step.box)
        run = () if step.run is None else (step.run,)
        where = some_present(Partial((), present), run)
        for channel, function, values in zip(
            channels, own.functions, own.present(term, present), strict=True
        ):
            target = Launch(launch.node, {access.buffer: channel}, launch.names)
            before = target.read(launch.node.outputs[0], Reads(target, step.written))
            after = function(before, function.reduce(values, axis=run, keepdims=True))
            store(target, launch.node.outputs[0], step.written, after, where)
    return own.bound(tuple(channels), launch.node.terms[0].type)


def _only(term: Approximate, where: Mask) -> Approximate:
    return Approximate(term.value[where], None if term.error is None else term.error[where])


def _meeting(
    launch: Launch,
    errors: Errors,
    terms: Sequence[Approximate],
    box: Box,
    where: Mask,
    first: NDArray,
    group: NDArray,
) -> list[Error]:
    """Return the error of each element in which points meet."""
    node, combiner = launch.node, launch.outermost
    families = families_of(combiner) if combiner is not None else (family(BinaryOp.MAXIMUM),) * len(terms)
    finishes = any(f is not None for f in node.finish)
    if families is None or finishes:
        return [np.full(first.size, inf)] * len(terms)
    start = None if combiner is None else _start_at(launch, errors, box, where, first)
    found: list[Error] = []
    for o, (own, term) in enumerate(zip(families, terms, strict=True)):
        channels = [np.full(first.size, neutral) for neutral in own.starts]
        if start is not None:
            channels = [np.array(c) for c in own.terms(start[o])]
        for function, channel, values in zip(own.functions, channels, own.terms(term), strict=True):
            function.at(channel, group, values)
        found.append(own.bound(tuple(channels), node.terms[o].type))
    return found


def _start_at(
    launch: Launch, errors: Errors, box: Box, where: Mask, first: NDArray
) -> list[Approximate] | None:
    """Return what each element starts from, at the first of its points."""
    start = _start(launch, errors, box)
    return None if start is None else [_only(_only(s, where), first) for s in start]
