"""What an md_hom with one output becomes in the IR of tensors: accesses, guard, one or two statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

from polyloom.diagnostics import Span, Unsupported, error
from polyloom.ir.expressions import Binary, Expression, Read, walk
from polyloom.ir.host import Combiner, Index, MdHom, Order, View
from polyloom.ir.inequalities import inequalities_of
from polyloom.ir.integers import fold
from polyloom.ir.rebuild import with_reads, with_value
from polyloom.ir.reductions import Combine
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import IntExpression, Number


class Parts:
    """What an md_hom with one output becomes in the IR of tensors."""

    def __init__(self, node: MdHom, current: Mapping[str, str]) -> None:
        self.node = node
        self.extents = tuple(number(e, f"an extent of `{node.name}`", node.span) for e in node.extents)
        self.accesses = tuple(_access(v, current.get(v.buffer, v.buffer), node) for v in node.inputs)
        self.target = _access(node.outputs[0], node.outputs[0].buffer, node)
        self.kept = tuple(k for k, o in enumerate(node.combine) if o.order is Order.CONCATENATE)
        self.reduction = _reduction(node)
        self.conditions = _conditions(node)

    def statement(self, target: str) -> Statement:
        """Return the md_hom as one statement."""
        return self._statement(self.node.name, self.extents, replace(self.target, buffer=target))

    def reduced_to(self, tensor: str) -> Statement:
        """Return the reduction into a tensor that has the kept dimensions."""
        units = tuple(Index.unit(k, len(self.extents)) for k in self.kept)
        return self._statement(self.node.name, self.extents, View(tensor, units, self.target.span))

    def _statement(self, name: str, extents: tuple[int, ...], write: View) -> Statement:
        positions = _positions([self.node.terms[0]])
        return Statement.of(
            name,
            self.node.iterators,
            extents,
            tuple(self.accesses[k] for k in positions),
            write,
            with_reads(self.node.terms[0], positions.index),
            self.reduction,
            self.conditions,
            self.node.span,
        )

    def finishing(self, tensor: str, start: Expression | None) -> Statement:
        """Return the map over the kept dimensions: ``finish(start op tensor)``."""
        node, count = self.node, len(self.node.inputs)
        reduced: Expression = Read(count, node.terms[0].type)
        total = reduced if start is None else _applied(self.reduction, start, reduced)
        value = total if node.finish[0] is None else with_value(node.finish[0], count, total)
        units = tuple(Index.unit(k, len(self.kept)) for k in range(len(self.kept)))
        reads = (*(self._projected(a) for a in self.accesses), View(tensor, units))
        positions = _positions([value])
        return Statement.of(
            f"{node.name}_end",
            tuple(node.iterators[k] for k in self.kept),
            tuple(self.extents[k] for k in self.kept),
            tuple(reads[k] for k in positions),
            self._projected(self.target),
            with_reads(value, positions.index),
            span=node.span,
        )

    def _projected(self, access: View) -> View:
        indices = (Index.of(tuple(i.coefficients[k] for k in self.kept), i.constant) for i in access.affine)
        return replace(access, indices=tuple(indices))


def _applied(reduction: Combine, left: Expression, right: Expression) -> Expression:
    operator = reduction.operator
    assert operator is not None
    return Binary(operator, left, right)


def _positions(expressions: list[Expression]) -> list[int]:
    """Return the numbers of the reads in expressions, in the order of their first use."""
    parts = (p for e in expressions for p in walk(e))
    return list(dict.fromkeys(p.position for p in parts if isinstance(p, Read)))


def check_form(node: MdHom) -> None:
    """Refuse an md_hom that no statement of the IR expresses. Errors: ``Unsupported`` with ``tensor-...``."""
    if len(node.outputs) != 1:
        message = f"`{node.name}` has {len(node.outputs)} results that are combined together"
        refuse("results", message, node.span, "compute one result at a time")
    orders = {o.order for o in node.combine}
    if Order.PREFIX in orders:
        refuse("scan", f"`{node.name}` is a scan", node.span, "tensor programs have reductions only")
    if Order.SERIAL in orders:
        refuse("serial", f"`{node.name}` has a sequential dimension", node.span, "let reductions be detected")
    if node.written is not None:
        message = f"`{node.name}` writes under a condition on its iterators"
        refuse("part", message, node.span, "write whole arrays")


def _reduction(node: MdHom) -> Combine:
    combiners = list(dict.fromkeys(o.combiner for o in node.combine if o.combiner is not None))
    if not combiners:
        return Combine.CONCATENATE
    found = [_known_reduction(c, node.terms[0].type) for c in combiners]
    if len(found) > 1 or found[0] is None:
        names = ", ".join(c.name for c in combiners)
        message = f"`{node.name}` combines with {names}"
        refuse("operator", message, node.span, "tensor programs have one of +, *, max, min")
    return found[0]


def _known_reduction(combiner: Combiner, kind: ElementType) -> Combine | None:
    reductions = (c for c in Combine if c is not Combine.CONCATENATE)
    return next((c for c in reductions if combiner.results == (_result(c, kind),)), None)


def _result(reduction: Combine, kind: ElementType) -> Expression:
    return _applied(reduction, Read(0, kind), Read(1, kind))


def _access(view: View, tensor: str, node: MdHom) -> View:
    indices = []
    for index in view.indices:
        if not isinstance(index, Index):
            message = f"`{node.name}` computes an index of `{view.buffer}`"
            refuse("index", message, view.span or node.span, "tensor programs have affine indices")
        offset = fold(index.offset, {})
        if not isinstance(offset, Number):
            message = f"an index of `{view.buffer}` depends on a host iterator"
            refuse("index", message, view.span or node.span, "tensor programs have affine indices")
        indices.append(Index.of(index.coefficients, offset.value))
    return View(tensor, tuple(indices), view.span)


def _conditions(node: MdHom) -> tuple[Index, ...]:
    """Return affine functions that are >= 0 where the guard holds."""
    found = inequalities_of(node.guard, node.iterators)
    if found is None:
        message = f"the condition of `{node.name}` is no conjunction of affine inequalities"
        refuse("guard", message, node.span, "tensor programs have guards of that form only")
    return found


def number(expression: IntExpression, what: str, span: Span | None) -> int:
    """Return an extent as a number. Errors: ``tensor-size``."""
    value = fold(expression, {})
    if not isinstance(value, Number):
        refuse("size", f"{what} depends on a host iterator", span, "tensors have fixed sizes")
    if value.value < 1:
        refuse("size", f"{what} is {value.value}", span, "tensors have at least one element")
    return value.value


def refuse(code: str, message: str, span: Span | None, help_: str) -> NoReturn:
    """Raise ``Unsupported`` with the code ``tensor-...``."""
    helps = [help_, "`polyloom run` runs it with OpenCL"]
    raise Unsupported(error(f"tensor-{code}", f"this is no tensor program: {message}", span, helps=helps))
