"""Array contraction: indices of expanded arrays that a plan does not need are removed.

A loop that became a host loop runs its iterations one after another: no element for each is needed. Where one
node runs all statements that use the array, the array is private to the node's points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import islpy as isl

from polyloom.ir.host import Buffer, Role
from polyloom.ir.naming import Names
from polyloom.scop.model import ScopAccess, ScopStatement
from polyloom.scop.schedule.expansion import Axis, Expansion
from polyloom.scop.schedule.plan import (
    Block,
    Hyperplane,
    Plan,
    Row,
    Sequential,
    row_of,
    statements_of,
    walk_plans,
)

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class Storage:
    """Where an expanded array is kept: with the ``axes`` that remain, under ``name``.

    ``private``: each point of the node that uses the array has its own.
    """

    expansion: Expansion
    name: str
    axes: tuple[Axis, ...]
    private: bool


def contracted(
    plans: Sequence[Plan], expansions: Sequence[Expansion], names: Names
) -> tuple[tuple[Plan, ...], tuple[Storage, ...]]:
    """Return the plans without copies that are not needed, and how each array is stored.

    ``names``: gives private arrays theirs.
    """
    storages = []
    result = tuple(plans)
    for expansion in expansions:
        result, storage = _contract(result, expansion, names)
        storages.append(storage)
    return result, tuple(storages)


def _contract(
    plans: tuple[Plan, ...], expansion: Expansion, names: Names
) -> tuple[tuple[Plan, ...], Storage]:
    copies = {name for name, _ in expansion.copies}
    found = (s for p in plans for s in statements_of(p) if s.uses(expansion.name))
    users = [s for s in found if s.name not in copies]
    times, container = _container(plans, {s.name for s in users})
    original = expansion.array.name
    if isinstance(container, Block) and container.parallel:
        moved = _with_copies_inside(plans, container, expansion)
        name = names.of((expansion.name,), f"{expansion.name}_here")
        return moved, Storage(expansion, name, (), private=True)
    if not copies and _each_has_its_own(plans, users, expansion.name):
        name = names.of((expansion.name,), f"{expansion.name}_here")
        return plans, Storage(expansion, name, (), private=True)
    left = tuple(axis for axis in expansion.axes if not any(_is_axis(t, axis, users) for t in times))
    if isinstance(container, Block):
        left = ()
    if not left and expansion.alone:
        return _without(plans, copies), Storage(expansion, original, (), private=False)
    return plans, Storage(expansion, expansion.name, left, private=False)


def _container(plans: Sequence[Plan], users: set[str]) -> tuple[list[Hyperplane], Plan | None]:
    """Return the host loops around all users, and the node that runs them all, if one does."""
    for plan in plans:
        inside = {s.name for s in statements_of(plan)}
        if users <= inside:
            if isinstance(plan, Sequential):
                times, container = _container(plan.body, users)
                return [plan.time, *times], container
            return [], plan
    return [], None


def _each_has_its_own(plans: Sequence[Plan], users: Sequence[ScopStatement], array: str) -> bool:
    """Whether parallel nodes run all users, and each alone sets the elements that it reads."""
    nodes = [
        [s for s in node.statements if s.uses(array)]
        for node in walk_plans(plans)
        if isinstance(node, Block) and node.parallel and any(s.uses(array) for s in node.statements)
    ]
    if len(nodes) < 2 or sum(map(len, nodes)) < len(users):
        return False
    before: list[isl.Set] = []
    for node in nodes:
        sets = [_elements(s, s.target) for s in node if s.target.array == array]
        if not sets:
            return False
        written = reduce(isl.Set.union, sets)
        reads = (_elements(s, r) for s in node for r in s.reads if r.array == array)
        if any(not r.is_subset(written) for r in reads) or any(not written.is_disjoint(b) for b in before):
            return False
        before.append(written)
    return True


def _elements(statement: ScopStatement, access: ScopAccess) -> isl.Set:
    return access.relation.intersect_domain(statement.domain).range()


def _is_axis(time: Hyperplane, axis: Axis, users: Sequence[ScopStatement]) -> bool:
    """Whether a host loop runs through the iterations of the axis, for all users."""
    if not all({s.name, *s.origins} & time.keys() for s in users):
        return False
    rows = [row_of(time, s) for s in users]
    return all(row[axis.dimension] == axis.step and _is_unit(row) for row in rows)


def _is_unit(row: Row) -> bool:
    return sum(map(abs, row)) == 1


def _without(plans: Sequence[Plan], names: set[str]) -> tuple[Plan, ...]:
    """Return the plans without statements of the given names."""
    return tuple(
        plan for plan in plans if not (statements_of(plan) and {s.name for s in statements_of(plan)} <= names)
    )


def _with_copies_inside(plans: tuple[Plan, ...], container: Block, expansion: Expansion) -> tuple[Plan, ...]:
    """Let the node that owns a private array store the last values itself."""
    copies = {name for name, _ in expansion.copies}
    found = [s for p in plans for s in statements_of(p) if s.name in copies]
    planes = tuple(
        {**plane, **{name: plane[writer] for name, writer in expansion.copies}}
        for plane in container.parallel
    )
    larger = Block((*container.statements, *found), planes)
    return _replaced(_without(plans, copies), container, larger)


def _replaced(plans: Sequence[Plan], old: Plan, new: Plan) -> tuple[Plan, ...]:
    return tuple(
        new
        if plan is old
        else replace(plan, body=_replaced(plan.body, old, new))
        if isinstance(plan, Sequential)
        else plan
        for plan in plans
    )


def rewriting(storages: Sequence[Storage]) -> Callable[[ScopStatement], ScopStatement]:
    """Return the function that puts the arrays as they are stored into a statement."""

    def rewrite(statement: ScopStatement) -> ScopStatement:
        for storage in storages:
            statement = _stored(statement, storage)
        return statement

    return rewrite


def _stored(statement: ScopStatement, storage: Storage) -> ScopStatement:
    """Let the statement's accesses to the expanded array have the axes that are left."""
    expansion = storage.expansion
    gone = [k for k, axis in enumerate(expansion.axes) if axis not in storage.axes]

    def moved(access: ScopAccess) -> ScopAccess:
        if access.array != expansion.name:
            return access
        relation = access.relation
        for k in reversed(gone):
            relation = relation.project_out(_DIM.out, k, 1)
        return replace(access, array=storage.name, relation=relation.set_tuple_name(_DIM.out, storage.name))

    return replace(
        statement, target=moved(statement.target), reads=tuple(moved(read) for read in statement.reads)
    )


def private_buffers(storages: Sequence[Storage], shapes: Mapping[str, Buffer]) -> dict[str, Buffer]:
    """Return the buffers of which each point of a node has its own, by name."""
    return {
        s.name: replace(shapes[s.expansion.array.name], name=s.name, role=Role.LOCAL)
        for s in storages
        if s.private
    }
