"""Loops beside each other that update elements chosen by data, as one loop.

    for i from 0 to n:                                for i from 0 to n:
      sum[label[i]] = sum[label[i]] + x[i]     ->       sum[label[i]] = sum[label[i]] + x[i]
    for j from 0 to n:                                  count[label[i]] = count[label[i]] + 1
      count[label[j]] = count[label[j]] + 1

An update waits for the one before where both have one element; those of another array fill that time, and
the data that choose are loaded once.

Source: Allen, Kennedy, Optimizing Compilers for Modern Architectures, 2001, Sec. 8.2 (fusion for reuse).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from polyloom.mdh.tree.nodes import Code, Compute, For, Function, Kind, Statement, Store
from polyloom.mdh.tree.rewrite import arrays_used, integers_used, substituted, walk, with_blocks
from polyloom.polyhedra.loops.tree import Name, replace_name


def joined_updates(function: Function) -> Function:
    """Return a function in which neighbouring loops of updates at data are one.

    Keeps true: each instance once, and the order of those that touch one element: what a loop stores, the
    other one does not touch.
    """
    apart = {p.name for p in function.parameters if p.alone}
    views = {r.name: r.parameter for r in function.reshaped}
    return replace(function, body=_Joining(frozenset(apart), views).code(function.body))


@dataclass(frozen=True)
class _Joining:
    """``apart``: parameters of which no other has elements; ``views``: whose elements other names have."""

    apart: frozenset[str]
    views: Mapping[str, str]

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
        if stored[0] & self._used(second) or stored[1] & self._used(first):
            return None
        body = substituted(second.body, second.iterator, Name(first.iterator))
        return replace(first, body=(*first.body, *body))

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
