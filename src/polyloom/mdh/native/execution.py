"""Host programs as C functions of this process, run on the arrays of a caller."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import prod
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import PolyloomError, error
from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.host import Buffer, HostNode, HostProgram, MdHom, Role, uses
from polyloom.ir.transform.flatten_dimensions import with_longer_rows
from polyloom.ir.transform.joining.maps import joined_maps
from polyloom.ir.transform.narrow_integers import narrow_integers
from polyloom.ir.transform.plainer_reductions import plainer_reductions
from polyloom.ir.transform.records.digits_of_iterators import with_digits_of_iterators
from polyloom.ir.transform.records.unrolled_records import unrolled_records
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.passes import after_pass, at_the_end
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.asked import proved
from polyloom.mdh.lowering.chunked_scans import with_own_bins
from polyloom.mdh.lowering.constants.at_load import Packed, fixed_nodes, packed
from polyloom.mdh.lowering.constants.constant_terms import constant_terms_apart
from polyloom.mdh.lowering.invariant_fills import alike, hoisted_fills
from polyloom.mdh.lowering.nests.carried_vectors import carried_vectors
from polyloom.mdh.lowering.nests.independent_rows import independent_rows
from polyloom.mdh.lowering.nests.interchanged_loops import interchanged_loops
from polyloom.mdh.lowering.nests.invariant_branches import invariant_branches_outside
from polyloom.mdh.lowering.nests.joined_updates import joined_updates
from polyloom.mdh.lowering.nests.linear_recurrences import recurrences_in_vectors
from polyloom.mdh.lowering.nests.maps_in_order import maps_in_order
from polyloom.mdh.lowering.nests.masked_loops import masked_loops
from polyloom.mdh.lowering.nests.past_caches import past_caches
from polyloom.mdh.lowering.nests.reducing_loops import reducing_loops
from polyloom.mdh.lowering.nests.scalars_in_registers import scalars_in_registers
from polyloom.mdh.lowering.nests.scans_in_vectors import scans_in_vectors
from polyloom.mdh.lowering.nests.wide_counters import wide_counters
from polyloom.mdh.lowering.nests.wrapped_scalars import wrapped_scalars
from polyloom.mdh.lowering.pieces.affine import affine_pieces
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.lowering.rows import rows_of
from polyloom.mdh.lowering.sweeps.fusion import fused_sweeps
from polyloom.mdh.lowering.team_loops import alone_if_quick, for_a_team
from polyloom.mdh.lowering.tiles.pipeline import lower_scheduled
from polyloom.mdh.lowering.time_tiles.choose import in_tiles, with_time_tiles
from polyloom.mdh.lowering.time_tiles.wavefronts import with_wavefronts
from polyloom.mdh.native.alike_loops import final_with_forms
from polyloom.mdh.native.device import NativeDevice
from polyloom.mdh.native.entry import Entry, built
from polyloom.mdh.native.local_memory import Span, shared_places, spans_of
from polyloom.mdh.native.team import Call
from polyloom.mdh.runtime.arguments import Bound
from polyloom.mdh.runtime.arrays import DeviceArray, is_usable
from polyloom.mdh.runtime.execution import Execution, Timing
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.tree.nodes import For, Function, Kind, Mark
from polyloom.mdh.tree.registers import final
from polyloom.mdh.tree.rewrite import arrays_used, walk
from polyloom.mdh.tree.team_barriers import without_needless_barriers
from polyloom.polyhedra.loops.tree import IntExpression, Number

NDArray = npt.NDArray[Any]


LINE = 64
"""Bytes of a cache line."""
LEAST_LARGE = 1 << 17
"""Bytes from which on C libraries give arrays pages of their own, which begin alike."""
_NONE: Mapping[str, object] = {}

ONCE = ("-O2",)
"""Flags for what runs once for given constants: gcc takes a third of the time that -O3 takes."""

Schedules = Callable[[MdHom, HostProgram, DeviceModel], Schedule | None]
"""Chooses the schedule of an md_hom of a program; None: it stays a plain nest."""


def plain(hom: MdHom, program: HostProgram, device: DeviceModel) -> None:
    """Leave every md_hom a plain nest."""


def function_of(
    program: HostProgram,
    schedules: Schedules,
    device: DeviceModel,
    *,
    marked: bool = False,
    of_many: bool = False,
) -> Function:
    """Return a program as it is printed for a processor.

    ``marked``: with places where time is taken. ``of_many``: open sizes are such that it has many points.
    """
    tree = tree_of(program, schedules, device, marked=marked, of_many=of_many)
    return past_caches(final(_in_registers(tree)), device.caches)


def _in_registers(function: Function, kept: Collection[str] = ()) -> Function:
    return wide_counters(wrapped_scalars(scalars_in_registers(function, kept)))


def _used(load: Function) -> set[str]:
    """Return the arrays that are used where constants are bound, not the views of them."""
    views = {r.name: r.parameter for r in load.reshaped}
    return {views.get(name, name) for name in arrays_used(load.body)}


def tree_of(
    program: HostProgram,
    schedules: Schedules,
    device: DeviceModel,
    *,
    marked: bool = False,
    of_many: bool = False,
) -> Function:
    """Return the loops of a program under its schedules, before they are written out for a printer.

    One in which nothing is shared in the end is made for one thread: nothing is copied or cut for others.
    """
    tree = _tree_for(program, schedules, device, marked=marked, of_many=of_many)
    if device.compute_units == 1 or any(isinstance(s, For) and s.kind is Kind.GROUP for s in walk(tree.body)):
        return tree
    alone = replace(device, compute_units=1)
    return _tree_for(program, schedules, alone, marked=marked, of_many=of_many)


def _tree_for(
    program: HostProgram, schedules: Schedules, device: DeviceModel, *, marked: bool, of_many: bool
) -> Function:
    program = after_pass("pieces with affine subscripts", affine_pieces(program))
    tiled = with_time_tiles(program, device)
    choose = in_tiles(tiled, schedules)
    program = after_pass("the tiling of wavefronts", with_wavefronts(tiled.program, device))
    program = after_pass("the fusion of sweeps", fused_sweeps(program, device))
    program = after_pass("digits of iterators", with_digits_of_iterators(program))
    program = after_pass("rows of records as longer rows", with_longer_rows(program))
    program = after_pass("the unrolling of records", unrolled_records(program))
    program = after_pass("the joining of maps", joined_maps(program))
    program = after_pass("the ordering of maps", maps_in_order(program, device))
    given = program.by_name
    program = after_pass("bins of threads", with_own_bins(program, device, of_many=of_many))
    own = program.by_name.keys() - given.keys()
    program = after_pass("plainer reductions", plainer_reductions(program))
    program = after_pass("narrower integers", narrow_integers(program))
    rows = rows_of(program, own)
    lower = lower_scheduled(program, lambda hom, around: choose(hom, around, device), rows.homs)
    tree = program_tree(program, lower, rows.reshaped, own=own, marked=marked)
    tree = joined_updates(interchanged_loops(invariant_branches_outside(tree), device.compute_units))
    tree = scans_in_vectors(recurrences_in_vectors(tree, device.vector_bytes), device.vector_bytes)
    tree = reducing_loops(carried_vectors(tree, device.vector_bytes))
    tree = masked_loops(tree, device.vector_bytes)
    tree = alone_if_quick(for_a_team(independent_rows(tree, device.compute_units)))
    return proved(program, without_needless_barriers(tree))


class NativeArray(DeviceArray):
    """An array that stays in memory as programs want it; ``array`` is it, ``version`` counts its changes."""

    def __init__(self, array: NDArray) -> None:
        self.array = aligned(array.shape, array.dtype)
        self.array[...] = array
        self.version = 0
        self.shape, self.dtype = array.shape, array.dtype

    def get(self) -> NDArray:
        """Return a copy."""
        return self.array.copy()

    def _overwrite(self, array: NDArray) -> None:
        self.array[...] = array
        self.version += 1


@dataclass(frozen=True)
class Part:
    """A node of a program that was timed: the seconds of all its ``runs``."""

    node: str
    seconds: float
    runs: int


@dataclass(eq=False)
class Loading:
    """What is done where constants are others than before; ``entry``: None where there is nothing to do.

    ``constants``: the names of arrays that it reads. ``done``: for which ones it was done; None: never.
    """

    entry: Entry | None
    constants: frozenset[str]
    done: tuple[tuple[NDArray, int], ...] | None = None

    def follow(
        self, given: Mapping[str, NDArray | DeviceArray], addresses: Callable[[], Sequence[int]]
    ) -> None:
        """Do it, unless constants are device arrays in which nothing was changed since."""
        if self.entry is None:
            return
        arrays = [given[name] for name in sorted(self.constants)]
        now = [(a.array, a.version) for a in arrays if isinstance(a, NativeArray)]
        before = () if self.done is None else self.done
        is_known = self.done is not None and len(now) == len(arrays) == len(before)
        if is_known and all(a is b and v == w for (a, v), (b, w) in zip(now, before, strict=True)):
            return
        self.entry.call(addresses())()
        self.done = tuple(now)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A program that was built for its sizes. ``kept``: its local arrays; their memory stays.

    ``nodes``: the nodes that have marks, by their numbers.
    """

    entry: Entry
    call: Call
    kept: dict[str, NDArray]
    shapes: Mapping[str, tuple[int, ...]]
    loading: Loading
    nodes: tuple[str, ...] = ()

    def addresses(self, arrays: Mapping[str, NDArray | DeviceArray]) -> list[int]:
        """Return the addresses that the function takes; ``arrays``: those that callers give."""
        known = {**self.kept, **arrays}
        return [address(known[n]) if n in known else 0 for n in self.entry.parameters]


class NativeExecutable:
    """A host program on the processor: built once for each set of parameter values."""

    def __init__(
        self,
        program: HostProgram,
        device: NativeDevice,
        schedules: Schedules,
        constants: Collection[str] = (),
    ) -> None:
        """``constants``: inputs that seldom change: what depends on them alone is done when they do."""
        self.program, self.device, self.schedules = program, device, schedules
        self.constants = frozenset(
            b.name for b in program.buffers if b.name in constants and b.role is Role.INPUT
        )
        self.lock = RLock()
        self.valid = np.ones(1, np.int64)
        """1 until what was built is forgotten, which makes it another array."""
        self._prepared: dict[tuple[bool, tuple[tuple[str, int], ...]], Prepared] = {}

    def known_sizes(self) -> list[dict[str, int]]:
        """Return the values of parameters for which it was built."""
        with self.lock:
            return [dict(values) for timed, values in self._prepared if not timed]

    def forget(self) -> None:
        """Forget what was built."""
        self.valid[0] = 0
        self.valid = np.ones(1, np.int64)
        self._prepared.clear()

    def tree(self, parameters: Mapping[str, int]) -> Function:
        """Return the loops of the program for these parameters; all that it does, at loading too."""
        return tree_of(specialise(self.program, parameters), self.schedules, self.device.model)

    def resident(self, array: NDArray) -> NativeArray:
        """Return an array that calls take where it lies."""
        return NativeArray(array)

    def prepared(
        self, parameters: Mapping[str, int], *, timed: bool = False, arrays: Mapping[str, object] = _NONE
    ) -> Prepared:
        """Return the function for these parameters; ``timed``: with a look at the clock after each node.

        ``arrays``: what it is called with first; others begin where these do in a line, as a rule.
        Errors: ``native-build``, ``native-load``, ``memory``.
        """
        key = timed, tuple(sorted(parameters.items()))
        with self.lock:
            if key not in self._prepared:
                self._prepared[key] = self._made(parameters, arrays, timed=timed)
            return self._prepared[key]

    def _made(self, parameters: Mapping[str, int], arrays: Mapping[str, object], *, timed: bool) -> Prepared:
        begins = _begins(arrays)
        special = after_pass("specialisation", specialise(self.program, parameters))
        at_the_end("specialisation", special)
        special = constant_terms_apart(special, self.constants)
        alone, constants = fixed_nodes(special, self.constants)
        fills = hoisted_fills(special)
        before = [node for node in special.body if node in {*alone, *fills}]
        marked = (
            replace(b, constant=b.name in constants, behind=begins.get(b.name)) for b in special.buffers
        )
        special = replace(special, buffers=tuple(marked))
        each = tuple(node for node in special.body if all(node is not other for other in before))
        schedules, model = self.schedules, self.device.model
        function = tree_of(replace(special, body=each), schedules, model, marked=timed)
        load = tree_of(replace(special, body=tuple(before)), schedules, model)
        split = packed(function, load, constants)
        with ThreadPoolExecutor(2) as beside:  # nobody waits for the compiler of another one
            loading = beside.submit(self._loading, split.load)
            memory = beside.submit(_local_memory, special, split, before, alike(each, fills, special))
            entry = built(
                past_caches(final_with_forms(_in_registers(split.function, _used(split.load))), model.caches),
                self.device.compiler,
                self.device.threads,
            )
        shapes = {b.name: shape_of(b, {}) for b in special.buffers}
        prepared = Prepared(
            entry=entry,
            call=entry.call([0] * len(split.function.parameters)),
            kept=memory.result(),
            shapes=shapes,
            loading=loading.result(),
            nodes=_marked(function),
        )
        for k, place in enumerate(prepared.addresses({})):
            prepared.call.arrays[k] = place
        return prepared

    def _loading(self, load: Function) -> Loading:
        if not load.body:
            return Loading(None, frozenset())
        named = replace(final(load), name=f"{load.name}_load")
        entry = built(named, self.device.compiler, self.device.threads, flags=ONCE)
        used = _used(load)
        return Loading(entry, frozenset(used & self.constants))

    def run(self, bound: Bound, *, timed: bool = False) -> Execution:
        """Run once. Arrays that the program writes are changed in place; outputs not given are made.

        ``timed``: a function with a clock in it, which is built for that, says how long each node took.

        Errors: those of ``prepared``; ``memory``.
        """
        begin = time.perf_counter()
        prepared = self.prepared(bound.parameters, timed=timed, arrays=bound.arrays)
        ready = time.perf_counter()
        arrays = dict(bound.arrays)
        lent: dict[str, NDArray] = {}
        for buffer in self.program.buffers:
            if buffer.role is not Role.LOCAL:
                name = buffer.name
                if name not in arrays:
                    arrays[name] = _memory(prepared.shapes[name], buffer.type.dtype)
                lent[name] = in_place(arrays[name], written=is_written(buffer), rows=bound.beside.get(name))
        with self.lock:
            for k, buffer in enumerate(self.program.buffers):
                if buffer.name in lent:
                    prepared.call.arrays[k] = address(lent[buffer.name])
            prepared.loading.follow(arrays, lambda: prepared.addresses(lent))
            spent = prepared.call.timed(len(prepared.nodes))
        results = [b.name for b in self.program.buffers if is_written(b)]
        for name in results:
            bring_back(arrays[name], lent[name], bound.beside.get(name))
        end = time.perf_counter()
        events = [Part(n, s, runs) for n, (s, runs) in zip(prepared.nodes, spent, strict=True) if runs]
        seconds, launches = sum(e.seconds for e in events), sum(e.runs for e in events)
        timing = Timing(ready - begin, end - ready, seconds, launches or 1)
        return Execution({name: arrays[name] for name in results}, timing, tuple(events))


def _begins(arrays: Mapping[str, object]) -> dict[str, int]:
    """Return how many bytes behind a line large arrays begin, of which calls take the elements in place."""
    large = {n: a for n, a in arrays.items() if isinstance(a, np.ndarray) and a.nbytes >= LEAST_LARGE}
    return {name: address(array) % LINE for name, array in large.items() if array.flags.c_contiguous}


def _local_memory(
    program: HostProgram, split: Packed, before: Sequence[HostNode], groups: Sequence[Sequence[Buffer]]
) -> dict[str, NDArray]:
    """Return the memory of all local arrays. ``groups``: of those of a group each takes what others leave.

    ``before``: nodes that have run before, and whose results stay. Errors: ``memory``.
    """
    spans, fixed = spans_of(split.function), uses(before).written
    passing = [b for b in program.buffers if b.role is Role.LOCAL and b.name not in fixed]
    kept = _in_one_memory(spans, passing)
    for buffer in program.buffers:
        if buffer.name in fixed:
            kept[buffer.name] = _memory(shape_of(buffer, {}), buffer.type.dtype)
    for group in groups:
        kept |= _in_one_memory(spans, group)
    for parameter in split.function.parameters:
        if parameter.name in split.names:
            kept[parameter.name] = _memory(_numbers(parameter.shape), parameter.type.dtype)
    return kept


def _in_one_memory(spans: Mapping[str, Span], buffers: Sequence[Buffer]) -> dict[str, NDArray]:
    """Return arrays for local buffers that a run fills anew. Errors: ``memory``."""
    shapes = {b.name: shape_of(b, {}) for b in buffers}
    sizes = {b.name: prod(shapes[b.name]) * b.type.size for b in buffers}
    places = shared_places(spans, sizes, LINE)
    room = _memory((places.size,), np.dtype(np.uint8))
    return {
        b.name: room[at : at + sizes[b.name]].view(b.type.dtype).reshape(shapes[b.name])
        for b in buffers
        if (at := places.offsets.get(b.name)) is not None
    }


def _numbers(shape: Sequence[IntExpression]) -> tuple[int, ...]:
    return tuple(n.value for n in shape if isinstance(n, Number))


def _marked(function: Function) -> tuple[str, ...]:
    marks = {s.number: s.node for s in walk(function.body) if isinstance(s, Mark)}
    return tuple(marks[number] for number in sorted(marks))


def is_written(buffer: Buffer) -> bool:
    """Return whether a run changes what a caller may see."""
    return buffer.role in (Role.OUTPUT, Role.UPDATED)


def _memory(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray:
    """Return zeros. Errors: ``memory``."""
    try:
        return aligned(shape, dtype)
    except (MemoryError, ValueError) as fault:
        notes = [str(fault)]
        raise PolyloomError(
            error("memory", "there is not enough memory", notes=notes, helps=["give smaller sizes"])
        ) from fault


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray:
    """Return zeros that begin at a cache line: else most vectors lie across two. Errors: ValueError."""
    count = prod(shape)
    room = np.zeros(count * dtype.itemsize + LINE, np.uint8)
    first = -room.__array_interface__["data"][0] % LINE
    return room[first : first + count * dtype.itemsize].view(dtype).reshape(shape)


def address(array: NDArray | DeviceArray) -> int:
    """Return where an array's elements begin."""
    given = array.array if isinstance(array, NativeArray) else array
    found: int = given.__array_interface__["data"][0]  # type: ignore[union-attr]
    return found


def in_place(array: NDArray | DeviceArray, *, written: bool, rows: slice | None) -> NDArray:
    """Return an array where it lies, or a copy where C cannot take it so."""
    if isinstance(array, NativeArray):
        return array.array
    assert isinstance(array, np.ndarray), "an array of another device"
    return array if is_usable(array, written=written, rows=rows) else np.array(array, order="C")


def bring_back(target: NDArray | DeviceArray, array: NDArray, rows: slice | None) -> None:
    """Bring what a run wrote into a copy into the caller's array."""
    if isinstance(target, NativeArray) or array is target:
        return
    assert isinstance(target, np.ndarray)
    if rows is not None and target.ndim:
        target[rows] = array[rows]
    else:
        target[...] = array
