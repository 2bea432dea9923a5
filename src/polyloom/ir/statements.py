"""Statements of tensor programs: md_homs of one form.

    dx[w + r] += dy[w] * W[r]       dx[w + r] . md_hom(dy[w] * W[r], (++, +)), starting from dx[w + r]
    y[2 * i] += x[i]                y[2 * i] . md_hom(y[2 * i] + x[i], (++))

A statement is an md_hom with one output, extents and offsets that are numbers, a conjunction of affine
inequalities as guard, one operator for all dimensions that are reduced, and the neutral element in all of
its output before it starts. Dimensions are reduced where their points meet in an element; where none do, the
term takes up what the output holds. The back ends of md_homs take a narrower form, in which points that
reduced dimensions tell apart write one element (``conversion/to_host_program``).
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TypedDict, Unpack

from polyloom.diagnostics import Span
from polyloom.ir.expressions import Binary, Expression, Read
from polyloom.ir.host import CombineOperator, Index, MdHom, Order, View
from polyloom.ir.inequalities import condition_of, inequalities_of
from polyloom.ir.order import WalkedDimension, dependent, loops
from polyloom.ir.reductions import KEPT, Combine, combiner
from polyloom.polyhedra.loops.tree import Number

_OPERATORS = frozenset(c.operator for c in Combine)


class Values(TypedDict, total=False):
    """What a statement says."""

    name: str
    iterators: tuple[str, ...]
    domain: tuple[int, ...]
    reads: tuple[View, ...]
    write: View
    expression: Expression
    reduction: Combine
    conditions: tuple[Index, ...]
    span: Span | None


class Statement(MdHom):
    """``write combine= expression(reads)`` for all points of a zero-based rectangle.

    ``reduction`` is the operator with which instances that write the same element combine, or
    CONCATENATE for a plain ``=``; ``combine_operators`` gives that of each dimension. ``conditions``:
    affine expressions that are >= 0 at the points that take part; the others contribute the neutral element.
    A reduction reads the element that it writes, as the last of the md_hom's inputs.
    """

    @classmethod
    def of(
        cls,
        name: str,
        iterators: tuple[str, ...],
        domain: tuple[int, ...],
        reads: tuple[View, ...],
        write: View,
        expression: Expression,
        reduction: Combine = Combine.CONCATENATE,
        conditions: tuple[Index, ...] = (),
        span: Span | None = None,
    ) -> Statement:
        """Return the statement that says this."""
        operator, own = reduction.operator, Read(len(reads), expression.type)
        rows = tuple(index.coefficients for index in write.affine)
        met = _meeting(domain, rows) if operator else frozenset()
        reduced = CombineOperator(Order.POINTWISE, combiner(reduction, expression.type)) if met else KEPT
        return cls(
            name=name,
            iterators=iterators,
            extents=tuple(map(Number, domain)),
            inputs=(*reads, write) if operator else reads,
            outputs=(write,),
            terms=(Binary(operator, own, expression) if operator and not met else expression,),
            combine=tuple(reduced if k in met else KEPT for k in range(len(domain))),
            initial=(own if met else None,),
            finish=(None,),
            guard=condition_of(conditions, iterators),
            span=span,
        )

    def changed(self, **changes: Unpack[Values]) -> Statement:
        """Return the statement that says something else."""
        values: Values = {
            "name": self.name,
            "iterators": self.iterators,
            "domain": self.domain,
            "reads": self.reads,
            "write": self.write,
            "expression": self.expression,
            "reduction": self.reduction,
            "conditions": self.conditions,
            "span": self.span,
        }
        values.update(changes)
        return Statement.of(**values)

    @property
    def is_in_form(self) -> bool:
        """Whether the md_hom is what ``of`` makes of the values that it says."""
        places = [i for view in (*self.inputs, *self.outputs) for i in view.indices]
        offsets = [i.offset if isinstance(i, Index) else None for i in places]
        numbers = all(isinstance(n, Number) for n in (*self.extents, *offsets))
        affine = inequalities_of(self.guard, self.iterators) is not None
        return numbers and affine and self.changed() == self

    @cached_property
    def domain(self) -> tuple[int, ...]:
        """The extents, all of them numbers."""
        return tuple(n.value for n in self.extents if isinstance(n, Number))

    @cached_property
    def reads(self) -> tuple[View, ...]:
        """What the expression reads; its ``Read`` positions index these."""
        return self.inputs if self.reduction is Combine.CONCATENATE else self.inputs[:-1]

    @cached_property
    def write(self) -> View:
        """The element that is written."""
        return self.outputs[0]

    @cached_property
    def expression(self) -> Expression:
        """The scalar function."""
        return self.terms[0] if self._taking_up is None else self._taking_up.right

    @cached_property
    def reduction(self) -> Combine:
        """The operator with which instances that write the same element combine; ``++`` for ``=``."""
        reducing = next((o.combiner for o in self.combine if o.combiner), None)
        if reducing is not None:
            return Combine(reducing.name)
        return Combine.CONCATENATE if self._taking_up is None else Combine(self._taking_up.op.name)

    @cached_property
    def conditions(self) -> tuple[Index, ...]:
        """Affine functions of the iterators that are >= 0 at the points that take part."""
        found = inequalities_of(self.guard, self.iterators)
        assert found is not None, self.guard
        return found

    @cached_property
    def _taking_up(self) -> Binary | None:
        """The term of a reduction whose points do not meet: ``y[2 * i] + x[i]``."""
        match self.terms[0]:
            case Binary(op=op, left=Read(position=k)) as term if op in _OPERATORS and self.initial == (None,):
                return term if self.inputs[k:] == self.outputs else None
            case _:
                return None


@lru_cache(maxsize=1024)
def _meeting(domain: tuple[int, ...], rows: tuple[tuple[int, ...], ...]) -> frozenset[int]:
    """Return the dimensions along which points meet in an element."""
    return frozenset(loop.dimension for loop in loops(domain, rows))


def lost_dimensions(statement: Statement) -> tuple[int, ...]:
    """Return the dimensions that no index of the write uses."""
    indices = statement.write.affine
    return tuple(k for k in range(len(statement.domain)) if not any(i.coefficients[k] for i in indices))


def kept_points(statement: Statement) -> Statement:
    """Return the statement with one value of each lost dimension of a reduction."""
    lost = () if statement.reduction is Combine.CONCATENATE else lost_dimensions(statement)
    return statement.changed(domain=tuple(1 if k in lost else n for k, n in enumerate(statement.domain)))


def loops_of(statement: Statement) -> tuple[WalkedDimension, ...]:
    """Return the loops of a statement (``loops``)."""
    return loops(statement.domain, [index.coefficients for index in statement.write.affine])


def combine_operators(statement: Statement) -> tuple[Combine, ...]:
    """Return one combine operator per dimension of a statement's domain.

    Dimensions are concatenated as long as the elements written tell their points apart, from the first on;
    the others are reduced, where they share an index (``dx[w + r]``: ``++``, ``+``) into overlapping places.
    """
    columns = list(zip(*(index.coefficients for index in statement.write.affine), strict=True))
    columns = columns or [()] * len(statement.domain)
    reduced = dependent(range(len(columns))[::-1], columns[::-1])
    return tuple(statement.reduction if k in reduced else Combine.CONCATENATE for k in range(len(columns)))
