"""The result of a simulation for a person."""

from __future__ import annotations

from polyloom.ir.program import Tensor
from polyloom.ir.text.expressions import tensor_text
from polyloom.ir.types import ElementType
from polyloom.ir.verification.comparison import said
from polyloom.report.terminal import print_pairs
from polyloom.wafer.simulation.check import Check, Reals
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
    if result.check is None:
        return rows
    return [*rows, *_check(result.check)]


def _output(name: str, dtype: str, shape: tuple[int, ...]) -> str:
    return tensor_text(Tensor(name, ElementType(dtype), shape))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _check(check: Check) -> list[tuple[str, str]]:
    rows = [("check", verdict_text(check))]
    if check.reals is not None:
        rows.append(("", reals_text(check.reals)))
    return [*rows, *(("", note) for note in check.notes)]


def verdict_text(check: Check) -> str:
    """Return what a check found, and how much that says."""
    if not check.passed:
        return f"FAILED: not equal to {check.by}"
    if check.max_error == 0 and not check.unknown:
        return f"passed: the same bits as {check.by}"
    error = f"error at most {check.max_error:.2g} of each element's bound"
    return f"passed: {error}, compared with {check.by}; {said(check.tight, check.unknown)}"


def reals_text(reals: Reals) -> str:
    """Return what the check with made-up reals found."""
    scale = f"reals of 1e-{reals.decades:g} to 1e{reals.decades:g} (seed {reals.seed})"
    return f"{scale}: {verdict_text(reals.check)}"
