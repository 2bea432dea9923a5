"""Statements that no output needs."""

from __future__ import annotations

from dataclasses import replace

from polyloom.ir.program import Program


def without_unused(program: Program) -> Program:
    """Return the program without the statements, internal tensors and inputs that no output depends on."""
    needed = {*program.outputs}
    body = []
    for statement in reversed(program.body):
        if statement.write.buffer in needed:
            body.append(statement)
            needed |= {access.buffer for access in statement.reads}
    return replace(
        program,
        buffers=tuple(t for t in program.buffers if t.name in needed),
        inputs=tuple(n for n in program.inputs if n in needed),
        body=tuple(reversed(body)),
    )
