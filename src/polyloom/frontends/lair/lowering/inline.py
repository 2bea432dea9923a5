"""The program of a called node or graph, in the caller's names.

y = ff<float16>(32, 16)(W, x)      ff[i, j]: y[i] += W[i][j] * x[j]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import count
from typing import Any

from polyloom.frontends.lair.syntax.tree import Invocation
from polyloom.ir.expressions import Expression, Read
from polyloom.ir.host import View
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement


@dataclass
class Names:
    """The names that a graph has given so far.

    ``tensors``: declared or assigned in the graph, or given to internal tensors of what it called;
    ``calls``: how often the graph calls each node; ``statements``: given to statements.
    """

    tensors: set[str]
    calls: Mapping[str, int]
    statements: set[str] = field(default_factory=set)


def renamed_program(call: Invocation, callee: Program, actual: Mapping[str, str], names: Names) -> Program:
    """Return the callee's program with the call's tensors, and unique names for the rest.

    A statement keeps its name; where the graph calls the node more than once, the call's (first)
    output stands for the node: ``y`` for ``ff``, ``y_h`` for ``ff_h``.
    """
    tensors = dict(actual)
    for internal in callee.internal:
        tensors[internal] = _unique((internal, f"{call.outputs[0].text}_{internal}"), names.tensors)
    return Program.of(
        callee.name,
        tuple(replace(t, name=tensors[t.name]) for t in callee.tensors),
        tuple(tensors[name] for name in callee.inputs),
        tuple(tensors[name] for name in callee.outputs),
        tuple(_statement(call, callee.name, s, tensors, names) for s in callee.statements),
    )


def _statement(
    call: Invocation, callee: str, statement: Statement, tensors: Mapping[str, str], names: Names
) -> Statement:
    by_output = _by_output(call.outputs[0].text, callee, statement.name)
    first = by_output if names.calls[callee] > 1 else statement.name
    reads = [_access(read, tensors) for read in statement.reads]
    merged = list(dict.fromkeys(reads))
    return statement.changed(
        name=_unique((first, by_output), names.statements),
        reads=tuple(merged),
        write=_access(statement.write, tensors),
        expression=_renumbered(statement.expression, [merged.index(read) for read in reads]),
    )


def _renumbered(expression: Expression, positions: Sequence[int]) -> Expression:
    """Number the reads anew: a tensor that is passed twice may be read once."""
    if isinstance(expression, Read):
        return replace(expression, position=positions[expression.position])
    parts = {f.name: getattr(expression, f.name) for f in fields(expression)}
    inner: dict[str, Any] = {
        name: _renumbered(p, positions) for name, p in parts.items() if isinstance(p, Expression)
    }
    return replace(expression, **inner)


def _by_output(output: str, callee: str, statement: str) -> str:
    return output + statement[len(callee) :] if _stands_for(callee, statement) else f"{output}_{statement}"


def _stands_for(callee: str, statement: str) -> bool:
    return statement == callee or statement.startswith(f"{callee}_")


def _access(access: View, tensors: Mapping[str, str]) -> View:
    return replace(access, buffer=tensors[access.buffer])


def _unique(preferred: tuple[str, ...], taken: set[str]) -> str:
    name = next(name for name in _candidates(preferred) if name not in taken)
    taken.add(name)
    return name


def _candidates(preferred: tuple[str, ...]) -> Iterator[str]:
    yield from preferred
    yield from (f"{preferred[-1]}_{k}" for k in count(2))
