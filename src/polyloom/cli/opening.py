"""The program that `polyloom run` runs: on one device, or its rows in several places at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polyloom.sources import Loaded, LoadedHost

if TYPE_CHECKING:
    from polyloom.mdh.compiled import CompiledProgram


_STATUS = "choosing schedules"


@contextmanager
def opened_program(
    loaded: Loaded | LoadedHost, device: dict[str, Any], database: Path | None, several: dict[str, Any]
) -> Iterator[CompiledProgram]:
    """Give a program; ``device``: arguments of ``choose``; ``several``: ``over``, ``jobs``, ``cluster``."""
    from polyloom.device_pipeline import open_loaded, open_split
    from polyloom.mdh.native.device import choose
    from polyloom.report.progress import status_line
    from polyloom.workers.local import crew_of

    wanted, names = device.pop("wanted"), several.pop("over")
    if names is None and several["cluster"] is None and (several["jobs"] or 1) <= 1:
        with status_line(_STATUS):
            program = open_loaded(loaded, choose(wanted, **device), database)
        yield program
        return
    if wanted is not None:
        raise click.UsageError("`--over` names the devices, in place of `--device`")
    listed = [name.strip() for name in (names or "").split(",") if name.strip()]
    devices = [choose(name, driver_patch=device["driver_patch"]) for name in listed]
    with crew_of(**several) as crew:
        with status_line(_STATUS):
            program = open_split(loaded, devices, crew, database)
        yield program
