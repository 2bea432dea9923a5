"""The proof that a kernel tree is what was asked for: elements exist, nothing is lost, done twice, or a race.

    y[i0 + l] = ...    with l from 0 to 9 in a tile of 8, where y has 64 elements
    `y[i0 + l]` is accessed where it does not exist, at y[64]

Every question to isl has its limit, so an answer may be that it is not known. What data
chooses (``hist[bin[i]]``) is never known.

Source: loopy's ``check_implemented_domains`` (idea). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from polyloom.mdh.tree.accesses import OPERATIONS, Found, accesses
from polyloom.mdh.tree.matrix.steps import wrong_steps
from polyloom.mdh.tree.nodes import For, Function, Kind
from polyloom.mdh.tree.races import races, uneven_barriers
from polyloom.mdh.tree.rewrite import walk
from polyloom.mdh.tree.team_barriers import team_races
from polyloom.mdh.tree.totals.partials import partials
from polyloom.mdh.tree.undefined import undefined
from polyloom.polyhedra.effort import TooHardError, at_most
from polyloom.polyhedra.loops.accesses import (
    Instances,
    NotKnown,
    carried_out,
    instances_of,
    only_in,
    question,
    repeated,
)
from polyloom.polyhedra.loops.scope import Scope
from polyloom.polyhedra.loops.tree import Number, Tree

WHOLE = 40_000_000
"""What isl may spend on a whole tree: ten seconds."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class Asked:
    """The instances that a program has, as loops over them; those of ``most`` may be carried out, too.

    ``least`` are those whose results are stored. ``written``: the elements of parameters that are stored to,
    for those parameters of which this is known, as instances that are called as these. ``terms``: statements
    whose values are all of use. ``whole``: so is everything in arrays that all groups share.
    """

    least: Tree
    most: Tree
    written: Tree = ()
    terms: frozenset[str] = frozenset()
    whole: bool = False


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a tree, and what could not be found out about it, each a sentence."""

    wrong: tuple[str, ...]
    unknown: tuple[str, ...]


def verify(function: Function, asked: Asked | None = None, effort: int = WHOLE) -> Verdict:
    """Return what is wrong with a tree. ``asked``: the instances that its stores must carry out.

    ``effort``: operations of isl on all of it.
    """
    found = Found()
    try:
        with at_most(effort, "whether the tree is right"):
            _verified(function, asked, found)
    except TooHardError as fault:
        found.unknown[str(fault)] = None
    return Verdict(tuple(found.wrong), tuple(found.unknown))


def _verified(function: Function, asked: Asked | None, found: Found) -> None:
    scope = Scope.of_names(function.integers)
    try:
        with question("what is known of the parameters", OPERATIONS):
            scope = scope if function.context is None else scope.where(function.context)
    except NotKnown as fault:
        found.unknown[str(fault)] = None
    accesses(function, scope, found)
    races(found)
    team_races(found, function.body)
    whole = asked is not None and asked.whole
    partials(found, whole=whole)
    undefined(found, asked.terms if asked else (), shared=whole)
    found.wrong.update(dict.fromkeys(uneven_barriers(function.body)))
    found.wrong.update(dict.fromkeys(_wrong_loops(function)))
    found.wrong.update(dict.fromkeys(wrong_steps(function.body)))
    if asked is not None:
        _Instances(found, scope, asked).check()


def problems(function: Function, asked: Asked | None = None) -> tuple[str, ...]:
    """Return what is wrong with a tree, each a sentence; what is not known is not among it."""
    return verify(function, asked).wrong


def _wrong_loops(function: Function) -> list[str]:
    return [
        f"the {loop.kind.value} over `{loop.iterator}` {fault}"
        for loop in walk(function.body)
        if isinstance(loop, For) and (fault := _wrong_loop(loop)) is not None
    ]


def _wrong_loop(loop: For) -> str | None:
    """Return in what a loop is not what its kind has to be."""
    if loop.kind is Kind.SEQUENTIAL:
        return None
    try:
        end = loop.end
    except ValueError:
        return "has another condition than an end"
    if not isinstance(loop.step, Number) or loop.step.value < 1:
        return "has a step that is no positive number"
    fixed = loop.kind in (Kind.VECTOR, Kind.ITEM, Kind.MATRIX)
    if fixed and not (loop.start == Number(0) and loop.step == Number(1) and isinstance(end, Number)):
        return "is not from 0 to a number, step 1"
    if loop.kind is Kind.VECTOR and any(isinstance(s, For) for s in walk(loop.body)):
        return "has a loop inside"
    return None


@dataclass(frozen=True)
class _Instances:
    """The instances that were asked for, beside those that are carried out."""

    found: Found
    scope: Scope
    asked: Asked

    def check(self) -> None:
        least = self._visited(self.asked.least)
        most = self._visited(self.asked.most)
        if least is None or most is None:
            return
        for name in sorted((most.keys() | self.found.instances.keys()) - self.found.vague):
            self._statement(name, least.get(name), most.get(name))
        for name, elements in (self._visited(self.asked.written) or {}).items():
            self._elements(name, elements)

    def _elements(self, name: str, asked: Instances) -> None:
        """Compare what is stored to a parameter with what is to be stored."""
        stores = [a for a in self.found.accesses if a.is_store and a.declared.array.name == name]
        stored = self._known(f"what is stored to `{name}`", lambda: carried_out([a.elements for a in stores]))
        text = f"whether all of `{name}` is stored"
        self._say(text, lambda: only_in(asked, stored, "[]"), "is not stored")
        if stored is not None and all(a.sure for a in stores):
            text, what = f"whether only `{name}` is stored", "is stored, and was not asked for"
            self._say(text, lambda: only_in(stored, asked, "[]"), what)

    def _visited(self, tree: Tree) -> Mapping[str, Instances] | None:
        return self._known("which instances there are", lambda: instances_of(tree, self.scope))

    def _known(self, text: str, ask: Callable[[], _T]) -> _T | None:
        try:
            with question(text, OPERATIONS):
                return ask()
        except NotKnown:
            self.found.unknown[text] = None
            return None

    def _statement(self, name: str, least: Instances | None, most: Instances | None) -> None:
        done = self.found.instances.get(name, [])
        whole = self._known(f"which `{name}` are carried out", lambda: carried_out(done))
        self._say(f"whether `{name}` is done twice", lambda: repeated(done), "is carried out twice")
        if least is not None:
            self._say(f"whether `{name}` is whole", lambda: only_in(least, whole), "is not carried out")
        if whole is not None:
            text, what = f"whether all of `{name}` was asked for", "is carried out, and was not asked for"
            self._say(text, lambda: only_in(whole, most), what)

    def _say(self, text: str, ask: Callable[[], str | None], what: str) -> None:
        point = self._known(text, ask)
        if point is not None:
            self.found.wrong[f"{point} {what}"] = None
