"""A state: an input whose value for a sample is what came of the sample before, as weights in training.

    W -> forward, update -> V        W = V: update -> hold_W -> forward, update

A stage holds it. Its collectors have the first value from the host, send what they have for each sample, and
then take what came of it; what came of the last sample stays with them. So a sample waits for the one before
where it needs the state, and nowhere else. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import islpy as isl

from polyloom.diagnostics import PolyloomError, error
from polyloom.ir.program import Program
from polyloom.wafer.network.delays import flat_elements, given_by, holding_stages
from polyloom.wafer.network.graph import Network, Sink, Stage, Stream


def with_state(network: Network, state: Mapping[str, str]) -> Network:
    """Return a network that keeps a state. ``state``: inputs that stream, each with the output that is its
    value for the next sample; those that the host computes stay with it.

    Errors: ``network-state`` where there is no such input or output, or they differ in shape or type.
    """
    for old, new in state.items():
        if (old, new) in network.state and network.before is not None:
            _check(network.before.program, network.before.program.inputs, old, new)
        else:
            _check(network.program, network.streamed, old, new)
            network = _with_one(network, old, new)
    return network


def _check(program: Program, inputs: tuple[str, ...], old: str, new: str) -> None:
    if old not in inputs or new not in program.outputs:
        message = f"`{old}` is no input that a layer reads, or `{new}` no output of `{program.name}`"
    elif (a := program.buffer(old)).extents != (b := program.buffer(new)).extents or a.type != b.type:
        message = f"`{old}` and `{new}` differ in shape or type"
    else:
        return
    helps = ["a state is an input, and the output that is its value for the next sample"]
    raise PolyloomError(error("network-state", message, helps=helps))


def _with_one(network: Network, old: str, new: str) -> Network:
    tensor = network.program.buffer(old)
    (holding,) = holding_stages(f"{old}_{new}", tensor, 1)
    flat = flat_elements(tensor, holding.streams[0])
    streams = tuple(_rewired(stream, old, new, holding, flat) for stream in network.streams)
    buffers = dict(network.held) | {b.name: b for b in holding.program.tensors}
    return replace(network, stages=(*network.stages, holding), streams=streams, held=buffers)


def _rewired(stream: Stream, old: str, new: str, holding: Stage, flat: isl.Map) -> Stream:
    """Let a stream of the old value come from the holding stage, and one of the new value go there."""
    if stream.source is None and stream.tensor == old:
        given = given_by(flat, holding)
        sinks = tuple(replace(s, elements=s.elements.apply_range(given)) for s in stream.sinks)
        return Stream(holding.program.outputs[0], holding.name, sinks, (), state=(old, new))
    found = dict(stream.results).get(new)
    if found is None:
        return stream
    named = flat.set_tuple_name(isl.dim_type.in_, new).reverse()
    sink = Sink(holding.name, holding.streams[0], named.apply_range(found))
    results = tuple((name, elements) for name, elements in stream.results if name != new)
    return replace(stream, sinks=(*stream.sinks, sink), results=results)
