"""A whole host program as one kernel tree: what one C function does.

    for t in 0 .. T - 1:                 for t from 0 to T:
      y = md_hom(f, (++, +)) (W, x)        parallel for i from 0 to n:
      x := y                                 float32 sum in registers
                                             sum = 0
                                             for j from 0 to m:
                                               sum = sum + W[i, j] * x[j]    # y(t, i, j)
                                             y[i] = sum
                                           parallel for c0 from 0 to n:
                                             x[c0] = y[c0]

Without a schedule an md_hom is its plain nest (``sequential_nest``), so every program has a tree. Outside of
parallel loops the tree is sequential; a printer for a team of threads puts its barriers there.

Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from math import prod
from typing import Any

from polyloom.ir import expressions as scalar
from polyloom.ir.expressions import Expression, ParameterValue, Read
from polyloom.ir.host import (
    Assignment,
    Buffer,
    Copy,
    HostNode,
    HostProgram,
    Index,
    MdHom,
    Nest,
    Role,
    View,
    uses,
)
from polyloom.ir.inequalities import without_products
from polyloom.ir.naming import Names
from polyloom.ir.rebuild import Leaf, with_leaves
from polyloom.mdh.lowering.nests.carried_maps import are_alike, can_carry, is_term, may_carry
from polyloom.mdh.lowering.nests.procedures import Done, with_steps_before
from polyloom.mdh.lowering.sequential_nest import plain_nest, term_names
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    For,
    Function,
    If,
    Kind,
    Load,
    Mark,
    Parameter,
    Reshaped,
    Space,
    Statement,
    Store,
    Subscript,
    counted,
)
from polyloom.mdh.tree.rewrite import loads_of, rewritten, substituted_in, walk
from polyloom.polyhedra.loops.tree import (
    Branch,
    Instance,
    IntExpression,
    Loop,
    Name,
    Number,
    Part,
    Tree,
    iterators_in,
    leaves_in,
    nodes_in,
    sum_of,
)

LowerHom = Callable[[MdHom], Code | None]
"""The scheduled form of an md_hom; None: its plain form. Names that it makes are no others of the program.

Its stores of terms have ``Instance(term_names(hom)[output], iterators)``, in the md_hom's own iterators.
"""

STACK_BYTES = 4096
"""A private array that is larger than this, or of unknown size, is not on a thread's stack."""


def program_tree(
    program: HostProgram,
    lower_hom: LowerHom = lambda hom: None,
    reshaped: Sequence[Reshaped] = (),
    *,
    own: Collection[str] = (),
    marked: bool = False,
) -> Function:
    """Return the kernel tree of a program, whose parameters may be known or left.

    Arrays are the program's buffers by their names, and by those of ``reshaped``, which ``lower_hom`` uses;
    those of ``Role.LOCAL`` are ``scratch``, but for its ``own``, for which the function takes memory. The
    instances of stores have the iterators of host loops in front. ``marked``: with a mark behind each node.

    Errors: those of ``plain_nest``.
    """
    written = uses(program.body).written
    return Function(
        name=program.name,
        parameters=tuple(_parameter(b, b.name in written) for b in program.buffers if b.name not in own),
        integers=tuple(p.name for p in program.parameters),
        body=(
            *(_array(b) for b in program.buffers if b.name in own),
            *_Lowering(program, lower_hom, reshaped, marked=marked).code(program.body),
        ),
        context=without_products(program.context),
        contracted=not program.strict,
        reshaped=tuple(reshaped),
    )


def node_code(node: HostNode, program: HostProgram) -> Code:
    """Return the plain tree of one node of a program."""
    around = replace(program, body=(*program.body, node))
    return _Lowering(around, lambda hom: None).code((node,))


def _parameter(buffer: Buffer, written: bool) -> Parameter:
    return Parameter(
        name=buffer.name,
        type=buffer.type,
        shape=buffer.shape,
        constant=not written,
        scratch=buffer.role is Role.LOCAL,
    )


def _array(buffer: Buffer) -> Array:
    return Array(name=buffer.name, type=buffer.type, shape=buffer.shape, space=Space.GROUP, align=64)


def names_of(program: HostProgram) -> set[str]:
    """Return what a program calls its buffers and integers."""
    return {*program.by_name, *_integers(program)}


def _integers(program: HostProgram) -> Iterator[str]:
    """Yield what a program calls its integers: parameters, and iterators of all loops."""
    yield from (p.name for p in program.parameters)
    for node in nodes_in(program.body):
        match node:
            case Loop(iterator=iterator):
                yield iterator
            case MdHom(iterators=iterators):
                yield from iterators
            case Nest(iterators=iterators, body=body):
                yield from iterators
                yield from iterators_in(body)
            case _:
                pass


Host = tuple[str, ...]
"""The iterators of host loops around a place, outer ones first."""


class _Lowering:
    """Gives names to arrays and instances of the whole function while it is made."""

    def __init__(
        self,
        program: HostProgram,
        lower_hom: LowerHom,
        reshaped: Sequence[Reshaped] = (),
        *,
        marked: bool = False,
    ) -> None:
        self.program, self.reshaped, self.marked = program, reshaped, marked
        self.numbers = count()
        self.is_shared = False
        self.lower_hom = lower_hom
        self.arrays = Names(names_of(program))
        self.statements = Statements()
        self.places = count()

    def code(self, nodes: tuple[HostNode, ...], host: Host = ()) -> Code:
        @cache
        def lowered(k: int) -> Code | None:
            hom = nodes[k]
            return self.lower_hom(hom) if isinstance(hom, MdHom) else None

        found: list[Statement] = []
        k = 0
        while k < len(nodes):
            both = self._carried(nodes, k, lowered, host)
            found += self._node(nodes[k], host, lowered(k)) if both is None else both
            k += 1 if both is None else 2
        return tuple(found)

    def _node(self, node: HostNode, host: Host, lowered: Code | None = None) -> Code:
        """Return the code of a node; ``lowered``: that of an md_hom under its schedule, if it has one."""
        match node:
            case Loop(parallel=True) if not self.is_shared:
                return self._shared(node, host)
            case Loop(iterator=iterator, start=start, condition=condition, step=step, body=body):
                inner = self.code(body, (*host, iterator))
                return (For(iterator=iterator, start=start, condition=condition, step=step, body=inner),)
            case Branch(condition=condition, body=body, otherwise=otherwise):
                return (If(condition, self.code(body, host), self.code(otherwise, host)),)
            case MdHom(name=name):
                return self._with_mark(name, self._md_hom(node, lowered, host))
            case Nest(name=name):
                return self._with_mark(name, self._nest(node, host, self.statements.at(node)))
            case Copy(source=source, target=target):
                return self._with_mark(f"copy of {source}", self._copy(source, target))

    def _shared(self, loop: Loop[HostNode], host: Host) -> Code:
        """Return a loop whose iterations threads share, with those right inside it; each does all in its own.

        Time is taken behind the whole loop.
        """
        self.is_shared = True
        (found,) = self._node(replace(loop, parallel=False), host)
        self.is_shared = False
        names = dict.fromkeys(node.name for node in leaves_in((loop,)) if isinstance(node, MdHom | Nest))
        assert isinstance(found, For)
        return self._with_mark(", ".join(names), (_shared_loops(found, loop),))

    def _with_mark(self, name: str, code: Code) -> Code:
        return (*code, Mark(next(self.numbers), name)) if self.marked and not self.is_shared else code

    def _copy(self, source: str, target: str) -> Code:
        buffer = self.program.buffer(source)
        names = [self.arrays.of(("copy", k), f"c{k}") for k in range(len(buffer.shape))]
        here = tuple(map(Name, names))
        store = Store(target, here, Compute(Read(0, buffer.type), (Load(source, here),)))
        return _in_parallel(names, buffer.shape, (store,))

    def _md_hom(self, hom: MdHom, code: Code | None, host: Host) -> Code:
        names = self.statements.at(hom)
        if code is None:
            return self._nest(plain_nest(hom), host, names)
        return rewritten(code, lambda statement: (_placed(statement, host, names),))

    def _carried(
        self, nodes: Sequence[HostNode], k: int, lowered: Callable[[int], Code | None], host: Host
    ) -> Code | None:
        """Return the code of a reduction and of the map beside it, at each point; None: they stay apart.

        They are at ``k`` and behind it; ``lowered``: the code of the md_hom at a place.
        """
        a, b = nodes[k], nodes[k + 1] if k + 1 < len(nodes) else None
        if not isinstance(a, MdHom) or not isinstance(b, MdHom):
            return None
        is_before = may_carry(a, b)
        if not is_before and not may_carry(b, a):
            return None
        carried, reduction = (a, b) if is_before else (b, a)
        first, second = lowered(k), lowered(k + 1)
        alone, code = (first, second) if is_before else (second, first)
        if alone is None or code is None or not are_alike(alone, code):
            return None
        points, terms = plain_nest(carried), term_names(reduction)
        if points.private or not can_carry(code, terms, carried.outputs[0], self.reshaped):
            return None
        names = {node.name: self.statements.at(node) for node in (a, b)}
        body = self._nest_code(points, host, names[carried.name]).body()

        def change(statement: Statement) -> Code:
            placed = _placed(statement, host, names[reduction.name])
            at = terms[0 if is_before else -1]
            if not isinstance(statement, Store) or not is_term(statement, (at,)):
                return (placed,)
            assert statement.instance is not None
            point = dict(zip(points.iterators, statement.instance.arguments, strict=True))
            here = tuple(substituted_in(s, point) for s in body)
            return (*here, placed) if is_before else (placed, *here)

        return self._with_mark(f"{a.name}, {b.name}", rewritten(code, change))

    def _nest(self, node: Nest, host: Host, names: Mapping[str, str]) -> Code:
        return self._nest_code(node, host, names).code()

    def _nest_code(self, node: Nest, host: Host, names: Mapping[str, str]) -> _NestCode:
        place = next(self.places)
        return _NestCode(arrays=self.arrays, node=node, place=place, host=host, names=names)


class Statements:
    """Names for the statements of a whole program: no two nodes share one. Nodes are asked for in order."""

    def __init__(self) -> None:
        self.names = Names(set())
        self.places = count()

    def at(self, node: MdHom | Nest) -> Mapping[str, str]:
        """Return for each statement of a node, or term of an md_hom, its name in the program."""
        own = term_names(node) if isinstance(node, MdHom) else [a.name for a in node.assignments]
        place = next(self.places)
        return {name: self.names.of((place, name), name) for name in own}


def instance_of(done: Instance | None, host: Host, names: Mapping[str, str]) -> Instance | None:
    """Return an instance of the whole program: host iterators in front; None for another step."""
    if done is None or done.statement not in names:
        return None
    return Instance(names[done.statement], (*map(Name, host), *done.arguments))


def _placed(statement: Statement, host: Host, names: Mapping[str, str]) -> Statement:
    if not isinstance(statement, Store):
        return statement
    return replace(statement, instance=instance_of(statement.instance, host, names))


def _shared_loops(found: For, loop: Loop[HostNode]) -> For:
    """Return the loops at the top that are parallel as group loops, all others of that kind as sequential."""
    (inner,) = found.body if len(found.body) == 1 else (None,)
    match loop.body:
        case (Loop(parallel=True) as below,) if isinstance(inner, For):
            return replace(found, kind=Kind.GROUP, body=(_shared_loops(inner, below),))
    return replace(found, kind=Kind.GROUP, body=rewritten(found.body, _in_one_thread))


def _in_one_thread(statement: Statement) -> Code:
    if isinstance(statement, For) and statement.kind is Kind.GROUP:
        return (replace(statement, kind=Kind.SEQUENTIAL),)
    return (statement,)


def _in_parallel(iterators: Sequence[str], extents: Sequence[IntExpression], code: Code) -> Code:
    for name, extent in zip(reversed(iterators), reversed(extents), strict=True):
        code = (counted(name, extent, code, kind=Kind.GROUP),)
    return code


@dataclass(frozen=True, eq=False, kw_only=True)
class _NestCode:
    """A nest at one place of a program; ``names``: of those of its assignments that are instances."""

    arrays: Names
    node: Nest
    place: int
    host: Host
    names: Mapping[str, str]

    def code(self) -> Code:
        """Return parallel loops over the extents, with private arrays and the body inside."""
        private = tuple(map(self._private, self.node.private))
        return _in_parallel(self.node.iterators, self.node.extents, (*private, *self.body()))

    def body(self) -> Code:
        """Return the code of one point."""
        return self._tree(self.node.body)

    def _private(self, buffer: Buffer) -> Array:
        return Array(name=self.array(buffer.name), type=buffer.type, shape=buffer.shape, space=_space(buffer))

    def array(self, name: str) -> str:
        """Return what a buffer of the program, or of the nest, is called."""
        if all(b.name != name for b in self.node.private):
            return name
        return self.arrays.of((self.place, name), name.replace("'", ""))

    def _tree(self, tree: Tree) -> Code:
        done = Done({})
        return _with_joined_branches(tuple(s for node in tree for s in self._statements(node, done)))

    def _statements(self, node: Part, done: Done) -> Code:
        """``done``: steps of the instances before it, which need not be carried out again."""
        match node:
            case Loop(iterator=iterator, start=start, condition=condition, step=step, body=body):
                inner = self._tree(body)
                done.registers.clear()
                return (For(iterator=iterator, start=start, condition=condition, step=step, body=inner),)
            case Branch(condition=condition, body=body, otherwise=otherwise):
                done.registers.clear()
                return (If(condition, self._tree(body), self._tree(otherwise)),)
            case Instance(statement=statement, arguments=arguments):
                return _At(self, self._assignment(statement), arguments).code(done)

    def _assignment(self, name: str) -> Assignment:
        return next(a for a in self.node.assignments if a.name == name)


@dataclass(frozen=True, eq=False)
class _At:
    """One instance of an assignment: its iterators have the values ``arguments``."""

    nest: _NestCode
    assignment: Assignment
    arguments: tuple[IntExpression, ...]

    def code(self, done: Done) -> Code:
        name, target, condition = self.assignment.name, self.assignment.target, self.assignment.condition
        instance = instance_of(Instance(name, self.arguments), self.nest.host, self.nest.names)
        array = self.nest.array(target.buffer)
        if condition is None:
            before, value = with_steps_before(self.compute(self.assignment.value), self._register, done)
            done.stored(array)
            return (*before, Store(array, self.subscripts(target), value, instance))
        first, asked = with_steps_before(self.compute(condition), self._register, done)
        inside = Done(dict(done.registers))
        before, value = with_steps_before(self.compute(self.assignment.value), self._register, inside)
        done.stored(array)
        return (*first, If(asked, (*before, Store(array, self.subscripts(target), value, instance))))

    def _register(self, name: str) -> str:
        return self.nest.arrays.of((object(),), name)

    def subscripts(self, view: View) -> tuple[Subscript, ...]:
        return tuple(map(self._subscript, view.indices))

    def _subscript(self, index: Index | Expression) -> Subscript:
        if not isinstance(index, Index):
            return self.compute(index)
        terms = [(c, a) for c, a in zip(index.coefficients, self.arguments, strict=True) if c]
        return sum_of([*terms, (1, index.offset)])

    def compute(self, expression: Expression) -> Compute:
        """Return a scalar function with what it loads, each element once, and the integers in it."""
        loads: list[Load] = []
        integers: list[IntExpression] = []

        def leaf(part: Leaf) -> Expression:
            match part:
                case Read(position=k, type=kind):
                    view = self.assignment.reads[k]
                    load = Load(self.nest.array(view.buffer), self.subscripts(view))
                    return Read(_position(loads, load), kind)
                case scalar.Iterator(dimension=k, type=kind):
                    return scalar.Iterator(_position(integers, self.arguments[k]), kind)
                case ParameterValue(name=name, type=kind):
                    return scalar.Iterator(_position(integers, Name(name)), kind)
                case _:
                    return part

        made = with_leaves(expression, leaf)
        return Compute(made, tuple(loads), tuple(integers))


def _with_joined_branches(code: Code) -> Code:
    """Return code in which neighbours under one condition are one branch, where the first leaves it as it is.

    A compiler sees then that nothing changes where the condition does not hold.
    """
    found: list[Statement] = []
    for statement in code:
        last = found[-1] if found else None
        if isinstance(statement, If) and isinstance(last, If) and _is_asked_again(last, statement):
            found[-1] = replace(last, body=(*last.body, *statement.body))
        else:
            found.append(statement)
    return tuple(found)


def _is_asked_again(first: If, second: If) -> bool:
    """Whether two branches without another side ask for the same, and the first leaves that as it is."""
    if first.condition != second.condition or first.otherwise or second.otherwise:
        return False
    asked = {load.array for load in loads_of(replace(first, body=()))}
    return not any(isinstance(s, Store) and s.array in asked for s in walk(first.body))


def _position(known: list[Any], wanted: object) -> int:
    if wanted not in known:
        known.append(wanted)
    return known.index(wanted)


def _space(buffer: Buffer) -> Space:
    """Return where a private array lies: one that is large is a thread's own, but not on its stack."""
    if not buffer.shape:
        return Space.REGISTER
    sizes = [extent.value for extent in buffer.shape if isinstance(extent, Number)]
    fits = len(sizes) == len(buffer.shape) and prod(sizes) * buffer.type.size <= STACK_BYTES
    return Space.PRIVATE if fits else Space.GROUP
