"""``polyloom run``: a layer, a model or a C function as C on the processor, or on an OpenCL device."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polyloom.cli.messages import print_document, print_remarks
from polyloom.cli.options import (
    any_device_option,
    c_options,
    database_option,
    driver_patch_option,
    fp_option,
    jobs_option,
    json_option,
    reductions_option,
    scalar_option,
    schedule_option,
    source_options,
    threads_option,
)
from polyloom.diagnostics import Diagnostic, Severity
from polyloom.sources import Loaded, LoadedHost, Reading, is_model, load_program

if TYPE_CHECKING:
    from polyloom.mdh.compiled import CompiledProgram

_FILE = click.Path(path_type=Path)
_ROUNDS = 7
"""Of both programs in turns, for a ratio."""

_STATUS = "building the program, which is kept, and running it"


@click.command()
@source_options
@c_options
@any_device_option
@driver_patch_option
@threads_option
@scalar_option
@reductions_option
@fp_option
@schedule_option
@database_option
@click.option("--inputs", metavar="I.npz", type=_FILE, help="One array per input; without: small integers.")
@click.option("--outputs", metavar="O.npz", type=_FILE, help="Where everything goes that was written.")
@click.option(
    "--check",
    is_flag=True,
    help="Compare with the C program, the model's framework or the evaluator; exit with 1 on a mismatch.",
)
@click.option(
    "--beside",
    metavar="CC",
    help="Time a C program beside itself as this compiler builds it: `--beside 'cc -O3'`.",
)
@click.option(
    "--over",
    metavar="D,D",
    help="Devices that share the rows of its results: the batch of a model, the outermost loop of C.",
)
@click.option("--report", metavar="R.html", type=_FILE, help="Write what it took as one HTML page.")
@jobs_option
@json_option
def command(
    source: Path,
    device: str | None,
    driver_patch: bool,
    threads: int | None,
    parameters: dict[str, int | float],
    database: Path | None,
    inputs: Path | None,
    outputs: Path | None,
    check: bool,
    beside: str | None,
    report: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Run SOURCE on a device, with the best schedule that is known."""
    from polyloom.cli.opening import opened_program
    from polyloom.files import read_shapes
    from polyloom.report.progress import status_line

    several = {name: options.pop(name) for name in ("over", "jobs", "cluster")}
    where = {"wanted": device, "driver_patch": driver_patch, "threads": threads}
    shapes = read_shapes(inputs) if inputs is not None and is_model(source) else {}
    with status_line(f"reading {source.name}"):
        loaded = load_program(source, Reading(**options, shapes=shapes))
    files = {"inputs": inputs, "outputs": outputs, "report": report, "database": database}
    with opened_program(loaded, where, database, several) as program:
        _print_remarks(source, program.remarks, quiet=as_json)
        _run(loaded, program, parameters, files, beside, check=check, as_json=as_json)


def _run(
    loaded: Loaded | LoadedHost,
    program: CompiledProgram,
    parameters: dict[str, int | float],
    files: dict[str, Path | None],
    beside: str | None,
    *,
    check: bool,
    as_json: bool,
) -> None:
    from polyloom.files import read_arrays, write_arrays
    from polyloom.ir.evaluation.inputs import elements_of
    from polyloom.mdh.running import RESULTS, run_program
    from polyloom.models import elements_of_loaded, model_inputs, model_reals
    from polyloom.report.progress import status_line
    from polyloom.report.run_view import print_plan, print_run

    inputs, outputs, report = files["inputs"], files["outputs"], files["report"]
    if isinstance(loaded, Loaded):
        most: int | None = elements_of_loaded(loaded)
    else:
        most = None if program.signature.open_ended else elements_of(program.signature.program, parameters)
    given = None if inputs is None else read_arrays(inputs, most)
    model = loaded.model if isinstance(loaded, Loaded) else None
    arguments = {**(given or {}), **parameters} if model is None else model_inputs(model, given)
    reals = partial(model_reals, model) if model is not None and given is None else None
    with status_line(_STATUS):
        result = run_program(program, arguments, check=check, reals=reals)
    found = result.outputs if model is None else model.outputs(result.outputs)
    if outputs is not None:
        write_arrays(outputs, found)
    if report is not None:
        from polyloom.report.run_page import write_run_report

        with status_line(f"writing {report.name}"):
            write_run_report(report, result, program, files["database"])
    ratio = None
    if beside is not None:
        from polyloom.side_by_side import compared

        with status_line(f"running it beside what `{beside}` makes of it"):
            ratio = compared(program, arguments, shlex.split(beside), _ROUNDS, check=False).ratio
    if as_json:
        split = {} if program.plan is None else {"split": program.plan.json()}
        others = {} if ratio is None else {"ratio": ratio, "beside": beside}
        print_document({**result.json(), **split, **others})
    else:
        print_run(result)
        if program.plan is not None:
            print_plan(program.plan)
        if ratio is not None:
            click.echo(f"beside   {ratio:.3g} times as fast as `{beside}` on one core")
    if result.check is not None and not result.passed:
        raise result.check.mismatch(RESULTS)


def _print_remarks(source: Path, remarks: Sequence[Diagnostic], *, quiet: bool) -> None:
    """Print warnings, and how many remarks there are on what stays sequential."""
    missed = [r for r in remarks if r.severity is Severity.REMARK]
    print_remarks([r for r in remarks if r.severity is not Severity.REMARK], quiet=quiet)
    if missed and not quiet:
        what = "1 remark" if len(missed) == 1 else f"{len(missed)} remarks"
        click.echo(f"{what} on loops that stay sequential: `polyloom explain {source}`", err=True)
