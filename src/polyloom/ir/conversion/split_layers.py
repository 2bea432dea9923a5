"""A program taken apart: each layer that its source names as a program of its own.

y = ff(W, x); z = relu(y)      ff: W, x -> y      relu: y -> z
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from polyloom.ir.program import Part, Program

Readers = Mapping[str, AbstractSet[str]]


@dataclass(frozen=True)
class Layer:
    """``name``: as the source has it; ``program``: named so that it can be a name in C too."""

    name: str
    program: Program


def layers_of(program: Program) -> tuple[Layer, ...]:
    """Return the layers in order: the parts of the program; where it has none, its statements one by one.

    Inputs of a layer are the tensors that it reads and does not write; outputs those that it writes and that
    are read after it, or that the program is for, or that nothing reads. Statements of no part are layers of
    their own.
    """
    readers = readers_of(program)
    return tuple(layer_of(program, part, readers) for part in complete_parts(program))


def complete_parts(program: Program) -> Iterator[Part]:
    """Yield the parts, of statements that there are, and each other statement, by their first statements."""
    there = {s.name: k for k, s in enumerate(program.statements)}
    known = [Part(p.name, tuple(n for n in p.statements if n in there)) for p in program.parts]
    covered = {name for part in known for name in part.statements}
    others = [Part(name, (name,)) for name in there if name not in covered]
    parts = [part for part in (*known, *others) if part.statements]
    yield from sorted(parts, key=lambda part: there[part.statements[0]])


def readers_of(program: Program) -> Readers:
    """Return the statements that read a tensor, by its name."""
    readers: dict[str, set[str]] = {}
    for statement in program.statements:
        for access in statement.reads:
            readers.setdefault(access.buffer, set()).add(statement.name)
    return readers


def layer_of(program: Program, part: Part, readers: Readers) -> Layer:
    """Return some statements of a program as a layer of their own."""
    names = set(part.statements)
    inside = tuple(s for s in program.statements if s.name in names)
    written = {s.write.buffer for s in inside}
    read = {access.buffer for s in inside for access in s.reads}
    wanted = {t for t in written if t in program.outputs or t not in read or not names.issuperset(readers[t])}
    tensors = tuple(t for t in program.tensors if t.name in read | written)
    inputs = tuple(t.name for t in tensors if t.name not in written)
    outputs = tuple(t.name for t in tensors if t.name in wanted)
    name = re.sub(r"\W", "_", part.name, flags=re.ASCII)
    name = name if name[:1].isalpha() else f"layer_{name}"
    return Layer(part.name, Program.of(name, tensors, inputs, outputs, inside))
