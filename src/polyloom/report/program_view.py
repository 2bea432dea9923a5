"""A program as text and as a JSON document: ``show``."""

from __future__ import annotations

from typing import Any

from polyloom.diagnostics import Unsupported, error
from polyloom.frontends.lair import from_program
from polyloom.ir.host import Buffer
from polyloom.ir.program import Program
from polyloom.ir.statements import combine_operators
from polyloom.ir.text.expressions import assignment_text


def text(program: Program, form: str) -> str:
    """Return a program as LAIR.

    Errors: ``Unsupported`` for the form ``scop``, which LAIR sources do not have.
    """
    _refuse_scop(form)
    return from_program(program)


def document(program: Program, form: str, *, with_text: bool = True) -> dict[str, Any]:
    """Return the document of ``show --json``; ``with_text``: also as LAIR.

    Source: docs/interface.md (JSON of show).
    """
    _refuse_scop(form)
    return _program(program) | ({"lair": from_program(program)} if with_text else {})


def _refuse_scop(form: str) -> None:
    if form == "scop":
        message = "a LAIR source has no static control part"
        raise Unsupported(error("show-form", message, helps=["show it with `--as lair` or `--as mdh`"]))


def _program(program: Program) -> dict[str, Any]:
    return {
        "name": program.name,
        "inputs": [_tensor(program.buffer(name)) for name in program.inputs],
        "outputs": [_tensor(program.buffer(name)) for name in program.outputs],
        "internal": [_tensor(program.buffer(name)) for name in program.internal],
        "statements": [
            {
                "name": s.name,
                "iterators": list(s.iterators),
                "extents": list(s.domain),
                "combine": [c.value for c in combine_operators(s)],
                "body": assignment_text(s),
            }
            for s in program.statements
        ],
    }


def _tensor(tensor: Buffer) -> dict[str, Any]:
    return {"name": tensor.name, "type": tensor.type.value, "shape": list(tensor.extents)}
