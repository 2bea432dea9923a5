"""Iterators of a program that run along the same dimensions of tensors: what is tiled together.

ff:     y[i] += W[i][j] * x[j]
fd:     dx[j] += W[i][j] * dy[i]        classes {ff.i, fd.i} and {ff.j, fd.j}: W's two dimensions

Tiling a class in one way in all statements keeps shared tensors where they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polyloom.ir.host import Index, View
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement

Member = tuple[int, int]
"""A statement's number and an iterator's position."""


@dataclass(frozen=True)
class Class:
    """``extent``: the largest of its iterators' extents."""

    number: int
    members: frozenset[Member]
    extent: int
    name: str


@dataclass(frozen=True)
class Classes:
    """All classes, and the class of each iterator of each statement."""

    all: tuple[Class, ...]
    of: dict[Member, int]

    def iterators(self, program: Program) -> Mapping[Member, int]:
        """Return the iterator of a statement that is in a class, by the numbers of both.

        Of several the first that indexes what is written, if there is any.
        """
        found: dict[Member, int] = {}
        for (s, k), c in self.of.items():
            found.setdefault((s, c), k)
        for s, statement in enumerate(program.statements):
            for k in reversed(written_iterators(statement)):
                found[s, self.of[s, k]] = k
        return found


def plain_iterator(index: Index) -> int | None:
    """Return the iterator that an index is, as it stands; None where it is anything else."""
    used = [k for k, c in enumerate(index.coefficients) if c]
    is_plain = len(used) == 1 and index.coefficients[used[0]] == 1 and index.constant == 0
    return used[0] if is_plain else None


def written_iterators(statement: Statement) -> tuple[int, ...]:
    """Return the iterators in the indices of the written element."""
    found = [k for index in statement.write.affine for k, c in enumerate(index.coefficients) if c]
    return tuple(dict.fromkeys(found))


def find_classes(program: Program) -> Classes:
    """Unite iterators that index the same dimension of a tensor; each as it stands."""
    parent: dict[object, object] = {}

    def root(node: object) -> object:
        while parent.setdefault(node, node) != node:
            node = parent[node]
        return node

    for number, statement in enumerate(program.statements):
        for k in range(len(statement.domain)):
            root((number, k))
        for access in accesses(statement):
            for dim, index in enumerate(access.affine):
                plain = plain_iterator(index)
                if plain is not None:
                    parent[root((number, plain))] = root((access.buffer, dim))
    return _collected(program, {m: root(m) for m in _members(program)})


def accesses(statement: Statement) -> tuple[View, ...]:
    """Return what a statement writes and reads."""
    return (statement.write, *statement.reads)


def _members(program: Program) -> list[Member]:
    return [(n, k) for n, s in enumerate(program.statements) for k in range(len(s.domain))]


def _collected(program: Program, roots: dict[Member, object]) -> Classes:
    numbers = {r: n for n, r in enumerate(dict.fromkeys(roots.values()))}
    of = {member: numbers[r] for member, r in roots.items()}
    found: list[Class] = []
    for number in numbers.values():
        members = [m for m in of if of[m] == number]
        extent = max(program.statements[s].domain[k] for s, k in members)
        first, k = members[0]
        name = program.statements[first].iterators[k]
        found.append(Class(number, frozenset(members), extent, name))
    return Classes(tuple(found), of)
