"""Stages that hold samples: where branches join, so that the longer one stays a pipeline, and of copies.

    x -> a -> b -> add        x -> a -> b -> add
    x ------------> add       x -> hold -> hold -> add

A stage with its exchanges has up to five samples at once, on the way in, inside and on the way out. Without
holding stages a stream to a late reader would stop its source until that reader has taken the sample.
Not in the papers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import pairwise
from math import prod

import islpy as isl

from polyloom.diagnostics import Diagnostic, Unsupported, error
from polyloom.ir.expressions import Read
from polyloom.ir.host import Buffer, Index, View
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement
from polyloom.wafer.network.graph import Network, Sink, Stage, Stream


def with_delays(network: Network) -> Network:
    """Return a network in which all ways between two stages pass as many stages.

    Streams of scalars, and those that the host feeds, are left alone.
    """
    depth = _depths(network)
    stages = {stage.name: [stage] for stage in network.stages}
    streams: list[Stream] = []
    buffers = dict(network.held)
    for stream in network.streams:
        kept: list[Sink] = []
        for sink in stream.sinks:
            slack = depth[sink.stage] - depth[stream.source] - 1 if stream.source else 0
            tensor = network.buffer(stream.tensor)
            if slack < 1 or not tensor.extents:
                kept.append(sink)
                continue
            chain = tuple(holding_stages(f"{stream.tensor}_{sink.stage}", tensor, slack))
            stages[sink.stage][:0] = chain
            buffers |= {b.name: b for s in chain for b in s.program.tensors}
            flat = flat_elements(tensor, chain[0].streams[0])
            kept.append(Sink(chain[0].name, chain[0].streams[0], flat.reverse()))
            given = given_by(flat, chain[-1])
            streams += _between(chain, replace(sink, elements=sink.elements.apply_range(given)))
        streams.append(replace(stream, sinks=tuple(kept)))
    ordered = tuple(stage for stage in network.stages for stage in stages[stage.name])
    return replace(network, stages=ordered, streams=tuple(streams), held=buffers)


def with_copies(network: Network, samples: Collection[str] | None) -> Network:
    """Return a network in which what the host both sends and takes passes a stage that holds it.

    ``samples``: the inputs that each sample has anew, None: any may be.

    Errors: ``network-constant`` where a result is none of a sample's.
    """
    stages, streams, buffers = list(network.stages), list[Stream](), dict(network.held)
    for stream in network.streams:
        if stream.source is not None or not stream.results:
            streams.append(stream)
            continue
        if samples is not None and stream.tensor not in samples:
            raise Unsupported(_constant_result(stream))
        tensor = network.buffer(stream.tensor)
        (holding,) = holding_stages(f"{stream.tensor}_result", tensor, 1)
        flat = flat_elements(tensor, holding.streams[0])
        given = given_by(flat, holding)
        results = tuple((name, elements.apply_range(given)) for name, elements in stream.results)
        sinks = (*stream.sinks, Sink(holding.name, holding.streams[0], flat.reverse()))
        streams.append(replace(stream, sinks=sinks, results=()))
        streams.append(Stream(holding.program.outputs[0], holding.name, (), results))
        stages.append(holding)
        buffers |= {b.name: b for b in holding.program.tensors}
    return replace(network, stages=tuple(stages), streams=tuple(streams), held=buffers)


def _constant_result(stream: Stream) -> Diagnostic:
    name, _ = stream.results[0]
    return error(
        "network-constant",
        f"the result `{name}` is `{stream.tensor}`, which no sample brings",
        helps=["leave it out: it is known before anything runs"],
    )


def _depths(network: Network) -> dict[str, int]:
    """Return how many stages lie before each one on the longest way."""
    depth: dict[str, int] = {}
    for stage in network.stages:
        before = [
            depth[stream.source] + 1
            for stream in network.streams
            for sink in stream.sinks
            if sink.stage == stage.name and stream.source is not None
        ]
        depth[stage.name] = max(before, default=0)
    return depth


def holding_stages(name: str, tensor: Buffer, count: int) -> Iterator[Stage]:
    """Yield stages that hold a tensor, row by row as one dimension."""
    size = prod(tensor.extents)
    for k in range(count):
        old, new = (Buffer.of(f"{name}_{n}", tensor.type, (size,)) for n in (f"in{k}", f"out{k}"))
        plain = (Index.unit(0, 1),)
        statement = Statement.of(
            name=f"hold_{name}_{k}",
            iterators=("i",),
            domain=(size,),
            reads=(View(old.name, plain),),
            write=View(new.name, plain),
            expression=Read(0, tensor.type),
        )
        program = Program.of(statement.name, (old, new), (old.name,), (new.name,), (statement,))
        yield Stage(statement.name, program, (old.name,))


def _between(chain: tuple[Stage, ...], last: Sink) -> Iterator[Stream]:
    """Yield the streams from each stage of a chain to the next one, and to what reads it."""
    for stage, following in pairwise(chain):
        (given,), (taken,) = stage.program.outputs, following.streams
        same = isl.Map(f"{{ {taken}[i] -> {given}[i] }}")
        inside = isl.Set(f"{{ {taken}[i] : 0 <= i < {following.program.buffer(taken).extents[0]} }}")
        yield Stream(given, stage.name, (Sink(following.name, taken, same.intersect_domain(inside)),), ())
    yield Stream(chain[-1].program.outputs[0], chain[-1].name, (last,), ())


def flat_elements(tensor: Buffer, name: str) -> isl.Map:
    """Return ``{ tensor[i, j] -> name[8i + j] }``."""
    dims = [f"i{k}" for k in range(len(tensor.extents))]
    terms = [f"{prod(tensor.extents[k + 1 :])}*{dim}" for k, dim in enumerate(dims)]
    bounds = [f"0 <= {dim} < {extent}" for dim, extent in zip(dims, tensor.extents, strict=True)]
    place = f"{tensor.name}[{', '.join(dims)}] -> {name}[{' + '.join(terms) or 0}]"
    return isl.Map(f"{{ {place} : {' and '.join(bounds)} }}")


def given_by(flat: isl.Map, stage: Stage) -> isl.Map:
    """Return the same elements of what a holding stage gives."""
    return flat.set_tuple_name(isl.dim_type.out, stage.program.outputs[0])
