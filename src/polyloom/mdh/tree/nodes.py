"""Nodes of the kernel tree: loops of several kinds, branches, typed values, stores, arrays, barriers.

    parallel for i0 from 0 to 1024 step 8:
      float32 sum[8] in registers
      vector for l from 0 to 8: sum[l] = 0
      for k from 0 to 512:
        vector for l from 0 to 8: sum[l] = sum[l] + A[i0 + l, k] * x[k]    # S(i0 + l, k)
      vector for l from 0 to 8: y[i0 + l] = sum[l]

Every kind of loop means the same as a sequential one: a kind only says how a printer may carry it out, and
the verifier proves that it may. So one evaluator, one verifier and every pass treat all loops alike. Values
are scalar functions of the IR (``ir/expressions``) over loads; integers are those of ``polyhedra/loops``.

Source: md_poly, Sec. 4 (levels of a schedule). Not in the papers: the tree itself; its counterpart in loopy,
TVM and Exo gave the idea.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from polyloom.ir.expressions import Expression
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import Instance, IntExpression, Name, Number, Operation, sum_of

ZERO, ONE = Number(0), Number(1)


class Kind(Enum):
    """How a loop may be carried out."""

    SEQUENTIAL = "for"
    UNROLLED = "unrolled for"
    """Written out, point by point; start, end and step are numbers once passes are done."""
    VECTOR = "vector for"
    """All points at once, statement by statement; from 0 to a number, step 1. Its body is straight-line."""
    GROUP = "parallel for"
    """Points are independent: threads of a team, or work-groups. No group loop is inside another kind."""
    INDEPENDENT = "independent for"
    """Points are independent, and one thread carries them out: a compiler may make vectors of them."""
    REDUCING = "reducing for"
    """Points are combined into one total in any order, by one thread: a compiler may make vectors of them."""
    ITEM = "item for"
    """Points are the work-items of a group, from 0 to a number; they meet at barriers.

    Inside of other items they are the lanes of a warp: what stands beside them, all lanes do together.
    """
    MATRIX = "matrix for"
    """A block that the matrix unit of a warp does at once, as ``tree/matrix`` says; from 0 to 16, step 1."""


class Space(Enum):
    """Where an array that a kernel declares lies."""

    REGISTER = "registers"
    """One for each work-item; passes make its subscripts numbers, but for lanes."""
    PRIVATE = "stack"
    """One for each work-item, in memory."""
    GROUP = "group"
    """One for each point of the group loops around it, for the items of a group: a thread's own on a CPU.

    Outside of group loops there is one, which all of their points share.
    """
    UNIT = "a matrix unit"
    """One for each warp, whose lanes have parts of it: only loops of ``Kind.MATRIX`` load and store it."""


class Part(Enum):
    """What a block in a matrix unit is, and what its last two dimensions are there.

    Of ``sum[i, j] += left[i, k] * right[k, j]``; those that are turned lie the other way in memory.
    """

    SUM = "sums (i, j)"
    LEFT = "left (i, k)"
    LEFT_TURNED = "left (k, i)"
    RIGHT = "right (k, j)"
    RIGHT_TURNED = "right (j, k)"


@dataclass(frozen=True)
class Load:
    """``array[subscripts]``; of rank 0 a scalar, or a value that a ``Let`` has named.

    A subscript is an integer, or data (``hist[bin[i]]``).
    """

    array: str
    subscripts: tuple[Subscript, ...] = ()


@dataclass(frozen=True)
class Compute:
    """A scalar function: ``Read(k)`` is ``loads[k]``, ``Iterator(d)`` is ``iterators[d]``.

    It has no ``ParameterValue``: parameters are iterators here, so that all integers are in one place.
    """

    expression: Expression
    loads: tuple[Load, ...] = ()
    iterators: tuple[IntExpression, ...] = ()

    @property
    def type(self) -> ElementType:
        """The type of the value."""
        return self.expression.type


Subscript = IntExpression | Compute
Condition = IntExpression | Compute
"""A truth value of integers, or of data."""


@dataclass(frozen=True)
class Form:
    """What a loop is but for its names: those with the same ``number`` differ in ``names`` alone."""

    number: int
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class For:
    """``for (iterator = start; condition; iterator += step) body``.

    All kinds but sequential ones have the condition ``iterator < end`` and a positive number as step.
    ``by_work``: iterations of a group loop differ in work, so threads share that, not their number.
    ``nowait``: threads go on to the group loop behind it before all iterations are done.
    ``form``: of a group loop; printers that know it print the first loop of each.
    """

    iterator: str
    start: IntExpression
    condition: IntExpression
    step: IntExpression = ONE
    kind: Kind = Kind.SEQUENTIAL
    by_work: bool = False
    nowait: bool = False
    form: Form | None = None
    body: Code

    @property
    def end(self) -> IntExpression:
        """What the iterator stays below. Errors: ValueError where the condition says more than that."""
        match self.condition:
            case Operation(operator="<", operands=(Name(name=name), end)) if name == self.iterator:
                return end
            case Operation(operator="<=", operands=(Name(name=name), last)) if name == self.iterator:
                return sum_of([(1, last), (1, ONE)])
        raise ValueError(f"the loop over {self.iterator} has no such end")


def counted(
    iterator: str,
    end: IntExpression,
    body: Code,
    *,
    kind: Kind = Kind.SEQUENTIAL,
    start: IntExpression = ZERO,
    step: int = 1,
) -> For:
    """Return a loop from ``start`` to before ``end``."""
    condition = Operation("<", (Name(iterator), end))
    return For(iterator=iterator, start=start, condition=condition, step=Number(step), kind=kind, body=body)


@dataclass(frozen=True)
class If:
    """``if (condition) body else otherwise``."""

    condition: Condition
    body: Code
    otherwise: Code = ()


@dataclass(frozen=True)
class While:
    """``while (condition) body``: data decide how often. Its stores are to registers declared around it."""

    condition: Compute
    body: Code


@dataclass(frozen=True)
class Let:
    """A value by a name of its own from here to the end of the block; in a vector loop one for each lane."""

    name: str
    value: Compute


@dataclass(frozen=True)
class LetInteger:
    """An integer (64 bits) by a name of its own, from here to the end of the block."""

    name: str
    value: IntExpression


@dataclass(frozen=True)
class Totals:
    """What elements of an array are: totals of what a reduction combines.

    ``result``: of the left total, ``Read(0)``, and the right one, ``Read(1)``; None: of several values.
    ``neutral``: the total of nothing. ``parts``: whether they are totals of parts, each combined once.
    ``is_flag``: whether they say whether there is a total at all, which in the end nobody asks.
    """

    result: Expression | None
    neutral: float | int | None
    parts: bool = True
    is_flag: bool = False


@dataclass(frozen=True)
class Element:
    """An element of a grid of registers: ``array[place]`` of one with this ``shape``."""

    array: str
    place: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Array:
    """An array from here to the end of the block; its elements are undefined until they are stored.

    ``lanes``: its last dimension is the lanes of vectors: subscripts there are the iterator of a vector loop,
    or numbers. ``align``: bytes. ``totals``: that its elements are such. ``packed``: halves take two bytes
    each in every language. ``part``: of arrays in a matrix unit. ``element``: what a register was before an
    array was taken apart; a printer may have the array.
    """

    name: str
    type: ElementType
    shape: tuple[IntExpression, ...]
    space: Space
    lanes: bool = False
    align: int = 0
    totals: Totals | None = None
    packed: bool = False
    part: Part | None = None
    element: Element | None = None


@dataclass(frozen=True)
class Store:
    """``array[subscripts] = value``.

    ``instance``: the instance of the program's statement that this carries out (its term, for a reduction);
    the verifier proves that all stores together carry out each instance exactly once. None: another step.
    """

    array: str
    subscripts: tuple[Subscript, ...]
    value: Compute
    instance: Instance | None = field(default=None)


@dataclass(frozen=True)
class Barrier:
    """Items of a group wait for each other here. ``everywhere``: they see what parameters hold, too."""

    everywhere: bool = False


@dataclass(frozen=True)
class Mark:
    """The work of a node of the program ends here: who times programs looks at the clock.

    ``number``: which of the nodes it is, from 0; ``node``: its name.
    """

    number: int
    node: str


Statement = For | If | While | Let | LetInteger | Array | Store | Barrier | Mark
Code = tuple[Statement, ...]


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """An array that the caller gives, row by row; ``constant``: it is not written.

    ``alone``: no other parameter has any of its elements (``restrict``), proved or checked by the caller.
    ``scratch``: the caller only gives room; its elements are undefined before, but for those that were stored
    when constants were bound, and of no use after. Room of which no part of a function needs two may be one.
    """

    name: str
    type: ElementType
    shape: tuple[IntExpression, ...]
    constant: bool = False
    alone: bool = True
    scratch: bool = False


@dataclass(frozen=True)
class Reshaped:
    """The elements of a parameter, row by row, under another shape and by a name of its own.

    Both shapes consist of numbers, and differ in that neighbouring axes of the parameter are one.
    """

    name: str
    parameter: str
    shape: tuple[Number, ...]


@dataclass(frozen=True, kw_only=True)
class Function:
    """A kernel, or a whole program: ``body`` over arrays and integers that the caller gives.

    ``integers``: 64-bit parameters. ``context``: what holds of them. ``contracted``: whether a product and a
    sum may become one operation with one rounding. ``reshaped``: other names for parameters. ``streamed``:
    parameters whose vectors may be stored past the caches.
    """

    name: str
    parameters: tuple[Parameter, ...]
    integers: tuple[str, ...]
    body: Code
    context: IntExpression | None = None
    contracted: bool = True
    reshaped: tuple[Reshaped, ...] = ()
    streamed: frozenset[str] = frozenset()

    @property
    def arrays(self) -> tuple[str, ...]:
        """All names of parameters."""
        return (*(p.name for p in self.parameters), *(r.name for r in self.reshaped))
