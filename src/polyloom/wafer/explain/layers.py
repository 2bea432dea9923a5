"""The layers of a program one by one on the wafer: what each takes, and why one could not be placed.

Not in the papers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, starmap
from typing import Any

from polyloom.diagnostics import Diagnostic, InternalFault, PolyloomError, Refusal, Unsupported, error
from polyloom.ir.conversion.split_layers import Layer
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.wafer.explain.tasks import simd_sizes
from polyloom.wafer.placement.choose import Choice
from polyloom.wafer.simd.decision import SimdAnalysis, Strategy
from polyloom.wafer.simulation.result import SimulationResult

Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class TaskShape:
    """How one computation task of a layer is done: ``strategy``, ``instruction`` and ``sizes`` of the box.

    ``instruction`` is empty for loops, ``reason`` says why. ``bounds``: the smallest and largest size of each
    dimension over all PEs; empty for loops.
    """

    task: str
    strategy: str
    instruction: str
    sizes: list[list[int]] | str | None
    bounds: tuple[tuple[int, int], ...]
    reason: str


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerRun:
    """A layer that was simulated (``result``), or the ``refusal``.

    ``choice``: its mapping and what that was chosen among; None where that was refused already. ``names``: of
    a layer that is alike, whose code ran: its tensors and statements, with this one's.
    """

    layer: Layer
    choice: Choice | None
    result: SimulationResult | None
    refusal: Refusal | None
    names: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        found = self.refusal.diagnostics[0].code if self.refusal else f"{self.result!r}"
        return f"<LayerRun of {self.layer.name}: {found}>"

    @property
    def instances(self) -> int:
        """The points of the domains of its statements."""
        return sum(math.prod(s.domain) for s in self.layer.program.statements)

    @property
    def shapes(self) -> tuple[TaskShape, ...]:
        """How its computation tasks are done; none where it was refused."""
        found = () if self.result is None else map(_shape, self.result.program.analysis.simd)
        return tuple(replace(s, task=self.names.get(s.task, s.task)) for s in found)

    def json(self) -> Document:
        """Return an entry of ``layers``."""
        return {
            "name": self.layer.name,
            "statements": [s.name for s in self.layer.program.statements],
            "instances": self.instances,
            "map": None if self.choice is None else self.choice.text,
            "candidates": [] if self.choice is None else self.choice.json()["candidates"],
            "simd": [vars(shape) for shape in self.shapes],
            "simulation": None if self.result is None else self.result.json(),
            "size": None if self.result is None else _size(self.result),
            "refusal": None if self.refusal is None else [_refused(d) for d in self.refusal.diagnostics],
        }


@dataclass(frozen=True, eq=False)
class ModelRun:
    """All layers of a program, in its order; they run one after another."""

    name: str
    machine: str
    layers: tuple[LayerRun, ...]

    def __repr__(self) -> str:
        return f"<ModelRun of {self.name}: {len(self.results)} of {len(self.layers)} layers simulated>"

    @property
    def results(self) -> tuple[SimulationResult, ...]:
        """What was simulated."""
        return tuple(run.result for run in self.layers if run.result is not None)

    @property
    def of_the_host(self) -> tuple[LayerRun, ...]:
        """What is left to the host: the machine lacks the types, and no other layer has any of the tensors.

        Counters of steps, which are integers of 64 bits. None where nothing runs on the machine.
        """
        holders = Counter(name for run in self.layers for name in _tensors(run))
        refused = (run for run in self.layers if run.refusal is not None and self.results)
        alone = (run for run in refused if all(holders[name] == 1 for name in _tensors(run)))
        return tuple(run for run in alone if "wafer-type" in (codes := _codes(run)) and codes <= _TYPES)

    def json(self) -> Document:
        """Return the document of ``simulate --per-layer --json``. Source: docs/interface.md."""
        runs = [result.simulation for result in self.results]
        return {
            "program": self.name,
            "machine": self.machine,
            "layers": [run.json() for run in self.layers],
            "total": {
                "layers": len(self.layers),
                "simulated": len(runs),
                "host": len(self.of_the_host),
                "cycles": sum(run.cycles for run in runs),
                "limit": sum(run.limit.cycles for run in runs),
                "wavelets": sum(run.wavelets for run in runs),
                "most_pes": max((run.pe_count for run in runs), default=0),
                "most_memory_bytes": max((run.memory_bytes for run in runs), default=0),
            },
        }

    def fault(self) -> Refusal | None:
        """Return what was refused, with its layer, and what was computed wrong; None where all went well."""
        refused = fault_of([(run.layer.name, fault) for run, fault in self._refused()])
        wrong = tuple(self._mismatches())
        if not wrong:
            return refused
        if isinstance(refused, InternalFault):
            return InternalFault(*refused.diagnostics, *wrong, trace=refused.trace)
        return PolyloomError(*(() if refused is None else refused.diagnostics), *wrong)

    def _refused(self) -> Iterator[tuple[LayerRun, Refusal]]:
        left = self.of_the_host
        for run in self.layers:
            if run.refusal is not None and run not in left:
                yield run, run.refusal

    def _mismatches(self) -> Iterator[Diagnostic]:
        for run in self.layers:
            check = None if run.result is None else run.result.check
            if check is not None and not check.passed:
                message = f"the simulation of the layer `{run.layer.name}` and the evaluator do not agree"
                yield error("check-mismatch", message, notes=check.mismatches)


def fault_of(refusals: Sequence[tuple[str, Refusal]]) -> Refusal | None:
    """Return what layers, named, were refused for, as one fault; None where there is nothing.

    It is ours where one of them is, and ``Unsupported`` where all of them are.
    """
    found = tuple(chain.from_iterable(starmap(_in_layer, refusals)))
    if not found:
        return None
    ours = [refusal.trace for _, refusal in refusals if isinstance(refusal, InternalFault)]
    if ours:
        return InternalFault(*found, trace="\n".join(ours))
    kinds = {type(refusal) for _, refusal in refusals}
    return Unsupported(*found) if kinds == {Unsupported} else PolyloomError(*found)


def _in_layer(name: str, refusal: Refusal) -> Iterator[Diagnostic]:
    for fault in refusal.diagnostics:
        notes = [f"in the layer `{name}`", *fault.notes]
        yield error(fault.code, fault.message, fault.span, label=fault.label, notes=notes, helps=fault.helps)


_TYPES = frozenset({"wafer-type", "wafer-function"})
"""Codes of refusals for types: of tensors, and of what is computed in them."""


def _tensors(run: LayerRun) -> set[str]:
    return {*run.layer.program.inputs, *run.layer.program.outputs}


def _codes(run: LayerRun) -> set[str]:
    return set() if run.refusal is None else {fault.code for fault in run.refusal.diagnostics}


def _shape(analysis: SimdAnalysis) -> TaskShape:
    strategy = "whole stream" if analysis.whole is not None else analysis.strategy.value
    used = analysis.strategy is not Strategy.NONE
    instruction = ", ".join(analysis.instructions) if used else ""
    bounds = () if analysis.sizes is None else tuple(integer_bounds(analysis.sizes))
    return TaskShape(
        task=analysis.task.name,
        strategy=strategy,
        instruction=instruction,
        sizes=simd_sizes(analysis),
        bounds=bounds,
        reason=analysis.reason,
    )


def _size(result: SimulationResult) -> list[int]:
    grid = result.program.analysis.border.given.grid
    return [grid.width, grid.height]


def _refused(fault: Diagnostic) -> Document:
    return {
        "code": fault.code,
        "message": fault.message,
        "notes": list(fault.notes),
        "helps": list(fault.helps),
    }
