"""``polyloom compile``: C for every PE, or a C program whose loops run in parallel, on OpenCL or on CUDA."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polyloom.cli.layers import maps_in
from polyloom.cli.loading import reading_of, show_choice
from polyloom.cli.messages import diagnostic_document, print_document, print_remarks
from polyloom.cli.options import (
    TableChoice,
    c_options,
    check_of_network,
    database_option,
    device_option,
    fp_option,
    jobs_option,
    json_option,
    machine_option,
    map_option,
    network_options,
    parameter_option,
    reduction_option,
    reductions_option,
    schedule_option,
    simd_option,
    source_options,
    state_pairs,
)
from polyloom.diagnostics import Diagnostic
from polyloom.report.progress import status_line
from polyloom.targets import TARGETS, Job, Option, find_target

if TYPE_CHECKING:
    from polyloom.wafer.placement.choose import Choice


class _Command(click.Command):
    """Has the options of all targets, besides its own."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        own = [option for target in TARGETS.values() for option in target.options]
        return [*super().get_params(ctx), *map(_option, own)]


def _option(option: Option) -> click.Option:
    kind = click.Choice(option.choices) if option.choices else None
    return click.Option([f"--{option.name}"], help=option.help, default=option.default, type=kind)


@click.command(cls=_Command)
@source_options
@c_options
@click.option("--target", type=TableChoice(TARGETS.keys), required=True, help="What to compile for.")
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
@schedule_option
@database_option
@jobs_option
@network_options
@json_option
def command(source: Path, target: str, folder: Path, as_json: bool, **options: Any) -> None:
    """Write compiled files into DIR.

    For the wafer: C code for every role of PE, the layout, and manifest.json, which says which bytes lie
    where before the start, and what each port is fed and gives.

    For C: the C file with a call in front of each SCoP, and in one more C file the functions that are called;
    build.txt says how to build them. For OpenCL: the same, with the host side in C and the kernels. For
    CUDA: with both in one file for nvcc; --device sm_90 says for which GPUs.
    """
    _of_network(target, options)
    said: list[Sequence[Diagnostic] | Choice] = []
    job = Job(source, reading_of(options), options, said.append)
    try:
        with status_line(f"compiling {source.name} for {target}"):
            compiled = find_target(target).compile(job)
    finally:
        for each in said:
            _say(each, quiet=as_json)
    names = compiled.write(folder)
    print_remarks(compiled.remarks, quiet=as_json)
    if as_json:
        before = [d for each in said if isinstance(each, Sequence) for d in each]
        remarks = [diagnostic_document(d) for d in (*before, *compiled.remarks)]
        print_document({"folder": str(folder), "files": list(names), "remarks": remarks})
    else:
        click.echo(f"{folder}: {', '.join(names)}")


def _of_network(target: str, options: dict[str, Any]) -> None:
    """Read the options of ``--one-wafer``. Raises ``UsageError``, ``map-folder``."""
    pes, state, folder = options["pes"], options["state"], options["map_file"]
    if not options["one_wafer"]:
        check_of_network(pes, state)
        return
    if target != "csl":
        raise click.UsageError(
            f"`--one-wafer` does not go with `--target {target}`; `simulate` runs the C of a network"
        )
    options |= {"state": state_pairs(state), "maps": {} if folder is None else maps_in(folder)}


def _say(found: Sequence[Diagnostic] | Choice, *, quiet: bool) -> None:
    if isinstance(found, Sequence):
        print_remarks(found, quiet=quiet)
    else:
        show_choice(found, quiet=quiet)
