"""Control flow: loops whose course is known at import are unrolled, branches taken or chosen between."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyloom.frontends.graph.core import (
    Anything,
    Context,
    Refused,
    Table,
    Value,
    axis,
    check_steps,
    either,
    known_condition,
    refuse_if,
    selected,
    stacked,
    tensors_of,
)


def _if(c: Context) -> Sequence[Anything]:
    """If: the branch that a known condition chooses; else both, and each result by a choice."""
    condition = known_condition(c.b, c.input())
    if condition is not None:
        return c.subgraph(c.graph("then_branch" if condition else "else_branch"), {})
    branches = (c.lowered(c.graph(name), {}) for name in ("then_branch", "else_branch"))
    return either(c.b, c.input(), *branches)


def _loop(c: Context) -> Sequence[Anything]:
    """Loop: unrolled, where the number of passes and the conditions are known."""
    body = c.graph("body")
    limited = None if c.optional(0) is None else c.whole(0, "its number of passes")
    goes = c.optional(1) is None or bool(c.one(1, "its condition"))
    state = c.some(range(2, len(c.values)))
    names = [t.name for t in body.inputs]
    refuse_if(
        len(names) != 2 + len(state) or len(body.outputs) < 1 + len(state),
        f"a body of {len(names)} inputs and {len(body.outputs)} outputs",
    )
    collected: list[list[Value]] = [[] for _ in body.outputs[1 + len(state) :]]
    step = 0
    while goes and (limited is None or step < limited):
        check_steps(step + 1)
        number = c.b.constant(np.asarray(step, np.int64))
        again = c.b.constant(np.asarray(True))
        results = c.subgraph(body, dict(zip(names, [number, again, *state], strict=True)))
        goes = _goes_on(c, results[0])
        state = results[1 : 1 + len(state)]
        for parts, value in zip(collected, tensors_of(results[1 + len(state) :]), strict=True):
            parts.append(value)
        step += 1
    return [*state, *(_collected(c, parts, 0) for parts in collected)]


def _goes_on(c: Context, value: Anything) -> bool:
    found = known_condition(c.b, *tensors_of([value]))
    if found is None:
        raise Refused("its condition is computed when the model runs")
    return found


def _collected(c: Context, parts: Sequence[Value], at: int) -> Value:
    refuse_if(not parts, "a loop without a pass, whose results are collected")
    return stacked(c.b, parts, at)


def _scan(c: Context) -> Sequence[Value]:
    """Scan: unrolled; every sequence has a known length."""
    refuse_if(c.version < 9, "Scan of opset 8")
    body, count = c.graph("body"), c.integer("num_scan_inputs")
    names = [t.name for t in body.inputs]
    held = len(c.values) - count
    refuse_if(
        held < 0 or len(names) != len(c.values) or len(body.outputs) < held,
        f"a body of {len(names)} inputs for {len(c.values)}",
    )
    state, sequences = c.inputs[:held], c.inputs[held:]
    directions = c.numbers("scan_input_directions", (0,) * count)
    along = [
        axis(a, s.rank) for a, s in zip(c.numbers("scan_input_axes", (0,) * count), sequences, strict=True)
    ]
    lengths = {s.shape[a] for s, a in zip(sequences, along, strict=True)}
    refuse_if(len(lengths) != 1, f"sequences of lengths {sorted(lengths)}")
    length = lengths.pop()
    check_steps(length)
    collected: list[list[Value]] = [[] for _ in body.outputs[held:]]
    for step in range(length):
        places = [length - 1 - step if d else step for d in directions]
        slices = [selected(s, a, p) for s, a, p in zip(sequences, along, places, strict=True)]
        results = c.lowered(body, dict(zip(names, [*state, *slices], strict=True)))
        state = results[:held]
        for parts, value in zip(collected, results[held:], strict=True):
            parts.append(value)
    return [*state, *_scanned(c, collected)]


def _scanned(c: Context, collected: Sequence[list[Value]]) -> list[Value]:
    count = len(collected)
    back = c.numbers("scan_output_directions", (0,) * count)
    axes = c.numbers("scan_output_axes", (0,) * count)
    found = []
    for parts, reverse, at in zip(collected, back, axes, strict=True):
        refuse_if(not parts, "a sequence without elements")
        ordered = parts[::-1] if reverse else parts
        found.append(_collected(c, ordered, axis(at, parts[0].rank + 1)))
    return found


OPERATIONS: Table = {"If": _if, "Loop": _loop, "Scan": _scan}
