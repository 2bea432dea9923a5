"""Layers that no sample reaches: the host computes them before, and they take no PEs.

    n_new = n + 1                the host gives it, though no PE has its type
    V = W * W; y = V . x         the host computes V, which lies in the PEs' memory as W would

A layer that only moves elements of a weight is left in the network: whoever reads it takes them in another
order. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.programs import evaluate
from polyloom.ir.program import Part, Program
from polyloom.ir.statements import Statement

AnyArray = npt.NDArray[np.generic]


def divided(
    program: Program, parts: Sequence[Part], samples: Collection[str] | None, moved: AbstractSet[str]
) -> tuple[Program, Program | None]:
    """Return what samples reach, and what the host computes before, None where that is nothing.

    ``samples``: the inputs that each one has anew; None: any may be. ``moved``: tensors that only have the
    elements of another one, in another order. A program of which no layer is reached is returned as it is.
    """
    constant = set(_constant(program, parts, samples, moved))
    own = tuple(s for s in program.statements if s.name in constant)
    others = tuple(s for s in program.statements if s.name not in constant)
    if not own or not others:
        return program, None
    return _reached(program, own, others), _computed_before(program, own)


def computed_before(before: Program | None, inputs: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return all that the host computes, by name. ``inputs``: those of the whole program."""
    return {} if before is None else evaluate(before, {name: inputs[name] for name in before.inputs})


def _constant(
    program: Program, parts: Sequence[Part], samples: Collection[str] | None, moved: AbstractSet[str]
) -> Iterator[str]:
    """Yield the statements of the layers that the host computes."""
    by_name = {s.name: s for s in program.statements}
    reached = set(program.inputs if samples is None else samples)
    as_given = set(program.inputs)
    for part in parts:
        inside = [by_name[name] for name in part.statements]
        written, read = _written(inside), _read(inside)
        if read & reached:
            reached |= written
        elif written <= moved and read <= as_given and not written & {*program.outputs}:
            as_given |= written
        else:
            yield from part.statements


def _reached(program: Program, own: Sequence[Statement], others: tuple[Statement, ...]) -> Program:
    read, known = _read(others), _written(own)
    given = tuple(t.name for t in program.tensors if t.name in read & known)
    inputs = tuple(n for n in program.inputs if n in read or n in program.outputs)
    outputs = tuple(n for n in program.outputs if n not in known)
    return _program(program, program.name, (*inputs, *given), outputs, others)


def _computed_before(program: Program, own: Sequence[Statement]) -> Program:
    """Return what the host computes, with the moves that it reads."""
    needed, names = _read(own), {s.name for s in own}
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
