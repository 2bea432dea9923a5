"""What the fabric takes of local arrays: elements that come, or leave, two in a wavelet.

Both of a pair are moved in one cycle only if the stride between them allows two elements a cycle, so that the
order of a stream's index is one more thing that the layout of its array decides about.
Source: wafer-target.md, 1.1 (the stride rule), 2.2 (16-bit operands of the fabric). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import islpy as isl

from polyloom.ir.reductions import Combine
from polyloom.polyhedra.bounds import constant_point, first_point
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.dataflow.reductions import Chain
from polyloom.wafer.dataflow.tasks import TaskGraph
from polyloom.wafer.machine.instruction_cost import stride_limit
from polyloom.wafer.machine.options import Extension
from polyloom.wafer.simd.decision import SimdOptions


@dataclass(frozen=True)
class FabricUse:
    """Elements of an array that pass the fabric in pairs.

    ``step``: from an element to the next in each dimension of the tensor; ``pes``: how many PEs there are.
    """

    tensor: str
    step: tuple[int, ...]
    pes: int

    @property
    def tensors(self) -> frozenset[str]:
        """The tensor alone."""
        return frozenset({self.tensor})

    def cycles(self, arrays: Mapping[str, LocalArray]) -> float:
        """Return the cycles of all PEs, with the array as it lies, beyond one for each pair."""
        array = arrays[self.tensor]
        stride = sum(s * step for s, step in zip(array.signed_strides, self.step, strict=True))
        return 0 if stride_limit(stride, 1) >= 2 else self.pes * prod(array.extent) / 2

    def least(self, group: frozenset[str], arrays: Mapping[str, LocalArray]) -> float:
        """Return what they cost at least, however a group of arrays lies."""
        return 0 if self.tensor in group else self.cycles(arrays)


def fabric_uses(
    graph: TaskGraph, arrays: Mapping[str, LocalArray], options: SimdOptions, pes: int
) -> Iterator[FabricUse]:
    """Yield what streams store, and what chains take, where elements may travel in pairs."""
    if options.machine.wavelet_elements < 2 or not options.has(Extension.PAIRED_WAVELETS):
        return
    steps = (step for result in graph.results for step in result.steps)
    chains = (c for c in steps if isinstance(c, Chain) and c.reduction in (Combine.ADD, Combine.CONCATENATE))
    for store in graph.stores:
        stream = store.stream
        if not stream.sparse and stream.type.size == 2:
            step = _step(stream.ports, stream.ports.range().unwrap().domain())
            if step is not None:
                yield FabricUse(stream.tensor, step, pes)
    for chain in chains:
        if not chain.sparse and chain.type.size == 2 and chain.tensor in arrays:
            step = _step(chain.order, chain.contributors)
            if step is not None:
                yield FabricUse(chain.tensor, step, pes)


def _step(order: isl.Map, pes: isl.Set) -> tuple[int, ...] | None:
    """Return how the second element of a line is ahead of the first one; None where there is only one.

    ``order``: ``{ x[i] -> [PE[x, y] -> index[k]] }``, where ``pes`` has one PE of each line at least.
    """
    by_pe = order.range().unwrap().intersect_domain(pes)
    if by_pe.is_empty():
        return None
    here = order.intersect_range(by_pe.intersect_domain(by_pe.domain().lexmin()).wrap())
    by_index = here.range_factor_range().reverse()
    indices = by_index.domain()
    first = first_point(indices)
    second = first_point(indices.subtract(first))
    if second.is_empty():
        return None
    points = [constant_point(by_index.intersect_domain(at).range()) for at in (first, second)]
    if points[0] is None or points[1] is None:
        return None
    return tuple(b - a for a, b in zip(*points, strict=True))
