"""Programs of a running PyTorch: exported, decomposed where the table has no operation, saved into memory.

The only module that meets PyTorch's objects.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any

from polyloom.diagnostics import PolyloomError, error

CHANGING = ("aten.instance_norm",)
"""Operations that may change buffers, which only their decomposition says."""


def archive_of(
    program: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], known: Collection[str]
) -> tuple[bytes, str]:
    """Return the archive of a program or module, and its name.

    ``known``: operations that stay whole, such as ``aten.einsum``; what is not among them is decomposed, and
    what writes into tensors becomes functions.

    Errors: ``model-torch`` where PyTorch is not installed, or cannot export the module.
    """
    torch = _torch()
    name = "model"
    if isinstance(program, torch.nn.Module):
        name = type(program).__name__
        program = _exported(torch, program, arguments, keywords)
    if not isinstance(program, torch.export.ExportedProgram):
        helps = ["give a `torch.nn.Module` and example inputs, or an `ExportedProgram`"]
        raise PolyloomError(error("model-torch", f"a {type(program).__name__} is no program", helps=helps))
    rules = torch.export.default_decompositions()
    for operation in [*rules]:
        name_of = ".".join(str(operation).split(".")[:2])
        if name_of in known and name_of not in CHANGING:
            rules.pop(operation)
    return _saved(torch, _decomposed(program, rules)), name


def _decomposed(program: Any, rules: Mapping[Any, Any]) -> Any:
    try:
        return program.run_decompositions(rules)
    except Exception as fault:  # whatever PyTorch's tracing of its own rules raises
        message = "PyTorch cannot take the program apart into operations"
        helps = ["`program.run_decompositions()` shows where"]
        raise PolyloomError(error("model-torch", message, notes=[_reason(fault)], helps=helps)) from fault


def _saved(torch: Any, program: Any) -> bytes:
    """Return the archive of a program that nobody else has; results in unknown types become a tuple.

    Such are ``torch.return_types.max``, named tuples and data classes.
    """
    try:
        return _archive(torch, program)
    except NotImplementedError:
        signature = program.module_call_graph[0].signature
        signature.out_spec = torch.utils._pytree.tree_structure((0,) * signature.out_spec.num_leaves)
    try:
        return _archive(torch, program)
    except NotImplementedError as fault:
        helps = ["take tensors, tuples, lists or dictionaries of them"]
        message = "PyTorch cannot save what the program takes"
        raise PolyloomError(error("model-torch", message, notes=[str(fault)], helps=helps)) from fault


def _archive(torch: Any, program: Any) -> bytes:
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    return buffer.getvalue()


def _exported(torch: Any, module: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    try:
        return torch.export.export(module, tuple(arguments), dict(keywords))
    except Exception as fault:  # whatever PyTorch's tracing of the user's own code raises
        message = f"PyTorch cannot export the module `{type(module).__name__}`"
        helps = ["`torch.export.export(module, inputs)` shows where"]
        raise PolyloomError(error("model-torch", message, notes=[_reason(fault)], helps=helps)) from fault


def _reason(fault: Exception) -> str:
    return (str(fault).strip().splitlines() or [type(fault).__name__])[0]


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError as fault:
        helps = ["install it: `pip install polyloom[torch]`"]
        raise PolyloomError(error("model-torch", "PyTorch is not installed", helps=helps)) from fault
