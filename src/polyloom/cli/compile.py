"""``polyloom compile``: C code for every PE, or a C program whose loops run on OpenCL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from polyloom.cli.loading import load_chosen, reading_of
from polyloom.cli.messages import print_remarks
from polyloom.cli.options import (
    c_options,
    database_option,
    device_option,
    fp_option,
    machine_option,
    map_option,
    parameter_option,
    reduction_option,
    reductions_option,
    simd_option,
    source_options,
)


@click.command()
@source_options
@c_options
@click.option("--target", type=click.Choice(["wafer", "opencl"]), required=True, help="What to compile for.")
@map_option
@click.option(
    "-o", "folder", metavar="DIR", type=click.Path(path_type=Path), required=True, help="Where files go."
)
@simd_option
@reduction_option
@machine_option
@device_option
@parameter_option
@reductions_option
@fp_option
@database_option
def command(source: Path, target: str, folder: Path, **options: Any) -> None:
    """Write compiled files into DIR.

    For the wafer: C code for every role of PE, the layout, and manifest.json, which says which bytes lie
    where before the start, and what each port is fed and gives.

    For OpenCL: the C file with a call in place of each SCoP, the host side in C, and the kernels; build.txt
    says how to build them.
    """
    names = (_opencl if target == "opencl" else _wafer)(source, folder, options)
    click.echo(f"{folder}: {', '.join(names)}")


def _wafer(source: Path, folder: Path, options: Mapping[str, Any]) -> tuple[str, ...]:
    from polyloom.api import compile_wafer
    from polyloom.wafer.host.folder import write_folder

    map_file = options["map_file"]
    program, choice = load_chosen(source, options, map_file, quiet=False)
    without = options["simd_without"]
    shape = options["reduction"]
    compiled = compile_wafer(
        program, choice.mapping, options["simd"], options["machine"], simd_without=without, reduction=shape
    )
    chosen = choice.text if choice.candidates or options["size"] else None
    names = write_folder(compiled.program, folder, chosen)
    print_remarks(compiled.remarks, quiet=False)
    return names


def _opencl(source: Path, folder: Path, options: Mapping[str, Any]) -> tuple[str, ...]:
    from polyloom.mdh.device.devices import choose_device
    from polyloom.pipeline import compile_opencl
    from polyloom.sources import load_host_programs

    reading = reading_of(options)
    loaded = load_host_programs(source, reading)
    device, values, database = choose_device(options["device"]), options["parameters"], options["database"]
    made = compile_opencl(source, loaded, reading, device, values, database)
    names = made.write(folder)
    print_remarks([remark for part in loaded for remark in part.remarks], quiet=False)
    return names
