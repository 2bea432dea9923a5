"""What a simulation gives to a person or another program: numbers, the check, the JSON document."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from polyloom.diagnostics import Diagnostic
from polyloom.ir.verification.comparison import Verdict
from polyloom.wafer.program.wafer_program import WaferProgram
from polyloom.wafer.simulation.run import AnyArray, Simulation
from polyloom.wafer.simulator.result import Trace


@dataclass(frozen=True, eq=False, kw_only=True)
class SimulationResult:
    """``simulation``: everything that was counted; ``check``: None where none was asked for;
    ``remarks``: missed optimisations of the code that ran; ``program``: that code, with its analysis.

    Source: docs/interface.md (JSON of simulate).
    """

    simulation: Simulation
    machine: str
    simd: str
    check: Verdict | None
    program: WaferProgram = field(repr=False)
    remarks: tuple[Diagnostic, ...] = ()

    def __repr__(self) -> str:
        checked = "" if self.check is None else f", check {'passed' if self.check.passed else 'failed'}"
        name = self.program.analysis.program.name
        return f"<SimulationResult of {name}: {self.cycles:,} cycles on {self.machine}{checked}>"

    @property
    def outputs(self) -> dict[str, AnyArray]:
        """Name to array; with N > 1 invocations, what leaves through ports has a leading axis N."""
        return self.simulation.outputs

    @property
    def cycles(self) -> int:
        """Cycles from the start to the last thing that happened."""
        return self.simulation.cycles

    @property
    def trace(self) -> Trace | None:
        """What happened when; None where no trace was asked for."""
        return self.simulation.trace

    def json(self) -> dict[str, Any]:
        """Return the document of ``simulate --json``."""
        s = self.simulation
        return {
            "cycles": s.cycles,
            "machine": self.machine,
            "simd": self.simd,
            "outputs": {n: {"shape": list(a.shape), "dtype": str(a.dtype)} for n, a in s.outputs.items()},
            "pe": {"count": s.pe_count, "memory_bytes": s.memory_bytes, "busy": self._busy()},
            "work": {
                "simd_operations": s.simd_operations,
                "simd_instructions": s.simd_instructions,
                "scalar_operations": s.scalar_operations,
            },
            "fabric": {"wavelets": s.wavelets, "hops": s.hops, "max_link_use": s.max_link_use},
            "events": s.events,
            "limit": {"cycles": s.limit.cycles, "by": s.limit.by},
            "check": None if self.check is None else self.check.json(),
        }

    def _busy(self) -> dict[str, float]:
        """Cycles in which the PEs that have a program worked."""
        busy = self.simulation.busy[self.simulation.busy > 0]
        if not busy.size:
            return {"min": 0, "mean": 0.0, "max": 0}
        return {"min": int(busy.min()), "mean": float(busy.mean()), "max": int(busy.max())}
