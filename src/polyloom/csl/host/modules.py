"""Modules with the public names of the vendor's SDK, for host programs: not the vendor's product."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_DOC = (
    "Names of the Cerebras SDK's public interface on Polyloom's simulator. This is not the vendor's product."
)


def _contents() -> dict[str, Mapping[str, Any]]:
    """Return the names of each module that host programs import."""
    from polyloom.csl.host import client, debug, runtime, utils
    from polyloom.csl.host.layout import interface, regions

    transfers = {"MemcpyDataType": runtime.MemcpyDataType, "MemcpyOrder": runtime.MemcpyOrder}
    return {
        "cerebras.sdk.runtime.sdkruntimepybind": {
            **transfers,
            "SdkRuntime": runtime.SdkRuntime,
            "SdkCompileArtifacts": runtime.SdkCompileArtifacts,
            **interface.names(),
        },
        "cerebras.sdk.client": {
            "SdkCompiler": client.SdkCompiler,
            "SdkLauncher": client.SdkLauncher,
            "SdkRuntime": client.ClientRuntime,
        },
        "cerebras.sdk.sdk_utils": {
            "memcpy_view": utils.memcpy_view,
            "input_array_to_u32": utils.input_array_to_u32,
            "calculate_cycles": utils.calculate_cycles,
        },
        "cerebras.sdk.debug.debug_util": {"debug_util": debug.debug_util},
        "cerebras.geometry.geometry": {
            "IntVector": regions.IntVector,
            "IntRectangle": regions.IntRectangle,
        },
        "cerebras.appliance.pb.sdk.sdk_common_pb2": transfers,
    }


@contextmanager
def sdk_modules() -> Iterator[None]:
    """Let imports inside find the modules; they hide a package `cerebras` that is installed."""
    hidden = {
        name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "cerebras"
    }
    made: dict[str, ModuleType] = {}
    for name, contents in _contents().items():
        for package in _packages(name):
            made.setdefault(package, _module(package, is_package=True))
        module = made[name] = _module(name, is_package=False)
        vars(module).update(contents)
    for name, module in made.items():
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(made[parent], last, module)
    sys.modules.update(made)
    try:
        yield
    finally:
        for name in made:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)


def _packages(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:i]) for i in range(1, len(parts)))


def _module(name: str, *, is_package: bool) -> ModuleType:
    module = ModuleType(name, _DOC)
    if is_package:
        module.__path__ = []
    return module
