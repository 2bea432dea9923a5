"""``polyloom cslc``: CSL compiled for the simulated wafer."""

from __future__ import annotations

from pathlib import Path

import click

from polyloom.cli.messages import print_document
from polyloom.cli.options import json_option
from polyloom.report.progress import status_line


def _output(ctx: click.Context, parameter: click.Parameter, value: str) -> Path:
    """Take `-o=out` as well as `-o out`."""
    return Path(value.removeprefix("="))


@click.command()
@click.argument("layout", type=click.Path(path_type=Path))
@click.option(
    "-o", "output", metavar="DIR", default="out", callback=_output, help="The new folder. Default `out`."
)
@click.option("--arch", type=click.Choice(["wse2", "wse3"]), default="wse2", help="Default wse2.")
@click.option("--fabric-dims", metavar="W,H", help="Size of the wafer.")
@click.option("--fabric-offsets", metavar="X,Y", help="Where on it the program's north-west PE is.")
@click.option("--params", metavar="NAME:NUMBER,...", multiple=True, help="Parameters of the layout.")
@click.option("--colors", metavar="NAME:NUMBER,...", multiple=True, help="Its parameters that are colors.")
@click.option("--memcpy", is_flag=True, help="The program uses memcpy.")
@click.option("--channels", type=int, default=1, help="Taken; transfers cost no time here.")
@click.option("--width-west-buf", metavar="N", type=int, default=0, help="Columns of buffers in the west.")
@click.option("--width-east-buf", metavar="N", type=int, default=0, help="Columns of buffers in the east.")
@click.option(
    "--import-path",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Where imports are found.",
)
@click.option("--fp16-format", type=click.Choice(["f16"]), default="f16", help="f16 is the only format here.")
@click.option("--max-inlined-iterations", type=int, help="Taken, and without meaning here.")
@click.option("--max-parallelism", type=int, help="Taken, and without meaning here.")
@click.option("--link-section-start-address-bytes", type=int, help="Taken, and without meaning here.")
@click.option("--verbose", is_flag=True, help="Say what was compiled.")
@json_option
def command(
    layout: Path,
    output: Path,
    arch: str,
    fabric_dims: str | None,
    fabric_offsets: str | None,
    params: tuple[str, ...],
    colors: tuple[str, ...],
    memcpy: bool,
    channels: int,
    width_west_buf: int,
    width_east_buf: int,
    import_path: tuple[Path, ...],
    fp16_format: str,
    max_inlined_iterations: int | None,
    max_parallelism: int | None,
    link_section_start_address_bytes: int | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Compile the CSL program of LAYOUT for Polyloom's simulated wafer; `cs-python` runs its host program.

    The command line is that of the vendor's compiler of this name, and `--json`. This is not the vendor's
    product, and contains nothing of it; what it writes runs on no machine.
    """
    from polyloom.csl.host.folder import compile_to_folder
    from polyloom.csl.host.options import Options, numbers, pair

    options = Options(
        layout,
        output,
        arch,
        numbers(params, "--params"),
        numbers(colors, "--colors"),
        None if fabric_dims is None else pair(fabric_dims, "--fabric-dims"),
        (0, 0) if fabric_offsets is None else pair(fabric_offsets, "--fabric-offsets"),
        memcpy,
        channels,
        width_west_buf,
        width_east_buf,
        import_path,
    )
    with status_line(f"compiling {layout.name}"):
        built = compile_to_folder(options)
    if as_json:
        size = {"width": built.program.width, "height": built.program.height}
        print_document({"folder": str(output), "arch": arch, **size})
    elif verbose:
        click.echo(f"{output}: {built.program.width} x {built.program.height} PEs for {arch}")
