"""Which schedules an md_hom may have on a device, and why not the others."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from polyloom.ir.host import Index, MdHom
from polyloom.ir.rebuild import read_positions
from polyloom.ir.types import ElementType
from polyloom.mdh.device.devices import CUDA, DeviceModel
from polyloom.mdh.schedule.addresses import Buffers
from polyloom.mdh.schedule.copy_plan import copy_plan, fetched_values, local_bytes
from polyloom.mdh.schedule.matrix_units import matrix_problems
from polyloom.mdh.schedule.risks import exists, risky_reads
from polyloom.mdh.schedule.schedules import Memory
from polyloom.mdh.schedule.tiling import TileFacts

WIDTHS = (1, 2, 4, 8, 16, 32, 64)
LARGEST_TILE = 128
"""Results of a register tile: more never fit into registers and make builds long."""

STAGES = (1, 2)

LARGEST_FETCH = 48
"""Elements that a work-item may have on their way into copies: more do not fit beside its totals."""

LARGEST_BODY, LARGEST_OF_UNKNOWN = 2048, 192
"""Points that are written out in a kernel; where an extent is not known, every shape of a tile is."""


def most_lanes(device: DeviceModel) -> int:
    """Return how many elements a vector may have: OpenCL C has no type of more than 16."""
    return 16 if device.index >= 0 else max(WIDTHS)


def problems(facts: TileFacts, buffers: Buffers, device: DeviceModel) -> tuple[str, ...]:
    """Return the reasons why a schedule cannot be; empty where it can."""
    return tuple(_problems(facts, buffers, device))


def is_legal(facts: TileFacts, buffers: Buffers, device: DeviceModel) -> bool:
    """Whether a schedule can be: the first reason against it is enough."""
    return next(_problems(facts, buffers, device), None) is None


def _problems(facts: TileFacts, buffers: Buffers, device: DeviceModel) -> Iterator[str]:
    shape = tuple(_shape(facts))
    yield from shape
    if shape:
        return
    if facts.schedule.matrix:
        yield from matrix_problems(facts, buffers, device)
        return
    yield from _tiles(facts)
    yield from _vectors(facts, buffers, device)
    yield from _order(facts)
    yield from _copies(facts, buffers)
    yield from _limits(facts, buffers, device)


def _shape(facts: TileFacts) -> Iterator[str]:
    """Yield what is wrong with the schedule whatever the md_hom computes."""
    schedule, count = facts.schedule, len(facts.hom.extents)
    sizes = (schedule.group, schedule.items, schedule.local, schedule.private, schedule.strided)
    orders = (schedule.group_order, schedule.item_order, schedule.local_order, schedule.private_order)
    if any(len(part) != count for part in sizes) or len(schedule.inputs) != len(facts.hom.inputs):
        yield f"the schedule is for other dimensions or inputs: there are {count} dimensions"
    elif any(sorted(order) != list(range(count)) for order in (*orders, schedule.unrolled_order)):
        yield "an order is no permutation of the dimensions"
    elif min((*schedule.group, *schedule.local), default=0) < 0:
        yield "a tile size is negative"
    elif min((*schedule.items, *schedule.private), default=1) < 1:
        yield "work-items and register tiles are at least 1"
    elif schedule.width not in WIDTHS or (schedule.vector is None) != (schedule.width == 1):
        yield "a vector has 2, 4, 8, 16, 32 or 64 elements, and then a dimension"
    elif schedule.vector is not None and not 0 <= schedule.vector < count:
        yield "there is no such dimension for vectors"


def _tiles(facts: TileFacts) -> Iterator[str]:
    schedule = facts.schedule
    for d in range(len(facts.hom.extents)):
        name, group, step = facts.hom.iterators[d], schedule.group[d], facts.step(d)
        unit = schedule.local[d] if facts.is_tiled(d) else step if d in facts.kept else 1
        if facts.is_tiled(d) and d in facts.kept and schedule.local[d] % step:
            yield f"`{name}`: cache tiles of {schedule.local[d]} are no multiple of register tiles of {step}"
        if group and group % unit and facts.covered(d) != facts.extent(d):
            yield f"`{name}`: work-groups of {group} points are no multiple of tiles of {unit}"


def _vectors(facts: TileFacts, buffers: Buffers, device: DeviceModel) -> Iterator[str]:
    schedule, d = facts.schedule, facts.schedule.vector
    if d is None:
        return
    name = facts.hom.iterators[d]
    if schedule.width > most_lanes(device):
        yield f"vectors of {schedule.width} elements: the device has at most {most_lanes(device)}"
    if facts.guard_uses(d) and d in facts.reduced:
        yield f"`{name}`: the guard tells points of a vector apart"
    if schedule.strided[d]:
        yield f"`{name}`: points of a vector do not lie apart"
    if d in facts.reduced and schedule.items[d] > 1:
        yield f"`{name}`: a reduced dimension is shared by work-items or by vectors, not by both"
    if facts.total_items > 1 and _has_halves(facts, buffers) and device.platform != CUDA:
        yield f"`{name}`: halves are rounded by vectors of one work-item only: PoCL 3.0 crashes otherwise"
    if d in facts.kept and facts.uniform and not facts.divides(d, facts.step(d)):
        yield f"`{name}`: vectors of several work-items have to divide the extent"


def _has_halves(facts: TileFacts, buffers: Buffers) -> bool:
    views = (*facts.hom.inputs, *facts.hom.outputs)
    return any(buffers[view.buffer].type is ElementType.FLOAT16 for view in views)


def _ends_with_data(hom: MdHom) -> bool:
    """Return whether data chooses what results start or end with, or where they are stored."""
    used = (hom.inputs[k] for k in read_positions(*hom.initial, *hom.finish) if k < len(hom.inputs))
    return any(not isinstance(index, Index) for view in (*used, *hom.outputs) for index in view.indices)


def _order(facts: TileFacts) -> Iterator[str]:
    """Yield what the operator does not allow."""
    combiner, schedule, reduced = facts.combiner, facts.schedule, facts.reduced
    if combiner is None:
        return
    shared = [d for d in reduced if schedule.items[d] > 1]
    if facts.waits and shared:
        yield "totals wait in memory, so work-items cannot share a reduction"
    if facts.waits and any(not facts.extent(d) for d in reduced if facts.is_tiled(d)):
        yield "totals wait in memory, but a reduction of unknown length may have no points"
    no_neutral = any(n is None for n in combiner.neutral)
    if no_neutral and facts.hom.guard is not None and (facts.split or facts.waits):
        yield f"`{combiner.name}` has no neutral element for parts without points"
    if facts.split and _ends_with_data(facts.hom):
        yield "data chooses what results start or end with, which whoever combines parts does not know"
    if combiner.commutative:
        return
    divided = [d for d in reduced if facts.is_tiled(d) or d in facts.split or d in shared]
    if facts.vector_is_reduced:
        yield f"`{combiner.name}` does not commute: vectors would change the order"
    if divided and len(reduced) > 1:
        yield f"`{combiner.name}` does not commute: only one reduced dimension could be cut"
    if any(facts.is_tiled(d) for d in shared):
        yield f"`{combiner.name}` does not commute: work-items would take turns from tile to tile"
    for order in (schedule.private_order, schedule.unrolled_order):
        if [d for d in order if d in reduced] != list(reduced):
            yield f"`{combiner.name}` does not commute: loops keep their order"
    if schedule.follow is not None:
        yield f"`{combiner.name}` does not commute: points keep their order"


def _copies(facts: TileFacts, buffers: Buffers) -> Iterator[str]:
    follow, copied = facts.schedule.follow, facts.schedule.has_copies
    if facts.schedule.streaming and (copied or facts.total_items > 1):
        yield "results that bypass the caches: of one work-item without copies only"
    if follow is not None and not 0 <= follow < len(facts.hom.inputs):
        yield "there is no such input to follow"
    for k, caching in enumerate(facts.schedule.inputs):
        if caching.memory is not Memory.LOCAL:
            continue
        name = facts.hom.inputs[k].buffer
        guarded = facts.hom.guard is not None and not exists(facts.hom, k, buffers)
        if guarded or k in _risky(facts, buffers):
            yield f"`{name}`: what is read depends on a condition, so it is not copied"
        elif copy_plan(facts, k, buffers) is None:
            yield f"`{name}`: a copy needs affine indices and cache tiles of a known size"
    yield from _stages(facts, buffers)


def _stages(facts: TileFacts, buffers: Buffers) -> Iterator[str]:
    stages = facts.schedule.stages
    if stages not in STAGES:
        yield f"copies have one stage or two, not {stages}"
    elif stages > 1 and not facts.staged:
        yield "stages are of copies that several work-items share and that change from tile to tile"
    elif (fetched := fetched_values(facts, buffers)) > LARGEST_FETCH:
        yield f"{fetched} elements of the next tile in registers"


def _risky(facts: TileFacts, buffers: Buffers) -> frozenset[int]:
    known = facts.of_hom.known
    if "risky" not in known:
        known["risky"] = risky_reads(facts.hom, buffers)
    found: frozenset[int] = known["risky"]
    return found


def _limits(facts: TileFacts, buffers: Buffers, device: DeviceModel) -> Iterator[str]:
    items = facts.total_items
    most = min(device.max_group_size, *device.max_item_sizes[:1])
    if items > most:
        yield f"{items} work-items in a group, the device has {most}"
    tile = results_of_tile(facts)
    if tile > LARGEST_TILE:
        yield f"a register tile of {tile} results"
    if written_points(facts) > largest_body(facts):
        yield f"{written_points(facts)} points would be written out"
    used = local_bytes(facts, buffers) + _shared_bytes(facts)
    if used > device.local_memory:
        yield f"{used} bytes of local memory, the device has {device.local_memory}"


def results_of_tile(facts: TileFacts) -> int:
    """Return how many values, vectors counted once, a register tile keeps."""
    outputs = len(facts.hom.outputs)
    return prod(facts.schedule.private[d] for d in facts.kept) * outputs


def largest_body(facts: TileFacts) -> int:
    """Return how many points a kernel of this md_hom may write out."""
    known = all(facts.extent(d) is not None for d in range(len(facts.hom.extents)))
    return LARGEST_BODY if known else LARGEST_OF_UNKNOWN


def written_points(facts: TileFacts) -> int:
    """Return about how many points are written out in a kernel."""
    once = prod(facts.schedule.private)
    rests = [d for d in range(len(facts.hom.extents)) if not facts.divides(d, facts.step(d))]
    return once * prod(2 if d in facts.reduced else 1.5 for d in rests).__ceil__()


def _shared_bytes(facts: TileFacts) -> int:
    """Return what work-items take in local memory to combine what they reduced."""
    combiner = facts.combiner
    shared = [d for d in facts.reduced if facts.schedule.items[d] > 1]
    if combiner is None or not shared:
        return 0
    size = sum(result.type.size for result in combiner.results) + 4
    width = facts.schedule.width if not facts.vector_is_reduced else 1
    return results_of_tile(facts) * width * size * facts.total_items * len(shared)
