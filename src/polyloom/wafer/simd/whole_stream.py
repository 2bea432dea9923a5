"""Dense streams that one SIMD instruction works on as they come: ``y = max(x, 0)`` for all of ``x``.

Source: dtg_codegen, Sec. 4.2 (tasks that read in an entire tensor). Not in the paper: when an operand of
the instruction can be the stream itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from polyloom.ir.expressions import Read, walk
from polyloom.polyhedra.binding import PE_PARAMETERS, bind, unbind_domain
from polyloom.wafer.dataflow.tasks import ComputeTask, TaskGraph, TaskKind
from polyloom.wafer.machine.descriptor_nests import Nest, find_nest, linear_function
from polyloom.wafer.machine.instruction_selection import Match, match_instruction


@dataclass(frozen=True, eq=False)
class WholeStream:
    """``nest``: the indices that arrive on a PE; ``instance_at``: ``{ index[k] -> S[i] }``, linear."""

    match: Match
    nest: Nest
    instance_at: isl.MultiAff


def whole_stream(task: ComputeTask, graph: TaskGraph) -> WholeStream | None:
    """Return how one instruction does a task on a whole dense stream; None where none can.

    It can where the stream drives this task alone and is not kept, every element that arrives has exactly
    one instance, and the instances follow the order of arrival in a linear way.
    """
    stream = task.stream
    if stream is None or task.kind is not TaskKind.DENSE:
        return None
    kept = any(store.stream is stream for store in graph.stores)
    shared = sum(other.stream is stream for other in graph.compute) > 1
    if kept or shared:
        return None
    match = match_instruction(task.statement, frozenset())
    by_index = unbind_domain(task.instances, "index", task.index_names)
    indices = stream.indices().intersect_params(stream_context(task))
    if match is None or _has_scalar(match) or not _takes_once(match, task) or not by_index.is_single_valued():
        return None
    if not indices.is_equal(by_index.domain()):
        return None
    nest, instance_at = find_nest(indices, ()), linear_function(by_index)
    return None if nest is None or instance_at is None else WholeStream(match, nest, instance_at)


def stream_context(task: ComputeTask) -> isl.Set:
    """Return the PEs that receive the stream, as constraints on PE_X and PE_Y."""
    assert task.stream is not None
    return bind(task.stream.receivers, PE_PARAMETERS)


def _takes_once(match: Match, task: ComputeTask) -> bool:
    """Whether one operand is the arriving element: ``x[i] * x[i]`` would take two from the fabric."""
    return sum(isinstance(o, Read) and o.position == task.trigger for o in match.operands) == 1


def _has_scalar(match: Match) -> bool:
    """Whether an operand is a value read from memory inside an expression: it could not be set up once."""
    inner = (node for operand in match.operands if not isinstance(operand, Read) for node in walk(operand))
    return any(isinstance(node, Read) for node in inner)
