"""GPUs by the name of their architecture, as data: what is compiled for where none is at hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from polyloom.mdh.device.devices import CUDA, DeviceKind, DeviceModel, UnitLimits

DEFAULT = "sm_80"
"""What is compiled for where no GPU is at hand and none is named: newer ones take its code, too."""


@cache
def architectures() -> Mapping[str, DeviceModel]:
    """Return a GPU of each known architecture. Source: those that the numbers name."""
    document = json.loads((files(__package__) / "architectures.json").read_text(encoding="utf-8"))
    return {name: _model(name, entry) for name, entry in document["architectures"].items()}


def _model(name: str, entry: Mapping[str, Any]) -> DeviceModel:
    def number(what: str) -> int:
        assert entry[what]["source"]
        return int(entry[what]["value"])

    return gpu_model(
        name=entry["gpu"],
        architecture=name,
        driver="",
        units=number("units"),
        clock_mhz=number("clock_mhz"),
        group_memory=number("group_memory"),
        memory=number("memory"),
        cache=number("cache"),
        memory_rate=float(entry["memory_rate"]["value"]),
        unit=UnitLimits(
            registers=number("unit_registers"),
            items=number("unit_items"),
            local_memory=number("unit_memory"),
        ),
        matrix_products=number("matrix_products"),
    )


def matrix_products(architecture: str) -> int:
    """Return products of halves that a multiprocessor's matrix units add up in a cycle, 0 if nobody says."""
    found = architectures().get(architecture)
    return 0 if found is None else found.matrix_products


def gpu_model(
    *,
    name: str,
    architecture: str,
    driver: str,
    units: int,
    clock_mhz: int,
    group_memory: int,
    memory: int,
    cache: int,
    memory_rate: float,
    unit: UnitLimits,
    lanes: int = 32,
    group_size: int = 1024,
    ordinal: int = 0,
    matrix_products: int = 0,
) -> DeviceModel:
    """Return a GPU that runs CUDA; ``version`` is its architecture. Sizes are in bytes.

    ``units``: streaming multiprocessors; ``group_memory``: what arrays of a group may take without being
    asked for (48 KiB so far); ``cache``: of the second level; ``memory_rate``: in bytes a second.
    """
    return DeviceModel(
        index=-1,
        name=name,
        platform=CUDA,
        vendor="NVIDIA",
        driver=driver,
        version=architecture,
        kind=DeviceKind.GPU,
        compute_units=units,
        clock_mhz=clock_mhz,
        max_group_size=group_size,
        max_item_sizes=(group_size, group_size, 64),
        local_memory=group_memory,
        global_memory=memory,
        max_allocation=memory,
        vector_bytes=16,
        lanes=lanes,
        cache_line=128,
        caches=(cache,),
        has_double=True,
        has_half=True,
        shares_memory=False,
        memory_rate=memory_rate,
        unit=unit,
        ordinal=ordinal,
        matrix_products=matrix_products,
    )
