"""Tensor programs: statements in order, each an ``md_hom``.

A LAIR statement and a multi-dimensional homomorphism are the same thing: a rectangular domain, affine
views of what is read and written, a scalar function, and one combine operator per dimension.
Source: dtg_codegen, Sec. 4.1.1; md_poly, Sec. 3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from textwrap import shorten

from polyloom.ir.host import Buffer
from polyloom.ir.statements import Statement


@dataclass(frozen=True)
class Part:
    """What the source calls one layer: ``statements``, by their names."""

    name: str
    statements: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """Statements in order over named tensors; every tensor is defined by at most one statement.

    ``inputs`` are defined by none; ``outputs`` are what the program is for; every other tensor is
    internal. What a tensor is to the caller is said by these names, not by the roles of the buffers; all
    extents and offsets are numbers, all views affine. ``parts``: the layers that the source names, in order;
    they change nothing of the meaning.
    """

    name: str
    tensors: tuple[Buffer, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    statements: tuple[Statement, ...]
    parts: tuple[Part, ...] = field(default=(), compare=False, repr=False)

    def __repr__(self) -> str:
        ends = f"{', '.join(self.inputs)} -> {', '.join(self.outputs)}"
        return f"<Program {self.name}: {shorten(ends, 120)}; {len(self.statements)} statements>"

    @cached_property
    def _by_name(self) -> dict[str, Buffer]:
        return {tensor.name: tensor for tensor in self.tensors}

    def tensor(self, name: str) -> Buffer:
        """Return the tensor called ``name``; KeyError where there is none."""
        return self._by_name[name]

    def definition(self, tensor: str) -> Statement | None:
        """Return the statement that writes ``tensor``; None for an input."""
        return next((s for s in self.statements if s.write.buffer == tensor), None)

    @property
    def internal(self) -> tuple[str, ...]:
        """Names of the tensors that are neither inputs nor outputs, in order of definition."""
        outside = {*self.inputs, *self.outputs}
        return tuple(t.name for t in self.tensors if t.name not in outside)
