"""Everything that is known of a placed layer before code is made of it: the result of stages 1 to 6."""

from __future__ import annotations

from dataclasses import dataclass

from polyloom.diagnostics import Diagnostic
from polyloom.ir.program import Program
from polyloom.wafer.border.peeling import Border
from polyloom.wafer.collectives import Reduction
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.dataflow.tasks import TaskGraph
from polyloom.wafer.drivers import DriverEstimate
from polyloom.wafer.machine.options import Extension
from polyloom.wafer.mapping.mapping import Mapping
from polyloom.wafer.simd.decision import SimdAnalysis, SimdOptions


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerAnalysis:
    """``mapping``: as the compute PEs see it; ``border``: the user's map, and the adapters between the two.

    ``reductions``: the shapes that were chosen for reductions along lines.
    ``arrays_before`` and ``arrays``: local memory before and after extra instances enlarged it.
    ``drivers``: what may drive statements where the map leaves it open, with estimated cycles; the first one
    does. ``compared``: the analysis with each of them, None where it was refused. ``remarks``: missed
    optimisations; ``extension_remarks``: one for each extension that is used.
    """

    program: Program
    mapping: Mapping
    border: Border
    options: SimdOptions
    graph: TaskGraph
    reductions: tuple[Reduction, ...]
    arrays_before: dict[str, LocalArray]
    arrays: dict[str, LocalArray]
    simd: tuple[SimdAnalysis, ...]
    remarks: tuple[Diagnostic, ...]
    extension_remarks: tuple[Diagnostic, ...] = ()
    drivers: tuple[DriverEstimate, ...] = ()
    compared: tuple[LayerAnalysis | None, ...] = ()

    @property
    def approximate(self) -> frozenset[str]:
        """The statements whose functions are computed by other roundings than the evaluator's."""
        return frozenset(a.task.statement.name for a in self.simd if a.uses(Extension.VECTOR_FUNCTIONS))
