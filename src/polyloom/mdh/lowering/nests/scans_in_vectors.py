"""Loops that carry one sum, and store what follows from it at each point, a vector of points at a time.

    for i from 0 to n:              for i from 0 to n - W step W:
      s = s + b[i]           ->       v[l] = b[i + l];  t[l] = s + (v[0] + ... + v[l])       all lanes at once
      r = s * c[i]                    r[l] = t[l] * c[i + l]
      a[i] = r                        a[i + l] = r[l];  s = t[W - 1]
                                    for the rest of i, at least one: as before

The sum may be decayed (``s = w * s + b[i]``): it is a linear recurrence of one step. Statements behind it go
through all lanes one after the other, so none may load what another point of the loop stores. The last loop
leaves all scalars as the loop did.

Sums of floats have another order, so this is not for ``--fp strict``.

Source: block recurrences, see ``linear_recurrences``. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from polyloom.ir.naming import Names
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.nests.linear_recurrences import (
    WIDEST,
    Blocks,
    Recurrence,
    has_end,
    integers_of,
    recurrence_of,
)
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    For,
    Function,
    Kind,
    Load,
    Space,
    Statement,
    Store,
    Subscript,
)
from polyloom.mdh.tree.ranges import plus
from polyloom.mdh.tree.rewrite import declared_in, loads_of, rewritten, walk
from polyloom.polyhedra.loops.tree import Name, Number, names_in, replace_name


def scans_in_vectors(function: Function, vector_bytes: int) -> Function:
    """Return a function whose loops that carry one sum run in vectors of so many bytes.

    Keeps true: each instance once; values but for the order of sums. Functions that are not to be
    ``contracted`` (``--fp strict``) stay.
    """
    if not function.contracted:
        return function
    names = Names({*function.arrays, *function.integers, *declared_in(function.body)})
    apart = {p.name for p in function.parameters if p.alone} - {r.parameter for r in function.reshaped}
    declared = [s for s in walk(function.body) if isinstance(s, Array)]
    wide = {s.name for s in declared if s.space is not Space.REGISTER or s.shape or s.lanes}
    scalars = {s.name: s.type for s in declared if s.name not in wide}
    scalars |= {p.name: p.type for p in function.parameters if p.scratch and not p.shape}

    def change(statement: Statement) -> Code:
        if not isinstance(statement, For):
            return (statement,)
        scan = _found(statement, scalars, apart)
        return (scan and _blocks(scan, scalars, names, vector_bytes)) or (statement,)

    return replace(function, body=rewritten(function.body, change))


def _blocks(scan: Recurrence, scalars: Mapping[str, ElementType], names: Names, vector_bytes: int) -> Code:
    stores = [s for s in scan.loop.body if isinstance(s, Store)]
    lanes = min(WIDEST, vector_bytes // max(s.value.type.size for s in stores))
    if lanes < 4:
        return ()
    return _ScanBlocks(scan, lanes, scan.store.value.type, names, scalars).code()


def _found(loop: For, scalars: Mapping[str, ElementType], apart: set[str]) -> Recurrence | None:
    """Return the sum that a loop carries; None where it carries none, or something else too."""
    if loop.kind is not Kind.SEQUENTIAL or loop.step != Number(1) or not loop.body or not has_end(loop):
        return None
    first, *others = loop.body
    stores = [s for s in (first, *others) if isinstance(s, Store)]
    if len(stores) < max(2, len(loop.body)) or not isinstance(first, Store) or first.array not in scalars:
        return None
    if not first.value.type.is_float or any(s.value.type is ElementType.FLOAT16 for s in stores):
        return None
    if not _goes_through_lanes(loop, stores, scalars, apart):
        return None
    back = {p: 1 for p, load in enumerate(first.value.loads) if load.array == first.array}
    return recurrence_of(loop, first, back) if len(back) == 1 else None


def _goes_through_lanes(
    loop: For, stores: Sequence[Store], scalars: Mapping[str, ElementType], apart: set[str]
) -> bool:
    """Return whether each statement can be carried out at some points before the next one is."""
    targets = {s.array: s for s in stores}
    arrays = [s.array for s in stores if s.array not in scalars]
    if len(set(arrays)) < len(arrays):
        return False
    given: set[str] = set()
    for number, store in enumerate(stores):
        for load in loads_of(store):
            if load.array in scalars:
                carried = load.array in targets and load.array not in given and number > 0
                if carried or (not number and load.array in targets and load.array != store.array):
                    return False
            elif load.array in targets and not _is_own(load, targets[load.array], loop):
                return False
        if any(isinstance(s, Compute) for load in loads_of(store) for s in load.subscripts):
            return False
        given.add(store.array)
    return all(s.array in scalars or (s.array in apart and _differ(s, loop.iterator)) for s in stores)


def _is_own(load: Load, store: Store, loop: For) -> bool:
    """Return whether what is loaded is the point's own element, or in front of all that the loop stores."""
    if load.subscripts == store.subscripts:
        return True
    if any(isinstance(s, Compute) or loop.iterator in names_in(s) for s in load.subscripts):
        return False
    stored = integers_of(store.subscripts)
    if not stored:
        return False
    *outer, last = stored
    first = replace_name(last, loop.iterator, loop.start)
    rises = plus(last, Name(loop.iterator), -1)
    before = plus(first, load.subscripts[-1], -1)  # type: ignore[arg-type]
    same = all(a == b for a, b in zip(outer, load.subscripts[:-1], strict=True))
    return same and loop.iterator not in names_in(rises) and isinstance(before, Number) and before.value > 0


def _differ(store: Store, iterator: str) -> bool:
    """Return whether a store has an element of its own at each point."""
    changing = [s for s in integers_of(store.subscripts) if iterator in names_in(s)]
    if len(changing) != 1:
        return False
    at = [replace_name(changing[0], iterator, Number(k)) for k in range(3)]
    steps = {plus(b, a, -1) for a, b in pairwise(at)}
    return len(steps) == 1 and steps != {Number(0)} and all(isinstance(s, Number) for s in steps)


class _ScanBlocks(Blocks):
    """The code of a loop that carries one sum; ``lanewise``: scalars that have a value in each lane."""

    left = 1

    def __init__(
        self,
        found: Recurrence,
        lanes: int,
        kind: ElementType,
        names: Names,
        scalars: Mapping[str, ElementType],
    ) -> None:
        super().__init__(found, lanes, kind, names)
        self.behind = [s for s in found.loop.body[1:] if isinstance(s, Store)]
        of_lanes = {s.array: scalars[s.array] for s in self.behind if s.array in scalars}
        self.kinds = {names.of((object(),), name): kind for name, kind in of_lanes.items()}
        self.lanewise = {**dict(zip(of_lanes, self.kinds, strict=True)), found.store.array: self.totals}

    def _stored_before(self, k: int) -> Load:
        return Load(self.found.store.array, ())

    def _given(self) -> For:
        here, done = (Name(self.lane),), self.found.store.instance
        return self._lanes(self._at_lane(Store(self.values, here, self.found.rest, done)))

    def _stored(self) -> Code:
        arrays = [
            Array(name=name, type=kind, shape=(Number(self.lanes),), space=Space.REGISTER)
            for name, kind in self.kinds.items()
        ]
        return (*arrays, *(self._lanes(self._of_lanes(self._at_lane(s))) for s in self.behind))

    def _of_lanes(self, store: Store) -> Store:
        here = (Name(self.lane),)

        def at(array: str, subscripts: tuple[Subscript, ...]) -> tuple[str, tuple[Subscript, ...]]:
            return (self.lanewise[array], here) if array in self.lanewise else (array, subscripts)

        loads = tuple(
            replace(load, array=a, subscripts=s)
            for load in store.value.loads
            for a, s in [at(load.array, load.subscripts)]
        )
        array, subscripts = at(store.array, store.subscripts)
        return replace(store, array=array, subscripts=subscripts, value=replace(store.value, loads=loads))

    def _carried(self) -> Code:
        return (*super()._carried(), Store(self.found.store.array, (), self._read(Load(self.nexts[0]))))
