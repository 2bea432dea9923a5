"""Loops that data end, for a vector of points at a time: who is through keeps what it has.

    parallel for i from 0 to n:        parallel for i from 0 to n step W:       all lanes at once:
      x = a[i]                           x[l] = a[i + l];  on[l] = x[l] > 1
      while x > 1:               ->      while any on[l]:
        x = x * b[i]                       x[l] = on[l] ? x[l] * b[i + l] : x[l]
      y[i] = x                             on[l] = on[l] and x[l] > 1
                                         y[i + l] = x[l]

The rest of the points go one by one. What nothing reads behind a loop changes in lanes that are through, too,
so that nothing waits for what is chosen. What a lane would not have loaded no lane loads, so loops with such
loads stay as they are; those too that repeat operations which vectors have not. Loops along rows in which no
data end a loop go so, too, where compilers of C make slower code: of minima and maxima of floats, and of
functions.

Source: Allen, Kennedy, Porterfield and Warren, Conversion of control dependence to data dependence (POPL
1983). Not in the papers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    Constant,
    Expression,
    Read,
    Select,
    Unary,
    UnaryOp,
    children,
)
from polyloom.ir.expressions import walk as parts_of
from polyloom.ir.naming import Names
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.nests.linear_recurrences import has_end
from polyloom.mdh.tree.lanes import any_lane
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    For,
    Function,
    If,
    Kind,
    Load,
    Space,
    Statement,
    Store,
    While,
    counted,
)
from polyloom.mdh.tree.ranges import plus
from polyloom.mdh.tree.rewrite import (
    declared_in,
    loads_of,
    rewritten,
    substituted,
    values_of,
    walk,
    with_integers,
    with_places,
)
from polyloom.polyhedra.loops.tree import (
    IntExpression,
    Name,
    Number,
    Operation,
    linear_terms,
    names_in,
    replace_name,
)

LEAST_LANES = 4
"""Of fewer, choosing between what was and what is takes what vectors bring. Estimate."""

_CALLED = (
    UnaryOp.SQRT,
    UnaryOp.EXP,
    UnaryOp.LOG,
    UnaryOp.SIN,
    UnaryOp.COS,
    UnaryOp.TANH,
    UnaryOp.ERF,
    UnaryOp.ERFC,
    UnaryOp.SIGMOID,
)
"""Functions that vectors have, beside those of one instruction."""


def masked_loops(function: Function, vector_bytes: int) -> Function:
    """Return a function whose loops that data end go for vectors of so many bytes, a point in each lane.

    Keeps true: each instance once, and all values. That points are independent is what the loops around say.
    """
    names = Names({*function.arrays, *function.integers, *declared_in(function.body)})

    def change(statement: Statement) -> Code:
        if not isinstance(statement, For) or not _may_go_together(statement):
            return (statement,)
        kept = _with_kept_loads(statement.body, names)
        lanes = _lanes(kept, vector_bytes)
        return (statement,) if lanes < LEAST_LANES else (_Masked(statement, kept, lanes, names).loop(),)

    return replace(function, body=rewritten(function.body, change))


def _may_go_together(loop: For) -> bool:
    inside = list(walk(loop.body))
    is_independent = loop.kind in (Kind.GROUP, Kind.INDEPENDENT)
    is_counted = is_independent and loop.step == Number(1) and has_end(loop)
    if not is_counted or not all(map(_has_lanes, inside)):
        return False
    return any(isinstance(s, While) for s in inside) or _has_quicker_lanes(loop, inside)


def _has_quicker_lanes(loop: For, inside: Sequence[Statement]) -> bool:
    """Whether a loop along rows has operations for which compilers of C take longer.

    Minima and maxima of floats are two steps for them, functions are calls for each element.
    """
    values = [value for s in inside for value in values_of(s)]
    loads = [load for value in values for load in value.loads]
    stored = [Load(s.array, s.subscripts) for s in inside if isinstance(s, Store)]
    is_near = all(_is_along(place, loop.iterator) for place in (*loads, *stored))
    return is_near and any(map(_is_quicker, _parts(inside))) and all(map(_has_vectors, _parts(inside)))


def _is_quicker(part: Expression) -> bool:
    match part:
        case Unary(op=op, type=kind):
            return kind.is_float and op in _CALLED
        case Select(condition=Compare(left=left, right=right), then=then, otherwise=otherwise):
            return part.type.is_float and (left, right) in ((then, otherwise), (otherwise, then))
        case Binary(op=BinaryOp.MAXIMUM | BinaryOp.MINIMUM | BinaryOp.FMAX | BinaryOp.FMIN, type=kind):
            return kind.is_float
        case _:
            return False


def _is_along(place: Load, iterator: str) -> bool:
    """Whether neighbouring points have neighbouring elements, or all the same one."""
    if not place.subscripts or _is_by_data(place):
        return not place.subscripts
    *outer, last = (s for s in place.subscripts if not isinstance(s, Compute))
    if any(iterator in names_in(s) for s in outer):
        return False
    return iterator not in names_in(last) or (1, Name(iterator)) in linear_terms([(1, last)])[0]


@dataclass(frozen=True)
class _Body:
    """What a loop does at a point; ``kept``: registers that only hold what was loaded, under a condition."""

    code: Code
    kept: frozenset[str]


def _with_kept_loads(code: Code, names: Names) -> _Body:
    """Return code that loads what each iteration of a loop loads once before it, if that begins at all.

    Of no other lane may it be loaded: it may be no element of any array there.
    """
    found: list[Statement] = []
    kept: set[str] = set()
    known: set[Load] = set()
    registers = {s.name for s in walk(code) if isinstance(s, Array)}
    for statement in code:
        known.update(_surely_loaded(statement))
        if not isinstance(statement, While):
            found.append(statement)
            continue
        by_load: dict[Load, Load] = {}
        types = _types_of(statement.body)
        for load in dict.fromkeys(_loaded_each_time(statement.body)):
            if load.array in registers or load in known:
                continue
            register = Array(
                name=names.of((object(),), f"{load.array}_here"),
                type=types[load],
                shape=(),
                space=Space.REGISTER,
            )
            value = Compute(Read(0, register.type), (load,))
            found += [register, If(statement.condition, (Store(register.name, (), value),))]
            by_load[load] = Load(register.name)
        found.append(While(statement.condition, with_places(statement.body, partial(_other, by_load))))
        kept |= {load.array for load in by_load.values()}
    return _Body(tuple(found), frozenset(kept))


def _other(known: Mapping[Load, Load], load: Load) -> Load:
    return known.get(load, load)


def _loaded_each_time(code: Code) -> Iterator[Load]:
    """Yield what is loaded at places that no data choose whenever code is carried out."""
    for statement in code:
        yield from (load for load in _surely_loaded(statement) if not _is_by_data(load))


def _types_of(code: Code) -> Mapping[Load, ElementType]:
    """Return the types of what is loaded."""
    return {
        value.loads[part.position]: part.type
        for s in walk(code)
        for value in values_of(s)
        for part in parts_of(value.expression)
        if isinstance(part, Read)
    }


def _lanes(body: _Body, vector_bytes: int) -> int:
    """Return how many points of a loop go together; 0 where they cannot."""
    inside = list(walk(body.code))
    registers = {s.name for s in inside if isinstance(s, Array)}
    if not _Loads(registers, body.kept).are_sure(body.code):
        return 0
    kinds = {part.type for part in _parts(inside)} | {s.type for s in inside if isinstance(s, Array)}
    again = [s for loop in inside if isinstance(loop, While) for s in walk((loop,))]
    if ElementType.FLOAT16 in kinds or not all(map(_has_vectors, _parts(again))):
        return 0
    return vector_bytes // max(kind.size for kind in kinds)


def _parts(statements: Sequence[Statement]) -> Iterator[Expression]:
    """Yield the parts of all that statements themselves compute."""
    return (part for s in statements for value in values_of(s) for part in parts_of(value.expression))


def _has_lanes(statement: Statement) -> bool:
    match statement:
        case Array(space=space, shape=shape):
            return space is Space.REGISTER and not shape
        case If(condition=condition):
            return isinstance(condition, Compute)
        case _:
            return isinstance(statement, Store | While)


def _has_vectors(part: Expression) -> bool:
    """Whether an operation is one of vectors too: the others would be carried out for all lanes in turn."""
    match part:
        case Binary(op=BinaryOp.DIVIDE | BinaryOp.REMAINDER as op, right=Constant(value=value), type=kind):
            return kind.is_float is (op is BinaryOp.DIVIDE) or (not kind.is_float and value > 0)
        case Binary(op=BinaryOp.DIVIDE, type=kind):
            return kind.is_float
        case Unary(op=op) | Binary(op=op):
            return op.instructions <= 1 or op in _CALLED
        case _:
            return True


@dataclass(frozen=True)
class _Loads:
    """Says whether all that is loaded is loaded at each point; ``known``: what surely was."""

    registers: Collection[str]
    kept: Collection[str]
    known: set[Load] = field(default_factory=set)

    def are_sure(self, code: Code, *, always: bool = True) -> bool:
        """Return whether code loads nothing under a condition that is not loaded before it anyway.

        What a loop asks again and again is asked in lanes that are through, too, whatever is in registers.
        """
        for statement in code:
            if isinstance(statement, Store) and statement.array in self.kept:
                continue
            sure = set(_surely_loaded(statement)) if always else set()
            self.known.update(load for load in sure if not _is_by_data(load))
            there = self.known if isinstance(statement, While) else sure | self.known
            if not all(load.array in self.registers or load in there for load in loads_of(statement)):
                return False
            match statement:
                case If(body=body, otherwise=otherwise):
                    inner = self.are_sure(body, always=False) and self.are_sure(otherwise, always=False)
                case While(body=body):
                    inner = self.are_sure(body, always=False)
                case _:
                    inner = True
            if not inner:
                return False
        return True


def _is_by_data(load: Load) -> bool:
    return any(isinstance(s, Compute) for s in load.subscripts)


def _surely_loaded(statement: Statement) -> Iterator[Load]:
    """Yield what a statement itself loads whatever its conditions give, where it is carried out."""
    match statement:
        case Store(subscripts=subscripts, value=value):
            values = [value, *(s for s in subscripts if isinstance(s, Compute))]
        case If(condition=Compute() as asked) | While(condition=asked):
            values = [asked]
        case _:
            values = []
    for value in values:
        for load in (value.loads[k] for k in _always_read(value.expression)):
            yield load
            values += (s for s in load.subscripts if isinstance(s, Compute))


def _always_read(expression: Expression) -> Iterator[int]:
    """Yield the positions of what an expression reads whatever its conditions give."""
    match expression:
        case Read(position=position):
            yield position
        case Binary(op=BinaryOp.AND | BinaryOp.OR, left=first) | Select(condition=first):
            yield from _always_read(first)
        case _:
            for part in children(expression):
                yield from _always_read(part)


@dataclass(frozen=True)
class _Flag:
    """A register that says where a block is carried out."""

    name: str

    def asked(self) -> Compute:
        """Return what it says."""
        return Compute(Read(0, ElementType.BOOL), (Load(self.name),))

    def given(self, on: _Flag | None, asked: Compute, *, holds: bool = True) -> Store:
        """Return what sets it: where a condition holds, or does not, in a block that is carried out."""
        condition = asked.expression if holds else Unary(UnaryOp.NOT, asked.expression)
        loads = asked.loads
        if on is not None:
            condition = Binary(BinaryOp.AND, Read(len(loads), ElementType.BOOL), condition)
            loads = (*loads, Load(on.name))
        return Store(self.name, (), Compute(condition, loads, asked.iterators))

    def chosen(self, store: Store) -> Store:
        """Return a store to a register that leaves what was there where a block is not carried out."""
        loads, kind = store.value.loads, store.value.type
        is_on, kept = Read(len(loads), ElementType.BOOL), Read(len(loads) + 1, kind)
        value = Select(is_on, store.value.expression, kept)
        loads = (*loads, Load(self.name), Load(store.array))
        return replace(store, value=Compute(value, loads, store.value.iterators))


class _Masked:
    """The code of a loop with a vector of its points at a time."""

    def __init__(self, loop: For, body: _Body, lanes: int, names: Names) -> None:
        self.plain, self.body, self.lanes, self.names = loop, body, lanes, names
        self.arrays = [s for s in walk(body.code) if isinstance(s, Array)]
        self.registers = frozenset(a.name for a in self.arrays)
        self.uses = Counter(load.array for s in walk(body.code) for load in loads_of(s))

    def _name(self, wanted: str) -> str:
        return self.names.of((object(),), wanted)

    def loop(self) -> For:
        """Return the loop, with the rest of its points one by one."""
        loop, first, rest = self.plain, Name(self.plain.iterator), self._name("rest")
        here = plus(first, Name(rest))
        body = substituted(loop.body, loop.iterator, here)
        tail = counted(rest, Number(self.lanes), (If(Operation("<", (here, loop.end)), body),))
        whole = Operation("<=", (plus(first, self.lanes), loop.end))
        return replace(loop, step=Number(self.lanes), body=(If(whole, self._whole(), (tail,)),))

    def _whole(self) -> Code:
        code = tuple(self._masked(self.body.code, None))
        lanes = Number(self.lanes)
        registers = {a.name: replace(a, name=self._name(a.name), shape=(lanes,)) for a in self.arrays}
        cleared = (_cleared(a) for a in self.arrays if not _is_set_first(a.name, code))
        in_lanes = _InLanes(self.plain.iterator, self._name("lane"), self.lanes, registers)
        return (*registers.values(), *in_lanes.code((*cleared, *code)))

    def _flag(self) -> _Flag:
        flag = _Flag(self._name("on"))
        self.arrays.append(Array(name=flag.name, type=ElementType.BOOL, shape=(), space=Space.REGISTER))
        return flag

    def _masked(
        self, code: Code, on: _Flag | None, around: Code | None = None, own: Collection[str] = ()
    ) -> Iterator[Statement]:
        """Yield statements that choose in place of branches, for one point.

        ``on``: whether they are carried out; ``around``: what the loop around repeats; ``own``: registers of
        no use where that is over.
        """
        for statement in code:
            match statement:
                case Store(array=array) if on is None or array in own:
                    yield statement
                case Store(array=array):
                    assert on is not None
                    in_vectors = array in self.registers and array not in self.body.kept
                    yield on.chosen(statement) if in_vectors else If(on.asked(), (statement,))
                case If(condition=Compute() as asked, body=body, otherwise=otherwise):
                    yield from self._branch(asked, body, otherwise, on, around)
                case While(condition=asked, body=body):
                    flag = self._flag()
                    yield flag.given(on, asked)
                    inside = self._masked(body, flag, body, self._own(statement, around))
                    yield While(flag.asked(), (*inside, flag.given(flag, asked)))
                case _:
                    pass

    def _branch(
        self, asked: Compute, body: Code, otherwise: Code, on: _Flag | None, around: Code | None
    ) -> Iterator[Statement]:
        sides = [(self._flag(), side, holds) for side, holds in ((body, True), (otherwise, False)) if side]
        yield from (flag.given(on, asked, holds=holds) for flag, _, holds in sides)
        for flag, side, _ in sides:
            yield from self._masked(side, flag, around)

    def _own(self, loop: While, around: Code | None) -> set[str]:
        """Return the registers that a loop alone reads, and that are set anew before it begins, or in it."""
        inside = Counter(load.array for s in walk((loop,)) for load in loads_of(s))
        once = (If(loop.condition, ()), *loop.body)
        return {
            name
            for name in self.registers
            if inside[name] == self.uses[name]
            and (around is None or any(_is_set_first(name, code) for code in (once, around)))
        }


def _is_set_first(name: str, code: Code) -> bool:
    """Whether code stores to a register in any case, before it reads that."""
    for statement in code:
        used = any(load.array == name for s in walk((statement,)) for load in loads_of(s))
        if isinstance(statement, Store) and statement.array == name:
            return not used
        if used or any(isinstance(s, Store) and s.array == name for s in walk((statement,))):
            return False
    return False


def _cleared(register: Array) -> Store:
    return Store(register.name, (), Compute(Constant(0, register.type)))


@dataclass(frozen=True)
class _InLanes:
    """Statements for one point, in all lanes at once; ``registers``: by the names that they had."""

    iterator: str
    lane: str
    lanes: int
    registers: Mapping[str, Array]

    def code(self, code: Code) -> Code:
        """Return loops over lanes; stores in a row are in one."""
        found: list[Statement] = []
        together: list[Statement] = []
        for statement in code:
            if isinstance(statement, Store):
                together.append(self._placed(statement))
                continue
            found += self._for_each(together, Kind.VECTOR)
            together = []
            match statement:
                case While(condition=asked, body=body):
                    found.append(While(self._any(asked), self.code(body)))
                case If():
                    found += self._for_each([self._placed(statement)], Kind.UNROLLED)
        return (*found, *self._for_each(together, Kind.VECTOR))

    def _for_each(self, code: Sequence[Statement], kind: Kind) -> Code:
        return (counted(self.lane, Number(self.lanes), tuple(code), kind=kind),) if code else ()

    def _placed(self, statement: Statement) -> Statement:
        at = plus(Name(self.iterator), Name(self.lane))
        (placed,) = with_places((statement,), lambda load: self._register(load, Name(self.lane)))
        return with_integers(placed, lambda e: replace_name(e, self.iterator, at))

    def _register(self, load: Load, lane: IntExpression) -> Load:
        return Load(self.registers[load.array].name, (lane,)) if load.array in self.registers else load

    def _any(self, asked: Compute) -> Compute:
        """Return whether a register says so of any lane."""
        (load,) = asked.loads
        return any_lane(self.registers[load.array].name, self.lanes)
