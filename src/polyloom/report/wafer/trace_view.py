"""Every tensor of an evaluation: as a JSON document, and for a person."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
from rich.table import Table

from polyloom.diagnostics import visible_name
from polyloom.frontends.graph.imported import Imported
from polyloom.ir.program import Program
from polyloom.ir.verification.comparison import Difference
from polyloom.report.terminal import console

Arrays = Mapping[str, npt.NDArray[Any]]


def trace_document(program: Program, tensors: Arrays, difference: Difference | None) -> dict[str, Any]:
    """Return ``{tensors: {name: {role, shape, dtype, smallest, largest}}, difference}``.

    ``difference``: ``{tensor, max_error, text}``, null where none was found. Numbers that JSON does not have
    are null.
    """
    return {
        "tensors": {name: _entry(program, name, array) for name, array in tensors.items()},
        "difference": None if difference is None else _difference(difference),
    }


def model_trace_document(model: Imported, tensors: Arrays, difference: Difference | None) -> dict[str, Any]:
    """Return the same document for a model, whose tensors have the names of its file."""
    arguments = {model.names.get(name, name) for name in model.arguments}
    roles = {**dict.fromkeys(arguments, "input"), **dict.fromkeys(model.results, "output")}
    entries = {name: _described(roles.get(name, "internal"), array) for name, array in tensors.items()}
    return {"tensors": entries, "difference": None if difference is None else _difference(difference)}


def print_trace(document: dict[str, Any]) -> None:
    """Print a line for each tensor, in the order of the program."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("tensor", "role", "type", "shape"):
        table.add_column(heading)
    for heading in ("smallest", "largest"):
        table.add_column(heading, justify="right")
    for name, entry in document["tensors"].items():
        shape = " x ".join(map(str, entry["shape"])) or "scalar"
        extremes = (_number(entry["smallest"]), _number(entry["largest"]))
        table.add_row(visible_name(name), entry["role"], entry["dtype"], shape, *extremes)
    console().print(table)


def _entry(program: Program, name: str, array: npt.NDArray[Any]) -> dict[str, Any]:
    return _described(_role(program, name), array)


def _described(role: str, array: npt.NDArray[Any]) -> dict[str, Any]:
    return {
        "role": role,
        "shape": list(array.shape),
        "dtype": array.dtype.name,
        "smallest": _finite(float(array.min())) if array.size else None,
        "largest": _finite(float(array.max())) if array.size else None,
    }


def _role(program: Program, tensor: str) -> str:
    if tensor in program.inputs:
        return "input"
    return "output" if tensor in program.outputs else "internal"


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "tensor": difference.tensor,
        "max_error": _finite(difference.max_error),
        "text": difference.text,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:g}"
