"""The result of a simulation for a person."""

from __future__ import annotations

from polyloom.ir.host import Buffer
from polyloom.ir.text.host_programs import buffer_text
from polyloom.ir.types import ElementType
from polyloom.report.terminal import print_pairs
from polyloom.report.verdict_view import verdict_rows
from polyloom.wafer.simulation.result import SimulationResult


def print_simulation(result: SimulationResult) -> None:
    """Print what a simulation gave, as one table."""
    print_pairs(_rows(result))


def _rows(result: SimulationResult) -> list[tuple[str, str]]:
    s, document = result.simulation, result.json()
    busy = document["pe"]["busy"]
    far = f", {s.cycles / s.limit.cycles:.2f} times the limit" if s.limit.cycles else ""
    rows = [
        ("cycles", f"{s.cycles:,} on {result.machine}, SIMD {result.simd}{far}"),
        ("limit", f"{s.limit.cycles:,} cycles, by {s.limit.by}"),
        ("SIMD", f"{s.simd_operations:,} operations in {_count(s.simd_instructions, 'instruction')}"),
        ("scalar", _count(s.scalar_operations, "operation")),
        ("PEs", f"{s.pe_count:,}, at most {s.memory_bytes:,} bytes of data on one"),
        ("busy", f"{busy['min']:,} to {busy['max']:,} cycles, {busy['mean']:,.1f} on average"),
        ("fabric", f"{_count(s.wavelets, 'wavelet')}, {s.hops:,} hops, busiest link {s.max_link_use:.1%}"),
        ("events", f"{s.events:,}"),
        *(("output", _output(name, array.dtype.name, array.shape)) for name, array in s.outputs.items()),
    ]
    return [*rows, *verdict_rows(result.check)]


def _output(name: str, dtype: str, shape: tuple[int, ...]) -> str:
    return buffer_text(Buffer.of(name, ElementType(dtype), shape))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
