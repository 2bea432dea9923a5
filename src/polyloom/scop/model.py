"""The polyhedral model of a static control part: domains, accesses, schedule, and what each statement does.

Source: md_poly, Sec. 3.2.1 (iteration domain, access relation). Not in the papers: conditions on data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import islpy as isl

from polyloom.diagnostics import Diagnostic, Source, Span
from polyloom.ir.expressions import Expression
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import IntExpression


@dataclass(frozen=True, eq=False, kw_only=True)
class ScopAccess:
    """One reference in the source text.

    ``relation``: ``{ S1[i, j] -> A[i, j + 1] }``, exact where ``computed`` is empty. An index that reads data
    (``hist[bin[i]]``) is free in the relation; ``computed`` maps its position to its expression, over the
    statement's reads. The domain of a read's relation is smaller than the statement's where the value of
    the read
    is not used everywhere (``i > 0 ? a[i - 1] : 0``): outside, the element may not exist.
    ``indices``: every index as the source computes it, also the affine ones, in the form of ``computed``.
    """

    array: str
    relation: isl.Map
    computed: tuple[tuple[int, Expression], ...] = ()
    span: Span | None = None
    indices: tuple[Expression, ...] = ()


def scalar_access(domain: isl.Set, array: str) -> ScopAccess:
    """Return an access to a scalar in all instances of a statement."""
    relation = isl.Map.from_domain_and_range(domain, isl.Set(f"{{ {array}[] }}"))
    return ScopAccess(array=array, relation=relation)


@dataclass(frozen=True, eq=False, kw_only=True)
class ScopStatement:
    """``target = value``, for the instances in ``domain``, where ``condition`` (of the data) holds.

    ``Read`` positions in ``value`` and ``condition`` index ``reads``; ``Iterator(k)`` is the k-th dimension
    of the domain; ``ParameterValue`` is a parameter. A compound assignment has its target among the reads.
    ``iterators``: the names in the source of the loops around it, outermost first. ``loops``: for
    each of them the span of the ``for``, which statements of one loop share. ``origins``: the names of the
    statements of which this is a piece, the nearest first.
    """

    name: str
    domain: isl.Set
    iterators: tuple[str, ...]
    loops: tuple[Span | None, ...]
    target: ScopAccess
    reads: tuple[ScopAccess, ...]
    value: Expression
    condition: Expression | None = None
    span: Span | None = None
    origins: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The name of the statement of the source: its own, or that of which it is a piece."""
        return self.origins[-1] if self.origins else self.name

    def uses(self, array: str) -> bool:
        """Return whether it stores to an array, or reads it."""
        return any(access.array == array for access in (self.target, *self.reads))


class Origin(Enum):
    """Where an array comes from."""

    ARGUMENT = "argument"
    """A parameter of the function."""
    GLOBAL = "global"
    OUTER = "outer"
    """A local of the function, declared outside the SCoP: alive before and after it."""
    INNER = "inner"
    """Declared inside the SCoP: dead after it."""


@dataclass(frozen=True, kw_only=True)
class StructureMember:
    """Where a member lies in an array of structures, in bytes.

    ``array``: that array, in the model's names; its subscripts stand behind the first ``depth`` names of the
    member's path. ``size``: of a structure, which the member's first element is ``first`` behind; each
    further subscript goes on by its own of ``steps``.
    """

    array: str
    depth: int
    size: int
    first: int
    steps: tuple[int, ...] = ()


@dataclass(frozen=True)
class MemberView:
    """What C calls a member (``path`` and ``levels`` as of arrays), ``first`` bytes behind its structure."""

    path: tuple[str, ...]
    levels: tuple[int, ...]
    first: int


@dataclass(frozen=True, eq=False, kw_only=True)
class ScopArray:
    """An array or scalar that statements access.

    ``shape``: extents over the parameters; the first is None where C does not say it (``double *a``,
    ``a[]``).
    ``constant``: declared ``const``. ``linear``: in C it has one dimension (``a[i * n + k]``); its rows are
    whole in memory, and a caller may give it flat. ``record``: for a member of a structure, the variable and
    the path (``("p", "x")`` for ``p[i].x``), else empty; ``levels``: how many subscripts stand behind each of
    them (``(1, 0)``). ``variable``: the name in the source, which another array may share.
    ``hidden``: where the SCoP stands another variable has its name.
    ``undefined``: a local in which nothing is stored before the part; ``initial``: the number that its
    declaration stores, None where another one may be there.
    ``truths``: of ``_Bool``, a byte that is 0 or 1. ``register``: C has no address of it.
    ``member``: of an array of structures, where it is known how these lie.
    ``views``: of an array of all numbers of structures, the members that are used.
    ``memory``: what arrays of one name have together, each with elements of its own that lie between those of
    the others; empty: nothing.
    """

    name: str
    type: ElementType
    shape: tuple[IntExpression | None, ...]
    origin: Origin
    constant: bool = False
    restrict: bool = False
    record: tuple[str, ...] = ()
    span: Span | None = None
    linear: bool = False
    levels: tuple[int, ...] = ()
    variable: str = ""
    hidden: bool = False
    undefined: bool = False
    initial: float | int | None = None
    truths: bool = False
    register: bool = False
    member: StructureMember | None = None
    views: tuple[MemberView, ...] = ()
    memory: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class StatedParallel:
    """``#pragma mdh parallel(++, ++, +: C[i][j])`` before a loop nest.

    ``operators``: per dimension of the nest, outermost first: ``++``, ``+``, ``*``, ``max``, ``min`` or the
    name of a function of the source. ``target``: the text of the access that is reduced, if it was given.
    ``functions``: for each operator that is a function of the source, its value, over ``Read(0, ...)`` and
    ``Read(1, ...)`` for its two arguments; else None.
    """

    operators: tuple[str, ...]
    target: str | None
    loop: Span | None
    span: Span
    functions: tuple[Expression | None, ...] = ()


@dataclass(frozen=True, eq=False)
class ScopParameter:
    """An integer that the SCoP does not change. ``text``: what C calls it where the SCoP stands,
    ``p[0].n`` or a name; empty where that name is another variable's there.
    """

    name: str
    type: ElementType
    text: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Scop:
    """A static control part.

    ``schedule``: ``{ S1[i, j] -> [0, i, 0, j, 0] }``, all ranges of one length, lexicographic order is
    execution order. ``context``: constraints on the parameters that C implies. ``assumed``: what was taken
    for granted (no aliasing, no overflow), one sentence each. ``extent``: the byte range of the part in
    the source text, which a drop-in replaces.
    """

    name: str
    source: Source
    parameters: tuple[ScopParameter, ...]
    context: isl.Set
    statements: tuple[ScopStatement, ...]
    schedule: isl.UnionMap
    arrays: tuple[ScopArray, ...]
    stated: tuple[StatedParallel, ...] = ()
    assumed: tuple[str, ...] = ()
    extent: tuple[int, int] = (0, 0)
    arguments: tuple[str, ...] = field(default=())
    """The names of the function's parameters, in order."""
    escaping: tuple[str, ...] = ()
    """Iterators that are declared before the part and read after it: it leaves their last values to C."""
    remarks: tuple[Diagnostic, ...] = ()
    """What the front end has to remark."""
    fused: tuple[Span | None, ...] = ()
    """Where ``fma`` is called, which is a product and a sum here, each rounded."""
    returned: str | None = None
    """The scalar that holds what the function returns, where the part is the whole function."""
    present: tuple[str, ...] = ()
    """C's names of the pointers that are taken not to be NULL; empty where another variable has that name."""
    reached: tuple[str, ...] = ()
    """C's names of variables, no arrays, to which pointers may lead: of the file, or ``&x`` is taken."""
    equal: tuple[IntExpression, ...] = ()
    """What of the parameters is taken for granted beside ``context``: equations that are not affine."""
    marked: bool = True
    """Whether a person said that it is one (``#pragma scop``): then all of it is wanted, or a reason."""
    static: bool = False
    """Whether its function is known in its file alone."""
    stepped: tuple[tuple[str, str], ...] = ()
    """Pointers that it moves, and the integers of the part, 0 at first, that say by how much."""
    repeated: bool = False
    """Whether loops of the function are around it, which are no part of it: it runs again and again."""
    unshared: bool = False
    """Whether all arrays exist as a whole and nobody else sees them, as those of a tensor program."""
