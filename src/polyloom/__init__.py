"""Polyloom: a polyhedral compiler for tensor programs.

``polyloom.api`` is what ``import polyloom`` offers; it is imported when something of it is first used.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # nothing is imported here: `python -m polyloom` still looks in the current folder

if TYPE_CHECKING:
    from typing import Any

    from polyloom.api import (
        CompiledLayer,
        CompiledProgram,
        DeviceArray,
        DeviceModel,
        Explanation,
        RunResult,
        compile,
        compile_wafer,
        devices,
        drop_in,
        evaluate,
        explain,
        from_tensorflow,
        from_torch,
        random_inputs,
        read_mapping,
        read_model,
        read_program,
        read_reference,
        run,
        simulate,
        simulate_layers,
        trace_tensors,
        tune,
    )
    from polyloom.diagnostics import PolyloomError, Unsupported

__all__ = [
    "CompiledLayer",
    "CompiledProgram",
    "DeviceArray",
    "DeviceModel",
    "Explanation",
    "PolyloomError",
    "RunResult",
    "Unsupported",
    "compile",
    "compile_wafer",
    "devices",
    "drop_in",
    "evaluate",
    "explain",
    "from_tensorflow",
    "from_torch",
    "random_inputs",
    "read_mapping",
    "read_model",
    "read_program",
    "read_reference",
    "run",
    "simulate",
    "simulate_layers",
    "trace_tensors",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'polyloom' has no attribute {name!r}")
    from importlib import import_module

    home = "polyloom.diagnostics" if name in ("PolyloomError", "Unsupported") else "polyloom.api"
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
