"""Loops over lanes in CUDA C that load and store neighbours at once: up to 16 bytes by one instruction.

    for (int lane = 0; lane < 4; lane++) {           const lanes<float, 4> B_0 = lanes_at<4>(&B[4 * j]);
        total[lane] += a * B[4 * j + lane];    ->    for (int lane = 0; lane < 4; lane++) {
    }                                                    total[lane] += a * B_0.lane[lane];
                                                     }

A GPU moves so only what lies at a multiple of its size: arrays do, and the place in one is proved to be such
a multiple. Statements of a vector loop are for all lanes at once, so a load may stand before the loop where
nothing before it in the loop stores in its array, and stores behind it where nothing after them loads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from polyloom.mdh.print.c_scope import Scope, Variable, at_zero, coefficient, row_by_row
from polyloom.mdh.tree.nodes import Compute, For, Let, Load, Statement, Store, Subscript
from polyloom.mdh.tree.ranges import multiple
from polyloom.mdh.tree.rewrite import loads_of, with_loads
from polyloom.polyhedra.loops.tree import Name, Number

LANES = """\
template <typename T, int n> struct __align__(sizeof(T) * n < 16 ? sizeof(T) * n : 16) lanes {
    T lane[n];
};
template <int n, typename T> static __device__ inline lanes<T, n> &lanes_at(T *place)
{
    return *(lanes<T, n> *)place;
}
template <int n, typename T> static __device__ inline const lanes<T, n> &lanes_at(const T *place)
{
    return *(const lanes<T, n> *)place;
}

"""
"""Neighbours in memory, as one value."""


@dataclass(frozen=True)
class Moved:
    """A loop over lanes, with what is loaded ``before`` it and stored ``after`` it."""

    before: tuple[str, ...]
    loop: For
    after: tuple[str, ...]
    scope: Scope


def moved_at_once(loop: For, width: int, scope: Scope) -> Moved | None:
    """Return a vector loop whose neighbours move at once; None where none do."""
    if not all(isinstance(s, Store | Let) for s in loop.body):
        return None
    moving = _Moving(loop.iterator, width, scope)
    body = tuple(moving.statement(k, loop.body) for k in range(len(loop.body)))
    if not moving.before:
        return None
    scope.needs.definitions[LANES] = None
    loop = replace(loop, body=body)
    return Moved(tuple(moving.before), loop, tuple(moving.after), moving.scope)


@dataclass
class _Moving:
    """Rewrites the statements of a loop over ``lane``."""

    lane: str
    width: int
    scope: Scope
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    known: dict[Load, Load] = field(default_factory=dict)

    def statement(self, at: int, body: tuple[Statement, ...]) -> Statement:
        """Return a statement that works on values of lanes where it can."""
        stored = {s.array for s in body[:at] if isinstance(s, Store)}
        statement = body[at]
        match statement:
            case Let(name=name, value=value):
                return Let(name, self._loaded(value, stored))
            case Store(array=array, subscripts=subscripts, value=value):
                value = self._loaded(value, stored)
                if not self._is_last(array, at, body) or not self._moves(array, subscripts):
                    return replace(statement, value=value)
                place, name = self._place(array, subscripts), self._name(array)
                held = self.scope.variables[name]
                self.before.append(f"{self._type(held)} {name};")
                self.after.append(f"lanes_at<{self.width}>(&{place}) = {name};")
                return replace(statement, array=name, subscripts=(Name(self.lane),), value=value)
            case _:
                raise AssertionError("no statement of a vector loop")

    def _loaded(self, value: Compute, stored: set[str]) -> Compute:
        return with_loads(value, lambda load: load if load.array in stored else self._load(load))

    def _load(self, load: Load) -> Load:
        if load not in self.known:
            if load.array not in self.scope.variables or not self._moves(load.array, load.subscripts):
                return load
            place, name = self._place(load.array, load.subscripts), self._name(load.array)
            held = self.scope.variables[name]
            self.before.append(f"const {self._type(held)} {name} = lanes_at<{self.width}>(&{place});")
            self.known[load] = Load(name, (Name(self.lane),))
        return self.known[load]

    def _is_last(self, array: str, at: int, body: tuple[Statement, ...]) -> bool:
        """Whether nothing behind a store loads what may be in its array, and its stores all move."""
        loaded = {load.array for s in body[at + 1 :] for load in loads_of(s)}
        stores = [s for s in body if isinstance(s, Store) and s.array == array]
        return array not in loaded and all(self._moves(array, s.subscripts) for s in stores)

    def _moves(self, array: str, subscripts: tuple[Subscript, ...]) -> bool:
        """Whether the elements of all lanes are neighbours, the first at a multiple of their size."""
        variable = self.scope.variables[array]
        if variable.held or variable.lanes or not subscripts:
            return False
        place = row_by_row(subscripts, variable)
        if place is None or coefficient(place, self.lane) != Number(1):
            return False
        wide = min(self.width, WIDEST // _bytes(variable))
        return wide > 1 and multiple(at_zero(place, self.lane), self.scope.multiples) % wide == 0

    def _place(self, array: str, subscripts: tuple[Subscript, ...]) -> str:
        first = tuple(s if isinstance(s, Compute) else at_zero(s, self.lane) for s in subscripts)
        return self.scope.place(array, first)

    def _name(self, array: str) -> str:
        """Declare lanes of an array, and return what they are called in the tree and in C."""
        variable, number = self.scope.variables[array], 0
        while (name := f"{variable.text}_lanes{number or ''}") in _taken(self.scope):
            number += 1
        held = Variable(f"{name}.lane", variable.type, (Number(self.width),), packed=variable.packed)
        self.scope = self.scope.with_variable(name, held)
        return name

    def _type(self, variable: Variable) -> str:
        return f"lanes<{variable.element(self.scope.dialect)}, {self.width}>"


WIDEST = 16
"""Bytes that one instruction moves."""


def _taken(scope: Scope) -> Iterator[str]:
    yield from scope.names.values()
    yield from scope.variables


def _bytes(variable: Variable) -> int:
    return variable.type.size
