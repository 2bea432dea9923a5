"""Polyloom: a polyhedral compiler for tensor programs.

``polyloom.api`` is what ``import polyloom`` offers; it is imported when something of it is first used.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # nothing is imported here: `python -m polyloom` still looks in the current folder

if TYPE_CHECKING:
    from typing import Any

    from polyloom.api import (
        Choice,
        CompiledLayer,
        CompiledProgram,
        DeviceArray,
        DeviceModel,
        Explanation,
        LoopExplanation,
        RunResult,
        choose_mapping,
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
    from polyloom.function import Argument, Function, load

_ELSEWHERE = {
    "Argument": "polyloom.function",
    "Function": "polyloom.function",
    "PolyloomError": "polyloom.diagnostics",
    "Unsupported": "polyloom.diagnostics",
    "load": "polyloom.function",
}
"""The modules of what is not in ``polyloom.api``."""

__all__ = [
    "Argument",
    "Choice",
    "CompiledLayer",
    "CompiledProgram",
    "DeviceArray",
    "DeviceModel",
    "Explanation",
    "Function",
    "LoopExplanation",
    "PolyloomError",
    "RunResult",
    "Unsupported",
    "choose_mapping",
    "compile",
    "compile_wafer",
    "devices",
    "drop_in",
    "evaluate",
    "explain",
    "from_tensorflow",
    "from_torch",
    "load",
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

    return getattr(import_module(_ELSEWHERE.get(name, "polyloom.api")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
