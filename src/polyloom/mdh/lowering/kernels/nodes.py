"""Nodes of a host program as kernels: md_homs under schedules, and plain nests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

from polyloom.ir.host import HostProgram, MdHom, Nest, used_buffers
from polyloom.mdh.device.devices import DeviceKind, DeviceModel
from polyloom.mdh.lowering.iterator_names import distinct_iterators
from polyloom.mdh.lowering.kernels.items import points_as_items
from polyloom.mdh.lowering.kernels.launches import KernelMaker
from polyloom.mdh.lowering.launch import Launch
from polyloom.mdh.lowering.program_tree import node_code
from polyloom.mdh.lowering.tiles.pipeline import scheduled
from polyloom.mdh.print.kernel_source import kernel_language
from polyloom.mdh.schedule.addresses import Buffers, known
from polyloom.mdh.schedule.schedules import Schedule

Scheduler = Callable[[MdHom, Buffers, DeviceModel], Schedule]
"""Chooses the schedule of an md_hom that lowering makes itself: one that needs no second kernel."""

LARGEST = 2**30
"""Of extents and elements, up to which integers of an md_hom's code are 32 bits wide."""


def nest_kernels(
    node: Nest,
    program: HostProgram,
    device: DeviceModel,
    *,
    alone: bool = False,
) -> Launch:
    """Return the kernel of a nest: a work-item for each point.

    ``alone``: on a processor it is the only one of its group, since it has much to do.
    """
    is_cpu = device.kind is DeviceKind.CPU
    most = 1 if alone and is_cpu else min(8 if is_cpu else 64, device.max_group_size)
    points = partial(points_as_items, most=most)
    maker = KernelMaker(
        name=node.name,
        buffers=program.by_name,
        local_memory=device.local_memory,
        language=kernel_language(device),
        points=lambda loop, names: points(loop, names=names),
    )
    return maker.launch(node_code(node, program))


def tiled_kernels(
    hom: MdHom,
    program: HostProgram,
    device: DeviceModel,
    schedule: Schedule,
    scheduler: Scheduler,
) -> Launch:
    """Return the kernels of an md_hom that has tiles, under a legal schedule.

    ``scheduler`` is asked for the md_hom that combines partial results.
    """
    buffers = program.by_name
    maker = KernelMaker(
        name=hom.name,
        buffers=buffers,
        local_memory=device.local_memory,
        language=kernel_language(device),
        narrow=_is_narrow(hom, buffers),
        streamed=frozenset(view.buffer for view in hom.outputs if schedule.streaming),
    )
    code = scheduled(
        distinct_iterators(hom, buffers),
        buffers,
        schedule,
        second=lambda rest, known: scheduler(rest, known, device),
    )
    return maker.launch(code)


def _is_narrow(hom: MdHom, buffers: Buffers) -> bool:
    """Return whether places of all elements, and all points, are known to fit into 32 bits."""
    shapes = [buffers[name].shape for name in used_buffers(hom)]
    sizes = [known(n) for shape in (*shapes, hom.extents) for n in shape]
    if None in sizes or any((size or 0) >= LARGEST for size in sizes):
        return False
    return all(prod(known(n) or 1 for n in shape) < LARGEST for shape in shapes)
