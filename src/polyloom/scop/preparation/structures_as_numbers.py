"""Arrays of structures become arrays of numbers: ``x[i].re`` and ``x[i].im`` are ``x[i][0]`` and ``x[i][1]``.

Before, each member is an array of its own, which no memory has: in front of a part that C calls, its elements
would have to be copied side by side, and back behind it. After, members of one type are one array, which has
what the structure has of that type as its last dimension. It lies in memory as C has it, and neighbours in it
are read and stored as whole lines.

Where members have several types, there is an array for each, over the same bytes (``memory``). None uses an
element of another, so that nothing depends on which of them is stored first.

Not in the papers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import islpy as isl

from polyloom.ir.expressions import Binary, BinaryOp, Constant, Convert, Expression
from polyloom.ir.naming import fresh
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import Number
from polyloom.scop.model import MemberView, Origin, Scop, ScopAccess, ScopArray, StructureMember


def with_structures_as_numbers(scop: Scop, *, several: bool) -> Scop:
    """Return the part with arrays of numbers in place of members of structures, where these lie so.

    ``several``: also arrays of several types over the same bytes.
    """
    found = defaultdict[str, list[tuple[ScopArray, StructureMember]]](list)
    for array in scop.arrays:
        if array.member is not None and array.origin is not Origin.INNER:
            found[array.member.array].append((array, array.member))
    places = dict[str, _Place]()
    taken = {array.name for array in scop.arrays} | {parameter.name for parameter in scop.parameters}
    for members in found.values():
        if _are_numbers(members) and (several or len({array.type for array, _ in members}) == 1):
            places |= _places(members, taken | {place.array.name for place in places.values()})
    return _moved(scop, places) if places else scop


@dataclass(frozen=True, eq=False)
class _Place:
    """Where a member's elements are: the number ``first + steps * further subscripts`` of structures."""

    array: ScopArray
    rank: int
    first: int
    steps: tuple[int, ...]

    def moved(self, access: ScopAccess) -> ScopAccess:
        """Return an access to the member as one to the numbers."""
        names = [f"i{k}" for k in range(self.rank + len(self.steps))]
        outer, inner = names[: self.rank], names[self.rank :]
        terms = [str(self.first), *(f"{step}*{name}" for step, name in zip(self.steps, inner, strict=True))]
        target = ", ".join([*outer, " + ".join(terms)])
        move = isl.Map(f"{{ {access.array}[{', '.join(names)}] -> {self.array.name}[{target}] }}")
        known = access.computed
        computed = tuple((k, value) for k, value in known if k < self.rank)
        if len(computed) < len(known):
            computed = (*computed, (self.rank, self._number(access.indices[self.rank :])))
        indices = access.indices
        if indices:
            indices = (*indices[: self.rank], self._number(indices[self.rank :]))
        return replace(
            access,
            array=self.array.name,
            relation=access.relation.apply_range(move),
            computed=computed,
            indices=indices,
        )

    def _number(self, further: Sequence[Expression]) -> Expression:
        """Return which number of a structure it is, as an expression over further subscripts."""
        one = further[0].type if len(further) == 1 else ElementType.INT64
        total: Expression = Constant(self.first, one if further else ElementType.INT32)
        values = (value if value.type is one else Convert(one, value) for value in further)
        terms = (
            Binary(BinaryOp.MULTIPLY, value, Constant(step, one))
            for value, step in zip(values, self.steps, strict=True)
        )
        return reduce(lambda a, b: Binary(BinaryOp.ADD, a, b), terms, total)


def _are_numbers(members: Sequence[tuple[ScopArray, StructureMember]]) -> bool:
    """Whether members of one array lie at whole numbers of their types, by the same outer subscripts."""
    first, _ = members[0]
    rank = len(first.shape) - len(members[0][1].steps)
    return all(
        not (array.linear and member.steps)
        and array.shape[: len(array.shape) - len(member.steps)] == first.shape[:rank]
        and not any(n % array.type.size for n in (member.size, member.first, *member.steps))
        and (array.origin, array.linear, array.truths, array.hidden)
        == (first.origin, first.linear, first.truths, first.hidden)
        for array, member in members
    )


def _places(members: Sequence[tuple[ScopArray, StructureMember]], taken: set[str]) -> Mapping[str, _Place]:
    """Return where the members of one array are; names of new arrays are none that is ``taken``."""
    kinds = list(dict.fromkeys(array.type for array, _ in members))
    places = dict[str, _Place]()
    for kind in kinds:
        own = [(array, member) for array, member in members if array.type is kind]
        name = fresh(own[0][1].array.replace(".", "_"), taken)
        taken = taken | {name}
        numbers = _array(name, own, memory=own[0][1].array if len(kinds) > 1 else "")
        for array, member in own:
            rank = len(array.shape) - len(member.steps)
            steps = tuple(step // kind.size for step in member.steps)
            places[array.name] = _Place(numbers, rank, member.first // kind.size, steps)
    return places


def _array(name: str, members: Sequence[tuple[ScopArray, StructureMember]], memory: str) -> ScopArray:
    """Return the array of all numbers of one type."""
    first, member = members[0]
    rank = len(first.shape) - len(member.steps)
    path, levels = first.record[: member.depth], first.levels[: member.depth]
    nested = member.depth > 1
    return replace(
        first,
        name=name,
        shape=(*first.shape[:rank], Number(member.size // first.type.size)),
        constant=all(array.constant for array, _ in members),
        record=path if nested else (),
        levels=levels if nested else (),
        member=None,
        views=tuple(MemberView(array.record, array.levels, m.first) for array, m in members),
        memory=memory,
    )


def _moved(scop: Scop, places: Mapping[str, _Place]) -> Scop:
    def moved(access: ScopAccess) -> ScopAccess:
        place = places.get(access.array)
        return access if place is None else place.moved(access)

    statements = tuple(
        replace(s, target=moved(s.target), reads=tuple(map(moved, s.reads))) for s in scop.statements
    )
    arrays = dict.fromkeys(places[a.name].array if a.name in places else a for a in scop.arrays)
    return replace(scop, statements=statements, arrays=tuple(arrays))
