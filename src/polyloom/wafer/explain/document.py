"""The JSON document of ``explain``: every stage of the analysis of a layer, with its sets.

isl objects are strings. The numbers in comments are the paper's equations.
Source: dtg_codegen, Sec. 4 and 5; docs/interface.md (JSON of explain).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from polyloom.diagnostics import Diagnostic
from polyloom.polyhedra.text.documents import function_text, placement_text, relation_text
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.array_layout.order import layout_effects
from polyloom.wafer.border.adapters import Adapter
from polyloom.wafer.border.flows import kinds_of
from polyloom.wafer.collectives import Reduction
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.dataflow.reductions import Chain, Part, Results
from polyloom.wafer.dataflow.streams import Stream
from polyloom.wafer.dataflow.tasks import InitializeTask, StoreTask
from polyloom.wafer.dataflow.transfers import Move
from polyloom.wafer.drivers import DriverEstimate
from polyloom.wafer.explain.tasks import compute_entry, cost_entries
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.mapping.grid import Grid, Side
from polyloom.wafer.program.resources import RoleResources
from polyloom.wafer.program.wafer_program import Survey
from polyloom.wafer.simd.decision import SimdAnalysis

Document = dict[str, Any]
"""A JSON object."""


def explanation(analysis: LayerAnalysis) -> Document:
    """Return the document: plain dicts, lists, strings and numbers.

    ``tasks``: the computation tasks first, then adapters of inputs, initialisation, then communication in the
    order in which data flows.
    """
    mapping, given = analysis.mapping, analysis.border.given.grid
    return {
        "size": {"given": pes_text(given), "compute": pes_text(mapping.grid)},
        "ports": {n: placement_text(r) for n, r in (mapping.inputs | mapping.outputs).items()},  # (5) (6)
        "placement": {name: placement_text(r) for name, r in mapping.placement.items()},  # (10)
        "memory": [_memory(analysis.arrays_before[n], array) for n, array in analysis.arrays.items()],
        "tasks": [
            *(compute_entry(simd, analysis.arrays, analysis.options) for simd in analysis.simd),
            *(_adapt(adapter) for adapter in analysis.border.adapters if adapter.inward),
            *(_initialize(analysis, task) for task in analysis.graph.initialize),
            *(_spread(stream) for stream in analysis.graph.streams),
            *(_store(analysis, task) for task in analysis.graph.stores),
            *(entry for result in analysis.graph.results for entry in _chains(result)),
            *(_adapt(adapter) for adapter in analysis.border.adapters if not adapter.inward),
        ],
        "drivers": [
            _driver(estimate, other)
            for estimate, other in zip(analysis.drivers, analysis.compared, strict=True)
        ],
        "reductions": [_reduction(reduction) for reduction in analysis.reductions],
        "remarks": [_remark(diagnostic) for diagnostic in (*analysis.remarks, *analysis.extension_remarks)],
    }


def resources_document(found: Survey, machine: Machine) -> Document:
    """Return what each role of PE takes of a machine, and the machine's limits."""
    return {
        "machine": machine.name,
        "chains_wait": found.policy.value,
        "colors": [{"color": color, "carries": what} for color, what in found.routing.colors],
        "paired": [{"what": net[0], "name": net[1], "block": block} for net, block in found.blocks.items()],
        "roles": [_role(role) for role in found.resources],
    }


def _role(role: RoleResources) -> Document:
    return {
        "role": role.role,
        "pes": relation_text(role.pes),
        "amounts": [
            {"what": a.what, "used": a.used, "limit": a.limit, "names": list(a.names)} for a in role.amounts
        ],
        "simd_configurations": role.configurations,
        "loaded_for_each_use": list(role.loaded),
    }


def driven_tasks(analysis: LayerAnalysis, estimate: DriverEstimate) -> tuple[SimdAnalysis, ...]:
    """Return the tasks of the statements whose driver was chosen."""
    names = {name for name, _ in estimate.drivers}
    return tuple(simd for simd in analysis.simd if simd.task.statement.name in names)


def _driver(estimate: DriverEstimate, analysis: LayerAnalysis | None) -> Document:
    tasks = () if analysis is None else driven_tasks(analysis, estimate)
    return {
        "trigger": dict(estimate.drivers),
        "cycles": None if estimate.cycles is None else round(estimate.cycles, 1),
        "refused": estimate.reason or None,
        "tasks": [_way(task, analysis) for task in tasks if analysis is not None],
    }


def _way(task: SimdAnalysis, analysis: LayerAnalysis) -> Document:
    return {
        "statement": task.task.statement.name,
        "driver": None if task.task.stream is None else task.task.stream.tensor,
        "whole_stream": task.whole is not None,
        "instructions": cost_entries(task, analysis.arrays, analysis.options),
    }


def _reduction(reduction: Reduction) -> Document:
    return {
        "name": reduction.name,
        "tensor": reduction.tensor,
        "to": reduction.side,
        "pes": reduction.pes,
        "elements": reduction.elements,
        "shape": reduction.chosen.shape.value,
        "groups": list(reduction.chosen.groups),
        "estimates": {e.shape.value: e.cycles for e in reduction.estimates},
        "reason": reduction.reason,
    }


def pes_text(grid: Grid) -> str:
    """Return ``{ PE[0:3, 0:4] }``."""
    return f"{{ PE[0:{grid.width - 1}, 0:{grid.height - 1}] }}"


def chain_kind(chain: Chain) -> str:
    """Return ``reduce`` where PEs combine what arrives with what they have, else ``gather``."""
    return "gather" if chain.own.intersect(chain.upstream).is_empty() else "reduce"


def _memory(before: LocalArray, after: LocalArray) -> Document:
    return {
        "tensor": after.tensor,
        "local": after.name,
        "type": after.type.value,
        "elements": relation_text(after.elements),  # (7)
        "extent_before": list(before.extent_before),
        "map_before": function_text(before.map_before),  # (9)
        "extent": list(after.shape),
        "map": function_text(after.map),
        "bytes": after.bytes,
        "extensions": [effect.extension.value for effect in layout_effects(after)],
    }


def _adapt(adapter: Adapter) -> Document:
    """An adapter line; PEs and lines are those of the given rectangle."""
    ports = adapter.outer(adapter.entries()[0])
    for entry in adapter.entries()[1:]:
        ports = ports.union(adapter.outer(entry))
    return {
        "name": f"adapt_{adapter.name}",
        "kind": "adapt",
        "statement": None,
        "tensor": adapter.tensor,
        "border": adapter.side.value,
        "inward": adapter.inward,
        "one_stream": adapter.spread,
        "sparse": adapter.sparse,
        "pes": relation_text(adapter.line.pes()),
        "ports": relation_text(ports),
        "lines": relation_text(adapter.inner.curry()),
        "kinds": [
            {
                "from": kind.origin.name,
                "to": [target.name for target in kind.targets],
                "elements": relation_text(kind.items),
            }
            for kind in kinds_of(adapter)
        ],
    }


def _initialize(analysis: LayerAnalysis, task: InitializeTask) -> Document:
    statement = analysis.program.definition(task.tensor)
    array = analysis.arrays_before[task.tensor]
    value = task.value if math.isfinite(task.value) else str(task.value)
    return {
        "name": f"initialize_{task.tensor}",
        "kind": "initialize",
        "statement": None if statement is None else statement.name,
        "tensor": task.tensor,
        "local": array.name,
        "elements": relation_text(array.elements),
        "value": value,
    }


def _spread(stream: Stream) -> Document:
    return {
        "name": f"spread_{stream.name}",
        "kind": "spread",
        "statement": None,
        "tensor": stream.tensor,
        "from": stream.side.value,
        "sparse": stream.sparse,
        "index": list(stream.index_names),
        "ports": relation_text(stream.ports),
        "receivers": relation_text(stream.receivers),
        "passes": relation_text(stream.passes),
    }


def _store(analysis: LayerAnalysis, task: StoreTask) -> Document:
    return {
        "name": f"store_{task.stream.name}",
        "kind": "store",
        "statement": None,
        "tensor": task.stream.tensor,
        "local": analysis.arrays[task.stream.tensor].name,
        "elements": relation_text(task.stored),
    }


def _chains(result: Results) -> Iterator[Document]:
    for chain in result.steps:
        if isinstance(chain, Move):
            yield _move(result, chain)
            continue
        yield {
            "name": chain.name,
            "kind": chain_kind(chain),
            "statement": result.statement.name,
            "tensor": chain.tensor,
            "to": chain.side.value,
            "leaves": chain.leaves,
            "sparse": chain.sparse,
            "own": relation_text(chain.own),
            "upstream": relation_text(chain.upstream),
            **{part.value: relation_text(chain.positions(part)) for part in Part if part is not Part.OWN},
        }


def _move(result: Results, move: Move) -> Document:
    return {
        "name": f"move_{move.name}",
        "kind": "move",
        "statement": result.statement.name,
        "tensor": move.tensor,
        "along": "rows" if move.high is Side.EAST else "columns",
        "from": relation_text(move.sources),
        "to": relation_text(move.sinks),
    }


def _remark(diagnostic: Diagnostic) -> Document:
    return {
        "severity": diagnostic.severity.value,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "place": None if diagnostic.span is None else str(diagnostic.span),
        "notes": list(diagnostic.notes),
        "helps": list(diagnostic.helps),
    }
