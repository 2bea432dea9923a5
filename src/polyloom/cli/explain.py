"""``polyloom explain``: every stage of the wafer back end, with its sets, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from polyloom.cli.loading import load_placed
from polyloom.cli.messages import print_remarks
from polyloom.cli.options import (
    c_options,
    json_option,
    map_option,
    parameter_option,
    simd_option,
    source_options,
)


@click.command()
@source_options
@c_options
@parameter_option
@map_option
@simd_option
@json_option
def command(source: Path, map_file: Path | None, simd: str, as_json: bool, **options: Any) -> None:
    """Print every stage that SOURCE goes through under MAP, with its sets in the paper's notation.

    The numbers at the right are the equations of `dtg_codegen` (Verdoolaege et al., IMPACT 2020).
    """
    from polyloom.api import explain

    program, mapping = load_placed(source, options, map_file, quiet=as_json)
    found = explain(program, mapping, simd)
    if as_json:
        click.echo(json.dumps(found.json(), indent=1))
        return
    from polyloom.report.explain_view import print_explanation

    print_explanation(found.analysis)
    print_remarks(found.remarks, quiet=as_json)
