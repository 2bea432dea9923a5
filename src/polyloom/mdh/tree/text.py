"""Kernel trees as text to be read."""

from __future__ import annotations

from collections.abc import Iterator

from polyloom.ir.text.expressions import expression_text
from polyloom.ir.text.integers import integer_text
from polyloom.mdh.tree.nodes import (
    Array,
    Barrier,
    Code,
    Compute,
    Condition,
    For,
    Function,
    If,
    Kind,
    Let,
    LetInteger,
    Load,
    Mark,
    Statement,
    Store,
    Subscript,
    While,
)
from polyloom.polyhedra.loops.tree import Instance, IntExpression, Number


def function_text(function: Function) -> str:
    """Return a whole kernel."""
    arrays = (f"{p.type.value} {p.name}{_shape(p.shape)}" for p in function.parameters)
    head = f"{function.name}({', '.join([*arrays, *(f'integer {name}' for name in function.integers)])}):"
    views = (f"  {r.name}{_shape(r.shape)} is {r.parameter}" for r in function.reshaped)
    return "\n".join([head, *views, *(f"  {line}" for line in code_lines(function.body))]) + "\n"


def code_lines(code: Code) -> Iterator[str]:
    """Yield the lines of code."""
    for statement in code:
        yield from _lines(statement)


def _lines(statement: Statement) -> Iterator[str]:
    match statement:
        case For(body=body):
            yield f"{_head(statement)}:"
            yield from _inside(body)
        case If(condition=condition, body=body, otherwise=otherwise):
            yield f"if {_condition(condition)}:"
            yield from _inside(body)
            if otherwise:
                yield "else:"
                yield from _inside(otherwise)
        case While(condition=asked, body=body):
            yield f"while {compute_text(asked)}:"
            yield from _inside(body)
        case Let(name=name, value=value):
            yield f"{value.type.value} {name} = {compute_text(value)}"
        case LetInteger(name=name, value=value):
            yield f"integer {name} = {integer_text(value)}"
        case Array(name=name, type=kind, shape=shape, space=space, lanes=lanes, part=part):
            more = f", {part.value}" if part else ", lanes last" if lanes else ""
            yield f"{kind.value} {name}{_shape(shape)} in {space.value}{more}"
        case Store(array=array, subscripts=subscripts, value=value, instance=instance):
            done = f"    # {_instance(instance)}" if instance else ""
            yield f"{load_text(Load(array, subscripts))} = {compute_text(value)}{done}"
        case Barrier(everywhere=everywhere):
            yield "barrier everywhere" if everywhere else "barrier"
        case Mark(node=node):
            yield f"end of {node}"


def _inside(code: Code) -> Iterator[str]:
    return (f"  {line}" for line in code_lines(code))


def _head(loop: For) -> str:
    """Return ``parallel for i from 0 to n step 8``, or C's three parts where there is no end."""
    kind, name = loop.kind.value, loop.iterator
    kind = kind.replace(" for", " by work for") if loop.by_work else kind
    kind = kind.replace(" for", " nowait for") if loop.nowait else kind
    step = "" if loop.step == Number(1) else f" step {integer_text(loop.step)}"
    try:
        return f"{kind} {name} from {integer_text(loop.start)} to {integer_text(loop.end)}{step}"
    except ValueError:
        assert loop.kind is Kind.SEQUENTIAL
        return f"{kind} {name} from {integer_text(loop.start)} while {integer_text(loop.condition)}{step}"


def _shape(shape: tuple[IntExpression, ...]) -> str:
    return f"[{', '.join(integer_text(n) for n in shape)}]" if shape else ""


def _condition(condition: Condition) -> str:
    return compute_text(condition) if isinstance(condition, Compute) else integer_text(condition)


def _instance(instance: Instance) -> str:
    return f"{instance.statement}({', '.join(map(integer_text, instance.arguments))})"


def load_text(load: Load) -> str:
    """Return ``A[i, j + 1]``."""
    inside = ", ".join(map(_subscript, load.subscripts))
    return f"{load.array}[{inside}]" if load.subscripts else load.array


def _subscript(subscript: Subscript) -> str:
    return compute_text(subscript) if isinstance(subscript, Compute) else integer_text(subscript)


def compute_text(value: Compute) -> str:
    """Return a scalar function with its loads."""
    reads = [load_text(load) for load in value.loads]
    return expression_text(value.expression, reads, [integer_text(i) for i in value.iterators])
