"""Layers that no sample reaches: the host computes them before, and they take no PEs.

    n_new = n + 1                the host gives it, though no PE has its type
    V = W * W; y = V . x         the host computes V, which lies in the PEs' memory as W would
    r_new = r * 0.9; y = r * x   with r_new as the next r: the host sends r for each sample

A layer that only moves elements of a weight is left in the network: whoever reads it takes them in another
order. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.programs import evaluate
from polyloom.ir.program import Part, Program
from polyloom.ir.statements import Statement

AnyArray = npt.NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class Before:
    """What the host computes. ``state``: inputs of it, each with the result that is its value for the next
    sample; ``varying``: these inputs and what hangs on them, which each sample has anew.
    """

    program: Program
    state: tuple[tuple[str, str], ...]
    varying: frozenset[str]


def divided(
    program: Program,
    parts: Sequence[Part],
    samples: Collection[str] | None,
    moved: AbstractSet[str],
    state: Mapping[str, str],
) -> tuple[Program, Before | None]:
    """Return what samples reach, and what the host computes before, None where that is nothing.

    ``samples``: the inputs that each one has anew, states among them; None: any may be. ``moved``: tensors
    that only have the elements of another one, in another order. ``state``: inputs, each with the output that
    is its value for the next sample. A program of which no layer is reached is returned as it is.
    """
    by_name = {s.name: s for s in program.statements}
    layers = [tuple(by_name[name] for name in part.statements) for part in parts]
    alone = _alone(layers, program.inputs if samples is None else samples, state)
    reached = {*(program.inputs if samples is None else samples)} - alone.keys()
    constant = {s.name for layer in _constant(program, layers, reached, moved, alone) for s in layer}
    own = tuple(s for s in program.statements if s.name in constant)
    others = tuple(s for s in program.statements if s.name not in constant)
    if not own or not others:
        return program, None
    before = _computed_before(program, own, alone)
    varying = _reached_from(alone.keys(), [[s] for s in before.statements])
    return _reached(program, own, others), Before(before, tuple(alone.items()), frozenset(varying))


def computed_before(
    before: Before | None, inputs: Mapping[str, AnyArray], samples: int
) -> dict[str, AnyArray]:
    """Return all that the host computes, by name: what varies has a leading axis of samples.

    ``inputs``: those of the whole program.
    """
    if before is None:
        return {}
    given = {name: inputs[name] for name in before.program.inputs}
    runs: list[dict[str, AnyArray]] = []
    for _ in range(samples if before.state else 1):
        found = evaluate(before.program, given)
        runs.append({**given, **found})
        given |= {old: found[new] for old, new in before.state}
    first = runs[0]
    return {n: np.stack([run[n] for run in runs]) if n in before.varying else first[n] for n in first}


def results_before(before: Before | None, known: Mapping[str, AnyArray], samples: int) -> dict[str, AnyArray]:
    """Return the results that the host has computed, for each sample; states as they are after the last."""
    if before is None:
        return {}
    news = {new for _, new in before.state}
    each = {
        name: known[name] if name in before.varying else np.repeat(known[name][np.newaxis], samples, axis=0)
        for name in before.program.outputs
    }
    return {name: array[-1, ...] if name in news else array for name, array in each.items()}


def _alone(
    layers: Sequence[Sequence[Statement]], samples: Collection[str], state: Mapping[str, str]
) -> dict[str, str]:
    """Return the states whose next values hang on states like them only."""
    written = {s.write.buffer for layer in layers for s in layer}
    alone = {old: new for old, new in state.items() if new in written}
    while True:
        reached = _reached_from({*samples} - alone.keys(), layers)
        kept = {old: new for old, new in alone.items() if new not in reached}
        if kept == alone:
            return alone
        alone = kept


def _reached_from(names: AbstractSet[str], layers: Iterable[Sequence[Statement]]) -> set[str]:
    """Return the names, and all that layers in their order compute of them."""
    reached = set(names)
    for layer in layers:
        if _read(layer) & reached:
            reached |= _written(layer)
    return reached


def _constant(
    program: Program,
    layers: Sequence[Sequence[Statement]],
    reached: AbstractSet[str],
    moved: AbstractSet[str],
    varying: Collection[str],
) -> Iterator[Sequence[Statement]]:
    """Yield the layers that the host computes. ``varying``: states that it computes."""
    found = _reached_from(reached, layers)
    as_given = set(program.inputs).difference(varying)
    for layer in layers:
        written, read = _written(layer), _read(layer)
        if read & found:
            continue
        if written <= moved and read <= as_given and not written & {*program.outputs}:
            as_given |= written
        else:
            yield layer


def _reached(program: Program, own: Sequence[Statement], others: tuple[Statement, ...]) -> Program:
    read, known = _read(others), _written(own)
    given = tuple(t.name for t in program.tensors if t.name in read & known)
    inputs = tuple(n for n in program.inputs if n in read or n in program.outputs)
    outputs = tuple(n for n in program.outputs if n not in known)
    return _program(program, program.name, (*inputs, *given), outputs, others)


def _computed_before(program: Program, own: Sequence[Statement], state: Collection[str]) -> Program:
    """Return what the host computes, with the moves that it reads."""
    needed, names = _read(own) | {*state}, {s.name for s in own}
    found: list[Statement] = []
    for statement in reversed(program.statements):
        if statement.name in names or statement.write.buffer in needed:
            found.insert(0, statement)
            needed |= _read([statement])
    inputs = tuple(n for n in program.inputs if n in needed)
    outputs = tuple(n for n in program.outputs if n in _written(own))
    return _program(program, f"{program.name}_before", inputs, outputs, tuple(found))


def _program(
    program: Program,
    name: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    statements: tuple[Statement, ...],
) -> Program:
    used = {*inputs, *outputs} | _read(statements) | _written(statements)
    tensors = tuple(t for t in program.tensors if t.name in used)
    return replace(Program.of(name, tensors, inputs, outputs, statements), parts=program.parts)


def _read(statements: Iterable[Statement]) -> set[str]:
    return {view.buffer for s in statements for view in s.reads}


def _written(statements: Iterable[Statement]) -> set[str]:
    return {s.write.buffer for s in statements}
