"""The code of moves: elements from memory or a neighbour to memory or neighbours.

Phase after phase, in each in lexicographic order.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.loops.generate import IntExpression
from polyloom.wafer.codegen.passing import Passed, pass_instructions
from polyloom.wafer.dataflow.transfers import MEMORY, Move, MoveKind, Step
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.pe_program.addresses import element_at, in_order, scalar_cost
from polyloom.wafer.pe_program.loops import DATA, InstanceCode, tree_code
from polyloom.wafer.pe_program.tree import (
    Code,
    Compute,
    Element,
    Node,
    Received,
    Scope,
    Send,
    SetValue,
    StoreElement,
    Value,
    Variable,
)
from polyloom.wafer.roles.builder import RoleBuilder
from polyloom.wafer.roles.work import kinds_on

_DIM = isl.dim_type


def move_queues(builder: RoleBuilder, move: Move) -> tuple[list[str], list[str]]:
    """Return the names of a move's input and output queues on a role."""
    kinds = kinds_on(builder.role, move)
    origins = dict.fromkeys(k.origin for k in kinds if k.origin != MEMORY)
    targets = dict.fromkeys(t for k in kinds for t in k.targets if t != MEMORY)
    incoming = [move.queue(step, incoming=True) for step in origins]
    return incoming, [move.queue(step, incoming=False) for step in targets]


def move_code(builder: RoleBuilder, move: Move) -> Code:
    """Return the body of the task that does a move's work on the PEs of a role."""
    kinds = kinds_on(builder.role, move)
    code: list[Node] = []
    for phase in sorted({kind.phase for kind in kinds}):
        code += _phase_code(builder, move, [kind for kind in kinds if kind.phase == phase])
    return tuple(code)


def _phase_code(builder: RoleBuilder, move: Move, kinds: Sequence[MoveKind]) -> Code:
    array = builder.array(move.tensor)
    parts = [_passed(builder, move, kind, f"{move.name}_{move.kinds.index(kind)}") for kind in kinds]
    code = pass_instructions(builder, parts, move.type, array, _hops(move))
    return code or _element_by_element(builder, move, kinds)


def _hops(move: Move) -> int:
    """Return how far elements go at most, in PEs."""
    if move.phases > 1:
        return move.phases - 1
    ends = [integer_bounds(kind.pes)[0 if move.high is Side.EAST else 1] for kind in move.kinds]
    return max(high for _, high in ends) - min(low for low, _ in ends)


def _passed(builder: RoleBuilder, move: Move, kind: MoveKind, name: str) -> Passed:
    """What an instruction may pass on: elements by their indices, ``index[0]`` for a tensor of rank 0."""
    items = kind.here().intersect_params(builder.role.context)
    rank = items.dim(_DIM.set)
    dims = ", ".join(f"i{k}" for k in range(rank))
    by_index = isl.Map(f"{{ {move.tensor}[{dims}] -> index[{dims or '0'}] }}")
    involved = MEMORY in (kind.origin, *kind.targets)
    local = by_index.reverse().apply_range(isl.Map.from_multi_aff(builder.array(move.tensor).map))
    return Passed(
        name=name,
        items=items.apply(by_index),
        origin=None if kind.origin == MEMORY else move.queue(kind.origin, incoming=True),
        targets=tuple(move.queue(target, incoming=False) for target in kind.targets if target != MEMORY),
        kept=MEMORY in kind.targets,
        local=local if involved else None,
    )


def _element_by_element(builder: RoleBuilder, move: Move, kinds: Sequence[MoveKind]) -> Code:
    make: dict[str, InstanceCode] = {}
    schedule: isl.UnionMap | None = None
    for number, kind in enumerate(kinds):
        name = f"pass_{number}"
        visited = in_order(kind.here().intersect_params(builder.role.context), name)
        schedule = visited if schedule is None else schedule.union(visited)
        make[name] = _maker(builder, move, kind)
    return () if schedule is None else tree_code(builder.code().loops(schedule), make)


def _maker(builder: RoleBuilder, move: Move, kind: MoveKind) -> InstanceCode:
    array, code = builder.array(move.tensor), builder.code()

    def make(arguments: Sequence[IntExpression]) -> Code:
        local = element_at(array, array.map, arguments, code)
        source: Value = local
        if kind.origin != MEMORY:
            source = Received(move.queue(kind.origin, incoming=True), move.type)
        value = Compute.of(source, move.type)
        cost = scalar_cost(value, [local] if MEMORY in kind.targets else [])
        if len(kind.targets) == 1:
            return (cost, _give(move, kind.targets[0], value, local))
        held = Compute.of(Variable(DATA), move.type)
        gives = (_give(move, target, held, local) for target in kind.targets)
        return (cost, Scope((SetValue(DATA, move.type, value), *gives)))

    return make


def _give(move: Move, target: Step, value: Compute, local: Element) -> Node:
    if target == MEMORY:
        return StoreElement(local, value)
    return Send(move.queue(target, incoming=False), value, move.type)
