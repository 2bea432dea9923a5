"""Points that may run at the same time, and meet in an element: loops that are not as parallel as they say.

- Points of a *group* loop run in any order. Registers and stacks that are declared outside of it are not
  stored to inside: each thread has its own.
- Lanes of a *vector* loop run statement by statement: all lanes load before any of them stores, and a
  statement of a later lane comes before a later statement of an earlier lane.
- Points of an *independent* loop meet in no element either, so that they may be lanes of vectors.
- *Items* of a group run in any order from one barrier to the next. Two accesses are in one such part unless
  a barrier is always between them: in the statements between them, and for different iterations of a loop
  around both on the way through its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, groupby
from typing import TypeGuard

from polyloom.ir.text.integers import integer_text
from polyloom.mdh.tree.accesses import OPERATIONS, Access, Around, Declared, Found, Step
from polyloom.mdh.tree.nodes import (
    ONE,
    Array,
    Barrier,
    Code,
    Compute,
    For,
    If,
    Kind,
    LetInteger,
    Space,
    Statement,
    While,
)
from polyloom.mdh.tree.rewrite import walk
from polyloom.polyhedra.loops.accesses import (
    Apart,
    Meeting,
    NotKnown,
    Pair,
    at_parameters,
    meeting,
    question,
    together,
)
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, names_in, replace_name, sum_of


def races(found: Found) -> None:
    """Add to what is wrong, or not known, the races between points of parallel loops."""
    for accesses in by_array(found.accesses):
        if any(a.is_store for a in accesses):
            _Races(found, accesses).all()


def by_array(accesses: Sequence[Access]) -> Iterator[list[Access]]:
    """Yield the accesses to each array."""
    ordered = sorted(accesses, key=lambda a: id(a.declared))
    return (list(group) for _, group in groupby(ordered, key=lambda a: id(a.declared)))


@dataclass(frozen=True, eq=False)
class _Inside:
    """Accesses to an array inside a loop, with the number of that loop among the statements around each."""

    around: Around
    depth: int
    accesses: tuple[Access, ...]


@dataclass(frozen=True, eq=False)
class _Races:
    """The races in one array."""

    found: Found
    accesses: Sequence[Access]

    @property
    def declared(self) -> Declared:
        return self.accesses[0].declared

    def all(self) -> None:
        for inside in self._loops():
            if self._have_their_own(inside):
                continue
            match inside.around.loop.kind:
                case Kind.GROUP | Kind.INDEPENDENT:
                    self._group(inside)
                case Kind.VECTOR:
                    self._lanes(inside)
                case _:
                    pass
        self._items()

    def _loops(self) -> Iterator[_Inside]:
        """Yield the loops around accesses that the array is declared outside of."""
        inside: dict[tuple[int, ...], list[Access]] = {}
        for access in self.accesses:
            for depth in range(self.declared.depth, len(access.path)):
                if access.path[depth].around is not None:
                    inside.setdefault(_key(access.path[: depth + 1]), []).append(access)
        for key, accesses in inside.items():
            around = accesses[0].path[len(key) // 2 - 1].around
            if around is not None and any(a.is_store for a in accesses):
                yield _Inside(around, len(key) // 2 - 1, tuple(accesses))

    def _have_their_own(self, inside: _Inside) -> bool:
        """Return whether a subscript alone tells that points share no element, as in ``x[2 * i + n, k]``."""
        array = self.declared.array
        if (
            isinstance(array, Array)
            and array.space is not Space.GROUP
            and inside.around.loop.kind is Kind.GROUP
        ):
            return False
        return any(
            subscript is not None
            and all(a.subscripts[k] == subscript for a in inside.accesses)
            and _moves(subscript, inside.around.loop)
            for k, subscript in enumerate(inside.accesses[0].subscripts)
        )

    # -- group loops

    def _group(self, inside: _Inside) -> None:
        name = self.declared.array.name
        if isinstance(self.declared.array, Array) and self.declared.array.space is not Space.GROUP:
            self._wrong(inside.around, f"`{name}` is stored to, and is declared outside of it")
            return
        stores = [a for a in inside.accesses if a.is_store]
        position = inside.around.position
        pairs = [Pair(k, k, Apart.EQUAL) for k in range(position)]
        self._ask(inside, stores, inside.accesses, [*pairs, Pair(position, position, Apart.OTHER)])

    def _ask(
        self, inside: _Inside, stores: Sequence[Access], others: Sequence[Access], pairs: Sequence[Pair]
    ) -> None:
        """Note where two points meet, seen by the loops around and this one alone."""
        for sure in (True, False):
            first = [a for a in stores if a.sure or not sure]
            second = [a for a in others if a.sure or not sure]
            if not first or not second or (not sure and all(a.sure for a in (*first, *second))):
                continue
            count = inside.around.position + 1
            met = self._meeting(first, second, pairs, count)
            if met is None:
                continue
            at = f"at {_values(inside.around, met)}"
            if sure:
                self._wrong(inside.around, f"{_element(self.declared, met)} is stored to and accessed {at}")
                return
            self.found.unknown[f"whether points of the {_loop(inside.around)} meet in {_name(self)}"] = None

    def _meeting(
        self, first: Sequence[Access], second: Sequence[Access], pairs: Sequence[Pair], count: int
    ) -> Meeting | None:
        text = f"whether points of parallel loops meet in {_name(self)}"
        try:
            with question(text, OPERATIONS):
                a, b = (together([x.elements for x in accesses], count) for accesses in (first, second))
                return meeting(a, b, pairs)
        except NotKnown:
            self.found.unknown[text] = None
            return None

    # -- lanes of vectors

    def _lanes(self, inside: _Inside) -> None:
        position = inside.around.position
        around = [Pair(k, k, Apart.EQUAL) for k in range(position)]
        statements = _by_statement(inside.accesses)
        for k, later in enumerate(statements):
            stores = [a for a in later if a.is_store]
            self._ask(inside, stores, stores, [*around, Pair(position, position, Apart.OTHER)])
            before = [Pair(position, position, Apart.BEFORE)]
            self._ask(inside, stores, [a for a in later if not a.is_store], [*around, *before])
            for earlier in statements[:k]:
                self._ask(inside, stores, earlier, [*around, *before])
                loads = [a for a in later if not a.is_store]
                self._ask(inside, loads, [a for a in earlier if a.is_store], [*around, *before])

    # -- items of a group

    def _items(self) -> None:
        array = self.declared.array
        inside = [a for a in self.accesses if _items_around(a)]
        if not inside:
            return
        if isinstance(array, Array) and array.space is not Space.GROUP:
            self._own(inside)
            return
        for first, second in combinations_with_replacement(self.accesses, 2):
            if (first.is_store or second.is_store) and (_items_around(first) or _items_around(second)):
                self._pair(first, second)

    def _own(self, inside: Sequence[Access]) -> None:
        """Refuse what items store to an array of which each of them has its own, outside of their loop."""
        for access in inside:
            loops = [step.around for step in access.path[self.declared.depth :] if _is(step, Kind.ITEM)]
            if access.is_store and loops and loops[0] is not None:
                text = f"{_name(self)} is stored to, of which each item has its own, declared outside of it"
                self._wrong(loops[0], text)

    def _pair(self, first: Access, second: Access) -> None:
        for a, b, pairs in _unordered(first, second):
            try:
                with question(f"whether items meet in {_name(self)}", OPERATIONS):
                    met = meeting(a.elements, b.elements, pairs)
            except NotKnown as fault:
                self.found.unknown[str(fault)] = None
                continue
            if met is None:
                continue
            around = (_items_around(first) or _items_around(second))[0]
            text = f"two items meet in {_element(self.declared, met)}, and no barrier is always between them"
            if first.sure and second.sure:
                self._wrong(around, text)
            else:
                self.found.unknown[f"whether {text}"] = None
            return

    def _wrong(self, around: Around, text: str) -> None:
        self.found.wrong[f"in the {_loop(around)} {text}"] = None


def _moves(subscript: IntExpression, loop: For) -> bool:
    """Return whether a subscript is another one at each point of a loop, whatever happens inside."""
    inner = {s.iterator if isinstance(s, For) else s.name for s in walk(loop.body) if _names_integer(s)}
    if not names_in(subscript).isdisjoint(inner):
        return False
    here = Name(loop.iterator)
    step = sum_of(
        [(1, replace_name(subscript, loop.iterator, sum_of([(1, here), (1, ONE)]))), (-1, subscript)]
    )
    return isinstance(step, Number) and step.value != 0


def _names_integer(statement: Statement) -> TypeGuard[For | LetInteger]:
    return isinstance(statement, For | LetInteger)


def _key(path: Sequence[Step]) -> tuple[int, ...]:
    return tuple(part for step in path for part in (id(step.block), step.index))


def _name(of: _Races) -> str:
    return f"`{of.declared.array.name}`"


def _loop(around: Around) -> str:
    return _loop_text(around.loop)


def _loop_text(loop: For) -> str:
    return f"{loop.kind.value.replace('for', 'loop')} over `{loop.iterator}`"


def _element(declared: Declared, met: Meeting) -> str:
    inside = ", ".join(map(str, met.element))
    return f"`{declared.array.name}[{inside}]`" if met.element else f"`{declared.array.name}`"


def _values(around: Around, met: Meeting) -> str:
    first, second = met.first[around.position], met.second[around.position]
    return f"{around.loop.iterator} = {first} and {second}{at_parameters(met.parameters)}"


def _by_statement(accesses: Sequence[Access]) -> list[list[Access]]:
    """Return accesses statement by statement, in the order of the text."""
    found: dict[tuple[int, ...], list[Access]] = {}
    for access in sorted(accesses, key=lambda a: [step.index for step in a.path]):
        found.setdefault(_key(access.path), []).append(access)
    return list(found.values())


def _items_around(access: Access) -> list[Around]:
    return [around for around in access.around if around.loop.kind is Kind.ITEM]


# -- barriers

Unordered = tuple[Access, Access, list[Pair]]


def _unordered(first: Access, second: Access) -> Iterator[Unordered]:
    """Yield two accesses in either order, and how their points differ that one part between barriers has.

    The points of group loops are the same, those of items are not.
    """
    common = common_steps(first, second)
    shared = [(k, s.around) for k, s in enumerate(first.path[:common]) if s.around is not None]
    groups = [k for k, step in enumerate(first.path) if _is(step, Kind.GROUP)]
    if groups != [k for k, step in enumerate(second.path) if _is(step, Kind.GROUP)] or (
        groups and groups[-1] >= common
    ):
        return  # of two launches: one is over before the other begins
    inner = groups[-1] + 1 if groups else 0
    outside = [_equal(a) for k, a in shared if k < inner]
    loops = [(k, a) for k, a in shared if k >= inner and a.loop.kind in (Kind.SEQUENTIAL, Kind.UNROLLED)]
    same = [_equal(a) for _, a in loops]
    if not _barrier_between(first, second, common):
        yield from ((first, second, [*outside, *same, *apart]) for apart in _items_apart(first, second))
    for number, (k, around) in enumerate(loops):
        for a, b in ((first, second), (second, first)):
            if not _always_after(a, k + 1) and not _always_before(b, k + 1):
                later = _later(around)
                for apart in _items_apart(a, b):
                    yield a, b, [*outside, *same[:number], later, *apart]


def common_steps(first: Access, second: Access) -> int:
    """Return how many of the statements around two accesses are the same."""
    pairs = zip(first.path, second.path, strict=False)
    return next(
        (k for k, (a, b) in enumerate(pairs) if not a.same(b)), min(len(first.path), len(second.path))
    )


def _is(step: Step, kind: Kind) -> bool:
    return step.around is not None and step.around.loop.kind is kind


def _equal(around: Around) -> Pair:
    return Pair(around.position, around.position, Apart.EQUAL)


def _later(around: Around) -> Pair:
    """Return that the second point is of a later iteration: of the next one, if each has a barrier."""
    step = around.loop.step
    if not isinstance(step, Number) or step.value < 1:
        return Pair(around.position, around.position, Apart.OTHER)
    distance = step.value if _always(around.loop.body) else None
    return Pair(around.position, around.position, Apart.BEFORE, distance)


def _items_apart(first: Access, second: Access) -> Iterator[list[Pair]]:
    ours, others = _items_around(first), _items_around(second)
    if len(ours) != len(others):
        yield []
        return
    for a, b in zip(ours, others, strict=True):
        yield [Pair(a.position, b.position, Apart.OTHER)]


def _barrier_between(first: Access, second: Access, common: int) -> bool:
    """Return whether a barrier is always between two accesses of one iteration of the loops around both."""
    if common == min(len(first.path), len(second.path)):
        return False
    a, b = first.path[common], second.path[common]
    if a.block is not b.block:
        return False  # the two sides of a branch
    if a.index > b.index:
        return _barrier_between(second, first, common)
    return (
        _always(a.block[a.index + 1 : b.index])
        or _always_after(first, common + 1)
        or _always_before(second, common + 1)
    )


def _always_after(access: Access, depth: int) -> bool:
    """Return whether a barrier is always between an access and the end of the block at a depth around it."""
    return any(_always(step.block[step.index + 1 :]) for step in access.path[depth:])


def _always_before(access: Access, depth: int) -> bool:
    return any(_always(step.block[: step.index]) for step in access.path[depth:])


def _always(code: Code) -> bool:
    """Return whether there is a barrier on every way through."""
    return any(map(_always_in, code))


def _always_in(statement: Statement) -> bool:
    match statement:
        case Barrier():
            return True
        case For(start=Number(value=start), body=body) if _is_below(start, statement):
            return _always(body)
        case If(body=body, otherwise=otherwise):
            return _always(body) and _always(otherwise)
        case _:
            return False


def _is_below(start: int, loop: For) -> bool:
    try:
        return isinstance(loop.end, Number) and start < loop.end.value
    except ValueError:
        return False


def uneven_barriers(code: Code) -> Iterator[str]:
    """Yield barriers that not all items of a group reach, or not as often."""
    yield from _uneven(code, None, frozenset())


def _uneven(code: Code, why: str | None, varying: frozenset[str]) -> Iterator[str]:
    """``why``: what some items do not do; ``varying``: integers that are others for other items."""
    inside = bool(varying)
    for statement in code:
        match statement:
            case Barrier() if why:
                yield f"a barrier is {why}, which not all items reach alike"
            case For(iterator=iterator, kind=Kind.ITEM, body=body):
                yield from _uneven(body, why, varying | {iterator})
            case For(iterator=iterator, body=body):
                names = _names(statement.start, statement.condition, statement.step) - {iterator}
                uneven = bool(names & varying)
                inner = f"inside the {_loop_text(statement)}" if uneven else why
                yield from _uneven(body, inner, varying | ({iterator} if uneven else set()))
            case If(condition=condition, body=body, otherwise=otherwise):
                if isinstance(condition, Compute):
                    inner = "inside a branch on data" if inside else why
                else:
                    text = f"inside the branch on `{integer_text(condition)}`"
                    inner = text if names_in(condition) & varying else why
                yield from _uneven((*body, *otherwise), inner, varying)
            case While(body=body):
                yield from _uneven(body, "inside a loop on data" if inside else why, varying)
            case LetInteger(name=name, value=value) if names_in(value) & varying:
                varying = varying | {name}
            case _:
                pass


def _names(*expressions: IntExpression) -> frozenset[str]:
    return frozenset(name for e in expressions for name in names_in(e))
