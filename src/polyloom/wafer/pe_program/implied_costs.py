"""What code costs beyond its own statements of it: counters that it reads, operands that it selects.

A task loads each counter once, at its beginning, and keeps it; one of several operands is selected by a
branch, once for all that is done with it in a row. CSL code does the same (``csl_output``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace

from polyloom.polyhedra.loops.generate import Name
from polyloom.wafer.pe_program.tree import (
    Code,
    Cost,
    CountDown,
    CountUp,
    For,
    If,
    IfNextInvocation,
    Node,
    OperandRef,
    Scope,
)


def with_implied_costs(code: Code, counters: Sequence[str]) -> Code:
    """State what a task's code costs in loads of counters and in branches on operands.

    What counts up in any case states its own load, and has the counter at hand for what follows.
    """
    counted = {node.counter for node in code if isinstance(node, CountUp)}
    used = (set(_names(code)) & set(counters)) - counted
    return (*([Cost(loads=len(used))] if used else []), *_selecting(code))


def _selecting(code: Code) -> Code:
    result: list[Node] = []
    selected: str | None = None
    for node in code:
        if isinstance(node, Cost):
            result.append(node)
            continue
        selector = _selector(node)
        if selector is not None and selector != selected:
            result.append(Cost(branches=1))
        selected = selector
        result.append(_inside(node))
    return tuple(result)


def _inside(node: Node) -> Node:
    if isinstance(node, If):
        return replace(node, body=_selecting(node.body), otherwise=_selecting(node.otherwise))
    if isinstance(node, For | Scope | CountDown | CountUp | IfNextInvocation):
        return replace(node, body=_selecting(node.body))
    return node


def _selector(node: Node) -> str | None:
    """Return the variable that selects the operands of a node; a number selects without one."""
    for held in vars(node).values():
        for part in held if isinstance(held, tuple) else (held,):
            if isinstance(part, OperandRef) and part.selector and not part.selector.isdigit():
                return part.selector
    return None


def _names(part: object) -> Iterator[str]:
    """Yield the integer variables in some code."""
    if isinstance(part, Name):
        yield part.name
    elif isinstance(part, tuple):
        for item in part:
            yield from _names(item)
    elif is_dataclass(part):
        for item in fields(part):
            yield from _names(getattr(part, item.name))
