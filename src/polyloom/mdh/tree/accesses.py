"""Everything that a kernel tree loads, stores and carries out, with the points where it does.

A point of an access is over the iterators of all loops around it, and the integers with names of their own.
Where isl has no word for a bound, a condition or a subscript, an access has more points or elements than it
really has, and is not ``sure``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from polyloom.ir.expressions import Binary, BinaryOp, Expression, Read, Select, children, walk
from polyloom.ir.integer_values import integer_of
from polyloom.ir.value_ranges import UNSIGNED
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    Condition,
    For,
    Function,
    If,
    Kind,
    Let,
    LetInteger,
    Load,
    Parameter,
    Statement,
    Store,
    Subscript,
    While,
)
from polyloom.mdh.tree.text import load_text
from polyloom.polyhedra.loops.accesses import Elements, NotKnown, outside, question
from polyloom.polyhedra.loops.scope import Scope
from polyloom.polyhedra.loops.tree import IntExpression, Number, Operation

OPERATIONS = 4_000_000
"""What isl may spend on one question about a tree: a second."""


@dataclass(frozen=True, eq=False)
class Around:
    """A loop around an access, and which of the access's integers is its iterator."""

    loop: For
    position: int


@dataclass(frozen=True, eq=False)
class Step:
    """The statement of a block in which an access is, and the loop that it is, if it is one."""

    block: Code
    index: int
    around: Around | None = None

    def same(self, other: Step) -> bool:
        """Return whether it is the same statement of the same block."""
        return self.block is other.block and self.index == other.index


@dataclass(frozen=True, eq=False)
class Declared:
    """An array, by where it is declared: ``depth`` statements around it; a parameter has none."""

    array: Array | Parameter
    depth: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Access:
    """A load or store; ``path`` leads from the whole function to the statement.

    ``statement``: of the program, of which a store carries out an instance. ``copied``: the array that has
    what is stored, too.
    """

    declared: Declared
    elements: Elements
    is_store: bool
    sure: bool
    path: tuple[Step, ...]
    subscripts: tuple[IntExpression | None, ...]
    statement: str | None = None
    copied: Declared | None = None

    @property
    def around(self) -> tuple[Around, ...]:
        """The loops around it, outer ones first."""
        return tuple(step.around for step in self.path if step.around is not None)


@dataclass(eq=False)
class Found:
    """What a function accesses and carries out, and what is wrong, or not known, about single accesses.

    ``vague``: the statements of which it is not known which instances are carried out. ``lost``: whether
    there are accesses that are not among these.
    """

    accesses: list[Access] = field(default_factory=list)
    instances: dict[str, list[Elements]] = field(default_factory=dict)
    vague: set[str] = field(default_factory=set)
    lost: bool = False
    wrong: dict[str, None] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)


def accesses(function: Function, scope: Scope, found: Found) -> None:
    """Add to ``found`` everything that a function accesses; ``scope`` has its integers."""
    arrays = {p.name: Declared(p) for p in function.parameters}
    arrays |= {r.name: arrays[r.parameter] for r in function.reshaped}
    shapes = {r.name: r.shape for r in function.reshaped}
    _Walker(found, shapes).code(function.body, _Place(scope, arrays))


@dataclass(frozen=True, eq=False)
class _Place:
    """A place in the tree; ``arrays``: what names are there, None for a value.

    ``exact``: the points of ``scope`` are those of the loops. ``certain``: no data decides what is done.
    """

    scope: Scope
    arrays: Mapping[str, Declared | None]
    path: tuple[Step, ...] = ()
    exact: bool = True
    certain: bool = True

    @property
    def in_lanes(self) -> bool:
        return any(s.around is not None and s.around.loop.kind is Kind.VECTOR for s in self.path)

    def naming(self, name: str, declared: Declared | None) -> _Place:
        return replace(self, arrays={**self.arrays, name: declared})


class _Walker:
    """``shapes``: of other names for parameters."""

    def __init__(self, found: Found, shapes: Mapping[str, tuple[Number, ...]]) -> None:
        self.found, self.shapes = found, shapes

    def code(self, code: Code, place: _Place) -> None:
        for index, statement in enumerate(code):
            here = replace(place, path=(*place.path, Step(code, index)))
            after = self.statement(statement, here)
            place = replace(after, path=place.path)

    def statement(self, statement: Statement, place: _Place) -> _Place:
        """Walk a statement; what follows in its block is at the place that is returned."""
        match statement:
            case For():
                self.code(statement.body, self.inside(statement, place))
            case If(condition=condition, body=body, otherwise=otherwise):
                if isinstance(condition, Compute):
                    self.loads(condition, place)
                self.code(body, self.where(condition, place))
                self.code(otherwise, self.where(condition, place, holds=False))
            case While(condition=asked, body=body):
                self.loads(asked, place)
                self.code(body, self.where(asked, place))
            case Let(name=name, value=value):
                self.loads(value, place)
                return place.naming(name, None)
            case LetInteger(name=name, value=number):
                return self.named(name, number, place)
            case Array(name=name):
                return place.naming(name, Declared(statement, len(place.path) - 1))
            case Store():
                self.store(statement, place)
            case _:
                pass
        return place

    # -- scopes

    def inside(self, loop: For, place: _Place) -> _Place:
        step = replace(place.path[-1], around=Around(loop, len(place.scope.iterators)))
        path = (*place.path[:-1], step)
        try:
            with question(f"the bounds of the loop over `{loop.iterator}`", OPERATIONS):
                scope = place.scope.inside(loop.iterator, loop.start, loop.condition, loop.step)
            return replace(place, scope=scope, path=path)
        except NotKnown:
            return replace(place, scope=place.scope.with_any(loop.iterator), path=path, exact=False)

    def where(self, condition: Condition, place: _Place, *, holds: bool = True) -> _Place:
        if isinstance(condition, Compute):
            return replace(place, certain=False)
        try:
            with question("a condition", OPERATIONS):
                return replace(place, scope=place.scope.where(condition, holds=holds))
        except NotKnown:
            return replace(place, exact=False)

    def named(self, name: str, value: IntExpression, place: _Place) -> _Place:
        try:
            with question(f"the integer `{name}`", OPERATIONS):
                return replace(place, scope=place.scope.with_value(name, value))
        except NotKnown:
            return replace(place, scope=place.scope.with_any(name), exact=False)

    # -- accesses

    def store(self, store: Store, place: _Place) -> None:
        self.loads(store.value, place)
        for subscript in store.subscripts:
            if isinstance(subscript, Compute):
                self.loads(subscript, place)
        declared = place.arrays.get(store.array)
        if declared is None:
            self.wrong(f"`{store.array}` is stored to, and is no array there")
            self.found.lost = True
            return
        array = declared.array
        if isinstance(array, Parameter) and array.constant:
            self.wrong(f"`{array.name}` is constant, and stored to")
        if store.value.type is not array.type:
            self.wrong(f"{store.value.type.value} is stored to `{array.name}`, of {array.type.value}")
        self.access(Load(store.array, store.subscripts), place, store=store)
        if store.instance is not None:
            self.instance(store, place)

    def instance(self, store: Store, place: _Place) -> None:
        assert store.instance is not None
        name = store.instance.statement
        try:
            with question(f"the instances of `{name}`", OPERATIONS):
                instances = place.scope.tuples(name, store.instance.arguments)
            self.found.instances.setdefault(name, []).append(instances)
            if place.exact:
                return
        except NotKnown:
            pass
        self.found.vague.add(name)
        self.found.unknown[f"which instances of `{name}` are carried out"] = None

    def loads(self, value: Compute, place: _Place) -> None:
        for load, chosen in _loads(value.expression, value, place):
            for subscript in load.subscripts:
                if isinstance(subscript, Compute):
                    self.loads(subscript, chosen)
            self.access(load, chosen)

    def access(self, load: Load, place: _Place, store: Store | None = None) -> None:
        """Note an element that is loaded, or stored by a statement."""
        if load.array not in place.arrays:
            self.wrong(f"`{load.array}` is loaded, and is nothing there")
            self.found.lost = True
            return
        declared = place.arrays[load.array]
        if declared is None:
            return
        text = load_text(load)
        shape = self.shapes.get(load.array, declared.array.shape)
        if len(load.subscripts) != len(shape):
            self.wrong(f"`{text}`: the array has {len(shape)} dimensions")
            self.found.lost = True
            return
        subscripts, known = self.subscripts(load, place)
        sure = known and place.exact and place.certain
        try:
            with question(f"the elements `{text}`", OPERATIONS):
                if load.array in self.shapes:
                    self.bounds(text, subscripts, replace(declared.array, shape=shape), place)
                    subscripts = _unshaped(subscripts, self.shapes[load.array], declared.array)
                elements = place.scope.tuples(declared.array.name, subscripts)
            self.bounds(text, subscripts, declared.array, place)
        except NotKnown as fault:
            self.found.unknown[str(fault)] = None
            self.found.lost = True
            return
        self.found.accesses.append(
            Access(
                declared=declared,
                elements=elements,
                is_store=store is not None,
                sure=sure,
                path=place.path,
                subscripts=tuple(subscripts),
                statement=store.instance.statement if store and store.instance else None,
                copied=_copied(store, place),
            )
        )

    def subscripts(self, load: Load, place: _Place) -> tuple[list[IntExpression | None], bool]:
        """Return the subscripts that isl has words for, None for the others, and whether these are all."""
        found = [self.subscript(s, place) for s in load.subscripts]
        if None in found:
            self.found.unknown[
                f"whether `{load_text(load)}` exists: data chooses it, or it is not affine"
            ] = None
        return found, None not in found

    def subscript(self, subscript: Subscript, place: _Place) -> IntExpression | None:
        integer = _integer(subscript) if isinstance(subscript, Compute) else subscript
        if integer is None:
            return None
        try:
            with question("a subscript", OPERATIONS):
                place.scope.value(integer)
            return integer
        except NotKnown:
            return None

    def bounds(
        self, text: str, subscripts: Sequence[IntExpression | None], array: Array | Parameter, place: _Place
    ) -> None:
        with question(f"whether `{text}` exists", OPERATIONS):
            element = outside(place.scope, array.name, subscripts, array.shape)
        if element is None:
            return
        where = " in all lanes" if place.in_lanes else ""
        message = f"`{text}` is accessed{where} where it does not exist, at {element}"
        if place.exact and place.certain:
            self.wrong(message)
        else:
            self.found.unknown[f"whether {message}"] = None

    def wrong(self, message: str) -> None:
        self.found.wrong[message] = None


def _unshaped(
    subscripts: Sequence[IntExpression | None], shape: Sequence[Number], array: Array | Parameter
) -> list[IntExpression | None]:
    """Return the subscripts in an array's own shape of an element under another ``shape``."""
    found: list[IntExpression | None] = []
    extents = [extent.value for extent in array.shape if isinstance(extent, Number)]
    for k, (subscript, whole) in enumerate(zip(subscripts, shape, strict=True)):
        axes = [extents.pop(0)]
        while prod(axes) < whole.value or (k == len(shape) - 1 and extents):
            axes.append(extents.pop(0))
        for axis, extent in enumerate(axes):
            inner = prod(axes[axis + 1 :])
            part = subscript
            if part is not None and inner > 1:
                part = Operation("/", (part, Number(inner)))
            if part is not None and axis:
                part = Operation("%", (part, Number(extent)))
            found.append(part)
    return found


def _copied(store: Store | None, place: _Place) -> Declared | None:
    """Return the array of which a store puts an element somewhere else."""
    if store is None or not isinstance(store.value.expression, Read):
        return None
    return place.arrays.get(store.value.loads[store.value.expression.position].array)


def _loads(expression: Expression, value: Compute, place: _Place) -> Iterator[tuple[Load, _Place]]:
    """Yield what a scalar function loads, each where choices take it; lanes of a vector load it anyway."""
    match expression:
        case Read(position=k):
            yield value.loads[k], place
        case Select(condition=c, then=a, otherwise=b) if not place.in_lanes:
            yield from _loads(c, value, place)
            yield from _loads(a, value, _chosen(c, value, place, holds=True))
            yield from _loads(b, value, _chosen(c, value, place, holds=False))
        case Binary(op=BinaryOp.AND | BinaryOp.OR as op, left=a, right=b) if not place.in_lanes:
            yield from _loads(a, value, place)
            yield from _loads(b, value, _chosen(a, value, place, holds=op is BinaryOp.AND))
        case _:
            for child in children(expression):
                yield from _loads(child, value, place)


def _chosen(condition: Expression, value: Compute, place: _Place, *, holds: bool) -> _Place:
    known = _integer(Compute(condition, value.loads, value.iterators))
    try:
        if known is None:
            raise NotKnown
        with question("a choice", OPERATIONS):
            return replace(place, scope=place.scope.where(known, holds=holds))
    except NotKnown:
        return replace(place, certain=False)


def _integer(value: Compute) -> IntExpression | None:
    """Return a value as an integer expression, where it is one and does not wrap around."""
    if any(part.type in UNSIGNED for part in walk(value.expression)):
        return None
    return integer_of(value.expression, value.iterators)
