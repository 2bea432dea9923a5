"""Results that leave past other PEs: each PE's in its turn, by switches of routers.

A PE that passes results on takes every wavelet off the fabric and gives it back. Here its router lets pass
what comes from the PEs behind it. A wavelet behind the last of that turns the switch: what the PE itself has
goes next, and the wavelet behind it turns the switch back, and that of the next router.

    PE 0:  own own turn(1)           PE 1, 2:  (pass) own own turn(2)           PE 3:  (pass) own own turn(1)

Where results are ordered by an outer index first, all PEs have a turn for each of its values.
Not in the papers. Source: Cerebras SDK 2.10 documentation, switches of routes, commands of control wavelets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import islpy as isl

from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.effort import naming
from polyloom.wafer.border.peeling import Border
from polyloom.wafer.codegen.segments import Elements, cut_at, takes_turns
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.dataflow.reductions import Chain, Part, Results
from polyloom.wafer.dataflow.tasks import TaskGraph
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.machine.options import Extension
from polyloom.wafer.simd.decision import SimdMode, SimdOptions

ALL_PES = isl.Set("[PE_X, PE_Y] -> { : }")
"""A context of which the coordinates of a PE know nothing."""

_WORSE = 1.1
"""How much longer a line may take to give everything away: its PEs are free for other work meanwhile."""


def with_turns(
    graph: TaskGraph, arrays: Mapping[str, LocalArray], border: Border, options: SimdOptions
) -> TaskGraph:
    """Let the PEs of a line send what leaves in turn where that works, and is not much slower."""
    if options.mode is SimdMode.OFF or not options.has(Extension.TAKING_TURNS):
        return graph
    if _most_colors(graph, border) > options.machine.switched_colors:
        return graph

    def chosen(result: Results) -> Results:
        if result.tensor not in arrays:
            return result
        leave = (_chosen(chain, arrays[chain.tensor], border, options.machine) for chain in result.leave)
        return replace(result, leave=tuple(leave))

    return replace(graph, results=tuple(chosen(result) for result in graph.results))


def own_elements(chain: Chain, array: LocalArray, context: isl.Set) -> Elements:
    """Return what PEs have of their own, ``context``: which of them, by their coordinates."""
    items = chain.positions(Part.OWN).intersect_params(context)
    local = chain.element_at().intersect_domain(items).apply_range(isl.Map.from_multi_aff(array.map))
    return Elements(Part.OWN.value, items, local)


def _most_colors(graph: TaskGraph, border: Border) -> int:
    """Return how many colors a layer may take: any of them may be a chain's."""
    steps = sum(len(result.steps) for result in graph.results)
    return len(graph.streams) + 2 * steps + sum(1 + len(a.entries()) for a in border.adapters)


def _chosen(chain: Chain, array: LocalArray, border: Border, machine: Machine) -> Chain:
    adapted = border.adapter(chain.tensor, chain.side) is not None
    one_chain = chain.leaves and not chain.level and chain.step == 1
    gathers = chain.busy[Part.COMBINE].is_empty() and not chain.busy[Part.FORWARD].is_empty()
    if chain.sparse or adapted or not one_chain or not gathers:
        return chain
    with naming(f"in which order the results of `{chain.tensor}` leave"):
        depth = _depth(chain, array, machine)
    return chain if depth is None else replace(chain, turns=depth, second=isl.Set("{ PE[x, y] : false }"))


def _depth(chain: Chain, array: LocalArray, machine: Machine) -> int | None:
    """Return the outer indices for each value of which all PEs have a turn; None where there are none."""
    own = own_elements(chain, array, ALL_PES)
    for depth in range(chain.index_rank):
        if takes_turns(chain.positions(Part.FORWARD), own.items, depth):
            found = cut_at([own], depth)
            if found is not None:
                (segment,) = found.segments
                elements = math.prod(high for _, high in integer_bounds(segment.nest.size))
                return depth if _pays(chain, elements, machine) else None
    return None


def _pays(chain: Chain, elements: int, machine: Machine) -> bool:
    """Whether turns of so many elements are not much slower than PEs that pass each other's on."""
    low, high = integer_bounds(chain.members())[0 if chain.side.step[0] else 1]
    pes = high - low + 1
    wavelets = -(-elements // machine.wavelet_elements) if chain.type.size == 2 else elements
    passing = 2 * machine.simd_launch + machine.set_base_address + pes * wavelets
    return pes * (wavelets + turn_cycles(machine)) <= _WORSE * passing


def turn_cycles(machine: Machine) -> int:
    """Return the cycles between the last element of a turn and the first one of the next."""
    return machine.hop_latency + 2
