"""``polyloom bench``: C files as a C compiler builds them, beside what Polyloom makes of them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from polyloom.cli.messages import print_document
from polyloom.cli.options import (
    any_device_option,
    c_options,
    database_option,
    fp_option,
    json_option,
    reductions_option,
    scalar_option,
    sources_options,
    threads_option,
)

CC = "gcc -O3 -march=native"


@click.command()
@sources_options
@scalar_option
@c_options
@any_device_option
@threads_option
@reductions_option
@fp_option
@database_option
@click.option("--cc", default=CC, show_default=True, metavar="COMMAND", help="The C compiler and its flags.")
@click.option("--rounds", default=10, show_default=True, type=click.IntRange(1), help="Rounds that count.")
@click.option("--no-check", is_flag=True, help="Do not compare results with the C program's before.")
@json_option
def command(
    sources: tuple[Path, ...],
    parameters: dict[str, int | float],
    device: str | None,
    threads: int | None,
    database: Path | None,
    cc: str,
    rounds: int,
    no_check: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Time C files as Polyloom runs them, whole calls, and as a C compiler builds them, in turns."""
    from polyloom.device_pipeline import open_loaded
    from polyloom.mdh.native.device import choose
    from polyloom.report.bench_view import document, print_bench
    from polyloom.report.progress import status_line
    from polyloom.side_by_side import compared
    from polyloom.sources import Reading, load_program

    opened = choose(device, threads=threads)
    programs = {}
    for source in sources:
        with status_line(f"looking at the loops of {source.name}"):
            programs[source] = open_loaded(load_program(source, Reading(**options)), opened, database)
    unknown = parameters.keys() - {name for p in programs.values() for name in p.signature.names}
    if unknown:
        raise click.BadParameter(f"no program has an argument `{min(unknown)}`", param_hint="--param")
    found = {}
    for source, program in programs.items():
        given = {name: value for name, value in parameters.items() if name in program.signature.names}
        with status_line(f"building {source.name}, and running it"):
            found[str(source)] = compared(program, given, shlex.split(cc), rounds, check=not no_check)
    if as_json:
        print_document(document(found, opened.id, cc))
    else:
        print_bench(found, opened.id, cc)
