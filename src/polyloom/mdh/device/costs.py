"""What instructions, memory and launches cost on a kind of device: the numbers of the cost model, as data.

Each number of ``models/KIND.json`` has a unit and says where it comes from: a source, or an estimate.
None is the result of a fit that a command would make again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

T = TypeVar("T")
ORIGINS = ("source", "estimate")
"""Where a number comes from: a document that can be looked up, or a judgement and its reason."""

NEAR = (2, 3, 4)
"""Distances of elements that are shuffled out of as many vectors of neighbours."""

PIECE = 16
"""Bytes within which x86 shuffles elements by one instruction: rows of blocks that are turned are as long."""


@dataclass(frozen=True, kw_only=True)
class InstructionCosts:
    """Registers, and instructions of a step; ``models/cpu.json`` says what each number is."""

    vector_registers: int
    wide_vector_registers: int
    wide_vector_bytes: int
    reserved_registers: int
    wide_reserved_registers: int
    operation: float
    least_operations: float
    aligned_load: float
    split_load: float
    split_load_of_several: float
    gathered_element: float
    every_second_element: float
    turned_step: float
    computed_address: float

    @property
    def turns_blocks(self) -> bool:
        """Whether blocks of elements are turned in registers, and not gathered one by one."""
        return self.turned_step < self.gathered_element


@dataclass(frozen=True, kw_only=True)
class MemoryCosts:
    """How traffic through caches is counted."""

    usable_share: float
    line_bytes: int
    misaligned_bytes: float
    foreseen_bytes: int
    prefetch_bytes: int
    largest_prefetch_factor: float
    write_factor: float


@dataclass(frozen=True, kw_only=True)
class CpuCosts:
    """Launches, instructions in time, and the levels of memory of a CPU."""

    compiles_loops: int
    least_clock_mhz: int
    unhidden_share: float
    imbalance: float
    launch_seconds: float
    group_seconds: float
    second_kernel_seconds: float
    partial_result_passes: int
    barrier_factor: float
    per_line: float
    partial_tile: float
    partial_vector: float
    unknown_partial_tile: float
    fma_per_cycle: float
    loads_per_cycle: float
    fma_latency: float
    latency_between_tiles: float
    load_overlap: float
    loop_step: float
    spill_start: float
    spill_per_register: float
    vector_of_several: float
    guard_factor: float
    copied_element: float
    transposed_element: float
    turned_element: float
    reordered_element: float
    map_tile: float
    stored_vector: float
    reduction_tile: float
    total: float
    combined_lanes: float
    waiting_total: float
    scattered_element: float
    bytes_per_cycle: tuple[float, ...]
    short_piece_factor: float
    ways: tuple[int, ...]
    default_caches: tuple[int, ...]
    page_bytes: int
    pages_at_hand: int
    page_miss_in_cache: float
    page_miss_in_memory: float
    pages_known: int
    page_walk: float


@dataclass(frozen=True, kw_only=True)
class GpuCosts:
    """Launches, occupancy and memory of a GPU."""

    least_clock_mhz: int
    launch_seconds: float
    second_kernel_seconds: float
    memory_bytes_per_second: float
    cache_bytes: float
    cache_bytes_per_second: float
    unit_cache_bytes: float
    local_bytes_per_cycle: float
    lanes_of_unit: int
    unhidden_share: float
    most_groups: int
    resident_items: int
    load: float
    step: float
    registers_of_kernel: float
    register_of_total: float
    register_of_result: float
    register_of_load: float
    registers_of_loads: float
    registers_of_loads_by_total: float
    registers_of_copy: float
    register_of_loop: float
    most_registers: int
    spilled_register: float
    copied_element: float
    wait_of_copy: float
    wait_of_load: float
    wait_of_local_load: float
    wait_of_operation: float
    steps_ahead: float
    barrier: float
    local_load: float
    broadcast_load: float
    coalesced_load: float
    blocked_load: float
    scattered_load: float


@dataclass(frozen=True)
class DeviceCosts:
    """All numbers of a kind of device."""

    instructions: InstructionCosts
    memory: MemoryCosts
    kernels: CpuCosts | GpuCosts


@cache
def load_costs(kind: str, vendor: str = "") -> DeviceCosts:
    """Return the costs of ``cpu``, ``gpu`` or ``native``; what a vendor's devices are known to do otherwise.

    Errors: ValueError where a number lacks its origin.
    """
    document = json.loads((files(__package__) / "models" / f"{kind}.json").read_text(encoding="utf-8"))
    other = document.get("vendors", {}).get(vendor, {})
    instructions, memory, kernels = (
        document[section] | other.get(section, {}) for section in ("instructions", "memory", "kernels")
    )
    return DeviceCosts(
        _section(InstructionCosts, instructions),
        _section(MemoryCosts, memory),
        _section(GpuCosts, kernels) if kind == "gpu" else _section(CpuCosts, kernels),
    )


def _section(kind: type[T], entries: Mapping[str, Mapping[str, Any]]) -> T:
    names = {part.name for part in fields(kind)}  # type: ignore[arg-type]
    if set(entries) != names:
        raise ValueError(f"{kind.__name__}: {', '.join(sorted(names ^ set(entries)))}")
    return kind(**{name: _value(name, entry) for name, entry in entries.items()})


def _value(name: str, entry: Mapping[str, Any]) -> Any:
    if set(entry) - set(ORIGINS) != {"value", "unit"} or len(entry) != 3:
        raise ValueError(f"`{name}` has a value, a unit and one of {', '.join(ORIGINS)}")
    value = entry["value"]
    return tuple(value) if isinstance(value, list) else value
