"""``polyloom run``: a layer, a model or a C function on an OpenCL device."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from polyloom.cli.messages import print_remarks
from polyloom.cli.options import (
    c_options,
    database_option,
    device_option,
    driver_patch_option,
    fp_option,
    json_option,
    reductions_option,
    scalar_option,
    source_options,
)
from polyloom.diagnostics import Diagnostic, Severity
from polyloom.sources import Reading, is_model, load_model, model_reference

_FILE = click.Path(path_type=Path)
_STATUS = "making the kernels, which the driver keeps, and running them"


@click.command()
@source_options
@c_options
@device_option
@driver_patch_option
@scalar_option
@reductions_option
@fp_option
@database_option
@click.option("--inputs", metavar="I.npz", type=_FILE, help="One array per input; without: small integers.")
@click.option("--outputs", metavar="O.npz", type=_FILE, help="Where everything goes that was written.")
@click.option(
    "--check",
    is_flag=True,
    help="Compare with the C program, the model's framework or the evaluator; exit with 1 on a mismatch.",
)
@json_option
def command(
    source: Path,
    device: str | None,
    driver_patch: bool,
    parameters: dict[str, int | float],
    database: Path | None,
    inputs: Path | None,
    outputs: Path | None,
    check: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run SOURCE on an OpenCL device, with the best schedule that is known."""
    from polyloom.files import read_arrays, read_shapes, write_arrays
    from polyloom.ir.evaluation.host_inputs import elements_of
    from polyloom.mdh.device.devices import choose_device
    from polyloom.mdh.running import RESULTS, run_program
    from polyloom.models import elements_of_model, model_inputs, model_reals
    from polyloom.pipeline import load_opencl, open_model
    from polyloom.report.progress import status_line
    from polyloom.report.run_view import print_run

    if is_model(source):
        shapes = None if inputs is None else read_shapes(inputs)
        model = load_model(source, options["defines"], shapes, options["function"])
        given = None if inputs is None else read_arrays(inputs, elements_of_model(model))
        reference = model_reference(model, source, options["function"])
        chosen = choose_device(device, driver_patch=driver_patch)
        program = open_model(model, chosen, database, reference)
        reals = partial(model_reals, model) if given is None else None
        with status_line(_STATUS):
            result = run_program(program, model_inputs(model, given), check=check, reals=reals)
        found = model.outputs(result.outputs)
    else:
        program = load_opencl(
            source, Reading(**options), choose_device(device, driver_patch=driver_patch), database
        )
        _print_remarks(source, program.remarks, quiet=as_json)
        most = None if program.signature.open_ended else elements_of(program.signature.program, parameters)
        given = None if inputs is None else read_arrays(inputs, most)
        with status_line(_STATUS):
            result = run_program(program, {**(given or {}), **parameters}, check=check)
        found = result.outputs
    if outputs is not None:
        write_arrays(outputs, found)
    if as_json:
        click.echo(json.dumps(result.json(), indent=1))
    else:
        print_run(result)
    if result.check is not None and not result.passed:
        raise result.check.mismatch(RESULTS)


def _print_remarks(source: Path, remarks: Sequence[Diagnostic], *, quiet: bool) -> None:
    """Print warnings, and how many remarks there are on what stays sequential."""
    missed = [r for r in remarks if r.severity is Severity.REMARK]
    print_remarks([r for r in remarks if r.severity is not Severity.REMARK], quiet=quiet)
    if missed and not quiet:
        what = "1 remark" if len(missed) == 1 else f"{len(missed)} remarks"
        click.echo(f"{what} on loops that stay sequential: `polyloom explain {source}`", err=True)
