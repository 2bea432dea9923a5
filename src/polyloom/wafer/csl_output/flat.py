"""Subscripts as places in flat arrays, of which what a loop or a task does not change is computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from math import prod
from typing import Any, TypeVar, cast

from polyloom.ir.expressions import Expression
from polyloom.ir.naming import fresh
from polyloom.polyhedra.loops.generate import IntExpression, Name, Number, names_in, operation_count, sum_of
from polyloom.polyhedra.loops.tree import linear_terms
from polyloom.wafer.pe_program.tree import (
    ArrayDeclaration,
    Code,
    CountDown,
    CountUp,
    Element,
    For,
    If,
    IfNextInvocation,
    Node,
    RoleCode,
    Scope,
    SetInteger,
    SetValue,
    nodes_in,
)

_T = TypeVar("_T")


def padding(array: ArrayDeclaration) -> int:
    """Return how many elements lie before an array, aligned to 8 bytes, that starts in another bank."""
    return 2 * (array.bank or 0) // array.type.size


def flattened(code: RoleCode) -> RoleCode:
    """Return the same program over arrays of one dimension, with ``padding`` at their beginning.

    In front of a loop stands, as a constant, the part of each place inside that the loop does not change;
    at the beginning of a task the value of each counter that it reads often. A descriptor of ``words``
    keeps its word.
    """
    return _Flattening(code).program()


def array_of(element: Element) -> str:
    """Return the flat array that an element of a descriptor lies in: itself, or its 16-bit words."""
    return element.array if element.word is None else f"{element.array}_words.*"


def place(element: Element, arrays: Mapping[str, ArrayDeclaration]) -> IntExpression:
    """Return the place of an element in its array, or of a word of it among all words."""
    found: IntExpression = Number(0)
    array = arrays[element.array]
    for subscript, extent in zip(element.subscripts, array.extents, strict=True):
        found = sum_of([(extent, found), (1, subscript)])
    if element.word is None:
        return found
    return sum_of([(array.type.size // 2, found), (1, Number(element.word))])


@dataclass
class _Flattening:
    code: RoleCode
    taken: set[str] = field(default_factory=set)

    def program(self) -> RoleCode:
        self.taken = set(_texts(self.code))
        flat = _with_elements(self.code, self._flat)
        tasks = tuple(replace(t, body=self._task(t.body), end=self._task(t.end)) for t in flat.data_tasks)
        return replace(
            flat,
            arrays=tuple(replace(a, extents=(padding(a) + prod(a.extents),)) for a in flat.arrays),
            data_tasks=tasks,
            local_tasks=tuple(replace(t, body=self._task(t.body)) for t in flat.local_tasks),
        )

    def _flat(self, element: Element) -> Element:
        array = next(a for a in self.code.arrays if a.name == element.array)
        at = place(replace(element, word=None), {array.name: array})
        return replace(element, subscripts=(sum_of([(1, at), (1, Number(padding(array)))]),))

    def _fresh(self, name: str) -> str:
        found = fresh(name, self.taken)
        self.taken.add(found)
        return found

    def _task(self, body: Code) -> Code:
        """Return a task that reads each counter once."""
        changed = {name for node in nodes_in(body) for name in _set_by(node)}
        repeated = {n for node in nodes_in(body) if isinstance(node, For) for n in _names(node)}
        read = list(_names(body))
        again: dict[str, str] = {}
        for counter in self.code.counters:
            if counter not in changed and (read.count(counter) > 1 or counter in repeated):
                again[counter] = self._fresh(f"{counter}_here")
        first = tuple(SetInteger(new, Name(old), declare=True) for old, new in again.items())
        return (*first, *self._lifted(_renamed(body, again)))

    def _lifted(self, code: Code) -> Code:
        """Return code in which each loop has in front of it what it does not change."""
        result: list[Node] = []
        for node in code:
            if isinstance(node, For):
                result += self._loop(node)
            elif isinstance(node, If):
                result.append(
                    replace(node, body=self._lifted(node.body), otherwise=self._lifted(node.otherwise))
                )
            elif isinstance(node, Scope | CountUp | CountDown | IfNextInvocation):
                result.append(replace(node, body=self._lifted(node.body)))
            else:
                result.append(node)
        return tuple(result)

    def _loop(self, loop: For) -> Iterator[Node]:
        moving = {loop.iterator, *(name for node in nodes_in(loop.body) for name in _set_by(node))}
        lifted: dict[IntExpression, SetInteger] = {}

        def change(element: Element) -> Element:
            (at,) = element.subscripts
            parts, number = linear_terms([(1, at)])
            varying = [part for part in parts if names_in(part[1]) & moving]
            still = sum_of([part for part in parts if part not in varying])
            if not operation_count(still):
                return element
            if still not in lifted:
                lifted[still] = SetInteger(self._fresh(f"{element.array}_at"), still, declare=True)
            known = Name(lifted[still].variable)
            return replace(element, subscripts=(sum_of([(1, known), *varying, (1, Number(number))]),))

        body = _with_elements(loop.body, change)
        yield from lifted.values()
        yield replace(loop, body=self._lifted(body))


def _set_by(node: Node) -> Iterator[str]:
    match node:
        case For(iterator=name) | SetInteger(variable=name) | SetValue(variable=name):
            yield name
        case CountUp(counter=name) | CountDown(counter=name):
            yield name


def _with_elements(item: _T, change: Callable[[Element], Element]) -> _T:
    """Return part of a program with each element of an array changed."""
    if isinstance(item, Element):
        return cast(_T, change(item))
    return _rebuilt(item, lambda part: _with_elements(part, change))


def _renamed(item: _T, names: Mapping[str, str]) -> _T:
    """Return part of a program that reads other variables."""
    if isinstance(item, Name):
        return cast(_T, Name(names.get(item.name, item.name)))
    return _rebuilt(item, lambda part: _renamed(part, names))


def _rebuilt(item: _T, change: Callable[[Any], Any]) -> _T:
    if isinstance(item, tuple):
        return cast(_T, tuple(change(part) for part in item))
    if not is_dataclass(item) or isinstance(item, Expression):
        return item
    parts = {f.name: change(getattr(item, f.name)) for f in fields(item)}
    if all(parts[name] is getattr(item, name) for name in parts):
        return item
    return cast(_T, replace(cast(Any, item), **parts))


def _names(item: object) -> Iterator[str]:
    """Yield the variables that part of a program reads, as often as it does."""
    if isinstance(item, Name):
        yield item.name
    for part in _parts(item):
        yield from _names(part)


def _texts(item: object) -> Iterator[str]:
    """Yield all names of a program, and other texts in it."""
    if isinstance(item, str):
        yield item
    for part in _parts(item):
        yield from _texts(part)


def _parts(item: object) -> Iterator[object]:
    if isinstance(item, tuple):
        yield from item
    elif is_dataclass(item) and not isinstance(item, Expression):
        yield from (getattr(item, f.name) for f in fields(item))
