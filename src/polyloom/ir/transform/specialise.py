"""Host programs whose parameters are known: their values are put in, what follows from them is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from polyloom.ir.conditions import Range, decided, ranges_of
from polyloom.ir.expressions import Constant, Expression, ParameterValue
from polyloom.ir.host import (
    Assignment,
    Buffer,
    CombineOperator,
    Copy,
    HostLeaf,
    HostNode,
    HostProgram,
    Index,
    MdHom,
    Nest,
    Order,
    View,
)
from polyloom.ir.inequalities import conjuncts, inequalities_of
from polyloom.ir.integers import fold, fold_nodes, fold_tree
from polyloom.ir.rebuild import rebuilt
from polyloom.polyhedra.loops.tree import IntExpression, Number

Values = Mapping[str, int]


def specialise(program: HostProgram, values: Values) -> HostProgram:
    """Return the program for given values of some parameters, which it then no longer has.

    Extents, bounds, offsets and guards are folded, host branches that are known decided, nodes without points
    left out.
    ``for i in 0 .. n - 1`` with n = 8 becomes ``for i in 0 .. 7``.
    """
    return replace(
        program,
        parameters=tuple(p for p in program.parameters if p.name not in values),
        buffers=tuple(_buffer(b, values) for b in program.buffers),
        body=specialise_nodes(program.body, values),
        context=None if program.context is None else fold(program.context, values),
    )


def specialise_nodes(nodes: tuple[HostNode, ...], values: Values) -> tuple[HostNode, ...]:
    """Return host nodes with values in place of names: of parameters, or of host iterators around them."""
    return fold_nodes(nodes, values, _leaf)


def _leaf(node: HostLeaf, values: Values) -> tuple[HostNode, ...]:
    match node:
        case MdHom():
            special = specialise_md_hom(node, values)
            return () if _is_empty(special) else (special,)
        case Nest():
            nest = _nest(node, values)
            return () if Number(0) in nest.extents else (nest,)
        case Copy():
            return (node,)


def _is_empty(node: MdHom) -> bool:
    """Whether there are no points to store; a reduction of no terms stores what it starts from."""
    pairs = zip(node.extents, node.combine, strict=True)
    if any(e == Number(0) and o.order is not Order.POINTWISE for e, o in pairs):
        return True
    return node.written == Number(0)


def specialise_md_hom(node: MdHom, values: Values) -> MdHom:
    """Return an md_hom with values in place of names; its own iterators keep theirs."""
    inner = _without(values, node.iterators)
    given = tuple(_at_least_zero(fold(e, values)) for e in node.extents)
    extents = _as_far_as_written(node, given, inner)
    ranges = ranges_of(node.iterators, extents)
    return replace(
        node,
        extents=extents,
        inputs=tuple(_view(v, values) for v in node.inputs),
        outputs=tuple(_view(v, values) for v in node.outputs),
        terms=tuple(with_parameters(t, values) for t in node.terms),
        combine=tuple(_operator(o, values) for o in node.combine),
        initial=tuple(_optional(e, values) for e in node.initial),
        finish=tuple(_optional(e, values) for e in node.finish),
        guard=_condition(node.guard, inner, ranges),
        written=_condition(node.written, inner, ranges),
    )


def _as_far_as_written(
    node: MdHom, extents: tuple[IntExpression, ...], values: Values
) -> tuple[IntExpression, ...]:
    """Return extents without the points of kept dimensions behind the last one that is stored.

    ``for i in 0 .. 31992 where written 7 >= i + 1`` has seven points.
    """
    written = node.written if node.written is None else fold(node.written, values)
    known = (found for c in conjuncts(written) for found in inequalities_of(c, node.iterators) or ())
    ends = dict[int, int]()
    for affine in known:
        along = [d for d, c in enumerate(affine.coefficients) if c]
        if len(along) == 1 and affine.coefficients[along[0]] < 0:
            end = affine.constant // -affine.coefficients[along[0]] + 1
            ends[along[0]] = min(end, ends.get(along[0], end))

    def cut(d: int, extent: IntExpression) -> IntExpression:
        is_kept = node.combine[d].order is Order.CONCATENATE
        if d not in ends or not is_kept or not isinstance(extent, Number):
            return extent
        return Number(max(0, min(extent.value, ends[d])))

    return tuple(cut(d, extent) for d, extent in enumerate(extents))


def _condition(
    condition: IntExpression | None, values: Values, ranges: Mapping[str, Range]
) -> IntExpression | None:
    """Fold a condition on iterators with these ranges; one that always holds is none."""
    if condition is None:
        return None
    known = decided(fold(condition, values), ranges)
    return None if isinstance(known, Number) and known.value else known


def _nest(node: Nest, values: Values) -> Nest:
    return replace(
        node,
        extents=tuple(_at_least_zero(fold(e, values)) for e in node.extents),
        body=fold_tree(node.body, _without(values, node.iterators)),
        assignments=tuple(_assignment(a, values) for a in node.assignments),
        private=tuple(_buffer(b, values) for b in node.private),
    )


def _assignment(assignment: Assignment, values: Values) -> Assignment:
    return replace(
        assignment,
        target=_view(assignment.target, values),
        reads=tuple(_view(v, values) for v in assignment.reads),
        value=with_parameters(assignment.value, values),
        condition=_optional(assignment.condition, values),
    )


def _buffer(buffer: Buffer, values: Values) -> Buffer:
    """Fold the extents; none is negative (``t[n - 3]`` for n = 1)."""
    rows = None if buffer.rows is None else (fold(buffer.rows[0], values), fold(buffer.rows[1], values))
    return replace(buffer, shape=tuple(_at_least_zero(fold(n, values)) for n in buffer.shape), rows=rows)


def _at_least_zero(extent: IntExpression) -> IntExpression:
    return Number(max(0, extent.value)) if isinstance(extent, Number) else extent


def _view(view: View, values: Values) -> View:
    return replace(view, indices=tuple(_index(i, values) for i in view.indices))


def _index(index: Index | Expression, values: Values) -> Index | Expression:
    if isinstance(index, Index):
        return Index(index.coefficients, fold(index.offset, values))
    return with_parameters(index, values)


def _operator(operator: CombineOperator, values: Values) -> CombineOperator:
    if operator.combiner is None:
        return operator
    combiner = operator.combiner
    results = tuple(with_parameters(r, values) for r in combiner.results)
    return replace(operator, combiner=replace(combiner, results=results))


def _optional(expression: Expression | None, values: Values) -> Expression | None:
    return None if expression is None else with_parameters(expression, values)


def with_parameters(expression: Expression, values: Values) -> Expression:
    """Return a scalar function with constants in place of parameters that are known."""

    def known(part: Expression) -> Expression | None:
        if isinstance(part, ParameterValue) and part.name in values:
            return Constant(values[part.name], part.type)
        return None

    return rebuilt(expression, known)


def _without(values: Values, names: tuple[str, ...]) -> Values:
    return {name: value for name, value in values.items() if name not in names}
