"""Every tensor of an evaluation: as a JSON document, and for a person."""

from __future__ import annotations

import math
from typing import Any

import numpy.typing as npt
from rich.table import Table

from polyloom.diagnostics import visible_name
from polyloom.ir.verification.comparison import Difference
from polyloom.models import Trace
from polyloom.report.terminal import console


def trace_document(trace: Trace) -> dict[str, Any]:
    """Return ``{tensors: {name: {role, shape, dtype, smallest, largest}}, difference}``.

    ``difference``: ``{tensor, max_error, text}``, null where none was found. Numbers that JSON does not have
    are null.
    """
    return {
        "tensors": {name: _described(trace.roles[name], array) for name, array in trace.tensors.items()},
        "difference": None if trace.difference is None else _difference(trace.difference),
    }


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


def _described(role: str, array: npt.NDArray[Any]) -> dict[str, Any]:
    return {
        "role": role,
        "shape": list(array.shape),
        "dtype": array.dtype.name,
        "smallest": _finite(float(array.min())) if array.size else None,
        "largest": _finite(float(array.max())) if array.size else None,
    }


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
