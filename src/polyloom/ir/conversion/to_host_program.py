"""Tensor programs as host programs: each statement an md_hom, for the back ends that take those.

A statement whose instances meet in an element although they differ in an index of the write is brought into
a form that md_homs have (``_nodes``).
"""

from __future__ import annotations

from collections.abc import Iterator as Iterator_
from dataclasses import dataclass, replace
from math import prod

from polyloom.ir.expressions import Binary, Constant, Expression, Iterator, ParameterValue, Read
from polyloom.ir.host import Buffer, CombineOperator, HostNode, HostProgram, Index, MdHom, Order, View
from polyloom.ir.order import WalkedDimension
from polyloom.ir.program import Program
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.reductions import KEPT, Combine, combiner, neutral
from polyloom.ir.relations import first_unwritten, first_written_twice
from polyloom.ir.statements import Statement, kept_points, loops_of, lost_dimensions
from polyloom.ir.transform.change_of_basis import gathered, solved
from polyloom.ir.transform.fuse_epilogues import with_finishing_maps
from polyloom.ir.transform.parts_in_place import with_parts_in_place
from polyloom.ir.types import ElementType
from polyloom.ir.verification.passes import after_pass, at_the_end
from polyloom.polyhedra.loops.tree import IntExpression, Loop, Name, Number, Operation, sum_of

_DEAREST_GATHER = 4
"""How many times the points of a statement a gather may have, before host loops are taken instead."""


def host_program(program: Program) -> HostProgram:
    """Return the host program of a tensor program: its tensors as buffers, its statements as md_homs.

    Parts of a buffer are stored in it (``transform/parts_in_place``). Maps end the md_homs before them
    (``transform/fuse_epilogues``), whose results then are no buffers any more. The order in which terms of an
    element are added may differ from the evaluator's where writes overlap.
    """
    buffers = tuple(replace(b, start=None) for b in program.buffers)
    body = tuple(node for s in program.body for node in _nodes(s, program.buffer(s.write.buffer)))
    made = after_pass(
        "making md_homs", HostProgram(name=program.name, parameters=(), buffers=buffers, body=body)
    )
    placed = after_pass("storing parts in place", with_parts_in_place(made))
    return at_the_end("joining maps", with_finishing_maps(placed))


def _nodes(statement: Statement, target: Buffer) -> tuple[HostNode, ...]:
    """Return the md_homs of a statement, in one of four forms.

    - as it is: instances with different kept iterators write different elements, and all are written;
    - the output filled first, then the statement as it is (``y[2 * i] += x[i]``, padding);
    - gathered: a point for every element, which looks for its terms (``dx[w + r] += dy[w] * W[r]``);
    - the output filled first, then host loops around an md_hom that overlaps no more.
    """
    if _writes_apart(statement):
        plain = _md_hom(statement, target)
        return (plain,) if _writes_all(statement, target) else (_fill(statement, target), plain)
    gather = _gather(statement, target)
    if gather is not None:
        return (_md_hom(gather, target),)
    return (_fill(statement, target), *_looped(statement, target))


def _writes_apart(statement: Statement) -> bool:
    return first_written_twice(kept_points(statement).changed(conditions=())) is None


def _writes_all(statement: Statement, target: Buffer) -> bool:
    """Whether every element is written, given that no two kept points write the same."""
    reduces = statement.reduction is not Combine.CONCATENATE and lost_dimensions(statement)
    if statement.conditions and not reduces:
        return first_unwritten(statement, target) is None
    if _element_exists(statement, target) is not None:
        return False
    return prod(kept_points(statement).domain) == prod(target.extents)


def _element_exists(statement: Statement, target: Buffer) -> IntExpression | None:
    """Return where a kept point of a reduction has an element; None where all have one.

    A point whose terms the guard excludes still stores the neutral element, so it must have a place for it.
    """
    if statement.reduction is Combine.CONCATENATE:
        return None
    conditions = tuple(
        condition
        for index, n in zip(statement.write.affine, target.extents, strict=True)
        for condition in _bounds_to_check(statement, index, n)
    )
    if len(conditions) < 2:
        return next(iter(conditions), None)
    return Operation("and", conditions)


def _bounds_to_check(statement: Statement, index: Index, length: int) -> Iterator_[IntExpression]:
    """Yield ``0 <= index`` and ``index < length``, those that do not hold on the whole domain."""
    ends = [sorted((0, c * (n - 1))) for c, n in zip(index.coefficients, statement.domain, strict=True)]
    terms: list[tuple[int, IntExpression]] = [
        (c, Name(name)) for c, name in zip(index.coefficients, statement.iterators, strict=True) if c
    ]
    place = sum_of([*terms, (1, Number(index.constant))])
    if index.constant + sum(low for low, _ in ends) < 0:
        yield Operation(">=", (place, Number(0)))
    if index.constant + sum(high for _, high in ends) >= length:
        yield Operation("<", (place, Number(length)))


def _gather(statement: Statement, target: Buffer) -> Statement | None:
    """Return the gathering form, if there is one and it is not too dear."""
    change = solved(statement)
    if change is None or statement.reduction is Combine.CONCATENATE:
        return None
    gather = gathered(statement, target.extents, change)
    dear = prod(gather.domain) > _DEAREST_GATHER * prod(statement.domain) + 4096
    return None if dear else gather


@dataclass(frozen=True)
class _Around:
    """Host iterators that stand for dimensions of a statement."""

    names: dict[int, str]

    def index(self, affine: Index, kept: tuple[int, ...]) -> Index:
        terms: list[tuple[int, IntExpression]] = [
            (affine.coefficients[k], Name(name)) for k, name in self.names.items() if affine.coefficients[k]
        ]
        offset = sum_of([*terms, (1, Number(affine.constant))])
        return Index(tuple(affine.coefficients[k] for k in kept), offset)

    def view(self, access: View, kept: tuple[int, ...]) -> View:
        return View(access.buffer, tuple(self.index(i, kept) for i in access.affine), access.span)

    def expression(self, expression: Expression, kept: tuple[int, ...]) -> Expression:
        """Return a scalar function over the dimensions that are left."""

        def leaf(part: Expression) -> Expression | None:
            if not isinstance(part, Iterator):
                return None
            if part.dimension in self.names:
                return ParameterValue(self.names[part.dimension], part.type)
            return Iterator(kept.index(part.dimension), part.type)

        return rebuilt(expression, leaf)


def _md_hom(statement: Statement, target: Buffer, around: tuple[WalkedDimension, ...] = ()) -> MdHom:
    """Return the md_hom of a statement; ``around``: dimensions that host loops walk.

    Inside host loops a reduction takes up what the element holds.
    """
    host = _Around({loop.dimension: statement.iterators[loop.dimension] for loop in around})
    kept = tuple(k for k in range(len(statement.domain)) if k not in host.names)
    operators = tuple(_operators(statement, target.type)[k] for k in kept)
    operator = statement.reduction.operator if around else None
    own, meet = Read(len(statement.reads), target.type), operators != (KEPT,) * len(kept)
    joined = None if operator is None or meet else Binary(operator, own, statement.expression)
    return MdHom(
        name=statement.name,
        iterators=tuple(statement.iterators[k] for k in kept),
        extents=tuple(Number(statement.domain[k]) for k in kept),
        inputs=tuple(host.view(a, kept) for a in (statement.inputs if operator else statement.reads)),
        outputs=(host.view(statement.write, kept),),
        terms=(host.expression(joined or statement.expression, kept),),
        combine=operators,
        initial=(own if operator and meet else None,),
        finish=(None,),
        guard=statement.guard,
        written=None if joined else _element_exists(statement, target),
        span=statement.span,
    )


def _operators(statement: Statement, kind: ElementType) -> tuple[CombineOperator, ...]:
    lost = lost_dimensions(statement)
    if statement.reduction is Combine.CONCATENATE:
        return (KEPT,) * len(statement.domain)
    reduce = CombineOperator(Order.POINTWISE, combiner(statement.reduction, kind))
    return tuple(reduce if k in lost else KEPT for k in range(len(statement.domain)))


def _fill(statement: Statement, target: Buffer) -> MdHom:
    """Return the md_hom that sets every element to what the reduction starts from."""
    rank = len(target.extents)
    units = tuple(Index.unit(k, rank) for k in range(rank))
    start = neutral(statement.reduction, target.type)
    return MdHom(
        name=f"{statement.name}_start",
        iterators=tuple(f"o{k}" for k in range(rank)),
        extents=target.shape,
        inputs=(),
        outputs=(View(target.name, units, statement.write.span),),
        terms=(Constant(start, target.type),),
        combine=(KEPT,) * rank,
        initial=(None,),
        finish=(None,),
        span=statement.span,
    )


def _looped(statement: Statement, target: Buffer) -> tuple[HostNode, ...]:
    """Return host loops over the dimensions on which points that write one element differ."""
    walked = loops_of(kept_points(statement))
    inner: HostNode = _md_hom(statement, target, walked)
    for loop in reversed(walked):
        inner = _host_loop(statement, loop, inner)
    return (inner,)


def _host_loop(statement: Statement, loop: WalkedDimension, inner: HostNode) -> HostNode:
    name = statement.iterators[loop.dimension]
    last = Number(statement.domain[loop.dimension] - 1)
    if loop.backwards:
        return Loop(
            iterator=name,
            start=last,
            condition=Operation(">=", (Name(name), Number(0))),
            step=Number(-1),
            body=(inner,),
        )
    return Loop(
        iterator=name,
        start=Number(0),
        condition=Operation("<=", (Name(name), last)),
        step=Number(1),
        body=(inner,),
    )
