"""How each task of a layer is done, decided once for maps that have the task in common.

Maps that are compared differ in a port or two: what PEs compute on their local memory is the same in most.
"""

from __future__ import annotations

from collections.abc import Mapping

from polyloom.polyhedra.effort import keeps_answers, refusing, remembered
from polyloom.wafer.array_layout.bank_distances import walk_of
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.dataflow.tasks import ComputeTask, TaskGraph
from polyloom.wafer.simd.decide import undecided, vectorise
from polyloom.wafer.simd.decision import SimdAnalysis, SimdOptions, Strategy
from polyloom.wafer.simd.whole_stream import whole_stream

Arrays = Mapping[str, LocalArray]


def first_decision(task: ComputeTask, arrays: Arrays, options: SimdOptions, graph: TaskGraph) -> SimdAnalysis:
    """Return what is found for a task with the arrays as they are (``undecided``)."""
    with refusing(_question(task), _STATEMENT, task.statement.span):
        if task.stream is None:
            return _found(task, arrays, options)
        return undecided(task, arrays, options, whole_stream(task, graph))


def decision(
    found: SimdAnalysis, arrays: Arrays, options: SimdOptions, *, transposable: bool
) -> SimdAnalysis:
    """Return how a task is done (``vectorise``); ``found``: as of ``first_decision`` with the same arrays."""
    task = found.task
    with refusing(_question(task), _STATEMENT, task.statement.span):
        if task.stream is None and keeps_answers():
            return _decided(task, arrays, options, transposable)
        return vectorise(found, arrays, options, transposable=transposable)


@remembered
def _found(task: ComputeTask, arrays: Arrays, options: SimdOptions) -> SimdAnalysis:
    return undecided(task, arrays, options)


@remembered
def _decided(task: ComputeTask, arrays: Arrays, options: SimdOptions, transposable: bool) -> SimdAnalysis:
    """Along what the instructions move is found, too: it would be, and counted, for the first map only."""
    made = vectorise(_found(task, arrays, options), arrays, options, transposable=transposable)
    if made.innermost.strategy is not Strategy.NONE and made.innermost.whole is None:
        walk_of(made.innermost)
    return made


def _question(task: ComputeTask) -> str:
    return f"the SIMD instructions of `{task.statement.name}`"


_STATEMENT = 100_000_000
"""What isl may spend on the SIMD instructions of one statement; most take a thousandth."""
