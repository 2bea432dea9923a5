"""Statements one after another load each element once, and store to memory when all is worked out.

    vector for lane from 0 to 8: y[j + lane] = x[j + lane] + x[j + 8 + lane]
    vector for lane from 0 to 8: y[j + 8 + lane] = x[j + 8 + lane] + x[j + 16 + lane]

becomes

    vector for lane from 0 to 8:
      float32 x_0 = x[j + 8 + lane]
      float32 y_0 = x[j + lane] + x_0
      float32 y_1 = x_0 + x[j + 16 + lane]
      y[j + lane] = y_0
      y[j + 8 + lane] = y_1

OpenCL's compilers do not see that nothing is stored to ``x``: drivers forget ``restrict`` (PoCL 3.0).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

from polyloom.ir.expressions import Read
from polyloom.ir.expressions import walk as walk_expression
from polyloom.ir.naming import Names
from polyloom.ir.types import ElementType
from polyloom.mdh.tree.nodes import Code, Compute, For, Kind, Let, Load, Statement, Store, counted
from polyloom.mdh.tree.rewrite import loads_of, rewritten, substituted, with_blocks, with_loads
from polyloom.polyhedra.loops.tree import Number

MOST_IN_A_ROW = 64
"""Stores."""

Fresh = Callable[[str], str]
"""Gives names for values of an array."""


def numbered(names: Names) -> Fresh:
    """Return what gives names with numbers: ``x_0``, ``x_1``, ..."""
    counts: Counter[str] = Counter()

    def fresh(array: str) -> str:
        name = names.of((array, counts[array]), f"{array}_{counts[array]}")
        counts[array] += 1
        return name

    return fresh


def loads_once(fresh: Fresh, memory: Collection[str], code: Code) -> Code:
    """Let statements in a row load each element of ``memory`` once.

    Keeps true: what is stored, for nothing that such statements load is stored by one of them.
    """
    found: list[Statement] = []
    for key, group in groupby(code, _kind):
        run = tuple(group)
        if key is None:
            found += (with_blocks(s, partial(loads_once, fresh, memory)) for s in run)
        else:
            found += _once(fresh, memory, run, key)
    return tuple(found)


def points_in_a_row(code: Code) -> Code:
    """Write out loops over the points of a tile that only load and store, while they are few.

    Keeps true: the same values, in the same order.
    """
    return rewritten(code, _in_a_row)


def _in_a_row(statement: Statement) -> Code:
    match statement:
        case For(kind=Kind.UNROLLED, start=Number(value=start), step=Number(value=step), body=body) if all(
            _kind(inner) is not None for inner in body
        ):
            assert isinstance(statement.end, Number)
            points = range(start, statement.end.value, step)
            if len(points) * len(body) <= MOST_IN_A_ROW:
                return tuple(s for k in points for s in substituted(body, statement.iterator, Number(k)))
    return (statement,)


Lanes = tuple[str, int]
"""The iterator of a vector loop, and where it ends; 0: there is none."""


def _kind(statement: Statement) -> Lanes | None:
    match statement:
        case Store():
            return "", 0
        case For(kind=Kind.VECTOR, iterator=lane, body=body) if all(isinstance(s, Store) for s in body):
            assert isinstance(statement.end, Number)
            return lane, statement.end.value
        case _:
            return None


def _once(fresh: Fresh, memory: Collection[str], run: Sequence[Statement], lanes: Lanes) -> Code:
    stores = [s for statement in run for s in _stores(statement)]
    loaded = {load.array for s in stores for load in loads_of(s)}
    if len(stores) < 2 or any(s.array in loaded and s.array in memory for s in stores):
        return tuple(run)
    counts = Counter(load for s in stores for load in _loads(s, memory))
    several = _Several(fresh, frozenset(load for load, count in counts.items() if count > 1))
    body = several.body(stores, memory)
    lane, width = lanes
    return (counted(lane, Number(width), body, kind=Kind.VECTOR),) if width else body


def _stores(statement: Statement) -> Iterator[Store]:
    match statement:
        case Store():
            yield statement
        case For(body=body):
            yield from (s for s in body if isinstance(s, Store))
        case _:
            pass


def _loads(store: Store, memory: Collection[str]) -> frozenset[Load]:
    """Return what a store loads of ``memory`` at places that no data decide."""
    return frozenset(
        load
        for load in store.value.loads
        if load.array in memory and not any(isinstance(s, Compute) for s in load.subscripts)
    )


@dataclass
class _Several:
    """Writes stores, of which more than one load what is in ``shared``."""

    fresh: Fresh
    shared: frozenset[Load]
    known: dict[Load, Load] = field(default_factory=dict)

    def body(self, stores: Sequence[Store], memory: Collection[str]) -> Code:
        """Return the stores with what they load before them; those to memory come last."""
        found: list[Statement] = []
        last: list[Store] = []
        for store in stores:
            found += self._let(store.value)
            value = with_loads(store.value, lambda load: self.known.get(load, load))
            store = Store(store.array, store.subscripts, value, store.instance)
            if store.array in memory and _stays(value, stores, memory):
                last.append(store)
            elif store.array in memory:
                name = self.fresh(store.array)
                found.append(Let(name, value))
                store = Store(store.array, store.subscripts, _named(name, value.type), store.instance)
                last.append(store)
            else:
                found.append(store)
        return (*found, *last)

    def _let(self, value: Compute) -> Iterator[Let]:
        """Yield names for what is loaded for the first time."""
        kinds = {e.position: e.type for e in walk_expression(value.expression) if isinstance(e, Read)}
        for position, load in enumerate(value.loads):
            if load in self.shared and load not in self.known:
                name = self.fresh(load.array)
                self.known[load] = Load(name)
                yield Let(name, Compute(Read(0, kinds[position]), (load,)))


def _stays(value: Compute, stores: Sequence[Store], memory: Collection[str]) -> bool:
    """Whether a value is one of a register, which none of the stores changes."""
    match value:
        case Compute(expression=Read(), loads=(Load(array=array),)):
            return array not in memory and all(store.array != array for store in stores)
        case _:
            return False


def _named(name: str, kind: ElementType) -> Compute:
    return Compute(Read(0, kind), (Load(name),))
