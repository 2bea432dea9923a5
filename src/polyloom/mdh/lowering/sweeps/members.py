"""Md_homs as sweeps that can be done block by block: along a kept dimension, or along a reduced one.

    y[c] = sum over r of A[r][c] * t[r]    along r    y[c] = 0                             before the blocks
                                                      y[c] = y[c] + sum over r in a block  in each of them
                                                      y[c] = finish(y[c])                  behind them

A reduction stays a reduction inside of a block; from block to block its result waits in its own buffer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Constant,
    Convert,
    Expression,
    Iterator,
    ParameterValue,
    Read,
)
from polyloom.ir.host import CombineOperator, HostProgram, Index, MdHom, Order, View
from polyloom.ir.rebuild import Leaf, read_positions, with_leaves
from polyloom.ir.types import ElementType
from polyloom.mdh.schedule.addresses import kept_dimensions, known, reduced_dimensions
from polyloom.mdh.schedule.tiling import has_tiles
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, linear_terms, replace_name, sum_of


@dataclass(frozen=True, kw_only=True)
class Member:
    """A sweep: ``node`` is cut along ``dimension``; its row r is done at time ``r + shift``.

    ``before``, ``behind``: maps that its results go through before the first block and behind the last.
    """

    node: MdHom
    dimension: int
    shift: int = 0
    before: MdHom | None = None
    behind: MdHom | None = None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return known(self.node.extents[self.dimension]) or 0

    def strip(self, first: IntExpression, rows: int) -> MdHom:
        """Return the node for some rows, of which it has all."""
        return _strip(self.node, self.dimension, first, rows)


def members(node: MdHom, program: HostProgram) -> tuple[Member, ...]:
    """Return the ways in which a node can be cut, along its outermost dimensions first."""
    if not has_tiles(node) or any(known(extent) is None for extent in node.extents):
        return ()
    found = (_member(node, d, program) for d in range(len(node.extents)))
    return tuple(m for m in found if m is not None and m.rows > 1)


def _member(node: MdHom, d: int, program: HostProgram) -> Member | None:
    operator = node.combine[d]
    if operator.order is Order.CONCATENATE:
        return Member(node=node, dimension=d)
    return _reduction(node, d, operator, program)


def _reduction(node: MdHom, d: int, operator: CombineOperator, program: HostProgram) -> Member | None:
    """Return a reduction in parts; None where what waits between them would be another value."""
    combiner = operator.combiner
    outer = [k for k in reduced_dimensions(node) if k < d]
    if combiner is None or (outer and not combiner.commutative):
        return None
    types = [program.buffer(view.buffer).type for view in node.outputs]
    if any(term.type is not kind for term, kind in zip(node.terms, types, strict=True)):
        return None
    written = {view.buffer for view in node.outputs}
    if any(node.inputs[k].buffer in written for k in read_positions(*node.terms)):
        return None
    own = [Read(len(node.inputs) + o, kind) for o, kind in enumerate(types)]
    start = _start(node, own)
    if start is None:
        return None
    going = replace(
        node,
        inputs=(*node.inputs, *node.outputs),
        initial=tuple(own),
        finish=tuple(None for _ in node.outputs),
    )
    ends = [value or Read(place.position, place.type) for value, place in zip(node.finish, own, strict=True)]
    behind = None if not any(node.finish) else _map(node, ends, "end")
    before = None if _is_own(node, start) else _map(node, start, "start")
    return Member(node=_used(going), dimension=d, before=before, behind=behind)


def _start(node: MdHom, own: Sequence[Read]) -> list[Expression] | None:
    """Return what each result starts from; None where there is no such value."""
    combiner = next(o.combiner for o in node.combine if o.combiner is not None)
    found: list[Expression] = []
    for initial, neutral, place in zip(node.initial, combiner.neutral, own, strict=True):
        if initial is None and neutral is None:
            return None
        found.append(Constant(neutral, place.type) if initial is None and neutral is not None else initial)  # type: ignore[arg-type]
    return found


def _is_own(node: MdHom, start: Sequence[Expression]) -> bool:
    """Whether results start from what their elements hold."""
    return all(
        isinstance(value, Read) and node.inputs[value.position] == view
        for value, view in zip(start, node.outputs, strict=True)
    )


def _map(node: MdHom, values: Sequence[Expression], what: str) -> MdHom:
    """Return a map over the kept dimensions; reads behind the inputs are of the results."""
    kept = kept_dimensions(node)
    place = {d: k for k, d in enumerate(kept)}

    def leaf(part: Leaf) -> Expression:
        return Iterator(place[part.dimension], part.type) if isinstance(part, Iterator) else part

    def view(of: View) -> View:
        indices = tuple(
            Index(tuple(i.coefficients[d] for d in kept), i.offset)
            if isinstance(i, Index)
            else with_leaves(i, leaf)
            for i in of.indices
        )
        return View(of.buffer, indices, of.span)

    made = replace(
        node,
        name=f"{node.name}_{what}",
        iterators=tuple(node.iterators[d] for d in kept),
        extents=tuple(node.extents[d] for d in kept),
        inputs=tuple(view(v) for v in (*node.inputs, *node.outputs)),
        outputs=tuple(map(view, node.outputs)),
        terms=tuple(with_leaves(value, leaf) for value in values),
        combine=tuple(node.combine[d] for d in kept),
        initial=tuple(None for _ in values),
        finish=tuple(None for _ in values),
        guard=None,
    )
    return _used(made)


def _used(node: MdHom) -> MdHom:
    """Return the node without inputs that nothing reads."""
    needed = _needed(node)
    place = {k: n for n, k in enumerate(needed)}

    def leaf(part: Leaf) -> Expression:
        return Read(place[part.position], part.type) if isinstance(part, Read) else part

    def value(of: Expression | None) -> Expression | None:
        return None if of is None else with_leaves(of, leaf)

    def view(of: View) -> View:
        indices = tuple(i if isinstance(i, Index) else with_leaves(i, leaf) for i in of.indices)
        return View(of.buffer, indices, of.span)

    return replace(
        node,
        inputs=tuple(view(node.inputs[k]) for k in needed),
        outputs=tuple(map(view, node.outputs)),
        terms=tuple(with_leaves(term, leaf) for term in node.terms),
        initial=tuple(map(value, node.initial)),
    )


def _needed(node: MdHom) -> list[int]:
    """Return the inputs that values need, and those that their indices need."""
    found: set[int] = set()
    waiting = list(read_positions(*node.terms, *node.initial, *_computed(node.outputs)))
    while waiting:
        k = waiting.pop()
        if k not in found:
            found.add(k)
            waiting += read_positions(*_computed((node.inputs[k],)))
    return sorted(found)


def _computed(views: Collection[View]) -> list[Expression]:
    return [index for view in views for index in view.indices if not isinstance(index, Index)]


def _strip(node: MdHom, d: int, first: IntExpression, rows: int) -> MdHom:
    """Return a node for ``rows`` points of a dimension, from ``first`` on."""
    name = node.iterators[d]
    here = sum_of([(1, Name(name)), (1, first)])

    def leaf(part: Leaf) -> Expression:
        if not isinstance(part, Iterator) or part.dimension != d:
            return part
        return Binary(BinaryOp.ADD, part, Convert(part.type, _value(first)))

    def value(of: Expression | None) -> Expression | None:
        return None if of is None else with_leaves(of, leaf)

    def index(of: Index | Expression) -> Index | Expression:
        if not isinstance(of, Index):
            return with_leaves(of, leaf)
        return Index(of.coefficients, sum_of([(1, of.offset), (of.coefficients[d], first)]))

    def view(of: View) -> View:
        return View(of.buffer, tuple(map(index, of.indices)), of.span)

    def condition(of: IntExpression | None) -> IntExpression | None:
        return None if of is None else replace_name(of, name, here)

    return replace(
        node,
        extents=tuple(Number(rows) if k == d else extent for k, extent in enumerate(node.extents)),
        inputs=tuple(map(view, node.inputs)),
        outputs=tuple(map(view, node.outputs)),
        terms=tuple(with_leaves(term, leaf) for term in node.terms),
        initial=tuple(map(value, node.initial)),
        finish=tuple(map(value, node.finish)),
        guard=condition(node.guard),
        written=condition(node.written),
    )


def _value(first: IntExpression) -> Expression:
    """Return a sum of multiples of host iterators as a scalar function."""
    terms, constant = linear_terms([(1, first)])
    found: Expression = Constant(constant, ElementType.INT64)
    for factor, term in terms:
        assert isinstance(term, Name), first
        found = Binary(BinaryOp.ADD, found, ParameterValue(term.name, ElementType.INT64) * factor)
    return found
