"""``polyloom compile``: C code for every PE, and what a host program must know."""

from __future__ import annotations

from pathlib import Path

import click

from polyloom.cli.loading import load_placed
from polyloom.cli.messages import print_remarks
from polyloom.cli.options import machine_option, map_option, simd_option, source_options
from polyloom.diagnostics import Unsupported, error


@click.command()
@source_options
@click.option("--target", type=click.Choice(["wafer", "opencl"]), required=True, help="What to compile for.")
@map_option
@click.option(
    "-o", "folder", metavar="DIR", type=click.Path(path_type=Path), required=True, help="Where files go."
)
@simd_option
@machine_option
def command(
    source: Path,
    node: str | None,
    defines: dict[str, str],
    target: str,
    map_file: Path | None,
    folder: Path,
    simd: str,
    machine: str,
) -> None:
    """Write C code for every role of PE, the layout, and manifest.json into DIR.

    The manifest says which bytes lie where before the start, and what each port is fed and gives.
    """
    from polyloom.api import compile_wafer
    from polyloom.wafer.folder import write_folder

    if target == "opencl":
        message = "Polyloom does not compile for OpenCL yet"
        raise Unsupported(error("target-later", message, helps=["compile with `--target wafer`"]))
    program, mapping = load_placed(source, node, defines, map_file, quiet=False)
    compiled = compile_wafer(program, mapping, simd, machine)
    names = write_folder(compiled.program, folder)
    print_remarks(compiled.remarks, quiet=False)
    click.echo(f"{folder}: {', '.join(names)}")
