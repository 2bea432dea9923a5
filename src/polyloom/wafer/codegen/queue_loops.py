"""Loops that take single elements from a queue: one instruction takes them all, or passes them all on.

``for (i = 0; i < 8; i++) send(out, receive(half, in));`` becomes an instruction of 8 elements.
``for (i = 0; i < 8; i++) store(y[i], f(receive(half, in)));`` becomes one that takes 8 elements into memory,
and the loop, which loads them there. Each element that scalar code receives is an instruction of its own, and
so is each that it sends. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from polyloom.ir.expressions import Read
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.loops.generate import IntExpression, Name, Number, Operation, sum_of
from polyloom.polyhedra.loops.tree import names_in
from polyloom.wafer.machine.instructions import move_instruction
from polyloom.wafer.pe_program.addresses import address_operations
from polyloom.wafer.pe_program.tree import (
    Code,
    Compute,
    Cost,
    Discard,
    Element,
    For,
    If,
    Invoke,
    Node,
    Received,
    Scope,
    Send,
    SendEnd,
    nodes_in,
)
from polyloom.wafer.roles.builder import RoleBuilder

_FEWEST = 3
"""Elements of a loop from which on taking them into memory, and loading them there, takes fewer cycles."""

_MOST_BYTES = 2048
"""Memory that a loop's elements may take on a PE."""

Range = tuple[int, int]


def queues_by_instructions(builder: RoleBuilder, code: Code) -> Code:
    """Return a task's code in which instructions take or pass on what loops did element by element."""
    if not builder.simd:
        return code
    (columns, rows) = integer_bounds(builder.role.pes)
    return _code(builder, code, {"PE_X": columns, "PE_Y": rows})


def _code(builder: RoleBuilder, code: Code, ranges: Mapping[str, Range]) -> Code:
    return tuple(made for node in code for made in _node(builder, node, ranges))


def _node(builder: RoleBuilder, node: Node, ranges: Mapping[str, Range]) -> Code:
    match node:
        case Send() if (received := _passed_on(node)) is not None:
            return (_pass(builder, node, received, Number(1)),)
        case For():
            return _loop(builder, node, ranges)
        case If(body=body, otherwise=otherwise):
            inside = (_code(builder, part, ranges) for part in (body, otherwise))
            return (If(node.condition, *inside),)
        case Scope(body=body):
            return (Scope(_code(builder, body, ranges)),)
        case _:
            return (node,)


def _loop(builder: RoleBuilder, loop: For, ranges: Mapping[str, Range]) -> Code:
    trips = _trips(loop)
    known = None if trips is None or not names_in(trips) <= {"PE_X", "PE_Y"} else _range(trips, ranges)
    if trips is not None and known is not None and known[0] >= 1:
        match [node for node in loop.body if not isinstance(node, Cost)]:
            case [Send() as send] if (received := _passed_on(send)) is not None:
                return (_pass(builder, send, received, trips),)
        taken = _taken(loop)
        if taken is not None and known[0] >= _FEWEST and known[1] * taken.type.size <= _MOST_BYTES:
            return _from_memory(builder, loop, taken, trips, known[1])
    return (replace(loop, body=_code(builder, loop.body, ranges)),)


# Elements that go on as they come.


def _passed_on(node: Send) -> Received | None:
    """Return what a node receives and sends on as it is."""
    match node.value:
        case Compute(expression=Read(), values=((_, Received() as received),)) if node.index is None:
            return received
    return None


def _pass(builder: RoleBuilder, node: Send, received: Received, count: IntExpression) -> Invoke:
    label = f"{received.queue}_{node.type.value}_to_{node.queue}"
    target = builder.shared_fabric_operand(f"{label}_out", node.queue, count, output=True)
    source = builder.shared_fabric_operand(f"{label}_in", received.queue, count, output=False)
    return Invoke(move_instruction(node.type).name, target, (source,))


# Elements that are worked on one by one.


def _taken(loop: For) -> Received | None:
    """Return the one element that each iteration receives, of a loop that waits for nothing else."""
    inside = list(nodes_in(loop.body))
    if any(isinstance(node, SendEnd) or (isinstance(node, Send) and node.index is None) for node in inside):
        return None
    found = [value for node in inside for value in _received_in(node)]
    always = [value for node in _always(loop.body) for value in _received_in(node)]
    return always[0] if len(found) == 1 and len(always) == 1 else None


def _always(code: Code) -> list[Node]:
    """Return the nodes that run in each iteration, once."""
    return [n for node in code for n in (_always(node.body) if isinstance(node, Scope) else [node])]


def _received_in(node: Node) -> list[Received]:
    computed = (value for value in vars(node).values() if isinstance(value, Compute))
    return [value for compute in computed for _, value in compute.values if isinstance(value, Received)]


def _from_memory(builder: RoleBuilder, loop: For, taken: Received, trips: IntExpression, most: int) -> Code:
    """Return the instruction that takes all elements into memory, and the loop over them."""
    array = builder.queue_memory(taken.queue, taken.type, most)
    source = builder.shared_fabric_operand(f"{array}_in", taken.queue, trips, output=False)
    target = builder.shared_memory_operand(f"{array}_kept", array, trips)
    position = sum_of([(1, Name(loop.iterator)), (-1, loop.start)])
    element = Element(array, (position,))
    move = Invoke(move_instruction(taken.type).name, target, (source,))
    if all(isinstance(node, Cost | Discard) for node in loop.body):
        return (move,)
    return (move, replace(loop, body=_loading(loop.body, taken, element)))


def _loading(code: Code, taken: Received, element: Element) -> Code:
    """Return code that loads an element in place of receiving it."""
    result: list[Node] = []
    for node in code:
        if isinstance(node, Scope):
            result.append(Scope(_loading(node.body, taken, element)))
        elif _received_in(node):
            result += [Cost(operations=address_operations(element), loads=1), _instead(node, taken, element)]
        else:
            result.append(node)
    return tuple(result)


def _instead(node: Node, taken: Received, element: Element) -> Node:
    changed: dict[str, Any] = {
        name: replace(value, values=tuple((k, element if v == taken else v) for k, v in value.values))
        for name, value in vars(node).items()
        if isinstance(value, Compute)
    }
    return replace(node, **changed)


# How often loops run.


def _trips(loop: For) -> IntExpression | None:
    """Return how often a loop runs that counts by one, where that is at least once."""
    match loop.condition, loop.step:
        case Operation(operator=("<=" | "<") as sign, operands=(Name(name=name), last)), Number(value=1):
            if name == loop.iterator:
                return sum_of([(1, last), (-1, loop.start), (int(sign == "<="), Number(1))])
    return None


def _range(expression: IntExpression, ranges: Mapping[str, Range]) -> Range | None:
    """Return bounds of an expression; None where its operators are not known here."""
    match expression:
        case Number(value=value):
            return value, value
        case Name(name=name):
            return ranges.get(name)
        case Operation(operator=operator, operands=operands):
            parts = [_range(operand, ranges) for operand in operands]
            known = [part for part in parts if part is not None]
            return _combined(operator, known) if len(known) == len(parts) else None


def _combined(operator: str, parts: list[Range]) -> Range | None:
    lows, highs = [low for low, _ in parts], [high for _, high in parts]
    match operator:
        case "+":
            return sum(lows), sum(highs)
        case "-" if len(parts) == 1:
            return -highs[0], -lows[0]
        case "-":
            return lows[0] - sum(highs[1:]), highs[0] - sum(lows[1:])
        case "*" if len(parts) == 2:
            ends = [a * b for a in parts[0] for b in parts[1]]
            return min(ends), max(ends)
        case "min" | "max":
            choose = min if operator == "min" else max
            return choose(lows), choose(highs)
    return None
