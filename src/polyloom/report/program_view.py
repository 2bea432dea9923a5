"""A program as text and as a JSON document: ``show``."""

from __future__ import annotations

from typing import Any

from polyloom.diagnostics import Unsupported, error
from polyloom.frontends.lair import from_program
from polyloom.ir.program import Access, Program, Statement, Tensor
from polyloom.ir.text import access_text, affine_text, assignment_text, expression_text


def text(program: Program, form: str) -> str:
    """Return a program as LAIR, or as ``md_hom`` expressions.

    Errors: ``Unsupported`` for the form ``scop``, which LAIR sources do not have yet.
    """
    if form == "lair":
        return from_program(program)
    _refuse_scop(form)
    return "\n".join(_expression(statement) for statement in program.statements)


def document(program: Program, form: str) -> Any:
    """Return the document of ``show --json``. Source: docs/interface.md (JSON of show)."""
    if form == "lair":
        return _program(program)
    _refuse_scop(form)
    return [_md_hom(statement) for statement in program.statements]


def _refuse_scop(form: str) -> None:
    if form == "scop":
        message = "a LAIR source has no static control part"
        raise Unsupported(error("show-form", message, helps=["show it with `--as lair` or `--as mdh`"]))


def _program(program: Program) -> dict[str, Any]:
    return {
        "name": program.name,
        "inputs": [_tensor(program.tensor(name)) for name in program.inputs],
        "outputs": [_tensor(program.tensor(name)) for name in program.outputs],
        "internal": [_tensor(program.tensor(name)) for name in program.internal],
        "statements": [
            {
                "name": s.name,
                "iterators": list(s.iterators),
                "extents": list(s.domain),
                "combine": [c.value for c in s.combine],
                "body": assignment_text(s),
            }
            for s in program.statements
        ],
        "lair": from_program(program),
    }


def _tensor(tensor: Tensor) -> dict[str, Any]:
    return {"name": tensor.name, "type": tensor.type.value, "shape": list(tensor.shape)}


def _md_hom(statement: Statement) -> dict[str, Any]:
    return {
        "name": statement.name,
        "ranges": list(statement.domain),
        "scalar_function": _scalar_function(statement),
        "combine_operators": [c.value for c in statement.combine],
        "input_view": [_view(access, statement) for access in statement.reads],
        "output_view": [_view(statement.write, statement)],
        "host_loops": [],
    }


def _scalar_function(statement: Statement) -> str:
    return expression_text(statement.expression, [a.tensor for a in statement.reads], statement.iterators)


def _view(access: Access, statement: Statement) -> dict[str, Any]:
    return {
        "buffer": access.tensor,
        "indices": list(statement.iterators),
        "access": [affine_text(index, statement.iterators) for index in access.indices],
    }


def _expression(statement: Statement) -> str:
    """Return a statement as the paper on MDH writes it: ``output_view . md_hom(f, (++, +)) . input_view``."""
    names = ", ".join(statement.iterators)
    reads = ", ".join(access_text(a, statement.iterators) for a in statement.reads)
    operators = ", ".join(c.value for c in statement.combine)
    ranges = ", ".join(map(str, statement.domain))
    return (
        f"{statement.name}<{ranges}> =\n"
        f"  output_view: ({names}) -> {access_text(statement.write, statement.iterators)}\n"
        f"  md_hom( {_scalar_function(statement)}, ({operators}) )\n"
        f"  input_view:  ({names}) -> {reads}\n"
    )
