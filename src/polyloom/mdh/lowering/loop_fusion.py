"""Host loops over tiny launches as one kernel.

``for t: S(i); R(i)``  becomes  one work-item that does  ``for t: { for i: S; for i: R }``.

A launch costs the host many microseconds, as long as a processor takes for thousands of points. Where a host
loop launches less than that, its nodes run one after another inside of one kernel, without any
parallelism. Sizes must be known; the loop is left alone where they are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import prod
from typing import Any

from polyloom.diagnostics import Unsupported
from polyloom.ir.expressions import Read
from polyloom.ir.host import Assignment, Buffer, Copy, HostNode, HostProgram, Index, MdHom, Nest, View
from polyloom.ir.node_names import with_unique_names
from polyloom.mdh.device.devices import DeviceKind, DeviceModel
from polyloom.mdh.lowering.host_expressions import Environment, int_function
from polyloom.mdh.lowering.sequential_nest import plain_nest
from polyloom.polyhedra.loops.tree import (
    Branch,
    Instance,
    IntExpression,
    Loop,
    Name,
    Tree,
    iterators_in,
    loops_over,
    replace_name,
    substitute,
    with_leaves,
)


@dataclass(frozen=True)
class _Costs:
    """Seconds: of a launch, of a point that one work-item computes, of a point in a parallel kernel."""

    launch: float
    serial: float
    parallel: float


_CPU = _Costs(launch=20e-6, serial=1.5e-9, parallel=0.3e-9)
_GPU = _Costs(launch=8e-6, serial=100e-9, parallel=0.01e-9)


def with_fused_loops(program: HostProgram, device: DeviceModel) -> HostProgram:
    """Return the program with each host loop as one node whose launches cost more than they gain.

    ``program`` has no parameters left.
    """
    fuser = _Fuser(program, _CPU if device.kind is DeviceKind.CPU else _GPU, count())
    return with_unique_names(replace(program, body=fuser.nodes(program.body, {})))


@dataclass(frozen=True)
class _Fuser:
    program: HostProgram
    costs: _Costs
    numbers: Iterator[int]

    def nodes(self, nodes: Sequence[HostNode], names: Environment) -> tuple[HostNode, ...]:
        return tuple(self._node(node, names) for node in nodes)

    def _node(self, node: HostNode, names: Environment) -> HostNode:
        match node:
            case Loop():
                work = _work(node, self.program, names)
                if work is None:
                    return node
                if self._gains(work):
                    return self._fused(node)
                middle = {**names, node.iterator: _iterations(node, names)[1]}
                return replace(node, body=self.nodes(node.body, middle))
            case Branch(body=body, otherwise=otherwise):
                return replace(node, body=self.nodes(body, names), otherwise=self.nodes(otherwise, names))
            case _:
                return node

    def _gains(self, work: _Work) -> bool:
        costs = self.costs
        apart = work.launches * costs.launch + work.points * costs.parallel
        return work.launches > 2 and work.points * costs.serial + costs.launch < apart

    def _fused(self, node: Loop[HostNode]) -> HostNode:
        """Return a loop as one nest; the loop itself where a node of it has no such form."""
        try:
            parts = _Parts(self.program, self.numbers)
            tree = parts.tree((node,), frozenset())
        except (Unsupported, _Clash):
            return node
        name = f"loop_{node.iterator}"
        return Nest(
            name=name,
            iterators=(),
            extents=(),
            body=tree,
            assignments=tuple(parts.assignments),
            private=tuple(parts.private),
        )


@dataclass(frozen=True)
class _Work:
    """How many launches a node makes, and how many points they have together."""

    launches: float
    points: float


def _work(node: HostNode, program: HostProgram, names: Environment) -> _Work | None:
    """Estimate the work of a node, of a loop by its first, middle and last iteration; None: unknown."""
    try:
        match node:
            case Loop():
                return _work_of_loop(node, program, names)
            case Branch(condition=condition, body=body, otherwise=otherwise):
                taken = body if int_function(condition)(names) else otherwise
                return _sum([_work(n, program, names) for n in taken])
            case Copy(source=source):
                return _Work(1, prod(_positive(e, names) for e in program.buffer(source).shape))
            case MdHom():
                return _Work(1, prod(_positive(e, names) for e in node.extents))
            case Nest():
                points = prod(_positive(e, names) for e in node.extents)
                inside = {**names, **dict.fromkeys(node.iterators, 0)}
                return _Work(1, points * _points_of(node.body, inside))
    except (KeyError, ZeroDivisionError):
        return None


def _work_of_loop(node: Loop[HostNode], program: HostProgram, names: Environment) -> _Work | None:
    trips, middle, last = _iterations(node, names)
    if trips == 0:
        return _Work(0, 0)
    samples = []
    for at in (int_function(node.start)(names), middle, last):
        found = _sum([_work(n, program, {**names, node.iterator: at}) for n in node.body])
        if found is None:
            return None
        samples.append(found)
    launches = sum(s.launches for s in samples) / len(samples)
    return _Work(trips * launches, trips * sum(s.points for s in samples) / len(samples))


def _sum(parts: Sequence[_Work | None]) -> _Work | None:
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None
    return _Work(sum(p.launches for p in found), sum(p.points for p in found))


def _positive(extent: IntExpression, names: Environment) -> int:
    return max(0, int_function(extent)(names))


_MOST_TRIPS = 1 << 40


def _iterations(loop: Loop[Any], names: Environment) -> tuple[int, int, int]:
    """Return how often a loop runs, and its iterator in the middle and at the end: by bisection."""
    start, step = int_function(loop.start)(names), int_function(loop.step)(names)
    condition, name = int_function(loop.condition), loop.iterator

    def runs(trip: int) -> bool:
        return bool(condition({**names, name: start + trip * step}))

    if not runs(0):
        return 0, start, start
    beyond = 1
    while beyond < _MOST_TRIPS and runs(beyond):
        beyond *= 2
    inside = beyond // 2
    while beyond - inside > 1:
        middle = (inside + beyond) // 2
        inside, beyond = (middle, beyond) if runs(middle) else (inside, middle)
    return beyond, start + beyond // 2 * step, start + (beyond - 1) * step


def _points_of(tree: Tree, names: Environment) -> float:
    """Estimate how many instances a tree visits; of a branch the larger side."""
    total = 0.0
    for node in tree:
        match node:
            case Loop():
                trips, middle, _ = _iterations(node, names)
                total += trips * _points_of(node.body, {**names, node.iterator: middle})
            case Branch(body=body, otherwise=otherwise):
                total += max(_points_of(body, names), _points_of(otherwise, names))
            case Instance():
                total += 1
    return total


class _Clash(Exception):  # a loop inside is called like a host iterator around it
    """Caught where it can be raised."""


class _Parts:
    """Collects assignments and private variables while host nodes become one tree."""

    def __init__(self, program: HostProgram, numbers: Iterator[int]) -> None:
        self.program, self.numbers = program, numbers
        self.assignments: list[Assignment] = []
        self.private: list[Buffer] = []

    def tree(self, nodes: Sequence[HostNode], around: frozenset[str]) -> Tree:
        return tuple(part for node in nodes for part in self._node(node, around))

    def _node(self, node: HostNode, around: frozenset[str]) -> Tree:
        match node:
            case Loop(iterator=iterator):
                if iterator in around:
                    raise _Clash(iterator)
                body = self.tree(node.body, around | {iterator})
                return (
                    Loop(
                        iterator=iterator,
                        start=node.start,
                        condition=node.condition,
                        step=node.step,
                        body=body,
                    ),
                )
            case Branch(condition=condition, body=body, otherwise=otherwise):
                return (Branch(condition, self.tree(body, around), self.tree(otherwise, around)),)
            case Copy():
                return self._copy(node)
            case MdHom():
                return self._nest(plain_nest(_with_own_iterators(node)), around)
            case Nest():
                return self._nest(node, around)

    def _copy(self, node: Copy) -> Tree:
        buffer = self.program.buffer(node.source)
        names = tuple(f"c{k}'" for k in range(len(buffer.shape)))
        rank = len(names)
        here = tuple(Index.unit(k, rank) for k in range(rank))
        name = f"copy {next(self.numbers)}"
        views = View(node.target, here), View(node.source, here)
        self.assignments.append(
            Assignment(
                name=name, iterators=names, target=views[0], reads=views[1:], value=Read(0, buffer.type)
            )
        )
        tree: Tree = (Instance(name, tuple(Name(n) for n in names)),)
        return loops_over(names, buffer.shape, tree)

    def _nest(self, node: Nest, around: frozenset[str]) -> Tree:
        """Return a nest's body inside of loops over its points, with names of its own."""
        number = next(self.numbers)
        private = {b.name: f"{b.name}'{number}" for b in node.private}
        self.private += [replace(b, name=private[b.name]) for b in node.private]
        for a in node.assignments:
            target, reads = _renamed(a.target, private), tuple(_renamed(r, private) for r in a.reads)
            self.assignments.append(replace(a, name=f"{a.name} {number}", target=target, reads=reads))
        body, names = _numbered(node.body, number), []
        for iterator in node.iterators:
            names.append(f"{iterator}'{number}")
            body = substitute(body, iterator, Name(names[-1]))
        if around & set(iterators_in(body)):
            raise _Clash(node.name)
        return loops_over(names, node.extents, body)


def _with_own_iterators(node: MdHom) -> MdHom:
    """Return an md_hom whose iterators are called like nothing else."""
    names = tuple(f"{iterator}''" for iterator in node.iterators)
    guard, written = node.guard, node.written
    for old, new in zip(node.iterators, names, strict=True):
        guard = None if guard is None else replace_name(guard, old, Name(new))
        written = None if written is None else replace_name(written, old, Name(new))
    return replace(node, iterators=names, guard=guard, written=written)


def _renamed(view: View, names: dict[str, str]) -> View:
    return replace(view, buffer=names.get(view.buffer, view.buffer))


def _numbered(tree: Tree, number: int) -> Tree:
    """Return a tree whose instances are of the assignments with that number."""
    return with_leaves(tree, lambda i: (replace(i, statement=f"{i.statement} {number}"),))
