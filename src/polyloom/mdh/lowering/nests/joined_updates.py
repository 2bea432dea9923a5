"""Loops beside each other that update elements chosen by data, as one loop.

    for i from 0 to n:                                for i from 0 to n:
      sum[label[i]] = sum[label[i]] + x[i]     ->       sum[label[i]] = sum[label[i]] + x[i]
    for j from 0 to n:                                  count[label[i]] = count[label[i]] + 1
      count[label[j]] = count[label[j]] + 1

An update waits for the one before where both have one element; those of another array fill that time, and
the data that choose are loaded once. Sums into one array may change places, but for ``--fp strict``:

    for p from 0 to n:                                for p from 0 to n:
      rho[at[p]] = rho[at[p]] + x[p]           ->       rho[at[p]] = rho[at[p]] + x[p]
    for q from 0 to n:                                  rho[at[p] + 1] = rho[at[p] + 1] + y[p]
      rho[at[q] + 1] = rho[at[q] + 1] + y[q]

Source: Allen, Kennedy, Optimizing Compilers for Modern Architectures, 2001, Sec. 8.2 (fusion for reuse).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from polyloom.ir.expressions import Binary, BinaryOp, Read
from polyloom.ir.rebuild import read_positions
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.mdh.tree.nodes import Code, Compute, For, Function, Kind, Load, Statement, Store
from polyloom.mdh.tree.rewrite import arrays_used, integers_used, loads_of, substituted, walk, with_blocks
from polyloom.polyhedra.loops.tree import Name, replace_name


def joined_updates(function: Function) -> Function:
    """Return a function in which neighbouring loops of updates at data are one.

    Keeps true: each instance once, and the order of those that touch one element: what a loop stores, the
    other one does not touch, or both only combine something into it by the same operator.
    """
    apart = {p.name for p in function.parameters if p.alone}
    views = {r.name: r.parameter for r in function.reshaped}
    joining = _Joining(frozenset(apart), views, reorders=function.contracted)
    return replace(function, body=joining.code(function.body))


@dataclass(frozen=True)
class _Joining:
    """``apart``: parameters of which no other has elements; ``views``: whose elements other names have.

    ``reorders``: sums and products of floats may be computed in any order.
    """

    apart: frozenset[str]
    views: Mapping[str, str]
    reorders: bool

    def code(self, code: Code) -> Code:
        found: list[Statement] = []
        for statement in code:
            joined = self._joined(found[-1], statement) if found else None
            if joined is None:
                found.append(with_blocks(statement, self.code))
            else:
                found[-1] = joined
        return tuple(found)

    def _joined(self, first: Statement, second: Statement) -> For | None:
        if not (_updates_at_data(first) and _updates_at_data(second)):
            return None
        assert isinstance(first, For) and isinstance(second, For)
        if first.iterator != second.iterator and first.iterator in integers_used((second,)):
            return None
        condition = replace_name(second.condition, second.iterator, Name(first.iterator))
        if (first.start, first.condition, first.step) != (second.start, condition, second.step):
            return None
        stored = self._stored(first), self._stored(second)
        if not stored[0] | stored[1] <= self.apart:
            return None
        both = stored[0] & self._used(second) | stored[1] & self._used(first)
        if any(not self._changes_places(array, first, second) for array in both):
            return None
        body = substituted(second.body, second.iterator, Name(first.iterator))
        return replace(first, body=(*first.body, *body))

    def _changes_places(self, array: str, first: For, second: For) -> bool:
        """Whether two loops use an array only to combine something into its elements, by one operator."""
        operators: set[BinaryFunction | None] = set()
        for statement in (*first.body, *second.body):
            assert isinstance(statement, Store)
            loads = [load for load in loads_of(statement) if self.views.get(load.array, load.array) == array]
            if statement.array == array and (self.reorders or not statement.value.type.is_float):
                operators.add(_operator(statement) if len(loads) == 1 else None)
            elif loads or self.views.get(statement.array) == array:
                return False
        return len(operators) == 1 and None not in operators

    def _used(self, loop: For) -> set[str]:
        return {self.views.get(name, name) for name in arrays_used((loop,))}

    def _stored(self, loop: For) -> set[str]:
        return {self.views.get(s.array, s.array) for s in walk(loop.body) if isinstance(s, Store)}


def _updates_at_data(statement: Statement) -> bool:
    """Return whether a statement is a loop of stores, each at an element that data choose."""
    if not isinstance(statement, For) or statement.kind is not Kind.SEQUENTIAL:
        return False
    return bool(statement.body) and all(
        isinstance(s, Store) and any(isinstance(i, Compute) for i in s.subscripts) for s in statement.body
    )


_ANY_ORDER = frozenset({BinaryOp.ADD, BinaryOp.MULTIPLY, BinaryOp.BIT_AND, BinaryOp.BIT_OR, BinaryOp.BIT_XOR})
"""Operators whose terms may come in any order; those of floats, where rounding may differ."""


def _operator(store: Store) -> BinaryFunction | None:
    """Return the operator by which a store combines something into its element; None where it does more."""
    value = store.value.expression
    if not isinstance(value, Binary) or value.op not in _ANY_ORDER:
        return None
    own = Load(store.array, store.subscripts)
    for total, term in ((value.left, value.right), (value.right, value.left)):
        if isinstance(total, Read) and store.value.loads[total.position] == own:
            return None if total.position in read_positions(term) else value.op
    return None
