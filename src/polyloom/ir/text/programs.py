"""A program as text to be read: its tensors, then each statement with its domain and combine operators."""

from __future__ import annotations

from polyloom.ir.program import Program
from polyloom.ir.statements import Statement, combine_operators
from polyloom.ir.text.expressions import affine_text, assignment_text
from polyloom.ir.text.host_programs import buffer_text


def print_program(program: Program) -> str:
    """Return the program as lines of text.

    program ff
      input  float16 W[32][16]
      input  float16 x[16]
      output float16 y[32]

    ff[i, j] : 0 <= i < 32, 0 <= j < 16
      y[i] += W[i][j] * x[j]
      combine (++, +)
    """
    kinds = {**dict.fromkeys(program.inputs, "input"), **dict.fromkeys(program.outputs, "output")}
    width = max((len(kinds.get(t.name, "internal")) for t in program.tensors), default=0)
    lines = [f"program {program.name}"]
    lines += [f"  {kinds.get(t.name, 'internal'):{width}} {buffer_text(t)}" for t in program.tensors]
    return "\n".join([*lines, *(line for s in program.statements for line in ["", *_statement(s)])]) + "\n"


def _statement(statement: Statement) -> list[str]:
    ranges = zip(statement.iterators, statement.domain, strict=True)
    bounds = ", ".join(f"0 <= {name} < {n}" for name, n in ranges)
    lines = [f"{statement.name}[{', '.join(statement.iterators)}]" + (f" : {bounds}" if bounds else "")]
    lines += [f"  where {affine_text(g, statement.iterators)} >= 0" for g in statement.conditions]
    lines += [f"  {assignment_text(statement)}"]
    if statement.domain:
        lines += [f"  combine ({', '.join(c.value for c in combine_operators(statement))})"]
    return lines
