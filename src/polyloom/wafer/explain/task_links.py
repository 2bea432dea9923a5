"""The task graph as nodes and arrows: what flows from the ports through the tasks to the ports.

Source: dtg_codegen, Sec. 4.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.border.adapters import Adapter
from polyloom.wafer.dataflow.local_arrays import resident_tensors
from polyloom.wafer.dataflow.reductions import Chain, Results
from polyloom.wafer.dataflow.streams import Stream
from polyloom.wafer.dataflow.tasks import ComputeTask
from polyloom.wafer.dataflow.transfers import Move
from polyloom.wafer.explain.document import chain_kind


@dataclass(frozen=True)
class TaskNode:
    """``kind``: ``port``, ``resident``, ``adapt``, ``spread``, ``store``, ``initialize``, ``compute``,
    ``reduce``, ``gather``, ``move``.
    """

    name: str
    kind: str
    label: str


@dataclass(frozen=True)
class TaskArrow:
    """``what`` (a tensor) goes from one node to another."""

    origin: str
    target: str
    what: str


@dataclass(frozen=True)
class TaskLinks:
    """Nodes in the order in which data flow, and the arrows between them."""

    nodes: tuple[TaskNode, ...]
    arrows: tuple[TaskArrow, ...]


def task_links(analysis: LayerAnalysis) -> TaskLinks:
    """Return the task graph of a layer, all PEs at once."""
    nodes = {node.name: node for node in _nodes(analysis)}
    arrows = dict.fromkeys(_arrows(analysis))
    return TaskLinks(tuple(nodes.values()), tuple(a for a in arrows if {a.origin, a.target} <= nodes.keys()))


def _nodes(analysis: LayerAnalysis) -> Iterator[TaskNode]:
    graph = analysis.graph
    for tensor in analysis.border.given.inputs:
        yield TaskNode(_in_port(tensor), "port", f"{tensor} arrives")
    for tensor in resident_tensors(analysis.program, graph):
        yield TaskNode(_resident(tensor), "resident", f"{tensor} in memory")
    for adapter in analysis.border.adapters:
        way = "in" if adapter.inward else "out"
        yield TaskNode(_adapt(adapter), "adapt", f"adapt {adapter.tensor} {way}, {adapter.side.value}")
    for stream in graph.streams:
        yield TaskNode(_spread(stream), "spread", f"spread {stream.tensor} from {stream.side.value}")
    for store in graph.stores:
        yield TaskNode(f"store_{store.stream.name}", "store", f"store {store.stream.tensor}")
    for task in graph.initialize:
        yield TaskNode(f"initialize_{task.tensor}", "initialize", f"{task.tensor} = {task.value_text}")
    for compute in graph.compute:
        yield TaskNode(_compute(compute), "compute", compute.name)
    for result in graph.results:
        for step in result.steps:
            if isinstance(step, Chain):
                kind = chain_kind(step)
                yield TaskNode(step.name, kind, f"{kind} {step.tensor} to {step.side.value}")
            else:
                yield TaskNode(f"move_{step.name}", "move", f"move {step.name.replace('_', ' ')}")
    for tensor in analysis.border.given.outputs:
        yield TaskNode(_out_port(tensor), "port", f"{tensor} leaves")
    for tensor in analysis.program.outputs:
        if tensor not in analysis.border.given.outputs:
            yield TaskNode(_out_port(tensor), "resident", f"{tensor} stays")


def _arrows(analysis: LayerAnalysis) -> Iterator[TaskArrow]:
    yield from _arrows_in(analysis)
    for compute in analysis.graph.compute:
        yield from _arrows_to(analysis, compute)
    for result in analysis.graph.results:
        yield from _arrows_out(analysis, result)


def _arrows_in(analysis: LayerAnalysis) -> Iterator[TaskArrow]:
    adapters = [a for a in analysis.border.adapters if a.inward]
    for stream in analysis.graph.streams:
        tensor = stream.tensor
        adapter = analysis.border.adapter(tensor, stream.side)
        yield TaskArrow(_adapt(adapter) if adapter else _in_port(tensor), _spread(stream), tensor)
        for compute in analysis.graph.compute:
            if compute.stream is stream:
                yield TaskArrow(_spread(stream), _compute(compute), tensor)
    for adapter in adapters:
        yield TaskArrow(_in_port(adapter.tensor), _adapt(adapter), adapter.tensor)
    for store in analysis.graph.stores:
        yield TaskArrow(_spread(store.stream), f"store_{store.stream.name}", store.stream.tensor)
        yield TaskArrow(
            f"initialize_{store.stream.tensor}", f"store_{store.stream.name}", store.stream.tensor
        )


def _arrows_to(analysis: LayerAnalysis, compute: ComputeTask) -> Iterator[TaskArrow]:
    """What a computation task reads besides the stream that drives it."""
    graph = analysis.graph
    yield TaskArrow(f"initialize_{compute.statement.write.buffer}", _compute(compute), "")
    for _, access in compute.operand_reads():
        tensor = access.buffer
        yield TaskArrow(_resident(tensor), _compute(compute), tensor)
        for store in graph.stores:
            if store.stream.tensor == tensor:
                yield TaskArrow(f"store_{store.stream.name}", _compute(compute), tensor)
        for result in graph.results:
            if result.tensor == tensor:
                for name in _last_inside(analysis, result):
                    yield TaskArrow(name, _compute(compute), tensor)


def _arrows_out(analysis: LayerAnalysis, result: Results) -> Iterator[TaskArrow]:
    names, tensor = _writers(analysis, result), result.tensor
    inside: tuple[Chain | Move, ...] = (*result.reduce, *result.moves)
    for step in inside:
        here = step.name if isinstance(step, Chain) else f"move_{step.name}"
        yield from (TaskArrow(name, here, tensor) for name in names)
        names = (here,)
    for chain in result.leave:
        yield from (TaskArrow(name, chain.name, tensor) for name in names)
        adapter = analysis.border.adapter(tensor, chain.side)
        if adapter is not None:
            yield TaskArrow(chain.name, _adapt(adapter), tensor)
        yield TaskArrow(_adapt(adapter) if adapter else chain.name, _out_port(tensor), tensor)
    if not result.leave:
        yield from (TaskArrow(name, _out_port(tensor), tensor) for name in names)


def _last_inside(analysis: LayerAnalysis, result: Results) -> tuple[str, ...]:
    """Return the nodes after which an internal tensor is where it is read."""
    if result.moves:
        return (f"move_{result.moves[-1].name}",)
    return (result.reduce[-1].name,) if result.reduce else _writers(analysis, result)


def _writers(analysis: LayerAnalysis, result: Results) -> tuple[str, ...]:
    return tuple(_compute(t) for t in analysis.graph.compute if t.statement.write.buffer == result.tensor)


def _in_port(tensor: str) -> str:
    return f"in_{tensor}"


def _out_port(tensor: str) -> str:
    return f"out_{tensor}"


def _resident(tensor: str) -> str:
    return f"resident_{tensor}"


def _adapt(adapter: Adapter) -> str:
    return f"adapt_{adapter.name}"


def _spread(stream: Stream) -> str:
    return f"spread_{stream.name}"


def _compute(task: ComputeTask) -> str:
    return f"compute_{task.name}"
