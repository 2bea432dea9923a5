"""An md_hom as loops over its points, the form that all passes start from.

    for i from 0 to m:
      for j from i to n:                 # where `written` is j >= i
        float32 total in registers
        total = 0.0
        for k from 0 to 512:
          total = total + A[i, k] * B[k, j]    # S(i, j, k)
        C[i, j] = total

Conditions that are linear are bounds of loops; others stand around what they hold for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyloom.ir.expressions import Compare, CompareOp, Constant, Select
from polyloom.ir.host import Combiner
from polyloom.ir.inequalities import conjunction
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.tiles.context import Tiles, here
from polyloom.mdh.lowering.tiles.points import Placing, Points, computed, loaded
from polyloom.mdh.lowering.tiles.strips import strip_of
from polyloom.mdh.tree.nodes import (
    ZERO,
    Array,
    Code,
    Compute,
    For,
    If,
    Let,
    Load,
    Space,
    Statement,
    Store,
    Totals,
    counted,
)
from polyloom.mdh.tree.ranges import limited, times
from polyloom.polyhedra.loops.tree import Instance, IntExpression, Name, Number, Operation

FLAG = ElementType.INT32


def naive_loops(tiles: Tiles) -> Code:
    """Return loops over the kept points, and inside each over the points that are combined into it.

    Keeps true: each point of the guarded domain is combined exactly once, in the order of the loops.
    """
    points = Points(tiles.hom, tiles.buffers, here(tiles), written=not tiles.domain.written)
    body = _mapped(tiles, points) if tiles.combiner is None else _reduced(tiles, points, tiles.combiner)
    for d in reversed(tiles.kept):
        body = (_loop(tiles, d, body),)
    for d in reversed(tiles.parts):
        body = (counted(tiles.part(d), tiles.facts.groups(d), body),)
    return body


def _loop(tiles: Tiles, d: int, body: Code) -> For:
    loop = counted(tiles.point(d), tiles.hom.extents[d], body)
    if d in tiles.parts:
        loop = strip_of(tiles, d, loop, times(tiles.schedule.group[d], Name(tiles.part(d))))
    for bound in tiles.domain.bounds.get(d, ()):
        loop = limited(loop, bound)
    return loop


def _where(conditions: tuple[IntExpression, ...], body: Code) -> Code:
    condition = conjunction(conditions)
    return body if condition is None else (If(condition, body),)


def _instance(tiles: Tiles, o: int) -> Instance | None:
    return Instance(tiles.statements[o], here(tiles)) if tiles.statements else None


# A map


def _mapped(tiles: Tiles, points: Points) -> Code:
    hom = tiles.hom
    values = [points.value(term) for term in hom.terms]
    steps: list[Statement] = []
    if len(values) > 1 or hom.finish[0] is not None:
        names = [tiles.array("value", o) for o in range(len(values))]
        steps = [_register(name, value.type) for name, value in zip(names, values, strict=True)]
        for o, (name, value) in enumerate(zip(names, values, strict=True)):
            steps.append(Store(name, (), value, _instance(tiles, o)))
        values = [loaded(Load(name), value.type) for name, value in zip(names, values, strict=True)]
        return _where(tiles.domain.written, (*steps, *finishing(tiles, points, values)))
    (view,), (value,) = hom.outputs, values
    store = Store(view.buffer, points.subscripts(view), value, _instance(tiles, 0))
    return _where(tiles.domain.written, (store,))


def finishing(tiles: Tiles, points: Points, values: Sequence[Compute]) -> Code:
    """Return the stores of finished values; all are worked out before the first store."""
    hom, steps, found = tiles.hom, [], []
    results = [value.loads[0] for value in values]
    for o, (value, finish) in enumerate(zip(values, hom.finish, strict=True)):
        finished = value if finish is None else points.value(finish, results)
        if finish is not None and len(values) > 1:
            name = tiles.array("finished", o)
            steps.append(Let(name, finished))
            finished = loaded(Load(name), finished.type)
        found.append(finished)
    stores = (
        Store(view.buffer, points.subscripts(view), value)
        for view, value in zip(hom.outputs, found, strict=True)
    )
    return (*steps, *stores)


# A reduction


def totals(tiles: Tiles) -> tuple[str, ...]:
    """Return the names of the arrays that hold what was combined so far, the flag last where there is one."""
    found = tuple(tiles.array("total", o) for o in range(len(tiles.hom.outputs)))
    return (*found, tiles.names.of(("started",), "started")) if tiles.has_flags else found


def total_types(tiles: Tiles) -> tuple[ElementType, ...]:
    """Return the types of those arrays."""
    assert tiles.combiner is not None
    found = tuple(result.type for result in tiles.combiner.results)
    return (*found, FLAG) if tiles.has_flags else found


def _register(name: str, kind: ElementType) -> Array:
    return Array(name=name, type=kind, shape=(), space=Space.REGISTER)


def nothing(tiles: Tiles) -> tuple[Compute, ...]:
    """Return the total of no points: neutral elements, or 0 with a flag that is 0."""
    assert tiles.combiner is not None
    neutral = [*tiles.combiner.neutral, *([0] if tiles.has_flags else [])]
    pairs = zip(neutral, total_types(tiles), strict=True)
    return tuple(Compute(Constant(0 if value is None else value, kind)) for value, kind in pairs)


def partial_totals(tiles: Tiles) -> tuple[Totals, ...]:
    """Return what elements of arrays of totals are, the flag last where there is one."""
    assert tiles.combiner is not None
    alone = len(tiles.combiner.results) == 1 and not tiles.has_flags
    values = [
        Totals(result if alone else None, neutral)
        for result, neutral in zip(tiles.combiner.results, tiles.combiner.neutral, strict=True)
    ]
    return (*values, Totals(None, 0, is_flag=True)) if tiles.has_flags else tuple(values)


def _reduced(tiles: Tiles, points: Points, combiner: Combiner) -> Code:
    names, kinds = totals(tiles), total_types(tiles)
    declared = tuple(
        replace(_register(name, kind), totals=replace(totals, parts=False))
        for name, kind, totals in zip(names, kinds, partial_totals(tiles), strict=True)
    )
    empty = tuple(Store(name, (), value) for name, value in zip(names, nothing(tiles), strict=True))
    loops = _where(tiles.domain.guard, _step(tiles, points, combiner))
    for d in reversed(tiles.reduced):
        loops = (_loop(tiles, d, loops),)
    loops = _where(tiles.domain.empty, loops)
    return (*declared, *empty, *loops, *results(tiles, points, combiner))


def _held(names: Sequence[str], kinds: Sequence[ElementType]) -> list[Compute]:
    return [loaded(Load(name), kind) for name, kind in zip(names, kinds, strict=True)]


def _step(tiles: Tiles, points: Points, combiner: Combiner) -> Code:
    """Combine the terms of a point into the totals."""
    names, kinds = totals(tiles), total_types(tiles)
    terms = [points.value(term) for term in tiles.hom.terms]
    if len(terms) == 1 and not tiles.has_flags:
        (value,) = points.combined(combiner, _held(names, kinds), terms)
        return (Store(names[0], (), value, _instance(tiles, 0)),)
    steps: list[Statement] = []
    for o, term in enumerate(terms):
        name = tiles.array("term", o)
        steps += [_register(name, term.type), Store(name, (), term, _instance(tiles, o))]
        terms[o] = loaded(Load(name), term.type)
    return (*steps, *merged(tiles, points, combiner, names, terms))


def merged(
    tiles: Tiles, points: Points, combiner: Combiner, names: Sequence[str], right: Sequence[Compute]
) -> Code:
    """Combine values into totals, on their right, and count them as something."""
    held = _held(names, total_types(tiles))
    count = len(combiner.results)
    values = list(points.combined(combiner, held[:count], right))
    if tiles.has_flags:
        values = [chosen(held[-1], a, b) for a, b in zip(values, right, strict=True)]
    started = [Store(names[-1], (), Compute(Constant(1, FLAG)))] if tiles.has_flags else []
    return (*_together(tiles, names, values), *started)


def taken_up(
    tiles: Tiles, names: Sequence[str], others: Sequence[Load], into: Sequence[str] | None = None
) -> Code:
    """Combine other totals into totals, on their right, where there is anything in them.

    ``into``: totals that these are stored as, in place of their own.
    """
    assert tiles.combiner is not None
    kinds, count = total_types(tiles), len(tiles.combiner.results)
    points, held = Points(tiles.hom, tiles.buffers, here(tiles)), _held(names, kinds)
    right = [loaded(load, kind) for load, kind in zip(others, kinds, strict=True)]
    values = list(points.combined(tiles.combiner, held[:count], right[:count]))
    if tiles.has_flags:
        values = [chosen(held[-1], a, b) for a, b in zip(values, right, strict=False)]
        values = [chosen(right[-1], a, b) for a, b in zip(values, held, strict=False)]
        values.append(chosen(held[-1], held[-1], right[-1]))
    return _together(tiles, names if into is None else into, values)


def _together(tiles: Tiles, names: Sequence[str], values: Sequence[Compute]) -> Code:
    """Store values that are all worked out before the first one is stored."""
    if len(values) == 1:
        return (Store(names[0], (), values[0]),)
    steps = [(tiles.names.of(("next", o), f"next_{o}"), value) for o, value in enumerate(values)]
    stores = (Store(a, (), loaded(Load(name), v.type)) for a, (name, v) in zip(names, steps, strict=False))
    return (*(Let(name, value) for name, value in steps), *stores)


def chosen(flag: Compute, then: Compute, otherwise: Compute) -> Compute:
    """Return ``flag != 0 ? then : otherwise``."""

    def function(placed: Placing) -> Select:
        is_set = Compare(CompareOp.NE, placed(flag), Constant(0, FLAG))
        return Select(is_set, placed(then), placed(otherwise))

    return computed(function)


def results(tiles: Tiles, points: Points, combiner: Combiner) -> Code:
    """Put initial values on the left of totals, finish and store them."""
    names, kinds, hom = totals(tiles), total_types(tiles), tiles.hom
    held, count = _held(names, kinds), len(combiner.results)
    if all(e is None for e in hom.initial):
        stores = _where(tiles.domain.written, finishing(tiles, points, held[:count]))
        return _started(tiles, held[-1], stores)
    before = [n if e is None else points.value(e) for e, n in zip(hom.initial, nothing(tiles), strict=False)]
    values = points.combined(combiner, before, held[:count])
    if tiles.has_flags:
        values = tuple(chosen(held[-1], a, b) for a, b in zip(values, before, strict=True))
    body = (*_together(tiles, names, values), *finishing(tiles, points, held[:count]))
    return _where(tiles.domain.written, body)


def _started(tiles: Tiles, flag: Compute, stores: Code) -> Code:
    """Store only where something was combined, if there may be nothing."""
    if not tiles.has_flags:
        return stores
    if tiles.hom.guard is None:
        lengths = [tiles.hom.extents[d] for d in tiles.reduced]
        some = tuple(Operation("<", (ZERO, n)) for n in lengths if not isinstance(n, Number) or not n.value)
        return _where(some, stores)
    is_set = computed(lambda placed: Compare(CompareOp.NE, placed(flag), Constant(0, FLAG)))
    return (If(is_set, stores),)
