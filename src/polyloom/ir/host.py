"""Host programs: sequential loops around md_homs, over buffers that are updated in place.

What C and training loops become. A ``MdHom`` is a statement of the IR without its restrictions: its extents
may depend on parameters and on the iterators of the host loops around it, it may have several outputs that
are combined together, its combine operators may be the user's own, it may start from what the buffer holds,
and it may finish its results with a map. A ``Nest`` is an md_hom whose scalar function is a small sequential
program (md_poly's Listing 2, taken to its end); with no parallel dimension it is that program itself.

Integer expressions (extents, offsets, guards) are over parameters, host iterators and, where it is said,
over the iterators of the md_hom. Truth values among them come from comparisons, ``and`` and ``or``.

Source: md_poly, Sec. 3.1 (md_hom, views, operators). Not in the papers: host loops, guards, initial values,
finishing maps.
"""

from __future__ import annotations

from collections.abc import Iterator as Iterator_
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from textwrap import shorten
from typing import TypeAlias

from polyloom.diagnostics import Span
from polyloom.ir.expressions import Expression
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import Branch, IntExpression, Loop, Number, Tree, leaves_in, nodes_in

ZERO = Number(0)


@dataclass(frozen=True)
class Index:
    """``sum(coefficients[k] * iterator[k]) + offset``; the offset is over parameters and host iterators."""

    coefficients: tuple[int, ...]
    offset: IntExpression = ZERO

    @classmethod
    def of(cls, coefficients: tuple[int, ...], constant: int = 0) -> Index:
        """Return an index whose offset is a number."""
        return cls(coefficients, Number(constant))

    @classmethod
    def unit(cls, dimension: int, dimensions: int) -> Index:
        """Return the index that is one iterator."""
        return cls(tuple(int(k == dimension) for k in range(dimensions)))

    @cached_property
    def used(self) -> tuple[tuple[int, int], ...]:
        """The iterators that the index depends on, each with its coefficient."""
        return tuple((k, c) for k, c in enumerate(self.coefficients) if c)

    @property
    def constant(self) -> int:
        """The offset, which is a number (in tensor programs, and where parameters have values)."""
        assert isinstance(self.offset, Number), self.offset
        return self.offset.value


@dataclass(frozen=True)
class View:
    """Which element of a buffer belongs to a point: an index per dimension of the buffer.

    An index is affine (``Index``), or any integer expression in the IR's sense, such as ``i / 2`` or an
    element that another view reads (``hist[bin[i]]``); its ``Read`` positions are those of the md_hom's
    inputs.
    """

    buffer: str
    indices: tuple[Index | Expression, ...]
    span: Span | None = field(default=None, compare=False, repr=False)

    @cached_property
    def affine(self) -> tuple[Index, ...]:
        """The indices, none of which is computed (in tensor programs)."""
        found = tuple(index for index in self.indices if isinstance(index, Index))
        assert len(found) == len(self.indices), self
        return found


class Role(Enum):
    """What a buffer is to the caller."""

    INPUT = "input"
    OUTPUT = "output"
    """Written whole before it is read."""
    UPDATED = "updated"
    """Read and written, or written in part."""
    LOCAL = "local"
    """Of no use to the caller: a local array, an expanded scalar."""


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """An array in memory, row by row; rank 0 is a scalar. Extents are over the parameters.

    ``rows``: the program touches no others than from the first of these numbers, in the first dimension, to
    before the second; both are in the array, or the first is not less than the second. None: not known.
    ``start``: what all elements are before the program runs; None: what the caller gives, or nothing defined.
    ``constant``: its elements change seldom, so that what depends on them alone is done when they do.
    ``truths``: what the caller gives is 0 or 1 in each element (``_Bool``).
    ``behind``: how many bytes behind a line of 64 it begins, where it is likely that it does: a hint.
    ``memory``: what buffers of one name lie in together, though none uses an element of another; empty: each
    has its own.
    ``alone``: nobody says how many elements it has, and the source that none is another array's that is
    written, or that it is itself (``restrict``).
    """

    name: str
    type: ElementType
    shape: tuple[IntExpression, ...]
    role: Role
    span: Span | None = field(default=None, compare=False, repr=False)
    rows: tuple[IntExpression, IntExpression] | None = field(default=None, compare=False, repr=False)
    start: float | int | None = None
    constant: bool = False
    truths: bool = field(default=False, compare=False)
    behind: int | None = field(default=None, compare=False, repr=False)
    memory: str = field(default="", compare=False, repr=False)
    alone: bool = field(default=False, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        name: str,
        kind: ElementType,
        extents: tuple[int, ...],
        span: Span | None = None,
        role: Role = Role.LOCAL,
    ) -> Buffer:
        """Return a buffer whose extents are numbers."""
        return cls(name=name, type=kind, shape=tuple(map(Number, extents)), role=role, span=span)

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """The shape, all of it numbers (in tensor programs, and where parameters have values)."""
        found = tuple(n.value for n in self.shape if isinstance(n, Number))
        assert len(found) == len(self.shape), self
        return found


class Order(Enum):
    """How a dimension's points come together."""

    CONCATENATE = "++"
    POINTWISE = "pw"
    """All points of the dimension are combined into one (a reduction)."""
    PREFIX = "ps"
    """The point k keeps what the points 0..k combine to (a scan)."""
    SERIAL = "serial"
    """One after another, through memory: the Unknown Combine Operator of md_poly's solution 1."""


@dataclass(frozen=True, kw_only=True)
class Combiner:
    """An associative operator on tuples, one value per output of the md_hom.

    ``results[o]`` is over reads: position ``p`` < n is output p of the left operand, position n + p that of
    the right one. ``neutral[o]`` is None where there is no neutral element: then the first term starts.
    Where there is one, parts start from it: a term t comes in as ``neutral op t``, and it is on such values
    that the operator is associative (``e > x ? e : x`` is on numbers; a NaN comes in as -inf).
    ``commutative`` tells whether operands may change places. Where ``associative`` is false the terms are
    combined one by one into the initial value, in their order, as floats are under ``--fp strict``.
    """

    name: str
    results: tuple[Expression, ...]
    neutral: tuple[float | int | None, ...]
    commutative: bool = True
    associative: bool = True


@dataclass(frozen=True)
class CombineOperator:
    """``++``, ``serial``, ``pw(f)`` or ``ps(f)``; the last two have a combiner."""

    order: Order
    combiner: Combiner | None = None

    def __str__(self) -> str:
        name = self.combiner.name if self.combiner else ""
        return {Order.POINTWISE: name, Order.PREFIX: f"ps({name})"}.get(self.order, self.order.value)


@dataclass(frozen=True, kw_only=True)
class MdHom:
    """``out_view . md_hom(f, (op_1, ..., op_d)) . inp_view``, one per launch.

    ``outputs[o]`` becomes ``finish[o]`` of ``initial[o] op terms[o] op ...`` over the points of the
    zero-based rectangle ``extents`` where ``guard`` holds (None: everywhere). The output views use only
    dimensions that are kept (``++`` and prefix dimensions), unless an index is computed from data (a
    histogram): then the points that meet in one element are combined by the operator of the dimensions that
    the view loses.

    ``terms``: per output, the scalar function; ``Read`` positions index ``inputs``.
    ``initial``: per output, what the reduction starts from, over the kept dimensions (reads of ``inputs``
    whose views use kept dimensions only); None: the neutral element (for ``++`` alone: nothing).
    ``finish``: per output, a map of the combined values: ``Read`` positions below len(inputs) index
    ``inputs`` at the kept point, len(inputs) + o is the combined value of output o. None: the value itself.
    ``guard``: over iterators, host iterators and parameters; points outside contribute nothing.
    ``written``: over the kept iterators, host iterators and parameters; which outputs are stored.
    Inputs are read before any output is written: where a buffer is both, a point reads only elements that
    it alone writes, or the host program has made a copy before.
    """

    name: str
    iterators: tuple[str, ...]
    extents: tuple[IntExpression, ...]
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]
    terms: tuple[Expression, ...]
    combine: tuple[CombineOperator, ...]
    initial: tuple[Expression | None, ...]
    finish: tuple[Expression | None, ...]
    guard: IntExpression | None = None
    written: IntExpression | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """``target = value`` at one instance of a statement; ``Read`` positions index ``reads``.

    Indices of views are over ``iterators`` (the statement's own), in place of those of an md_hom.
    ``condition``: a truth value of the data; the assignment happens where it holds.
    """

    name: str
    iterators: tuple[str, ...]
    target: View
    reads: tuple[View, ...]
    value: Expression
    condition: Expression | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Nest:
    """An md_hom of ``++`` over ``extents`` whose scalar function is a sequential program.

    ``body``: loops, branches and instances of ``assignments`` (by name), over ``iterators``, host iterators
    and parameters. ``private``: local buffers of which every point has its own copy.
    """

    name: str
    iterators: tuple[str, ...]
    extents: tuple[IntExpression, ...]
    body: Tree
    assignments: tuple[Assignment, ...]
    private: tuple[Buffer, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Copy:
    """All of ``source`` is copied to ``target``, a buffer of the same shape and type."""

    source: str
    target: str


HostLeaf = MdHom | Nest | Copy
HostNode: TypeAlias = "Loop[HostNode] | Branch[HostNode] | HostLeaf"
"""Loops run on the host, in order; branches ask about parameters and host iterators."""


@dataclass(frozen=True)
class Parameter:
    """An integer that is known when the program starts: a C scalar argument in bounds or subscripts."""

    name: str
    type: ElementType


@dataclass(frozen=True, kw_only=True)
class HostProgram:
    """Host nodes in order over buffers; what is known of the parameters is ``context`` (a condition).

    ``strict``: every operation on floats is rounded as it is written, and none is contracted. ``in_rows``:
    where host loops are wavefronts, the same program in tiles, or with the loops of the source.
    """

    name: str
    parameters: tuple[Parameter, ...]
    buffers: tuple[Buffer, ...]
    body: tuple[HostNode, ...]
    context: IntExpression | None = None
    strict: bool = False
    in_rows: HostProgram | None = None

    def __repr__(self) -> str:
        names = shorten(", ".join(b.name for b in self.buffers), 120)
        return f"<HostProgram {self.name}: {names}; {len(self.body)} nodes>"

    @cached_property
    def by_name(self) -> Mapping[str, Buffer]:
        """The buffers by their names."""
        return {buffer.name: buffer for buffer in self.buffers}

    def buffer(self, name: str) -> Buffer:
        """Return the buffer called ``name``; KeyError where there is none."""
        return self.by_name[name]

    @property
    def given(self) -> tuple[Buffer, ...]:
        """The buffers that a caller gives: inputs, and what is updated."""
        return tuple(b for b in self.buffers if b.role in (Role.INPUT, Role.UPDATED))

    @property
    def results(self) -> tuple[str, ...]:
        """Names of the buffers that an evaluation returns: outputs, and what is updated."""
        return tuple(b.name for b in self.buffers if b.role in (Role.OUTPUT, Role.UPDATED))


def has_shared_loops(program: HostProgram) -> bool:
    """Return whether any host loop has iterations that may run at once."""
    return any(isinstance(node, Loop) and node.parallel for node in nodes_in(program.body))


@dataclass(frozen=True)
class Uses:
    """The buffers that nodes read and write."""

    read: frozenset[str]
    written: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """Every buffer that is touched."""
        return self.read | self.written


def uses(nodes: Sequence[HostNode]) -> Uses:
    """Return the buffers that nodes read and write."""
    read: set[str] = set()
    written: set[str] = set()
    for node in leaves_in(nodes):
        match node:
            case MdHom(inputs=inputs, outputs=outputs):
                read |= {v.buffer for v in inputs}
                written |= {v.buffer for v in outputs}
            case Nest(assignments=assignments, private=private):
                own = {b.name for b in private}
                read |= {v.buffer for a in assignments for v in a.reads} - own
                written |= {a.target.buffer for a in assignments} - own
            case Copy(source=source, target=target):
                read.add(source)
                written.add(target)
    return Uses(frozenset(read), frozenset(written))


def expressions_of(node: MdHom | Nest) -> Iterator_[Expression]:
    """Yield the scalar functions of a node, with those in indices, conditions and operators."""
    views: tuple[View, ...]
    if isinstance(node, MdHom):
        values = (*node.terms, *node.initial, *node.finish)
        views = (*node.inputs, *node.outputs)
    else:
        values = tuple(e for a in node.assignments for e in (a.value, a.condition))
        views = tuple(view for a in node.assignments for view in (a.target, *a.reads))
    yield from (e for e in values if e is not None)
    yield from (index for view in views for index in view.indices if not isinstance(index, Index))
    for operator in node.combine if isinstance(node, MdHom) else ():
        yield from operator.combiner.results if operator.combiner else ()


def all_expressions(program: HostProgram) -> Iterator_[Expression]:
    """Yield the scalar functions of all nodes of a program."""
    for node in leaves_in(program.body):
        if isinstance(node, MdHom | Nest):
            yield from expressions_of(node)


def used_buffers(hom: MdHom) -> tuple[str, ...]:
    """Return the buffers of an md_hom, outputs first, each once."""
    return tuple(dict.fromkeys(view.buffer for view in (*hom.outputs, *hom.inputs)))
