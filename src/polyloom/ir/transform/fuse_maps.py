"""Maps as parts of the md_homs beside them: what those start from, what ends them, what they combine.

``C[i][j] = beta * C[i][j]`` before ``C[i][j] += ...``: one md_hom whose initial value is ``beta * C[i][j]``.
``mean[j] = mean[j] / n`` after a sum: its finishing map. A map of all points before a reduction: part of
its terms. Which pairs may come together is for the caller to know: nothing between them may touch what
they pass.

Source: md_poly, Sec. 3.2.2, footnote 1 (the initialisation that the formula leaves out). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from types import MappingProxyType

from polyloom.ir.expressions import Expression, Read
from polyloom.ir.expressions import Iterator as Position
from polyloom.ir.host import Index, MdHom, Order, View, expressions_of, uses
from polyloom.ir.rebuild import Leaf, read_positions, with_leaves, with_reads, with_value
from polyloom.polyhedra.loops.tree import IntExpression, Name, replace_name


def with_initial(a: MdHom, b: MdHom, passing: frozenset[str]) -> MdHom | None:
    """Return ``b`` started from what the map ``a`` computes; None where that is not the same."""
    given = a.outputs[0]
    if combined_dimensions(a) or not combined_dimensions(b) or len(a.outputs) != 1:
        return None
    if any(v.buffer == given.buffer for v in a.inputs if v != given):
        return None
    if any(v.buffer in {o.buffer for o in b.outputs} - {given.buffer} for v in a.inputs):
        return None
    started = [o for o, start in enumerate(b.initial) if isinstance(start, Read) and _of(b, start, given)]
    places = [k for k, v in enumerate(b.inputs) if v.buffer == given.buffer]
    if len(started) != 1 or len(places) != 1:
        return None
    if not _replaces(b, started[0], places[0], passing):
        return None
    permutation = _permutation_between(a, given, b, b.inputs[places[0]])
    others = replace(b, initial=tuple(None if o == started[0] else e for o, e in enumerate(b.initial)))
    if permutation is None or places[0] in _read_places(others):
        return None
    if permuted_condition(a.written, a, b, permutation) != b.written:
        return None
    inputs, moved = with_inputs_of(b.inputs, a, b, permutation, {})
    initial = tuple(moved(a.terms[0]) if o == started[0] else e for o, e in enumerate(b.initial))
    return without_unread_inputs(replace(_with_room(b, len(inputs)), inputs=inputs, initial=initial))


def _with_room(node: MdHom, inputs: int) -> MdHom:
    """Let the finishing maps find the results behind so many inputs."""
    more = inputs - len(node.inputs)

    def place(position: int) -> int:
        return position if position < len(node.inputs) else position + more

    return replace(node, finish=tuple(None if f is None else with_reads(f, place) for f in node.finish))


def _of(b: MdHom, start: Read, given: View) -> bool:
    return b.inputs[start.position].buffer == given.buffer


def _replaces(b: MdHom, output: int, start: int, passing: frozenset[str]) -> bool:
    """Whether ``b`` writes every element that it starts from, or nobody asks for those again.

    A scan ``s[j] = s[j - 1] + a[j]`` starts from ``s[0]``, which it does not write.
    """
    return b.outputs[output] == b.inputs[start] or b.inputs[start].buffer in passing


def _read_places(b: MdHom) -> tuple[int, ...]:
    """Return which inputs, and results behind them, anything but combine operators reads."""
    return read_positions(*expressions_of(replace(b, combine=())))


def with_finish(a: MdHom, b: MdHom, passing: frozenset[str]) -> MdHom | None:
    """Return ``a`` finished by the map ``b``; None where that is not the same."""
    passed = a.outputs[0]
    if combined_dimensions(b) or len(a.outputs) != 1:
        return None
    reading = [k for k, v in enumerate(b.inputs) if v.buffer == passed.buffer]
    target = b.outputs[0]
    if len({b.inputs[k] for k in reading}) != 1:
        return None
    if target != b.inputs[reading[0]] and passed.buffer not in passing:
        return None
    if any(v.buffer == target.buffer for v in b.inputs if v != target):
        return None
    if target.buffer != passed.buffer and target.buffer in uses([a]).all:
        return None
    if combined_dimensions(a) and _is_place(b, reading):
        return None
    permutation = _permutation_between(b, b.inputs[reading[0]], a, passed)
    if (
        permutation is None
        or not _is_affine(target)
        or permuted_condition(b.written, b, a, permutation) != a.written
    ):
        return None
    return _finished(a, b, permutation, reading)


def _is_affine(view: View) -> bool:
    return all(isinstance(i, Index) for i in view.indices)


def _is_place(b: MdHom, inputs: Sequence[int]) -> bool:
    """Whether some of the inputs say where others are read: those are read before anything is combined."""
    computed = [i for view in b.inputs for i in view.indices if not isinstance(i, Index)]
    return any(k in read_positions(e) for e in computed for k in inputs)


MAXIMUM_PERMUTED = 6
"""Up to so many dimensions are tried in every order."""

Reads = Mapping[int, Expression | int]
"""What becomes of inputs: values, or inputs at other positions."""

_RESULT = -1
"""The position of the combined value until the number of inputs is known."""


def with_term(a: MdHom, b: MdHom, passing: frozenset[str]) -> MdHom | None:
    """Return ``b`` with what the map ``a`` computes at each point as part of its terms; None where it cannot.

    Before: ``s[i][j] = f(x[i], y[j])`` as a map, then the largest ``s[i][j]`` of each row. After: the largest
    ``f(x[i], y[j])`` of each row; there is no ``s``.
    """
    given = a.outputs[0]
    places = [k for k, v in enumerate(b.inputs) if v.buffer == given.buffer]
    if combined_dimensions(a) or len(a.outputs) != 1 or len(places) != 1 or given.buffer not in passing:
        return None
    touched = {v.buffer for v in a.inputs} & {v.buffer for v in b.outputs}
    permutation = _permutation_between(a, given, b, b.inputs[places[0]], tuple(range(len(b.extents))))
    if touched or permutation is None or places[0] in _read_places(replace(b, terms=())):
        return None
    if a.guard is not None and permuted_condition(a.guard, a, b, permutation) != b.guard:
        return None
    inputs, moved = with_inputs_of(b.inputs, a, b, permutation, {})
    term = moved(a.terms[0])
    terms = tuple(with_value(t, places[0], term) for t in b.terms)
    return without_unread_inputs(replace(_with_room(b, len(inputs)), inputs=inputs, terms=terms))


def _finished(a: MdHom, b: MdHom, permutation: Mapping[int, int], reading: Sequence[int]) -> MdHom:
    reduces = bool(combined_dimensions(a))
    before = a.finish[0] or Read(len(a.inputs), a.terms[0].type)
    result = _moved_result(before, len(a.inputs), _RESULT) if reduces else a.terms[0]
    inputs, moved = with_inputs_of(a.inputs, b, a, permutation, dict.fromkeys(reading, result))
    value = _moved_result(moved(b.terms[0]), _RESULT, len(inputs))
    made = replace(a, inputs=inputs, outputs=(_permuted_view(b.outputs[0], a, permutation),))
    return without_unread_inputs(replace(made, finish=(value,)) if reduces else replace(made, terms=(value,)))


def _moved_result(value: Expression, before: int, after: int) -> Expression:
    """Give reads of one position another one."""
    return with_reads(value, lambda position: after if position == before else position)


def combined_dimensions(node: MdHom) -> tuple[int, ...]:
    """Return the dimensions that are not kept."""
    return tuple(k for k, c in enumerate(node.combine) if c.order is not Order.CONCATENATE)


def _permutation_between(
    a: MdHom, given: View, b: MdHom, wanted: View, among: tuple[int, ...] | None = None
) -> dict[int, int] | None:
    """Return for each dimension of ``a`` the one of ``b`` that makes the views the same.

    ``among``: the dimensions of ``b`` to choose from, each of which is taken; None: the kept ones.
    """
    reduced = combined_dimensions(b)
    kept = [k for k in range(len(b.extents)) if k not in reduced] if among is None else list(among)
    if len(kept) != len(a.extents) or not _is_affine(given):
        return None
    for order in permutations(kept) if len(kept) <= MAXIMUM_PERMUTED else [tuple(kept)]:
        permutation = dict(enumerate(order))
        same = all(a.extents[k] == b.extents[j] for k, j in permutation.items())
        if same and _permuted_view(given, b, permutation) == wanted:
            return permutation
    return None


def _permuted_view(
    view: View, b: MdHom, permutation: Mapping[int, int], reads: Reads = MappingProxyType({})
) -> View:
    return View(
        view.buffer, tuple(_permuted_index(i, b, permutation, reads) for i in view.indices), view.span
    )


def _permuted_index(
    index: Index | Expression, b: MdHom, permutation: Mapping[int, int], reads: Reads
) -> Index | Expression:
    if not isinstance(index, Index):
        return _permuted(index, permutation, reads)
    coefficients = [0] * len(b.extents)
    for k, coefficient in enumerate(index.coefficients):
        coefficients[permutation[k]] = coefficient
    return Index(tuple(coefficients), index.offset)


def permuted_condition(
    value: IntExpression | None, a: MdHom, b: MdHom, permutation: Mapping[int, int]
) -> IntExpression | None:
    """Return a condition over the iterators of ``a`` as one over those of ``b``."""
    if value is None:
        return None
    for k, name in enumerate(a.iterators):
        value = replace_name(value, name, Name(f"{b.iterators[permutation[k]]}'"))
    for k in permutation.values():
        value = replace_name(value, f"{b.iterators[k]}'", Name(b.iterators[k]))
    return value


def _permuted(value: Expression, permutation: Mapping[int, int], reads: Reads) -> Expression:
    def leaf(part: Leaf) -> Expression:
        match part:
            case Position(dimension=k, type=type_):
                return Position(permutation[k], type_)
            case Read(position=p, type=type_) if p in reads:
                found = reads[p]
                return Read(found, type_) if isinstance(found, int) else found
            case _:
                return part

    return with_leaves(value, leaf)


Moved = Callable[[Expression], Expression]
"""Moves expressions of one md_hom to the iterators and inputs of another."""


def with_inputs_of(
    inputs: tuple[View, ...],
    a: MdHom,
    b: MdHom,
    permutation: Mapping[int, int],
    given: Mapping[int, Expression],
) -> tuple[tuple[View, ...], Moved]:
    """Return the inputs with those of ``a`` added, and what moves its expressions there."""
    views: dict[View, int] = {}
    for k, view in enumerate(inputs):
        views.setdefault(view, k)
    found = list(inputs)
    reads: dict[int, Expression | int] = dict(given)

    def add(k: int) -> None:
        for place in (p for i in a.inputs[k].indices if not isinstance(i, Index) for p in read_positions(i)):
            if place not in reads:
                add(place)
        permuted = _permuted_view(a.inputs[k], b, permutation, reads)
        if permuted not in views:
            views[permuted] = len(found)
            found.append(permuted)
        reads[k] = views[permuted]

    for k in range(len(a.inputs)):
        if k not in reads:
            add(k)
    return tuple(found), partial(_permuted, permutation=permutation, reads=reads)


def without_unread_inputs(node: MdHom) -> MdHom:
    """Drop inputs that nothing reads."""
    kept = [k for k in _read_places(node) if k < len(node.inputs)]
    moved = {k: j for j, k in enumerate(kept)}
    count = len(node.inputs)

    def renumbered(value: Expression) -> Expression:
        return with_reads(value, lambda p: moved[p] if p < count else p - count + len(kept))

    def view_of(view: View) -> View:
        indices = tuple(i if isinstance(i, Index) else renumbered(i) for i in view.indices)
        return View(view.buffer, indices, view.span)

    return replace(
        node,
        inputs=tuple(view_of(node.inputs[k]) for k in kept),
        outputs=tuple(view_of(v) for v in node.outputs),
        terms=tuple(renumbered(t) for t in node.terms),
        initial=tuple(None if e is None else renumbered(e) for e in node.initial),
        finish=tuple(None if e is None else renumbered(e) for e in node.finish),
    )
