"""From an md_hom and a schedule to OpenCL kernels: the one way in.

md_homs of ``++`` and one point-wise operator become trees under their schedules (``lowering/tiles``), scans
and histograms several md_homs. Everything else runs as a plain nest. All kernels are printed from trees.
"""

from __future__ import annotations

from polyloom.ir.host import HostProgram, MdHom
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.chunked_scans import emit_chunks
from polyloom.mdh.lowering.kernels.nodes import Scheduler, nest_kernels, tiled_kernels
from polyloom.mdh.lowering.launch import Launch
from polyloom.mdh.lowering.sequential_nest import plain_nest
from polyloom.mdh.schedule.legality import problems
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.tiling import TileFacts, has_tiles


class IllegalSchedule(ValueError):
    """The md_hom may not have the schedule; the text says why."""


def emit_md_hom(
    hom: MdHom, program: HostProgram, device: DeviceModel, schedule: Schedule | None, scheduler: Scheduler
) -> Launch:
    """Return the kernels of an md_hom of ``program`` under a schedule.

    Scans and histograms have none, and are cut into chunks where that is worth it. Everything else, and
    where ``schedule`` is None, becomes a plain nest. ``scheduler`` is asked for the chunks' md_homs, and for
    those that combine partial results. Errors: IllegalSchedule.
    """
    device = device.rounding(strict=program.strict)

    def emit_part(part: MdHom, around: HostProgram) -> Launch:
        own = scheduler(part, around.by_name, device) if has_tiles(part) else None
        return _emitted(part, around, device, own, scheduler)

    if not has_tiles(hom):
        return emit_chunks(hom, program, device, emit_part) or nest_kernels(plain_nest(hom), program, device)
    return _emitted(hom, program, device, schedule, scheduler)


def _emitted(
    hom: MdHom, program: HostProgram, device: DeviceModel, schedule: Schedule | None, scheduler: Scheduler
) -> Launch:
    """Return tiles under a schedule, and a plain nest where there is none."""
    if schedule is None:
        return nest_kernels(plain_nest(hom), program, device)
    buffers = program.by_name
    if found := problems(TileFacts(hom, schedule), buffers, device):
        raise IllegalSchedule("; ".join(found))
    return tiled_kernels(hom, program, device, schedule, scheduler)
