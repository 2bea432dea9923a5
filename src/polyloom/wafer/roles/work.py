"""What the PEs of a role take part in: streams, and how these are received; parts of chains, kinds of moves.

Found once for each role, before any code is made: synchronisation, deadlock analysis and code generation
get the same values.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from polyloom.polyhedra.binding import unbind_domain
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.dataflow.reductions import Chain, Part
from polyloom.wafer.dataflow.streams import Stream
from polyloom.wafer.dataflow.tasks import StoreTask
from polyloom.wafer.dataflow.transfers import Move, MoveKind
from polyloom.wafer.machine.descriptor_nests import Nest, find_nest, linear_function
from polyloom.wafer.roles.roles import Role
from polyloom.wafer.simd.decision import SimdAnalysis, SimdMode
from polyloom.wafer.simd.whole_stream import WholeStream


@dataclass(frozen=True, eq=False)
class WholeStore:
    """One instruction that stores a whole dense stream.

    ``nest``: the indices that arrive on a PE; ``local_at``: ``{ index[k] -> x_local[i] }``, linear.
    """

    nest: Nest
    local_at: isl.MultiAff


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamOnRole:
    """A stream as the PEs of one role receive it: what is kept, and what it drives.

    ``kept``: ``[PE_X, PE_Y] -> { index[k] -> x_local[i] }``, where something is kept; ``in_box``: the same
    for all elements that have a cell in the array, needed or not; ``whole_store``: how
    one instruction keeps all of it, if one can and is allowed to.
    """

    stream: Stream
    label: str
    store: StoreTask | None
    drives: tuple[SimdAnalysis, ...]
    kept: isl.Map | None
    in_box: isl.Map | None
    whole_store: WholeStore | None

    @property
    def queue(self) -> str:
        """The input queue's name."""
        return f"{self.label}_in"

    @property
    def whole_compute(self) -> WholeStream | None:
        """How one instruction does the only task that the stream drives; None where that was not decided."""
        if self.store is not None or len(self.drives) != 1:
            return None
        return self.drives[0].whole

    @property
    def stalls(self) -> bool:
        """Whether receiving it may hold the PE's main thread.

        Elements of a sparse stream start tasks; one instruction receives beside the main thread.
        """
        beside = self.whole_store is not None or self.whole_compute is not None
        return not self.stream.sparse and not beside

    def names(self) -> dict[str, str]:
        """Return the names of the outer index variables in the code: ``x_index_0``, ..."""
        names = self.stream.index_names
        return {name: f"{self.label}_{name}" for name in names[:-1]}


def streams_on(analysis: LayerAnalysis, role: Role) -> tuple[StreamOnRole, ...]:
    """Return the streams that a role receives, in the order of ``iport_map``."""
    received = [s for s in analysis.graph.streams if role.overlaps(s.receivers)]
    return tuple(_received(analysis, role, stream, received) for stream in received)


def _received(analysis: LayerAnalysis, role: Role, stream: Stream, received: list[Stream]) -> StreamOnRole:
    alone = [s for s in received if stream.tensor in (s.tensor, s.name)] == [stream]
    stores = (s for s in analysis.graph.stores if s.stream is stream and role.overlaps(s.stored.domain()))
    store = next(stores, None)
    drives = tuple(a for a in analysis.simd if a.task.stream is stream and _present(role, a))
    array = None if store is None else analysis.arrays[stream.tensor]
    kept = None if array is None else _kept(role, stream, array, array.held())
    in_box = None if array is None else _kept(role, stream, array, array.in_box())
    one = not stream.sparse and not drives and analysis.options.mode is not SimdMode.OFF
    return StreamOnRole(
        stream=stream,
        label=stream.tensor if alone else stream.name,
        store=store,
        drives=drives,
        kept=kept,
        in_box=in_box,
        whole_store=None if kept is None or not one else _whole_store(role, stream, kept),
    )


def _present(role: Role, analysis: SimdAnalysis) -> bool:
    return not analysis.task.known.intersect(role.context).is_empty()


def _kept(role: Role, stream: Stream, array: LocalArray, cells: isl.Set) -> isl.Map:
    elements = stream.arriving().intersect(cells).intersect_params(role.context)
    by_index = unbind_domain(elements, "index", stream.index_names)
    return by_index.apply_range(isl.Map.from_multi_aff(array.map))


def _whole_store(role: Role, stream: Stream, kept: isl.Map) -> WholeStore | None:
    indices = stream.indices().intersect_params(role.context)
    if not indices.is_subset(kept.domain()):
        return None
    nest, local_at = find_nest(indices, ()), linear_function(kept)
    return None if nest is None or local_at is None else WholeStore(nest, local_at)


def kinds_on(role: Role, move: Move) -> tuple[MoveKind, ...]:
    """Return what the PEs of a role do for a move."""
    return tuple(kind for kind in move.kinds if role.overlaps(kind.pes))


def parts_on(role: Role, chain: Chain) -> frozenset[Part]:
    """Return what the PEs of a role do with elements of a chain."""
    parts = chain.busy.items() if chain.turns is None else ((Part.OWN, chain.busy[Part.OWN]),)
    return frozenset(part for part, pes in parts if role.overlaps(pes))
