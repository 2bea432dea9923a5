"""Integer expressions and loops as text to be read: ``2 * i - 1``, ``floor((n - 1) / 4)``, ``i < n``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from polyloom.polyhedra.loops.tree import (
    Branch,
    IntExpression,
    Loop,
    Name,
    Number,
    Operation,
    Tree,
)

_CHOICE, _OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _ATOM = range(9)
_LEVELS = {
    "or": _OR,
    "and": _AND,
    "<": _COMPARISON,
    "<=": _COMPARISON,
    ">": _COMPARISON,
    ">=": _COMPARISON,
    "==": _COMPARISON,
    "!=": _COMPARISON,
    "+": _SUM,
    "-": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
    "%": _PRODUCT,
}


def integer_text(expression: IntExpression) -> str:
    """Return an integer expression or condition."""
    return _text(expression, _CHOICE)


def _text(expression: IntExpression, room: int) -> str:
    level, text = _written(expression)
    return text if level >= room else f"({text})"


def _written(expression: IntExpression) -> tuple[int, str]:
    match expression:
        case Number(value=value):
            return (_SIGN if value < 0 else _ATOM), str(value)
        case Name(name=name):
            return _ATOM, name
        case Operation(operator="floor", operands=(a, b)):
            return _ATOM, f"floor({_text(a, _PRODUCT)} / {_text(b, _SIGN)})"
        case Operation(operator="min" | "max" as function, operands=operands):
            return _ATOM, f"{function}({', '.join(map(integer_text, operands))})"
        case Operation(operator="?", operands=(c, a, b)):
            return _CHOICE, f"{_text(c, _OR)} ? {_text(a, _OR)} : {_text(b, _CHOICE)}"
        case Operation(operator="not", operands=(a,)):
            return _NOT, f"not {_text(a, _NOT)}"
        case Operation(operator="-", operands=(a,)):
            return _SIGN, f"-{_text(a, _SIGN)}"
        case Operation(operator=operator, operands=(first, *rest)):
            level = _LEVELS[operator]
            parts = [_text(first, level + (level == _COMPARISON)), *(_text(o, level + 1) for o in rest)]
            return level, f" {operator} ".join(parts)
        case _:
            raise TypeError(expression)


def loop_text(loop: Loop[Any]) -> str:
    """Return ``for t = 0; t < n; t += 2``."""
    change = f"{loop.iterator} += {integer_text(loop.step)}"
    return f"for {loop.iterator} = {integer_text(loop.start)}; {integer_text(loop.condition)}; {change}"


def tree_lines(tree: Tree) -> Iterator[str]:
    """Yield the lines of loops, branches and instances."""
    return loop_lines(tree, lambda i: [f"{i.statement}({', '.join(map(integer_text, i.arguments))})"])


def loop_lines(body: Iterable[Any], lines_of: Callable[[Any], Iterable[str]]) -> Iterator[str]:
    """Yield the lines of loops and branches; ``lines_of``: those of what stands in them."""
    for node in body:
        match node:
            case Loop(body=inner):
                yield loop_text(node)
                yield from (f"  {line}" for line in loop_lines(inner, lines_of))
            case Branch(condition=condition, body=inner, otherwise=otherwise):
                yield f"if {integer_text(condition)}"
                yield from (f"  {line}" for line in loop_lines(inner, lines_of))
                if otherwise:
                    yield "else"
                    yield from (f"  {line}" for line in loop_lines(otherwise, lines_of))
            case _:
                yield from lines_of(node)
