"""Addresses in loops: what a loop does not change of them, any compiler computes in front of it.

Only what they are counted to cost depends on this; the C that is emitted is compiled by a compiler of C.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from polyloom.csl import types
from polyloom.csl.lowering import tree
from polyloom.csl.lowering.emitted import costs

_PURE = frozenset(("+", "-", "*", "&", "|", "^", "<<", ">>"))
"""Operators that cannot fail."""


def with_fixed_addresses(loop: tree.While) -> tuple[tree.While, costs.Count]:
    """Return a loop whose addresses say what of them is fixed, and what that costs in front of the loop.

    Loops inside it are left as they are.
    """
    moving = frozenset(_changed((loop.body, loop.step)))
    found: dict[tuple[tree.Expression, tree.Expression], costs.Count] = {}

    def marked(item: Any) -> Any:
        if isinstance(item, tree.Offset) and isinstance(item.base, tree.Address):
            fixed = _fixed_part(item.index, moving)
            if fixed is not None:
                found[item.base, fixed] = costs.of_index(fixed) + costs.Count(operations=1)
                return replace(item, fixed=fixed)
        if isinstance(item, tuple):
            return tuple(marked(part) for part in item)
        if not is_dataclass(item) or isinstance(item, tree.While | types.Type):
            return item
        changes = {f.name: marked(getattr(item, f.name)) for f in fields(item) if f.name in _HOLDS}
        return replace(item, **changes)  # type: ignore[type-var]

    body = marked(loop.body)
    return replace(loop, body=body), sum(found.values(), costs.Count())


_IN_STATEMENTS = ("body", "cases", "condition", "otherwise", "step", "target", "then", "value")
_IN_EXPRESSIONS = (
    "address",
    "arguments",
    "base",
    "fields",
    "index",
    "items",
    "left",
    "operand",
    "right",
    "source",
)
_HOLDS = frozenset((*_IN_STATEMENTS, *_IN_EXPRESSIONS))
"""Fields of the tree in which expressions and statements stand."""


def _fixed_part(index: tree.Expression, moving: frozenset[str]) -> tree.Expression | None:
    if _is_fixed(index, moving):
        return None if isinstance(index, tree.Constant) else index
    if isinstance(index, tree.Binary) and index.operator in ("+", "-"):
        for part in (index.left, index.right):
            if _is_fixed(part, moving) and not isinstance(part, tree.Constant):
                return part
    return None


def _is_fixed(expression: tree.Expression, moving: frozenset[str]) -> bool:
    match expression:
        case tree.Constant():
            return True
        case tree.Local(name=name):
            return name not in moving
        case tree.Binary(operator=operator, left=left, right=right):
            return operator in _PURE and _is_fixed(left, moving) and _is_fixed(right, moving)
        case tree.Unary(operand=operand) | tree.Convert(operand=operand) | tree.Bits(operand=operand):
            return _is_fixed(operand, moving)
    return False


def _changed(item: object) -> Iterator[str]:
    """Yield the local variables that statements declare or assign."""
    match item:
        case tree.Declare(name=name):
            yield name
        case tree.Assign(target=tree.Local(name=name)) | tree.AssignField(target=tree.Local(name=name)):
            yield name
    if isinstance(item, tuple):
        for part in item:
            yield from _changed(part)
    elif is_dataclass(item) and not isinstance(item, types.Type):
        for each in fields(item):
            if each.name in _HOLDS:
                yield from _changed(getattr(item, each.name))
