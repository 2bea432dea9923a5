"""Which inputs stream and which lie in PE memory, where the map does not say.

Of the inputs of a statement the activations stream, the parameters stay: (1) an input alone streams;
(2) beside an internal tensor, which is the activation, inputs stay; (3) one that is read through a window
(``x[w + r]``) streams, the others stay; (4) of several ranks, the inputs below the largest rank stream;
(5) inputs with the same access (elementwise) all stream; (6) else the one with the output's outermost
iterator streams. Where statements disagree, the majority decides, and (1) counts only where nothing else
does; in a tie the input stays. Inputs of rank 0, and those that ``state`` replaces, stay. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.ir.host import View
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement
from polyloom.wafer.placement.classes import plain_iterator


def streamed_inputs(program: Program, states: Sequence[str], named: Sequence[str]) -> tuple[str, ...]:
    """Return the inputs that stream. ``named``: those that the map calls sparse, or names as triggers."""
    votes: dict[str, list[bool]] = {name: [] for name in program.inputs}
    alone: set[str] = set()
    for statement in program.statements:
        found = _votes(program, statement)
        if len(statement.reads) == 1:
            alone |= found.keys()
        else:
            for name, moves in found.items():
                votes[name].append(moves)
    chosen = {name for name, said in votes.items() if (_majority(said) if said else name in alone)}
    chosen |= set(named)
    fixed = {t.name for t in program.tensors if not t.extents} | set(states)
    return tuple(n for n in program.inputs if n in chosen and (n not in fixed or n in named))


def _majority(found: Sequence[bool]) -> bool:
    return sum(found) * 2 > len(found)


def _votes(program: Program, statement: Statement) -> dict[str, bool]:
    inputs = [a for a in statement.reads if a.buffer in program.inputs and a.affine]
    names = dict.fromkeys(a.buffer for a in inputs)
    internal = any(a.buffer not in program.inputs for a in statement.reads)
    if internal:
        return dict.fromkeys(names, False)
    if len(names) <= 1:
        return dict.fromkeys(names, True)
    windows = {a.buffer for a in inputs if _is_window(a)}
    if windows:
        return {name: name in windows for name in names}
    ranks = {name: len(program.buffer(name).extents) for name in names}
    if len(set(ranks.values())) > 1:
        return {name: rank < max(ranks.values()) for name, rank in ranks.items()}
    if len({a.affine for a in inputs}) == 1 or all(rank == 1 for rank in ranks.values()):
        return dict.fromkeys(names, True)
    leading = _with_outermost(statement, inputs)
    return {name: name == leading for name in names}


def _is_window(access: View) -> bool:
    return any(sum(c != 0 for c in index.coefficients) > 1 for index in access.affine)


def _with_outermost(statement: Statement, inputs: Sequence[View]) -> str:
    written = [k for index in statement.write.affine if (k := plain_iterator(index)) is not None]
    for k in written:
        for access in inputs:
            if any(index.coefficients[k] for index in access.affine):
                return access.buffer
    return inputs[0].buffer
