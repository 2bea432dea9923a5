"""A lower bound on the cycles of a network that does not depend on the code that is emitted for it."""

from __future__ import annotations

import numpy as np

from polyloom.wafer.network.floor_plan import Place
from polyloom.wafer.network.program import NetworkProgram
from polyloom.wafer.simulation.lower_bound import Limit, limit_of


def limit_of_network(network: NetworkProgram, samples: int) -> Limit:
    """Return the largest of the limits of its layers under their maps, and of its streams."""
    streams = (
        Limit(carried.length * samples, f"the stream {carried.net.stream.tensor}, one element a cycle")
        for carried in network.carried
    )
    layers = (
        Limit(limit.cycles, f"the layer {place.block.placed.stage.name}: {limit.by}")
        for place in network.plan.places
        if (limit := limit_of_place(place, samples)) is not None
    )
    return max((*layers, *streams), key=lambda limit: limit.cycles, default=Limit(0, "nothing"))


def limit_of_place(place: Place, samples: int) -> Limit | None:
    """Return the limit of a layer; None where a sparse stream brings what only its data tell."""
    program = place.block.placed.program
    if any(group.sparse for group in (*program.inputs, *program.outputs)):
        return None
    axes = (samples,) if samples > 1 else ()
    tensors = program.analysis.program
    dense = {
        group.tensor: np.broadcast_to(np.ones(1, np.int8), (*axes, *tensors.buffer(group.tensor).extents))
        for group in program.inputs
    }
    return limit_of(program, dense, samples)
