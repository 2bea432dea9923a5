"""Reductions and scans by plainer terms, where the order of floats is free.

    largest of (a[i] < 0 ? -a[i] : a[i])    ->    largest of |a[i]|
    s_i = s + c + .. + c (i + 1 times)      ->    s_i = s + (i + 1) c, a map
    largest of (x ? i : lowest)             ->    the same of integers of 32 bits, where i has no more
    product of (1 + a[i] / 300)             ->    product of (1 + a[i] * (1.0 / 300))
    place of the first largest a[i]         ->    the least place of the largest ones, in any order
    place of the last largest a[i]          ->    the largest place of them, likewise

Of zeros of both signs a reduction keeps any, so it does not matter which one a size is. A sum of equal terms
by one product is rounded twice, however many terms there are. A quotient by what is known that only enters
sums and products of the terms is off by at most another unit in the last place as a product with the
reciprocal (``rounding.QUOTIENT``), unless that is no normal number; divisions take five to eight times as
long. Where nothing is summed up, or a comparison asks for it, a quotient has the bits of C.

Not in the papers; the second is the strength reduction of induction variables backwards.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.conditions import Range
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Iterator,
    Read,
    Select,
    Unary,
    UnaryOp,
)
from polyloom.ir.host import CombineOperator, HostNode, HostProgram, MdHom, Order
from polyloom.ir.rebuild import rebuilt, with_value
from polyloom.ir.types import ElementType
from polyloom.ir.value_ranges import ValueRanges, fits, range_of_type
from polyloom.polyhedra.loops.tree import with_leaves

_NARROW, _WIDE = ElementType.INT32, ElementType.INT64
_STRICT = {CompareOp.GE: CompareOp.GT, CompareOp.LE: CompareOp.LT}
_AS_GOOD = {strict: op for op, strict in _STRICT.items()}
_BELOW, _ABOVE = (CompareOp.LT, CompareOp.LE), (CompareOp.GT, CompareOp.GE)


def plainer_reductions(program: HostProgram) -> HostProgram:
    """Return the program with plainer terms of reductions and scans; not of ``--fp strict``."""
    if program.strict:
        return program
    sizes = {p.name: range_of_type(p.type) for p in program.parameters}
    body = with_leaves(program.body, lambda node: _node(node, sizes))
    return program if body == program.body else replace(program, body=body)


def _node(node: HostNode, sizes: Mapping[str, Range]) -> tuple[HostNode, ...]:
    if not isinstance(node, MdHom):
        return (node,)
    return (_commuting(_with_reciprocals(_narrow_places(_without_equal_terms(_of_sizes(node)))), sizes),)


def _of_sizes(hom: MdHom) -> MdHom:
    """Return a reduction to the largest or the least value with absolute values as terms."""
    if not any(o.order is Order.POINTWISE for o in hom.combine):
        return hom
    terms = tuple(_sized(t) if _is_extreme(hom, o) else t for o, t in enumerate(hom.terms))
    return hom if terms == hom.terms else replace(hom, terms=terms)


def _is_extreme(hom: MdHom, output: int) -> bool:
    """Whether an output is the larger or smaller one of what is combined, and nothing else depends on it."""
    if len(hom.outputs) != 1:
        return False
    combiners = [o.combiner for o in hom.combine if o.combiner is not None]
    both = {Read(output, hom.terms[output].type), Read(1 + output, hom.terms[output].type)}
    for combiner in combiners:
        match combiner.results[output]:
            case Binary(op=BinaryOp.MAXIMUM | BinaryOp.MINIMUM, left=a, right=b) if {a, b} == both:
                pass
            case Select(condition=Compare(op=op, left=c, right=d), then=a, otherwise=b) if (
                op in (*_BELOW, *_ABOVE) and {a, b} == {c, d} == both
            ):
                pass
            case _:
                return False
    return bool(combiners)


def _sized(term: Expression) -> Expression:
    """Return a term in which a number without its sign is an absolute value."""

    def size(part: Expression) -> Expression | None:
        match part:
            case Select(condition=Compare(op=op, left=x, right=Constant(value=0)), then=a, otherwise=b) if (
                x.type.is_float
            ):
                negated = Unary(UnaryOp.NEGATE, x)
                below, above = (a, b) if op in _BELOW else (b, a) if op in _ABOVE else (x, x)
                return Unary(UnaryOp.ABS, x) if (below, above) == (negated, x) else None
            case _:
                return None

    return rebuilt(term, size)


def _without_equal_terms(hom: MdHom) -> MdHom:
    """Return a sum of one term over and over that each point keeps as a map."""
    scanned = [d for d, o in enumerate(hom.combine) if o.order is Order.PREFIX]
    others = {o.order for o in hom.combine} - {Order.PREFIX, Order.CONCATENATE}
    if (
        len(scanned) != 1
        or others
        or len(hom.outputs) != 1
        or hom.guard is not None
        or hom.written is not None
    ):
        return hom
    (d,), (term,), (initial,), (finish,) = scanned, hom.terms, hom.initial, hom.finish
    combiner = hom.combine[d].combiner
    total = len(hom.inputs)
    both = {Read(0, term.type), Read(1, term.type)}
    match combiner and combiner.results[0]:
        case Binary(op=BinaryOp.ADD, left=a, right=b) if {a, b} == both and term.type.is_float:
            pass
        case _:
            return hom
    if not isinstance(term, Constant):
        return hom
    count = Binary(BinaryOp.ADD, Iterator(d, ElementType.INT64), Constant(1, ElementType.INT64))
    grown: Expression = Binary(BinaryOp.MULTIPLY, Convert(term.type, count), term)
    whole = grown if initial is None else Binary(BinaryOp.ADD, initial, grown)
    made = whole if finish is None else with_value(finish, total, whole)
    combine = tuple(CombineOperator(Order.CONCATENATE) for _ in hom.combine)
    return replace(hom, terms=(made,), combine=combine, initial=(None,), finish=(None,))


def _with_reciprocals(hom: MdHom) -> MdHom:
    """Return sums and products of floats with reciprocals of what is known in their terms."""
    summed = [o.combiner for o in hom.combine if o.order in (Order.POINTWISE, Order.PREFIX)]
    if not summed:
        return hom
    terms = list(hom.terms)
    for o, term in enumerate(hom.terms):
        both = {Read(o, term.type), Read(len(terms) + o, term.type)}
        if term.type.is_float and all(c is not None and _adds_up(c.results[o], both) for c in summed):
            terms[o] = _multiplied(term)
    return hom if terms == list(hom.terms) else replace(hom, terms=tuple(terms))


def _adds_up(result: Expression, both: Collection[Expression]) -> bool:
    match result:
        case Binary(op=BinaryOp.ADD | BinaryOp.MULTIPLY, left=a, right=b):
            return {a, b} == both
        case _:
            return False


def _multiplied(term: Expression) -> Expression:
    """Return a term in which what is added and multiplied are no quotients by what is known."""
    match term:
        case Binary(op=BinaryOp.DIVIDE, left=a, right=b) if (factor := _reciprocal(b)) is not None:
            return Binary(BinaryOp.MULTIPLY, _multiplied(a), factor)
        case Binary(op=BinaryOp.DIVIDE, left=a, right=b):
            return Binary(BinaryOp.DIVIDE, _multiplied(a), b)
        case Binary(op=BinaryOp.ADD | BinaryOp.SUBTRACT | BinaryOp.MULTIPLY as op, left=a, right=b):
            return Binary(op, _multiplied(a), _multiplied(b))
        case Unary(op=UnaryOp.NEGATE, operand=a):
            return Unary(UnaryOp.NEGATE, _multiplied(a))
        case Select(condition=condition, then=a, otherwise=b):
            return Select(condition, _multiplied(a), _multiplied(b))
        case _:
            return term


def _reciprocal(divisor: Expression) -> Constant | None:
    """Return one over a number that is known, where both are normal floats; None where it is another one."""
    kind = divisor.type
    match divisor:
        case Constant(value=value) | Convert(operand=Constant(value=value)) if kind in _WITH_RECIPROCALS:
            with np.errstate(all="ignore"):
                number = np.asarray(value, kind.dtype)
                inverse = np.divide(1, number, dtype=kind.dtype)
            return Constant(float(inverse), kind) if _is_normal(number) and _is_normal(inverse) else None
        case _:
            return None


def _is_normal(number: npt.NDArray[Any]) -> bool:
    return bool(np.isfinite(number)) and abs(float(number)) >= float(np.finfo(number.dtype).tiny)


_WITH_RECIPROCALS = (ElementType.FLOAT32, ElementType.FLOAT64)


def _narrow_places(hom: MdHom) -> MdHom:
    """Return a reduction to the last or first place, or to none, in 32 bits where these hold all places."""
    if len(hom.outputs) != 1 or not all(o.order in (Order.POINTWISE, Order.CONCATENATE) for o in hom.combine):
        return hom
    (term,), (initial,), (finish,) = hom.terms, hom.initial, hom.finish
    operators = {o.combiner.results[0] for o in hom.combine if o.combiner is not None}
    none = _none_of(operators, _WIDE)
    if none is None or initial not in (None, none):
        return hom
    match term:
        case Select(condition=condition, then=place, otherwise=other) if other == none:
            pass
        case _:
            return hom
    places, narrow_none = ValueRanges(hom.extents).of(place), _none_of(operators, _WIDE, _NARROW)
    assert narrow_none is not None
    if not fits(places, _NARROW) or narrow_none.value in places:
        return hom
    total = Read(len(hom.inputs), _NARROW)
    found = Compare(CompareOp.NE, total, narrow_none)
    whole = Select(found, Convert(_WIDE, total), none)

    def operator(given: CombineOperator) -> CombineOperator:
        if given.combiner is None:
            return given
        (result,) = given.combiner.results
        assert isinstance(result, Binary)
        narrow = Binary(result.op, Read(0, _NARROW), Read(1, _NARROW))
        combiner = replace(given.combiner, results=(narrow,), neutral=(int(narrow_none.value),))
        return replace(given, combiner=combiner)

    return replace(
        hom,
        terms=(Select(condition, _narrowed(place), narrow_none),),
        combine=tuple(map(operator, hom.combine)),
        initial=(None,),
        finish=(whole if finish is None else with_value(finish, len(hom.inputs), whole),),
    )


def _none_of(
    operators: Collection[Expression], kind: ElementType, wanted: ElementType | None = None
) -> Constant | None:
    """Return the number of a type that stands for no place; None where no such operator combines them."""
    both = {Read(0, kind), Read(1, kind)}
    match list(operators):
        case [Binary(op=BinaryOp.MAXIMUM, left=a, right=b)] if {a, b} == both:
            return Constant(int((wanted or kind).lowest), wanted or kind)
        case [Binary(op=BinaryOp.MINIMUM, left=a, right=b)] if {a, b} == both:
            return Constant(int((wanted or kind).highest), wanted or kind)
        case _:
            return None


def _narrowed(place: Expression) -> Expression:
    match place:
        case Iterator(dimension=d):
            return Iterator(d, _NARROW)
        case Convert(operand=inner) if inner.type is _NARROW:
            return inner
        case _:
            return Convert(_NARROW, place)


def _commuting(hom: MdHom, sizes: Mapping[str, Range]) -> MdHom:
    """Return a reduction to the place of an extreme by an operator whose operands may change places.

    Of equal values the one at the first point counts, or at the last, which its place tells. What the
    reduction starts from comes before all points: its place does not count, and is put in at the end.
    """
    combiners = {o.combiner for o in hom.combine if o.order is Order.POINTWISE}
    found = combiners.pop() if len(combiners) == 1 and len(hom.combine) else None
    if found is None or found.commutative or any(o.order is not Order.POINTWISE for o in hom.combine):
        return hom
    extreme = _extreme(hom, found.results)
    places = None if extreme is None else _places(hom, sizes, is_last=extreme[1])
    if extreme is None or places is None or None in hom.initial:
        return hom
    wins, is_last = extreme
    count, total = len(hom.outputs), len(hom.inputs)
    earlier: Expression | None = None
    starts, finish = list(hom.initial), list(hom.finish)
    neutral, whole = list(found.neutral), dict[int, Expression]()
    for o, upwards in reversed(places):
        kind = hom.terms[o].type
        a, b = Read(o, kind), Read(count + o, kind)
        before = Compare(CompareOp.GT if upwards is is_last else CompareOp.LT, b, a)
        same = None if earlier is None else Binary(BinaryOp.AND, Compare(CompareOp.EQ, b, a), earlier)
        earlier = before if same is None else Binary(BinaryOp.OR, before, same)
        first, worst = _beside(kind, upwards=upwards, is_last=is_last)
        start, starts[o], neutral[o] = starts[o], Constant(first, kind), worst
        assert start is not None
        is_start = Compare(CompareOp.EQ, Read(total + o, kind), Constant(first, kind))
        whole[total + o] = Select(is_start, start, Read(total + o, kind))
    assert earlier is not None
    is_as_good = Compare(_AS_GOOD[wins.op], wins.left, wins.right)
    takes = Binary(BinaryOp.AND, is_as_good, Binary(BinaryOp.OR, wins, earlier))
    results = tuple(
        replace(r, condition=wins if r.then == wins.left else takes) if isinstance(r, Select) else r
        for r in found.results
    )
    for o, end in enumerate(finish):
        value: Expression = Read(total + o, hom.terms[o].type) if end is None else end
        made = rebuilt(value, lambda e: whole.get(e.position) if isinstance(e, Read) else None)
        finish[o] = end if made == value else made
    combiner = replace(found, results=results, neutral=tuple(neutral), commutative=True)
    return replace(
        hom,
        combine=tuple(replace(o, combiner=combiner) for o in hom.combine),
        initial=tuple(starts),
        finish=tuple(finish),
    )


def _beside(kind: ElementType, *, upwards: bool, is_last: bool) -> tuple[int, int]:
    """Return a place before all of points, and one that loses against both: of what stands for no point."""
    low, high = int(kind.lowest), int(kind.highest)
    if is_last:
        return (low + 1, low) if upwards else (high - 1, high)
    return (low, high) if upwards else (high, low)


def _extreme(hom: MdHom, results: Sequence[Expression]) -> tuple[Compare, bool] | None:
    """Return when the right operand is better, and whether it also wins where it is as good.

    None where an operator does not take one whole operand by one of its values.
    """
    count, found = len(results), set[Expression]()
    for o, (result, term) in enumerate(zip(results, hom.terms, strict=True)):
        match result:
            case Select(condition=condition, then=then, otherwise=other) if (then, other) == (
                Read(count + o, term.type),
                Read(o, term.type),
            ):
                found.add(condition)
            case _:
                return None
    if len(found) != 1:
        return None
    match found.pop():
        case Compare(op=CompareOp.GT | CompareOp.LT) as wins:
            is_last = False
        case Binary(
            op=BinaryOp.AND,
            left=Compare(op=CompareOp.GE | CompareOp.LE as op) as best,
            right=Compare(op=CompareOp.NE, right=Constant()),
        ):
            wins, is_last = replace(best, op=_STRICT[op]), True
        case _:
            return None
    values = [o for o, t in enumerate(hom.terms) if wins == replace(wins, left=Read(count + o, t.type))]
    return (wins, is_last) if any(wins.right == Read(o, hom.terms[o].type) for o in values) else None


def _places(hom: MdHom, sizes: Mapping[str, Range], *, is_last: bool) -> list[tuple[int, bool]] | None:
    """Return an output for each dimension that grows along it, or falls; None where there is none for one.

    None, too, where a place may be what stands for none. ``sizes``: where the parameters lie.
    """
    ranges, found = ValueRanges(hom.extents, parameters=sizes), list[tuple[int, bool]]()
    for d in range(len(hom.extents)):
        grown = ((o, _grows(term, d)) for o, term in enumerate(hom.terms))
        place = next(((o, upwards) for o, upwards in grown if upwards is not None), None)
        if place is None:
            return None
        low, high = ranges.of(hom.terms[place[0]])
        none = _beside(hom.terms[place[0]].type, upwards=place[1], is_last=is_last)
        if any(low <= value <= high for value in none):
            return None
        found.append(place)
    return found


def _grows(term: Expression, d: int) -> bool | None:
    """Whether an integer grows with an iterator, or falls; None where it is something else."""
    match term:
        case Iterator(dimension=k, type=kind) if k == d and not kind.is_float:
            return True
        case Binary(op=BinaryOp.ADD, left=a, right=Constant(type=kind)) if not kind.is_float:
            return _grows(a, d)
        case Binary(op=BinaryOp.ADD, left=Constant(type=kind), right=a) if not kind.is_float:
            return _grows(a, d)
        case Binary(op=BinaryOp.SUBTRACT, left=a, right=Constant(type=kind)) if not kind.is_float:
            return _grows(a, d)
        case Binary(op=BinaryOp.SUBTRACT, left=Constant(type=kind), right=a) if not kind.is_float:
            grows = _grows(a, d)
            return None if grows is None else not grows
        case _:
            return None
