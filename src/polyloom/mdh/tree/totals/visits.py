"""Totals of parts that go through some of their steps in another array, and come back.

    float32 part_own[4, 8] in stack
    part_own[0, lane] = part_0[lane]; ..           each element comes from one place
    for at ..: part_own[at, lane] = part_own[at, lane] + x[..]
    part_0[lane] = part_own[0, lane]; ..           and goes back there

Between the two the elements at home are not accessed, so these are the same totals under another name:
neither move combines anything. Where nothing comes, as there is nothing yet, all at home is from there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from polyloom.ir.expressions import Constant, Read
from polyloom.mdh.tree.accesses import OPERATIONS, Access, Declared
from polyloom.mdh.tree.nodes import Array, Statement, Store, Totals
from polyloom.mdh.tree.races import common_steps
from polyloom.polyhedra.loops.accesses import Elements, NotKnown, inside, one_to_one, question


@dataclass
class Visits:
    """The arrays that totals visit, and the loads by which they come and go back."""

    arrays: set[Declared] = field(default_factory=set)
    moves: set[Access] = field(default_factory=set)


@dataclass(frozen=True, eq=False)
class _Move:
    """A statement that stores one total as another one: its load and its store."""

    load: Access
    store: Access


def visits(by_array: Sequence[Sequence[Access]]) -> Visits:
    """Return the visits among the accesses to arrays of totals, those that are inside of others first."""
    found, moves = Visits(), _moves(by_array)
    accesses = {some[0].declared: some for some in by_array}
    inner_first = sorted(accesses, key=lambda declared: -declared.depth)
    for array in inner_first:
        visit = _Visit(array, accesses, [m for m in moves if m.load not in found.moves])
        if visit.is_one(found.moves):
            found.arrays.add(array)
            found.moves |= {move.load for move in (*visit.comes, *visit.goes)}
    return found


def _moves(by_array: Sequence[Sequence[Access]]) -> list[_Move]:
    stores = {id(a.path): a for accesses in by_array for a in accesses if a.is_store}
    loads = (a for accesses in by_array for a in accesses if not a.is_store and _is_copy(statement_of(a)))
    pairs = ((load, stores.get(id(load.path))) for load in loads)
    return [_Move(a, b) for a, b in pairs if b is not None and _are_same(_totals(a), _totals(b))]


def _are_same(first: Totals | None, second: Totals | None) -> bool:
    return first is not None and first == second


def statement_of(access: Access) -> Statement:
    """Return the statement in which an access is."""
    step = access.path[-1]
    return step.block[step.index]


def is_own(access: Access) -> bool:
    """Return whether a load is of the element that its statement stores."""
    statement = statement_of(access)
    own = (access.declared.array.name, access.subscripts)
    return isinstance(statement, Store) and (statement.array, statement.subscripts) == own


def _is_copy(statement: Statement) -> bool:
    return isinstance(statement, Store) and isinstance(statement.value.expression, Read)


def _totals(access: Access) -> Totals | None:
    """Return of what an array has parts, each combined once; None for others."""
    array = access.declared.array
    totals = array.totals if isinstance(array, Array) else None
    return totals if totals is not None and totals.parts and totals.result is not None else None


class _Visit:
    """What comes to an array from others, goes there, and lies between. ``accesses``: of all arrays."""

    def __init__(
        self, array: Declared, accesses: Mapping[Declared, Sequence[Access]], moves: Sequence[_Move]
    ) -> None:
        self.array, self.accesses = array, accesses
        self.comes = [move for move in moves if move.store.declared is array]
        self.goes = [move for move in moves if move.load.declared is array]
        ends = {move.store for move in self.comes} | {move.load for move in self.goes}
        self.between = [access for access in accesses[array] if access not in ends]

    def is_one(self, known: Collection[Access]) -> bool:
        """Return whether what comes goes back to where it came from. ``known``: moves of visits inside."""
        if not self.goes or not all(access.sure for access in self._moved()):
            return False
        steps = all(self._is_step(access, known) for access in self.between)
        return steps and self._is_in_order() and self._is_away() and self._comes_home()

    def _moved(self) -> list[Access]:
        return [access for move in (*self.comes, *self.goes) for access in (move.load, move.store)]

    def _is_step(self, access: Access, known: Collection[Access]) -> bool:
        """Return whether what is there stays in the total; where nothing comes it begins there."""
        if not access.is_store:
            return is_own(access) or access in known
        statement = statement_of(access)
        assert isinstance(statement, Store)
        match statement.value.expression:
            case Constant():
                return not self.comes
            case Read():
                return any(load.path is access.path for load in known)
            case _:
                return True

    def _is_in_order(self) -> bool:
        """Whether the statements of the array's block first bring all, then change it, then take it."""
        come = [self._place(move.store) for move in self.comes]
        change = [self._place(access) for access in self.between]
        go = [self._place(move.load) for move in self.goes]
        before, after = max(come, default=-1), min(go)
        return before < after and all(before < place < after for place in change)

    def _place(self, access: Access) -> int:
        return access.path[self.array.depth].index

    def _homes(self) -> list[Declared]:
        found = [*(m.load.declared for m in self.comes), *(m.store.declared for m in self.goes)]
        return list(dict.fromkeys(found))

    def _is_away(self) -> bool:
        """Whether elements at home are not accessed meanwhile; where none came, whether none were before."""
        homes, moved = self._homes(), set(self._moved())
        if any(home.depth > self.array.depth for home in homes):
            return False
        others = [a for home in homes for a in self.accesses[home] if a not in moved]
        return not any(map(self._is_meanwhile, others)) and (
            bool(self.comes) or all(map(self._is_behind, others))
        )

    def _is_meanwhile(self, access: Access) -> bool:
        path = self.goes[0].load.path
        if common_steps(self.goes[0].load, access) < self.array.depth or len(access.path) <= self.array.depth:
            return False
        assert access.path[self.array.depth].block is path[self.array.depth].block
        first = min((self._place(move.store) for move in self.comes), default=0)
        last = max(self._place(move.load) for move in self.goes)
        return first <= self._place(access) <= last

    def _is_behind(self, access: Access) -> bool:
        """Whether an element at home is accessed after all came there, of which there is one time only."""
        path = self.goes[0].load.path
        once = all(step.around is None for step in path[access.declared.depth : self.array.depth])
        common = common_steps(self.goes[0].load, access)
        if common >= min(len(path), len(access.path)):
            return False
        return once and path[common].index < access.path[common].index

    def _comes_home(self) -> bool:
        """Whether each element comes from one place, and all of them go back there."""
        homes = self._homes()
        if len({home.array.name for home in homes}) < len(homes):
            return False
        try:
            with question("whether totals come back to where they were", OPERATIONS):
                goes = [self._pair(move.load, move.store) for move in self.goes]
                comes = [self._pair(move.store, move.load) for move in self.comes]
                return one_to_one(goes, comes or None)
        except NotKnown:
            return False

    def _pair(self, own: Access, home: Access) -> tuple[Elements, Elements]:
        """Return an element and the one at home, each behind the iterators around the array's block."""
        outer = [step.around.position for step in own.path[: self.array.depth] if step.around is not None]
        return inside(own.elements, outer), inside(home.elements, outer)
