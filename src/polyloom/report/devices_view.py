"""Devices for a person."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from polyloom.mdh.device.devices import DeviceModel, patch_note
from polyloom.report.terminal import console


def print_devices(models: Sequence[DeviceModel]) -> None:
    """Print a table, one row for each device."""
    table = Table(box=None, pad_edge=False)
    for heading in ("#", "kind", "device", "platform", "units", "vector", "local", "memory", "types"):
        table.add_column(heading, justify="right" if heading in ("#", "units") else "left")
    for m in models:
        platform = f"{m.platform} {m.driver}"
        units, vector = (
            str(m.compute_units),
            f"{m.vector_bytes} bytes" if m.lanes == 1 else f"{m.lanes} lanes",
        )
        sizes = (_size(m.local_memory), _size(m.global_memory)) if m.index >= 0 else ("", "")
        number = str(m.index) if m.index >= 0 else "-"
        table.add_row(number, m.kind.value, m.name, platform, units, vector, *sizes, _types(m))
    console().print(table)
    for m in models:
        if m.processor:
            console().print(
                f"{m.index}: {patch_note(m)} when it is used (`--no-driver-patch` forbids that)", markup=False
            )


def _types(model: DeviceModel) -> str:
    names = ["half"] * model.has_half + ["float"] + ["double"] * model.has_double
    return ", ".join(names)


def _size(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"
