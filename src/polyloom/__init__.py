"""Polyloom: a polyhedral compiler for tensor programs.

Its functions are in ``polyloom.api`` and ``polyloom.function``. A module is imported when something of it is
first used.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # nothing is imported here: `python -m polyloom` still looks in the current folder

if TYPE_CHECKING:
    from typing import Any

    from polyloom.api.evaluation import evaluate, random_inputs, trace_tensors
    from polyloom.api.layers import LayersExplanation, explain_layers
    from polyloom.api.loops import LoopExplanation
    from polyloom.api.mapping import choose_mapping, read_mapping
    from polyloom.api.opencl import compile, devices, drop_in, run
    from polyloom.api.reading import from_tensorflow, from_torch, read_model, read_program, read_reference
    from polyloom.api.simulation import simulate, simulate_layers
    from polyloom.api.tuning import tune
    from polyloom.api.wafer import CompiledLayer, Explanation, compile_wafer, explain
    from polyloom.diagnostics import PolyloomError, Unsupported
    from polyloom.function import Argument, Function, load
    from polyloom.function.jitted import Jitted, jit
    from polyloom.mdh.compiled import CompiledProgram
    from polyloom.mdh.device.devices import DeviceModel
    from polyloom.mdh.running import RunResult
    from polyloom.mdh.runtime.arrays import DeviceArray
    from polyloom.wafer.placement.choose import Choice

_MODULES = {
    "polyloom.api.evaluation": "evaluate random_inputs trace_tensors",
    "polyloom.api.layers": "LayersExplanation explain_layers",
    "polyloom.api.loops": "LoopExplanation",
    "polyloom.api.mapping": "choose_mapping read_mapping",
    "polyloom.api.opencl": "compile devices drop_in run",
    "polyloom.api.reading": "from_tensorflow from_torch read_model read_program read_reference",
    "polyloom.api.simulation": "simulate simulate_layers",
    "polyloom.api.tuning": "tune",
    "polyloom.api.wafer": "CompiledLayer Explanation compile_wafer explain",
    "polyloom.diagnostics": "PolyloomError Unsupported",
    "polyloom.function": "Argument Function load",
    "polyloom.function.jitted": "Jitted jit",
    "polyloom.mdh.compiled": "CompiledProgram",
    "polyloom.mdh.device.devices": "DeviceModel",
    "polyloom.mdh.running": "RunResult",
    "polyloom.mdh.runtime.arrays": "DeviceArray",
    "polyloom.wafer.placement.choose": "Choice",
}
"""The names that ``import polyloom`` offers, by their modules."""

__all__ = [
    "Argument",
    "Choice",
    "CompiledLayer",
    "CompiledProgram",
    "DeviceArray",
    "DeviceModel",
    "Explanation",
    "Function",
    "Jitted",
    "LayersExplanation",
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
    "explain_layers",
    "from_tensorflow",
    "from_torch",
    "jit",
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


_BACKENDS = ("onnx_backend", "torch_backend")
"""Modules that need packages which may not be here."""


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _BACKENDS:
        return import_module(f"polyloom.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'polyloom' has no attribute {name!r}")
    module = next(module for module, names in _MODULES.items() if name in names.split())
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
