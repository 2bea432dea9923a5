"""Tensor programs: statements in order, each an ``md_hom``.

A LAIR statement and a multi-dimensional homomorphism are the same thing: a rectangular domain, affine
views of what is read and written, a scalar function, and one combine operator per dimension.
Source: dtg_codegen, Sec. 4.1.1; md_poly, Sec. 3.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from textwrap import shorten

from polyloom.ir.host import Buffer, HostProgram, Role
from polyloom.ir.reductions import neutral
from polyloom.ir.statements import Statement


@dataclass(frozen=True)
class Part:
    """What the source calls one layer: ``statements``, by their names."""

    name: str
    statements: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class Program(HostProgram):
    """A host program of statements only; every buffer is written by at most one, which defines it.

    ``inputs`` are defined by none; ``outputs`` are what the program is for; every other tensor is
    internal. A buffer starts from what its statement's reduction starts from. There are no parameters: all
    extents and offsets are numbers, all views affine. ``parts``: the layers that the source names, in order;
    they change nothing of the meaning.
    """

    body: tuple[Statement, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parts: tuple[Part, ...] = field(default=(), compare=False)

    @classmethod
    def of(
        cls,
        name: str,
        tensors: tuple[Buffer, ...],
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        statements: tuple[Statement, ...],
        parts: tuple[Part, ...] = (),
    ) -> Program:
        """Return the program with roles and first values of its tensors as inputs and statements say."""
        roles = {**dict.fromkeys(outputs, Role.OUTPUT), **dict.fromkeys(inputs, Role.INPUT)}
        reductions = {s.write.buffer: s.reduction for s in statements}
        starts = {t.name: neutral(reductions[t.name], t.type) for t in tensors if t.name in reductions}
        buffers = (replace(t, role=roles.get(t.name, Role.LOCAL), start=starts.get(t.name)) for t in tensors)
        return cls(
            name=name,
            parameters=(),
            buffers=tuple(buffers),
            body=statements,
            inputs=inputs,
            outputs=outputs,
            parts=parts,
        )

    def __repr__(self) -> str:
        ends = f"{', '.join(self.inputs)} -> {', '.join(self.outputs)}"
        return f"<Program {self.name}: {shorten(ends, 120)}; {len(self.body)} statements>"

    @property
    def tensors(self) -> tuple[Buffer, ...]:
        """The buffers."""
        return self.buffers

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The body."""
        return self.body

    @property
    def given(self) -> tuple[Buffer, ...]:
        """The inputs, in the order in which the source names them."""
        return tuple(map(self.buffer, self.inputs))

    @property
    def results(self) -> tuple[str, ...]:
        """Names of all tensors that statements write, internal ones too, in order of definition."""
        return tuple(s.write.buffer for s in self.body)

    def definition(self, tensor: str) -> Statement | None:
        """Return the statement that writes ``tensor``; None for an input."""
        return next((s for s in self.statements if s.write.buffer == tensor), None)

    @property
    def internal(self) -> tuple[str, ...]:
        """Names of the tensors that are neither inputs nor outputs, in order of definition."""
        return tuple(t.name for t in self.buffers if t.role is Role.LOCAL)
