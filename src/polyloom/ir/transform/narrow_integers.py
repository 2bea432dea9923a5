"""Integers computed in the narrowest type that gives the same result: more of them in a vector.

    out[i] = uint8((int32(a[i]) + int32(b[i]) + 1) / 2)        of bytes a, b
 -> out[i] = uint8((int16(a[i]) + int16(b[i]) + 1) >> 1)

Sums, products, bits of a type depend on the same bits of their operands alone, so where a result is cut off
on its way to memory any type of so many bits will do. All else (quotients, comparisons, shifts to the right)
is computed in a type that has all values of its operands (``ir/value_ranges``). Reductions of so few terms
that their totals have a narrower type are carried out in that one.

Of the types of an expression the one with the widest decides how many lanes a vector has: that is made as
narrow as it can be, then the expression with the fewest instructions is taken.

Source: demanded bits and value ranges, as LLVM's vectoriser has them. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

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
    ParameterValue,
    Read,
    Select,
    Unary,
    UnaryOp,
    varying_parts,
    walk,
)
from polyloom.ir.host import CombineOperator, HostNode, HostProgram, Index, MdHom, Order
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.scalar_functions.function import BinaryFunction, UnaryFunction
from polyloom.ir.transform.plainer_integers import Plainer
from polyloom.ir.types import ElementType
from polyloom.ir.value_ranges import SIGNED, UNSIGNED, ValueRanges, fits, is_integer, wrapped
from polyloom.polyhedra.loops.tree import Number, with_leaves

MOST_PARTS = 4000
"""Larger scalar functions stay as they are."""

SIZES = (1, 2, 4)
"""Bytes of types that may be narrower than others."""


def narrow_integers(program: HostProgram) -> HostProgram:
    """Return the program with scalar functions of md_homs in narrower integers. Sizes are known.

    Every element gets the value that it had.
    """
    body = with_leaves(program.body, _node)
    return program if body == program.body else replace(program, body=body)


def _node(node: HostNode) -> tuple[HostNode, ...]:
    return (narrow_md_hom(node) if isinstance(node, MdHom) else node,)


def narrow_md_hom(hom: MdHom) -> MdHom:
    """Return an md_hom that gives the same in narrower integers, or in plainer forms, or itself."""
    sizes = [sum(1 for _ in walk(e)) for e in (*hom.terms, *hom.finish) if e is not None]
    if not hom.terms or sum(sizes) > MOST_PARTS:
        return hom
    ranges = ValueRanges(hom.extents)
    found = _with_narrow_terms(hom, ranges)
    totals = {
        len(hom.inputs) + o: total
        for o, term in enumerate(hom.terms)
        if is_integer(term.type) and found.initial[o] is None
        if (total := _range_of_totals(hom, o, ranges.of(term))) is not None
    }
    of_ends = ValueRanges(hom.extents, totals)
    ends = tuple(None if end is None else _narrowed(end, of_ends) for end in found.finish)
    return found if ends == found.finish else replace(found, finish=ends)


def _with_narrow_terms(hom: MdHom, ranges: ValueRanges) -> MdHom:
    least = max(map(_least_size, hom.terms))
    terms = [Plainer(ranges).of(term) for term in hom.terms]
    for size in SIZES:
        if least <= size < max(map(_widest, hom.terms)):
            made = _in_types_of(size, hom, terms, ranges)
            if made is not None:
                return made
    return hom if terms == list(hom.terms) else replace(hom, terms=tuple(terms))


def _narrowed(end: Expression, ranges: ValueRanges) -> Expression:
    """Return what is made of a total, in narrower integers."""
    plain = Plainer(ranges).of(end)
    for size in SIZES:
        if _least_size(end) <= size < _widest(end):
            made = _Search(size, ranges).of(plain, end.type)
            if made is not None:
                return made
    return end


def _widest(value: Expression) -> int:
    return max((part.type.size for part in varying_parts(value)), default=value.type.size)


def _least_size(value: Expression) -> int:
    """Return the bytes below which no type of an expression can go: those of the arrays that it reads."""
    return max((p.type.size for p in walk(value) if isinstance(p, Read) or p.type.is_float), default=1)


def _in_types_of(size: int, hom: MdHom, terms: Sequence[Expression], ranges: ValueRanges) -> MdHom | None:
    """Return the md_hom in types of at most so many bytes; None where they do not have its values."""
    search = _Search(size, ranges)
    kinds = [term.type for term in hom.terms]
    if any(kind.size > size for kind in kinds):
        found = [_total_type(hom, o, size, term, ranges) for o, term in enumerate(terms)]
        if None in found:
            return None
        kinds = [kind for kind in found if kind is not None]
    made = [search.of(term, kind) for term, kind in zip(terms, kinds, strict=True)]
    if any(term is None for term in made):
        return None
    narrow = tuple(term for term in made if term is not None)
    if kinds == [term.type for term in hom.terms]:
        return replace(hom, terms=narrow)
    return _with_totals(hom, narrow)


# Reductions


def _total_type(
    hom: MdHom, output: int, size: int, term: Expression, ranges: ValueRanges
) -> ElementType | None:
    """Return a type of at most so many bytes for the totals of a reduction; None where there is none."""
    kind = hom.terms[output].type
    if not is_integer(kind):
        return kind if kind.size <= size else None
    totals = _range_of_totals(hom, output, ranges.of(term))
    if totals is None:
        return None
    return next((k for k in _by_size() if k.size <= size and fits(totals, k)), None)


def _range_of_totals(hom: MdHom, output: int, term: Range) -> Range | None:
    """Return where the totals of a reduction of integers lie, without what it starts from; None: not known.

    ``term``: where each of its terms lies.
    """
    kind = hom.terms[output].type
    count = _terms_of_a_total(hom)
    operator = None if count is None or not is_integer(kind) else _operator_of(hom, output)
    if count is None or operator is None:
        return None
    low, high = term
    totals = (min(0, count * low), max(0, count * high)) if operator is BinaryOp.ADD else term
    return totals if fits(totals, kind) else None


def _terms_of_a_total(hom: MdHom) -> int | None:
    """Return how many terms a total of a reduction has at most; None where that is not known."""
    reduced = [e for e, o in zip(hom.extents, hom.combine, strict=True) if o.order is Order.POINTWISE]
    others = {o.order for o in hom.combine} - {Order.POINTWISE, Order.CONCATENATE}
    extents = [e.value for e in reduced if isinstance(e, Number)]
    is_affine = all(isinstance(index, Index) for view in hom.outputs for index in view.indices)
    if others or not reduced or len(extents) < len(reduced) or not is_affine or hom.guard is not None:
        return None
    return prod(extents) or None


def _operator_of(hom: MdHom, output: int) -> BinaryFunction | None:
    """Return which of sum, maximum and minimum combines the terms of an output; None where it is another."""
    count, kind = len(hom.outputs), hom.terms[output].type
    both = {Read(output, kind), Read(count + output, kind)}
    found = set[BinaryFunction | None]()
    for operator in hom.combine:
        if operator.combiner is not None:
            match operator.combiner.results[output]:
                case Binary(op=op, left=a, right=b) if op in _NEUTRAL and {a, b} == both:
                    found.add(op)
                case _:
                    found.add(None)
    return found.pop() if len(found) == 1 else None


_NEUTRAL: Mapping[BinaryFunction, Callable[[ElementType], int]] = {
    BinaryOp.ADD: lambda kind: 0,
    BinaryOp.MAXIMUM: lambda kind: int(kind.lowest),
    BinaryOp.MINIMUM: lambda kind: int(kind.highest),
}
"""Operators of reductions, and what they start from."""


def _with_totals(hom: MdHom, terms: tuple[Expression, ...]) -> MdHom:
    """Return a reduction of narrower terms; what it starts from comes in at the end."""
    first = len(hom.inputs)
    wholes = [_converted(Read(first + o, term.type), hom.terms[o].type) for o, term in enumerate(terms)]
    for o, start in enumerate(hom.initial):
        if start is not None:
            operator = _operator_of(hom, o)
            assert operator is not None
            is_zero = operator is BinaryOp.ADD and isinstance(start, Constant) and start.value == 0
            wholes[o] = wholes[o] if is_zero else Binary(operator, start, wholes[o])

    def finished(end: Expression | None, o: int) -> Expression:
        return wholes[o] if end is None else rebuilt(end, whole_of)

    def whole_of(part: Expression) -> Expression | None:
        return wholes[part.position - first] if isinstance(part, Read) and part.position >= first else None

    return replace(
        hom,
        terms=terms,
        combine=tuple(_narrow_operator(o, [term.type for term in terms]) for o in hom.combine),
        initial=(None,) * len(terms),
        finish=tuple(finished(end, o) for o, end in enumerate(hom.finish)),
    )


def _narrow_operator(operator: CombineOperator, kinds: Sequence[ElementType]) -> CombineOperator:
    combiner = operator.combiner
    if combiner is None:
        return operator
    results, neutral = list(combiner.results), list(combiner.neutral)
    for o, (result, kind) in enumerate(zip(combiner.results, kinds, strict=True)):
        if isinstance(result, Binary) and result.type is not kind:
            results[o] = Binary(result.op, Read(o, kind), Read(len(kinds) + o, kind))
            neutral[o] = _NEUTRAL[result.op](kind)
    return replace(operator, combiner=replace(combiner, results=tuple(results), neutral=tuple(neutral)))


# Scalar functions


@dataclass(frozen=True)
class _Found:
    """An expression, and about how many instructions of vectors it takes."""

    cost: float
    value: Expression


class _Search:
    """The cheapest expressions in types of at most ``size`` bytes.

    Those that are found for an expression of integers have its value where their type has all values of its
    range, and else are congruent to it modulo two to the power of their bits.
    """

    def __init__(self, size: int, ranges: ValueRanges) -> None:
        self.size, self.ranges = size, ranges
        self.kinds = tuple(k for k in (*SIGNED, *UNSIGNED) if k.size <= size)
        self._integers: dict[int, tuple[Expression, dict[ElementType, _Found]]] = {}
        self._truths: dict[int, tuple[Expression, dict[int, _Found]]] = {}

    def of(self, value: Expression, kind: ElementType) -> Expression | None:
        """Return an expression in a type; None where it takes wider ones."""
        found = self._float(value) if kind.is_float else self._as(value, kind)
        return None if found is None else found.value

    def _as(self, value: Expression, kind: ElementType) -> _Found | None:
        values = self.ranges.of(value)
        options = (
            _Found(found.cost + _conversion(found.value, kind), _converted(found.value, kind))
            for narrow, found in self._options(value).items()
            if narrow.size >= kind.size or fits(values, narrow)
        )
        return min(options, key=lambda f: f.cost, default=None)

    def _options(self, e: Expression) -> dict[ElementType, _Found]:
        """Return what an expression of integers may be in each type, none of them converted at the end."""
        if id(e) not in self._integers:
            self._integers[id(e)] = e, dict(self._made(e))
        return self._integers[id(e)][1]

    def _made(self, e: Expression) -> Iterable[tuple[ElementType, _Found]]:
        narrower = [k for k in self.kinds if k.size <= e.type.size]
        match e:
            case Read(type=kind):
                yield from ((k, _Found(0.0, e)) for k in narrower if k is kind)
            case Constant(value=value):
                number = wrapped(int(value), e.type)
                yield from ((k, _Found(0.0, Constant(wrapped(number, k), k))) for k in self.kinds)
            case Iterator(dimension=d):
                yield from ((k, _Found(1.0, Iterator(d, k))) for k in narrower)
            case ParameterValue(name=name):
                yield from ((k, _Found(0.0, ParameterValue(name, k))) for k in narrower)
            case Unary(op=op, operand=a) if op in _OF_BITS_ALONE:
                yield from self._applied(e, (a,), narrower)
            case Binary(op=op, left=a, right=b) if op in _OF_BITS_ALONE:
                yield from self._applied(e, (a, b), narrower)
            case Binary(op=BinaryOp.SHIFT_LEFT, left=a, right=Constant(value=count)) if count >= 0:
                yield from self._applied(e, (a,), [k for k in narrower if count < 8 * k.size], (e.right,))
                yield from ((k, _Found(0.0, Constant(0, k))) for k in narrower if count >= 8 * k.size)
            case Unary(operand=a):
                yield from self._applied(e, (a,), self._exact(e, a))
            case Binary(op=op, left=a, right=b) if op in (BinaryOp.SHIFT_LEFT, BinaryOp.SHIFT_RIGHT):
                kinds = [k for k in self._exact(e, a, b) if self.ranges.is_shift_within(b, k)]
                yield from self._applied(e, (a, b), kinds or self._exact(e))
            case Binary(left=a, right=b):
                yield from self._applied(e, (a, b), self._exact(e, a, b))
            case Select(condition=c, then=a, otherwise=b):
                yield from self._chosen(c, a, b, narrower)
            case Convert(type=kind, operand=a) if a.type is ElementType.BOOL:
                one, zero = Constant(1, kind), Constant(0, kind)
                yield from self._chosen(a, one, zero, narrower)
            case Convert(operand=a) if a.type.is_float:
                found = self._float(a)
                if found is not None and e.type in narrower:
                    yield e.type, _Found(found.cost + 4.0, Convert(e.type, found.value))
            case Convert(operand=a):
                is_kept = fits(self.ranges.of(a), e.type)
                cut: list[_Found] = []
                for k, found in self._options(a).items():
                    if k.size <= e.type.size or is_kept:
                        yield k, found
                    else:
                        cut.append(_Found(found.cost + 1.0, Convert(e.type, found.value)))
                if cut and e.type not in self._options(a):
                    yield e.type, min(cut, key=lambda f: f.cost)
            case _:
                pass

    def _exact(self, e: Expression, *operands: Expression) -> list[ElementType]:
        """Return the types that have all values of an expression and of its operands, and its own.

        None is wider: what wraps around in the expression's type would not in that one.
        """
        values = [self.ranges.of(part) for part in (e, *operands)]
        narrower = (k for k in self.kinds if k.size <= e.type.size)
        return [k for k in narrower if k is e.type or (operands and all(fits(v, k) for v in values))]

    def _applied(
        self,
        e: Unary | Binary,
        operands: Sequence[Expression],
        kinds: Iterable[ElementType],
        more: Sequence[Expression] = (),
    ) -> Iterable[tuple[ElementType, _Found]]:
        for kind in kinds:
            found = [self._as(operand, kind) for operand in operands]
            made = [f.value for f in found if f is not None]
            if len(made) == len(operands):
                made += [Constant(part.value, kind) for part in more if isinstance(part, Constant)]
                cost = sum(f.cost for f in found if f is not None) + _instructions(e.op, kind, made)
                yield kind, _Found(cost, Unary(e.op, *made) if isinstance(e, Unary) else Binary(e.op, *made))

    def _chosen(
        self, condition: Expression, a: Expression, b: Expression, kinds: Iterable[ElementType]
    ) -> Iterable[tuple[ElementType, _Found]]:
        masks = self._masks(condition)
        for kind in kinds:
            then, otherwise = self._as(a, kind), self._as(b, kind)
            if then is None or otherwise is None or not masks:
                continue
            costs = {size: mask.cost + (size != kind.size) for size, mask in masks.items()}
            size = min(costs, key=costs.__getitem__)
            cost = costs[size] + then.cost + otherwise.cost + 1.0
            yield kind, _Found(cost, Select(masks[size].value, then.value, otherwise.value))

    def _masks(self, e: Expression) -> dict[int, _Found]:
        """Return what a truth value may be, by the bytes of the mask that it is of vectors."""
        if id(e) not in self._truths:
            found = dict[int, _Found]()
            for size, mask in self._made_masks(e):
                if size not in found or mask.cost < found[size].cost:
                    found[size] = mask
            self._truths[id(e)] = e, found
        return self._truths[id(e)][1]

    def _made_masks(self, e: Expression) -> Iterable[tuple[int, _Found]]:
        match e:
            case Compare(op=op, left=a, right=b) if is_integer(a.type):
                values = [self.ranges.of(part) for part in (a, b)]
                for kind in self.kinds:
                    if not all(fits(v, kind) for v in values):
                        yield from self._compared_with_invariant(op, a, b, kind)
                        continue
                    left, right = self._as(a, kind), self._as(b, kind)
                    if left is not None and right is not None:
                        yield kind.size, _compared(op, left, right, kind)
            case Compare(op=op, left=a, right=b) if a.type.is_float:
                first, second = self._float(a), self._float(b)
                if first is not None and second is not None:
                    made = Compare(op, first.value, second.value)
                    yield a.type.size, _Found(first.cost + second.cost + 1.0, made)
            case Compare(op=comparison, left=a, right=b):
                yield from self._both(a, b, lambda x, y: Compare(comparison, x, y))
            case Binary(op=function, left=a, right=b):
                yield from self._both(a, b, lambda x, y: Binary(function, x, y))
            case Unary(op=op, operand=a):
                for size, found in self._masks(a).items():
                    yield size, _Found(found.cost + 1.0, Unary(op, found.value))
            case _:
                pass

    def _compared_with_invariant(
        self, op: CompareOp, a: Expression, b: Expression, kind: ElementType
    ) -> Iterable[tuple[int, _Found]]:
        """Yield a comparison with what is the same at all points, in a type that does not have all of that.

        It does not matter how far that lies outside the range of the other operand.
        """
        for value, invariant in ((a, b), (b, a)):
            low, high = self.ranges.of(value)
            if kind.size >= invariant.type.size or any(varying_parts(invariant)):
                continue
            found = self._as(value, kind) if fits((low - 1, high + 1), kind) else None
            if found is not None:
                bounds = [Constant(end, invariant.type) for end in (low - 1, high + 1)]
                bounded = Binary(BinaryOp.MINIMUM, Binary(BinaryOp.MAXIMUM, invariant, bounds[0]), bounds[1])
                other = _Found(0.0, Convert(kind, bounded))
                left, right = (found, other) if value is a else (other, found)
                yield kind.size, _compared(op, left, right, kind)

    def _both(
        self, a: Expression, b: Expression, combined: Callable[[Expression, Expression], Expression]
    ) -> Iterable[tuple[int, _Found]]:
        for first, left in self._masks(a).items():
            for second, right in self._masks(b).items():
                cost = left.cost + right.cost + 1.0 + (first != second)
                yield max(first, second), _Found(cost, combined(left.value, right.value))

    def _float(self, e: Expression) -> _Found | None:
        """Return an expression of floats, with what is of integers in it in narrow ones."""
        if e.type.size > self.size:
            return None
        match e:
            case Read() | Constant() | Iterator() | ParameterValue():
                return _Found(0.0, e)
            case Unary(op=op, operand=a):
                found = self._float(a)
                return None if found is None else _Found(found.cost + op.instructions, Unary(op, found.value))
            case Binary(op=op, left=a, right=b):
                first, second = self._float(a), self._float(b)
                if first is None or second is None:
                    return None
                cost = first.cost + second.cost + op.instructions
                return _Found(cost, Binary(op, first.value, second.value))
            case Select(condition=c, then=a, otherwise=b):
                first, second = self._float(a), self._float(b)
                masks = self._masks(c).values()
                if first is None or second is None or not masks:
                    return None
                mask = min(masks, key=lambda f: f.cost)
                cost = mask.cost + first.cost + second.cost + 1.0
                return _Found(cost, Select(mask.value, first.value, second.value))
            case Convert(type=kind, operand=a) if a.type.is_float:
                found = self._float(a)
                return None if found is None else _Found(found.cost + 1.0, Convert(kind, found.value))
            case Convert(type=kind, operand=a) if a.type is ElementType.BOOL:
                found = min(self._masks(a).values(), key=lambda f: f.cost, default=None)
                return None if found is None else _Found(found.cost + 1.0, Convert(kind, found.value))
            case Convert(type=kind, operand=a):
                values = self.ranges.of(a)
                exact = (
                    _Found(f.cost + _to_float(f.value), Convert(kind, f.value))
                    for k, f in self._options(a).items()
                    if fits(values, k)
                )
                return min(exact, key=lambda f: f.cost, default=None)
            case _:
                return None


_OF_BITS_ALONE: frozenset[UnaryFunction | BinaryFunction] = frozenset(
    [
        *(UnaryOp.NEGATE, UnaryOp.COMPLEMENT, BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MULTIPLY),
        *(BinaryOp.BIT_AND, BinaryOp.BIT_OR, BinaryOp.BIT_XOR),
    ]
)
"""Functions of which the last bits depend on as many bits of the operands."""


def _compared(op: CompareOp, left: _Found, right: _Found, kind: ElementType) -> _Found:
    own = 1.0 + (kind in UNSIGNED and not op.is_equality)
    return _Found(left.cost + right.cost + own, Compare(op, left.value, right.value))


def _converted(value: Expression, kind: ElementType) -> Expression:
    return value if value.type is kind else Convert(kind, value)


_ANOTHER_NAME = 0.01
"""A conversion that changes no bits: of two ways that are as good, the one without it is taken."""


def _conversion(value: Expression, kind: ElementType) -> float:
    """Return about how many instructions a conversion takes: what is loaded may be widened on its way."""
    if value.type.size == kind.size:
        return _ANOTHER_NAME if value.type is not kind else 0.0
    if value.type.size < kind.size:
        return 0.5 if isinstance(value, Read) else 1.0
    return 1.0


def _to_float(value: Expression) -> float:
    """Return about how many instructions make floats of integers; those of 8 or 16 bits are wider before."""
    return 1.0 + (_conversion(value, ElementType.INT32) if value.type.size < 4 else 0.0)


def _instructions(
    op: UnaryFunction | BinaryFunction, kind: ElementType, operands: Sequence[Expression]
) -> float:
    """Return about how many instructions a function of vectors takes, on x86 with AVX2; an estimate."""
    last = operands[-1]
    match op:
        case BinaryOp.MULTIPLY:
            return {1: 6.0, 2: 1.0, 4: 2.0, 8: 6.0}[kind.size]
        case BinaryOp.SHIFT_LEFT | BinaryOp.SHIFT_RIGHT:
            each = {1: 2.0, 2: 1.0, 4: 1.0, 8: 1.0}[kind.size]
            return each if isinstance(last, Constant) else each + (4.0 if kind.size >= 4 else 8.0)
        case BinaryOp.DIVIDE | BinaryOp.REMAINDER:
            signs = 0.0 if kind in UNSIGNED else 2.0
            if not isinstance(last, Constant):
                return 40.0
            return signs + {1: 12.0, 2: 3.0, 4: 8.0, 8: 30.0}[kind.size]
        case _:
            return op.instructions


def _by_size() -> Sequence[ElementType]:
    """Return the types of integers, narrow ones first, of a size the signed one."""
    return tuple(k for both in zip(SIGNED, UNSIGNED, strict=True) for k in both)
